"""make_replay: the record run without an interpreter frame."""

import gc
import operator
import sys
import threading
import traceback
import types
import weakref

import pytest
import torch
from records import record_from
from test_fx_graph import Net, compile_source, mixed, node, shared_operands

from pellucid import _core


def test_same_results_as_the_program():
    x, y = torch.randn(3, 2), torch.randn(3, 2)
    d, view, extra = _core.make_replay(record_from(mixed))(x, y)
    want = mixed(x, y)
    assert torch.equal(d, want[0]) and torch.equal(view, want[1]) and torch.equal(extra["sum"], want[2]["sum"])
    assert type(extra) is dict and type(extra["same"]) is list and extra["same"][0] is extra["same"][1]
    z = torch.randn(3)
    assert torch.equal(_core.make_replay(record_from(shared_operands))(z)[0], shared_operands(z)[0])


def test_gradients_flow():
    net = Net()
    replay = _core.make_replay(record_from(net))
    x = torch.randn(3, requires_grad=True)
    replay(x)[0].sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 2.0))
    assert torch.allclose(net.scale.grad, x.detach().sum())


def test_values_are_freed_after_their_last_use():
    freed = []

    class Value:
        def __init__(self, name):
            self.name = name

        def __del__(self):
            freed.append(self.name)

    def make(previous, name):
        return Value(name), list(freed)

    nodes = [
        node("placeholder", "x"),
        *[node("call_function", make, [("node", i), f"v{i}"]) for i in range(3)],
        node("call_function", make, [("node", 0), "last"]),
    ]
    replay = _core.make_replay(_core.graph_record(nodes, [("node", 4)]))
    (last,) = replay(None)
    assert last[1] == ["v0", "v1", "v2"], "each value was gone before the step after its last use"
    del last


def test_arguments_stay_the_callers():
    class Value:
        pass

    value = Value()
    alive = weakref.ref(value)
    before = sys.getrefcount(value)
    replay = _core.make_replay(
        _core.graph_record([node("placeholder", "x"), node("call_function", id, [("node", 0)])], [("node", 0), ("node", 1)])
    )
    out = replay(value)
    assert out == (value, id(value))
    del out
    assert sys.getrefcount(value) == before
    del value
    assert alive() is None


def test_containers_are_made_anew_for_each_call():
    nodes = [
        node("placeholder", "x"),
        {
            "op": "call_function",
            "target": lambda items, more: (items.append(1), items, more),
            "args": [("list", [("node", 0)]), ("dict", {"a": ("node", 0)})],
        },
    ]
    replay = _core.make_replay(_core.graph_record(nodes, [("node", 1)]))
    assert replay(5) == replay(5) == ((None, [5, 1], {"a": 5}),)


def test_keyword_arguments_and_slices():
    nodes = [
        node("placeholder", "x"),
        {
            "op": "call_function",
            "target": operator.getitem,
            "args": [("node", 0), ("tuple", [("slice", [("const", 1), ("const", None), ("const", None)]), ("const", 0)])],
        },
        {"op": "call_method", "target": "sum", "args": [("node", 1)], "kwargs": {"dim": ("const", 0), "keepdim": ("const", True)}},
    ]
    x = torch.arange(6.0).view(3, 2)
    assert torch.equal(_core.make_replay(_core.graph_record(nodes, [("node", 2)]))(x)[0], x[1:, 0].sum(dim=0, keepdim=True))


def test_wide_calls_and_long_programs():
    n = 200
    nodes = [node("placeholder", f"x{i}") for i in range(n)]
    nodes.append(
        {
            "op": "call_function",
            "target": lambda *values, **named: sum(values) + named["last"],
            "args": [("node", i) for i in range(n)],
            "kwargs": {"last": ("const", 1)},
        }
    )
    nodes += [node("call_function", operator.add, [("node", n + i), 1]) for i in range(1000)]
    replay = _core.make_replay(_core.graph_record(nodes, [("node", len(nodes) - 1)]))
    assert replay(*range(n)) == (sum(range(n)) + 1 + 1000,)


