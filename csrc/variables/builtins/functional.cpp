// functools, copy, dataclasses and enum as the traced program calls them.
#include <unordered_map>

#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

// partial(f, ...): a partial of a partial is one partial, as in partial_new.
Answer call_partial(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (arguments.positional.empty()) return unsupported(t, callable, arguments);
  Variable* function = arguments.positional[0];
  PyTypeObject* type = type_of(function);
  if (type == nullptr || type->tp_call == nullptr) return unsupported(t, callable, arguments);
  auto* made = t.make<PartialVariable>();
  made->function = function;
  if (auto* inner = as<PartialVariable>(function, Kind::kPartial)) {
    made->function = inner->function;
    made->args = inner->args;
    made->kwargs = inner->kwargs;
  }
  made->args.insert(made->args.end(), arguments.positional.begin() + 1, arguments.positional.end());
  for (auto& [name, v] : arguments.keywords) {
    bool replaced = false;
    for (auto& [old_name, old_value] : made->kwargs) {
      if (PyUnicode_Compare(old_name, name) != 0) continue;
      old_value = v;
      replaced = true;
    }
    if (!replaced) made->kwargs.emplace_back(name, v);
  }
  return made;
}

bool is_default(Tracer& t, Variable* v, const char* name) {
  if (v == nullptr) return true;
  PyObject* value = plain(t, v);
  PyObject* standard = library("functools", name);
  return value != nullptr && standard != nullptr && PyObject_RichCompareBool(value, standard, Py_EQ) == 1;  // tuples of str
}

// functools.update_wrapper(wrapper, wrapped), and so wraps(), of a function that the traced program made.
Answer call_update_wrapper(Tracer& t, PyObject* callable, Arguments& arguments) {
  Variable* values[4];
  if (!bind(arguments, {"wrapper", "wrapped", "assigned", "updated"}, 2, 0, values)) return unsupported(t, callable, arguments);
  auto* wrapper = as_function(values[0]);
  if (wrapper == nullptr || wrapper->real != nullptr || !is_default(t, values[2], "WRAPPER_ASSIGNMENTS") ||
      !is_default(t, values[3], "WRAPPER_UPDATES"))
    return unsupported(t, callable, arguments);
  Variable* wrapped = t.force(values[1]);
  auto* function = as_function(wrapped);
  bool has_no_dict = as_object(wrapped) && as_object(wrapped)->existed && wrapped->real != nullptr && PyCFunction_CheckExact(wrapped->real);
  if (function == nullptr && !has_no_dict) return unsupported(t, callable, arguments);
  // First everything that can fail.
  std::vector<std::pair<PyObject*, Variable*>> found;
  for (const char* name : {"__module__", "__name__", "__qualname__", "__doc__"}) {
    Answer value = t.wait(get_attribute(t, wrapped, t.intern(name)));
    if (!value.ok() && raised(value.failure(), PyExc_AttributeError)) continue;
    PyObject* text = known(t, t.force(TRY(std::move(value))));
    if (text == nullptr || !is_data(text)) return unsupported(t, callable, arguments);
    found.emplace_back(t.intern(name), t.constant(text));
  }
  Variable* annotations = nullptr;
  if (function != nullptr) annotations = TRY(t.wait(get_attribute(t, function, t.intern("__annotations__"))));
  if (function != nullptr && function->real != nullptr) {
    PyObject* dict = reinterpret_cast<PyFunctionObject*>(function->real)->func_dict;
    PyObject *name, *value;
    for (Py_ssize_t position = 0; dict != nullptr && PyDict_Next(dict, &position, &name, &value);) {
      if (!PyUnicode_Check(name)) return unsupported(t, callable, arguments);
      found.emplace_back(t.keep(name), TRY(t.wait(get_attribute(t, function, name))));
    }
  }
  if (function != nullptr) {
    for (auto& [name, value] : function->attributes) {
      if (value != nullptr) found.emplace_back(name, value);
    }
  }
  found.emplace_back(t.intern("__wrapped__"), wrapped);
  for (auto& [name, value] : found) TRY(set_attribute(t, wrapper, name, value));
  if (annotations != nullptr) wrapper->annotations = annotations;
  return wrapper;
}

// Values of which copy.copy and copy.deepcopy give the very same object.
bool copies_as_itself(Tracer& t, Variable* v) {
  if (plain(t, v) != nullptr || v->kind == Kind::kFunction) return true;
  auto* object = as_object(v);
  if (object == nullptr || !object->existed || object->real == nullptr) return false;
  return PyType_Check(object->real) || PyCFunction_CheckExact(object->real);
}

