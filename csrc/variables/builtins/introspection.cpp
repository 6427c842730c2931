// What values are: len, isinstance, issubclass, type, callable, id, hash, super. Classes of the program may answer in Python; those
// answers are inlined, the builtin and abstract ones are computed from the types, which are guarded.
#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

constexpr int kMaxDepth = 40;

PyObject* abc_method(const char* name) {  // ABCMeta's own __instancecheck__, __subclasscheck__
  auto* meta = reinterpret_cast<PyTypeObject*>(library("abc", "ABCMeta"));
  return meta != nullptr ? mro_lookup(meta, name) : nullptr;
}

bool is_standard_module(PyTypeObject* type) {
  PyObject* module = PyDict_GetItemString(type->tp_dict, "__module__");
  if (module == nullptr || !PyUnicode_Check(module)) return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE);
  for (const char* name :
       {"builtins", "collections", "collections.abc", "_collections_abc", "numbers", "typing", "abc", "io", "contextlib", "os"}) {
    if (PyUnicode_CompareWithASCIIString(module, name) == 0) return true;
  }
  return false;
}

// Whether issubclass(x, cls), as ABCMeta does it, runs code of the standard library only: the hook of `cls` and those of its
// subclasses and registered classes, which it asks too.
bool subclass_hooks_are_standard(PyTypeObject* cls, int depth) {
  if (depth > kMaxDepth) return false;
  PyObject* hook = mro_lookup(cls, "__subclasshook__");
  if (hook != mro_lookup(&PyBaseObject_Type, "__subclasshook__")) {
    bool standard = false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cls->tp_mro); i++) {
      auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(cls->tp_mro, i));
      if (PyDict_GetItemString(base->tp_dict, "__subclasshook__") != hook) continue;
      standard = is_standard_module(base);
      break;
    }
    if (!standard) return false;
  }
  PyObject* check = mro_lookup(Py_TYPE(cls), "__subclasscheck__");
  if (check != abc_method("__subclasscheck__") && check != mro_lookup(&PyType_Type, "__subclasscheck__")) return false;
  if (check == mro_lookup(&PyType_Type, "__subclasscheck__")) return true;
  py::Ref subclasses = py::Ref::steal(PyObject_CallMethod(reinterpret_cast<PyObject*>(cls), "__subclasses__", nullptr));
  if (!subclasses || !PyList_Check(subclasses.get())) return PyErr_Clear(), false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(subclasses.get()); i++) {
    PyObject* subclass = PyList_GET_ITEM(subclasses.get(), i);
    if (!PyType_Check(subclass) || !subclass_hooks_are_standard(reinterpret_cast<PyTypeObject*>(subclass), depth + 1)) return false;
  }
  return true;
}

Failed class_check_failed(Tracer& t, Variable* object, Variable* cls) {
  return t.fail(Reason::unsupported_builtin, "isinstance or issubclass of " + describe(object) + " and " + describe(cls));
}

// The classes in a tuple or a union (int | None); null for a single class.
const std::vector<Variable*>* alternatives(Tracer& t, Variable* cls, std::vector<Variable*>* storage) {
  if (auto* tuple = as_tuple(cls)) return &tuple->items;
  if (cls->real != nullptr && Py_TYPE(cls->real) == reinterpret_cast<PyTypeObject*>(library("types", "UnionType"))) {
    py::Ref args = py::Ref::steal(PyObject_GetAttrString(cls->real, "__args__"));
    for (Py_ssize_t i = 0; args && i < PyTuple_GET_SIZE(args.get()); i++)
      storage->push_back(t.known_object(PyTuple_GET_ITEM(args.get(), i)));
    PyErr_Clear();
    return storage;
  }
  return nullptr;
}

