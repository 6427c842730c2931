// The hot path. Reads memory; makes no objects, takes no references (C getters excepted, whose results are dropped at the end), and
// runs no Python code, so nothing can change while it runs. Every pointer it follows was verified before, in this same check.
#include <algorithm>
#include <cstring>

#include "guard/program.h"
#include "guard/resolve.h"
#include "py/collector.h"
#include "source/plain.h"

namespace pellucid::guard {
namespace {

using cpython::Lookup;

constexpr uint64_t kNoVersion = ~uint64_t{0};

inline bool str_equal(PyObject* left, PyObject* right) {
  if (left == right) return true;
  return PyUnicode_CheckExact(left) && source::plain_equal(left, right);
}

bool dict_keys_are(PyObject* dict, PyObject* keys) {
  if (cpython::dict_used(dict) != PyTuple_GET_SIZE(keys)) return false;
  Py_ssize_t i = 0;
  return cpython::visit_keys(
             dict, [&](PyObject* key) { return i < PyTuple_GET_SIZE(keys) && key_equal(key, PyTuple_GET_ITEM(keys, i++)) == 1; }) &&
         i == PyTuple_GET_SIZE(keys);
}

Py_ssize_t length_of(PyObject* object) {  // -1: not a container whose length C code knows
  if (PyList_Check(object) || PyTuple_Check(object)) return Py_SIZE(object);
  if (PyDict_Check(object)) return cpython::dict_used(object);
  if (PyAnySet_Check(object)) return PySet_GET_SIZE(object);
  return -1;
}

bool no_values(PyObject* container) {
  return container == nullptr || container == Py_None || (PyTuple_Check(container) && PyTuple_GET_SIZE(container) == 0) ||
         (PyDict_Check(container) && cpython::dict_used(container) == 0);
}

PyObject* sequence_item(PyObject* sequence, Py_ssize_t index) {
  if (PyTuple_Check(sequence)) return index < PyTuple_GET_SIZE(sequence) ? PyTuple_GET_ITEM(sequence, index) : nullptr;
  if (PyList_Check(sequence)) return index < PyList_GET_SIZE(sequence) ? PyList_GET_ITEM(sequence, index) : nullptr;
  return nullptr;
}

PyObject* dict_value(PyObject* dict, cpython::Key& key) {
  PyObject* value = nullptr;
  if (dict != nullptr && PyDict_Check(dict)) cpython::find_in_dict(dict, key, key_equal, &value);
  return value;
}

inline size_t pointer_hash(PyObject* object) { return (reinterpret_cast<size_t>(object) >> 4) * 0x9E3779B97F4A7C15ull >> 32; }

}  // namespace

Verdict Program::check(const FrameView& frame) noexcept {
  if (__builtin_expect(!holds_.valid(), 0)) return Verdict::kMiss;
  Answer answer = run(frame);
  if (__builtin_expect(!owned_.empty(), 0)) {
    std::vector<PyObject*> owned;
    owned.swap(owned_);
    PyObject *type, *value, *traceback;  // destructors must not see or change the error we report
    PyErr_Fetch(&type, &value, &traceback);
    for (PyObject* object : owned) Py_DECREF(object);
    PyErr_Restore(type, value, traceback);
  }
  return answer == Answer::kYes ? Verdict::kHit : answer == Answer::kNo ? Verdict::kMiss : Verdict::kError;
}

Program::Answer Program::run(const FrameView& frame) noexcept {
  PyObject** slots = slots_.data();
  auto tangents = bridge::Tangents::kPossible;
  for (const Row* row = rows_.data();; row++) {
    PyObject* object = row->local & 1 ? frame.locals[row->source] : slots[row->source];
    PyObject* loaded = nullptr;
    switch (row->op) {
      case Op::kLoadFreeCell: {
        PyObject* closure = PyFunction_GET_CLOSURE(frame.func);
        loaded = closure != nullptr ? sequence_item(closure, row->argument) : nullptr;
        break;
      }
      case Op::kLoadInstanceItem:
        cpython::find_in_instance(object, keys_[row->argument], key_equal, &loaded);
        break;
      case Op::kLoadAttr: {
        py::Ref value = c_getattr(object, keys_[row->argument].object);
        if (!value && PyErr_Occurred() != nullptr) {
          raise_for(row_guards_[static_cast<size_t>(row - rows_.data())]);
          return Answer::kRaised;
        }
        loaded = value.get();
        if (loaded != nullptr) owned_.push_back(value.release());
        break;
      }
      case Op::kLoadClassAttr:
        find_in_class(Py_TYPE(object), keys_[row->argument], &loaded);
        break;
      case Op::kLoadItem:
        loaded = sequence_item(object, row->argument);
        break;
      case Op::kLoadItems: {
        PyObject** items = nullptr;
        if (PyTuple_Check(object)) items = reinterpret_cast<PyTupleObject*>(object)->ob_item;
        if (PyList_Check(object)) items = reinterpret_cast<PyListObject*>(object)->ob_item;
        if (items == nullptr || Py_SIZE(object) < static_cast<Py_ssize_t>(row->argument) + row->count) return Answer::kNo;
        std::copy(items + row->argument, items + row->argument + row->count, slots + row->destination);
        continue;
      }
      case Op::kLoadDictItem:
        loaded = dict_value(object, keys_[row->argument]);
        break;
      case Op::kLoadCellContents:
        loaded = PyCell_Check(object) ? PyCell_GET(object) : nullptr;
        break;
      case Op::kLoadTypeOf:
        loaded = reinterpret_cast<PyObject*>(Py_TYPE(object));
        break;
      case Op::kLoadDictOf:
        loaded = cpython::instance_dict(object);
        if (loaded == nullptr && Py_TYPE(object)->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
          // The only allocation a check can make: an instance whose __dict__ nobody asked for yet.
          const py::PauseCollector pause;
          loaded = PyObject_GenericGetDict(object, nullptr);
          if (loaded != nullptr) owned_.push_back(loaded);
          if (loaded == nullptr) PyErr_Clear();
        }
        break;
      case Op::kLoadDefault: {
        PyObject* defaults = PyFunction_Check(object) ? PyFunction_GET_DEFAULTS(object) : nullptr;
        loaded = defaults != nullptr ? sequence_item(defaults, row->argument) : nullptr;
        break;
      }
      case Op::kLoadKwDefault:
        loaded = PyFunction_Check(object) ? dict_value(PyFunction_GET_KW_DEFAULTS(object), keys_[row->argument]) : nullptr;
        break;
      case Op::kLoadClosureCell: {
        PyObject* closure = PyFunction_Check(object) ? PyFunction_GET_CLOSURE(object) : nullptr;
        loaded = closure != nullptr ? sequence_item(closure, row->argument) : nullptr;
        break;
      }
      case Op::kLoadBoundSelf:
        loaded = PyMethod_Check(object) ? PyMethod_GET_SELF(object) : nullptr;
        break;
      case Op::kLoadBoundFunc:
        loaded = bound_function(object);
        break;
      case Op::kLoadReferent:
        loaded = PyWeakref_CheckRef(object) ? PyWeakref_GET_OBJECT(object) : nullptr;
        break;
      case Op::kLoadFunctionField:
        if (!PyFunction_Check(object)) return Answer::kNo;
        loaded = cpython::read_pointer(object, static_cast<Py_ssize_t>(row->argument));
        if (loaded == nullptr) loaded = Py_None;  // as the attribute shows it
        break;

      case Op::kIs:
        if (object != reinterpret_cast<PyObject*>(row->value)) return Answer::kNo;
        continue;
      case Op::kType:
        if (Py_TYPE(object) != reinterpret_cast<PyTypeObject*>(row->value)) return Answer::kNo;
        continue;
      case Op::kInt:
        if (!cpython::is_int(object, static_cast<int64_t>(row->value))) return Answer::kNo;
        continue;
      case Op::kStr:
        if (!str_equal(object, reinterpret_cast<PyObject*>(row->value))) return Answer::kNo;
        continue;
      case Op::kEquals:
        if (!source::plain_equal(object, reinterpret_cast<PyObject*>(row->value))) return Answer::kNo;
        continue;
      case Op::kLength:
        if (length_of(object) != static_cast<Py_ssize_t>(row->value)) return Answer::kNo;
        continue;
      case Op::kDictKeys:
        if (!PyDict_Check(object) || !dict_keys_are(object, reinterpret_cast<PyObject*>(row->value))) return Answer::kNo;
        continue;
      case Op::kDictHas:
        if (dict_value(object, keys_[row->argument]) == nullptr) return Answer::kNo;
        continue;
      case Op::kDictLacks: {
        PyObject* value = nullptr;
        if (!PyDict_Check(object) || cpython::find_in_dict(object, keys_[row->argument], key_equal, &value) != Lookup::kAbsent)
          return Answer::kNo;
        continue;
      }
      case Op::kInstanceLacks: {
        PyObject* value = nullptr;
        if (cpython::find_in_instance(object, keys_[row->argument], key_equal, &value) != Lookup::kAbsent) return Answer::kNo;
        continue;
      }
      case Op::kClassAttrIs: {
        PyObject* value = nullptr;
        if (!find_in_class(Py_TYPE(object), keys_[row->argument], &value) || value != pointers_[row->destination]) return Answer::kNo;
        continue;
      }
      case Op::kTensors:
        if (!bridge::tensors_match((row->local & 1 ? frame.locals : slots) + row->source, row_specs_.data() + row->argument, row->count,
                                   tangents)) {
          return Answer::kNo;
        }
        continue;
      case Op::kSame:
      case Op::kNotSame: {
        PyObject* other = row->local & 2 ? frame.locals[row->argument] : slots[row->argument];
        if ((object == other) != (row->op == Op::kSame)) return Answer::kNo;
        continue;
      }
      case Op::kDistinct:
        if (!check_group(groups_[row->argument], frame)) return Answer::kNo;
        continue;
      case Op::kCode:
        if (!PyFunction_Check(object) || PyFunction_GET_CODE(object) != reinterpret_cast<PyObject*>(row->value)) return Answer::kNo;
        continue;
      case Op::kCodes: {
        PyObject* const* codes = pointers_.data() + row->argument;
        for (size_t i = 0; i < row->count; i++) {
          PyObject* function = slots[row->source + i];
          if (!PyFunction_Check(function) || PyFunction_GET_CODE(function) != codes[i]) return Answer::kNo;
        }
        continue;
      }
      case Op::kNoDefaults:
        if (!PyFunction_Check(object) || !no_values(PyFunction_GET_DEFAULTS(object))) return Answer::kNo;
        continue;
      case Op::kNoKwDefaults:
        if (!PyFunction_Check(object) || !no_values(PyFunction_GET_KW_DEFAULTS(object))) return Answer::kNo;
        continue;
      case Op::kCellEmpty:
        if (!PyCell_Check(object) || PyCell_GET(object) != nullptr) return Answer::kNo;
        continue;
      case Op::kEmptyDict:
        if (!PyDict_Check(object) || cpython::dict_used(object) != 0) return Answer::kNo;
        continue;
      case Op::kSubclassOf:
        if (!PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(row->value))) return Answer::kNo;
        continue;
      case Op::kGlobals: {
        auto* function = reinterpret_cast<PyFunctionObject*>(frame.func);
        if (function->func_globals != globals_ || function->func_builtins != builtins_) return Answer::kNo;
        continue;
      }
      case Op::kState:
        if (!bridge::global_state_matches(state_)) return Answer::kNo;
        if (!state_.forward_level()) tangents = bridge::Tangents::kNone;
        continue;
      case Op::kPrecision:
        if (bridge::float32_precision(row->argument) != row->destination) return Answer::kNo;
        continue;
      case Op::kTables:
        if (!check_tables(tangents)) return Answer::kNo;
        continue;
      case Op::kSkipUnlessMoved:
        if (__builtin_expect(!moved_, 1)) {
          row += row->argument;
        } else {
          for (Group& group : groups_) group.stale = true;
        }
        continue;
      case Op::kSettled:
        moved_ = false;
        continue;
      case Op::kEnd:
        return Answer::kYes;
    }
    if (loaded == nullptr) return Answer::kNo;
    slots[row->destination] = loaded;
  }
}

