// Subscripts and lengths: container[key], its assignment and deletion, len(container). Sequences and dicts as CPython's mapping and
// sequence protocols; tensors become nodes of the graph.
#include "base/check.h"
#include "py/once.h"
#include "variables/values.h"

namespace pellucid::variables {
namespace {

Failed not_modelled(Tracer& t, Variable* container, Variable* key) {
  return t.fail(Reason::unsupported_operator, describe(container) + "[" + describe(key) + "]");
}

Failed bad_index_type(Tracer& t, const char* what, Variable* key) {
  return t.raise_new(PyExc_TypeError, "%s indices must be integers or slices, not %.200s", what, type_name(key));
}

// Whether CPython would take `key` as an index of a sequence; what can't be told is left to index_value.
Result<bool> indexes(Tracer& t, Variable* key) {
  if (key->kind == Kind::kTensor) return true;
  if (PyObject* value = known(t, key)) return PyIndex_Check(value) != 0;
  if (key->kind == Kind::kObject) return TRY(find_special(t, key, "__index__")).method != nullptr;
  return false;
}

Answer sequence_item(Tracer& t, const std::vector<Variable*>& items, Variable* key, const char* what) {
  if (!TRY(indexes(t, key))) return bad_index_type(t, what, key);
  Py_ssize_t index = TRY(index_value(t, key, PyExc_IndexError));
  const auto size = static_cast<Py_ssize_t>(items.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) return t.raise_new(PyExc_IndexError, "%s index out of range", what);
  return items[static_cast<size_t>(index)];
}

std::vector<Variable*> sliced(const std::vector<Variable*>& items, const SliceBounds& bounds) {
  std::vector<Variable*> result;
  result.reserve(static_cast<size_t>(bounds.count));
  for (Py_ssize_t i = 0, at = bounds.start; i < bounds.count; i++, at += bounds.step) result.push_back(items[static_cast<size_t>(at)]);
  return result;
}

Answer tuple_item(Tracer& t, TupleVariable* tuple, Variable* key) {
  const bool size = tuple->type == torch_size_type();
  if (!size && tuple->type->tp_as_mapping->mp_subscript != PyTuple_Type.tp_as_mapping->mp_subscript) return not_modelled(t, tuple, key);
  if (!is_slice(key)) return sequence_item(t, tuple->items, key, "tuple");
  SliceBounds bounds = TRY(slice_bounds(t, key, static_cast<Py_ssize_t>(tuple->items.size())));
  if (tuple->type == &PyTuple_Type && bounds.step == 1 && bounds.count == static_cast<Py_ssize_t>(tuple->items.size())) return tuple;
  return t.tuple(sliced(tuple->items, bounds), size ? tuple->type : &PyTuple_Type);
}

Answer list_item(Tracer& t, ListVariable* list, Variable* key) {
  if (!is_slice(key)) return sequence_item(t, list->items, key, "list");
  SliceBounds bounds = TRY(slice_bounds(t, key, static_cast<Py_ssize_t>(list->items.size())));
  return t.list(sliced(list->items, bounds));
}

Answer dict_item(Tracer& t, DictVariable* dict, Variable* key) {
  PyObject* object = nullptr;
  const bool may_be_there = TRY(lookup_key(t, real_index(dict), key, &object));
  if (may_be_there) {
    if (Variable* value = dict_find(dict, object)) return value;
  }
  Variable* factory = dict->default_factory ? t.force(dict->default_factory) : nullptr;
  if (factory && !(factory->kind == Kind::kConstant && factory->real == Py_None)) {
    object = TRY(dict_key(t, key));  // what can't be a key fails before the factory runs
    Variable* value = TRY(t.wait(call(t, factory, {})));
    dict_store(t, dict, object, value);
    t.mark_changed(dict);
    return value;
  }
  return raise_key_error(t, key);
}

// Indices of a tensor: ints, slices, None, ..., bools, tensors, and tuples or lists of them.
bool is_tensor_index(Tracer& t, Variable* key, int depth) {
  key = t.force(key);
  switch (key->kind) {
    case Kind::kTensor:
      return true;
    case Kind::kConstant:
      return is_data(key->real) && !PyUnicode_Check(key->real) && !PyFloat_Check(key->real);
    case Kind::kSlice:
      for (Variable* part : static_cast<SliceVariable*>(key)->parts) {
        if (part && !is_tensor_index(t, part, depth + 1)) return false;
      }
      return true;
    case Kind::kTuple:
    case Kind::kList: {
      const auto& items = key->kind == Kind::kTuple ? static_cast<TupleVariable*>(key)->items : static_cast<ListVariable*>(key)->items;
      for (Variable* item : items) {
        if (depth > 8 || !is_tensor_index(t, item, depth + 1)) return false;
      }
      return true;
    }
    default:
      return false;
  }
}

Answer tensor_item(Tracer& t, Variable* tensor, Variable* key) {
  static py::Once<PyObject*> kept_getitem;
  PyObject* const getitem = kept_getitem.get([] { return module_attribute("operator", "getitem"); });
  if (!is_tensor_index(t, key, 0)) return not_modelled(t, tensor, key);
  Arguments arguments;
  arguments.positional = {tensor, key};
  return t.torch_operator(getitem, nullptr, arguments);
}

Answer class_item(Tracer& t, Variable* cls, Variable* key) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls->real);
  py::Ref method = py::Ref::steal(PyObject_GetAttrString(cls->real, "__class_getitem__"));
  if (!method) {
    PyErr_Clear();
    return t.raise_new(PyExc_TypeError, "type '%.200s' is not subscriptable", type->tp_name);
  }
  PyObject* parameter = known(t, key);
  // types.GenericAlias made in C (list[int], torch.nn.ModuleList has none); typing's own run Python code.
  if (parameter == nullptr || !PyCFunction_Check(method.get())) return not_modelled(t, cls, key);
  py::Ref alias = py::Ref::steal(PyObject_GetItem(cls->real, parameter));
  if (!alias) return t.raise_python_error();
  return t.known_object(alias.get());
}

