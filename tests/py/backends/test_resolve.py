"""resolve: names, callables, modes, options and what is wrong with them."""

import functools
import subprocess
import sys
import traceback

import pytest
import torch
from records import record_from

from pellucid import _core, backends


def test_eager_replays_the_record():
    backend = backends.resolve("eager")
    assert backend.name == "eager" and backend.replays_record
    gm = _core.build_graph_module(record_from(lambda x: x.sin() + 1))
    x = torch.randn(3)
    assert torch.equal(backend(gm, [x])(x)[0], x.sin() + 1)


def test_a_callable_is_called_with_module_and_inputs():
    seen = []

    def mine(gm, example_inputs, **options):
        seen.append((gm, example_inputs, options))
        return gm.forward

    plain = backends.resolve(mine)
    assert plain.name == "mine" and not plain.replays_record
    gm = _core.build_graph_module(record_from(lambda x: x))
    assert plain(gm, [1])(5) == (5,)
    backends.resolve(mine, mode="max-autotune")(gm, [1])
    backends.resolve(mine, options={"level": 3})(gm, [1])
    backends.resolve(mine, mode="default")(gm, [1])
    assert [options for _, _, options in seen] == [{}, {"mode": "max-autotune"}, {"options": {"level": 3}}, {}]
    assert all(module is gm and inputs == [1] for module, inputs, _ in seen)


def test_names_of_callables():
    class Compiler:
        def __call__(self, gm, example_inputs):
            return gm

    assert backends.resolve(Compiler()).name == "Compiler"
    assert backends.resolve(functools.partial(test_names_of_callables, 1)).name == "test_names_of_callables"
    backend = backends.resolve("aot_eager")
    assert backends.resolve(backend) is backend
    assert repr(backend) == "<pellucid backend 'aot_eager'>"


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown backend 'inducto'; known: aot_eager, eager, inductor, or any callable"):
        backends.resolve("inducto")


@pytest.mark.parametrize("backend", [None, 3, ["eager"]])
def test_not_a_backend(backend):
    with pytest.raises(TypeError, match="a backend is a name or a callable"):
        backends.resolve(backend)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"mode": "fast"}, ValueError, "unknown mode 'fast'; known: default, lite, max-autotune"),
        ({"options": {"max_autotun": True}}, ValueError, "no option 'max_autotun'; did you mean 'max_autotune'"),
        ({"options": {"max_autotune": "yes"}}, TypeError, "'max_autotune' of Inductor is of type bool, not str"),
        ({"mode": "max-autotune", "options": {"max_autotune": True}}, ValueError, "can't both be given"),
        ({"mode": 3}, TypeError, "mode is a str or None"),
        ({"options": [1]}, TypeError, "options is a dict or None"),
    ],
)
def test_wrong_modes_and_options_are_errors_where_they_stand(arguments, error, text):
    with pytest.raises(error, match=text):
        backends.resolve("inductor", **arguments)


def test_modes_and_options_of_inductor():
    from pellucid.backends import aot

    assert aot.inductor_config("reduce-overhead", None) == {"triton.cudagraphs": True}
    assert aot.inductor_config("max-autotune", None)["max_autotune"] is True
    assert aot.inductor_config(None, {"epilogue-fusion": False, "triton.cudagraphs": False}) == {
        "epilogue_fusion": False,
        "triton.cudagraphs": False,
    }


def test_backends_without_options_say_so():
    for name in ("eager", "aot_eager"):
        with pytest.warns(UserWarning, match=f"backend '{name}' takes no mode"):
            backends.resolve(name, mode="max-autotune")
        with pytest.warns(UserWarning, match="takes no options"):
            backends.resolve(name, options={"a": 1})


def test_compilers_are_imported_at_first_use():
    program = (
        "import sys, pellucid.backends as b; b.resolve('inductor'); b.resolve('aot_eager'); b.resolve('eager');"
        "assert 'torch' not in sys.modules and 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={"PYTHONPATH": ":".join(sys.path), "PATH": ""})


def failing_module():
    def inner(x):
        return x.view(7)

    def outer(x):
        y = x.sin()
        return inner(y) + 1

    stacks = [(-1, outer.__code__, outer.__code__.co_firstlineno + 2), (0, inner.__code__, inner.__code__.co_firstlineno + 1)]
    nodes = [
        {"op": "placeholder", "target": "x"},
        {"op": "call_method", "target": "sin", "args": [("node", 0)]},
        {"op": "call_method", "target": "view", "args": [("node", 1), ("const", 7)], "stack": 1},
        {"op": "call_function", "target": torch.add, "args": [("node", 2), ("const", 1)]},
    ]
    return _core.build_graph_module(_core.graph_record(nodes, [("node", 3)], stacks))


@pytest.mark.parametrize("run", [lambda gm, inputs: gm.forward, lambda gm, inputs: gm], ids=["forward", "module"])
def test_errors_of_a_module_show_the_users_lines(run):
    compiled = backends.resolve(run)(failing_module(), [])
    assert torch.equal(compiled(torch.zeros(7))[0], torch.ones(7))
    with pytest.raises(RuntimeError, match="shape '\\[7\\]' is invalid") as caught:
        compiled(torch.zeros(3))
    last = traceback.extract_tb(caught.value.__traceback__)[-2:]
    assert [(entry.name, entry.line) for entry in last] == [("outer", "return inner(y) + 1"), ("inner", "return x.view(7)")]
    with pytest.raises(TypeError):  # not in a node: nothing to add
        compiled()


def test_no_wrong_line_for_a_module_that_changed():
    gm = failing_module()
    compiled = backends.resolve(lambda module, inputs: module.forward)(gm, [])
    sin = gm.graph.find_nodes(op="call_method", target="sin")[0]
    sin.replace_all_uses_with(sin.args[0])
    gm.graph.erase_node(sin)  # and not recompiled
    with pytest.raises(RuntimeError, match="is invalid") as caught:
        compiled(torch.zeros(3))
    assert "inner" not in [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]


def test_other_results_of_a_backend_are_passed_on():
    gm = failing_module()
    for result in (print, lambda *inputs: inputs, functools.partial(gm.forward), gm, gm.state_dict, 3):
        assert backends.resolve(lambda module, inputs, result=result: result)(gm, []) is result
