// One case per kind of source. A missing step gives null, so that a changed program state is a miss and not an error.
#include "guard/resolve.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "py/collector.h"
#include "source/plain.h"
#include "torch_bridge/tensor_guard.h"

namespace pellucid::guard {
namespace {

using source::Source;

bool is_exact_number(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyComplex_Type;
}

bool is_exact_builtin(PyTypeObject* type) {
  return is_exact_number(type) || type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyTuple_Type || type == Py_TYPE(Py_None) ||
         type == Py_TYPE(Py_Ellipsis);
}

bool compares_by_identity(PyTypeObject* type) { return type->tp_richcompare == PyBaseObject_Type.tp_richcompare; }

// Whether a descriptor is read by C code that calls nothing of a program's. A member always is; of getters those known to be so:
// others may call anything (TextIOWrapper.name, type.__doc__).
bool reads_in_c(PyObject* descriptor, PyObject* object) {
  if (Py_TYPE(descriptor) == &PyMemberDescr_Type) return true;
  if (Py_TYPE(descriptor) != &PyGetSetDescr_Type) return false;
  if (bridge::is_tensor(object)) return !bridge::getters_may_run_python(object);
  PyTypeObject* type = Py_TYPE(object);
  return type == &PyFunction_Type || PyCFunction_Check(object) || type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type;
}

bool is_c_function_descriptor(PyTypeObject* type) { return type == &PyMemberDescr_Type || type == &PyGetSetDescr_Type; }

py::Ref item(PyObject* base, Py_ssize_t index) {
  if (PyTuple_Check(base) && index >= 0 && index < PyTuple_GET_SIZE(base)) return py::Ref::share(PyTuple_GET_ITEM(base, index));
  if (PyList_Check(base) && index >= 0 && index < PyList_GET_SIZE(base)) return py::Ref::share(PyList_GET_ITEM(base, index));
  return {};
}

py::Ref dict_item(PyObject* dict, PyObject* key_object) {
  cpython::Key key;
  PyObject* value = nullptr;
  if (dict == nullptr || !PyDict_Check(dict)) return {};
  if (!make_key(key_object, key)) return {};
  cpython::find_in_dict(dict, key, key_equal, &value);
  return py::Ref::share(value);
}

py::Ref instance_item(PyObject* object, PyObject* name) {
  cpython::Key key;
  PyObject* value = nullptr;
  if (!make_key(name, key)) return {};
  cpython::find_in_instance(object, key, key_equal, &value);
  return py::Ref::share(value);
}

bool generic_access(PyTypeObject* type) {
  return type->tp_getattro == PyObject_GenericGetAttr || type->tp_getattro == PyModule_Type.tp_getattro;
}

// Types made in C look at their own members before anything else, whatever their tp_getattro adds.
bool members_first(PyTypeObject* type) { return generic_access(type) || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE); }

}  // namespace

int key_equal(PyObject* left, PyObject* right) noexcept {
  if (left == right) return 1;
  PyTypeObject* other = Py_TYPE(right);
  if (left == nullptr) return is_exact_builtin(other) || compares_by_identity(other) ? 0 : -1;
  PyTypeObject* type = Py_TYPE(left);
  if (compares_by_identity(type) && (compares_by_identity(other) || is_exact_builtin(other))) return 0;
  if (!is_exact_builtin(type)) return -1;
  if (compares_by_identity(other)) return 0;
  if (!is_exact_builtin(other)) return -1;
  if (type == &PyTuple_Type && other == &PyTuple_Type) {
    if (PyTuple_GET_SIZE(left) != PyTuple_GET_SIZE(right)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(left); i++) {
      int equal = key_equal(PyTuple_GET_ITEM(left, i), PyTuple_GET_ITEM(right, i));
      if (equal != 1) return equal;
    }
    return 1;
  }
  if (type != other && !(is_exact_number(type) && is_exact_number(other))) return 0;
  int equal = PyObject_RichCompareBool(left, right, Py_EQ);  // exact numbers, str or bytes: C code
  if (equal < 0) PyErr_Clear();
  return equal;
}

