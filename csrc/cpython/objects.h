// Reading objects without references, allocation or Python code: dictionary lookups, version tags, instance dictionaries, class
// attributes. Layouts of CPython 3.11, checked against its headers in objects_layout.cpp; everything is inline, so no state is shared.
#pragma once
#include <cstdint>
#include <cstring>

#include "py/python.h"

namespace pellucid::cpython {

struct DictKeys {  // PyDictKeysObject
  Py_ssize_t refcount;
  uint8_t log2_size, log2_index_bytes, kind;  // kind 0: general, 1: str keys, 2: str keys shared between instances
  uint32_t version;
  Py_ssize_t usable, entry_count;
  char indices[];
};

struct GeneralEntry {
  Py_hash_t hash;
  PyObject *key, *value;
};

struct StrEntry {
  PyObject *key, *value;
};

// A key prepared for many lookups. `hint` is where it was found last.
struct Key {
  PyObject* object = nullptr;
  Py_hash_t hash = 0;
  uint32_t hint = 0;
};

enum class Lookup : uint8_t { kFound, kAbsent, kUnsure };  // kUnsure: only a user's __eq__ could tell

inline const char* entries(const DictKeys* keys) { return keys->indices + (size_t{1} << keys->log2_index_bytes); }

inline int64_t index_at(const DictKeys* keys, size_t slot) {
  switch (keys->log2_index_bytes - keys->log2_size) {
    case 0:
      return reinterpret_cast<const int8_t*>(keys->indices)[slot];
    case 1:
      return reinterpret_cast<const int16_t*>(keys->indices)[slot];
    case 2:
      return reinterpret_cast<const int32_t*>(keys->indices)[slot];
    default:
      return reinterpret_cast<const int64_t*>(keys->indices)[slot];
  }
}

inline PyObject* value_at(const DictKeys* keys, PyObject* const* values, size_t index) {
  if (values != nullptr) return values[index];
  if (keys->kind == 0) return reinterpret_cast<const GeneralEntry*>(entries(keys))[index].value;
  return reinterpret_cast<const StrEntry*>(entries(keys))[index].value;
}

inline PyObject* key_at(const DictKeys* keys, size_t index) {
  if (keys->kind == 0) return reinterpret_cast<const GeneralEntry*>(entries(keys))[index].key;
  return reinterpret_cast<const StrEntry*>(entries(keys))[index].key;
}

// Probes as dictobject.c does. `equal(key in table, key)`: 1 equal, 0 not, -1 cannot be told without Python code.
template <class Equal>
Lookup find_key(const DictKeys* keys, PyObject* const* values, Key& key, Equal equal, PyObject** value) {
  *value = nullptr;
  if (key.hint < static_cast<uint64_t>(keys->entry_count) && key_at(keys, key.hint) == key.object) {
    *value = value_at(keys, values, key.hint);
    return *value != nullptr ? Lookup::kFound : Lookup::kAbsent;
  }
  bool str_table = keys->kind != 0;
  if (str_table && !PyUnicode_CheckExact(key.object)) {
    // A key of another type could still equal a str by its own __eq__; plain keys other than str do not.
    if (equal(nullptr, key.object) < 0) return Lookup::kUnsure;
    return Lookup::kAbsent;
  }
  size_t mask = (size_t{1} << keys->log2_size) - 1;
  size_t perturb = static_cast<size_t>(key.hash), slot = perturb & mask;
  for (;;) {
    int64_t index = index_at(keys, slot);
    if (index == -1) return Lookup::kAbsent;
    if (index >= 0) {
      PyObject* candidate = key_at(keys, static_cast<size_t>(index));
      bool found = candidate == key.object;
      if (!found && candidate != nullptr) {
        Py_hash_t hash = str_table ? reinterpret_cast<PyASCIIObject*>(candidate)->hash
                                   : reinterpret_cast<const GeneralEntry*>(entries(keys))[index].hash;
        if (hash == key.hash) {
          int answer = equal(candidate, key.object);
          if (answer < 0) return Lookup::kUnsure;
          found = answer > 0;
        }
      }
      if (found) {
        key.hint = static_cast<uint32_t>(index);
        *value = value_at(keys, values, static_cast<size_t>(index));
        return *value != nullptr ? Lookup::kFound : Lookup::kAbsent;
      }
    }
    perturb >>= 5;
    slot = (slot * 5 + perturb + 1) & mask;
  }
}

template <class Equal>
Lookup find_in_dict(PyObject* dict, Key& key, Equal equal, PyObject** value) {
  auto* object = reinterpret_cast<PyDictObject*>(dict);
  return find_key(reinterpret_cast<const DictKeys*>(object->ma_keys), reinterpret_cast<PyObject* const*>(object->ma_values), key, equal,
                  value);
}

inline uint64_t dict_version(PyObject* dict) { return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag; }
inline Py_ssize_t dict_used(PyObject* dict) { return reinterpret_cast<PyDictObject*>(dict)->ma_used; }

constexpr Py_ssize_t kManagedDictOffset = -3 * static_cast<Py_ssize_t>(sizeof(PyObject*));
constexpr Py_ssize_t kInlineValuesOffset = -4 * static_cast<Py_ssize_t>(sizeof(PyObject*));

// Where an instance of `type` keeps its dictionary pointer, as a byte offset from the object; 0: nowhere that can be read directly.
inline Py_ssize_t dict_pointer_offset(PyTypeObject* type) {
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) return kManagedDictOffset;
  return type->tp_dictoffset > 0 ? type->tp_dictoffset : 0;
}

