// Which locals may still be read: backwards over the control-flow graph, with an exception edge from every covered instruction.
// Knows nothing of values.
#include <cstring>

#include "base/check.h"
#include "bytecode/cfg.h"
#include "bytecode/local_uses.h"

namespace pellucid::bytecode {
namespace {

using Words = std::vector<uint64_t>;

bool any_name(const Code& code, const Instruction& instruction, std::initializer_list<const char*> wanted) {
  const size_t index = instruction.op == Op::LOAD_GLOBAL && code.version >= 311 ? instruction.arg >> 1 : instruction.arg;
  if (index >= code.names.size()) return false;
  for (const char* name : wanted) {
    if (PyUnicode_CompareWithASCIIString(code.names[index].get(), name) == 0) return true;
  }
  return false;
}

class Liveness {
 public:
  explicit Liveness(const Code& code) : code_(code), cfg_(build_cfg(code)), tables_(*tables(code.version)) {
    slots_ = code.localsplus_names.size();
    words_ = (slots_ + 63) / 64;
    entry_.assign(cfg_.blocks.size() * words_, 0);
    find_frame_readers();
  }

  std::vector<std::vector<bool>> run() {
    Words live(words_);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = cfg_.blocks.size(); b-- > 0;) {
        walk(cfg_.blocks[b], live, nullptr);
        uint64_t* entry = entry_.data() + b * words_;  // there may be no slots, so no words
        if (words_ > 0 && std::memcmp(entry, live.data(), words_ * sizeof(uint64_t)) != 0) {
          std::memcpy(entry, live.data(), words_ * sizeof(uint64_t));
          changed = true;
        }
      }
    }
    std::vector<std::vector<bool>> result(code_.instructions.size());
    for (const Block& block : cfg_.blocks) walk(block, live, &result);
    return result;
  }

 private:
  // Calls that may look into the frame itself: locals(), eval(), exec() and so on read everything; super() without arguments reads the
  // first argument. A call is not matched with the name it calls: where such a name is loaded at all, every call counts.
  void find_frame_readers() {
    for (const Instruction& instruction : code_.instructions) {
      if (instruction.op != Op::LOAD_GLOBAL && instruction.op != Op::LOAD_NAME) continue;
      if (any_name(code_, instruction, {"locals", "vars", "dir", "eval", "exec"})) calls_read_all_ = true;
      if (any_name(code_, instruction, {"super"})) calls_read_first_ = true;
    }
  }

  void join(Words& live, int32_t block) const {
    if (block < 0) return;
    for (size_t w = 0; w < words_; ++w) live[w] |= entry_[static_cast<size_t>(block) * words_ + w];
  }

  void walk(const Block& block, Words& live, std::vector<std::vector<bool>>* result) const {
    live.assign(words_, 0);
    join(live, block.next);
    join(live, block.jump);
    for (int32_t i = block.end; i-- > block.start;) {
      step(code_.instructions[static_cast<size_t>(i)], live);
      join(live, block.handler);
      if (result == nullptr) continue;
      std::vector<bool>& bits = (*result)[static_cast<size_t>(i)];
      bits.resize(slots_);
      for (size_t s = 0; s < slots_; ++s) bits[s] = (live[s / 64] >> (s % 64) & 1) != 0;
    }
  }

  void step(const Instruction& instruction, Words& live) const {
    const auto set = [&](size_t slot) { live[slot / 64] |= uint64_t{1} << (slot % 64); };
    const auto clear = [&](size_t slot) { live[slot / 64] &= ~(uint64_t{1} << (slot % 64)); };
    switch (instruction.op) {
      case Op::COPY_FREE_VARS:
        for (size_t s = 0; s < slots_; ++s) {
          if (code_.localsplus_kinds[s] == LocalKind::kFree) clear(s);
        }
        return;
      case Op::CALL:
      case Op::CALL_KW:
      case Op::CALL_FUNCTION_EX:
      case Op::LOAD_SUPER_ATTR:
        if (calls_read_all_) {
          for (size_t s = 0; s < slots_; ++s) set(s);
        } else if (calls_read_first_ && slots_ > 0 && code_.argcount > 0) {
          set(0);
        }
        return;
      default:
        break;
    }
    const SlotEffects effects = slot_effects(tables_, instruction.op, instruction.arg);
    for (int e = effects.count; e-- > 0;) {
      const auto [slot, use] = effects.slots[e];
      CHECK(slot < slots_) << op_name(instruction.op) << " names slot " << slot << " of " << slots_;
      if ((use & (kWrites | kEmpties)) != 0) clear(slot);
      const bool fresh_cell = (use & kMakesCell) != 0 && code_.localsplus_kinds[slot] == LocalKind::kCell;
      if ((use & kReads) != 0 && !fresh_cell) set(slot);
    }
  }

  const Code& code_;
  const Cfg cfg_;
  const Tables& tables_;
  size_t slots_ = 0, words_ = 0;
  Words entry_;  // by block: live where it starts
  bool calls_read_all_ = false, calls_read_first_ = false;
};

}  // namespace

std::vector<std::vector<bool>> live_locals(const Code& code) { return Liveness(code).run(); }

}  // namespace pellucid::bytecode
