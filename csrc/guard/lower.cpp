// Guards to rows and table entries, one function per kind that has more than one way. A constant or tracked source is checked through
// the tables where a version tag covers the guard, and by a row behind them where none does (lists, functions, cells).
#include <algorithm>
#include <cstddef>

#include "guard/compile.h"
#include "guard/resolve.h"
#include "source/plain.h"

namespace pellucid::guard {

using source::Source;

namespace {

uint64_t bits_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

bool is_singleton(PyObject* object) { return object == Py_None || object == Py_True || object == Py_False || object == Py_Ellipsis; }

bool class_can_change(PyObject* object) { return (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyModule_Check(object); }

// A dictionary that the tables can verify.
bool has_dict_row(const Node& node) {
  return (node.status == Status::kConstant || node.status == Status::kTracked) && PyDict_Check(node.value.get());
}

Op load_op(source::Kind kind) {
  using source::Kind;
  switch (kind) {
    case Kind::kInstanceItem:
      return Op::kLoadInstanceItem;
    case Kind::kAttr:
      return Op::kLoadAttr;
    case Kind::kClassAttr:
      return Op::kLoadClassAttr;
    case Kind::kItem:
      return Op::kLoadItem;
    case Kind::kDictItem:
      return Op::kLoadDictItem;
    case Kind::kCellContents:
      return Op::kLoadCellContents;
    case Kind::kTypeOf:
      return Op::kLoadTypeOf;
    case Kind::kDictOf:
      return Op::kLoadDictOf;
    case Kind::kDefault:
      return Op::kLoadDefault;
    case Kind::kKwDefault:
      return Op::kLoadKwDefault;
    case Kind::kClosureCell:
      return Op::kLoadClosureCell;
    case Kind::kBoundSelf:
      return Op::kLoadBoundSelf;
    case Kind::kReferent:
      return Op::kLoadReferent;
    case Kind::kBoundFunc:
      return Op::kLoadBoundFunc;
    default:
      return Op::kLoadFreeCell;
  }
}

void add_to_runs(std::vector<InputRun>& runs, Operand where) {
  if (!runs.empty() && runs.back().local == where.local && where.index == runs.back().first + runs.back().count) {
    runs.back().count++;
  } else {
    runs.push_back({where.index, 1, where.local});
  }
}

}  // namespace

// Slots are virtual until finish(): region in the low bits, position above.
int64_t Compiler::new_slot(Region region, PyObject* value) {
  auto& slots = regions_[static_cast<size_t>(region)];
  slots.push_back(value);
  return static_cast<int64_t>((slots.size() - 1) << 3 | static_cast<size_t>(region));
}

uint32_t Compiler::new_key(PyObject* key) {
  cpython::Key prepared;
  if (!make_key(key, prepared)) return UINT32_MAX;
  program_.holds_.keep(key);
  program_.keys_.push_back(prepared);
  return static_cast<uint32_t>(program_.keys_.size() - 1);
}

void Compiler::emit(Row row, Phase phase) { rows_[static_cast<size_t>(phase)].emplace_back(row, current_guard_); }

bool Compiler::operand(Node& node, Operand& out, Phase& phase) {
  if (node.status == Status::kPerCall || node.status == Status::kDerived) return loaded_operand(node, out, phase);
  phase = Phase::kLate;
  if (node.status == Status::kTracked && !ensure_tracked(node)) return false;
  if (node.status == Status::kConstant && !ensure_constant(node)) return false;
  if (node.slot < 0) {
    node.slot = new_slot(Region::kKept, node.value.get());
    if (node.table != nullptr) entry_of(node).slot = static_cast<int32_t>(node.slot);
  }
  out = {static_cast<uint32_t>(node.slot), false};
  return true;
}

// As operand, but what the path gives even for an object known by identity.
bool Compiler::loaded_operand(Node& node, Operand& out, Phase& phase) {
  const Source* source = node.source;
  if (source->kind == source::Kind::kLocal) {
    out = {static_cast<uint32_t>(source->index), true};
    phase = Phase::kEarly;
    return true;
  }
  if (!node.loaded) {
    Operand base;
    node.phase = Phase::kEarly;
    if (node.base != nullptr && !operand(*node.base, base, node.phase)) return false;
    bool derived = node.edge == Status::kDerived;
    if (derived) node.phase = Phase::kMoved;
    if (node.slot < 0 || node.status == Status::kConstant) {
      int64_t slot = new_slot(derived ? Region::kKept : Region::kScratch, nullptr);
      if (node.status != Status::kConstant) node.slot = slot;
      out.index = static_cast<uint32_t>(slot);
    } else {
      out.index = static_cast<uint32_t>(node.slot);
    }
    Row row{load_op(source->kind), static_cast<uint8_t>(base.local), 0, base.index, {0}};
    row.destination = out.index;
    row.argument = static_cast<uint32_t>(source->index);
    Py_ssize_t field = source->kind == source::Kind::kAttr && node.base->type == &PyFunction_Type ? function_field(source->key) : 0;
    if (field != 0) {
      row.op = Op::kLoadFunctionField;
      row.argument = static_cast<uint32_t>(field);
    } else if (source->key != nullptr && source->kind != source::Kind::kFreeCell) {
      row.argument = new_key(source->key);
      if (row.argument == UINT32_MAX) return false;
    }
    emit(row, node.phase);
    node.loaded = true;
    node.load_slot = out.index;
  }
  out = {node.load_slot, false};
  // What was loaded because something moved stays for the rows of every call.
  phase = node.phase == Phase::kMoved ? Phase::kLate : node.phase;
  return true;
}

bool Compiler::check_row(Node& node, Op op, uint64_t value, bool fixed) {
  Operand where;
  Phase phase = Phase::kEarly;
  if (!operand(node, where, phase)) return false;
  if (fixed && node.status != Status::kPerCall) phase = Phase::kMoved;
  emit(Row{op, static_cast<uint8_t>(where.local), 0, where.index, {value}}, phase);
  return true;
}

bool Compiler::check_key_row(Node& node, Op op, PyObject* key, uint32_t destination) {
  Operand where;
  Phase phase = Phase::kEarly;
  if (!operand(node, where, phase)) return false;
  Row row{op, static_cast<uint8_t>(where.local), 0, where.index, {0}};
  row.argument = new_key(key);
  row.destination = destination;
  if (row.argument == UINT32_MAX) return false;
  emit(row, phase);
  return true;
}

bool Compiler::lower(const Guard& guard, size_t index) {
  current_guard_ = static_cast<int32_t>(index);
  if (guard.kind == Kind::kGlobalLacks) {
    needs_globals_ = true;
    return add_entry(*plan_known_dict(PyFunction_GET_GLOBALS(frame_.func), 0), guard.payload.get(), Entry::kAbsent) != SIZE_MAX;
  }
  if (guard.kind == Kind::kPrecision) {
    const auto classes = static_cast<uint32_t>(guard.number >> 32), value = static_cast<uint32_t>(guard.number);
    Row row{Op::kPrecision, 0, 0, 0, {0}};
    row.destination = value;
    row.argument = classes;
    emit(row, Phase::kEarly);
    return bridge::float32_precision(classes) == value || fail(guard, "does not hold");
  }
  if (guard.kind == Kind::kDistinct && !guard.group.empty()) return lower_group(guard.group, guard.number);
  Node& node = *node_of(guard.source);
  switch (guard.kind) {
    case Kind::kId:
      return lower_id(guard, node);
    case Kind::kType:
      return lower_type(guard, node);
    case Kind::kEquals:
      return lower_equals(guard, node);
    case Kind::kTensor:
      return lower_tensor(node);
    case Kind::kLength:
      if (has_dict_row(node)) {
        Expected* plan = plan_dict(node);
        if (plan == nullptr) return false;
        plan->length = guard.number;
        return cpython::dict_used(node.value.get()) == guard.number || fail(guard, "does not hold");
      }
      return check_row(node, Op::kLength, static_cast<uint64_t>(guard.number));
    case Kind::kDictKeys:
      // An OrderedDict has an order of its own, which can change under an unchanged tag.
      if (has_dict_row(node) && node.type != nullptr && !PyODict_Check(node.value.get())) {
        Expected* plan = plan_dict(node);
        if (plan == nullptr) return false;
        if (plan->keys != nullptr && !source::plain_equal(plan->keys, guard.payload.get())) return fail(guard, "contradicts another");
        plan->keys = guard.payload.get();
        return true;
      }
      if (PyODict_Check(node.value.get())) {
        static const bool readable = cpython::ordered_dicts_are_readable();
        if (!readable) return fail(guard, "is on an OrderedDict, whose order cannot be read here");
      }
      return check_row(node, Op::kDictKeys, bits_of(guard.payload.get()));
    case Kind::kDictHas:
    case Kind::kDictLacks:
    case Kind::kInstanceLacks:
      return lower_key(guard, node);
    case Kind::kClassAttr:
      return lower_class_attr(guard, node);
    case Kind::kMro:
      return lower_mro(guard, node);
    case Kind::kSame:
      return lower_pair(Op::kSame, node, *node_of(guard.other));
    case Kind::kDistinct:
      pairs_.emplace_back(guard.source, guard.other);
      return true;
    case Kind::kFunctionCode:
      return check_row(node, Op::kCode, bits_of(guard.payload.get()));
    case Kind::kNoDefaults:
      return check_row(node, guard.number == 1 ? Op::kNoKwDefaults : Op::kNoDefaults, 0);
    case Kind::kCellEmpty:
      return check_row(node, Op::kCellEmpty, 0);
    case Kind::kEmptyDict:
      return lower_empty_dict(node);
    case Kind::kSubclassOf:
      return check_row(node, Op::kSubclassOf, bits_of(guard.payload.get()));
    case Kind::kPrecision:
    case Kind::kGlobalLacks:
      break;
  }
  return fail(guard, "is of an unknown kind");
}

bool Compiler::lower_id(const Guard& guard, Node& node) {
  PyObject* object = guard.payload.get();
  if (node.value.get() != object) return fail(guard, "does not hold: it is another object");
  if (node.edge == Status::kConstant) return ensure_constant(node);
  if (node.edge == Status::kTracked) {
    if (!ensure_tracked(node)) return false;
    Entry& entry = entry_of(node);
    entry.checks |= Entry::kId | Entry::kOfType;  // the type too: a plain container is found by address alone
    entry.identical = object;
    entry.type = Py_TYPE(object);
    if (!program_.holds_.hold(object, !node.table->of_class)) return false;
    if (!program_.holds_.holds(object)) program_.guards_[static_cast<size_t>(current_guard_)].type = Py_TYPE(object);
    return !class_can_change(object) || pin_type(node);
  }
  if (!program_.holds_.hold(object, false)) return false;
  Operand where;
  Phase phase = Phase::kEarly;
  if (!loaded_operand(node, where, phase)) return false;
  if (node.edge == Status::kDerived) phase = Phase::kMoved;
  emit(Row{Op::kIs, static_cast<uint8_t>(where.local), 0, where.index, {bits_of(object)}}, phase);
  return true;
}

bool Compiler::lower_type(const Guard& guard, Node& node) {
  auto* type = reinterpret_cast<PyTypeObject*>(guard.payload.get());
  if (Py_TYPE(node.value.get()) != type) return fail(guard, "does not hold: it has another type");
  if (node.status == Status::kConstant) return ensure_constant(node) && pin_type(node);
  if (set_.has(Kind::kTensor, node.source)) return true;  // which compares the class
  if (node.status == Status::kTracked) {
    if (!ensure_tracked(node)) return false;
    entry_of(node).checks |= Entry::kOfType;
    entry_of(node).type = type;
    // Assigning __class__ leaves the tag of the dictionary that holds the object alone.
    if (!class_can_change(node.value.get())) return true;
  }
  return check_row(node, Op::kType, bits_of(type), !class_can_change(node.value.get()));
}

bool Compiler::lower_equals(const Guard& guard, Node& node) {
  PyObject* value = guard.payload.get();
  if (!source::is_plain(value)) return fail(guard, "compares a value by == that is not of an exact builtin type");
  if (!source::plain_equal(value, node.value.get())) return fail(guard, "does not hold: the value differs");
  if (node.status == Status::kConstant) return ensure_constant(node);  // plain values cannot change
  if (node.status == Status::kTracked) {
    if (!ensure_tracked(node)) return false;
    entry_of(node).checks |= Entry::kEqual;
    entry_of(node).equal = value;
    return true;
  }
  if (is_singleton(value)) return check_row(node, Op::kIs, bits_of(value), true);
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) return check_row(node, Op::kInt, static_cast<uint64_t>(number), true);
  }
  return check_row(node, PyUnicode_CheckExact(value) ? Op::kStr : Op::kEquals, bits_of(value), true);
}