// Replaces the error that is set by one that names the guard and has the other as its cause.
void Program::raise_for(int32_t guard) const {
  const py::PauseCollector pause;
  PyObject *type, *cause, *traceback;
  PyErr_Fetch(&type, &cause, &traceback);
  PyErr_NormalizeException(&type, &cause, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(cause, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  const char* name = guard >= 0 ? guards_[static_cast<size_t>(guard)].source->name.c_str() : "an input";
  PyErr_Format(PyExc_RuntimeError, "evaluating the guard on %s raised", name);
  PyObject *error_type, *error, *error_traceback;
  PyErr_Fetch(&error_type, &error, &error_traceback);
  PyErr_NormalizeException(&error_type, &error, &error_traceback);
  PyException_SetContext(error, Py_NewRef(cause));
  PyException_SetCause(error, cause);  // takes the reference
  PyErr_Restore(error_type, error, error_traceback);
}

bool Program::check_tables(bridge::Tangents tangents) noexcept {
  for (size_t i = 0; i < types_.size(); i++) {
    if (__builtin_expect(cpython::type_version(types_[i].type) != types_[i].version, 0) && !revalidate_type(i)) return false;
  }
  // Without branches: the rows stream through the cache, and one test at the end decides.
  uint64_t difference = 0;
  for (const ObjectRow& row : objects_) {
    difference |= reinterpret_cast<uint64_t>(Py_TYPE(row.object)) ^ reinterpret_cast<uint64_t>(row.type);
    difference |=
        reinterpret_cast<uint64_t>(cpython::read_pointer(row.object, cpython::kManagedDictOffset)) ^ reinterpret_cast<uint64_t>(row.dict);
  }
  if (__builtin_expect(difference != 0, 0)) {
    for (size_t i = 0; i < objects_.size(); i++) {
      if (Py_TYPE(objects_[i].object) != objects_[i].type) return false;
      PyObject* dict = cpython::read_pointer(objects_[i].object, cpython::kManagedDictOffset);
      if (dict == objects_[i].dict) continue;
      if (!adopt_dict(object_dicts_[i], dict)) return false;
      objects_[i].dict = dict;
    }
  }
  for (size_t i = 0; i < other_objects_.size(); i++) {
    OtherObjectRow& row = other_objects_[i];
    // The type first: it says whether there is anything at the offset.
    if (Py_TYPE(row.object) != row.type) return false;
    PyObject* pointer = cpython::read_pointer(row.object, row.offset);
    if (pointer == row.pointer) continue;
    if (!adopt_dict(other_object_dicts_[i], pointer)) return false;
    row.pointer = pointer;
  }
  // So many are looked at for the price of asking whether any dictionary of the process changed.
  constexpr size_t kMany = 24;
  if (dicts_.size() + (empty_end_ - tensor_count_) < kMany) {
    if (!check_dicts()) return false;
  } else {
    uint64_t now = dict_events();
    if (now != dict_events_ || now == kUnknownDictEvents) {
      if (!check_dicts()) return false;
      dict_events_ = now;
    }
  }
  for (auto [first, last] : table_runs_) {
    if (!bridge::tensors_match(slots_.data() + first, table_specs_.data() + first, last - first, tangents)) return false;
  }
  return true;
}

bool Program::check_dicts() noexcept {
  size_t begin = 0;
  for (size_t end : stages_) {
    const DictRow* rows = dicts_.data();
    uint64_t moved = 0;
    for (size_t i = begin; i < end; i++) moved |= cpython::dict_version(rows[i].dict) ^ rows[i].version;
    if (__builtin_expect(moved != 0, 0)) {
      for (size_t i = begin; i < end; i++) {
        if (cpython::dict_version(dicts_[i].dict) != dicts_[i].version && !revalidate_dict(i)) return false;
      }
    }
    begin = end;
  }
  uint64_t used = 0;
  for (size_t i = tensor_count_; i < empty_end_; i++) used |= static_cast<uint64_t>(cpython::dict_used(slots_[i]));
  return used == 0;
}

// `object.__dict__ = other`: everything expected of the old dictionary is now asked of the new one.
bool Program::adopt_dict(const OwnedDict& owned, PyObject* dict) noexcept {
  if (owned.dict == SIZE_MAX || owned.pinned || dict == nullptr) return false;
  dicts_[owned.dict] = {dict, kNoVersion};
  dict_events_ = kUnknownDictEvents;
  for (int32_t slot : owned.slots) {
    slots_[static_cast<size_t>(slot)] = dict;
    moved_ = true;
  }
  return true;
}

// Compares what is expected under one key with what is there now, and keeps the object that is there.
bool Program::adopt(Entry& entry, PyObject* value) noexcept {
  if (entry.checks & Entry::kAbsent) return value == nullptr;
  if (entry.checks & Entry::kUnwrap) value = class_value(value);
  if (value == nullptr) return false;
  if ((entry.checks & Entry::kId) && value != entry.identical) return false;
  if ((entry.checks & Entry::kOfType) && Py_TYPE(value) != entry.type) return false;
  if ((entry.checks & Entry::kEqual) && !source::plain_equal(value, entry.equal)) return false;
  if ((entry.checks & Entry::kIsDict) && !PyDict_Check(value)) return false;
  if (entry.dict_row >= 0 && dicts_[static_cast<size_t>(entry.dict_row)].dict != value) {
    dicts_[static_cast<size_t>(entry.dict_row)] = {value, kNoVersion};  // of a later stage: compared in this same check
    dict_events_ = kUnknownDictEvents;
  }
  if (entry.slot >= 0 && slots_[static_cast<size_t>(entry.slot)] != value) {
    slots_[static_cast<size_t>(entry.slot)] = value;
    moved_ = true;
    dict_events_ = kUnknownDictEvents;
  }
  return true;
}

bool Program::revalidate_dict(size_t index) noexcept {
  PyObject* dict = dicts_[index].dict;
  Expected& expected = dict_expected_[index];
  if (expected.length >= 0 && cpython::dict_used(dict) != expected.length) return false;
  if (expected.keys != nullptr && !dict_keys_are(dict, expected.keys)) return false;
  for (Entry& entry : expected.entries) {
    PyObject* value = nullptr;
    if (cpython::find_in_dict(dict, entry.key, key_equal, &value) == Lookup::kUnsure) return false;
    if (!adopt(entry, value)) return false;
  }
  dicts_[index].version = cpython::dict_version(dict);
  return true;
}

bool Program::revalidate_type(size_t index) noexcept {
  PyTypeObject* type = types_[index].type;
  if (!type_expected_[index].mro.empty() && !has_mro(type, type_expected_[index].mro)) return false;
  for (Entry& entry : type_expected_[index].entries) {
    PyObject* value = nullptr;
    if (!find_in_class(type, entry.key, &value) || !adopt(entry, value)) return false;
  }
  uint32_t version = cpython::valid_type_version(type);
  types_[index].version = version != 0 ? version : kNoVersion;
  return true;
}

bool Program::check_group(Group& group, const FrameView& frame) noexcept {
  auto at = [&](const InputRun& run) { return (run.local ? frame.locals : slots_.data()) + run.first; };
  bool same = !group.stale && group.remembers;
  PyObject** last = group.last.data();
  for (const InputRun& run : group.runs) {
    same = same && std::memcmp(last, at(run), run.count * sizeof(PyObject*)) == 0;
    last += run.count;
  }
  if (same) return true;
  group.remembers = false;  // what was kept may have moved meanwhile
  if (!all_distinct(group, frame)) return false;
  group.remembers = true;
  last = group.last.data();
  for (const InputRun& run : group.runs) last = std::copy_n(at(run), run.count, last);
  return true;
}

bool Program::all_distinct(Group& group, const FrameView& frame) noexcept {
  size_t per_call = group.per_call.size();
  if (group.kept.empty() && per_call <= 8) {
    for (size_t i = 1; i < per_call; i++) {
      PyObject* object = operand(group.per_call[i], frame);
      for (size_t j = 0; j < std::min(i, group.watched_per_call); j++) {
        if (operand(group.per_call[j], frame) == object) return false;
      }
    }
    group.stale = false;
    return true;
  }
  // The lower half of the table keeps the objects behind tags, the upper half is for those of this call.
  size_t half = group.table.size() / 2, mask = half - 1;
  if (group.stale) {
    std::fill(group.table.begin(), group.table.begin() + static_cast<Py_ssize_t>(half), nullptr);
    for (size_t i = 0; i < group.kept.size(); i++) {
      PyObject* object = slots_[group.kept[i]];
      size_t at = pointer_hash(object) & mask;
      for (; group.table[at] != nullptr; at = (at + 1) & mask) {
        if (group.table[at] == object) return false;
      }
      if (i < group.watched_kept) group.table[at] = object;
    }
    group.stale = false;
  }
  if (per_call == 0) return true;
  PyObject** now = group.table.data() + half;
  std::fill(now, now + half, nullptr);
  for (size_t i = 0; i < per_call; i++) {
    PyObject* object = operand(group.per_call[i], frame);
    size_t at = pointer_hash(object) & mask;
    for (size_t k = at; group.table[k] != nullptr; k = (k + 1) & mask) {
      if (group.table[k] == object) return false;
    }
    for (; now[at] != nullptr; at = (at + 1) & mask) {
      if (now[at] == object) return false;
    }
    if (i < group.watched_per_call) now[at] = object;
  }
  if (group.watched_per_call == 0) return true;
  for (size_t i = group.watched_kept; i < group.kept.size(); i++) {
    PyObject* object = slots_[group.kept[i]];
    for (size_t at = pointer_hash(object) & mask; now[at] != nullptr; at = (at + 1) & mask) {
      if (now[at] == object) return false;
    }
  }
  return true;
}

}  // namespace pellucid::guard
