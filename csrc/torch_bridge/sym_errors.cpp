// Which exception class an error of the shape engine becomes. Knows no SymNode.
#include "torch_bridge/sym_errors.h"

#include "torch_bridge/interned.h"

namespace pellucid::bridge {
namespace {

using symbolic::ErrorKind;

PyObject* builtin_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kOverflow:
      return PyExc_OverflowError;
    case ErrorKind::kZeroDivision:
      return PyExc_ZeroDivisionError;
    default:
      return PyExc_ValueError;
  }
}

}  // namespace

void raise_in_python(const symbolic::Error& error) {
  // PyTorch's Python code catches its own class for questions that only the data can answer, so where that class is loaded the exception
  // is one of both; pellucid.torch_shapes.errors knows how.
  const py::Ref module = py::Ref::steal(PyImport_ImportModule("pellucid.torch_shapes.errors"));
  if (!module) throw pybind11::error_already_set();
  const char* name = nullptr;
  switch (error.kind()) {
    case ErrorKind::kDataDependent:
      name = "data_dependent";
      break;
    case ErrorKind::kConstraint:
      name = "constraint_violation";
      break;
    case ErrorKind::kFrozen:
      name = "frozen";
      break;
    default:
      PyErr_SetString(builtin_for(error.kind()), error.what());
      throw pybind11::error_already_set();
  }
  const py::Ref exception = py::Ref::steal(PyObject_CallMethod(module.get(), name, "s", error.what()));
  if (exception) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
  throw pybind11::error_already_set();
}

}  // namespace pellucid::bridge
