// Calls of classes: type.__call__, __new__ and __init__ in Python inlined, those of builtin classes modelled. Instances made here exist
// only in the trace until generated code makes them.
#include "variables/object.h"

#include "base/check.h"
#include "variables/builtins/builtins.h"
#include "variables/exception.h"

namespace pellucid::variables {
namespace {

using builtins::class_of;
using builtins::mro_lookup;

std::string name_of(PyTypeObject* type) { return builtins::callable_name(reinterpret_cast<PyObject*>(type)); }

bool is_dict_type(PyTypeObject* type) {
  return type == &PyDict_Type || reinterpret_cast<PyObject*>(type) == builtins::library("collections", "OrderedDict") ||
         reinterpret_cast<PyObject*>(type) == builtins::library("collections", "defaultdict");
}

// The class in the MRO whose C function makes the instances, as tp_new_wrapper's "static base": object for most.
PyTypeObject* native_base(PyTypeObject* type) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    PyObject* make = PyDict_GetItemString(base->tp_dict, "__new__");
    if (make != nullptr && PyCFunction_Check(make)) return base;
    if (is_dict_type(base)) return base;  // OrderedDict and defaultdict inherit dict's
  }
  return &PyBaseObject_Type;
}

ObjectVariable* new_object(Tracer& t, PyTypeObject* type, Variable* cls) {
  auto* object = t.make<ObjectVariable>();
  object->existed = false;
  object->type = type;
  object->class_variable = cls;
  return object;
}

bool has_enum_metaclass(PyTypeObject* type) {
  PyObject* meta = builtins::library("enum", "EnumMeta");
  return meta != nullptr && PyObject_TypeCheck(reinterpret_cast<PyObject*>(type), reinterpret_cast<PyTypeObject*>(meta));
}

// Color(value): the member of that value. Members are made with the class and stay.
Answer enum_member(Tracer& t, PyTypeObject* type, const Arguments& arguments) {
  auto failure = [&] { return t.fail(Reason::unsupported_callable, "enum " + name_of(type) + " called with these arguments"); };
  if (!arguments.only_positional(1, 1)) return failure();
  Variable* v = t.force(arguments.positional[0]);
  if (type_of(v) == type) return v;
  PyObject* value = builtins::plain(t, v);
  PyObject* members = PyDict_GetItemString(type->tp_dict, "_value2member_map_");
  if (value == nullptr || members == nullptr || !PyDict_Check(members)) return failure();
  PyObject *key, *member;
  for (Py_ssize_t position = 0; PyDict_Next(members, &position, &key, &member);) {
    if (!is_data(key)) return failure();  // comparing it may run code of the program
  }
  member = PyDict_GetItemWithError(members, value);
  if (member != nullptr) return t.known_object(member);
  PyErr_Clear();
  return failure();  // a composite flag, _missing_, or a ValueError
}

// The rest of type.__call__: __init__ of what __new__ made.
Answer initialize(Tracer& t, Variable* made, PyTypeObject* type, Arguments& arguments) {
  PyTypeObject* made_type = type_of(made);
  if (made_type == nullptr || !PyType_IsSubtype(made_type, type)) return made;
  bool excess = !arguments.positional.empty() || !arguments.keywords.empty();
  if (made_type->tp_init == PyBaseObject_Type.tp_init) {  // object_init
    if (excess && made_type->tp_new == PyBaseObject_Type.tp_new)
      return t.fail(Reason::unsupported_callable, name_of(type) + "() takes no arguments");
    return made;
  }
  Variable* init = TRY(class_lookup(t, made, t.intern("__init__")));
  if (init == nullptr) return made;
  init = t.force(init);
  if (init->real != nullptr && Py_TYPE(init->real) == &PyWrapperDescr_Type) {
    PyTypeObject* owner = PyDescr_TYPE(init->real);
    auto* object = as_object(made);
    if (object != nullptr && PyType_IsSubtype(owner, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
      TRY(init_exception(t, object, arguments));
      return made;
    }
    if (object != nullptr && object->inner != nullptr && (owner == &PyList_Type || is_dict_type(owner))) {
      TRY(init_container(t, object, owner, arguments));
      return made;
    }
    return t.fail(Reason::unsupported_callable, name_of(type) + ": __init__ of " + name_of(owner));
  }
  Arguments passed = arguments;
  passed.positional.insert(passed.positional.begin(), made);
  Variable* result = t.force(TRY(t.wait(call(t, init, std::move(passed)))));
  if (result->real != Py_None)
    return t.raise_new(PyExc_TypeError, "__init__() should return None, not '%.200s'", type_of(result) ? type_of(result)->tp_name : "?");
  return made;
}

}  // namespace