Answer call_copy(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  Variable* v = arguments.positional[0];
  if (copies_as_itself(t, v)) return v;
  if (auto* tuple = as_tuple(v); tuple && tuple->type == &PyTuple_Type) return v;
  if (auto* list = as_list(v)) return t.list(list->items);
  if (auto* dict = as_dict(v)) {
    return dict_copy(t, dict);
  }
  if (auto* set = as_set(v)) {
    if (set->frozen) return v;
    return make_set(t, PySet_New(real_keys(set)));
  }
  return unsupported(t, callable, arguments);
}

using Memo = std::unordered_map<Variable*, Variable*>;

// A deep copy made of fresh containers; null if something in it has a copy that is not modelled (tensors, objects).
Variable* deep_copy(Tracer& t, Variable* v, Memo& memo) {
  v = t.force(v);
  if (copies_as_itself(t, v)) return v;
  if (auto found = memo.find(v); found != memo.end()) return found->second;
  if (auto* list = as_list(v)) {
    ListVariable* made = t.list({});
    memo[v] = made;
    for (Variable* item : list->items) {
      Variable* copy = deep_copy(t, item, memo);
      if (copy == nullptr) return nullptr;
      made->items.push_back(copy);
    }
    return made;
  }
  if (auto* dict = as_dict(v); dict && dict->type == &PyDict_Type) {
    DictVariable* made = t.dict();
    memo[v] = made;
    for (auto& [key, value] : dict->entries) {
      if (value == nullptr) continue;
      if (!is_data(key)) return nullptr;
      Variable* copy = deep_copy(t, value, memo);
      if (copy == nullptr) return nullptr;
      dict_store(t, made, key, copy);
    }
    return made;
  }
  if (auto* tuple = as_tuple(v); tuple && tuple->type == &PyTuple_Type) {
    std::vector<Variable*> items;
    bool same = true;
    for (Variable* item : tuple->items) {
      Variable* copy = deep_copy(t, item, memo);
      if (copy == nullptr) return nullptr;
      same = same && copy == t.force(item);
      items.push_back(copy);
    }
    if (auto found = memo.find(v); found != memo.end()) return found->second;  // a cycle through a list made it
    return memo[v] = same ? v : t.tuple(std::move(items));
  }
  if (auto* set = as_set(v); set && !set->frozen) {
    py::Ref keys = py::Ref::steal(PySequence_Tuple(real_keys(set)));
    if (!keys || !is_data(keys.get())) return PyErr_Clear(), nullptr;
    return memo[v] = make_set(t, PySet_New(real_keys(set)));
  }
  return nullptr;
}

Answer call_deepcopy(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  Memo memo;
  Variable* made = deep_copy(t, arguments.positional[0], memo);
  if (made == nullptr) return unsupported(t, callable, arguments);
  return made;
}

PyTypeObject* class_or_class_of(Tracer& t, Variable* v) {
  PyTypeObject* type = class_of(t, v);
  return type != nullptr ? type : type_of(v);
}

// dataclasses.fields(x): the Field objects of the class, which don't change.
Answer call_fields(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  PyTypeObject* type = class_or_class_of(t, arguments.positional[0]);
  if (type == nullptr || mro_lookup(type, "__dataclass_fields__") == nullptr) return unsupported(t, callable, arguments);
  py::Ref fields = py::Ref::steal(PyObject_CallOneArg(callable, reinterpret_cast<PyObject*>(type)));
  if (!fields) return t.raise_python_error();
  std::vector<Variable*> items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.get()); i++) items.push_back(t.known_object(PyTuple_GET_ITEM(fields.get(), i)));
  return t.tuple(std::move(items));
}

Answer call_is_dataclass(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  PyTypeObject* type = class_or_class_of(t, arguments.positional[0]);
  if (type == nullptr) return unsupported(t, callable, arguments);
  return t.boolean(mro_lookup(type, "__dataclass_fields__") != nullptr);
}

}  // namespace

void add_functional(Table& table) {
  table.add("functools", {"partial"}, call_partial, 1);
  table.add("functools", {"update_wrapper"}, call_update_wrapper, 2);
  table.polyfill("functools", {"reduce", "cmp_to_key"}, "functional");
  table.add("copy", {"copy"}, call_copy);
  table.add("copy", {"deepcopy"}, call_deepcopy);
  table.add("dataclasses", {"fields"}, call_fields);
  table.add("dataclasses", {"is_dataclass"}, call_is_dataclass);
}

}  // namespace pellucid::variables::builtins