// The answer of issubclass(type, cls) when no code of the program is needed for it; `method` is the special method that decides.
Result<bool> check_class(Tracer& t, PyTypeObject* type, PyTypeObject* cls, const char* method, Variable* object, Variable* cls_variable) {
  PyObject* check = mro_lookup(Py_TYPE(cls), method);
  if (may_be_written(Py_TYPE(cls))) t.guard_class_attribute(nullptr, Py_TYPE(cls), t.intern(method), check);
  if (check == mro_lookup(&PyType_Type, method)) return PyType_IsSubtype(type, cls) != 0;
  if (is_torch_type(cls, "torch", "Tensor")) return PyType_IsSubtype(type, cls) != 0;
  bool is_parameter = is_torch_type(cls, "torch.nn.parameter", "Parameter"), is_buffer = is_torch_type(cls, "torch.nn.parameter", "Buffer");
  PyTypeObject* tensor = torch_type("torch", "Tensor");
  if (is_parameter || is_buffer) {
    // Their metaclasses also look at a mark (_is_param, _is_buffer) on plain tensors.
    if (tensor == nullptr || !PyType_IsSubtype(type, tensor)) return false;
    if (is_parameter && PyType_IsSubtype(type, cls)) return true;
    return TRY(has_attribute(t, object, t.intern(is_parameter ? "_is_param" : "_is_buffer")));
  }
  if (check == abc_method(method)) {
    if (PyType_IsSubtype(type, cls)) return true;  // what ABCMeta finds too, unless a hook denies it
    if (!subclass_hooks_are_standard(cls, 0)) return class_check_failed(t, object, cls_variable);
    int answer = PyObject_IsSubclass(reinterpret_cast<PyObject*>(type), reinterpret_cast<PyObject*>(cls));
    if (answer < 0) return t.raise_python_error();
    return answer != 0;
  }
  return class_check_failed(t, object, cls_variable);
}

// A __instancecheck__ or __subclasscheck__ written in Python by the program's metaclass.
bool has_python_check(PyTypeObject* cls, const char* method) {
  PyObject* check = mro_lookup(Py_TYPE(cls), method);
  if (check == nullptr || !PyFunction_Check(check) || check == abc_method(method)) return false;
  return !is_torch_type(cls, "torch.nn.parameter", "Parameter") && !is_torch_type(cls, "torch.nn.parameter", "Buffer");
}

Result<bool> is_instance(Tracer& t, Variable* object, Variable* cls, int depth) {
  cls = t.force(cls);
  if (depth > kMaxDepth) return class_check_failed(t, object, cls);
  std::vector<Variable*> storage;
  if (const auto* classes = alternatives(t, cls, &storage)) {
    for (Variable* candidate : *classes) {
      if (TRY(is_instance(t, object, candidate, depth + 1))) return true;
    }
    return false;
  }
  PyTypeObject* type = type_of(object);
  PyTypeObject* wanted = class_of(t, cls);
  if (wanted == nullptr && cls->real == Py_None && depth > 0) wanted = Py_TYPE(Py_None);  // int | None
  if (type == nullptr || wanted == nullptr) return class_check_failed(t, object, cls);
  if (type == wanted) return true;  // before any metaclass is asked
  t.guard_mro(object->source, type);
  if (has_python_check(wanted, "__instancecheck__"))
    return truth(t, TRY(t.wait(call_special(t, cls, "__instancecheck__", {{object}, {}}))));
  bool answer = TRY(check_class(t, type, wanted, "__instancecheck__", object, cls));
  if (answer) return true;
  // isinstance also believes an object's __class__.
  if (mro_lookup(type, "__class__") != mro_lookup(&PyBaseObject_Type, "__class__") && (type->tp_flags & Py_TPFLAGS_HEAPTYPE))
    return class_check_failed(t, object, cls);
  return false;
}

Answer call_isinstance(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  return t.boolean(TRY(is_instance(t, arguments.positional[0], arguments.positional[1], 0)));
}

Result<bool> is_subclass(Tracer& t, Variable* derived, Variable* cls, int depth) {
  cls = t.force(cls);
  if (depth > kMaxDepth) return class_check_failed(t, derived, cls);
  std::vector<Variable*> storage;
  if (const auto* classes = alternatives(t, cls, &storage)) {
    for (Variable* candidate : *classes) {
      if (TRY(is_subclass(t, derived, candidate, depth + 1))) return true;
    }
    return false;
  }
  PyTypeObject* type = class_of(t, derived);
  PyTypeObject* wanted = class_of(t, cls);
  if (type == nullptr || wanted == nullptr) return class_check_failed(t, derived, cls);
  t.guard_mro(nullptr, type);
  if (has_python_check(wanted, "__subclasscheck__"))
    return truth(t, TRY(t.wait(call_special(t, cls, "__subclasscheck__", {{derived}, {}}))));
  // The mark on tensors concerns instances only.
  if (is_torch_type(wanted, "torch.nn.parameter", "Parameter") || is_torch_type(wanted, "torch.nn.parameter", "Buffer"))
    return PyType_IsSubtype(type, wanted) != 0;
  return check_class(t, type, wanted, "__subclasscheck__", derived, cls);
}

