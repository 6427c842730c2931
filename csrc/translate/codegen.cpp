// Codegen: emitting instructions, and putting the transformed function together.
#include "translate/codegen.h"

#include "base/check.h"

namespace pellucid::translate {

using namespace variables;

namespace {
constexpr int kOptimized = 0x01, kNewLocals = 0x02, kNested = 0x10;  // co_flags
}

Codegen::Codegen(InstructionTranslator& translator, PyObject* root_code) : t_(translator) {
  auto root = decoded(root_code, t_.profile);
  CHECK(root) << "the root's code was decoded before";
  out_.version = root->version;
  out_.filename = root->filename;
  out_.name = root->name;
  out_.qualname = root->qualname;
  out_.firstlineno = root->firstlineno;
  n_parameters_ = static_cast<size_t>(root->n_arguments());
  out_.argcount = static_cast<int>(n_parameters_);
  for (size_t i = 0; i < n_parameters_; i++) {
    out_.localsplus_names.push_back(root->localsplus_names[i]);
    out_.localsplus_kinds.push_back(bytecode::LocalKind::kLocal);
  }
  bool has_free = false;
  for (auto kind : root->localsplus_kinds) has_free = has_free || kind == bytecode::LocalKind::kFree;
  out_.flags = kOptimized | kNewLocals | (has_free ? kNested : 0);
  graph_result_ = new_temporary();
  position_.line = position_.end_line = root->firstlineno;
}

void Codegen::attribute_to_break() {
  const Frame& frame = *t_.frames().front();
  if (frame.pc >= 0) position_ = frame.instruction().position;
}

bytecode::Instruction& Codegen::emit(Op op, uint32_t arg) {
  bytecode::Instruction instruction;
  instruction.op = op;
  instruction.arg = arg;
  instruction.position = position_;
  out_.instructions.push_back(instruction);
  return out_.instructions.back();
}

uint32_t Codegen::constant_index(PyObject* object) {
  auto [found, inserted] = constants_.try_emplace(object, static_cast<uint32_t>(out_.consts.size()));
  if (inserted) out_.consts.push_back(py::Ref::share(object));
  return found->second;
}

void Codegen::load_constant(PyObject* object) { emit(Op::LOAD_CONST, constant_index(object)); }

uint32_t Codegen::name_index(PyObject* name) {
  PyObject* interned = Py_NewRef(name);
  PyUnicode_InternInPlace(&interned);
  py::Ref kept = py::Ref::steal(interned);
  auto [found, inserted] = names_.try_emplace(interned, static_cast<uint32_t>(out_.names.size()));
  if (inserted) out_.names.push_back(std::move(kept));
  return found->second;
}

void Codegen::load_name(Op op, PyObject* name) { emit(op, name_index(name)); }

void Codegen::load_call(size_t arguments) {
  emit(Op::PRECALL, static_cast<uint32_t>(arguments));
  emit(Op::CALL, static_cast<uint32_t>(arguments));
}

uint32_t Codegen::new_temporary() {
  py::Ref name = py::Ref::steal(PyUnicode_FromFormat("__t%d", n_temporaries_++));
  out_.localsplus_names.push_back(name);
  out_.localsplus_kinds.push_back(bytecode::LocalKind::kLocal);
  return static_cast<uint32_t>(out_.localsplus_names.size() - 1);
}

PyObject* Codegen::helper(const char* module, const char* name) {
  py::Ref loaded = py::Ref::steal(PyImport_ImportModule(module));
  CHECK(loaded) << module;
  PyObject* object = PyObject_GetAttrString(loaded.get(), name);
  CHECK(object) << module << "." << name;
  return t_.keep_new(object);
}

bool Codegen::is_direct(Variable* variable) {
  if (variable->kind == variables::Kind::kNull || variable->kind == variables::Kind::kConstant) return true;
  if (auto* tuple = as_tuple(variable)) return !tuple->source && tuple->real;
  // Parameters are never stored to in the transformed function.
  return variable->source && (variable->source->kind == source::Kind::kConst || variable->source->kind == source::Kind::kLocal);
}

Status Codegen::evaluate(Variable* variable) {
  if (auto* lazy = as<LazyVariable>(variable, variables::Kind::kLazy); lazy && lazy->resolved) variable = lazy->resolved;
  if (is_direct(variable) || temporaries_.count(variable)) return Unit{};
  TRY(value(variable));
  if (temporaries_.count(variable)) {  // built objects have a temporary already
    emit(Op::POP_TOP);
    return Unit{};
  }
  const uint32_t slot = new_temporary();
  store_temporary(slot);
  temporaries_[variable] = slot;
  return Unit{};
}

Status Codegen::return_value(Variable* result) {
  collect_effects();
  if (effects_.empty() && t_.global_writes().empty()) {
    TRY(value(result));
    if (!to_fill_.empty()) {
      const uint32_t slot = new_temporary();
      store_temporary(slot);
      TRY(fill_created());
      emit(Op::LOAD_FAST, slot);
    }
    emit(Op::RETURN_VALUE);
    return Unit{};
  }
  TRY(evaluate(result));
  TRY(evaluate_effects());
  TRY(write_effects());
  TRY(value(result));
  emit(Op::RETURN_VALUE);
  return Unit{};
}

// What was emitted reads outputs, puts them together and returns: nothing that could be seen from outside.
bool Codegen::is_direct(cache::DirectCall& direct) const {
  const auto& body = out_.instructions;
  auto is = [&](size_t i, Op op) { return i < body.size() && body[i].op == op; };
  size_t at = 0, count = 0, first = 0;
  while (is(at, Op::LOAD_FAST) && is(at + 1, Op::LOAD_CONST) && is(at + 2, Op::BINARY_SUBSCR) && body[at].arg == graph_result_) {
    PyObject* index = out_.consts[body[at + 1].arg].get();
    const size_t output = PyLong_CheckExact(index) ? PyLong_AsSize_t(index) : SIZE_MAX;
    if (output >= outputs_.size()) return false;
    if (count == 0) first = output;
    if (count != 0 && output != count) return false;
    count++;
    at += 3;
  }
  const bool tuple = is(at, Op::BUILD_TUPLE), list = is(at, Op::BUILD_LIST);
  if (tuple || list) {
    if (body[at].arg != count || count != outputs_.size() || first != 0) return false;
    at++;
  } else if (count != 1) {
    return false;
  }
  // A tuple that is returned is also kept for other uses, of which there are none.
  if (is(at, Op::COPY) && is(at + 1, Op::STORE_FAST)) at += 2;
  if (!is(at, Op::RETURN_VALUE) || at + 1 != body.size() || count == 0) return false;
  direct.returns = tuple  ? cache::DirectCall::Returns::kTuple
                   : list ? cache::DirectCall::Returns::kList
                          : cache::DirectCall::Returns::kItem;
  direct.index = static_cast<uint32_t>(first);
  direct.count = static_cast<uint32_t>(count);
  return true;
}

// [COPY_FREE_VARS] RESUME, the graph call, then what was emitted so far.
py::Ref Codegen::assemble(PyObject* graph_callable) {
  std::vector<bytecode::Instruction> body = std::move(out_.instructions);
  out_.instructions.clear();
  auto root = decoded(t_.root_code(), t_.profile);
  std::vector<py::Ref> free_names;
  for (size_t i = 0; i < root->localsplus_kinds.size(); i++)
    if (root->localsplus_kinds[i] == bytecode::LocalKind::kFree) free_names.push_back(root->localsplus_names[i]);
  const uint32_t first_free = static_cast<uint32_t>(out_.localsplus_names.size());
  for (auto& name : free_names) {
    out_.localsplus_names.push_back(name);
    out_.localsplus_kinds.push_back(bytecode::LocalKind::kFree);
  }
  if (!free_names.empty()) emit(Op::COPY_FREE_VARS, static_cast<uint32_t>(free_names.size()));
  emit(Op::RESUME, 0);
  const auto fix = [&](bytecode::Instruction& instruction) {  // free variables were emitted by their number in the closure
    if (instruction.op == Op::LOAD_CLOSURE || instruction.op == Op::LOAD_DEREF) instruction.arg += first_free;
  };
  if (graph_callable) {
    emit(Op::PUSH_NULL);
    load_constant(graph_callable);
    for (auto* input : arguments_) {
      Status loaded = load_source(input->source);
      CHECK(loaded.ok()) << "a graph input's source";
    }
    load_call(arguments_.size());
    if (outputs_.empty())
      emit(Op::POP_TOP);
    else
      store_temporary(graph_result_);
  }
  const int32_t shift = static_cast<int32_t>(out_.instructions.size());
  for (auto& instruction : body) {
    if (instruction.target >= 0) instruction.target += shift;
    out_.instructions.push_back(instruction);
  }
  for (auto& row : out_.rows) {
    row.start += shift;
    row.end += shift;
    row.target += shift;
  }
  for (auto& instruction : out_.instructions) fix(instruction);
  t_.profile.counts.code_units = out_.instructions.size();
  return py::Ref::steal(bytecode::assemble(out_));
}

}  // namespace pellucid::translate
