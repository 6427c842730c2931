// The driver of the compiler, and what is known of each source. A guard that does not hold now is an error: the capture it belongs to
// no longer describes the program.
#include "guard/compile.h"

#include "guard/resolve.h"
#include "source/plain.h"

namespace pellucid::guard {

using source::Source;

std::unique_ptr<GuardProgram> GuardProgram::compile(const GuardSet& guards, const std::vector<const Source*>& block,
                                                    std::shared_ptr<source::Arena> arena, const FrameView& frame,
                                                    const std::vector<const Source*>& inputs) {
  auto program = std::make_unique<Program>();
  if (!Compiler(guards, frame, *program).compile(block, inputs)) return nullptr;
  program->adopt_arena(std::move(arena));
  Verdict verdict = program->check(frame);
  if (verdict == Verdict::kHit) return program;
  if (verdict == Verdict::kMiss) {
    std::string text;
    for (const std::string& failure : program->failures(frame)) text += (text.empty() ? "" : "; ") + failure;
    if (PyErr_Occurred() == nullptr) {
      PyErr_Format(PyExc_RuntimeError, "guards do not hold at the end of their own capture: %s",
                   text.empty() ? "(none is named)" : text.c_str());
    }
  }
  return nullptr;
}

bool Compiler::compile(const std::vector<const Source*>& block, const std::vector<const Source*>& inputs) {
  program_.block_sources_ = block;
  if (!bridge::capture_global_state(program_.state_)) return false;
  if (!collect()) return false;
  for (const Source* source : block) {
    Node* node = node_of(source);
    if (node == nullptr) return false;
    if (node->in_block) {
      PyErr_Format(PyExc_ValueError, "%s is twice in the block of inputs", source->name.c_str());
      return false;
    }
    node->in_block = true;
    node->slot = new_slot(Region::kBlock, node->value.get());
    if (node->source->kind == source::Kind::kLocal) {
      PyErr_Format(PyExc_ValueError, "%s is an argument: it cannot be in the block of inputs", source->name.c_str());
      return false;
    }
  }
  // Cheap tests of arguments first: they tell entries apart. Then the state, then tensors, then what has to be loaded.
  const auto& guards = set_.guards();
  auto is_first = [&](const Guard& guard) {
    return guard.source != nullptr && guard.source->kind == source::Kind::kLocal &&
           (guard.kind == Kind::kType || guard.kind == Kind::kId || guard.kind == Kind::kEquals || guard.kind == Kind::kSubclassOf);
  };
  for (size_t i = 0; i < guards.size(); i++) {
    if (is_first(guards[i]) && !lower(guards[i], i)) return false;
  }
  current_guard_ = -1;
  emit(Row{Op::kState, 0, 0, 0, {0}}, Phase::kEarly);
  for (size_t i = 0; i < guards.size(); i++) {
    if (guards[i].kind == Kind::kTensor && guards[i].source->kind == source::Kind::kLocal && !lower(guards[i], i)) return false;
  }
  current_guard_ = -1;
  emit_local_tensors();
  for (size_t i = 0; i < guards.size(); i++) {
    const Guard& guard = guards[i];
    if (is_first(guard) || (guard.kind == Kind::kTensor && guard.source->kind == source::Kind::kLocal)) continue;
    if (!lower(guard, i)) return false;
  }
  current_guard_ = -1;
  for (const Source* source : block) {  // whatever no guard loaded
    Operand out;
    Phase phase = Phase::kEarly;
    if (!operand(*node_of(source), out, phase)) return false;
  }
  return find_inputs(inputs) && lower_distinct() && finish();
}

bool Compiler::find_inputs(const std::vector<const Source*>& inputs) {
  for (const Source* source : inputs) {
    Node* node = node_of(source);
    Phase phase = Phase::kEarly;
    if (node == nullptr || !operand(*node, inputs_.emplace_back(), phase)) return false;
    for (; node != nullptr && node->status == Status::kPerCall; node = node->base) {
      bool owned = node->source->kind == source::Kind::kAttr || node->source->kind == source::Kind::kDictOf;
      if (owned) program_.keeps_inputs_ = false;
    }
  }
  return true;
}

// Nodes for all sources of all guards; every status is known before any row is made.
bool Compiler::collect() {
  const auto& guards = set_.guards();
  for (size_t i = 0; i < guards.size(); i++) {
    const Guard& guard = guards[i];
    if (!keep_guard(guard)) return false;
    if (guard.kind == Kind::kGlobalLacks || guard.kind == Kind::kPrecision) continue;
    std::vector<const Source*> sources = guard.group;
    if (guard.source != nullptr) sources.push_back(guard.source);
    if (guard.other != nullptr) sources.push_back(guard.other);
    for (const Source* source : sources) {
      Node* node = node_of(source);
      if (node == nullptr) return false;
      if (source == guard.source) node->guards.push_back(i);
    }
  }
  return true;
}

Node* Compiler::node_of(const Source* source) {
  auto found = nodes_.find(source);
  if (found != nodes_.end()) return &found->second;
  Node* base = nullptr;
  if (source->base != nullptr) {
    base = node_of(source->base);
    if (base == nullptr) return nullptr;
  }
  Node node;
  node.source = source;
  node.base = base;
  node.value = step(source, base != nullptr ? base->value.get() : nullptr, frame_);
  if (!node.value) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_Format(PyExc_RuntimeError, "the guarded %s cannot be read without running Python code, or does not exist",
                   source->name.c_str());
    }
    return nullptr;
  }
  node.edge = edge_of(node);
  node.status = set_.has(Kind::kId, source) ? Status::kConstant : node.edge;
  node.type = known_type(node);
  return &nodes_.emplace(source, std::move(node)).first->second;
}