bool Compiler::lower_tensor(Node& node) {
  const bridge::TensorSpec* spec = program_.guards_[static_cast<size_t>(current_guard_)].spec;
  if (node.status == Status::kTracked || node.status == Status::kConstant) {
    if (node.status == Status::kTracked ? !ensure_tracked(node) : !ensure_constant(node)) return false;
    if (node.slot < 0) {
      node.slot = new_slot(Region::kTensor, node.value.get());
      if (node.table != nullptr) entry_of(node).slot = static_cast<int32_t>(node.slot);
    }
    auto region = static_cast<Region>(node.slot & 7);
    if (region == Region::kBlock || region == Region::kTensor) {
      table_tensors_.emplace_back(node.slot, spec);
      return true;
    }
    // A slot it already had for rows: checked by a row too.
  }
  if (node.source->kind == source::Kind::kLocal) {
    local_tensors_.emplace_back(static_cast<uint32_t>(node.source->index), spec);
    return true;
  }
  Operand where;
  Phase phase = Phase::kEarly;
  if (!operand(node, where, phase)) return false;
  Row row{Op::kTensors, 0, 1, where.index, {0}};
  row.argument = static_cast<uint32_t>(program_.row_specs_.size());
  program_.row_specs_.push_back(spec);
  emit(row, phase);
  return true;
}

