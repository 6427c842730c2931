// dict, OrderedDict, defaultdict and their views: entries in order beside a real dict from key to position, so that hashing and
// equality of keys are CPython's own. Keys are real objects whose comparison runs C code only.
#include <algorithm>

#include "base/check.h"
#include "py/once.h"
#include "variables/values.h"

namespace pellucid::variables {
namespace {

bool hashes_by_identity(PyTypeObject* type) {
  return type->tp_hash == PyBaseObject_Type.tp_hash && type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

// Enum's hash is Python code of the standard library that hashes the member's name; equality is identity.
bool is_enum_member(PyObject* object) {
  static py::Once<PyObject*> kept_enum_type;
  PyObject* const enum_type = kept_enum_type.get([] { return module_attribute("enum", "Enum"); });
  static py::Once<PyObject*> kept_enum_hash;
  PyObject* const enum_hash = kept_enum_hash.get([&] { return PyObject_GetAttrString(enum_type, "__hash__"); });
  if (!PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(enum_type))) return false;
  if (Py_TYPE(object)->tp_richcompare != PyBaseObject_Type.tp_richcompare) {
    return PyLong_Check(object) && Py_TYPE(object)->tp_richcompare == PyLong_Type.tp_richcompare;
  }
  py::Ref hash = py::Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__hash__"));
  PyErr_Clear();
  return hash.get() == enum_hash;
}

// Whether the dict that stands for a traced one may hash and compare the object.
bool is_safe_key(PyObject* object) {
  if (is_data(object)) return true;
  PyTypeObject* type = Py_TYPE(object);
  if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) {
      if (!is_safe_key(PyTuple_GET_ITEM(object, i))) return false;
    }
    return true;
  }
  if (hashes_by_identity(type) || PyCFunction_Check(object) || type == &PyFunction_Type) return true;
  if (PyType_Check(object)) return hashes_by_identity(type) || type->tp_hash == PyType_Type.tp_hash;
  return is_enum_member(object);
}

bool is_unhashable(Variable* v) {
  return v->kind == Kind::kList || v->kind == Kind::kDict || v->kind == Kind::kSlice ||
         (v->kind == Kind::kSet && !static_cast<SetVariable*>(v)->frozen) ||
         (v->kind == Kind::kConstant && Py_TYPE(v->real) == &PySlice_Type) ||
         (v->kind == Kind::kDictView && static_cast<DictViewVariable*>(v)->which != 1);
}

Variable* unhashable_part(Tracer& t, Variable* v) {  // the first one CPython's hash would meet, or null
  v = t.force(v);
  if (is_unhashable(v)) return v;
  if (auto* tuple = as_tuple(v)) {
    for (Variable* item : tuple->items) {
      if (Variable* bad = unhashable_part(t, item)) return bad;
    }
  }
  return nullptr;
}

// The object that stands for the key, or null when none can: a value made by the traced program.
PyObject* key_object(Tracer& t, Variable* key) {
  if (PyObject* value = known(t, key)) return is_safe_key(value) ? value : nullptr;
  const bool by_identity = (key->kind == Kind::kFunction && key->real) || (key->kind == Kind::kTensor && key->real && key->source) ||
                           (key->kind == Kind::kObject && key->real && static_cast<ObjectVariable*>(key)->existed);
  if (!by_identity) return nullptr;
  if (key->kind != Kind::kTensor && !is_safe_key(key->real)) return nullptr;
  if (key->kind == Kind::kTensor && !(key->source && t.outside(key->real) == key)) return nullptr;
  t.guard(guard::Kind::kId, key->source, key->real);
  return key->real;
}

// A value that is surely no key of any modelled dict: it is hashed by identity and was made by the traced program.
bool is_new_identity(Variable* key) {
  switch (key->kind) {
    case Kind::kTensor:
      return key->real == nullptr;
    case Kind::kFunction:
      return key->real == nullptr;
    case Kind::kIterator:
    case Kind::kGenerator:
      return true;
    case Kind::kObject: {
      auto* object = static_cast<ObjectVariable*>(key);
      return !object->existed && object->inner == nullptr && hashes_by_identity(object->type);
    }
    default:
      return false;
  }
}

}  // namespace

Result<PyObject*> dict_key(Tracer& t, Variable* key) {
  key = t.force(key);
  if (key->kind == Kind::kConstant && is_data(key->real) && Py_TYPE(key->real) != &PySlice_Type) return key->real;
  if (Variable* bad = unhashable_part(t, key)) return raise_unhashable(t, bad);
  if (PyObject* object = key_object(t, key)) return object;
  return t.fail(Reason::unsupported_value, describe(key) + " as a key of a dict or set");
}