Answer object_item(Tracer& t, Variable* object, Variable* key) {
  PyObject* real = known(t, object);
  Special method = TRY(find_special(t, object, "__getitem__"));
  if (method.method && !method.builtin) {
    Arguments arguments;
    arguments.positional = {key};
    return call_special(t, object, "__getitem__", std::move(arguments));
  }
  if (!method.method) {
    if (real && PyType_Check(real)) return class_item(t, object, key);
    return t.raise_new(PyExc_TypeError, "'%.200s' object is not subscriptable", type_name(object));
  }
  if (Variable* inner = inner_of(object, method)) {
    auto* dict = as_dict(inner);
    if (dict == nullptr) return get_item(t, inner, key);
    PyObject* key_object = nullptr;
    if (TRY(lookup_key(t, real_index(dict), key, &key_object))) {
      if (Variable* value = dict_find(dict, key_object)) return value;
    }
    Special missing = TRY(find_special(t, object, "__missing__"));
    if (missing.method && !missing.builtin) {
      Arguments arguments;
      arguments.positional = {key};
      return call_special(t, object, "__missing__", std::move(arguments));
    }
    return dict_item(t, dict, key);
  }
  PyObject* index = known(t, key);
  if (real && index && is_data_type(method.builtin) && is_data(index) && !PyType_Check(real))
    return from_result(t, PyObject_GetItem(real, index));
  return not_modelled(t, object, key);
}

bool never_subscriptable(Variable* v) {
  switch (v->kind) {
    case Kind::kSet:
    case Kind::kFunction:
    case Kind::kBoundMethod:
    case Kind::kBuiltinMethod:
    case Kind::kSlice:
    case Kind::kIterator:
    case Kind::kGenerator:
    case Kind::kDictView:
      return true;
    default:
      return false;
  }
}

}  // namespace

Answer get_item(Tracer& t, Variable* container, Variable* key) {
  container = t.force(container);
  key = t.force(key);
  switch (container->kind) {
    case Kind::kTensor:
      return tensor_item(t, container, key);
    case Kind::kTuple:
      return tuple_item(t, static_cast<TupleVariable*>(container), key);
    case Kind::kList:
      return list_item(t, static_cast<ListVariable*>(container), key);
    case Kind::kDict:
      return dict_item(t, static_cast<DictVariable*>(container), key);
    case Kind::kObject:
      return object_item(t, container, key);
    case Kind::kConstant: {
      if (!is_data(container->real)) return not_modelled(t, container, key);
      PyObject* index = known(t, key);
      if (index && is_data(index)) return from_result(t, PyObject_GetItem(container->real, index));
      if (is_slice(key) || key->kind == Kind::kTensor || key->kind == Kind::kObject) return not_modelled(t, container, key);
      if (!PySequence_Check(container->real)) break;
      return t.raise_new(PyExc_TypeError,
                         PyUnicode_Check(container->real) ? "string indices must be integers, not '%.200s'"
                                                          : "indices must be integers or slices, not %.200s",
                         type_name(key));
    }
    default:
      break;
  }
  if (never_subscriptable(container) || container->kind == Kind::kConstant) {
    return t.raise_new(PyExc_TypeError, "'%.200s' object is not subscriptable", type_name(container));
  }
  return not_modelled(t, container, key);
}

