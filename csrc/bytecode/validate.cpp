// Checks instructions before they are run: what the interpreter itself takes on trust would crash it. Knows nothing of values.
#include <string>
#include <vector>

#include "bytecode/cfg.h"
#include "bytecode/effects.h"
#include "bytecode/local_uses.h"
#include "bytecode/stack.h"
#include "bytecode/tables.h"

namespace pellucid::bytecode {
namespace {

std::string at(const Code& code, size_t index) {
  return "instruction " + std::to_string(index) + " (" + op_name(code.instructions[index].op) + ")";
}

std::string slot_name(const Code& code, size_t slot) {
  const char* text = PyUnicode_AsUTF8(code.localsplus_names[slot].get());
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "?" : text;
}

size_t name_index(const Code& code, const Instruction& instruction) {
  switch (instruction.op) {
    case Op::LOAD_GLOBAL:
      return code.version >= 311 ? instruction.arg >> 1 : instruction.arg;
    case Op::LOAD_ATTR:
      return code.version >= 312 ? instruction.arg >> 1 : instruction.arg;
    case Op::LOAD_SUPER_ATTR:
      return instruction.arg >> 2;
    default:
      return instruction.arg;
  }
}

std::string check_one(const Code& code, const Tables& tables, size_t index) {
  const Instruction& instruction = code.instructions[index];
  if (static_cast<int>(instruction.op) >= kOpCount) return "instruction " + std::to_string(index) + " is no opcode at all";
  if (!tables.has(instruction.op)) return at(code, index) + ": no such opcode in " + std::to_string(code.version);
  if (instruction.op == Op::EXTENDED_ARG || instruction.op == Op::CACHE) return at(code, index) + ": placed by the assembler alone";
  const OpInfo& info = tables.info(instruction.op);
  const bool jumps = is_jump(tables, instruction.op);
  if (jumps != (instruction.target >= 0)) return at(code, index) + (jumps ? ": a jump without a target" : ": a target, but no jump");
  if (instruction.target >= static_cast<int32_t>(code.instructions.size())) return at(code, index) + ": the target is out of range";
  if ((info.flags & kHasArg) == 0 && instruction.arg != 0) return at(code, index) + ": takes no argument";
  const auto range = [&](size_t value, size_t size, const char* what) {
    return value < size ? std::string()
                        : at(code, index) + ": " + what + " " + std::to_string(value) + " is out of range (" + std::to_string(size) + ")";
  };
  if ((info.flags & kHasConst) != 0) return range(instruction.arg, code.consts.size(), "constant");
  if ((info.flags & kHasName) != 0) return range(name_index(code, instruction), code.names.size(), "name");
  const SlotEffects effects = slot_effects(tables, instruction.op, instruction.arg);
  for (int e = 0; e < effects.count; ++e) {
    const size_t slot = effects.slots[e].slot;
    std::string problem = range(slot, code.localsplus_names.size(), "local");
    if (!problem.empty()) return problem;
  }
  return "";
}

// Whether what is used through a cell is one. Compilers leave code that nothing reaches as it was, while its variables change their kind.
std::string check_cells(const Code& code, const Tables& tables, size_t index) {
  const SlotEffects effects = slot_effects(tables, code.instructions[index].op, code.instructions[index].arg);
  for (int e = 0; e < effects.count; ++e) {
    const size_t slot = effects.slots[e].slot;
    const LocalKind kind = code.localsplus_kinds[slot];
    // From 3.12 on a comprehension's cell may stand in for a free variable of the same name.
    const bool may_be_cell = kind == LocalKind::kCell || kind == LocalKind::kLocalCell || (kind == LocalKind::kFree && code.version >= 312);
    if ((effects.slots[e].use & kMakesCell) != 0 && !may_be_cell) {
      return at(code, index) + ": " + slot_name(code, slot) + " is no cell variable";
    }
    if ((effects.slots[e].use & kThroughCell) != 0 && kind == LocalKind::kLocal) {
      return at(code, index) + ": " + slot_name(code, slot) + " is neither a cell nor a free variable";
    }
  }
  if (code.instructions[index].op == Op::COPY_FREE_VARS) {
    size_t frees = 0;
    for (const LocalKind kind : code.localsplus_kinds) frees += kind == LocalKind::kFree;
    if (frees != code.instructions[index].arg) return at(code, index) + ": there are " + std::to_string(frees) + " free variables";
  }
  return "";
}

// Instructions that must stand together, because the interpreter's specialised forms step over the second one unseen.
std::string check_pairs(const Code& code, size_t index) {
  const Instruction& instruction = code.instructions[index];
  const auto op_at = [&](size_t i) { return i < code.instructions.size() ? code.instructions[i].op : Op::CACHE; };
  const auto leads_to = [&](Op wanted) {
    return op_at(static_cast<size_t>(instruction.target)) == wanted ? "" : at(code, index) + ": it must lead to " + op_name(wanted);
  };
  switch (instruction.op) {
    case Op::PRECALL:  // PRECALL_BUILTIN_CLASS and others make the call themselves
      if (op_at(index + 1) != Op::CALL || code.instructions[index + 1].arg != instruction.arg) {
        return at(code, index) + ": CALL with the same argument must follow";
      }
      return "";
    case Op::FOR_ITER:  // an exhausted iterator goes on behind END_FOR
      if (code.version >= 313 && op_at(static_cast<size_t>(instruction.target) + 1) != Op::POP_TOP) {
        return at(code, index) + ": it must lead to END_FOR and POP_TOP";
      }
      return code.version >= 312 ? leads_to(Op::END_FOR) : "";
    case Op::SEND:
      return code.version >= 312 ? leads_to(Op::END_SEND) : "";
    default:
      return "";
  }
}

std::string check_rows(const Code& code) {
  const auto n = static_cast<int32_t>(code.instructions.size());
  std::vector<bool> covered(static_cast<size_t>(n));
  for (size_t r = 0; r < code.rows.size(); ++r) {
    const ExceptionRow& row = code.rows[r];
    const std::string name = "exception row " + std::to_string(r);
    if (row.start < 0 || row.end > n || row.start > row.end) return name + ": its instructions are out of range";
    if (row.target < 0 || row.target >= n) return name + ": its target is out of range";
    if (row.depth < 0) return name + ": its depth is negative";
    for (int32_t i = row.start; i < row.end; ++i) {
      if (covered[static_cast<size_t>(i)]) return name + ": " + at(code, static_cast<size_t>(i)) + " is covered by another row too";
      covered[static_cast<size_t>(i)] = true;
    }
  }
  return "";
}

// What a slot may be, over all paths that lead to an instruction.
enum State : uint8_t { kEmpty = 1, kValue = 2, kCell = 4 };

class Bindings {
 public:
  Bindings(const Code& code, const Cfg& cfg) : code_(code), cfg_(cfg), tables_(*tables(code.version)) {
    slots_ = code.localsplus_names.size();
    entry_.assign(cfg.blocks.size(), std::vector<uint8_t>(slots_));
    seen_.assign(cfg.blocks.size(), false);
  }

