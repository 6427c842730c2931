"""SymNode: PyTorch's SymInt, SymFloat and SymBool on the shape engine, through Python's operators and through C++."""

import copy
import math
import operator
import pickle
import sys

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
    guard_or_false,
    guard_or_true,
    statically_known_true,
)

from pellucid import _bytecode, exc, shapes
from pellucid.torch_shapes import numbers
from pellucid.torch_shapes.env import TorchShapeEnv


@pytest.fixture
def env():
    return TorchShapeEnv()


def size(env, hint, name=None):
    name = name or f"input_{len(env.engine.inputs)}"
    return numbers.to_torch(env.engine.create_size(hint, name, policy="dynamic"))


def theirs(hint):
    from torch._dynamo.source import ConstantSource

    shape_env, source = ShapeEnv(), ConstantSource("t")
    return shape_env.create_symintnode(
        shape_env.create_symbol(hint, source=source, dynamic_dim=DimDynamic.DYNAMIC), hint=hint, source=source
    )


BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    torch.sym_min,
    torch.sym_max,
]


def value(number):
    """What a number is at the hints."""
    return number.node.hint if isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool)) else number


@pytest.mark.parametrize("function", BINARY)
@pytest.mark.parametrize("other", [3, 2.5, "symbol"])
def test_operators_give_what_python_gives(env, function, other):
    a = size(env, 7, "a")
    b = size(env, 5, "b") if other == "symbol" else other
    plain = 5 if other == "symbol" else other
    expected = {torch.sym_min: min, torch.sym_max: max}.get(function, function)
    assert value(function(a, b)) == expected(7, plain)
    assert value(function(b, a)) == expected(plain, 7)


@pytest.mark.parametrize("function", [operator.neg, abs, math.floor, math.ceil, operator.pos, torch.sym_float, torch.sym_int])
def test_unary_operators(env, function):
    expected = {torch.sym_float: float, torch.sym_int: int}.get(function, function)
    assert value(function(size(env, 7))) == expected(7)
    assert value(function(size(env, 7) / 2)) == expected(3.5)


@pytest.mark.parametrize("function", [operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor])
def test_bit_operators(env, function):
    assert value(function(size(env, 12), 5)) == function(12, 5)


def test_powers(env):
    a = size(env, 3)
    assert value(a**4) == 81
    assert value(a**0.5) == 3**0.5