bool make_key(PyObject* object, cpython::Key& key) {
  PyTypeObject* type = Py_TYPE(object);
  if (!source::is_plain(object) && type->tp_hash != PyBaseObject_Type.tp_hash) {
    PyErr_Format(PyExc_TypeError, "a dictionary key of type %.100s cannot be guarded: its hash may run Python code", type->tp_name);
    return false;
  }
  Py_hash_t hash = PyObject_Hash(object);
  if (hash == -1) return false;
  key = cpython::Key{object, hash, 0};
  return true;
}

bool find_in_class(PyTypeObject* type, cpython::Key& name, PyObject** value) noexcept {
  if (cpython::has_str_names(type)) {
    *value = cpython::type_lookup(type, name.object);
    return true;
  }
  return cpython::find_in_mro(type, name, key_equal, value) != cpython::Lookup::kUnsure;
}

bool has_mro(PyTypeObject* type, const std::vector<PyObject*>& classes) noexcept {
  PyObject* const* mro = reinterpret_cast<PyTupleObject*>(type->tp_mro)->ob_item;
  return static_cast<size_t>(PyTuple_GET_SIZE(type->tp_mro)) == classes.size() && std::equal(classes.begin(), classes.end(), mro);
}

PyObject* class_value(PyObject* raw) {
  if (raw == nullptr) return nullptr;
  if (Py_TYPE(raw) == &PyStaticMethod_Type) {
    PyObject* function = PyObject_GetAttrString(raw, "__func__");  // a member: C code
    if (function == nullptr) {
      PyErr_Clear();
      return nullptr;
    }
    Py_DECREF(function);  // the staticmethod holds it
    return function;
  }
  PyTypeObject* type = Py_TYPE(raw);
  if (type == &PyFunction_Type || type->tp_descr_get == nullptr) return raw;
  // Read through their class these give themselves; a classmethod stands for the method that it makes anew at each read.
  bool gives_itself = type == &PyProperty_Type || type == &PyWrapperDescr_Type || type == &PyMethodDescr_Type ||
                      type == &PyMemberDescr_Type || type == &PyGetSetDescr_Type;
  return gives_itself || type == &PyClassMethod_Type ? raw : nullptr;
}

