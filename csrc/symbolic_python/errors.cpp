// Builtin classes where Python has the error too, else those that pellucid.shape_errors makes: PyTorch's Python code catches a class of its
// own for questions that only the data can answer, and an exception is of that one too where it is loaded.
#include "symbolic_python/errors.h"

#include "py/ref.h"

namespace pellucid::symbolic_python {

namespace {

void raise_made_by(const char* function, const char* text) {
  const py::Ref module = py::Ref::steal(PyImport_ImportModule("pellucid.shape_errors"));
  const py::Ref exception = py::Ref::steal(module ? PyObject_CallMethod(module.get(), function, "s", text) : nullptr);
  if (exception) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

}  // namespace

void raise(const symbolic::Error& error) {
  switch (error.kind()) {
    case symbolic::ErrorKind::kOverflow:
      PyErr_SetString(PyExc_OverflowError, error.what());
      return;
    case symbolic::ErrorKind::kZeroDivision:
      PyErr_SetString(PyExc_ZeroDivisionError, error.what());
      return;
    case symbolic::ErrorKind::kValue:
    case symbolic::ErrorKind::kForeign:
      PyErr_SetString(PyExc_ValueError, error.what());
      return;
    case symbolic::ErrorKind::kDataDependent:
      return raise_made_by("data_dependent", error.what());
    case symbolic::ErrorKind::kConstraint:
      return raise_made_by("constraint_violation", error.what());
    case symbolic::ErrorKind::kFrozen:
      return raise_made_by("frozen", error.what());
  }
}

}  // namespace pellucid::symbolic_python
