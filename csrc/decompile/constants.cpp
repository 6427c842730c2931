// same_constant: by type and value, with the bits of floats.
#include "decompile/constants.h"

#include <cstring>
#include <set>
#include <string>

namespace pellucid::decompile {
namespace {

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool equal_objects(PyObject* a, PyObject* b) {
  const int answer = PyObject_RichCompareBool(a, b, Py_EQ);
  if (answer < 0) PyErr_Clear();
  return answer == 1;
}

bool same_sets(PyObject* a, PyObject* b) {
  if (!equal_objects(a, b)) return false;
  const py::Ref left = py::Ref::steal(PySequence_Tuple(a)), right = py::Ref::steal(PySequence_Tuple(b));
  if (!left || !right) {
    PyErr_Clear();
    return false;
  }
  std::multiset<std::string> types[2];
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(left.get()); ++i) {
    types[0].insert(Py_TYPE(PyTuple_GET_ITEM(left.get(), i))->tp_name);
    types[1].insert(Py_TYPE(PyTuple_GET_ITEM(right.get(), i))->tp_name);
  }
  return types[0] == types[1];
}

}  // namespace

bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyComplex_CheckExact(a)) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return same_bits(x.real, y.real) && same_bits(x.imag, y.imag);
  }
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i) {
      if (!same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    }
    return true;
  }
  if (PyFrozenSet_CheckExact(a)) return same_sets(a, b);
  const bool plain = PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a);
  return plain && equal_objects(a, b);
}

}  // namespace pellucid::decompile
