// The module table: objects with their type and dictionary, dictionaries and classes with their version tags, and what is expected under
// their keys. Everything here is compile time; run.cpp only scans the arrays.
#include <cstddef>

#include "base/check.h"
#include "guard/compile.h"
#include "guard/resolve.h"

namespace pellucid::guard {

using source::Source;

namespace {

// Instances of these can have their class assigned; those of other static types cannot.
bool class_can_change(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyModule_Check(object);
}

}  // namespace

bool Compiler::pin_type(Node& node) {
  PyObject* object = node.value.get();
  if (node.status == Status::kConstant && class_can_change(object)) pinned_types_.emplace(object, &node);
  return true;
}

// Rows for those whose type is not verified with their dictionary. What no guard says in so many words becomes one, so that the texts
// say all that the tables demand.
bool Compiler::add_pinned_types() {
  std::unordered_set<PyObject*> others;
  for (auto& [where, row] : other_rows_) others.insert(where.first);
  for (auto& [object, node] : pinned_types_) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    if (!program_.holds_.hold(type, false)) return false;
    if (object_rows_.count(object) == 0 && others.count(object) == 0) {
      program_.other_objects_.push_back({object, Py_TYPE(object), type, offsetof(PyObject, ob_type)});
    }
    if (set_.has(Kind::kType, node->source)) continue;
    GuardInfo implied{Kind::kType, node->source, nullptr, {}, type, nullptr};
    program_.guards_.push_back(std::move(implied));
  }
  return true;
}

bool Compiler::pin_pointer(Node& owner, Py_ssize_t offset, PyObject* pointer) {
  PyObject* object = owner.value.get();
  PyTypeObject* type = Py_TYPE(object);
  if (!program_.holds_.hold(reinterpret_cast<PyObject*>(type), false) || !pin_type(owner)) return false;
  if (offset == cpython::kManagedDictOffset) {
    if (object_rows_.insert(object).second) program_.objects_.push_back({object, type, pointer});
  } else if (other_rows_.emplace(std::make_pair(object, offset), program_.other_objects_.size()).second) {
    program_.other_objects_.push_back({object, type, pointer, offset});
  }
  return true;
}

// Everything that makes this constant constant is verified by the program: its path down to a guard by identity.
bool Compiler::ensure_constant(Node& node) {
  if (node.ensured) return true;
  node.ensured = true;
  if (node.edge != Status::kConstant) return true;  // its own identity guard does
  switch (node.source->kind) {
    case source::Kind::kConst:
      return program_.holds_.keep(node.value.get());
    case source::Kind::kTypeOf:
      return program_.holds_.hold(node.value.get(), false) && ensure_constant(*node.base) && pin_type(*node.base);
    case source::Kind::kDictOf:
      dict_nodes_.push_back(&node);
      return plan_instance(*node.base) != nullptr;
    default:  // an item of a tuple, a part of a bound method: owned by what cannot change
      return ensure_constant(*node.base);
  }
}

Expected* Compiler::plan_instance(Node& owner) {
  CHECK(owner.status == Status::kConstant) << "only a known object has rows in the tables: " << owner.source->name;
  PyObject* object = owner.value.get();
  if (!ensure_constant(owner)) return nullptr;
  // Makes the dictionary of an instance that keeps its values inline: only a dictionary has a tag. The program cannot tell.
  py::Ref dict = py::Ref::steal(PyObject_GenericGetDict(object, nullptr));
  if (!dict) return nullptr;
  if (!pin_pointer(owner, cpython::dict_pointer_offset(object), dict.get())) return nullptr;
  return plan_known_dict(dict.get(), 0);
}

Expected* Compiler::plan_known_dict(PyObject* dict, size_t stage) {
  DictPlan*& plan = dict_plan_of_[dict];
  if (plan == nullptr) {
    plan = &dict_plans_.emplace_back();
    plan->dict = dict;
    plan->expected.stage = stage;
  }
  return &plan->expected;
}

Expected* Compiler::plan_dict(Node& node) {
  if (node.edge == Status::kTracked && !ensure_tracked(node)) return nullptr;
  // Found in another dictionary: only to be touched when that one was verified.
  size_t stage = node.edge == Status::kTracked && !node.table->of_class ? node.table->stage + 1 : 0;
  if (node.status == Status::kTracked) {
    DictPlan*& plan = dict_plan_of_[&node];
    if (plan == nullptr) {
      entry_of(node).checks |= Entry::kIsDict;
      plan = &dict_plans_.emplace_back();
      plan->dict = node.value.get();
      plan->expected.stage = stage;
      plan->tracked = &node;
    }
    return &plan->expected;
  }
  if (!ensure_constant(node)) return nullptr;
  if (node.source->kind == source::Kind::kDictOf && node.edge == Status::kConstant) return plan_instance(*node.base);
  return plan_known_dict(node.value.get(), stage);
}

Expected* Compiler::plan_type(PyTypeObject* type) {
  if (!program_.holds_.hold(reinterpret_cast<PyObject*>(type), false)) return nullptr;
  Expected& plan = type_plans_[type];
  plan.of_class = true;
  return &plan;
}

size_t Compiler::add_entry(Expected& table, PyObject* key, uint8_t checks) {
  Entry entry;
  if (!make_key(key, entry.key)) return SIZE_MAX;
  program_.holds_.keep(key);
  entry.checks = checks;
  table.entries.push_back(entry);
  return table.entries.size() - 1;
}

bool Compiler::ensure_tracked(Node& node) {
  if (node.table != nullptr) return true;
  const Source* source = node.source;
  uint8_t checks = Entry::kAny;
  Expected* table = nullptr;
  switch (source->kind) {
    case source::Kind::kGlobal: {
      needs_globals_ = true;
      PyObject* globals = PyFunction_GET_GLOBALS(frame_.func);
      table = plan_known_dict(globals, 0);
      break;
    }
    case source::Kind::kInstanceItem:
      table = plan_instance(*node.base);
      break;
    case source::Kind::kDictItem: {
      table = plan_dict(*node.base);
      break;
    }
    case source::Kind::kAttr: {
      if (PyModule_Check(node.base->value.get())) {
        table = plan_instance(*node.base);
      } else {
        if (!ensure_constant(*node.base)) return false;
        table = plan_type(reinterpret_cast<PyTypeObject*>(node.base->value.get()));
        checks = Entry::kUnwrap;
      }
      break;
    }
    case source::Kind::kClassAttr:
      if (node.base->status == Status::kConstant && !(ensure_constant(*node.base) && pin_type(*node.base))) return false;
      table = plan_type(node.base->type);
      break;
    default:
      break;
  }
  if (table == nullptr) return false;
  node.entry = add_entry(*table, source->key, checks);
  if (node.entry == SIZE_MAX) return false;
  node.table = table;
  if (node.slot >= 0) entry_of(node).slot = static_cast<int32_t>(node.slot);
  return true;
}

}  // namespace pellucid::guard
