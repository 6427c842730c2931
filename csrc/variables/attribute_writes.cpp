// Writing and deleting attributes by the rules of object.__setattr__ (CPython: _PyObject_GenericSetAttrWithDict, type_setattro): what the
// traced program writes is kept over the object until codegen stores it. Hooks, setters and descriptors are inlined.
#include "variables/attribute.h"
#include "variables/exception.h"
#include "variables/torch_types.h"

namespace pellucid::variables {

using GuardKind = guard::Kind;
using SourceKind = source::Kind;

namespace {

void write_overlay(Tracer& t, ObjectVariable* object, PyObject* name, Variable* value, bool slot) {
  auto* existing = overlay(object, name);
  if (existing && value && !existing->value) {  // it was deleted: what is stored now comes last in the dictionary
    object->attributes.erase(object->attributes.begin() + (existing - object->attributes.data()));
    object->attributes.push_back({t.keep(name), value, true, slot, true});
  } else if (existing) {
    existing->value = value;
    existing->written = true;
    existing->slot = slot;
    existing->removed |= !value;
  } else {
    object->attributes.push_back({t.keep(name), value, true, slot, !value});
  }
  if (object->existed) t.mark_changed(object);
}

}  // namespace

Status generic_set_attribute(Tracer& t, Variable* variable, PyObject* name, Variable* value) {
  variable = t.force(variable);
  if (auto* function = as_function(variable)) {
    if (name_is(name, "__name__") || name_is(name, "__qualname__")) {
      PyObject* text = value ? known(t, value) : nullptr;
      if (!text || function->real) return t.fail(Reason::unsupported_attribute, "writing __name__ of a function");
      (name_is(name, "__name__") ? function->name : function->qualname) = text;
      return Unit{};
    }
    if (name_is(name, "__code__") || name_is(name, "__defaults__") || name_is(name, "__kwdefaults__") || name_is(name, "__dict__") ||
        name_is(name, "__annotations__"))
      return t.fail(Reason::unsupported_attribute, "writing '" + text_of(name) + "' of a function");
    for (auto& [key, old] : function->attributes)
      if (PyUnicode_Compare(key, name) == 0) {
        old = value;
        if (function->real) t.mark_changed(function);
        return Unit{};
      }
    function->attributes.emplace_back(t.keep(name), value);
    if (function->real) t.mark_changed(function);
    return Unit{};
  }
  if (auto* cell = as<CellVariable>(variable, Kind::kCell); cell && name_is(name, "cell_contents")) {
    cell->contents = value;
    cell->loaded = true;
    if (cell->real) t.mark_changed(cell);
    return Unit{};
  }
  auto* object = as_object(variable);
  if (!object) return t.fail(Reason::unsupported_attribute, "writing '" + text_of(name) + "' of " + describe(variable));
  if (object->real && object->existed && (PyModule_Check(object->real) || PyType_Check(object->real))) {
    if (PyType_Check(object->real)) {
      auto* cls = reinterpret_cast<PyTypeObject*>(object->real);
      if (!(cls->tp_flags & Py_TPFLAGS_HEAPTYPE) || Py_TYPE(cls)->tp_setattro != PyType_Type.tp_setattro)
        return t.fail(Reason::unsupported_attribute, std::string("writing to class ") + cls->tp_name);
      if (PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_GET_LENGTH(name) > 4 && PyUnicode_READ_CHAR(name, 1) == '_')
        return t.fail(Reason::unsupported_attribute, "writing a special attribute of a class");
      if (_PyType_Lookup(Py_TYPE(cls), name))
        return t.fail(Reason::unsupported_attribute, "writing a class attribute that the metaclass defines");
    }
    if (!value && !overlay(object, name)) return t.fail(Reason::unsupported_attribute, "deleting an attribute of a module or class");
    write_overlay(t, object, name, value, false);
    return Unit{};
  }
  PyTypeObject* type = object->type;
  bool slot = false;
  PyObject* from_class = _PyType_Lookup(type, name);
  t.guard_class_attribute(object->source, type, name, from_class);
  if (from_class && Py_TYPE(from_class)->tp_descr_set) {
    PyTypeObject* kind = Py_TYPE(from_class);
    if (kind == &PyProperty_Type) {
      py::Ref function = py::Ref::steal(PyObject_GetAttrString(from_class, value ? "fset" : "fdel"));
      if (function.get() == Py_None)
        return t.raise_new(PyExc_AttributeError,
                           value ? "property '%U' of '%.100s' object has no setter" : "property '%U' of '%.100s' object has no deleter",
                           name, type->tp_name);
      const source::Source* where = class_source(t, object->source, type, name);
      Variable* setter = t.lazy(function.get(), t.sources().keyed(SourceKind::kAttr, where, t.intern(value ? "fset" : "fdel")));
      Arguments arguments{{object}, {}};
      if (value) arguments.positional.push_back(value);
      (void)TRY(t.wait(call(t, setter, std::move(arguments))));
      return Unit{};
    }
    if (kind == &PyMemberDescr_Type) {
      slot = true;
    } else if (kind->tp_flags & Py_TPFLAGS_HEAPTYPE) {
      const source::Source* where = class_source(t, object->source, type, name);
      Arguments arguments{{object}, {}};
      if (value) arguments.positional.push_back(value);
      (void)TRY(t.wait(call_special(t, t.lazy(from_class, where), value ? "__set__" : "__delete__", std::move(arguments))));
      return Unit{};
    } else {
      bool handled = false;
      if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
        Status status = set_exception_attribute(t, object, name, value, &handled);
        if (handled) return status;
      }
      return t.fail(Reason::unsupported_attribute, "writing '" + text_of(name) + "' of " + type->tp_name);
    }
  }
  if (!slot && object->existed && !instance_dict(object->real)) return no_attribute(t, object, name);
  if (!slot && !object->existed && !type->tp_dictoffset && !(type->tp_flags & Py_TPFLAGS_MANAGED_DICT))
    return no_attribute(t, object, name);
  if (!value) {  // delete: must exist
    auto* written = overlay(object, name);
    bool exists = written ? written->value != nullptr : false;
    if (!written && object->existed && !slot) {
      exists = PyDict_GetItemWithError(instance_dict(object->real), name) != nullptr;
      t.guard(exists ? GuardKind::kDictHas : GuardKind::kDictLacks, t.sources().derived(SourceKind::kDictOf, object->source), name);
    } else if (!written && object->existed) {
      return t.fail(Reason::unsupported_attribute, "deleting a slot");
    }
    if (!exists) return t.raise_new(PyExc_AttributeError, "%U", name);
  }
  write_overlay(t, object, name, value, slot);
  return Unit{};
}

