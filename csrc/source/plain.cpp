// Comparison of plain values by their C representation. Must not call a rich comparison that could reach a user's __eq__.
#include "source/plain.h"

#include <cstring>
#include <functional>

#include "py/collector.h"

namespace pellucid::source {
namespace {

// Values of a static type without GC support hold no other objects, so comparing them, by value (torch.device) or by identity
// (torch.dtype), cannot leave C.
bool is_c_leaf(PyTypeObject* type) {
  return !(type->tp_flags & (Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS |
                             Py_TPFLAGS_BYTES_SUBCLASS)) &&
         type->tp_hash != nullptr && type->tp_hash != PyObject_HashNotImplemented;
}

bool is_singleton(PyObject* object) { return object == Py_None || object == Py_Ellipsis || object == Py_NotImplemented; }

bool same_double(double left, double right) { return std::memcmp(&left, &right, sizeof left) == 0; }

bool c_compare_equal(PyObject* left, PyObject* right) noexcept {
  PyObject* result = PyObject_RichCompare(left, right, Py_EQ);
  if (result == nullptr) {
    PyErr_Clear();  // a comparison that raises tells nothing: not equal
    return false;
  }
  bool equal = result == Py_True;
  Py_DECREF(result);
  return equal;
}

bool tuple_like(PyTypeObject* type) { return type == &PyTuple_Type || (type->tp_flags & Py_TPFLAGS_TUPLE_SUBCLASS); }

bool all_plain(PyObject* const* items, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!is_plain(items[i])) return false;
  }
  return true;
}

bool frozenset_equal(PyObject* left, PyObject* right) noexcept {  // small sets: every element of one is in the other
  const py::PauseCollector pause;                                 // iterators are objects
  if (PySet_GET_SIZE(left) != PySet_GET_SIZE(right)) return false;
  return is_plain(left) && is_plain(right) && c_compare_equal(left, right);
}

}  // namespace

bool is_plain(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (is_singleton(object) || type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBool_Type || type == &PyFloat_Type ||
      type == &PyBytes_Type || type == &PyComplex_Type) {
    return true;
  }
  if (tuple_like(type)) return all_plain(&PyTuple_GET_ITEM(object, 0), PyTuple_GET_SIZE(object));
  if (type == &PySlice_Type) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    return is_plain(slice->start) && is_plain(slice->stop) && is_plain(slice->step);
  }
  if (type == &PyFrozenSet_Type) {
    PyObject* iterator = PyObject_GetIter(object);
    if (iterator == nullptr) {
      PyErr_Clear();
      return false;
    }
    bool plain = true;
    while (plain) {
      PyObject* item = PyIter_Next(iterator);
      if (item == nullptr) break;
      plain = is_plain(item);
      Py_DECREF(item);
    }
    Py_DECREF(iterator);
    return plain;
  }
  return is_c_leaf(type);
}

bool plain_equal(PyObject* left, PyObject* right) noexcept {
  if (left == right) return true;
  PyTypeObject* type = Py_TYPE(left);
  if (type != Py_TYPE(right)) return false;
  if (type == &PyUnicode_Type) {
    return PyUnicode_GET_LENGTH(left) == PyUnicode_GET_LENGTH(right) && PyUnicode_Compare(left, right) == 0;
  }
  if (type == &PyLong_Type || type == &PyBytes_Type) return c_compare_equal(left, right);
  if (type == &PyFloat_Type) return same_double(PyFloat_AS_DOUBLE(left), PyFloat_AS_DOUBLE(right));
  if (type == &PyComplex_Type) {
    Py_complex a = PyComplex_AsCComplex(left), b = PyComplex_AsCComplex(right);
    return same_double(a.real, b.real) && same_double(a.imag, b.imag);
  }
  if (tuple_like(type)) {
    Py_ssize_t count = PyTuple_GET_SIZE(left);
    if (count != PyTuple_GET_SIZE(right)) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
      if (!plain_equal(PyTuple_GET_ITEM(left, i), PyTuple_GET_ITEM(right, i))) return false;
    }
    return true;
  }
  if (type == &PySlice_Type) {
    auto *a = reinterpret_cast<PySliceObject*>(left), *b = reinterpret_cast<PySliceObject*>(right);
    return plain_equal(a->start, b->start) && plain_equal(a->stop, b->stop) && plain_equal(a->step, b->step);
  }
  if (type == &PyFrozenSet_Type) return frozenset_equal(left, right);
  if (!is_c_leaf(type)) return false;
  const py::PauseCollector pause;  // a C library may make what objects it likes
  return c_compare_equal(left, right);
}

size_t plain_hash(PyObject* object) noexcept {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBytes_Type) {
    return static_cast<size_t>(PyObject_Hash(object));  // exact builtins: cannot fail
  }
  if (type == &PyFloat_Type) return std::hash<double>{}(PyFloat_AS_DOUBLE(object));
  if (tuple_like(type)) {
    size_t hash = reinterpret_cast<size_t>(type);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) hash = hash * 1000003 ^ plain_hash(PyTuple_GET_ITEM(object, i));
    return hash;
  }
  if (type == &PyComplex_Type || type == &PySlice_Type || type == &PyFrozenSet_Type || is_c_leaf(type)) {
    return reinterpret_cast<size_t>(type);  // rarely keys: one bucket per type will do
  }
  return reinterpret_cast<size_t>(object) >> 4;
}

std::string plain_text(PyObject* object) {
  if (is_plain(object)) {
    // A tuple subclass may override __repr__ in Python: print its items.
    bool subclass = tuple_like(Py_TYPE(object)) && Py_TYPE(object) != &PyTuple_Type;
    if (subclass || Py_TYPE(object) == &PyTuple_Type) {
      std::string text = subclass ? std::string(Py_TYPE(object)->tp_name) + "((" : "(";
      Py_ssize_t count = PyTuple_GET_SIZE(object);
      for (Py_ssize_t i = 0; i < count; i++) text += (i ? ", " : "") + plain_text(PyTuple_GET_ITEM(object, i));
      return text + (count == 1 ? ",)" : ")") + (subclass ? ")" : "");
    }
    py::Ref repr = py::Ref::steal(PyObject_Repr(object));
    const char* text = repr ? PyUnicode_AsUTF8(repr.get()) : nullptr;
    if (text != nullptr) return text;
    PyErr_Clear();
  }
  return std::string("<") + Py_TYPE(object)->tp_name + ">";
}

}  // namespace pellucid::source
