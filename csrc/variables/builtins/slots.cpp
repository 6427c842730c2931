// Slot wrappers and methods of builtin classes called by name through a class or super(): object.__setattr__, type.__call__,
// dict.__setitem__ on an instance of a dict subclass ...
#include "variables/builtins/builtins.h"
#include "variables/exception.h"
#include "variables/object.h"

namespace pellucid::variables::builtins {
namespace {

PyObject* attribute_name(Tracer& t, Variable* v) {
  PyObject* name = plain(t, v);
  return name != nullptr && PyUnicode_CheckExact(name) ? t.keep(name) : nullptr;
}

Answer object_getattribute(Tracer& t, PyObject* callable, Arguments& arguments) {
  auto* object = arguments.only_positional(2, 2) ? as_object(arguments.positional[0]) : nullptr;
  PyObject* name = object != nullptr ? attribute_name(t, arguments.positional[1]) : nullptr;
  if (name == nullptr) return unsupported(t, callable, arguments);
  if (object->existed && object->real != nullptr && (PyType_Check(object->real) || PyModule_Check(object->real)))
    return unsupported(t, callable, arguments);
  return generic_get_attribute(t, object, name);
}

Answer object_setattr(Tracer& t, PyObject* callable, Arguments& arguments) {
  auto* object = arguments.only_positional(3, 3) ? as_object(arguments.positional[0]) : nullptr;
  PyObject* name = object != nullptr ? attribute_name(t, arguments.positional[1]) : nullptr;
  if (name == nullptr) return unsupported(t, callable, arguments);
  if (object->existed && object->real != nullptr && PyType_Check(object->real)) return unsupported(t, callable, arguments);
  TRY(generic_set_attribute(t, object, name, arguments.positional[2]));
  return t.none();
}

Answer object_delattr(Tracer& t, PyObject* callable, Arguments& arguments) {
  auto* object = arguments.only_positional(2, 2) ? as_object(arguments.positional[0]) : nullptr;
  PyObject* name = object != nullptr ? attribute_name(t, arguments.positional[1]) : nullptr;
  if (name == nullptr) return unsupported(t, callable, arguments);
  if (object->existed && object->real != nullptr && PyType_Check(object->real)) return unsupported(t, callable, arguments);
  TRY(generic_set_attribute(t, object, name, nullptr));
  return t.none();
}

Answer object_init(Tracer& t, PyObject* callable, Arguments& arguments) {
  // With more arguments it is an error or not by what the class overrides: object_init's rule, left to the instruction as written.
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  return t.none();
}

Answer object_eq(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  if (TRY(identical(t, arguments.positional[0], arguments.positional[1]))) return t.boolean(true);
  return t.constant(Py_NotImplemented);
}

// object.__init_subclass__(): nothing happens.
Answer do_nothing(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.keywords.empty()) return unsupported(t, callable, arguments);
  return t.none();
}

// C.__new__(cls, ...) of a builtin class.
Answer call_new(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (arguments.positional.empty()) return unsupported(t, callable, arguments);
  Variable* cls = arguments.positional[0];
  Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.keywords};
  PyObject* base = PyCFunction_GET_SELF(callable);
  return new_builtin_instance(t, reinterpret_cast<PyTypeObject*>(base), cls, rest);
}

Answer type_call(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (arguments.positional.empty()) return unsupported(t, callable, arguments);
  Variable* cls = arguments.positional[0];
  Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.keywords};
  return construct(t, cls, std::move(rest));
}

Answer type_check(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  PyTypeObject* cls = class_of(t, arguments.positional[0]);
  bool of_instance = callable == mro_lookup(&PyType_Type, "__instancecheck__");
  PyTypeObject* type = of_instance ? type_of(arguments.positional[1]) : class_of(t, arguments.positional[1]);
  if (cls == nullptr || type == nullptr) return unsupported(t, callable, arguments);
  return t.boolean(PyType_IsSubtype(type, cls) != 0);
}

