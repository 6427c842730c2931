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
  table.polyfill("functools", {"reduce", "cmp_to_key"}, "functional");
  table.add("copy", {"copy"}, call_copy);
  table.add("copy", {"deepcopy"}, call_deepcopy);
  table.add("dataclasses", {"fields"}, call_fields);
  table.add("dataclasses", {"is_dataclass"}, call_is_dataclass);
}

}  // namespace pellucid::variables::builtins