// The same for one object: instances of variable size (subclasses of int and tuple) keep it behind their items (_PyObject_GetDictPtr).
inline Py_ssize_t dict_pointer_offset(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_dictoffset >= 0 || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) return dict_pointer_offset(type);
  const Py_ssize_t items = Py_SIZE(object);
  return type->tp_dictoffset + static_cast<Py_ssize_t>(_PyObject_VAR_SIZE(type, items < 0 ? -items : items));
}

inline PyObject* read_pointer(PyObject* object, Py_ssize_t offset) {
  return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
}

// The instance dictionary if it exists as an object (borrowed); null also for instances that keep their values inline.
inline PyObject* instance_dict(PyObject* object) {
  Py_ssize_t offset = dict_pointer_offset(object);
  return offset != 0 ? read_pointer(object, offset) : nullptr;
}

// What `object.__dict__` holds under key, without making the dictionary.
template <class Equal>
Lookup find_in_instance(PyObject* object, Key& key, Equal equal, PyObject** value) {
  *value = nullptr;
  PyTypeObject* type = Py_TYPE(object);
  PyObject* dict = instance_dict(object);
  if (dict != nullptr) return find_in_dict(dict, key, equal, value);
  if (!(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) return Lookup::kAbsent;
  auto* values = reinterpret_cast<PyObject* const*>(read_pointer(object, kInlineValuesOffset));
  if (values == nullptr) return Lookup::kAbsent;
  const auto* keys = reinterpret_cast<const DictKeys*>(reinterpret_cast<PyHeapTypeObject*>(type)->ht_cached_keys);
  return find_key(keys, values, key, equal, value);
}

// An exact int with this value; reads the digits.
// Of an int that fits; 0 for anything else.
inline int64_t int_value(PyObject* object) {
  if (!PyLong_CheckExact(object)) return 0;
  Py_ssize_t size = Py_SIZE(object);
  if (size >= -1 && size <= 1) {
    int64_t digit = size == 0 ? 0 : static_cast<int64_t>(reinterpret_cast<PyLongObject*>(object)->ob_digit[0]);
    return size * digit;
  }
  int overflow = 0;
  int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0 ? value : 0;
}

inline bool is_int(PyObject* object, int64_t value) {
  if (!PyLong_CheckExact(object) || int_value(object) != value) return false;
  return value != 0 || Py_SIZE(object) == 0;  // 0 stands for what does not fit too
}

// An OrderedDict's own order, which move_to_end changes without touching the dictionary below. No header of CPython shows this layout:
// ordered_dicts_are_readable() tries it.
struct OrderedDictNode {
  PyObject* key;
  Py_hash_t hash;
  OrderedDictNode *next, *previous;
};
struct OrderedDict {
  PyDictObject dict;
  OrderedDictNode *first, *last;
};

inline bool ordered_dicts_are_readable() {
  PyObject *dict = PyODict_New(), *one = PyLong_FromLong(1), *two = PyLong_FromLong(2);
  bool same = false;
  if (dict != nullptr && one != nullptr && two != nullptr && PyODict_SetItem(dict, one, two) == 0 && PyODict_SetItem(dict, two, one) == 0) {
    auto* object = reinterpret_cast<OrderedDict*>(dict);
    same = object->first != nullptr && object->last != nullptr && object->first->key == one && object->first->next == object->last &&
           object->last->key == two && object->last->next == nullptr && object->last->previous == object->first;
  }
  PyErr_Clear();
  Py_XDECREF(dict);
  Py_XDECREF(one);
  Py_XDECREF(two);
  return same;
}

// Calls visit(key) for each key in order until it returns false; whether all were visited.
template <class Visit>
bool visit_keys(PyObject* dict, Visit visit) {
  if (PyODict_Check(dict)) {
    for (auto* node = reinterpret_cast<OrderedDict*>(dict)->first; node != nullptr; node = node->next) {
      if (!visit(node->key)) return false;
    }
    return true;
  }
  auto* object = reinterpret_cast<PyDictObject*>(dict);
  if (object->ma_values == nullptr) {
    const auto* keys = reinterpret_cast<const DictKeys*>(object->ma_keys);
    for (Py_ssize_t i = 0; i < keys->entry_count; i++) {
      if (value_at(keys, nullptr, static_cast<size_t>(i)) != nullptr && !visit(key_at(keys, static_cast<size_t>(i)))) return false;
    }
    return true;
  }
  Py_ssize_t position = 0;  // shared keys: the order is each instance's own
  PyObject* key = nullptr;
  while (PyDict_Next(dict, &position, &key, nullptr)) {
    if (!visit(key)) return false;
  }
  return true;
}

// The number is there as soon as it was tried to give the class one; it only counts, and a write to the class only takes it away, where
// all its bases could be given one too.
inline uint32_t type_version(PyTypeObject* type) { return type->tp_version_tag; }
inline uint32_t valid_type_version(PyTypeObject* type) { return type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0; }

// Whether all names in the classes of the MRO are exact str: then looking one up compares nothing in Python.
inline bool has_str_names(PyTypeObject* type) {
  PyObject* mro = type->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
    PyObject* dict = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i))->tp_dict;
    if (reinterpret_cast<const DictKeys*>(reinterpret_cast<PyDictObject*>(dict)->ma_keys)->kind == 0) return false;
  }
  return true;
}

// The attribute found by walking the MRO.
template <class Equal>
Lookup find_in_mro(PyTypeObject* type, Key& key, Equal equal, PyObject** value) {
  PyObject* mro = type->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
    Lookup found = find_in_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i))->tp_dict, key, equal, value);
    if (found != Lookup::kAbsent) return found;
  }
  return Lookup::kAbsent;
}

// The MRO's attribute, unbound and borrowed; gives the type a version tag if it can have one. Null: none (no exception is left set).
inline PyObject* type_lookup(PyTypeObject* type, PyObject* name) {
  PyObject* found = _PyType_Lookup(type, name);
  if (found == nullptr && PyErr_Occurred()) PyErr_Clear();
  return found;
}

}  // namespace pellucid::cpython