PyTypeObject* Compiler::known_type(const Node& node) const {
  if (node.status == Status::kConstant || set_.has(Kind::kType, node.source) || set_.has(Kind::kTensor, node.source) ||
      set_.has(Kind::kEquals, node.source)) {
    return Py_TYPE(node.value.get());
  }
  return set_.has(Kind::kFunctionCode, node.source) ? &PyFunction_Type : nullptr;
}

Status Compiler::edge_of(Node& node) {
  using source::Kind;
  const Source* source = node.source;
  if (node.base == nullptr) {
    if (source->kind == Kind::kConst) return Status::kConstant;
    return source->kind == Kind::kGlobal ? Status::kTracked : Status::kPerCall;
  }
  PyObject* base = node.base->value.get();
  bool constant = node.base->status == Status::kConstant, tracked = node.base->status == Status::kTracked;
  bool behind_tags = node.base->status != Status::kPerCall;
  switch (source->kind) {
    case Kind::kInstanceItem:
      return constant && cpython::dict_pointer_offset(Py_TYPE(base)) != 0 ? Status::kTracked : Status::kPerCall;
    case Kind::kDictItem:
      return (constant || tracked) && PyDict_Check(base) ? Status::kTracked : Status::kPerCall;
    case Kind::kAttr: {
      if (behind_tags && node.base->type != nullptr && never_changes(base, source->key))
        return constant ? Status::kConstant : Status::kDerived;
      if (!constant) return Status::kPerCall;
      if (PyModule_CheckExact(base)) {
        PyObject* dict = cpython::instance_dict(base);
        bool own = dict != nullptr && cpython::type_lookup(Py_TYPE(base), source->key) == nullptr;
        return own ? Status::kTracked : Status::kPerCall;
      }
      if (!PyType_Check(base) || Py_TYPE(base) != &PyType_Type || cpython::type_lookup(&PyType_Type, source->key) != nullptr)
        return Status::kPerCall;
      return class_value(cpython::type_lookup(reinterpret_cast<PyTypeObject*>(base), source->key)) != nullptr ? Status::kTracked
                                                                                                              : Status::kPerCall;
    }
    case Kind::kClassAttr:
      return node.base->type != nullptr ? Status::kTracked : Status::kPerCall;
    case Kind::kTypeOf:
      return node.base->type != nullptr ? Status::kConstant : Status::kPerCall;
    case Kind::kDictOf:
      return constant ? Status::kConstant : Status::kPerCall;
    case Kind::kItem:  // a tuple cannot change; a list can, and has no tag
      if (!PyTuple_Check(base) || !behind_tags || node.base->type == nullptr) return Status::kPerCall;
      return constant ? Status::kConstant : Status::kDerived;
    case Kind::kBoundSelf:
    case Kind::kBoundFunc:
      return constant ? Status::kConstant : behind_tags ? Status::kDerived : Status::kPerCall;
    default:
      return Status::kPerCall;
  }
}

// What is kept of a guard for reports. Objects known by identity are held weakly by the program, never by the guard.
bool Compiler::keep_guard(const Guard& guard) {
  GuardInfo info{guard.kind, guard.source, guard.other, guard.group, guard.payload.get(), guard.expected.get()};
  info.number = guard.number;
  info.where = guard.where;
  Holds& holds = program_.holds_;
  switch (guard.kind) {
    case Kind::kId:
      break;  // held when it is lowered: how depends on where the object was found
    case Kind::kType:
    case Kind::kFunctionCode:
    case Kind::kSubclassOf:
      if (guard.payload.get() == nullptr || !holds.hold(guard.payload.get(), false)) return fail(guard, "needs a payload");
      break;
    case Kind::kMro:
      info.payload = nullptr;
      if (guard.payload.get() == nullptr || !PyTuple_Check(guard.payload.get())) return fail(guard, "needs a tuple of classes");
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(guard.payload.get()); i++) {
        info.classes.push_back(PyTuple_GET_ITEM(guard.payload.get(), i));
        if (!holds.hold(info.classes.back(), false)) return false;
      }
      break;
    case Kind::kTensor:
      info.payload = nullptr;
      if (guard.payload.get() == nullptr) return fail(guard, "needs an example tensor");
      info.spec = program_.specs_.add(guard.payload.get());
      if (info.spec == nullptr) return fail(guard, "");
      if (!holds.hold(reinterpret_cast<PyObject*>(info.spec->type), false)) return false;
      break;
    default:
      if (guard.payload) info.owned_payload = guard.payload;
      if (guard.expected && !holds.hold(guard.expected.get(), false)) return false;
      break;
  }
  program_.guards_.push_back(std::move(info));
  return true;
}

bool Compiler::fail(const Guard& guard, const char* why) {
  if (PyErr_Occurred() != nullptr) return false;
  PyErr_Format(PyExc_RuntimeError, "the guard on %s %s", guard.source != nullptr ? guard.source->name.c_str() : "the globals", why);
  return false;
}

}  // namespace pellucid::guard
