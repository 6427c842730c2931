// Reading attributes by the rules of object.__getattribute__ (CPython: _PyObject_GenericGetAttrWithDict, type_getattro,
// module_getattro), read through guarded sources and over the writes of the traced program. User-defined hooks,
// properties and descriptors are inlined like any call.
#include "variables/attribute.h"
#include "base/check.h"
#include "variables/descriptor.h"
#include "variables/exception.h"
#include "variables/super.h"
#include "variables/torch_types.h"
#include "variables/tracer.h"

namespace pellucid::variables {

using GuardKind = guard::Kind;
using SourceKind = source::Kind;

PyObject* instance_dict(PyObject* object) {  // borrowed; null if there is none
  PyObject** slot = _PyObject_GetDictPtr(object);
  if (slot && *slot) return *slot;
  if (!(Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !slot) return nullptr;
  PyObject* dict = PyObject_GenericGetDict(object, nullptr);  // makes the dict that inline values stand for
  if (!dict) {
    PyErr_Clear();
    return nullptr;
  }
  Py_DECREF(dict);  // the object keeps it
  return dict;
}

Failed no_attribute(Tracer& t, Variable* object, PyObject* name) {
  PyTypeObject* type = type_of(object);
  if (auto* o = as_object(object); o && o->real && PyType_Check(o->real))
    return t.raise_new(PyExc_AttributeError, "type object '%.50s' has no attribute '%U'", reinterpret_cast<PyTypeObject*>(o->real)->tp_name,
                       name);
  return t.raise_new(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", type ? type->tp_name : "?", name);
}

// Where what the class of an object holds is read: through the object, or of a known class.
const source::Source* class_source(Tracer& t, const source::Source* object, PyTypeObject* type, PyObject* name) {
  if (object) return t.sources().keyed(SourceKind::kClassAttr, object, name);
  return t.sources().keyed(SourceKind::kAttr, t.sources().constant(reinterpret_cast<PyObject*>(type)), name);
}

namespace {

Variable* class_of(Tracer& t, PyTypeObject* type) { return t.known_object(reinterpret_cast<PyObject*>(type)); }

Variable* builtin_method(Tracer& t, Variable* self, PyObject* name) {
  auto* method = t.make<BuiltinMethodVariable>();
  method->self = self;
  method->name = t.keep(name);
  return method;
}

bool is_c_descriptor(PyObject* value) {
  PyTypeObject* kind = Py_TYPE(value);
  return kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type || kind == &PyMemberDescr_Type || kind == &PyGetSetDescr_Type ||
         kind == &PyClassMethodDescr_Type;
}

// Whether a value found in a class is a descriptor, and one that comes before the instance, its own class says.
void guard_descriptor_class(Tracer& t, PyObject* value) {
  PyTypeObject* type = value ? Py_TYPE(value) : nullptr;
  if (!type || !may_be_written(type)) return;
  for (const char* name : {"__get__", "__set__", "__delete__"}) {
    PyObject* text = t.intern(name);
    t.guard_class_attribute(nullptr, type, text, _PyType_Lookup(type, text));
  }
}

// What the class holds becomes what the instance shows: functions bind, descriptors run, the rest is as it is.
Answer bind_class_value(Tracer& t, Variable* self, PyTypeObject* type, PyObject* name, PyObject* value, const source::Source* from) {
  if (PyFunction_Check(value)) {
    auto* method = t.make<BoundMethodVariable>();
    method->function = t.lazy(value, from);
    method->self = self;
    return method;
  }
  PyTypeObject* kind = Py_TYPE(value);
  if (kind == &PyProperty_Type) {
    py::Ref getter = py::Ref::steal(PyObject_GetAttrString(value, "fget"));
    if (!getter || getter.get() == Py_None)
      return t.raise_new(PyExc_AttributeError, "property '%U' of '%.100s' object has no getter", name, type->tp_name);
    const source::Source* source = from ? t.sources().keyed(SourceKind::kAttr, from, t.intern("fget")) : nullptr;
    return call(t, t.lazy(getter.get(), source), {{self}, {}});
  }
  if (kind == &PyStaticMethod_Type || kind == &PyClassMethod_Type) {
    py::Ref function = py::Ref::steal(PyObject_GetAttrString(value, "__func__"));
    if (!function) return t.raise_python_error();
    const source::Source* source = from;
    if (from && from->kind == SourceKind::kAttr) {  // read through the class: a staticmethod is the function then
      if (kind == &PyClassMethod_Type) source = t.sources().derived(SourceKind::kBoundFunc, from);
    } else if (from) {
      source = t.sources().keyed(SourceKind::kAttr, from, t.intern("__func__"));
    }
    Variable* callable = t.lazy(function.get(), source);
    if (kind == &PyStaticMethod_Type) return callable;
    auto* method = t.make<BoundMethodVariable>();
    method->function = callable;
    method->self = self ? TRY(class_variable(t, self)) : class_of(t, type);
    return method;
  }
  if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type) return builtin_method(t, self, name);
  if (kind == &PyClassMethodDescr_Type) return builtin_method(t, class_of(t, type), name);
  if (kind->tp_descr_get && (kind->tp_flags & Py_TPFLAGS_HEAPTYPE)) {  // a descriptor of the program
    if (!_PyType_Lookup(kind, t.intern("__get__")))
      return t.fail(Reason::unsupported_attribute, "descriptor of type " + std::string(kind->tp_name));
    return call_special(t, t.lazy(value, from), "__get__", {{self, TRY(class_variable(t, self))}, {}});
  }
  if (kind->tp_descr_get) return t.fail(Reason::unsupported_attribute, "descriptor '" + text_of(name) + "' of type " + kind->tp_name);
  return t.lazy(value, from);
}

Answer read_slot(Tracer& t, ObjectVariable* object, PyObject* name) {
  if (auto* written = overlay(object, name)) {
    if (!written->value) return no_attribute(t, object, name);
    return written->value;
  }
  if (!object->existed) return t.raise_new(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", object->type->tp_name, name);
  py::Ref value = py::Ref::steal(PyObject_GetAttr(object->real, name));
  if (!value) {
    PyErr_Clear();
    return t.fail(Reason::unsupported_attribute, "slot '" + text_of(name) + "' that is not set");
  }
  return t.lazy_present(value.get(), t.sources().keyed(SourceKind::kAttr, object->source, name));
}

bool inherits_object_getattribute(PyTypeObject* type, Tracer& t) {
  // list, dict and exceptions have a slot wrapper of their own around the same C function.
  PyObject* hook = _PyType_Lookup(type, t.intern("__getattribute__"));
  return hook && Py_TYPE(hook) == &PyWrapperDescr_Type &&
         reinterpret_cast<PyWrapperDescrObject*>(hook)->d_wrapped == reinterpret_cast<void*>(&PyObject_GenericGetAttr);
}

// torch.nn.Module.__getattr__ without running it: parameters, buffers and submodules live in three dicts of the instance.
Answer module_attribute(Tracer& t, ObjectVariable* module, PyObject* name, bool* found) {
  *found = true;
  for (const char* part : {"_parameters", "_buffers", "_modules"}) {
    PyObject* part_name = t.intern(part);
    if (overlay(module, part_name)) {
      Variable* dict = t.force(overlay(module, part_name)->value);
      if (auto* values = as_dict(dict)) {
        if (Variable* value = dict_find(values, name)) return value;
        continue;
      }
      return t.fail(Reason::unsupported_attribute, std::string("replaced ") + part + " of a module");
    }
    if (!module->existed) continue;
    PyObject* own = instance_dict(module->real);
    PyObject* dict = own ? PyDict_GetItemWithError(own, part_name) : nullptr;
    if (!dict) continue;
    if (!PyDict_Check(dict)) return t.fail(Reason::unsupported_attribute, std::string(part) + " of a module is no dict");
    const source::Source* from = t.sources().keyed(SourceKind::kInstanceItem, module->source, part_name);
    if (auto* changed = as_dict(t.outside(dict)); changed && changed->changed) {
      if (Variable* value = dict_find(changed, name)) return value;
      continue;
    }
    // The module keeps these dicts for its life. Known by identity, what is in them is verified by their version, not looked up.
    t.guard(GuardKind::kId, from, dict);
    if (PyObject* value = PyDict_GetItemWithError(dict, name))
      return t.lazy_present(value, t.sources().keyed(SourceKind::kDictItem, from, name));
    t.guard(GuardKind::kDictLacks, from, name);
  }
  *found = false;
  return nullptr;
}

Answer module_object_attribute(Tracer& t, ObjectVariable* object, PyObject* name) {
  if (auto* written = overlay(object, name)) {
    if (!written->value) return t.raise_new(PyExc_AttributeError, "module has no attribute '%U'", name);
    return written->value;
  }
  PyObject* dict = PyModule_GetDict(object->real);
  if (PyObject* value = PyDict_GetItemWithError(dict, name))
    return t.lazy_present(value, t.sources().keyed(SourceKind::kInstanceItem, object->source, name));
  if (name_is(name, "__dict__")) return t.lazy(dict, t.sources().derived(SourceKind::kDictOf, object->source));
  if (PyDict_GetItemString(dict, "__getattr__")) {
    // PEP 562. Modules of torch and our own give what they would have imported, always the same object.
    const char* module = PyModule_GetName(object->real);
    const std::string_view text = module ? module : "";
    if (text != "pellucid" && text.substr(0, 5) != "torch")
      return t.fail(Reason::unsupported_attribute, "module attribute '" + text_of(name) + "' made on demand");
    py::Ref value = py::Ref::steal(PyObject_GetAttr(object->real, name));
    if (!value) return t.raise_python_error();
    return t.known_object(value.get());
  }
  return t.fail(Reason::unsupported_attribute, "module attribute '" + text_of(name) + "' made on demand");
  return t.raise_new(PyExc_AttributeError, "module '%s' has no attribute '%U'", PyModule_GetName(object->real), name);
}

Answer class_attribute(Tracer& t, ObjectVariable* object, PyObject* name) {
  auto* cls = reinterpret_cast<PyTypeObject*>(object->real);
  PyTypeObject* meta = Py_TYPE(cls);
  if (auto* written = overlay(object, name)) {
    if (!written->value) return no_attribute(t, object, name);
    Variable* value = t.force(written->value);
    if (value->kind == Kind::kFunction || value->kind == Kind::kConstant || value->kind == Kind::kTensor || value->kind == Kind::kList ||
        value->kind == Kind::kDict)
      return written->value;
    return t.fail(Reason::unsupported_attribute, "class attribute written in the graph");
  }
  PyObject* getattribute_name = t.intern("__getattribute__");
  if (PyObject* hook = _PyType_Lookup(meta, getattribute_name); meta->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    t.guard_class_attribute(object->source, meta, getattribute_name, hook);
    if (hook != _PyType_Lookup(&PyType_Type, getattribute_name))
      return t.fail(Reason::unsupported_attribute, "metaclass with __getattribute__");
  }
  PyObject* from_meta = _PyType_Lookup(meta, name);
  if (meta->tp_flags & Py_TPFLAGS_HEAPTYPE) t.guard_class_attribute(object->source, meta, name, from_meta);
  if (from_meta && Py_TYPE(from_meta)->tp_descr_set) {  // data descriptors of the metaclass come first
    if (name_is(name, "__name__") || name_is(name, "__qualname__") || name_is(name, "__module__") || name_is(name, "__doc__")) {
      py::Ref value = py::Ref::steal(PyObject_GetAttr(object->real, name));
      if (!value) return t.raise_python_error();
      return t.constant(value.get());
    }
    if (name_is(name, "__mro__") || name_is(name, "__bases__") || name_is(name, "__base__") || name_is(name, "__dict__")) {
      py::Ref value = py::Ref::steal(PyObject_GetAttr(object->real, name));
      if (!value) return t.raise_python_error();
      t.guard_mro(nullptr, cls);
      if (PyTuple_Check(value.get())) {
        std::vector<Variable*> items;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value.get()); i++) items.push_back(t.known_object(PyTuple_GET_ITEM(value.get(), i)));
        return t.tuple(std::move(items));
      }
      if (PyType_Check(value.get())) return t.known_object(value.get());
      return t.fail(Reason::unsupported_attribute, "__dict__ of a class");
    }
    if (Py_TYPE(from_meta) == &PyProperty_Type)
      return bind_class_value(t, object, meta, name, from_meta, t.sources().keyed(SourceKind::kClassAttr, object->source, name));
    return t.fail(Reason::unsupported_attribute, "attribute '" + text_of(name) + "' of a metaclass");
  }
  if (PyObject* value = _PyType_Lookup(cls, name)) {
    const source::Source* from = t.sources().keyed(SourceKind::kAttr, object->source, name);
    PyTypeObject* kind = Py_TYPE(value);
    if (kind == &PyStaticMethod_Type) {
      py::Ref function = py::Ref::steal(PyObject_GetAttrString(value, "__func__"));
      return t.lazy(function.get(), from);
    }
    if (kind == &PyClassMethod_Type) {
      py::Ref function = py::Ref::steal(PyObject_GetAttrString(value, "__func__"));
      if (!PyFunction_Check(function.get())) return t.fail(Reason::unsupported_attribute, "classmethod of a callable object");
      auto* method = t.make<BoundMethodVariable>();
      method->function = t.lazy(function.get(), t.sources().derived(SourceKind::kBoundFunc, from));
      method->self = object;
      return method;
    }
    if (kind == &PyClassMethodDescr_Type) return builtin_method(t, object, name);
    if (is_c_descriptor(value)) return t.known_object(value);
    guard_descriptor_class(t, value);
    if (PyFunction_Check(value) || !kind->tp_descr_get || kind == &PyProperty_Type) return t.lazy_present(value, from);
    if (kind->tp_flags & Py_TPFLAGS_HEAPTYPE && _PyType_Lookup(kind, t.intern("__get__"))) {
      t.guard_class_attribute(nullptr, cls, name, value);
      return call_special(t, t.known_object(value), "__get__", {{t.none(), object}, {}});
    }
    return t.fail(Reason::unsupported_attribute, "descriptor '" + text_of(name) + "' of class " + cls->tp_name);
  }
  t.guard_class_attribute(nullptr, cls, name, nullptr);
  if (from_meta) return bind_class_value(t, object, meta, name, from_meta, t.sources().keyed(SourceKind::kClassAttr, object->source, name));
  if (PyObject* hook = _PyType_Lookup(meta, t.intern("__getattr__"))) {
    // Enum defines one on 3.11: it gives members, which a lookup of the real class gives too.
    if (Py_IS_TYPE(cls, torch_types()->enum_meta)) {
      PyObject* map_name = t.intern("_member_map_");
      PyObject* members = _PyType_Lookup(cls, map_name);
      if (!members || !PyDict_Check(members)) return t.fail(Reason::unsupported_attribute, "enum without _member_map_");
      PyObject* member = PyDict_GetItemWithError(members, name);
      if (!member) return t.raise_new(PyExc_AttributeError, "%U", name);
      return t.lazy(member, t.sources().keyed(SourceKind::kDictItem, t.sources().keyed(SourceKind::kAttr, object->source, map_name), name));
    }
    (void)hook;
    return t.fail(Reason::unsupported_attribute, "metaclass with __getattr__");
  }
  return no_attribute(t, object, name);
}

Answer function_attribute(Tracer& t, FunctionVariable* function, PyObject* name) {
  for (auto& [key, value] : function->attributes)
    if (PyUnicode_Compare(key, name) == 0) {
      if (!value) return t.raise_new(PyExc_AttributeError, "'function' object has no attribute '%U'", name);
      return value;
    }
  if (name_is(name, "__name__")) return t.constant(function->name);
  if (name_is(name, "__qualname__")) return t.constant(function->qualname);
  if (name_is(name, "__code__")) return t.known_object(function->code);
  if (name_is(name, "__defaults__")) return function->defaults ? function->defaults : t.none();
  if (name_is(name, "__kwdefaults__")) return function->kwdefaults ? function->kwdefaults : t.none();
  if (name_is(name, "__class__")) return class_of(t, &PyFunction_Type);
  if (name_is(name, "__get__") || name_is(name, "__call__")) return builtin_method(t, function, name);
  if (name_is(name, "__closure__") && function->closure.empty()) return t.none();
  if (name_is(name, "__annotations__")) {
    if (function->real) {
      py::Ref value = py::Ref::steal(PyObject_GetAttr(function->real, name));  // a dict, made on demand
      if (!value) return t.raise_python_error();
      return t.lazy(value.get(),
                    function->source ? t.sources().keyed(SourceKind::kAttr, function->source, name) : t.sources().constant(value.get()));
    }
    if (auto* pairs = as_tuple(function->annotations ? t.force(function->annotations) : nullptr)) {  // name, value, name, value ...
      DictVariable* made = t.dict();
      for (size_t i = 1; i < pairs->items.size(); i += 2) dict_store(t, made, TRY(dict_key(t, pairs->items[i - 1])), pairs->items[i]);
      function->annotations = made;
    }
    if (!function->annotations) function->annotations = t.dict();
    return function->annotations;
  }
  if (function->real) {
    if (name_is(name, "__module__") || name_is(name, "__doc__")) {
      py::Ref value = py::Ref::steal(PyObject_GetAttr(function->real, name));
      if (!value) return t.raise_python_error();
      return t.lazy(value.get(), t.sources().keyed(SourceKind::kAttr, function->source, name));
    }
    if (PyObject* dict = instance_dict(function->real)) {
      if (PyObject* value = PyDict_GetItemWithError(dict, name))
        return t.lazy_present(value, t.sources().keyed(SourceKind::kInstanceItem, function->source, name));
      t.guard(GuardKind::kInstanceLacks, function->source, name);
    }
  } else if (name_is(name, "__doc__")) {
    py::Ref constants = py::Ref::steal(PyObject_GetAttrString(function->code, "co_consts"));
    PyObject* first = PyTuple_GET_SIZE(constants.get()) ? PyTuple_GET_ITEM(constants.get(), 0) : Py_None;
    return t.constant(PyUnicode_Check(first) ? first : Py_None);
  } else if (name_is(name, "__module__")) {
    PyObject* module = PyDict_GetItemString(function->globals, "__name__");
    return t.constant(module ? module : Py_None);
  }
  if (_PyType_Lookup(&PyFunction_Type, name)) return t.fail(Reason::unsupported_attribute, "function attribute '" + text_of(name) + "'");
  return t.raise_new(PyExc_AttributeError, "'function' object has no attribute '%U'", name);
}

}  // namespace

Result<Variable*> class_variable(Tracer& t, Variable* object) {  // type(object)
  object = t.force(object);
  if (auto* o = as_object(object); o && o->class_variable) return o->class_variable;
  PyTypeObject* type = type_of(object);
  if (!type) return t.fail(Reason::unsupported_value, "class of " + describe(object));
  if (auto* o = as_object(object); o && o->source && o->by_identity)
    t.guard(GuardKind::kType, o->source, reinterpret_cast<PyObject*>(type));
  return class_of(t, type);
}

Answer class_lookup(Tracer& t, Variable* object, PyObject* name) {
  object = t.force(object);
  PyTypeObject* type = type_of(object);
  if (!type) return t.fail(Reason::unsupported_value, "class of " + describe(object));
  if (auto* o = as_object(object); o && o->class_variable) {  // the traced program may have written to the class
    if (auto* cls = as_object(t.force(o->class_variable)))
      if (auto* written = overlay(cls, name)) return written->value;
  }
  PyObject* value = _PyType_Lookup(type, name);
  t.guard_class_attribute(object->source, type, name, value);
  if (!value) return nullptr;
  if (is_c_descriptor(value) || PyCFunction_Check(value)) return t.known_object(value);
  const source::Source* from = class_source(t, object->source, type, name);
  return t.lazy(value, from);
}

Answer call_special(Tracer& t, Variable* object, const char* name, Arguments arguments) {
  object = t.force(object);
  PyObject* text = t.intern(name);
  Variable* function = TRY(class_lookup(t, object, text));
  if (!function) return t.fail(Reason::unsupported_operator, describe(object) + " has no " + name);
  function = t.force(function);
  if (function->kind == Kind::kFunction) {
    arguments.positional.insert(arguments.positional.begin(), object);
    return call(t, function, std::move(arguments));
  }
  if (auto* o = as_object(function); o && o->real) {
    PyTypeObject* kind = Py_TYPE(o->real);
    if (kind == &PyMethodDescr_Type || kind == &PyWrapperDescr_Type) return call_method(t, object, text, std::move(arguments));
    Variable* bound = TRY(t.wait(bind_class_value(t, object, type_of(object), text, o->real, o->source)));
    return call(t, bound, std::move(arguments));
  }
  return t.fail(Reason::unsupported_operator, std::string(name) + " of " + describe(object));
}

Answer generic_get_attribute(Tracer& t, ObjectVariable* object, PyObject* name) {
  PyTypeObject* type = object->type;
  PyObject* from_class = nullptr;
  const source::Source* where = nullptr;
  if (auto* cls = as_object(object->class_variable ? t.force(object->class_variable) : nullptr); cls && overlay(cls, name))
    return t.fail(Reason::unsupported_attribute, "attribute of a class that was written in the graph");
  if (auto* cls = as_object(t.outside(reinterpret_cast<PyObject*>(type))); cls && overlay(cls, name) && !overlay(object, name)) {
    PyObject* dict = object->existed ? instance_dict(object->real) : nullptr;
    PyObject* own = dict ? PyDict_GetItemWithError(dict, name) : nullptr;
    if (!own && PyErr_Occurred()) return t.raise_python_error();
    if (own) return t.lazy_present(own, t.sources().keyed(SourceKind::kInstanceItem, object->source, name));
    if (dict) t.guard(GuardKind::kInstanceLacks, object->source, name);
    return class_attribute(t, cls, name);
  }
  from_class = _PyType_Lookup(type, name);
  guard_descriptor_class(t, from_class);
  if (from_class) {
    where = class_source(t, object->source, type, name);
    PyTypeObject* kind = Py_TYPE(from_class);
    if (kind->tp_descr_set) {  // a data descriptor
      t.guard_class_attribute(object->source, type, name, from_class);
      if (kind == &PyMemberDescr_Type) return read_slot(t, object, name);
      if (kind == &PyGetSetDescr_Type) {
        if (name_is(name, "__class__")) return TRY(class_variable(t, object));
        return t.fail(Reason::unsupported_attribute, "attribute '" + text_of(name) + "' of " + type->tp_name + " is computed in C");
      }
      return bind_class_value(t, object, type, name, from_class, where);
    }
  }
  if (auto* written = overlay(object, name)) {
    if (written->value) return written->value;
  } else if (object->existed) {
    if (PyObject* dict = instance_dict(object->real)) {
      PyObject* value = PyDict_GetItemWithError(dict, name);
      if (!value && PyErr_Occurred()) return t.raise_python_error();
      if (value) {
        t.guard_class_attribute(object->source, type, name, from_class);  // no data descriptor
        return t.lazy_present(value, t.sources().keyed(SourceKind::kInstanceItem, object->source, name));
      }
      t.guard(GuardKind::kInstanceLacks, object->source, name);
    }
  }
  t.guard_class_attribute(object->source, type, name, from_class);
  if (from_class) return bind_class_value(t, object, type, name, from_class, where);
  return no_attribute(t, object, name);
}

namespace {

// Instances of subclasses of ModuleType, which torch.backends is made of: the class, then the module's dict, then __getattr__.
Answer module_subclass_attribute(Tracer& t, ObjectVariable* object, PyObject* name) {
  PyTypeObject* type = object->type;
  if (_PyType_Lookup(type, t.intern("__getattribute__")) != _PyType_Lookup(&PyModule_Type, t.intern("__getattribute__")))
    return t.fail(Reason::unsupported_attribute, std::string("__getattribute__ of ") + type->tp_name);
  if (PyObject* from_class = _PyType_Lookup(type, name)) {
    if (Py_TYPE(from_class)->tp_descr_set && Py_TYPE(from_class) != &PyProperty_Type)
      return t.fail(Reason::unsupported_attribute, "descriptor '" + text_of(name) + "' of " + type->tp_name);
    if (Py_TYPE(from_class)->tp_descr_set || !PyDict_GetItemWithError(PyModule_GetDict(object->real), name)) {
      t.guard_class_attribute(object->source, type, name, from_class);
      return bind_class_value(t, object, type, name, from_class, t.sources().keyed(SourceKind::kClassAttr, object->source, name));
    }
  }
  PyObject* hook = _PyType_Lookup(type, t.intern("__getattr__"));
  if (!hook || PyDict_GetItemWithError(PyModule_GetDict(object->real), name)) return module_object_attribute(t, object, name);
  t.guard(GuardKind::kInstanceLacks, object->source, name);
  t.guard_class_attribute(object->source, type, t.intern("__getattr__"), hook);
  return call_special(t, object, "__getattr__", {{t.constant(name)}, {}});
}

Answer object_attribute(Tracer& t, ObjectVariable* object, PyObject* name) {
  const TorchTypes& torch = *torch_types();
  if (object->real && object->existed) {
    if (PyModule_Check(object->real) && Py_TYPE(object->real)->tp_getattro == PyModule_Type.tp_getattro)
      return module_object_attribute(t, object, name);
    if (PyType_Check(object->real)) return class_attribute(t, object, name);
    if (PyModule_Check(object->real)) return module_subclass_attribute(t, object, name);
  }
  PyTypeObject* type = object->type;
  if (type == torch.inference_mode_context && !object->existed) return builtin_method(t, object, name);
  bool handled = false;
  if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
    Answer answer = get_exception_attribute(t, object, name, &handled);
    if (handled) return answer;
  }
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {  // an object of a C type
    if (PyObject* value = _PyType_Lookup(type, name)) {
      if (Py_TYPE(value) == &PyMethodDescr_Type || Py_TYPE(value) == &PyWrapperDescr_Type) return builtin_method(t, object, name);
      if (name_is(name, "__class__")) return class_of(t, type);
      if (object->by_identity && object->real &&
          (PyCFunction_Check(object->real) || Py_TYPE(value) == &PyMemberDescr_Type || Py_TYPE(object->real) == &PyMethodDescr_Type ||
           Py_TYPE(object->real) == &PyWrapperDescr_Type)) {
        py::Ref result = py::Ref::steal(PyObject_GetAttr(object->real, name));
        if (!result) return t.raise_python_error();
        return t.lazy(result.get(), t.sources().keyed(SourceKind::kAttr, object->source, name));
      }
      if (Py_TYPE(value)->tp_descr_get == nullptr || Py_TYPE(value) == &PyGetSetDescr_Type || Py_TYPE(value) == &PyMemberDescr_Type)
        return t.fail(Reason::unsupported_attribute, "attribute '" + text_of(name) + "' of " + type->tp_name);
    } else if (type->tp_getattro == PyObject_GenericGetAttr && !type->tp_dictoffset) {
      return no_attribute(t, object, name);
    }
    if (type->tp_getattro != PyObject_GenericGetAttr)
      return t.fail(Reason::unsupported_attribute, "attribute '" + text_of(name) + "' of " + type->tp_name);
    return generic_get_attribute(t, object, name);
  }
  PyObject* getattribute_name = t.intern("__getattribute__");
  t.guard_class_attribute(object->source, type, getattribute_name, _PyType_Lookup(type, getattribute_name));
  if (!inherits_object_getattribute(type, t)) {
    Variable* hook = TRY(class_lookup(t, object, t.intern("__getattribute__")));
    hook = t.force(hook);
    if (hook->kind != Kind::kFunction) return t.fail(Reason::unsupported_attribute, std::string("__getattribute__ of ") + type->tp_name);
    // __getattr__ after it is CPython's slot_tp_getattr_hook
    Answer answer = t.wait(call(t, hook, {{object, t.constant(name)}, {}}));
    if (answer.ok() || answer.failure()->kind != Failure::Kind::kRaise ||
        !exception_matches(answer.failure()->exception, PyExc_AttributeError))
      return answer;
    if (!_PyType_Lookup(type, t.intern("__getattr__"))) return answer;
    return call_special(t, object, "__getattr__", {{t.constant(name)}, {}});
  }
  PyObject* hook = _PyType_Lookup(type, t.intern("__getattr__"));
  auto guard_hook = [&] { t.guard_class_attribute(object->source, type, t.intern("__getattr__"), hook); };
  if (!hook) {
    Answer answer = generic_get_attribute(t, object, name);
    if (!answer.ok() && answer.failure()->kind == Failure::Kind::kRaise) guard_hook();
    return answer;
  }
  if (hook == torch.module_getattr && !_PyType_Lookup(type, name)) {
    if (auto* written = overlay(object, name); !written || !written->value) {
      PyObject* dict = object->existed ? instance_dict(object->real) : nullptr;
      if (written || !dict || !PyDict_GetItemWithError(dict, name)) {
        if (object->existed) t.guard(GuardKind::kInstanceLacks, object->source, name);
        t.guard_class_attribute(object->source, type, name, nullptr);
        guard_hook();
        bool found = false;
        Variable* value = TRY(module_attribute(t, object, name, &found));
        if (found) return value;
        return no_attribute(t, object, name);
      }
    }
  }
  Answer answer = generic_get_attribute(t, object, name);
  const bool pending = answer.ok() && !answer.value();
  if (pending) answer = t.wait(answer);  // a property that raises AttributeError goes on to __getattr__
  if (answer.ok() || answer.failure()->kind != Failure::Kind::kRaise ||
      !exception_matches(answer.failure()->exception, PyExc_AttributeError))
    return answer;
  guard_hook();
  if (hook == torch.module_getattr) {
    bool found = false;
    Variable* value = TRY(module_attribute(t, object, name, &found));
    if (found) return value;
    return answer;
  }
  return call_special(t, object, "__getattr__", {{t.constant(name)}, {}});
}

}  // namespace