namespace {

// A value from outside that is hashed by identity and known by its type only: looking it up must not tie the entry to that object.
bool is_loose_identity(Variable* key) {
  if (key->real == nullptr || key->source == nullptr) return false;
  if (key->kind == Kind::kTensor) return true;
  auto* object = as_object(key);
  return object && object->existed && !object->by_identity && hashes_by_identity(object->type);
}

bool only_data_keys(PyObject* keys) {
  py::Ref iterator = py::Ref::steal(PyObject_GetIter(keys));
  CHECK(iterator) << "the keys of a dict or set";
  while (py::Ref key = py::Ref::steal(PyIter_Next(iterator.get()))) {
    if (!is_data(key.get())) return false;
  }
  return true;
}

}  // namespace

Result<bool> lookup_key(Tracer& t, PyObject* keys, Variable* key, PyObject** object) {
  key = t.force(key);
  if (is_new_identity(key) || (is_loose_identity(key) && only_data_keys(keys))) return false;
  *object = TRY(dict_key(t, key));
  return true;
}

Variable* key_variable(Tracer& t, PyObject* key) {
  if (is_data(key)) {
    if (Py_TYPE(key) != torch_size_type()) return t.constant(key);
    std::vector<Variable*> items;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) items.push_back(t.constant(PyTuple_GET_ITEM(key, i)));
    return t.tuple(std::move(items), Py_TYPE(key));
  }
  if (PyTuple_CheckExact(key)) {
    std::vector<Variable*> items;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) items.push_back(key_variable(t, PyTuple_GET_ITEM(key, i)));
    return t.tuple(std::move(items));
  }
  if (Variable* outside = t.outside(key)) return outside;
  // Everything else that is a key was guarded by identity when it became one.
  if (PyFunction_Check(key)) return t.force(t.lazy(key, t.sources().constant(key)));
  return t.known_object(key);
}

Variable* dict_key_variable(Tracer& t, DictVariable*, PyObject* key) { return key_variable(t, key); }

PyObject* real_index(DictVariable* dict) {
  if (!dict->index) dict->index = py::Ref::steal(PyDict_New());
  CHECK(dict->index) << "no memory for a dict";
  return dict->index.get();
}

namespace {

Py_ssize_t position_of(DictVariable* dict, PyObject* key) {
  PyObject* position = PyDict_GetItemWithError(real_index(dict), key);
  if (position == nullptr) {
    CHECK(!PyErr_Occurred()) << "a key of a dict can't be hashed";
    return -1;
  }
  return PyLong_AsSsize_t(position);
}

void append_entry(DictVariable* dict, PyObject* key, Variable* value) {
  py::Ref position = py::Ref::steal(PyLong_FromSize_t(dict->entries.size()));
  CHECK(position && PyDict_SetItem(real_index(dict), key, position.get()) == 0) << "a key of a dict can't be stored";
  dict->entries.emplace_back(key, value);
  dict->live++;
}

void rebuild(DictVariable* dict, const std::vector<std::pair<PyObject*, Variable*>>& entries) {
  dict->entries.clear();
  dict->live = 0;
  dict->index = py::Ref::steal(PyDict_New());
  for (auto& [key, value] : entries) {
    if (value) append_entry(dict, key, value);
  }
}

}  // namespace

Variable* dict_find(DictVariable* dict, PyObject* key) {
  const Py_ssize_t position = position_of(dict, key);
  return position < 0 ? nullptr : dict->entries[static_cast<size_t>(position)].second;
}

void dict_store(Tracer& t, DictVariable* dict, PyObject* key, Variable* value) {
  const Py_ssize_t position = position_of(dict, key);
  if (position >= 0) {
    dict->entries[static_cast<size_t>(position)].second = value;
    return;
  }
  append_entry(dict, t.keep(key), value);
  dict->version++;
}

bool dict_remove(Tracer&, DictVariable* dict, PyObject* key) {
  const Py_ssize_t position = position_of(dict, key);
  if (position < 0) return false;
  CHECK(PyDict_DelItem(real_index(dict), key) == 0) << "a key of a dict can't be removed";
  dict->entries[static_cast<size_t>(position)].second = nullptr;
  dict->live--;
  dict->version++;
  return true;
}

void dict_clear(Tracer& t, DictVariable* dict) {
  if (dict->live) dict->version++;
  dict->entries.clear();
  dict->live = 0;
  dict->index = py::Ref::steal(PyDict_New());
  t.mark_changed(dict);
}