Answer exception_init(Tracer& t, PyObject* callable, Arguments& arguments) {
  auto* exception = arguments.positional.empty() ? nullptr : as_object(arguments.positional[0]);
  if (exception == nullptr || exception->existed) return unsupported(t, callable, arguments);
  Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.keywords};
  TRY(init_exception(t, exception, rest));
  return t.none();
}

// A method of a builtin container called on an instance of a subclass: it works on what the instance holds.
Answer container_method(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (arguments.positional.empty()) return unsupported(t, callable, arguments);
  Variable* self = arguments.positional[0];
  PyObject* name = PyDescr_NAME(callable);
  PyTypeObject* owner = PyDescr_TYPE(callable);
  if (auto* object = as_object(self)) {
    if (object->inner == nullptr || !PyType_IsSubtype(type_of(object->inner), owner)) return unsupported(t, callable, arguments);
    if (PyUnicode_CompareWithASCIIString(name, "__init__") == 0) {
      Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.keywords};
      TRY(init_container(t, object, owner, rest));
      return t.none();
    }
    self = object->inner;
  } else {
    PyTypeObject* type = type_of(self);
    if (type == nullptr || !PyType_IsSubtype(type, owner)) return unsupported(t, callable, arguments);
  }
  Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.keywords};
  return call_container_slot(t, callable, self, name, rest);
}

void add_container(Table& table, PyTypeObject* type) {
  PyObject *name, *value;
  for (Py_ssize_t position = 0; PyDict_Next(type->tp_dict, &position, &name, &value);) {
    if (Py_TYPE(value) == &PyWrapperDescr_Type || Py_TYPE(value) == &PyMethodDescr_Type) {
      if (PyUnicode_CompareWithASCIIString(name, "__getattribute__") == 0) continue;
      table.add(value, container_method, 1);
    }
  }
}

}  // namespace

void add_slots(Table& table) {
  table.add("builtins", {"object.__getattribute__"}, object_getattribute);
  table.add("builtins", {"object.__setattr__"}, object_setattr, 2);
  table.add("builtins", {"object.__delattr__"}, object_delattr);
  table.add("builtins", {"object.__init__"}, object_init);
  table.add("builtins", {"object.__init_subclass__"}, do_nothing);
  table.add("builtins", {"object.__eq__"}, object_eq);
  table.add("builtins",
            {"object.__new__", "tuple.__new__", "list.__new__", "dict.__new__", "int.__new__", "float.__new__", "str.__new__",
             "BaseException.__new__", "Exception.__new__"},
            call_new, 1);
  table.add("builtins", {"type.__call__"}, type_call, 1);
  table.add("builtins", {"type.__instancecheck__", "type.__subclasscheck__"}, type_check);
  for (const char* name : {"dict.__getattribute__", "list.__getattribute__"}) table.add("builtins", {name}, object_getattribute);
  for (PyTypeObject* type : {&PyDict_Type, &PyList_Type}) add_container(table, type);
  if (auto* ordered = reinterpret_cast<PyTypeObject*>(library("collections", "OrderedDict"))) add_container(table, ordered);
  // Every exception class has a slot wrapper of its own for __init__.
  PyObject *name, *value;
  py::Ref builtins = py::Ref::steal(PyImport_ImportModule("builtins"));
  PyObject* dict = builtins ? PyModule_GetDict(builtins.get()) : nullptr;
  for (Py_ssize_t position = 0; dict && PyDict_Next(dict, &position, &name, &value);) {
    if (!PyExceptionClass_Check(value)) continue;
    auto* type = reinterpret_cast<PyTypeObject*>(value);
    if (PyObject* init = PyDict_GetItemString(type->tp_dict, "__init__")) table.add(init, exception_init, 1);
    if (PyObject* make = PyDict_GetItemString(type->tp_dict, "__new__")) table.add(make, call_new, 1);
  }
}

}  // namespace pellucid::variables::builtins