namespace {

Status set_list_slice(Tracer& t, ListVariable* list, Variable* key, Variable* value) {
  SliceBounds bounds = TRY(slice_bounds(t, key, static_cast<Py_ssize_t>(list->items.size())));
  std::vector<Variable*> items;
  if (value) items = TRY(unpack(t, value));
  // The iterable may have changed the list: CPython resolves the slice before, and so do we, but clips again.
  bounds = TRY(slice_bounds(t, key, static_cast<Py_ssize_t>(list->items.size())));
  auto& target = list->items;
  if (bounds.step == 1) {
    const Py_ssize_t stop = bounds.stop < bounds.start ? bounds.start : bounds.stop;
    auto at = target.erase(target.begin() + bounds.start, target.begin() + stop);
    target.insert(at, items.begin(), items.end());
  } else if (value) {
    if (static_cast<Py_ssize_t>(items.size()) != bounds.count) {
      return t.raise_new(PyExc_ValueError, "attempt to assign sequence of size %zd to extended slice of size %zd",
                         static_cast<Py_ssize_t>(items.size()), bounds.count);
    }
    for (Py_ssize_t i = 0, at = bounds.start; i < bounds.count; i++, at += bounds.step)
      target[static_cast<size_t>(at)] = items[static_cast<size_t>(i)];
  } else {
    std::vector<bool> drop(target.size());
    for (Py_ssize_t i = 0, at = bounds.start; i < bounds.count; i++, at += bounds.step) drop[static_cast<size_t>(at)] = true;
    std::vector<Variable*> rest;
    for (size_t i = 0; i < target.size(); i++) {
      if (!drop[i]) rest.push_back(target[i]);
    }
    target = std::move(rest);
  }
  t.mark_changed(list);
  return Unit{};
}

Status store_list(Tracer& t, ListVariable* list, Variable* key, Variable* value) {  // value null: delete
  if (is_slice(key)) return set_list_slice(t, list, key, value);
  if (!TRY(indexes(t, key))) return bad_index_type(t, "list", key);
  Py_ssize_t index = TRY(index_value(t, key, PyExc_IndexError));
  const auto size = static_cast<Py_ssize_t>(list->items.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) return t.raise_new(PyExc_IndexError, "list assignment index out of range");
  if (value)
    list->items[static_cast<size_t>(index)] = value;
  else
    list->items.erase(list->items.begin() + index);
  t.mark_changed(list);
  return Unit{};
}

Status store_dict(Tracer& t, DictVariable* dict, Variable* key, Variable* value) {
  if (value) {
    PyObject* object = TRY(dict_key(t, key));
    dict_store(t, dict, object, value);
    t.mark_changed(dict);
    return Unit{};
  }
  PyObject* object = nullptr;
  const bool may_be_there = TRY(lookup_key(t, real_index(dict), key, &object));
  if (!may_be_there || !dict_remove(t, dict, object)) return raise_key_error(t, key);
  t.mark_changed(dict);
  return Unit{};
}

Status store_object(Tracer& t, Variable* object, Variable* key, Variable* value) {
  const char* name = value ? "__setitem__" : "__delitem__";
  Special method = TRY(find_special(t, object, name));
  if (method.method && !method.builtin) {
    std::vector<Variable*> arguments = {key};
    if (value) arguments.push_back(value);
    TRY(call_special_now(t, object, name, std::move(arguments)));
    return Unit{};
  }
  if (!method.method) {
    return t.raise_new(PyExc_TypeError, "'%.200s' object does%s support item %s", type_name(object), value ? " not" : "n't",
                       value ? "assignment" : "deletion");
  }
  Variable* inner = inner_of(object, method);
  if (inner == nullptr) return not_modelled(t, object, key);
  if (value)
    TRY(set_item(t, inner, key, value));
  else
    TRY(delete_item(t, inner, key));
  t.mark_changed(object);
  return Unit{};
}

}  // namespace

Status set_item(Tracer& t, Variable* container, Variable* key, Variable* value) {
  container = t.force(container);
  key = t.force(key);
  switch (container->kind) {
    case Kind::kList:
      return store_list(t, static_cast<ListVariable*>(container), key, value);
    case Kind::kDict:
      return store_dict(t, static_cast<DictVariable*>(container), key, value);
    case Kind::kObject:
      return store_object(t, container, key, value);
    case Kind::kTensor: {
      static py::Once<PyObject*> kept_setitem;
      PyObject* const setitem = kept_setitem.get([] { return module_attribute("operator", "setitem"); });
      value = t.force(value);
      const bool accepted = value->kind == Kind::kTensor || (value->kind == Kind::kConstant && PyNumber_Check(value->real));
      if (!accepted || !is_tensor_index(t, key, 0)) {
        return t.fail(Reason::unsupported_operator, describe(container) + "[" + describe(key) + "] = " + describe(value));
      }
      Arguments arguments;
      arguments.positional = {container, key, value};
      TRY(t.torch_operator(setitem, nullptr, arguments));
      return Unit{};
    }
    case Kind::kTuple:
    case Kind::kConstant:
    case Kind::kSet:
    case Kind::kDictView:
    case Kind::kFunction:
      return t.raise_new(PyExc_TypeError, "'%.200s' object does not support item assignment", type_name(container));
    default:
      return not_modelled(t, container, key);
  }
}

