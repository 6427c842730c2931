"""pellucid.ShapeEnv as people use it: bad input, texts, locations, the log, guard programs, and what it costs by counting."""

import copy
import math
import os
import pathlib
import subprocess
import sys

import pytest

import pellucid
from pellucid import exc, shapes


@pytest.fixture
def env():
    return pellucid.ShapeEnv()


def test_a_negative_size(env):
    with pytest.raises(ValueError, match=r"a size must not be negative: L\['x'\] \(at .*test_env.py:\d+\) is -3"):
        env.create_size(-3, "L['x']")


def test_contradictory_ranges(env):
    u = env.create_unbacked_int()
    with pytest.raises(ValueError, match=r"contradictory range \[5, 3\] for u0"):
        pellucid.constrain_range(u, min=5, max=3)
    pellucid.constrain_range(u, min=5, max=9)
    with pytest.raises(ValueError, match=r"u0 is in \[5, 9\] and can't be in \[10, 12\]"):
        pellucid.constrain_range(u, min=10, max=12)
    with pytest.raises(ValueError, match=r"contradictory range \[9, 2\]"):
        env.create_size(5, "a", min=9, max=2)
    with pytest.raises(exc.ConstraintViolationError, match=r"b \(at .*\) is 5, which is not in the range \[7, 9\]"):
        env.create_size(5, "b", min=7, max=9)
    x = env.create_size(5, "c", policy="dynamic")
    with pytest.raises(ValueError, match=r"s0 is 5, which is not in \[6, 9\]"):
        pellucid.constrain_range(x, min=6, max=9)
    assert env.guards == [shapes.Guard("2 <= c", __file__, env.guards[0].line)]  # none of it left a trace


@pytest.mark.parametrize("number, least, most", [(7, 1, 3), (0, 1, None), (4, None, 3)])
def test_a_plain_int_out_of_range(number, least, most):
    with pytest.raises(ValueError, match=f"{number} is not in the range"):
        pellucid.constrain_range(number, min=least, max=most)
    with pytest.raises(TypeError):
        pellucid.constrain_range("5", min=0)


def test_a_symbol_of_another_env(env):
    other = pellucid.ShapeEnv()
    x, y = env.create_size(5, "x"), other.create_size(5, "y")
    for operation in (lambda: x + y, lambda: x < y, lambda: x == y, lambda: shapes.sym_max(x, y), lambda: shapes.sym_sum([x, y])):
        with pytest.raises(ValueError, match="different ShapeEnvs"):
            operation()
    for ask in (env.evaluate, env.simplify, env.range, env.use_as_size, env.constrain_range):
        with pytest.raises(ValueError, match="different ShapeEnvs"):
            ask(y)
    with pytest.raises(ValueError, match="different ShapeEnvs"):
        env.guard_or_false(y > 3)
    assert env.owns(x) and not env.owns(y)


def test_a_dimension_that_does_not_exist(env):
    for arguments in ({"policy": {2: "static"}}, {"ranges": {-1: (2, 5)}}, {"dynamic": [7]}):
        with pytest.raises(ValueError, match=r"L\['x'\] has no dimension (2|-1|7), only 2 of them"):
            env.create_sizes((4, 5), "L['x']", **arguments)
    with pytest.raises(ValueError, match="there is no input z"):
        env.declare_equal("z", "y")
    with pytest.raises(ValueError, match="no policy sometimes"):
        env.create_size(4, "x", policy="sometimes")
    env.create_size(4, "x")
    with pytest.raises(ValueError, match="there is an input x already"):
        env.create_size(4, "x")


def test_numbers_of_torch(env):
    torch = pytest.importorskip("torch")
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    theirs = ShapeEnv().create_unbacked_symint()
    x = env.create_size(5, "x")
    for operation in (lambda: x + theirs, lambda: x == theirs, lambda: shapes.sym_min(x, theirs), lambda: env.evaluate(theirs)):
        with pytest.raises(TypeError, match=r"torch\.SymInt can't be mixed"):
            operation()
    with pytest.raises(TypeError, match="unsupported operand"):
        x + torch.Size(())


def test_other_types(env):
    x = env.create_size(5, "x")
    with pytest.raises(TypeError):
        x + "1"
    with pytest.raises(TypeError):
        x < None
    assert (x == "1") is False and (x != None) is True  # noqa: E711
    with pytest.raises(TypeError, match="unhashable type: 'pellucid.SymInt'"):
        {x: 1}
    with pytest.raises(TypeError):
        shapes.SymInt()
    with pytest.raises(OverflowError, match="does not fit int64"):
        x + 2**70