  std::string run() {
    std::vector<uint8_t> start(slots_, kEmpty);
    for (size_t s = 0; s < slots_ && s < static_cast<size_t>(code_.n_arguments()); ++s) start[s] = kValue;
    for (size_t s = 0; s < slots_ && code_.version < 311; ++s) {  // cells are there from the start
      if (code_.localsplus_kinds[s] != LocalKind::kLocal) start[s] = kCell;
    }
    reach(0, start);
    while (!work_.empty()) {
      const size_t block = static_cast<size_t>(work_.back());
      work_.pop_back();
      walk(block, false);
    }
    for (size_t b = 0; b < cfg_.blocks.size() && problem_.empty(); ++b) {
      if (seen_[b]) walk(b, true);
    }
    return problem_;
  }

 private:
  void reach(int32_t block, const std::vector<uint8_t>& states) {
    if (block < 0) return;
    const auto b = static_cast<size_t>(block);
    bool changed = !seen_[b];
    seen_[b] = true;
    for (size_t s = 0; s < slots_; ++s) {
      const auto joined = static_cast<uint8_t>(entry_[b][s] | states[s]);
      changed |= joined != entry_[b][s];
      entry_[b][s] = joined;
    }
    if (changed) work_.push_back(block);
  }

  void walk(size_t b, bool report) {
    const Block& block = cfg_.blocks[b];
    std::vector<uint8_t> states = entry_[b];
    for (int32_t i = block.start; i < block.end; ++i) {
      if (!report) reach(block.handler, states);
      step(static_cast<size_t>(i), states, report);
    }
    if (report) return;
    reach(block.handler, states);
    reach(block.next, states);
    reach(block.jump, states);
  }