namespace {

// torch.nn.Module.__setattr__ for the plain cases: a value that is neither parameter, module nor buffer goes to the instance dict; a
// tensor under a registered buffer's name goes to _buffers. The rest is left to eager execution.
Status set_module_attribute(Tracer& t, ObjectVariable* module, PyObject* name, Variable* value) {
  const TorchTypes& torch = *torch_types();
  value = t.force(value);
  PyTypeObject* type = type_of(value);
  if (!type || PyType_IsSubtype(type, torch.parameter) || PyType_IsSubtype(type, torch.module) || PyType_IsSubtype(type, torch.buffer))
    return t.fail(Reason::unsupported_attribute, "registering '" + text_of(name) + "' on a module");
  PyObject* dict = module->existed ? instance_dict(module->real) : nullptr;
  if (!dict) return t.fail(Reason::unsupported_attribute, "attributes of a module made in the graph");
  for (const char* part : {"_parameters", "_modules", "_buffers"}) {
    PyObject* values = PyDict_GetItemString(dict, part);
    if (!values || !PyDict_Check(values)) return t.fail(Reason::unsupported_attribute, std::string("module without ") + part);
    const source::Source* from = t.sources().keyed(SourceKind::kInstanceItem, module->source, t.intern(part));
    t.guard(GuardKind::kId, from, values);
    if (PyDict_GetItemWithError(values, name)) {
      if (part[1] != 'b' || (value->kind != Kind::kTensor && known(t, value) != Py_None))
        return t.fail(Reason::unsupported_attribute, "replacing '" + text_of(name) + "' of a module");
      auto* buffers = as_dict(t.force(t.lazy(values, from)));
      if (!buffers) return t.fail(Reason::unsupported_attribute, "_buffers of a module");
      dict_store(t, buffers, name, value);
      t.mark_changed(buffers);
      return Unit{};
    }
    t.guard(GuardKind::kDictLacks, from, name);
  }
  return generic_set_attribute(t, module, name, value);
}

}  // namespace

Status set_attribute(Tracer& t, Variable* variable, PyObject* name, Variable* value) {
  variable = t.force(variable);
  if (auto* tensor = as_tensor(variable)) return set_tensor_attribute(t, tensor, name, value);
  if (auto* object = as_object(variable); object && (!object->real || !(PyType_Check(object->real) || PyModule_Check(object->real)))) {
    static PyObject* plain = _PyType_Lookup(&PyBaseObject_Type, t.intern("__setattr__"));
    PyObject* hook = _PyType_Lookup(object->type, t.intern("__setattr__"));
    t.guard_class_attribute(object->source, object->type, t.intern("__setattr__"), hook);
    if (hook != plain) {
      if (hook == torch_types()->module_setattr) return set_module_attribute(t, object, name, value);
      if (PyFunction_Check(hook)) {
        (void)TRY(t.wait(call_special(t, object, "__setattr__", {{t.constant(name), value}, {}})));
        return Unit{};
      }
      if (!PyType_IsSubtype(object->type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException)))
        return t.fail(Reason::unsupported_attribute, std::string("__setattr__ of ") + object->type->tp_name);
    }
  }
  return generic_set_attribute(t, variable, name, value);
}

Status delete_attribute(Tracer& t, Variable* variable, PyObject* name) {
  variable = t.force(variable);
  auto* object = as_object(variable);
  if (!object || (object->real && (PyType_Check(object->real) || PyModule_Check(object->real))))
    return t.fail(Reason::unsupported_attribute, "deleting '" + text_of(name) + "' of " + describe(variable));
  static PyObject* plain = _PyType_Lookup(&PyBaseObject_Type, t.intern("__delattr__"));
  PyObject* hook = _PyType_Lookup(object->type, t.intern("__delattr__"));
  t.guard_class_attribute(object->source, object->type, t.intern("__delattr__"), hook);
  if (hook != plain) {
    if (!PyFunction_Check(hook) || PyType_IsSubtype(object->type, torch_types()->module))
      return t.fail(Reason::unsupported_attribute, std::string("__delattr__ of ") + object->type->tp_name);
    (void)TRY(t.wait(call_special(t, object, "__delattr__", {{t.constant(name)}, {}})));
    return Unit{};
  }
  return generic_set_attribute(t, object, name, nullptr);
}

}  // namespace pellucid::variables