Status delete_item(Tracer& t, Variable* container, Variable* key) {
  container = t.force(container);
  key = t.force(key);
  switch (container->kind) {
    case Kind::kList:
      return store_list(t, static_cast<ListVariable*>(container), key, nullptr);
    case Kind::kDict:
      return store_dict(t, static_cast<DictVariable*>(container), key, nullptr);
    case Kind::kObject:
      return store_object(t, container, key, nullptr);
    case Kind::kTuple:
    case Kind::kConstant:
    case Kind::kSet:
    case Kind::kDictView:
    case Kind::kFunction:
      return t.raise_new(PyExc_TypeError, "'%.200s' object doesn't support item deletion", type_name(container));
    default:
      return not_modelled(t, container, key);
  }
}

Result<Py_ssize_t> length(Tracer& t, Variable* v) {
  v = t.force(v);
  switch (v->kind) {
    case Kind::kTuple: {
      auto* tuple = static_cast<TupleVariable*>(v);
      if (tuple->type->tp_as_sequence->sq_length != PyTuple_Type.tp_as_sequence->sq_length) break;
      return static_cast<Py_ssize_t>(tuple->items.size());
    }
    case Kind::kList:
      return static_cast<Py_ssize_t>(static_cast<ListVariable*>(v)->items.size());
    case Kind::kDict:
      return static_cast<Py_ssize_t>(static_cast<DictVariable*>(v)->live);
    case Kind::kSet:
      return PySet_GET_SIZE(real_keys(v));
    case Kind::kDictView:
      return static_cast<Py_ssize_t>(static_cast<DictViewVariable*>(v)->dict->live);
    case Kind::kConstant: {
      if (!is_data(v->real)) break;
      const Py_ssize_t size = PyObject_Size(v->real);
      if (size < 0) return t.raise_python_error();
      return size;
    }
    case Kind::kTensor: {
      py::Ref shape = py::Ref::steal(PyObject_GetAttrString(static_cast<TensorVariable*>(v)->fake, "shape"));
      if (!shape || !PyTuple_Check(shape.get())) {
        PyErr_Clear();
        break;
      }
      if (PyTuple_GET_SIZE(shape.get()) == 0) return t.raise_new(PyExc_TypeError, "len() of a 0-d tensor");
      const Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape.get(), 0));
      if (size < 0) {
        PyErr_Clear();
        break;
      }
      return size;
    }
    case Kind::kObject: {
      Special method = TRY(find_special(t, v, "__len__"));
      if (!method.method) return t.raise_new(PyExc_TypeError, "object of type '%.200s' has no len()", type_name(v));
      if (Variable* inner = inner_of(v, method)) return length(t, inner);
      if (method.builtin) break;
      Variable* result = TRY(call_special_now(t, v, "__len__", {}));
      const Py_ssize_t size = TRY(index_value(t, result, PyExc_OverflowError));
      if (size < 0) return t.raise_new(PyExc_ValueError, "__len__() should return >= 0");
      return size;
    }
    case Kind::kFunction:
    case Kind::kBoundMethod:
    case Kind::kBuiltinMethod:
    case Kind::kSlice:
    case Kind::kIterator:
    case Kind::kGenerator:
      return t.raise_new(PyExc_TypeError, "object of type '%.200s' has no len()", type_name(v));
    default:
      break;
  }
  return t.fail(Reason::unsupported_operator, "len() of " + describe(v));
}

Answer struct_field(Tracer& t, TupleVariable* tuple, PyObject* name) {
  py::Ref names = py::Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tuple->type), "__match_args__"));
  if (!names) PyErr_Clear();
  const Py_ssize_t index = names && PyTuple_CheckExact(names.get()) ? PySequence_Index(names.get(), name) : -1;
  if (index >= 0 && static_cast<size_t>(index) < tuple->items.size()) return tuple->items[static_cast<size_t>(index)];
  PyErr_Clear();
  return t.fail(Reason::unsupported_attribute, "attribute '" + std::string(text_of(name)) + "' of " + tuple->type->tp_name);
}

}  // namespace pellucid::variables
