// What the rules of builtins share: binding of arguments, known values and how they become real objects and variables again.
#include <algorithm>

#include "base/check.h"
#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {

std::string callable_name(PyObject* callable) {
  for (const char* attribute : {"__qualname__", "__name__"}) {
    py::Ref name = py::Ref::steal(PyObject_GetAttrString(callable, attribute));
    if (name && PyUnicode_Check(name.get())) {
      const char* text = PyUnicode_AsUTF8(name.get());
      if (text != nullptr) return text;
    }
    PyErr_Clear();
  }
  return Py_TYPE(callable)->tp_name;
}

static std::string call_text(PyObject* callable, const Arguments& arguments) {
  std::string text = callable_name(callable) + "(";
  const char* separator = "";
  for (Variable* v : arguments.positional) {
    text += separator + describe(v);
    separator = ", ";
  }
  for (auto& [name, v] : arguments.keywords) {
    text += std::string(separator) + PyUnicode_AsUTF8(name) + "=" + describe(v);
    separator = ", ";
  }
  return text + ")";
}

Failed unsupported(Tracer& t, PyObject* callable, const Arguments& arguments) {
  return t.fail(Reason::unsupported_builtin, call_text(callable, arguments));
}

Failed data_dependent(Tracer& t, PyObject* callable, const Arguments& arguments) {
  return t.fail(Reason::data_dependent_operator, call_text(callable, arguments));
}

bool bind(const Arguments& arguments, std::initializer_list<const char*> names, size_t required, size_t positional_only, Variable** values,
          size_t keyword_only) {
  size_t count = names.size();
  std::fill(values, values + count, nullptr);
  if (arguments.positional.size() > std::min(count, keyword_only)) return false;
  std::copy(arguments.positional.begin(), arguments.positional.end(), values);
  for (auto& [name, v] : arguments.keywords) {
    size_t index = 0;
    for (const char* candidate : names) {
      if (PyUnicode_CompareWithASCIIString(name, candidate) == 0) break;
      index++;
    }
    if (index == count || index < positional_only || values[index] != nullptr) return false;
    values[index] = v;
  }
  for (size_t i = 0; i < required; i++) {
    if (values[i] == nullptr) return false;
  }
  return true;
}

void force_arguments(Tracer& t, Arguments& arguments, size_t count) {
  for (size_t i = 0; i < std::min(count, arguments.positional.size()); i++) arguments.positional[i] = t.force(arguments.positional[i]);
  if (count != Table::kAll) return;
  for (auto& [name, v] : arguments.keywords) v = t.force(v);
}

bool has_tensor(Tracer& t, const Arguments& arguments) {
  for (Variable* v : arguments.positional) {
    if (as_tensor(t.force(v))) return true;
  }
  for (auto& [name, v] : arguments.keywords) {
    if (as_tensor(t.force(v))) return true;
  }
  return false;
}

PyObject* plain(Tracer& t, Variable* v) {
  PyObject* value = known(t, v);
  return value != nullptr && is_data(value) ? value : nullptr;
}

py::Ref materialize(Tracer& t, Variable* v) {
  bool nested = false;
  return readable_copy(t, v, &nested);
}

Answer fold(Tracer& t, PyObject* callable, Arguments& arguments) {
  py::Ref positional = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.positional.size())));
  for (size_t i = 0; i < arguments.positional.size(); i++) {
    py::Ref value = materialize(t, arguments.positional[i]);
    if (!value)
      return as_tensor(t.force(arguments.positional[i])) ? data_dependent(t, callable, arguments) : unsupported(t, callable, arguments);
    PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(i), value.release());
  }
  py::Ref keywords;
  if (!arguments.keywords.empty()) {
    keywords = py::Ref::steal(PyDict_New());
    for (auto& [name, v] : arguments.keywords) {
      py::Ref value = materialize(t, v);
      if (!value) return unsupported(t, callable, arguments);
      if (PyDict_SetItem(keywords.get(), name, value.get()) < 0) return t.fatal();
    }
  }
  PyObject* result = PyObject_Call(callable, positional.get(), keywords.get());
  return from_result(t, result);
}

PyTypeObject* class_of(Tracer& t, Variable* v) {
  v = t.force(v);
  if (v->kind != Kind::kObject && v->kind != Kind::kConstant) return nullptr;
  if (auto* object = as_object(v); object && !object->existed) return nullptr;
  return v->real != nullptr && PyType_Check(v->real) ? reinterpret_cast<PyTypeObject*>(v->real) : nullptr;
}

PyObject* mro_lookup(PyTypeObject* type, const char* name) {
  PyObject* mro = type->tp_mro;
  if (mro == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    PyObject* found = base->tp_dict != nullptr ? PyDict_GetItemString(base->tp_dict, name) : nullptr;
    if (found != nullptr) return found;
  }
  return nullptr;
}

PyTypeObject* torch_type(const char* module, const char* name) {
  static std::unordered_map<std::string, PyTypeObject*> found;  // kept for good: torch is never unloaded
  std::string key = std::string(module) + "." + name;
  if (auto known = found.find(key); known != found.end()) return known->second;
  PyObject* loaded = PyDict_GetItemString(PyImport_GetModuleDict(), module);
  PyObject* object = loaded != nullptr ? PyObject_GetAttrString(loaded, name) : nullptr;
  if (object == nullptr) PyErr_Clear();
  PyTypeObject* type = object != nullptr && PyType_Check(object) ? reinterpret_cast<PyTypeObject*>(object) : nullptr;
  if (type != nullptr) found.emplace(std::move(key), type);
  return type;
}

bool is_torch_type(PyTypeObject* type, const char* module, const char* name) {
  PyTypeObject* wanted = torch_type(module, name);
  return wanted != nullptr && type == wanted;
}

PyObject* library(const char* module, const char* name) {
  static std::unordered_map<std::string, PyObject*> found;
  std::string key = std::string(module) + "." + name;
  if (auto known = found.find(key); known != found.end()) return known->second;
  py::Ref loaded = py::Ref::steal(PyImport_ImportModule(module));
  PyObject* object = loaded ? PyObject_GetAttrString(loaded.get(), name) : nullptr;
  if (object == nullptr) PyErr_Clear();
  found.emplace(std::move(key), object);
  return object;
}

}  // namespace pellucid::variables::builtins
