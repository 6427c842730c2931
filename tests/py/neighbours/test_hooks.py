"""Others that hook frames: torch._dynamo in every order, and a hook of somebody else's that comes and goes."""

import os
import shutil
import subprocess
import sys
import sysconfig

import programs
import pytest
import torch
from programs import Backend, arguments, optimized, run_script
from torch._dynamo.testing import CompileCounter

import pellucid


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    assert torch._C._dynamo.eval_frame.get_eval_frame_callback() is None


def captured_names(wrapper):
    return {entry.code_before.co_name for entry in pellucid.cache_entries(wrapper, nested=True)}


def broken(x):
    y = x * 2
    print(end="")
    return helper(y) + 1


def helper(x):
    print(end="")
    return x * 3


def test_a_torch_compiled_function_inside_a_captured_one_is_torch_compiles():
    counter, backend = CompileCounter(), Backend()
    inner = torch.compile(broken, backend=counter)

    def outer(x):
        return inner(x + 1) * 3

    wrapper = optimized(outer, backend)
    x = torch.ones(3)
    for _ in range(3):
        assert torch.equal(wrapper(x), broken(x + 1) * 3)
    assert counter.frame_count >= 3 and len(backend.graphs) == 2
    assert captured_names(wrapper) == {"outer"}  # nothing of what torch.compile ran
    reasons = [row["reason"] for entry in pellucid.cache_entries(wrapper, nested=True) for row in entry.report["breaks"]]
    assert reasons == ["torch_compiled_function"]


@pytest.mark.parametrize("program", [broken, lambda x: x * 2 + 1], ids=["with breaks", "whole"])
def test_a_captured_function_inside_a_torch_compiled_one_is_ours(program):
    counter, backend = CompileCounter(), Backend()
    inner = optimized(program, backend)

    def outer(x):
        return inner(x + 1) * 3

    compiled = torch.compile(outer, backend=counter)
    x = torch.ones(3)
    for _ in range(3):
        assert torch.equal(compiled(x), program(x + 1) * 3)
    assert counter.frame_count == 2 and backend.graphs  # before and after the call, and nothing below it
    graphs = len(backend.graphs)
    assert torch.equal(inner(x), program(x)) and len(backend.graphs) == graphs


def test_modules_of_both():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    counter, backend = CompileCounter(), Backend()
    theirs, ours = torch.compile(model, backend=counter), pellucid.optimize(model, backend=backend)
    x = torch.randn(2, 3)
    expected = model(x) + 1
    captured = optimized(lambda x: theirs(x) + 1, backend)
    compiled = torch.compile(lambda x: ours(x) + 1, backend=counter)
    for _ in range(3):
        assert torch.equal(captured(x), expected) and torch.equal(compiled(x), expected)
    assert counter.frame_count == 2 and len(backend.graphs) == 2


def test_of_two_compilers_around_one_function_the_outer_one_captures():
    counter, backend = CompileCounter(), Backend()
    wrapper = optimized(torch.compile(broken, backend=counter), backend)
    x = torch.ones(3)
    for _ in range(3):
        assert torch.equal(wrapper(x), broken(x))
    assert counter.frame_count == 0 and len(backend.graphs) >= 2 and wrapper.__name__ == "broken"

    class Model:
        def __init__(self):
            self.scale = 2

        def run(self, x):
            return x * self.scale

    method = optimized(torch.compile(Model().run, backend=counter), backend)
    assert torch.equal(method(x), x * 2) and counter.frame_count == 0


def test_what_is_disabled_is_so_for_both():
    counter, backend = CompileCounter(), Backend()

    @torch.compiler.disable
    def off(x):
        return helper(x)

    def outer(x):
        return off(x + 1) * 3

    x = torch.ones(3)
    for make in (lambda f: optimized(f, backend), lambda f: torch.compile(f, backend=counter)):
        run = make(outer)
        for _ in range(2):
            assert torch.equal(run(x), outer(x))
    assert len(backend.graphs) == 2 and counter.frame_count == 2


def test_is_compiling():
    def program(x):
        return x + 1 if torch.compiler.is_compiling() else x - 1

    x = torch.ones(2)
    wrapper, compiled = optimized(program), torch.compile(program, backend="eager")
    for _ in range(2):
        assert torch.equal(program(x), x - 1)
        assert torch.equal(wrapper(x), x + 1)
        assert torch.equal(compiled(x), x + 1)
    assert not torch.compiler.is_compiling()