Answer call_issubclass(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  return t.boolean(TRY(is_subclass(t, arguments.positional[0], arguments.positional[1], 0)));
}

Answer call_type(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);  // a class made in the graph
  Variable* v = arguments.positional[0];
  if (auto* object = as_object(v); object && object->class_variable) return object->class_variable;
  PyTypeObject* type = type_of(v);
  if (type == nullptr) return unsupported(t, callable, arguments);
  return t.known_object(reinterpret_cast<PyObject*>(type));
}

Answer call_callable(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  PyTypeObject* type = type_of(arguments.positional[0]);
  if (type == nullptr) return unsupported(t, callable, arguments);
  return t.boolean(type->tp_call != nullptr);
}

// The object outside whose identity is guarded, or null.
PyObject* identity_of(Variable* v) {
  auto* object = as_object(v);
  return object && object->existed && object->by_identity ? object->real : nullptr;
}

Answer call_id(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  PyObject* real = identity_of(arguments.positional[0]);
  if (real == nullptr) real = arguments.positional[0]->real == Py_None ? Py_None : nullptr;
  if (real == nullptr) return unsupported(t, callable, arguments);
  return t.constant_new(PyLong_FromVoidPtr(real));
}

Answer call_hash(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  Variable* v = arguments.positional[0];
  auto* object = as_object(v);
  if (object == nullptr) {
    if (v->kind == Kind::kConstant || v->kind == Kind::kTuple || (as_set(v) && as_set(v)->frozen)) return fold(t, callable, arguments);
    return unsupported(t, callable, arguments);  // a TypeError, or the identity of a value without one
  }
  PyObject* real = identity_of(v);
  if (real != nullptr && (Py_TYPE(real)->tp_hash == PyBaseObject_Type.tp_hash || Py_TYPE(real)->tp_hash == PyType_Type.tp_hash))
    return t.constant_new(PyLong_FromSsize_t(Py_TYPE(real)->tp_hash(real)));
  Variable* method = TRY(class_lookup(t, v, t.intern("__hash__")));
  if (method == nullptr || !as_function(t.force(method))) return unsupported(t, callable, arguments);
  Variable* value = t.force(TRY(t.wait(call_special(t, v, "__hash__", {}))));
  PyObject* number = plain(t, value);
  if (number == nullptr || !PyLong_CheckExact(number)) return unsupported(t, callable, arguments);
  Py_ssize_t as_hash = PyLong_AsSsize_t(number);
  if (as_hash == -1 && PyErr_Occurred()) {  // slot_tp_hash: out of range, the int's own hash is taken
    PyErr_Clear();
    return t.constant_new(PyLong_FromSsize_t(PyObject_Hash(number)));
  }
  return as_hash == -1 ? t.integer(-2) : value;
}

Answer call_len(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  return t.integer(TRY(length(t, arguments.positional[0])));
}

Answer call_super(Tracer& t, PyObject* callable, Arguments& arguments) {
  // Without arguments it looks at the frame; whoever handles that calls this with the class and the first argument.
  if (!arguments.only_positional(2, 2)) return unsupported(t, callable, arguments);
  auto* made = t.make<SuperVariable>();
  made->start = arguments.positional[0];
  made->self = arguments.positional[1];
  PyTypeObject* start = class_of(t, made->start);
  PyTypeObject* self_class = class_of(t, made->self);
  PyTypeObject* type = type_of(made->self);
  bool fits = start != nullptr &&
              ((self_class != nullptr && PyType_IsSubtype(self_class, start)) || (type != nullptr && PyType_IsSubtype(type, start)));
  if (!fits) return unsupported(t, callable, arguments);
  return made;
}

}  // namespace

void add_introspection(Table& table) {
  table.add("builtins", {"isinstance"}, call_isinstance);
  table.add("builtins", {"issubclass"}, call_issubclass);
  table.add("builtins", {"type"}, call_type);
  table.add("builtins", {"callable"}, call_callable);
  table.add("builtins", {"id"}, call_id);
  table.add("builtins", {"hash"}, call_hash);
  table.add("builtins", {"len"}, call_len);
  table.add("builtins", {"super"}, call_super);
}

}  // namespace pellucid::variables::builtins