def test_values_past_int64(env):
    x = env.create_size(2**40, "x", policy="dynamic")
    product = x * x
    with pytest.raises(OverflowError, match=r"s0\*\*2 is 1208925819614629174706176 and does not fit int64"):
        int(product)
    assert (product // x) + 0 is not None and bool(product // x == x)
    assert bool(x + -(2**63) < 0) and shapes.sym_min(x, 2**63 - 1).raw == "s0"
    assert env.guard_count == 0


def test_divisions_by_zero(env):
    x, zero = env.create_size(5, "x"), env.create_int(0, "zero")
    for operation in (lambda: x // 0, lambda: x % 0, lambda: x / 0, lambda: x // zero, lambda: x / 0.0, lambda: divmod(x, zero)):
        with pytest.raises(ZeroDivisionError):
            operation()
    with pytest.raises(ValueError, match="negative shift count"):
        x << -1


def test_the_sources_of_a_symbol(env):
    a, b, c = env.create_sizes((8, 9, 8), "x")
    assert env.sources_of(a) == env.sources_of(c) == ("x.size()[0]", "x.size()[2]")
    assert env.sources_of(b) == ("x.size()[1]",)
    assert a == b - 1  # a replaced symbol keeps its sources
    assert env.sources_of(b) == ("x.size()[1]",)
    assert env.sources_of(env.create_unbacked_int()) == env.sources_of(a + 1) == ()
    with pytest.raises(ValueError, match="different ShapeEnvs"):
        pellucid.ShapeEnv().sources_of(a)


def test_a_violated_relaxed_constraint(env):
    (x,) = env.create_sizes((8,), "L['x']", dynamic=[0])
    assert x == 8
    line = env.log[1].rsplit(":", 1)[1]
    with pytest.raises(exc.ConstraintViolationError) as error:
        env.guards
    text = str(error.value)
    assert f"the program specialized it to 8 at {__file__}:{line}." in text
    assert "declare L['x'].size()[0] static (L['x'].size()[0] = 8)" in text


def test_a_violated_strict_constraint(env):
    (x,) = env.create_sizes((8,), "L['x']", ranges={0: (2, 100)})
    assert x % 4 == 0
    with pytest.raises(exc.ConstraintViolationError, match=r"in \[2, 100\] .* satisfy the guard L\['x'\]\.size\(\)\[0\] % 4 == 0"):
        env.guard_program()


BOTH = {0: (2, 100), 1: (2, 100)}


@pytest.mark.parametrize(
    "ranges, ask, fix",
    [
        (BOTH, lambda a, b: a < b, r"x0 with the range \[2, 99\], x1 with the range \[3, 100\]"),
        (BOTH, lambda a, b: a + 20 >= b, r"x0 with the range|declare only that they are dynamic"),
        (BOTH, lambda a, b: a * b % 4 == 0, "declare only that they are dynamic"),
        (BOTH, lambda a, b: 2 * b == a + 12, "declare only that they are dynamic"),
        (BOTH, lambda a, b: b < 50, r"declare x1 with the range \[2, 49\]"),
        ({0: (2, 100)}, lambda a, b: (b < 20) & (a < b), r"of which the last is x0 < x1, .* declare x0 with the range \[2, 18\]"),
        ({0: (2, 100)}, lambda a, b: b == a + 2, "declare only that they are dynamic"),
    ],
)
def test_strict_constraints_between_inputs(ranges, ask, fix):
    env = pellucid.ShapeEnv(duck_shapes=False)
    a, b = (env.create_size(hint, f"x{i}", **dict(zip(("min", "max"), ranges.get(i, ())))) for i, hint in enumerate((8, 10)))
    line = sys._getframe().f_lineno + 1
    assert ask(a, b)
    with pytest.raises(exc.ConstraintViolationError, match=fix) as error:
        env.guards
    assert f"(declared at {__file__}:{line - 2})" in str(error.value) and f"made at {__file__}:" in str(error.value)


@pytest.mark.parametrize("ask", [lambda a, b: a + b <= 200, lambda a, b: a * b >= 4, lambda a, b: a // 2 <= a, lambda a, b: a != b + 100])
def test_what_holds_of_all_declared_values_is_no_violation(ask):
    env = pellucid.ShapeEnv(duck_shapes=False)
    a, b = (env.create_size(hint, f"x{i}", min=2, max=100) for i, hint in enumerate((8, 10)))
    assert ask(a, b)
    assert [guard.text for guard in env.guards] == ["2 <= x0 <= 100", "2 <= x1 <= 100"]


@pytest.mark.parametrize("ask", [lambda a, b: a < b, lambda a, b: a % 2 == 0, lambda a, b: b == a + 2, lambda a, b: b > 4])
def test_relaxed_constraints_take_guards_that_leave_two_values(ask):
    env = pellucid.ShapeEnv(duck_shapes=False)
    a, b = env.create_sizes((8, 10), "x", dynamic=[0, 1])
    assert ask(a, b) and env.guards


def test_sizes_0_and_1_violate_only_strict_constraints():
    env = pellucid.ShapeEnv()
    env.create_sizes((1, 0, 8), "x", dynamic=[0, 1, 2])
    assert env.guards
    env.create_size(1, "y", min=0, max=9)
    with pytest.raises(exc.ConstraintViolationError, match="y was declared dynamic .*sizes 0 and 1 are specialized"):
        env.guards


def test_declared_equalities_are_no_violation(env):
    x, y = env.create_sizes((8, 8), "L['x']", ranges={0: (2, 100), 1: (2, 100)})
    env.declare_equal("L['x'].size()[0]", "L['x'].size()[1]")
    assert x == y and env.guard_count == 3
    assert [guard.text for guard in env.guards] == ["L['x'].size()[0] == L['x'].size()[1]", "2 <= L['x'].size()[0] <= 100"]
    env.create_size(9, "z", policy="dynamic")
    with pytest.raises(exc.ConstraintViolationError, match="declared equal .* but are 8 and 9"):
        env.declare_equal("L['x'].size()[0]", "z")


def test_data_dependent_errors_say_what_to_write(env):
    u = env.create_unbacked_int()
    with pytest.raises(exc.DataDependentError) as error:
        if u * 2 > 7:
            pass
    text = str(error.value)
    assert text.startswith(f"Could not guard on data-dependent expression u0 > 3, asked at {__file__}:")
    assert "u0 has no hint: made at " in text and "torch._check(u0 > 3)" in text and "guard_or_false" in text
    with pytest.raises(exc.DataDependentError, match="Could not extract one value from data-dependent expression u0 \\+ 1"):
        range(u + 1)


def test_runtime_assertions_wait_for_the_newest_symbol(env):
    u, v = env.create_unbacked_int(), env.create_unbacked_int()
    env.check(u < v, "u is less")
    env.check(u >= 0)
    env.check(u >= -1)
    assert [(str(a.symbol), str(a.condition.raw), a.message) for a in env.runtime_asserts] == [
        ("u1", "u0 < u1", "u is less"),
        ("u0", "u0 >= 0", ""),
    ]
    with pytest.raises(RuntimeError, match="not so"):
        env.check(v < u, "not so")


def test_an_older_symbol_never_stands_for_newer_ones(env):
    u0, u1, u2 = (env.create_unbacked_int() for _ in range(3))
    env.check(u0 == u1 + u2)
    assert env.replacements.keys() == {"u2"} and str(env.replacements["u2"]) == "u0 - u1"


def test_the_log(env):
    x, y = env.create_size(8, "x", policy="dynamic"), env.create_size(8, "y", policy="dynamic")
    with env.suppress_guards():
        bool(x > 6)
    bool(x > 2)
    bool(x == y)
    bool(y == 8)
    env.freeze()
    lines = [line.rsplit(" at ", 1)[0] for line in env.log]
    assert lines == [
        "input x = 8 as s0 [2, int_oo]",
        "input y = 8 as s1 [2, int_oo]",
        "suppress guards",
        "eval s0 > 6 [guard suppressed]",
        "record guards again",
        "eval s0 > 2 [guard added]",
        "eval s0 == s1 [guard added]",
        "replace s1 by s0",
        "eval s0 == 8 [guard added]",
        "replace s0 by 8",
        "freeze",
    ]
    again = env.replayed()
    assert again.log == env.log and again.guards == env.guards and again.frozen
    with pytest.raises(ValueError, match="on a fresh ShapeEnv"):
        again._replay(env)


def test_guard_programs(env):
    x, f = env.create_size(8, "x", policy="dynamic"), env.create_float(0.5, "f")
    assert x % 4 == 0 and f * 2.0 == 1.0
    program = env.guard_program()
    assert program(8, 0.5) and program(12, 0.5)
    assert [guard.text for guard in env.guards] == ["not math.isnan(f)", "x % 4 == 0", "f*2.0 == 1.0", "2 <= x"]
    assert program.first_failed(8, 0.5) is None
    assert program.first_failed(9, 0.5) == 1 and program.first_failed(8, 0.6) == 2 and program.first_failed(0, 0.5) == 3
    assert program.first_failed(8, math.nan) == 0
    assert not program(2**63 - 1, 0.5)
    with pytest.raises(TypeError, match="takes 2 values, not 1"):
        program(8)
    with pytest.raises(TypeError):
        program(8, "a")


def test_duck_shapes_follow_the_configuration():
    with pellucid.config.patch(assume_duck_shapes=False):
        apart = pellucid.ShapeEnv()
        assert not apart.duck_shapes
        x, y = apart.create_sizes((5, 5), "x")
        assert x.raw != y.raw
    x, y = pellucid.ShapeEnv().create_sizes((5, 5), "x")
    assert x.raw == y.raw


def test_numbers_keep_their_environment():
    x, y = pellucid.ShapeEnv().create_sizes((5, 7), "x")
    assert str(x + y) == "s0 + s1" and bool(x < y)
    assert copy.deepcopy(x) is x


def test_equal_expressions_share_an_id(env):
    x, y = env.create_sizes((8, 9), "x")
    assert ((x + 1) * (x - 1)).id == (x * x - 1).id != (x * x).id
    assert bool(y == x + 1) and y.id == (x + 1).id


def test_no_torch_is_loaded():
    program = (
        "import sys, pellucid; env = pellucid.ShapeEnv(); x, = env.create_sizes((8,), 'x'); assert x % 4 == 0; "
        "env.guards; env.guard_program()(8); assert 'torch' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(pellucid.__file__).parent.parent)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def chain(n):
    """n symbols, some n operations, questions and guards on neighbours, the guards written out."""
    env = pellucid.ShapeEnv()
    sizes = [env.create_size(10 + i, f"x{i}", policy="dynamic") for i in range(n)]
    for i in range(1, n):
        a, b = sizes[i - 1], sizes[i]
        shapes.sym_max(a * b + 3, a // 2) % 7
        bool(a + b > i)
        bool(a < b)
        bool(a + 1 == b) if i % 3 == 0 else bool(a % 5 == i)
    bool(shapes.sym_sum(sizes) > n)
    env.guards
    return env._work / n, env._nodes / n


def test_n_operations_on_n_symbols_cost_n():
    few = chain(100)
    for many in (chain(1000), chain(10000)):
        assert many[0] < 1.25 * few[0] and many[1] < 1.25 * few[1]


@pytest.mark.parametrize("depth", [100, 30000])
def test_deep_expressions(env, depth):
    x, y = env.create_sizes((80, 7), "x")
    number, condition = x, x > y
    for i in range(depth):
        number = (number * 3 + y) // (y + i % 5 + 1)
        condition = (condition | (x == i + 200)) & (y < 300 + i)
    assert bool(number >= 0) and bool(condition) and not bool(shapes.sym_not(condition))
    assert env.guard_program()(80, 7)
    assert str(number).endswith(")")


def test_a_contradiction_is_not_learned(env):
    u, v, w = env.create_unbacked_int(), env.create_unbacked_int(), env.create_unbacked_int()
    env.check(u <= v)
    env.check(v <= w)
    env.use_as_size(w)
    assert not env.expect_true(u > w)
    with pytest.raises(ValueError, match="can't be in"):
        pellucid.constrain_range(u - w, min=1)
    assert not env.statically_known_true(u == 7) and not env.statically_known_false(u == 7)
    assert env.statically_known_true(w >= u) and env.size_oblivious(w != 1)
    assert env.replayed().log == env.log


def test_conditions_that_contradict_only_together(env):
    u, v = env.create_unbacked_int(), env.create_unbacked_int()
    env.check(u % 2 == 0)
    env.check(v % 2 == 0)
    assert not env.expect_true(u + v == 5)
    assert not env.expect_true(2 * u == 4 * v + 3)
    assert env.statically_known_true((u + v) % 2 == 0) and env.range(u)[1] is None
    assert len(env.runtime_asserts) == 2
