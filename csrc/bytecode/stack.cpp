// Stack depths: a worklist over blocks; a handler starts at the depth its row names. Knows nothing of locals.
#include "bytecode/stack.h"

#include <algorithm>

#include "base/check.h"
#include "bytecode/effects.h"

namespace pellucid::bytecode {
namespace {

std::string at(const Code& code, int32_t index) {
  return "instruction " + std::to_string(index) + " (" + op_name(code.instructions[static_cast<size_t>(index)].op) + ")";
}

class DepthFinder {
 public:
  DepthFinder(const Code& code, const Cfg& cfg) : code_(code), cfg_(cfg), tables_(*tables(code.version)), entry_(cfg.blocks.size(), -1) {
    out_.before.assign(code.instructions.size(), -1);
  }

  StackDepths run() {
    if (!cfg_.blocks.empty()) reach(0, 0, -1);
    while (!work_.empty()) {
      const int32_t block = work_.back();
      work_.pop_back();
      walk(block);
    }
    return std::move(out_);
  }

 private:
  void complain(std::string problem) {
    if (out_.problem.empty()) out_.problem = std::move(problem);
  }

  void reach(int32_t block, int depth, int32_t from) {
    int& entry = entry_[static_cast<size_t>(block)];
    if (entry < 0) {
      entry = depth;
      work_.push_back(block);
    } else if (entry != depth) {
      complain("stack depths disagree at " + at(code_, cfg_.blocks[static_cast<size_t>(block)].start) + ": " + std::to_string(entry) +
               ", but " + std::to_string(depth) + " from instruction " + std::to_string(from));
    }
  }

  void walk(int32_t index) {
    const Block& block = cfg_.blocks[static_cast<size_t>(index)];
    int depth = entry_[static_cast<size_t>(index)];
    if (block.handler >= 0) {
      const ExceptionRow& row = code_.rows[static_cast<size_t>(block.row)];
      // The raising instruction's offset, then the exception.
      const int at_handler = row.depth + (code_.version >= 311 ? (row.lasti ? 1 : 0) + 1 : kOldHandlerValues);
      out_.max = std::max(out_.max, at_handler);
      reach(block.handler, at_handler, block.start);
    }
    for (int32_t i = block.start; i < block.end; ++i) {
      const Instruction& instruction = code_.instructions[static_cast<size_t>(i)];
      out_.before[static_cast<size_t>(i)] = depth;
      out_.max = std::max(out_.max, depth);
      if (block.row >= 0 && depth < code_.rows[static_cast<size_t>(block.row)].depth) {
        complain("the exception row over " + at(code_, i) + " keeps " + std::to_string(code_.rows[static_cast<size_t>(block.row)].depth) +
                 " values, but the stack holds " + std::to_string(depth));
      }
      const int needs = stack_needs(tables_, instruction.op, instruction.arg);
      if (depth < needs) {
        complain(at(code_, i) + " needs " + std::to_string(needs) + " values, but the stack holds " + std::to_string(depth));
      }
      // 3.8's finally bodies are called with any number of values below, and are also handlers, whose depth is what counts.
      if (instruction.target >= 0 && instruction.op != Op::CALL_FINALLY) {
        const int at_target = std::max(0, depth + stack_effect(tables_, instruction.op, instruction.arg, true));
        out_.max = std::max(out_.max, at_target);
        reach(block.jump, at_target, i);
      }
      depth = std::max(0, depth + stack_effect(tables_, instruction.op, instruction.arg, false));
    }
    const Instruction& last = code_.instructions[static_cast<size_t>(block.end) - 1];
    if (!falls_through(last.op)) return;
    out_.max = std::max(out_.max, depth);
    if (block.next >= 0) {
      reach(block.next, depth, block.end - 1);
    } else {
      complain("execution runs off the end behind " + at(code_, block.end - 1));
    }
  }

  const Code& code_;
  const Cfg& cfg_;
  const Tables& tables_;
  std::vector<int> entry_;
  std::vector<int32_t> work_;
  StackDepths out_;
};

}  // namespace

StackDepths compute_stack_depths(const Code& code, const Cfg& cfg) { return DepthFinder(code, cfg).run(); }

std::vector<int> stack_depths(const Code& code) { return compute_stack_depths(code, build_cfg(code)).before; }

}  // namespace pellucid::bytecode