// Arguments that lie side by side are one row.
void Compiler::emit_local_tensors() {
  std::sort(local_tensors_.begin(), local_tensors_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < local_tensors_.size();) {
    size_t end = i + 1;
    while (end < local_tensors_.size() && local_tensors_[end].first == local_tensors_[end - 1].first + 1 && end - i < UINT16_MAX) end++;
    Row row{Op::kTensors, 1, static_cast<uint16_t>(end - i), local_tensors_[i].first, {0}};
    row.argument = static_cast<uint32_t>(program_.row_specs_.size());
    for (; i < end; i++) program_.row_specs_.push_back(local_tensors_[i].second);
    emit(row, Phase::kEarly);
  }
}

bool Compiler::lower_key(const Guard& guard, Node& node) {
  bool instance = guard.kind == Kind::kInstanceLacks;
  uint8_t checks = guard.kind == Kind::kDictHas ? Entry::kAny : Entry::kAbsent;
  PyTypeObject* type = Py_TYPE(node.value.get());
  if (instance && node.status == Status::kConstant) {
    if (cpython::dict_pointer_offset(type) != 0) {
      Expected* plan = plan_instance(node);
      return plan != nullptr && add_entry(*plan, guard.payload.get(), checks) != SIZE_MAX;
    }
    if (type->tp_dictoffset == 0) return ensure_constant(node) && pin_type(node);
  }
  if (!instance && has_dict_row(node)) {
    Expected* plan = plan_dict(node);
    return plan != nullptr && add_entry(*plan, guard.payload.get(), checks) != SIZE_MAX;
  }
  Op op = instance ? Op::kInstanceLacks : guard.kind == Kind::kDictHas ? Op::kDictHas : Op::kDictLacks;
  return check_key_row(node, op, guard.payload.get());
}

