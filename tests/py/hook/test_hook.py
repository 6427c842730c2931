"""The frame hook by itself, through _bytecode: what it sees, installing and taking out, other hooks. Runs on every CPython from 3.11."""

import os
import shutil
import subprocess
import sys
import sysconfig
import threading

import pytest

from pellucid import _bytecode as b

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="no frame access below 3.11")


class Recorded:
    """Installs the hook for this thread's frames and collects them."""

    def __init__(self):
        self.rows = []

    def __enter__(self):
        b.hook_record(self.rows)
        b.hook_acquire()
        return self

    def __exit__(self, *_):
        b.hook_release()
        b.hook_record(None)

    def of(self, *names):
        return [(code.co_name, entry, bound) for code, _, entry, bound in self.rows if code.co_name in names]


@pytest.fixture(autouse=True)
def balanced():
    assert not b.hook_installed() and b.hook_busy() == 0
    yield
    assert not b.hook_installed() and b.hook_busy() == 0


def callee(x):
    return x


def caller(a, b=2, *rest, k=3, **more):
    return callee(a) + b


def test_every_python_call_reaches_the_hook_with_its_arguments_bound():
    with Recorded() as seen:
        caller(1)
        caller(1, 2, 3, k=4, z=5)
    assert seen.of("caller", "callee") == [("caller", True, 5), ("callee", True, 1)] * 2
    functions = [function for code, function, _, _ in seen.rows if code.co_name == "caller"]
    assert functions == [caller, caller]


def test_no_frame_reaches_it_when_nobody_holds_it():
    before = b.hook_frames()
    caller(1)
    assert b.hook_frames() == before


def test_cell_arguments_are_still_raw_and_other_locals_unbound():
    def outer(x, y):
        z = 1
        return (lambda: x + z)() + y

    with Recorded() as seen:
        assert outer(1, 2) == 4
    assert seen.of("outer") == [("outer", True, 2)]


def test_generator_steps_close_and_throw_are_not_entries():
    def steps():
        try:
            yield 1
            yield 2
        finally:
            callee(0)

    with Recorded() as seen:
        one = steps()
        next(one)
        one.close()
        two = steps()
        next(two)
        with pytest.raises(KeyError):
            two.throw(KeyError())
    assert [row[1] for row in seen.of("steps")] == [True, False, False] * 2
    assert len(seen.of("callee")) == 2


def test_recursion_exceptions_and_tracebacks_pass_unchanged():
    def down(n):
        if n == 0:
            raise KeyError("bottom")
        return down(n - 1)

    with Recorded():
        with pytest.raises(KeyError) as caught:
            down(20)
        with pytest.raises(RecursionError):
            down(-1)
    assert len([entry for entry in caught.traceback if entry.name == "down"]) == 21


def test_holders_are_counted():
    b.hook_acquire()
    b.hook_acquire()
    b.hook_release()
    assert b.hook_installed()
    b.hook_release()
    assert not b.hook_installed()
    with pytest.raises(RuntimeError):
        b.hook_release()


def test_holders_of_several_threads():
    inside, done = threading.Barrier(5), threading.Barrier(5)

    def hold():
        b.hook_acquire()
        inside.wait()
        done.wait()
        b.hook_release()

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    inside.wait()
    assert b.hook_installed() and b.hook_busy() == 4
    done.wait()
    for thread in threads:
        thread.join()


def test_other_threads_are_not_recorded():
    with Recorded() as seen:
        thread = threading.Thread(target=callee, args=(1,))
        thread.start()
        thread.join()
        callee(2)
    assert len(seen.of("callee")) == 1


def test_settrace_and_setprofile_see_what_they_always_see():
    def events(install):
        seen = []

        def trace(frame, event, arg):
            if frame.f_code in (caller.__code__, callee.__code__):
                seen.append((event, frame.f_code.co_name, frame.f_lineno))
            return trace

        install(trace)
        try:
            caller(1)
        finally:
            install(None)
        return seen

    for install in (sys.settrace, sys.setprofile):
        plain = events(install)
        with Recorded():
            hooked = events(install)
        assert plain == hooked and plain


