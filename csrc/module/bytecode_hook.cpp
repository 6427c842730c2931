// The frame hook in _bytecode: the capsule that _core takes, and the functions that tests count frames with.
#include "cpython/hook.h"
#include "module/bindings.h"

namespace pellucid::module {

namespace {

using cpython::hook_api;

bool supported() {
  if (cpython::hook_supported()) return true;
  PyErr_SetString(PyExc_NotImplementedError, "the frame hook needs CPython 3.11 or later");
  return false;
}

PyObject* hook_acquire(PyObject*, PyObject*) {
  if (!supported() || !hook_api().acquire()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* hook_release(PyObject*, PyObject*) {
  if (!supported()) return nullptr;
  if (*hook_api().busy <= 0) {
    PyErr_SetString(PyExc_RuntimeError, "hook_release without hook_acquire");
    return nullptr;
  }
  hook_api().release();
  Py_RETURN_NONE;
}

PyObject* hook_installed(PyObject*, PyObject*) { return PyBool_FromLong(cpython::hook_is_installed()); }

PyObject* hook_frames(PyObject*, PyObject*) { return PyLong_FromLongLong(cpython::hook_frames_seen()); }

PyObject* hook_busy(PyObject*, PyObject*) {
  if (!supported()) return nullptr;
  return PyLong_FromLong(*hook_api().busy);
}

PyObject* hook_record(PyObject*, PyObject* list) {
  if (!supported()) return nullptr;
  if (list != Py_None && !PyList_Check(list)) {
    PyErr_SetString(PyExc_TypeError, "hook_record takes a list, or None to stop");
    return nullptr;
  }
  PyObject*& recorder = hook_api().thread()->recorder;
  PyObject* old = recorder;
  recorder = list == Py_None ? nullptr : list;
  Py_XINCREF(recorder);
  Py_XDECREF(old);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"hook_acquire", hook_acquire, METH_NOARGS, "Install the frame hook, or count one more holder."},
    {"hook_release", hook_release, METH_NOARGS, "Give back one hook_acquire; the last one takes the hook out."},
    {"hook_installed", hook_installed, METH_NOARGS, "Whether the interpreter's frame evaluator is ours right now."},
    {"hook_frames", hook_frames, METH_NOARGS, "How many frames have reached the hook so far."},
    {"hook_busy", hook_busy, METH_NOARGS, "Hook holders and captures going on, over all threads."},
    {"hook_record", hook_record, METH_O,
     "Append (code, function, at entry, arguments bound) to this list for each frame of this thread that reaches the hook."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_hook(PyObject* module) {
  if (PyModule_AddFunctions(module, methods) < 0) return false;
  if (!cpython::hook_supported()) return true;
  return add_object(module, "hook_api", PyCapsule_New(const_cast<cpython::HookApi*>(&hook_api()), cpython::kHookCapsule, nullptr));
}

}  // namespace pellucid::module
