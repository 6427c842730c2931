// Code objects for the tests of this folder: compiled by the Python that runs them.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "py/ref.h"

namespace pellucid::decompile {

// The value of an expression; null with the exception printed.
inline py::Ref value_of(const std::string& expression) {
  const py::Ref globals = py::Ref::steal(PyDict_New());
  py::Ref value;
  if (globals) value = py::Ref::steal(PyRun_String(expression.c_str(), Py_eval_input, globals.get(), globals.get()));
  if (!value) PyErr_Print();
  return value;
}

inline py::Ref module_code(const std::string& text) {
  py::Ref code = py::Ref::steal(Py_CompileString(text.c_str(), "<test>", Py_file_input));
  if (!code) PyErr_Print();
  return code;
}

// The code object of the first function (or class) in a text; null where there is none.
inline py::Ref function_code(const std::string& text) {
  const py::Ref module = module_code(text);
  if (!module) return {};
  const py::Ref consts = py::Ref::steal(PyObject_GetAttrString(module.get(), "co_consts"));
  for (Py_ssize_t i = 0; consts && i < PyTuple_GET_SIZE(consts.get()); ++i) {
    PyObject* each = PyTuple_GET_ITEM(consts.get(), i);
    if (PyCode_Check(each)) return py::Ref::share(each);
  }
  ADD_FAILURE() << "no function in: " << text;
  return {};
}

}  // namespace pellucid::decompile