Answer get_attribute(Tracer& t, Variable* object, PyObject* name) {
  object = t.force(object);
  switch (object->kind) {
    case Kind::kTensor:
      return get_tensor_attribute(t, static_cast<TensorVariable*>(object), name);
    case Kind::kObject:
      return object_attribute(t, static_cast<ObjectVariable*>(object), name);
    case Kind::kFunction:
      return function_attribute(t, static_cast<FunctionVariable*>(object), name);
    case Kind::kSuper:
      return get_super_attribute(t, static_cast<SuperVariable*>(object), name);
    case Kind::kBoundMethod: {
      auto* method = static_cast<BoundMethodVariable*>(object);
      if (name_is(name, "__self__")) return method->self;
      if (name_is(name, "__func__")) return method->function;
      if (name_is(name, "__class__")) return class_of(t, &PyMethod_Type);
      if (name_is(name, "__call__")) return object;
      return get_attribute(t, method->function, name);
    }
    case Kind::kPartial: {
      auto* partial = static_cast<PartialVariable*>(object);
      if (name_is(name, "func")) return partial->function;
      if (name_is(name, "args")) return t.tuple(partial->args);
      if (name_is(name, "keywords")) {
        DictVariable* keywords = t.dict();
        for (auto& [key, value] : partial->kwargs) dict_store(t, keywords, key, value);
        return keywords;
      }
      break;
    }
    case Kind::kSlice:
      for (int i = 0; i < 3; i++)
        if (name_is(name, i == 0 ? "start" : i == 1 ? "stop" : "step")) return static_cast<SliceVariable*>(object)->parts[i];
      break;
    case Kind::kCell:
      if (name_is(name, "cell_contents")) {
        Variable* contents = TRY(t.cell_contents(static_cast<CellVariable*>(object)));
        if (!contents) return t.raise_new(PyExc_ValueError, "Cell is empty");
        return contents;
      }
      break;
    case Kind::kTuple: {
      PyTypeObject* type = static_cast<TupleVariable*>(object)->type;
      PyObject* value = type == &PyTuple_Type ? nullptr : _PyType_Lookup(type, name);
      if (value && std::string_view(Py_TYPE(value)->tp_name).ends_with("collections._tuplegetter")) {
        py::Ref reduced = py::Ref::steal(PyObject_CallMethod(value, "__reduce__", nullptr));  // (type, (index, doc))
        if (!reduced) return t.raise_python_error();
        const Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(reduced.get(), 1), 0));
        t.guard_class_attribute(object->source, type, name, value);
        return static_cast<TupleVariable*>(object)->items.at(static_cast<size_t>(index));
      }
      if (value && Py_TYPE(value) == &PyMemberDescr_Type) return struct_field(t, static_cast<TupleVariable*>(object), name);
      if (value && (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && Py_TYPE(value) != &PyMethodDescr_Type &&
          Py_TYPE(value) != &PyWrapperDescr_Type && !name_is(name, "__class__")) {
        t.guard_class_attribute(object->source, type, name, value);
        return bind_class_value(t, object, type, name, value, class_source(t, nullptr, type, name));
      }
      break;
    }
    default:
      break;
  }
  if (name_is(name, "__class__")) {
    PyTypeObject* type = type_of(object);
    if (type) return class_of(t, type);
  }
  if (auto* constant = as_constant(object)) {
    PyTypeObject* type = Py_TYPE(constant->real);
    PyObject* value = _PyType_Lookup(type, name);
    if (!value) return no_attribute(t, object, name);
    if (Py_TYPE(value) == &PyMethodDescr_Type || Py_TYPE(value) == &PyWrapperDescr_Type || Py_TYPE(value) == &PyClassMethodDescr_Type ||
        PyCFunction_Check(value))
      return builtin_method(t, object, name);
    py::Ref result = py::Ref::steal(PyObject_GetAttr(constant->real, name));  // immutable values of C types: their attributes are pure
    if (!result) return t.raise_python_error();
    if (PyCallable_Check(result.get()) && !PyType_Check(result.get())) return builtin_method(t, object, name);
    if (PyType_Check(result.get())) return t.known_object(result.get());
    return t.constant(result.get());
  }
  PyTypeObject* type = type_of(object);
  if (!type) return t.fail(Reason::unsupported_attribute, "'" + text_of(name) + "' of " + describe(object));
  if (_PyType_Lookup(type, name)) return builtin_method(t, object, name);
  return no_attribute(t, object, name);
}

Result<bool> has_attribute(Tracer& t, Variable* object, PyObject* name) {
  Answer answer = t.wait(get_attribute(t, object, name));
  if (answer.ok()) return true;
  if (answer.failure()->kind == Failure::Kind::kRaise && exception_matches(answer.failure()->exception, PyExc_AttributeError)) return false;
  return Failed{answer.failure()};
}

}  // namespace pellucid::variables