DictVariable* dict_copy(Tracer& t, DictVariable* dict) {
  DictVariable* copy = t.dict(dict->type);
  copy->default_factory = dict->default_factory;
  rebuild(copy, dict->entries);
  return copy;
}

namespace {

using Entries = std::vector<std::pair<PyObject*, Variable*>>;

// What dict.update stores, in order; where the traced program raises midway, what came before. Nothing is changed yet.
Status entries_of(Tracer& t, Variable* other, Entries* entries) {
  other = t.force(other);
  if (auto* object = as_object(other); object && object->inner && as_dict(object->inner)) {
    Special iterate = TRY(find_special(t, other, "__iter__"));
    if (iterate.builtin) other = object->inner;
  }
  if (auto* dict = as_dict(other)) {
    for (auto& [key, value] : dict->entries) {
      if (value) entries->emplace_back(key, value);
    }
    return Unit{};
  }
  if (other->kind == Kind::kTensor) return t.fail(Reason::unsupported_method, "dict update from a tensor");
  if (other->kind == Kind::kObject) {
    PyObject* keys_name = t.intern("keys");
    if (TRY(has_attribute(t, other, keys_name))) {
      Variable* method = TRY(t.wait(get_attribute(t, other, keys_name)));
      Variable* keys = TRY(t.wait(call(t, method, {})));
      for (Variable* key : TRY(unpack(t, keys))) {
        PyObject* object = TRY(dict_key(t, key));
        Variable* value = TRY(t.wait(get_item(t, other, key)));
        entries->emplace_back(t.keep(object), value);
      }
      return Unit{};
    }
  }
  std::vector<Variable*> pairs;
  Status status = unpack_into(t, other, &pairs);
  if (broke(status)) return status;
  for (size_t number = 0; number < pairs.size(); number++) {
    Variable* item = t.force(pairs[number]);
    if (item->kind == Kind::kTensor) return t.fail(Reason::unsupported_method, "dict update from tensors");
    Answer iterator = get_iterator(t, item);
    if (raised(iterator.failure(), PyExc_TypeError)) {
      return t.raise_new(PyExc_TypeError, "cannot convert dictionary update sequence element #%zu to a sequence", number);
    }
    std::vector<Variable*> pair = TRY(unpack(t, TRY(std::move(iterator))));
    if (pair.size() != 2) {
      return t.raise_new(PyExc_ValueError, "dictionary update sequence element #%zu has length %zu; 2 is required", number, pair.size());
    }
    PyObject* object = TRY(dict_key(t, pair[0]));
    entries->emplace_back(t.keep(object), pair[1]);
  }
  return status;
}

void store_all(Tracer& t, DictVariable* dict, const Entries& entries) {
  for (auto& [key, value] : entries) dict_store(t, dict, key, value);
  if (!entries.empty()) t.mark_changed(dict);
}

bool is_ordered(DictVariable* dict) {
  static py::Once<PyObject*> kept_ordered;
  PyObject* const ordered = kept_ordered.get([] { return module_attribute("collections", "OrderedDict"); });
  return PyType_IsSubtype(dict->type, reinterpret_cast<PyTypeObject*>(ordered));
}

Answer move_to_end(Tracer& t, DictVariable* self, Variable* key, bool last) {
  PyObject* object = nullptr;
  const bool may_be_there = TRY(lookup_key(t, real_index(self), key, &object));
  Variable* value = may_be_there ? dict_find(self, object) : nullptr;
  if (value == nullptr) return raise_key_error(t, key);
  const Py_ssize_t position = position_of(self, object);
  Entries entries = self->entries;
  auto moved = entries[static_cast<size_t>(position)];
  entries.erase(entries.begin() + position);
  entries.insert(last ? entries.end() : entries.begin(), moved);
  rebuild(self, entries);
  self->version++;
  t.mark_changed(self);
  return t.none();
}

Answer popitem(Tracer& t, DictVariable* self, bool last) {
  if (self->live == 0) {
    Variable* message = t.string(is_ordered(self) ? "dictionary is empty" : "popitem(): dictionary is empty");
    return raise_key_error(t, message);
  }
  auto is_live = [](const std::pair<PyObject*, Variable*>& entry) { return entry.second != nullptr; };
  auto [key, value] = last ? *std::find_if(self->entries.rbegin(), self->entries.rend(), is_live)
                           : *std::find_if(self->entries.begin(), self->entries.end(), is_live);
  Variable* pair = t.tuple({key_variable(t, key), value});
  dict_remove(t, self, key);
  t.mark_changed(self);
  return pair;
}

DictViewVariable* view(Tracer& t, DictVariable* dict, uint8_t which) {
  auto* result = t.make<DictViewVariable>();
  result->dict = dict;
  result->which = which;
  return result;
}

}  // namespace