@pytest.mark.parametrize("name", ["sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "atan", "log2"])
def test_functions_of_math(env, name):
    a = size(env, 7)
    assert value(getattr(torch, f"_sym_{name}")(a)) == pytest.approx(getattr(math, name)(7))


def test_conditions(env):
    a, b = size(env, 7, "a"), size(env, 5, "b")
    both = torch.sym_and(a > 6, b > 6) if hasattr(torch, "sym_and") else (a > 6) & (b > 6)
    assert value(both) is False
    assert value((a > 6) | (b > 6)) is True
    assert value(torch.sym_not(a > 6)) is False
    assert value((a > 6).node.sym_ite(a.node, b.node) and torch.SymInt((a > 6).node.sym_ite(a.node, b.node))) == 7


def test_a_question_is_one_guard_at_the_users_line(env):
    a = size(env, 7)
    line = sys._getframe().f_lineno + 1
    assert a > 3
    assert a > 2
    (guard,) = [guard for guard in env.engine.guards if guard.text.startswith("4")]
    assert (guard.text, guard.line) == ("4 <= input_0", line) and guard.filename == __file__


def test_sizes_are_made_at_the_users_line(env):
    line = sys._getframe().f_lineno + 1
    rows, _ = env.sizes_of(torch.empty(7, 9), "x")
    assert rows > 8 or rows < 8
    made = [event for event in env.engine.log if event.startswith("input")]
    assert all(event.endswith(f"at {__file__}:{line}") for event in made) and len(made) == 2


def test_one_error_class_through_either_door(env):
    u = env.create_unbacked_symint()
    caught = []
    for ask in (lambda: bool(u > 3), lambda: bool(numbers.from_torch(u) > 3)):
        with pytest.raises(exc.DataDependentError) as raised:
            ask()
        caught.append(raised.value)
    assert type(caught[0]) is type(caught[1]) and isinstance(caught[1], GuardOnDataDependentSymNode)
    assert all(f"asked at {__file__}:" in str(error) for error in caught)


def test_what_is_proven_is_a_plain_bool(env):
    assert (size(env, 7) > 1) is True
    assert isinstance(size(env, 7) > 2, torch.SymBool)
    assert statically_known_true(size(env, 7) + 1 > 2)


def test_floats_and_booleans_cross_between_cpp_and_python(env):
    a = size(env, 7)
    scale = 1 / torch.sym_float(a)
    q = torch.empty((2, a, 4), device="meta")
    from torch._dispatch.python import enable_python_dispatcher

    with enable_python_dispatcher():
        # The scale is computed in C++ as a SymFloat and read in Python.
        out = torch.nn.functional.scaled_dot_product_attention(q, q, q, scale=0.5)
    assert out.shape == q.shape and isinstance(scale, torch.SymFloat)
    assert torch.ops.aten.sym_is_contiguous(q) in (True, q.is_contiguous())


def test_ends_of_slices_do_not_overflow(env):
    a = size(env, 7)
    x = torch.empty((a, 2), device="meta")
    from torch._dispatch.python import enable_python_dispatcher

    with enable_python_dispatcher():
        assert x[-(2**63) :].shape == x.shape


def test_a_value_past_int64_names_its_expression(env):
    a = size(env, 2**40)
    huge = a * a
    with pytest.raises(OverflowError, match=r"s0\*\*2|s0\*s0"):
        int(huge)


def test_division_by_zero_is_pythons_error(env):
    with pytest.raises(ZeroDivisionError):
        size(env, 7) // 0


def test_pytorchs_own_symbols_do_not_mix(env):
    for mixed in (lambda: size(env, 7) + theirs(5), lambda: theirs(5) + size(env, 7)):
        with pytest.raises((TypeError, ValueError, AssertionError)):
            mixed()
    with pytest.raises(TypeError, match="PyTorch's own ShapeEnv"):
        size(env, 7) + theirs(5)


def test_symbols_of_another_environment_do_not_mix(env):
    with pytest.raises(ValueError, match="another ShapeEnv"):
        size(env, 7) + size(TorchShapeEnv(), 5)


def test_sizes_without_hints(env):
    u = env.create_unbacked_symint()
    with pytest.raises(exc.DataDependentError, match="u0 > 3") as caught:
        bool(u > 3)
    assert isinstance(caught.value, GuardOnDataDependentSymNode)
    assert guard_or_false(u > 3) is False and guard_or_true(u > 3) is True
    torch._check(u > 3)
    assert guard_or_true(u > 2) is True and statically_known_true(u > 3)
    assert len(env.engine.runtime_asserts) == 1


def test_hashing_is_pytorchs(env):
    with pytest.raises(TypeError, match="unhashable"):
        hash(size(env, 7))
    a = size(env, 7)
    assert (a + 1).node._value_hash() == (1 + a).node._value_hash()
    assert (a + 1).node._value_eq((1 + a).node)


def test_copies(env):
    a = size(env, 7)
    assert copy.copy(a).node.shape_env is env
    a > 3
    twice = copy.deepcopy((a, a + 1))
    assert twice[0].node.shape_env is not env
    assert twice[0].node.shape_env is twice[1].node.shape_env
    assert bool(twice[1] == twice[0] + 1)
    assert [guard.text for guard in twice[0].node.shape_env.engine.guards] == [guard.text for guard in env.engine.guards]


def test_pickling(env):
    a, b = size(env, 7, "a"), size(env, 5, "b")
    assert a > 3
    assert a + b < 20
    u = env.create_unbacked_symint()
    torch._check(u >= 2)
    again_a, again_sum, again_u = pickle.loads(pickle.dumps((a, a + b, u * 2)))
    again = again_a.node.shape_env
    assert again is not env and again_sum.node.shape_env is again
    assert str(again_sum) == "s0 + s1" and value(again_sum) == 12 and str(again_u) == str(u * 2)
    assert [guard.text for guard in again.engine.guards] == [guard.text for guard in env.engine.guards]
    assert again.engine.log == env.engine.log
    assert statically_known_true(again_u >= 4)


@pytest.mark.parametrize("cut", [0, 10, 40, 100, -1])
def test_damaged_bytes(env, cut):
    size(env, 7)
    saved = _bytecode.symbolic_save(env.engine)
    with pytest.raises(ValueError, match="damaged"):
        _bytecode.symbolic_load(shapes.ShapeEnv(), saved[:cut])


def test_sympy_and_back(env):
    a, b = size(env, 7, "a"), size(env, 5, "b")
    for expression in (a + 2 * b, a // 3, a % b, a * b - 1, torch.sym_max(a, b), a / b, (a > b + 1), torch.sym_not(a > b + 1)):
        back = env.table.from_sympy(expression.node._expr)
        assert numbers.to_torch(back).node._value_eq(expression.node)
        assert env.size_hint(expression.node._expr) == value(expression)


def test_the_environment_outlives_its_view():
    a = size(TorchShapeEnv(), 7)
    assert str(a + 1) == "s0 + 1"
    assert a.node.shape_env is (a + 1).node.shape_env
    assert bool(a > 3)


def test_no_leak_of_environments():
    import gc
    import weakref

    env = TorchShapeEnv()
    reference = weakref.ref(env)
    a = size(env, 7)
    str(a.node.expr)
    bool(a > 3)
    del env, a
    gc.collect()
    assert reference() is None