  void complain(size_t index, size_t slot, const char* what) {
    if (problem_.empty()) problem_ = at(code_, index) + ": " + slot_name(code_, slot) + what;
  }

  void step(size_t index, std::vector<uint8_t>& states, bool report) {
    const Instruction& instruction = code_.instructions[index];
    if (instruction.op == Op::COPY_FREE_VARS) {
      for (size_t s = 0; s < slots_; ++s) {
        if (code_.localsplus_kinds[s] == LocalKind::kFree) states[s] = kCell;
      }
      return;
    }
    const SlotEffects effects = slot_effects(tables_, instruction.op, instruction.arg);
    for (int e = 0; e < effects.count; ++e) {
      const auto [slot, use] = effects.slots[e];
      uint8_t& state = states[slot];
      if (report && (use & kThroughCell) != 0 && state != kCell) {
        complain(index, slot, " may hold no cell there");
      } else if (report && (use & kReads) != 0 && (use & kMayBeEmpty) == 0) {
        // From 3.12 on the compiler proves that LOAD_FAST finds a value, and the interpreter trusts it.
        const bool trusted = code_.version >= 312 && (instruction.op == Op::LOAD_FAST || instruction.op == Op::LOAD_FAST_LOAD_FAST);
        if (state == kEmpty) complain(index, slot, " cannot be bound there");
        if (trusted && (state & kEmpty) != 0) complain(index, slot, " may be unbound there, which this opcode does not check");
      }
      // Behind a read that did not raise, the slot is known to hold something.
      if ((use & kReads) != 0 && (use & kMayBeEmpty) == 0)
        state = state == kEmpty ? uint8_t{kValue} : static_cast<uint8_t>(state & ~kEmpty);
      if ((use & kEmpties) != 0) state = kEmpty;
      if ((use & kMakesCell) != 0) {
        state = kCell;
      } else if ((use & kWrites) != 0) {
        // A cell that LOAD_FAST_AND_CLEAR took out (an inlined comprehension), or that generated code puts in, is taken on trust.
        state = code_.localsplus_kinds[slot] == LocalKind::kLocal ? kValue : kCell;
      }
    }
  }

  const Code& code_;
  const Cfg& cfg_;
  const Tables& tables_;
  size_t slots_ = 0;
  std::vector<std::vector<uint8_t>> entry_;  // by block
  std::vector<bool> seen_;
  std::vector<int32_t> work_;
  std::string problem_;
};

}  // namespace

std::string validate(const Code& code) {
  const Tables* tables = bytecode::tables(code.version);
  if (tables == nullptr) return "no opcode tables for version " + std::to_string(code.version);
  if (code.instructions.empty()) return "there are no instructions";
  if (code.localsplus_kinds.size() != code.localsplus_names.size()) return "the names and kinds of localsplus differ in number";
  if (code.n_arguments() > code.nlocals()) return "there are fewer locals than arguments";
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    std::string problem = check_one(code, *tables, i);
    if (!problem.empty()) return problem;
  }
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    std::string problem = check_pairs(code, i);
    if (!problem.empty()) return problem;
  }
  std::string problem = check_rows(code);
  if (!problem.empty()) return problem;
  const Cfg cfg = build_cfg(code);
  const StackDepths depths = compute_stack_depths(code, cfg);
  if (!depths.problem.empty()) return depths.problem;
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    if (depths.before[i] < 0) continue;
    problem = check_cells(code, *tables, i);
    if (!problem.empty()) return problem;
  }
  return Bindings(code, cfg).run();
}

}  // namespace pellucid::bytecode
