// super(): attribute lookup in the part of the MRO behind a class (CPython: super_getattro), unbound values bound as their kind does.
#include "variables/super.h"

#include "variables/builtins/builtins.h"

namespace pellucid::variables {
namespace {

using SourceKind = source::Kind;

// supercheck: the class whose MRO is searched; `self_is_class` when self is that class itself.
PyTypeObject* searched_class(Tracer& t, PyTypeObject* start, Variable* self, bool* self_is_class) {
  PyTypeObject* cls = builtins::class_of(t, self);
  *self_is_class = cls != nullptr && PyType_IsSubtype(cls, start);
  if (*self_is_class) return cls;
  PyTypeObject* type = type_of(self);
  return type != nullptr && PyType_IsSubtype(type, start) ? type : nullptr;
}

py::Ref wrapped_function(PyObject* method) {
  py::Ref function = py::Ref::steal(PyObject_GetAttrString(method, "__func__"));
  if (!function) PyErr_Clear();
  return function;
}

Variable* bind_method(Tracer& t, Variable* function, Variable* self) {
  auto* method = t.make<BoundMethodVariable>();
  method->function = function;
  method->self = self;
  return method;
}

}  // namespace

Answer get_super_attribute(Tracer& t, SuperVariable* super, PyObject* name) {
  PyTypeObject* start = builtins::class_of(t, super->start);
  Variable* self = t.force(super->self);
  bool self_is_class = false;
  PyTypeObject* type = start != nullptr ? searched_class(t, start, self, &self_is_class) : nullptr;
  const char* text = PyUnicode_AsUTF8(name);
  if (type == nullptr || text == nullptr) return t.fail(Reason::unsupported_attribute, "super() of " + describe(self));
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) return t.known_object(reinterpret_cast<PyObject*>(&PySuper_Type));

  t.guard_mro(nullptr, type);
  PyObject* mro = type->tp_mro;
  Py_ssize_t size = PyTuple_GET_SIZE(mro), i = 0;
  while (i < size && PyTuple_GET_ITEM(mro, i) != reinterpret_cast<PyObject*>(start)) i++;
  PyObject* value = nullptr;
  PyObject* holder = nullptr;
  for (i++; i < size && value == nullptr; i++) {
    holder = PyTuple_GET_ITEM(mro, i);
    auto* passed = reinterpret_cast<PyTypeObject*>(holder);
    value = PyDict_GetItemString(passed->tp_dict, text);
    // Not there now; what such a class's own MRO gives changes when it comes to be.
    if (value == nullptr && may_be_written(passed)) t.guard_class_attribute(nullptr, passed, name, _PyType_Lookup(passed, name));
  }
  if (value == nullptr) {
    for (const char* own : {"__self__", "__thisclass__", "__self_class__"}) {
      if (PyUnicode_CompareWithASCIIString(name, own) != 0) continue;
      if (own[2] == 't') return super->start;
      return own[6] == '_' && own[7] == '_' ? self : t.known_object(reinterpret_cast<PyObject*>(type));
    }
    if (builtins::mro_lookup(&PySuper_Type, text) != nullptr)
      return t.fail(Reason::unsupported_attribute, std::string("'") + text + "' of a super object");
    return t.raise_new(PyExc_AttributeError, "'super' object has no attribute '%U'", name);
  }
  if (auto* changed = as_object(t.outside(holder)); changed && changed->changed)
    return t.fail(Reason::unsupported_attribute, "super() with a class that the traced program wrote to");

  // holder.NAME is what a guard can read, unless a metaclass intervenes; the value itself stands for it then.
  bool readable = Py_TYPE(holder)->tp_getattro == PyType_Type.tp_getattro && builtins::mro_lookup(Py_TYPE(holder), text) == nullptr;
  const source::Source* from =
      readable ? t.sources().keyed(SourceKind::kAttr, t.sources().constant(holder), name) : t.sources().constant(value);
  PyTypeObject* kind = Py_TYPE(value);
  bool bare = self_is_class;  // functions found through the class itself stay unbound when self is that class (super_getattro)
  if (kind == &PyFunction_Type) {
    Variable* function = t.lazy(value, from);
    return bare ? function : bind_method(t, function, self);
  }
  if (kind == &PyStaticMethod_Type || kind == &PyClassMethod_Type) {
    py::Ref function = wrapped_function(value);
    if (!function || !PyFunction_Check(function.get()))
      return t.fail(Reason::unsupported_attribute, std::string("'") + text + "' that wraps no function");
    bool is_static = kind == &PyStaticMethod_Type;
    const source::Source* inner = !readable   ? t.sources().constant(function.get())
                                  : is_static ? from
                                              : t.sources().derived(SourceKind::kBoundFunc, from);
    Variable* callable = t.lazy(function.get(), inner);
    if (is_static) return callable;
    return bind_method(t, callable, self_is_class ? self : t.known_object(reinterpret_cast<PyObject*>(type)));
  }
  if (kind == &PyProperty_Type) {
    if (bare) return t.lazy(value, from);
    py::Ref getter = py::Ref::steal(PyObject_GetAttrString(value, "fget"));
    if (!getter || getter.get() == Py_None) {
      PyErr_Clear();
      return t.fail(Reason::unsupported_attribute, std::string("property '") + text + "' without a getter");
    }
    return call(t, t.lazy(getter.get(), t.sources().keyed(SourceKind::kAttr, from, t.intern("fget"))), {{self}, {}});
  }
  if (kind == &PyWrapperDescr_Type || kind == &PyMethodDescr_Type) {
    Variable* function = t.known_object(value);
    return bare ? function : bind_method(t, function, self);
  }
  if (kind == &PyClassMethodDescr_Type) {
    Variable* owner = self_is_class ? self : t.known_object(reinterpret_cast<PyObject*>(type));
    // Where the class overrides the method, reading it from the class again would give the override: the caller, without end.
    if (builtins::mro_lookup(type, text) != value) return bind_method(t, t.known_object(value), owner);
    auto* method = t.make<BuiltinMethodVariable>();
    method->self = owner;
    method->name = t.keep(name);
    return method;
  }
  if (kind == &PyGetSetDescr_Type || kind == &PyMemberDescr_Type) {
    if (PyUnicode_CompareWithASCIIString(name, "__dict__") == 0 && !self_is_class) return get_attribute(t, self, name);
    return t.fail(Reason::unsupported_attribute, std::string("'") + text + "' of super(), which is computed in C");
  }
  if (kind->tp_descr_get != nullptr) {
    PyObject* get = builtins::mro_lookup(kind, "__get__");
    if (get == nullptr || !PyFunction_Check(get))
      return t.fail(Reason::unsupported_attribute, std::string("descriptor '") + text + "' of type " + kind->tp_name);
    Variable* owner = self_is_class ? self : t.known_object(reinterpret_cast<PyObject*>(type));
    return call_special(t, t.known_object(value), "__get__", {{bare ? t.none() : self, owner}, {}});
  }
  return t.lazy(value, from);
}

}  // namespace pellucid::variables
