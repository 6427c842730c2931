// Resume functions: prologue, then the whole body with its whole exception table, entered by a jump. On 3.11 a try block is only a
// range of instructions and a stack depth, so no statement needs code of its own here.
#include "translate/resume.h"

#include <map>
#include <memory>
#include <unordered_map>

#include "base/check.h"

namespace pellucid::translate {

namespace {

using bytecode::Code;
using bytecode::Instruction;
using bytecode::LocalKind;
using bytecode::Op;

constexpr int kVarArgs = 0x04, kVarKeywords = 0x08;  // co_flags

bool same_shape(const ResumeKey& a, const ResumeKey& b) {
  return a.entry == b.entry && a.repeats == b.repeats && a.call_index == b.call_index && a.stack_null == b.stack_null &&
         a.bound == b.bound && a.lasti_slots == b.lasti_slots;
}

struct Registry {
  std::map<std::pair<PyObject*, int>, std::vector<std::unique_ptr<Resume>>> by_key;
  std::unordered_map<PyObject*, const Resume*> by_code;
};

Registry& registry() {
  static Registry& instance = *new Registry;  // outlives Python: freeing its objects then would crash
  return instance;
}

bool reads_free_variable(Op op) {
  switch (op) {
    case Op::LOAD_CLOSURE:
    case Op::LOAD_DEREF:
    case Op::STORE_DEREF:
    case Op::DELETE_DEREF:
    case Op::LOAD_CLASSDEREF:
      return true;
    default:
      return false;
  }
}

class Builder {
 public:
  Builder(const ResumeKey& key, const Code& original) : key_(key), original_(original) {}

  // `lasti`: the value for lasti_slots, in code units of the finished code.
  Code build(long lasti) {
    out_ = Code();
    out_.version = original_.version;
    out_.consts = original_.consts;
    out_.names = original_.names;
    out_.filename = original_.filename;
    out_.name = original_.name;
    out_.qualname = original_.qualname;
    out_.firstlineno = original_.firstlineno;
    out_.flags = original_.flags & ~(kVarArgs | kVarKeywords);
    locals();
    prologue(lasti);
    body();
    return std::move(out_);
  }

  size_t n_locals() const { return n_locals_; }
  int body_start() const { return shift_; }

 private:
  // Cells arrive as arguments in their own slots: no MAKE_CELL runs, the old ones stay below the entry, where locals() looks for them.
  void locals() {
    n_locals_ = 0;
    for (size_t i = 0; i < original_.localsplus_kinds.size(); i++) {
      if (original_.localsplus_kinds[i] == LocalKind::kFree) continue;
      out_.localsplus_names.push_back(original_.localsplus_names[i]);
      out_.localsplus_kinds.push_back(original_.localsplus_kinds[i] == LocalKind::kLocal ? LocalKind::kLocal : LocalKind::kLocalCell);
      n_locals_++;
    }
    size_t passed = 0;
    for (bool null : key_.stack_null) passed += !null;
    extra_ = passed + (key_.entry == ResumeKey::Entry::kByCall ? 2 : 0);
    for (size_t i = 0; i < extra_; i++) {
      out_.localsplus_names.push_back(py::Ref::steal(PyUnicode_FromFormat("__stack%zu", i)));
      out_.localsplus_kinds.push_back(LocalKind::kLocal);
    }
    out_.argcount = static_cast<int>(n_locals_ + extra_);
    for (size_t i = 0; i < original_.localsplus_kinds.size(); i++) {
      if (original_.localsplus_kinds[i] != LocalKind::kFree) continue;
      out_.localsplus_names.push_back(original_.localsplus_names[i]);
      out_.localsplus_kinds.push_back(LocalKind::kFree);
      n_free_++;
    }
  }

  Instruction& emit(Op op, uint32_t arg = 0) {
    Instruction instruction;
    instruction.op = op;
    instruction.arg = arg;
    const int at = key_.entry == ResumeKey::Entry::kByCall ? key_.call_index : key_.index;
    instruction.position = original_.instructions[static_cast<size_t>(at)].position;
    out_.instructions.push_back(instruction);
    return out_.instructions.back();
  }

  void take(size_t slot) {  // the slot must not keep the value alive
    emit(Op::LOAD_FAST, static_cast<uint32_t>(slot));
    emit(Op::DELETE_FAST, static_cast<uint32_t>(slot));
  }

  void cover(int boundary, int start) {  // signals are delivered at RESUME: the boundary's handler must see them
    for (const auto& row : original_.rows)
      if (boundary >= row.start && boundary < row.end)
        out_.rows.push_back({start, static_cast<int32_t>(out_.instructions.size()), row.target, row.depth, row.lasti});
  }