def test_wrong_arguments():
    replay = _core.make_replay(record_from(mixed))
    with pytest.raises(TypeError, match="takes 2 positional arguments, 1 given"):
        replay(1)
    with pytest.raises(TypeError):
        replay(1, y=2)
    with pytest.raises(TypeError):
        type(replay)()


def test_an_error_points_at_the_line_of_the_program(tmp_path):
    module, path = compile_source(
        tmp_path,
        """
        def inner(x, y):
            return 1 + (x @ y)

        def outer(x):
            return inner(x, x)
        """,
    )
    stacks = [(-1, module.outer.__code__, 6, 6, 11, 22), (0, module.inner.__code__, 3, 3, 15, 22)]
    nodes = [node("placeholder", "x"), node("call_function", torch.matmul, [("node", 0), ("node", 0)], stack=1)]
    replay = _core.make_replay(_core.graph_record(nodes, [("node", 1)], stacks))
    with pytest.raises(RuntimeError, match="mat1 and mat2") as caught:
        replay(torch.ones(2, 3))
    entries = traceback.extract_tb(caught.value.__traceback__)[-2:]
    assert [(e.filename, e.lineno, e.name, e.line) for e in entries] == [
        (path, 6, "outer", "return inner(x, x)"),
        (path, 3, "inner", "return 1 + (x @ y)"),
    ]
    assert [(e.colno, e.end_colno) for e in entries] == [(11, 22), (15, 22)]
    text = "".join(traceback.format_exception(caught.value))
    assert "    return 1 + (x @ y)\n               ~~~^~~~\n" in text
    # A debugger that looks into these frames finds nothing, and does not crash.
    for frame, _ in traceback.walk_tb(caught.value.__traceback__.tb_next):
        assert frame.f_locals == {} and frame.f_lasti < 1


def test_an_error_below_keeps_its_own_entries():
    def fails(x):
        raise KeyError("here")

    code = mixed.__code__
    replay = _core.make_replay(
        _core.graph_record(
            [node("placeholder", "x"), node("call_function", fails, [("node", 0)], stack=0)], [], [(-1, code, code.co_firstlineno)]
        )
    )
    with pytest.raises(KeyError) as caught:
        replay(1)
    assert [e.name for e in traceback.extract_tb(caught.value.__traceback__)][-2:] == ["mixed", "fails"]


def test_a_result_of_an_earlier_step_is_freed_on_errors():
    class Value:
        pass

    made = []

    def make(x):
        value = Value()
        made.append(weakref.ref(value))
        return value

    nodes = [node("placeholder", "x"), node("call_function", make, [("node", 0)]), node("call_method", "missing", [("node", 1)])]
    replay = _core.make_replay(_core.graph_record(nodes, [("node", 1)]))
    with pytest.raises(AttributeError, match="missing"):
        replay(0)
    assert made[0]() is None


def test_reentrant_and_threads():
    record = _core.graph_record(
        [node("placeholder", "x"), node("call_function", lambda x: x() if callable(x) else x, [("node", 0)])], [("node", 1)]
    )
    replay = _core.make_replay(record)
    assert replay(lambda: replay(7)) == ((7,),)
    x = torch.randn(64, 64)
    runner, want, bad = _core.make_replay(record_from(shared_operands)), shared_operands(x)[0], []

    def work():
        for _ in range(50):
            if not torch.equal(runner(x)[0], want):
                bad.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert bad == []


def test_a_cycle_through_the_callable_is_collected():
    class Holder:
        def __call__(self, x):
            return x

    holder = Holder()
    alive = weakref.ref(holder)
    holder.replay = _core.make_replay(
        _core.graph_record([node("placeholder", "x"), node("call_function", holder, [("node", 0)])], [("node", 1)])
    )
    assert holder.replay(3) == (3,)
    del holder
    gc.collect()
    assert alive() is None


def test_no_frame_of_ours_between():
    seen = []
    target = lambda x: seen.append(sys._getframe(1).f_code.co_name)
    _core.make_replay(_core.graph_record([node("placeholder", "x"), node("call_function", target, [("node", 0)])], []))(0)
    assert seen == ["test_no_frame_of_ours_between"]
    assert isinstance(target, types.FunctionType)