bool Compiler::lower_class_attr(const Guard& guard, Node& node) {
  PyObject* expected = guard.expected.get();
  const bool itself = guard.number == 1;
  if (itself && !(node.status == Status::kConstant && PyType_Check(node.value.get()))) return fail(guard, "is on no known class");
  PyTypeObject* type = itself ? reinterpret_cast<PyTypeObject*>(node.value.get()) : node.type;
  if (type != nullptr) {
    if (node.status == Status::kConstant && !(ensure_constant(node) && (itself || pin_type(node)))) return false;
    Expected* plan = plan_type(type);
    if (plan == nullptr) return false;
    size_t index = add_entry(*plan, guard.payload.get(), expected != nullptr ? Entry::kId : Entry::kAbsent);
    if (index == SIZE_MAX) return false;
    plan->entries[index].identical = expected;
    return cpython::type_lookup(type, guard.payload.get()) == expected || fail(guard, "does not hold: the class attribute differs");
  }
  program_.pointers_.push_back(expected);
  return check_key_row(node, Op::kClassAttrIs, guard.payload.get(), static_cast<uint32_t>(program_.pointers_.size() - 1));
}

bool Compiler::lower_mro(const Guard& guard, Node& node) {
  const bool itself = guard.number == 1;
  PyTypeObject* type = itself ? reinterpret_cast<PyTypeObject*>(node.value.get()) : node.type;
  if (type == nullptr || (itself && !(node.status == Status::kConstant && PyType_Check(node.value.get()))))
    return fail(guard, "is on no known class");
  if (node.status == Status::kConstant && !(ensure_constant(node) && (itself || pin_type(node)))) return false;
  Expected* plan = plan_type(type);
  if (plan == nullptr) return false;
  plan->mro = program_.guards_[static_cast<size_t>(current_guard_)].classes;
  return has_mro(type, plan->mro) || fail(guard, "does not hold: the bases differ");
}