def test_calls_of_both_in_turn_and_an_exception_through_both():
    counter, backend = CompileCounter(), Backend()

    def fails(x):
        print(end="")
        raise KeyError("inner")

    def through(x):
        y = x + 1
        print(end="")
        return theirs(y)

    theirs = torch.compile(fails, backend=counter)
    both = optimized(through, backend)
    x = torch.ones(3)
    ours, other = optimized(broken, backend), torch.compile(broken, backend=counter)
    for _ in range(3):
        with pytest.raises(KeyError):
            both(x)
        assert torch.equal(ours(x), other(x))
    # Nothing is on or off that was not before: both still capture new functions.
    graphs, frames = len(backend.graphs), counter.frame_count
    optimized(lambda x: x + 2, backend)(x)
    torch.compile(lambda x: x + 3, backend=counter)(x)
    assert (len(backend.graphs), counter.frame_count) == (graphs + 1, frames + 1)


def test_torch_dynamo_imported_after_a_capture():
    run_script(
        """
        import sys, torch, pellucid, programs
        backend = programs.Backend()
        wrapper = pellucid.optimize(programs.broken, backend=backend)
        expected = wrapper(torch.ones(3), 2)
        assert "torch._dynamo" not in sys.modules
        compiled = torch.compile(programs.broken, backend="eager")
        for _ in range(2):
            assert torch.equal(compiled(torch.ones(3), 2), expected)
            assert torch.equal(wrapper(torch.ones(3), 2), expected)
        assert len(backend.graphs) >= 3
        """
    )


# ---- somebody else's hook

OTHER_HOOK = r"""
#include <Python.h>
static long seen; static _PyFrameEvalFunction below;
static PyObject* other(PyThreadState* t, struct _PyInterpreterFrame* f, int throwing) {
  seen++; return below ? below(t, f, throwing) : _PyEval_EvalFrameDefault(t, f, throwing); }
static PyObject* on(PyObject* m, PyObject* a) {
  below = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), other); Py_RETURN_NONE; }
static PyObject* off(PyObject* m, PyObject* a) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), below); Py_RETURN_NONE; }
static PyObject* count(PyObject* m, PyObject* a) { return PyLong_FromLong(seen); }
static PyObject* installed(PyObject* m, PyObject* a) {
  return PyBool_FromLong(_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == other); }
static PyMethodDef methods[] = {{"on", on, METH_NOARGS, ""}, {"off", off, METH_NOARGS, ""}, {"count", count, METH_NOARGS, ""},
                                {"installed", installed, METH_NOARGS, ""}, {0}};
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "neighbour_hook", 0, -1, methods};
PyMODINIT_FUNC PyInit_neighbour_hook(void) { return PyModule_Create(&def); }
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("neighbour_hook")
    source, library = folder / "neighbour_hook.c", folder / ("neighbour_hook" + sysconfig.get_config_var("EXT_SUFFIX"))
    source.write_text(OTHER_HOOK)
    include = sysconfig.get_paths()["include"]
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-I" + include, str(source), "-o", str(library)], check=True)
    sys.path.insert(0, os.fspath(folder))
    try:
        import neighbour_hook
    finally:
        sys.path.remove(os.fspath(folder))
    return neighbour_hook


def test_captures_and_hits_beside_a_hook_that_was_there_first(other):
    backend = Backend()
    wrapper = optimized(programs.broken, backend)
    other.on()
    try:
        for _ in range(3):
            before = other.count()
            assert torch.equal(wrapper(*arguments()), programs.broken(*arguments()))
            assert other.count() > before and other.installed()
    finally:
        other.off()
    graphs = len(backend.graphs)
    assert graphs >= 3
    assert torch.equal(wrapper(*arguments()), programs.broken(*arguments())) and len(backend.graphs) == graphs


@pytest.mark.parametrize("kind", ["installs", "takes out", "both"])
def test_a_hook_that_comes_or_goes_in_captured_code(other, kind):
    def program(x):
        y = x + 1
        if kind != "takes out":
            other.on()
        y = helper(y) * 2
        if kind != "installs":
            other.off()
        return helper(y) + 1

    backend = Backend()
    wrapper = optimized(program, backend)
    x = torch.ones(3)
    for _ in range(3):
        if kind == "takes out":
            other.on()
        result = wrapper(x)
        if kind == "installs":
            other.off()
        assert torch.equal(result, ((x + 1) * 3 * 2) * 3 + 1)
        assert not other.installed()
        # A hook put on top of ours that restores what was below it leaves ours in: the next call takes it out.
        optimized(programs.broken)(*arguments())
        assert not pellucid._bytecode.hook_installed()
    assert backend.graphs