PyObject* bound_function(PyObject* method) {
  if (PyMethod_Check(method)) return PyMethod_GET_FUNCTION(method);
  if (Py_TYPE(method) != &PyClassMethod_Type) return nullptr;
  PyObject* function = PyObject_GetAttrString(method, "__func__");  // a member: C code
  if (function == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  Py_DECREF(function);  // the classmethod holds it
  return function;
}

// Whether a metaclass reads attributes as type does; one with __getattr__ is asked only for what the class does not have.
static bool has_type_getattro(PyTypeObject* metaclass) {
  if (metaclass->tp_getattro == PyType_Type.tp_getattro) return true;
  static PyObject* const name = PyUnicode_InternFromString("__getattribute__");
  return name != nullptr && cpython::type_lookup(metaclass, name) == cpython::type_lookup(&PyType_Type, name);
}

bool never_changes(PyObject* base, PyObject* name) {
  PyTypeObject* type = Py_TYPE(base);
  if (type != &PyFunction_Type && type != &PyMethod_Type && type != &PyStaticMethod_Type && type != &PyClassMethod_Type &&
      type != &PyProperty_Type) {
    return false;
  }
  PyObject* descriptor = cpython::type_lookup(type, name);
  return descriptor != nullptr && Py_TYPE(descriptor) == &PyMemberDescr_Type &&
         (reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member->flags & READONLY) != 0;
}

Py_ssize_t function_field(PyObject* name) {
  static const std::pair<const char*, size_t> kFields[] = {{"__globals__", offsetof(PyFunctionObject, func_globals)},
                                                           {"__code__", offsetof(PyFunctionObject, func_code)},
                                                           {"__defaults__", offsetof(PyFunctionObject, func_defaults)},
                                                           {"__kwdefaults__", offsetof(PyFunctionObject, func_kwdefaults)},
                                                           {"__closure__", offsetof(PyFunctionObject, func_closure)}};
  for (auto [field, offset] : kFields) {
    if (PyUnicode_CompareWithASCIIString(name, field) == 0) return static_cast<Py_ssize_t>(offset);
  }
  return 0;
}

py::Ref c_getattr(PyObject* base, PyObject* name) {
  PyTypeObject* type = Py_TYPE(base);
  PyObject* descriptor = nullptr;
  cpython::Key key;
  if (!PyUnicode_CheckExact(name) || !make_key(name, key) || !find_in_class(type, key, &descriptor)) return {};
  if (descriptor != nullptr && is_c_function_descriptor(Py_TYPE(descriptor)) && (members_first(type) || PyType_Check(base))) {
    if (Py_ssize_t field = type == &PyFunction_Type ? function_field(name) : 0; field != 0) {  // its getter tells audit hooks
      PyObject* value = cpython::read_pointer(base, field);
      return py::Ref::share(value != nullptr ? value : Py_None);
    }
    if (!reads_in_c(descriptor, base)) return {};
    const py::PauseCollector pause;  // getters make objects, and finalizers are Python code
    py::Ref value = py::Ref::steal(Py_TYPE(descriptor)->tp_descr_get(descriptor, base, reinterpret_cast<PyObject*>(type)));
    if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();  // an empty slot
    return value;
  }
  if (descriptor != nullptr && Py_TYPE(descriptor)->tp_descr_set != nullptr) return {};  // a property or another data descriptor
  if (PyType_Check(base)) {
    if (!has_type_getattro(type)) return {};
    PyObject* raw = nullptr;
    if (!find_in_class(reinterpret_cast<PyTypeObject*>(base), key, &raw)) return {};
    return py::Ref::share(class_value(raw));
  }
  if (!generic_access(type)) return {};
  py::Ref value = instance_item(base, name);
  if (value) return value;
  if (descriptor != nullptr && Py_TYPE(descriptor)->tp_descr_get == nullptr) return py::Ref::share(descriptor);
  return {};
}

py::Ref resolve(const Source* source, const FrameView& frame) {
  if (source->base == nullptr) return step(source, nullptr, frame);
  py::Ref base = resolve(source->base, frame);
  return base ? step(source, base.get(), frame) : py::Ref();
}

py::Ref step(const Source* source, PyObject* object, const FrameView& frame) {
  using source::Kind;
  switch (source->kind) {
    case Kind::kLocal:
      return py::Ref::share(frame.locals[source->index]);
    case Kind::kFreeCell: {
      PyObject* closure = PyFunction_GET_CLOSURE(frame.func);
      return closure != nullptr ? item(closure, source->index) : py::Ref();
    }
    case Kind::kGlobal:
      return dict_item(PyFunction_GET_GLOBALS(frame.func), source->key);
    case Kind::kConst:
      return py::Ref::share(source->key);
    case Kind::kInstanceItem:
      return instance_item(object, source->key);
    case Kind::kAttr:
      return c_getattr(object, source->key);
    case Kind::kClassAttr: {
      cpython::Key key;
      PyObject* value = nullptr;
      if (!make_key(source->key, key) || !find_in_class(Py_TYPE(object), key, &value)) return {};
      return py::Ref::share(value);
    }
    case Kind::kItem:
      return item(object, source->index);
    case Kind::kDictItem:
      return dict_item(object, source->key);
    case Kind::kCellContents:
      return PyCell_Check(object) ? py::Ref::share(PyCell_GET(object)) : py::Ref();
    case Kind::kTypeOf:
      return py::Ref::share(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    case Kind::kDictOf: {
      if (cpython::dict_pointer_offset(object) == 0) return {};
      return py::Ref::steal(PyObject_GenericGetDict(object, nullptr));
    }
    case Kind::kDefault: {
      PyObject* defaults = PyFunction_Check(object) ? PyFunction_GET_DEFAULTS(object) : nullptr;
      return defaults != nullptr ? item(defaults, source->index) : py::Ref();
    }
    case Kind::kKwDefault:
      return PyFunction_Check(object) ? dict_item(PyFunction_GET_KW_DEFAULTS(object), source->key) : py::Ref();
    case Kind::kClosureCell: {
      PyObject* closure = PyFunction_Check(object) ? PyFunction_GET_CLOSURE(object) : nullptr;
      return closure != nullptr ? item(closure, source->index) : py::Ref();
    }
    case Kind::kBoundSelf:
      return PyMethod_Check(object) ? py::Ref::share(PyMethod_GET_SELF(object)) : py::Ref();
    case Kind::kReferent:
      return PyWeakref_CheckRef(object) ? py::Ref::share(PyWeakref_GET_OBJECT(object)) : py::Ref();
    case Kind::kBoundFunc:
      return py::Ref::share(bound_function(object));
    default:
      return {};
  }
}

}  // namespace pellucid::guard