bool Compiler::lower_empty_dict(Node& node) {
  if (node.status == Status::kPerCall || node.status == Status::kDerived || node.slot >= 0 || !PyDict_Check(node.value.get()))
    return check_row(node, Op::kEmptyDict, 0);
  if (node.status == Status::kTracked) {
    if (!ensure_tracked(node)) return false;
    entry_of(node).checks |= Entry::kIsDict;
  } else if (!ensure_constant(node)) {
    return false;
  }
  node.slot = new_slot(Region::kEmpty, node.value.get());
  if (node.table != nullptr) entry_of(node).slot = static_cast<int32_t>(node.slot);
  return true;
}

bool Compiler::lower_pair(Op op, Node& left, Node& right) {
  Operand a, b;
  Phase first = Phase::kEarly, second = Phase::kEarly;
  if (!operand(left, a, first) || !operand(right, b, second)) return false;
  Row row{op, static_cast<uint8_t>(a.local | b.local << 1), 0, a.index, {0}};
  row.argument = b.index;
  bool fixed = left.status != Status::kPerCall && right.status != Status::kPerCall;
  emit(row, fixed ? Phase::kMoved : std::max(first, second));
  return true;
}

bool Compiler::lower_group(const std::vector<const Source*>& sources, Py_ssize_t watched) {
  Group group;
  Phase phase = Phase::kEarly;
  for (size_t i = 0; i < sources.size(); i++) {
    const bool is_watched = watched < 0 || i < static_cast<size_t>(watched);
    Operand where;
    Phase each = Phase::kEarly;
    Node* node = node_of(sources[i]);
    if (node == nullptr || !operand(*node, where, each)) return false;
    phase = std::max(phase, each);
    if (node->status == Status::kPerCall) {
      group.per_call.push_back(where);
      group.watched_per_call += is_watched;
    } else {
      group.kept.push_back(where.index);
      group.watched_kept += is_watched;
    }
  }
  size_t size = 8;
  while (size < 2 * sources.size()) size *= 2;
  group.table.resize(2 * size);
  Row row{Op::kDistinct, 0, 0, 0, {0}};
  row.argument = static_cast<uint32_t>(program_.groups_.size());
  bool fixed = group.per_call.empty();
  program_.groups_.push_back(std::move(group));
  emit(row, fixed ? Phase::kMoved : phase);
  return true;
}

// Pairs that name every pair of a set are one group: n arguments, not n * n rows.
bool Compiler::lower_distinct() {
  std::unordered_set<const Source*> members;
  std::vector<const Source*> order;
  for (auto [left, right] : pairs_) {
    for (const Source* source : {left, right}) {
      if (members.insert(source).second) order.push_back(source);
    }
  }
  if (pairs_.size() > 1 && pairs_.size() == order.size() * (order.size() - 1) / 2) return lower_group(order, -1);
  for (auto [left, right] : pairs_) {
    if (!lower_pair(Op::kNotSame, *node_of(left), *node_of(right))) return false;
  }
  return true;
}

