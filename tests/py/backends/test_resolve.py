"""resolve: names, callables, modes, options and what is wrong with them."""

import functools
import subprocess
import sys

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