Answer new_builtin_instance(Tracer& t, PyTypeObject* base, Variable* cls, Arguments& arguments) {
  PyTypeObject* type = class_of(t, cls);
  auto failure = [&] {
    return t.fail(Reason::unsupported_callable, name_of(base) + ".__new__ of " + (type != nullptr ? name_of(type) : describe(cls)));
  };
  if (type == nullptr || !PyType_IsSubtype(type, base)) return failure();
  if (type->tp_flags & Py_TPFLAGS_IS_ABSTRACT) return failure();  // object_new's TypeError names the methods
  PyTypeObject* native = native_base(type);
  bool excess = !arguments.positional.empty() || !arguments.keywords.empty();
  cls = t.force(cls);
  if (base == &PyBaseObject_Type) {
    if (native != &PyBaseObject_Type) return failure();  // "not safe"
    if (excess && (type->tp_new != PyBaseObject_Type.tp_new || type->tp_init == PyBaseObject_Type.tp_init)) return failure();
    return new_object(t, type, cls);
  }
  if (PyType_IsSubtype(base, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
    if (!is_modelled_exception(native)) return failure();
    ObjectVariable* exception = new_object(t, type, cls);
    exception->arguments = arguments.positional;  // BaseException_new keeps them, whatever __init__ does
    return exception;
  }
  if (base != native && !(is_dict_type(base) && is_dict_type(native))) return failure();
  if (base == &PyTuple_Type) {
    if (builtins::is_torch_type(type, "torch", "Size") || !arguments.only_positional(0, 1)) return failure();
    if (arguments.positional.empty()) return t.tuple({}, type);
    return t.tuple(TRY(unpack(t, arguments.positional[0])), type);
  }
  if (base == &PyList_Type) {
    if (type == base) return t.list({});
    ObjectVariable* object = new_object(t, type, cls);
    object->inner = t.list({});
    return object;
  }
  if (is_dict_type(base)) {
    if (type == base) return t.dict(type);
    if (native != &PyDict_Type && reinterpret_cast<PyObject*>(native) != builtins::library("collections", "OrderedDict"))
      return failure();  // a factory would have to be set besides
    ObjectVariable* object = new_object(t, type, cls);
    object->inner = t.dict(native);
    return object;
  }
  if (type == base) {  // int.__new__(int, ...)
    PyObject* callable = reinterpret_cast<PyObject*>(type);
    return builtins::fold(t, callable, arguments);
  }
  return failure();
}

Status init_container(Tracer& t, ObjectVariable* object, PyTypeObject* base, Arguments& arguments) {
  CHECK(object->inner != nullptr) << name_of(base);
  // The constructor's arguments make a plain container first; whatever fails leaves the instance as it was.
  bool handled = false;
  PyTypeObject* plain_type = base == &PyList_Type ? &PyList_Type : type_of(object->inner);
  Variable* made = TRY(t.wait(call_builtin(t, reinterpret_cast<PyObject*>(plain_type), arguments, &handled)));
  CHECK(handled && made != nullptr) << name_of(plain_type);
  if (auto* list = as_list(object->inner)) {
    list->items = as_list(made)->items;  // list_init clears first
    return Unit{};
  }
  auto* dict = as_dict(object->inner);
  dict->default_factory = as_dict(made)->default_factory;
  for (auto& [key, value] : as_dict(made)->entries) {
    if (value != nullptr) dict_store(t, dict, key, value);
  }
  return Unit{};
}

Answer call_container_slot(Tracer& t, PyObject* descriptor, Variable* self, PyObject* name, Arguments& arguments) {
  auto is = [&](const char* text, size_t count) {
    return arguments.only_positional(count, count) && PyUnicode_CompareWithASCIIString(name, text) == 0;
  };
  if (Py_TYPE(descriptor) == &PyWrapperDescr_Type || is("__contains__", 1) || is("__getitem__", 1)) {
    auto& given = arguments.positional;
    if (is("__getitem__", 1)) return get_item(t, self, given[0]);
    if (is("__contains__", 1)) return contains(t, self, given[0]);
    if (is("__len__", 0)) return t.integer(TRY(length(t, self)));
    if (is("__iter__", 0)) return get_iterator(t, self);
    if (is("__setitem__", 2)) {
      TRY(set_item(t, self, given[0], given[1]));
      return t.none();
    }
    if (is("__delitem__", 1)) {
      TRY(delete_item(t, self, given[0]));
      return t.none();
    }
    constexpr const char* kComparisons[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
    for (int operation = 0; operation < 6; operation++) {
      if (is(kComparisons[operation], 1) && type_of(given[0]) == type_of(self)) return compare(t, operation, self, given[0]);
    }
  }
  return call_method(t, self, name, arguments);
}

namespace {

// `layers[:n]` makes a container: it registers what is there already, and nothing of it reaches the state of the program.
bool is_module_container(PyTypeObject* type) {
  for (const char* name : {"ModuleList", "Sequential", "ModuleDict"})
    if (type == builtins::torch_type("torch.nn", name)) return true;
  return false;
}

}  // namespace

Answer construct(Tracer& t, Variable* cls, Arguments arguments) {
  PyTypeObject* type = class_of(t, cls);
  if (type == nullptr) return t.fail(Reason::unsupported_callable, describe(cls));
  cls = t.force(cls);
  if (PyTypeObject* module = builtins::torch_type("torch.nn", "Module");
      module != nullptr && PyType_IsSubtype(type, module) && !is_module_container(type))
    return t.fail(Reason::unsupported_callable, "construction of the module " + name_of(type));
  if (type == &PyType_Type || PyType_IsSubtype(type, &PyType_Type))
    return t.fail(Reason::unsupported_callable, "construction of a class by " + name_of(type));
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type != &PyBaseObject_Type &&
      !PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
    bool handled = false;
    Answer answer = fold_call(t, reinterpret_cast<PyObject*>(type), arguments, &handled);
    if (handled) return answer;
    return t.fail(Reason::unsupported_callable, name_of(type));
  }
  Variable* make = t.force(TRY(get_attribute(t, cls, t.intern("__new__"))));
  Variable* made = nullptr;
  if (make->real != nullptr && PyCFunction_Check(make->real)) {
    PyObject* base = PyCFunction_GET_SELF(make->real);
    if (base == nullptr || !PyType_Check(base)) return t.fail(Reason::unsupported_callable, name_of(type));
    // What object_new and BaseException_new do with the arguments; containers take theirs in __init__.
    Arguments given;
    auto* base_type = reinterpret_cast<PyTypeObject*>(base);
    if (base_type != &PyList_Type && !is_dict_type(base_type)) given = arguments;
    made = TRY(new_builtin_instance(t, base_type, cls, given));
  } else {
    Arguments given = arguments;
    given.positional.insert(given.positional.begin(), cls);
    made = TRY(t.wait(call(t, make, std::move(given))));
  }
  return initialize(t, t.force(made), type, arguments);
}

Answer instantiate(Tracer& t, Variable* cls, Arguments arguments) {
  PyTypeObject* type = class_of(t, cls);
  if (type == nullptr) return t.fail(Reason::unsupported_callable, describe(cls));
  PyObject* callable = reinterpret_cast<PyObject*>(type);
  bool handled = false;
  Answer answer = call_torch(t, callable, arguments, &handled);
  if (handled) return answer;
  answer = call_builtin(t, callable, arguments, &handled);
  if (handled) return answer;
  if (PyObject* hook = mro_lookup(Py_TYPE(type), "__call__"); hook != mro_lookup(&PyType_Type, "__call__")) {
    if (has_enum_metaclass(type)) return enum_member(t, type, arguments);
    if (hook != nullptr && PyFunction_Check(hook)) return call_special(t, cls, "__call__", std::move(arguments));
    return t.fail(Reason::unsupported_callable, name_of(type) + ", called through its metaclass");
  }
  return construct(t, cls, std::move(arguments));
}

}  // namespace pellucid::variables