// Rows that do the same to what lies side by side become one: items of a list that are tensors, functions' code.
void Compiler::merge_rows() {
  Program& p = program_;
  std::vector<Row> rows;
  std::vector<int32_t> guards;
  auto loads_item = [&](size_t i) { return i < p.rows_.size() && p.rows_[i].op == Op::kLoadItem; };
  for (size_t i = 0; i < p.rows_.size();) {
    Row row = p.rows_[i];
    int32_t guard = p.row_guards_[i];
    auto items_follow = [&](size_t k) {  // the k-th item of the same container, into the next slot, which is then compared as a tensor
      size_t at = i + 2 * k;
      if (!loads_item(at) || at + 1 >= p.rows_.size() || k >= UINT16_MAX) return false;
      const Row &load = p.rows_[at], &check = p.rows_[at + 1], &first = p.rows_[i + 1];
      return load.local == row.local && load.source == row.source && load.argument == row.argument + k &&
             load.destination == row.destination + k && check.op == Op::kTensors && check.count == 1 && !(check.local & 1) &&
             check.source == load.destination && check.argument == first.argument + k;
    };
    auto code_follows = [&](size_t k) {
      return i + k < p.rows_.size() && k < UINT16_MAX && p.rows_[i + k].op == Op::kCode && !((p.rows_[i + k].local | row.local) & 1) &&
             p.rows_[i + k].source == row.source + k;
    };
    size_t count = 0;
    if (row.op == Op::kLoadItem) {
      while (items_follow(count)) count++;
    } else if (row.op == Op::kCode) {
      while (code_follows(count)) count++;
    }
    if (count < 2) {
      rows.push_back(row);
      guards.push_back(guard);
      i++;
      continue;
    }
    bool items = row.op == Op::kLoadItem;
    Row check = p.rows_[i + items];
    row.count = check.count = static_cast<uint16_t>(count);
    if (items) {
      row.op = Op::kLoadItems;
      rows.push_back(row);
      guards.push_back(guard);
    } else {
      check.op = Op::kCodes;
      check.argument = static_cast<uint32_t>(p.pointers_.size());
      for (size_t k = 0; k < count; k++) p.pointers_.push_back(reinterpret_cast<PyObject*>(p.rows_[i + k].value));
    }
    rows.push_back(check);
    guards.push_back(guard);
    i += items ? 2 * count : count;
  }
  for (Row& row : rows) {
    if (row.op != Op::kSkipUnlessMoved) continue;
    auto settled = std::find_if(rows.begin(), rows.end(), [](const Row& other) { return other.op == Op::kSettled; });
    row.argument = static_cast<uint32_t>(&*settled - &row);
  }
  p.rows_ = std::move(rows);
  p.row_guards_ = std::move(guards);
}

