// Bindings for src/pellucid/backends.
#include "module/bindings.h"
#include "torch_bridge/storage_dispatch.h"

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

PyMethodDef methods[] = {
    {"dispatch_by_storage", dispatch_by_storage, METH_VARARGS,
     "dispatch_by_storage(compile, example_inputs, compiled): chooses a compiled variant by which inputs share memory."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_backends(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace pellucid::module