Status dict_update(Tracer& t, DictVariable* dict, Variable* other) {
  Entries entries;
  Status status = entries_of(t, other, &entries);
  if (!broke(status)) store_all(t, dict, entries);
  return status;
}

bool has_dict_version(DictVariable* dict, uint32_t version, Py_ssize_t live) {
  return dict->version == version && static_cast<Py_ssize_t>(dict->live) == live;
}

Answer call_dict_method(Tracer& t, DictVariable* self, PyObject* name, Arguments& arguments) {
  const std::string_view method = text_of(name);
  auto& args = arguments.positional;
  if (method == "items" && arguments.only_positional(0, 0)) return view(t, self, 2);
  if (method == "keys" && arguments.only_positional(0, 0)) return view(t, self, 0);
  if (method == "values" && arguments.only_positional(0, 0)) return view(t, self, 1);
  if (method == "get" && arguments.only_positional(1, 2)) {
    PyObject* object = nullptr;
    const bool may_be_there = TRY(lookup_key(t, real_index(self), args[0], &object));
    Variable* value = may_be_there ? dict_find(self, object) : nullptr;
    return value ? value : args.size() == 2 ? args[1] : t.none();
  }
  if (method == "pop" && (arguments.only_positional(1, 2) || (is_ordered(self) && args.size() == 1 && arguments.keyword("default")))) {
    Variable* fallback = args.size() == 2 ? args[1] : arguments.keyword("default");
    PyObject* object = nullptr;
    const bool may_be_there = TRY(lookup_key(t, real_index(self), args[0], &object));
    Variable* value = may_be_there ? dict_find(self, object) : nullptr;
    if (value == nullptr) {
      if (fallback) return fallback;
      return raise_key_error(t, args[0]);
    }
    dict_remove(t, self, object);
    t.mark_changed(self);
    return value;
  }
  if (method == "setdefault" && arguments.only_positional(1, 2)) {
    PyObject* object = TRY(dict_key(t, args[0]));
    if (Variable* value = dict_find(self, object)) return value;
    Variable* value = args.size() == 2 ? args[1] : t.none();
    dict_store(t, self, object, value);
    t.mark_changed(self);
    return value;
  }
  if (method == "update" && args.size() <= 1) {
    if (!args.empty()) TRY(dict_update(t, self, args[0]));
    Entries entries;
    for (auto& [key, value] : arguments.keywords) entries.emplace_back(key, value);
    store_all(t, self, entries);
    return t.none();
  }
  if (method == "clear" && arguments.only_positional(0, 0)) {
    dict_clear(t, self);
    return t.none();
  }
  if ((method == "copy" || method == "__copy__") && arguments.only_positional(0, 0)) return dict_copy(t, self);
  if (method == "popitem" && args.size() <= 1 && arguments.keywords.size() <= 1) {
    Variable* last = args.empty() ? arguments.keyword("last") : args[0];
    if ((last || !arguments.keywords.empty()) && !(is_ordered(self) && last)) return no_such_method(t, self, name, arguments);
    return popitem(t, self, last ? TRY(truth(t, last)) : true);
  }
  if (method == "move_to_end" && is_ordered(self) && !args.empty() && args.size() <= 2 && arguments.keywords.size() <= 1) {
    Variable* last = args.size() == 2 ? args[1] : arguments.keyword("last");
    if (!last && !arguments.keywords.empty()) return no_such_method(t, self, name, arguments);
    return move_to_end(t, self, args[0], last ? TRY(truth(t, last)) : true);
  }
  if (method == "__missing__" && self->default_factory && arguments.only_positional(1, 1)) return get_item(t, self, args[0]);
  return no_such_method(t, self, name, arguments);
}

Answer call_view_method(Tracer& t, DictViewVariable* self, PyObject* name, Arguments& arguments) {
  if (text_of(name) == "isdisjoint" && self->which != 1 && arguments.only_positional(1, 1)) {
    py::Ref left = TRY(key_set(t, self, true)), right = TRY(key_set(t, arguments.positional[0], true));
    py::Ref result = py::Ref::steal(PyObject_CallMethod(left.get(), "isdisjoint", "O", right.get()));
    return from_result(t, result.release());
  }
  return no_such_method(t, self, name, arguments);
}

}  // namespace pellucid::variables