// Lays out the slots, gives rows their final indexes, and sorts dictionaries by the stage in which they may be touched.
bool Compiler::finish() {
  if (!add_pinned_types()) return false;
  Program& p = program_;
  size_t begin[5], total = 0;
  for (size_t i = 0; i < 5; i++) {
    begin[i] = total;
    total += regions_[i].size();
    p.slots_.insert(p.slots_.end(), regions_[i].begin(), regions_[i].end());
  }
  p.slots_.push_back(nullptr);  // rows without an operand read a slot too
  auto place = [&](int64_t slot) { return static_cast<uint32_t>(begin[slot & 7] + static_cast<size_t>(slot >> 3)); };
  p.block_size_ = regions_[0].size();
  p.tensor_count_ = begin[2];
  p.empty_end_ = begin[3];
  p.table_specs_.resize(p.tensor_count_);
  for (auto [slot, spec] : table_tensors_) {
    if (p.table_specs_[place(slot)] != nullptr) return PyErr_SetString(PyExc_RuntimeError, "two tensor guards on one source"), false;
    p.table_specs_[place(slot)] = spec;
  }
  for (size_t i = 0; i < p.tensor_count_;) {  // block inputs that rows load and check leave gaps
    size_t end = i;
    while (end < p.tensor_count_ && p.table_specs_[end] != nullptr) end++;
    if (end != i) p.table_runs_.emplace_back(i, end);
    i = end + 1;
  }
  auto is_load = [](Op op) { return op <= Op::kLoadFunctionField; };
  std::vector<std::pair<Row, int32_t>> rows = std::move(rows_[0]);
  auto& moved = rows_[static_cast<size_t>(Phase::kMoved)];
  auto& late = rows_[static_cast<size_t>(Phase::kLate)];
  if (needs_globals_) {
    auto* function = reinterpret_cast<PyFunctionObject*>(frame_.func);
    p.globals_ = function->func_globals;
    p.builtins_ = function->func_builtins;
    rows.emplace_back(Row{Op::kGlobals, 0, 0, 0, {0}}, -1);
  }
  if (!(type_plans_.empty() && dict_plans_.empty() && p.objects_.empty() && p.other_objects_.empty() && p.tensor_count_ == p.empty_end_ &&
        p.table_runs_.empty())) {
    rows.emplace_back(Row{Op::kTables, 0, 0, 0, {0}}, -1);
  }
  // The code of functions that no late row loads: side by side they are one row.
  auto of_kept = [](const Row& row) { return !(row.local & 1) && static_cast<Region>(row.source & 7) == Region::kKept; };
  std::stable_partition(late.begin(), late.end(), [&](const auto& row) { return row.first.op == Op::kCode && of_kept(row.first); });
  if (!moved.empty() || !p.groups_.empty()) {
    rows.emplace_back(Row{Op::kSkipUnlessMoved, 0, 0, 0, {0}}, -1);
    rows.insert(rows.end(), moved.begin(), moved.end());
    rows.emplace_back(Row{Op::kSettled, 0, 0, 0, {0}}, -1);
  }
  rows.insert(rows.end(), late.begin(), late.end());
  rows.emplace_back(Row{Op::kEnd, 0, 0, 0, {0}}, -1);
  size_t getters = 0;
  for (auto& [row, guard] : rows) {
    bool takes_slot = !(row.local & 1) && row.op < Op::kGlobals && row.op != Op::kDistinct && row.op != Op::kLoadFreeCell;
    if (takes_slot) row.source = place(row.source);
    if (is_load(row.op)) row.destination = place(row.destination);
    if ((row.op == Op::kSame || row.op == Op::kNotSame) && !(row.local & 2)) row.argument = place(row.argument);
    getters += row.op == Op::kLoadAttr || row.op == Op::kLoadDictOf;
    p.rows_.push_back(row);
    p.row_guards_.push_back(guard);
  }
  p.owned_.reserve(getters);
  merge_rows();
  for (Operand where : inputs_) {
    add_to_runs(p.input_runs_, {where.local ? where.index : place(where.index), where.local});
  }
  for (Group& group : p.groups_) {
    for (uint32_t& slot : group.kept) slot = place(slot);
    for (Operand& where : group.per_call) {
      where.index = where.local ? where.index : place(where.index);
      add_to_runs(group.runs, where);
    }
    group.last.resize(group.per_call.size());
  }
  auto place_entries = [&](Expected& expected) {
    for (Entry& entry : expected.entries) {
      if (entry.slot >= 0) entry.slot = static_cast<int32_t>(place(entry.slot));
    }
  };
  std::vector<DictPlan*> order;
  for (DictPlan& plan : dict_plans_) order.push_back(&plan);
  std::stable_sort(order.begin(), order.end(), [](const DictPlan* a, const DictPlan* b) { return a->expected.stage < b->expected.stage; });
  std::unordered_map<PyObject*, size_t> dict_rows;
  for (DictPlan* plan : order) {
    size_t stage = plan->expected.stage;
    while (p.stages_.size() < stage) p.stages_.push_back(p.dicts_.size());
    if (plan->tracked == nullptr) dict_rows.emplace(plan->dict, p.dicts_.size());
    if (plan->tracked != nullptr) entry_of(*plan->tracked).dict_row = static_cast<int32_t>(p.dicts_.size());
    p.dicts_.push_back({plan->dict, ~uint64_t{0}});
  }
  if (!p.dicts_.empty()) p.stages_.push_back(p.dicts_.size());
  for (DictPlan* plan : order) {
    place_entries(plan->expected);
    p.dict_expected_.push_back(std::move(plan->expected));
  }
  for (auto& [type, expected] : type_plans_) {
    place_entries(expected);
    p.types_.push_back({type, ~uint64_t{0}});  // the first check compares every entry and takes the tag
    p.type_expected_.push_back(std::move(expected));
  }
  std::unordered_map<PyObject*, OwnedDict> owned;
  for (Node* node : dict_nodes_) {
    OwnedDict& dict = owned[node->value.get()];
    if (set_.has(Kind::kId, node->source)) dict.pinned = true;
    if (node->slot >= 0) dict.slots.push_back(static_cast<int32_t>(place(node->slot)));
  }
  auto owned_dict = [&](PyObject* pointer) {
    OwnedDict dict = owned[pointer];
    auto row = dict_rows.find(pointer);
    if (row != dict_rows.end()) dict.dict = row->second;
    return dict;
  };
  for (const ObjectRow& row : p.objects_) p.object_dicts_.push_back(owned_dict(row.dict));
  for (const OtherObjectRow& row : p.other_objects_) p.other_object_dicts_.push_back(owned_dict(row.pointer));
  return true;
}

}  // namespace pellucid::guard
