// DataDependentError: made once, thrown as a C++ exception of PyTorch's own family, so that every binding of PyTorch translates it.
#include "torch_bridge/fake_errors.h"

#include <torch/csrc/Exceptions.h>

#include "torch_bridge/fake_tensor.h"

namespace pellucid::bridge {

namespace {

PyObject* error_type = nullptr;

struct DataDependentError : torch::PyTorchError {
  using torch::PyTorchError::PyTorchError;
  PyObject* python_type() override { return error_type; }
};

bool says_no_values(PyObject* value) {
  const auto text = py::Ref::steal(value == nullptr ? nullptr : PyObject_Str(value));
  if (!text) {
    PyErr_Clear();
    return false;
  }
  const char* utf8 = PyUnicode_AsUTF8(text.get());
  if (utf8 == nullptr) {
    PyErr_Clear();
    return false;
  }
  return std::string_view(utf8).find(kNoValues) != std::string_view::npos;
}

}  // namespace

PyObject* data_dependent_error_type() {
  if (error_type == nullptr) {
    error_type = PyErr_NewExceptionWithDoc("pellucid._core.DataDependentError",
                                           "The result of this operator depends on the values of a tensor, which a fake tensor hasn't.",
                                           PyExc_RuntimeError, nullptr);
  }
  return error_type;
}

void throw_data_dependent(const std::string& operator_name) {
  throw DataDependentError("the result of " + operator_name + " depends on the values of a tensor, and " + kNoValues);
}

bool is_data_dependent_error() {
  if (PyErr_Occurred() == nullptr || error_type == nullptr) return false;
  if (PyErr_ExceptionMatches(error_type) != 0) return true;
  if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0) return false;
  // Reading the storage of a fake: c10 raises a plain RuntimeError with the storage's own words.
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const bool said = says_no_values(value);
  PyErr_Restore(type, value, traceback);
  return said;
}

}  // namespace pellucid::bridge