  void prologue(long lasti) {
    if (n_free_) emit(Op::COPY_FREE_VARS, static_cast<uint32_t>(n_free_));
    for (size_t i = 0; i < n_locals_; i++)
      if (!key_.bound[i]) emit(Op::DELETE_FAST, static_cast<uint32_t>(i));
    size_t argument = n_locals_;
    for (size_t i = 0; i < key_.stack_null.size(); i++) {
      bool is_lasti = false;
      for (int slot : key_.lasti_slots) is_lasti = is_lasti || static_cast<size_t>(slot) == i;
      if (is_lasti) {
        out_.consts.push_back(py::Ref::steal(PyLong_FromLong(lasti)));
        emit(Op::LOAD_CONST, static_cast<uint32_t>(out_.consts.size() - 1));
      } else if (key_.stack_null[i]) {
        emit(Op::PUSH_NULL);
      } else {
        take(argument++);
      }
    }
    int boundary = key_.index;
    if (key_.entry == ResumeKey::Entry::kByCall) {
      boundary = key_.call_index;
      emit(Op::PUSH_NULL);
      take(argument);
      take(argument + 1);
    }
    const int start = static_cast<int>(out_.instructions.size());
    emit(Op::RESUME, 0);
    if (key_.entry == ResumeKey::Entry::kByCall) emit(Op::CALL_FUNCTION_EX, 0);
    cover(boundary, start);
    Instruction& jump = emit(Op::JUMP_FORWARD);
    shift_ = static_cast<int>(out_.instructions.size());
    jump.target = shift_ + key_.index;
    for (auto& row : out_.rows) row.target += shift_;
  }

  void body() {
    for (Instruction instruction : original_.instructions) {
      if (instruction.target >= 0) instruction.target += shift_;
      if (reads_free_variable(instruction.op) && instruction.arg >= n_locals_) instruction.arg += static_cast<uint32_t>(extra_);
      instruction.extended = 0;
      instruction.offset = -1;
      out_.instructions.push_back(instruction);
    }
    for (auto row : original_.rows) {
      row.start += shift_;
      row.end += shift_;
      row.target += shift_;
      out_.rows.push_back(row);
    }
  }

  const ResumeKey& key_;
  const Code& original_;
  Code out_;
  size_t n_locals_ = 0, n_free_ = 0, extra_ = 0;
  int shift_ = 0;
};

// The handler's stack holds the place that raised, as an index of the code's units, for the line number of a later RERAISE.
long unit_of(PyObject* assembled, int index) {
  Code decoded;
  if (!bytecode::decode(assembled, decoded)) return -1;
  return decoded.instructions.at(static_cast<size_t>(index)).offset / 2;
}

}  // namespace

int call_start(const bytecode::Code& code, int pc) {
  if (code.instructions[static_cast<size_t>(pc)].op != bytecode::Op::CALL) return pc;
  for (int back = 1; back <= 2 && back <= pc; ++back) {  // PRECALL may stand between
    if (code.instructions[static_cast<size_t>(pc - back)].op == bytecode::Op::KW_NAMES) return pc - back;
  }
  return pc;
}

const Resume* resume_code(const ResumeKey& key, const Code& original) {
  auto& candidates = registry().by_key[{key.code, key.index}];
  for (auto& candidate : candidates)
    if (same_shape(candidate->key, key)) return candidate.get();
  Builder builder(key, original);
  Code code = builder.build(0);
  py::Ref assembled = py::Ref::steal(bytecode::assemble(code));
  if (assembled && !key.lasti_slots.empty()) {
    const long lasti = unit_of(assembled.get(), builder.body_start() + key.call_index);
    if (lasti < 0) return nullptr;
    Builder again(key, original);
    code = again.build(lasti);
    assembled = py::Ref::steal(bytecode::assemble(code));
  }
  if (!assembled) return nullptr;
  auto resume = std::make_unique<Resume>();
  resume->key = key;
  resume->original = py::Ref::share(key.code);
  resume->code = assembled;
  resume->n_locals = builder.n_locals();
  const Resume* result = resume.get();
  registry().by_code[assembled.get()] = result;
  candidates.push_back(std::move(resume));
  return result;
}

const Resume* resume_of(PyObject* code) {
  auto found = registry().by_code.find(code);
  return found == registry().by_code.end() ? nullptr : found->second;
}

size_t resume_count() { return registry().by_code.size(); }

void forget_resume_functions() {
  // Freeing code may run Python, so the registry must be whole by then. Code that somebody still holds stays known: it takes cells as
  // arguments, which ordinary code does not.
  std::vector<std::unique_ptr<Resume>> dropped;
  for (auto& [key, candidates] : registry().by_key) {
    std::vector<std::unique_ptr<Resume>> kept;
    for (auto& candidate : candidates) {
      if (Py_REFCNT(candidate->code.get()) > 1) {
        kept.push_back(std::move(candidate));
      } else {
        registry().by_code.erase(candidate->code.get());
        dropped.push_back(std::move(candidate));
      }
    }
    candidates = std::move(kept);
  }
  std::erase_if(registry().by_key, [](const auto& item) { return item.second.empty(); });
}

}  // namespace pellucid::translate
