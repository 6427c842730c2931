// Bindings for src/pellucid/backends.
#include "module/bindings.h"
#include "torch_bridge/storage_dispatch.h"
#include "torch_bridge/traceback.h"
#include "torch_bridge/user_lines.h"

namespace pellucid::module {
namespace {

PyObject* dispatch_by_storage(PyObject*, PyObject* args) {
  PyObject *compile = nullptr, *example = nullptr, *compiled = nullptr;
  if (!PyArg_ParseTuple(args, "OO!O", &compile, &PyTuple_Type, &example, &compiled)) return nullptr;
  try {
    return bridge::make_storage_dispatch(compile, example, compiled).release();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* with_user_lines(PyObject*, PyObject* compiled) { return bridge::with_user_lines(compiled).release(); }

PyObject* make_traceback(PyObject*, PyObject* args) {
  PyObject *filename = nullptr, *name = nullptr, *next = nullptr;
  int line = 0;
  if (!PyArg_ParseTuple(args, "UUiO", &filename, &name, &line, &next)) return nullptr;
  return bridge::make_traceback(filename, name, line, next).release();
}

PyMethodDef methods[] = {
    {"dispatch_by_storage", dispatch_by_storage, METH_VARARGS,
     "dispatch_by_storage(compile, example_inputs, compiled): chooses a compiled variant by which inputs share memory."},
    {"make_traceback", make_traceback, METH_VARARGS,
     "make_traceback(filename, name, line, next): a traceback entry for a line of the user's program."},
    {"with_user_lines", with_user_lines, METH_O, "What calls a GraphModule's forward so that exceptions show the user's lines."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_backends(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace pellucid::module
