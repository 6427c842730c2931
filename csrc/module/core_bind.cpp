// Keyword names are nearly always the interned strings of the code object, so they are compared by pointer first.
#include "module/core_bind.h"

#include <algorithm>
#include <utility>

namespace pellucid::module {

namespace {

// The index of parameter `name` in [first, last), or -1; -2 with an exception set.
Py_ssize_t find_parameter(PyObject* names, PyObject* name, Py_ssize_t first, Py_ssize_t last) {
  for (Py_ssize_t i = first; i < last; i++) {
    if (PyTuple_GET_ITEM(names, i) == name) return i;
  }
  for (Py_ssize_t i = first; i < last; i++) {
    int order = PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name);
    if (order == 0) return i;
    if (order == -1 && PyErr_Occurred()) return -2;
  }
  return -1;
}

Bind bind_keywords(PyCodeObject* code, PyObject* const* values, PyObject* keywords, PyObject** slots, BoundExtras& extras) {
  const Py_ssize_t named = code->co_argcount + code->co_kwonlyargcount;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); k++) {
    PyObject* name = PyTuple_GET_ITEM(keywords, k);
    if (!PyUnicode_CheckExact(name)) return Bind::kUnbound;
    Py_ssize_t at = find_parameter(code->co_localsplusnames, name, code->co_posonlyargcount, named);
    if (at == -2) return Bind::kError;
    if (at >= 0) {
      if (slots[at] != nullptr) return Bind::kUnbound;  // given twice
      slots[at] = values[k];
    } else if (!extras.keywords) {
      return Bind::kUnbound;
    } else if (PyDict_SetItem(extras.keywords.get(), name, values[k]) < 0) {
      return Bind::kError;
    }
  }
  return Bind::kBound;
}

Bind bind_defaults(PyObject* function, PyCodeObject* code, Py_ssize_t given, PyObject** slots) {
  PyObject* defaults = PyFunction_GET_DEFAULTS(function);
  const Py_ssize_t first_default = code->co_argcount - (defaults == nullptr ? 0 : PyTuple_GET_SIZE(defaults));
  for (Py_ssize_t i = given; i < code->co_argcount; i++) {
    if (slots[i] != nullptr) continue;
    if (i < first_default) return Bind::kUnbound;
    slots[i] = PyTuple_GET_ITEM(defaults, i - first_default);
  }
  PyObject* keyword_defaults = PyFunction_GET_KW_DEFAULTS(function);
  for (Py_ssize_t i = code->co_argcount; i < code->co_argcount + code->co_kwonlyargcount; i++) {
    if (slots[i] != nullptr) continue;
    if (keyword_defaults == nullptr) return Bind::kUnbound;
    slots[i] = PyDict_GetItemWithError(keyword_defaults, PyTuple_GET_ITEM(code->co_localsplusnames, i));
    if (slots[i] == nullptr) return PyErr_Occurred() ? Bind::kError : Bind::kUnbound;
  }
  return Bind::kBound;
}

constexpr Py_ssize_t kLargestLent = 8;
PyObject* lent_tuples[kLargestLent + 1];  // null: never made, or in use further up on the stack
PyObject* lent_dict;

PyObject* take(PyObject*& place) { return std::exchange(place, nullptr); }

void put_back(PyObject*& place, PyObject* object) {
  if (place == nullptr)
    place = object;
  else
    Py_DECREF(object);
}

}  // namespace

LentExtras::~LentExtras() {
  if (positional_ != nullptr) {
    Py_ssize_t count = PyTuple_GET_SIZE(positional_);
    for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(positional_, i, nullptr);
    put_back(lent_tuples[count], positional_);
  }
  if (keywords_ != nullptr) put_back(lent_dict, keywords_);
}

bool LentExtras::bind(PyObject* function, PyObject* const* arguments, Py_ssize_t count, PyObject** slots) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  const Py_ssize_t positional = code->co_argcount, named = positional + code->co_kwonlyargcount;
  const bool takes_rest = code->co_flags & CO_VARARGS;
  const Py_ssize_t rest = count - positional;
  if (rest < 0 || rest > kLargestLent || (rest > 0 && !takes_rest) || code->co_kwonlyargcount != 0) return false;
  std::copy(arguments, arguments + positional, slots);
  if (takes_rest) {
    positional_ = take(lent_tuples[rest]);
    if (positional_ == nullptr) positional_ = PyTuple_New(rest);
    if (positional_ == nullptr) {
      PyErr_Clear();
      return false;
    }
    if (rest > 0 && PyObject_GC_IsTracked(positional_)) PyObject_GC_UnTrack(positional_);  // the collector must not count borrowed items
    for (Py_ssize_t i = 0; i < rest; i++) PyTuple_SET_ITEM(positional_, i, arguments[positional + i]);
    slots[named] = positional_;
  }
  if (code->co_flags & CO_VARKEYWORDS) {
    keywords_ = take(lent_dict);
    if (keywords_ == nullptr) keywords_ = PyDict_New();
    if (keywords_ == nullptr) {
      PyErr_Clear();
      return false;
    }
    slots[named + takes_rest] = keywords_;
  }
  return true;
}

Bind bind_arguments(PyObject* function, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords, PyObject** slots,
                    BoundExtras& extras) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  const Py_ssize_t positional = code->co_argcount, named = positional + code->co_kwonlyargcount;
  const bool takes_rest = code->co_flags & CO_VARARGS, takes_keywords = code->co_flags & CO_VARKEYWORDS;
  if (count > positional && !takes_rest) return Bind::kUnbound;

  const Py_ssize_t given = std::min(count, positional);
  std::copy(arguments, arguments + given, slots);
  std::fill(slots + given, slots + named, nullptr);
  if (takes_rest) {
    extras.positional = py::Ref::steal(PyTuple_New(count - given));
    if (!extras.positional) return Bind::kError;
    for (Py_ssize_t i = given; i < count; i++) {
      Py_INCREF(arguments[i]);
      PyTuple_SET_ITEM(extras.positional.get(), i - given, arguments[i]);
    }
    slots[named] = extras.positional.get();
  }
  if (takes_keywords) {
    extras.keywords = py::Ref::steal(PyDict_New());
    if (!extras.keywords) return Bind::kError;
    slots[named + takes_rest] = extras.keywords.get();
  }
  if (keywords != nullptr) {
    Bind bound = bind_keywords(code, arguments + count, keywords, slots, extras);
    if (bound != Bind::kBound) return bound;
  }
  return bind_defaults(function, code, given, slots);
}

}  // namespace pellucid::module