OTHER_HOOK = r"""
#include <Python.h>
static long seen; static _PyFrameEvalFunction below; static int forwards;
static PyObject* other(PyThreadState* t, struct _PyInterpreterFrame* f, int throwing) {
  seen++; return forwards && below ? below(t, f, throwing) : _PyEval_EvalFrameDefault(t, f, throwing); }
static PyObject* on(PyObject* m, PyObject* a) {
  forwards = PyObject_IsTrue(a); below = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), other); Py_RETURN_NONE; }
static PyObject* off(PyObject* m, PyObject* a) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), below); Py_RETURN_NONE; }
static PyObject* count(PyObject* m, PyObject* a) { return PyLong_FromLong(seen); }
static PyObject* installed(PyObject* m, PyObject* a) {
  return PyBool_FromLong(_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == other); }
static PyMethodDef methods[] = {{"on", on, METH_O, ""}, {"off", off, METH_NOARGS, ""}, {"count", count, METH_NOARGS, ""},
                                {"installed", installed, METH_NOARGS, ""}, {0}};
static struct PyModuleDef def = {PyModuleDef_HEAD_INIT, "other_hook", 0, -1, methods};
PyMODINIT_FUNC PyInit_other_hook(void) { return PyModule_Create(&def); }
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("other_hook")
    source, library = folder / "other_hook.c", folder / ("other_hook" + sysconfig.get_config_var("EXT_SUFFIX"))
    source.write_text(OTHER_HOOK)
    include = sysconfig.get_paths()["include"]
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-I" + include, str(source), "-o", str(library)], check=True)
    sys.path.insert(0, str(folder))
    try:
        import other_hook
    finally:
        sys.path.remove(str(folder))
    return other_hook


def test_a_hook_that_was_there_first_still_sees_every_frame_and_comes_back(other):
    other.on(True)
    try:
        before = other.count()
        with Recorded() as seen:
            caller(1)
        assert other.count() - before >= 2 and len(seen.of("caller", "callee")) == 2
        assert other.installed()
    finally:
        other.off()


def test_a_hook_put_on_top_of_ours_is_left_alone(other):
    b.hook_acquire()
    other.on(True)
    b.hook_release()
    assert other.installed()  # the other one is not ours to take out
    try:
        before = b.hook_frames()
        caller(1)
        assert b.hook_frames() > before  # it forwards to us, we forward on
        with Recorded() as seen:  # ours is in place below: installing it on top would make the two call each other for ever
            assert caller(1) == 3
        assert len(seen.of("caller")) == 1
    finally:
        other.off()  # puts ours back, as it was below
    assert b.hook_installed()
    b.hook_acquire()
    b.hook_release()  # takes it out
    assert not b.hook_installed()


def test_a_hook_on_top_that_does_not_forward_does_not_hide_us(other):
    b.hook_acquire()
    other.on(False)
    b.hook_release()
    try:
        with Recorded() as seen:
            caller(1)
        assert len(seen.of("caller")) == 1
        assert other.installed()
    finally:
        other.off()
    b.hook_acquire()
    b.hook_release()


def test_a_hook_that_takes_ours_out_while_held(other):
    other.on(False)
    b.hook_acquire()
    other.off()  # sets what was there before it: ours is gone
    assert not b.hook_installed()
    b.hook_release()
    with Recorded() as seen:
        caller(1)
    assert len(seen.of("caller")) == 1


def test_torch_dynamo_hook():
    if "PELLUCID_SANITIZED" in os.environ:
        pytest.skip("torch is not sanitized")
    torch = pytest.importorskip("torch")

    @torch.compile(backend="eager")
    def compiled(x):
        return callee(x) * 2

    x = torch.ones(2)
    with Recorded() as seen:
        assert torch.equal(compiled(x), x * 2)
        caller(1)
    assert len(seen.of("caller")) == 1
    assert torch.equal(compiled(x), x * 2)
