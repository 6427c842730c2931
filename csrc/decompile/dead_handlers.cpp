// From 3.11 on no exception row is left of a guarded body that only holds instructions without effect: its handler stands in the code, and
// nothing leads there. Here it gets its row back. Where the statement stands shows in what is left of its `try:`, whose place covers the
// whole of it, or in the place of a `pass` in front of the handler. Knows nothing of what handlers hold.
#include <algorithm>

#include "decompile/ast.h"
#include "decompile/dead_handlers.h"

namespace pellucid::decompile {
namespace {

using bytecode::Instruction;
using bytecode::Op;

constexpr int kPassWidth = 4;

size_t at(int index) { return static_cast<size_t>(index); }

bool goes_on_or_leaves(Op op) {
  switch (op) {
    case Op::JUMP_FORWARD:
    case Op::JUMP_BACKWARD:
    case Op::LOAD_CONST:
    case Op::RETURN_CONST:
      return true;
    default:
      return false;
  }
}

class Reviver {
 public:
  explicit Reviver(bytecode::Code& code) : code_(code), ins_(code.instructions) {}

  bool run(bytecode::Code* before) {
    const auto n = static_cast<int>(ins_.size());
    std::vector<uint8_t> alive(ins_.size());
    for (const bytecode::ExceptionRow& row : code_.rows) alive[at(row.target)] = 1;
    for (int handler = 0; handler < n; ++handler) {
      if (ins_[at(handler)].op != Op::PUSH_EXC_INFO || alive[at(handler)] != 0) continue;
      const int depth = depth_of(handler), line = line_of(handler);
      if (depth >= 0 && line > 0) revive(handler, depth, line);
    }
    if (made_.empty()) return false;
    *before = code_;
    insert();
    return true;
  }

 private:
  struct Made {
    int start = 0, end = 0;  // what is guarded; nothing: an instruction is inserted
    int handler = 0, depth = 0;
    bytecode::Position position;  // of what is inserted
    bool entered = false;         // by jumps to the instruction in front of which it is inserted
  };

  // What a handler's own code is guarded by says how deep the stack is below it.
  int depth_of(int handler) const {
    for (const bytecode::ExceptionRow& row : code_.rows) {
      if (row.start <= handler && handler < row.end && row.lasti) return row.depth - 1;
    }
    return -1;
  }

  // Where the handler's statements or its first clause begin.
  int line_of(int handler) const {
    for (size_t i = at(handler); i < ins_.size(); ++i) {
      if (ins_[i].position.line > 0) return ins_[i].position.line;
      if (ins_[i].op == Op::POP_EXCEPT) break;
    }
    return -1;
  }

  bool between(const Instruction& in, int first, int last) const {  // lines, both excluded
    const bytecode::Position& p = in.position;
    return p.line > first && p.line < last && p.line == p.end_line;
  }

  void revive(int handler, int depth, int line) {
    // The innermost `try:` around the handler.
    int found = -1;
    for (int i = 0; i < handler; ++i) {
      const bytecode::Position& p = ins_[at(i)].position;
      if (ins_[at(i)].op != Op::NOP || p.line <= 0 || p.line >= line || p.end_line < line) continue;
      if (found < 0 || p.line >= ins_[at(found)].position.line) found = i;
    }
    if (found >= 0) {
      const int first = ins_[at(found)].position.line;
      int end = found + 1;
      while (end < handler && ins_[at(end)].op == Op::NOP && between(ins_[at(end)], first, line)) ++end;
      // What stands there must not be a body with an effect, of a statement around this one.
      const Instruction& next = ins_[at(end)];
      if (next.position.line <= first || next.position.line >= line || goes_on_or_leaves(next.op)) {
        // Where not even the place of the body is left, it was a `pass` on the line of `try:`.
        const bytecode::Position& around = ins_[at(found)].position;
        const bytecode::Position beside{first, first, around.column + 5, around.column + 5 + kPassWidth};
        made_.push_back({found + 1, end, handler, depth, between(next, first, line) ? next.position : beside, false});
        return;
      }
    }
    // `try: pass` on one line leaves the place of the `pass` only.
    for (int i = handler; i-- > 0;) {
      const bytecode::Position& p = ins_[at(i)].position;
      if (p.line <= 0 || p.line >= line || p.line != p.end_line || p.end_column - p.column != kPassWidth) continue;
      if (i > 0 && ins_[at(i - 1)].position.line == p.line) continue;
      if (ins_[at(i)].op == Op::NOP) {
        made_.push_back({i, i + 1, handler, depth, {}, false});
      } else if (goes_on_or_leaves(ins_[at(i)].op)) {
        made_.push_back({i, i, handler, depth, p, true});
      } else {
        continue;
      }
      return;
    }
  }

  void insert() {
    // Where each instruction goes: with what is inserted in front of it, itself, and what is jumped to instead of it.
    std::vector<int> moved, behind, entered;
    std::vector<Instruction> all;
    for (int i = 0; i <= static_cast<int>(ins_.size()); ++i) {
      moved.push_back(static_cast<int>(all.size()));
      int target = -1;
      for (const Made& one : made_) {
        if (one.start != i || one.end != i) continue;
        if (one.entered && target < 0) target = static_cast<int>(all.size());
        all.emplace_back();
        all.back().position = one.position;
      }
      behind.push_back(static_cast<int>(all.size()));
      entered.push_back(target >= 0 ? target : behind.back());
      if (at(i) < ins_.size()) all.push_back(ins_[at(i)]);
    }
    for (Instruction& in : all) {
      if (in.target >= 0) in.target = entered[at(in.target)];
    }
    for (bytecode::ExceptionRow& row : code_.rows) {
      row.start = behind[at(row.start)];
      row.end = moved[at(row.end)];
      row.target = moved[at(row.target)];
    }
    for (const Made& one : made_) {
      const int start = moved[at(one.start)];
      add({start, one.start == one.end ? start + 1 : moved[at(one.end)], moved[at(one.handler)], one.depth, false});
    }
    std::sort(code_.rows.begin(), code_.rows.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    code_.instructions = std::move(all);
  }

  // Adds a row. What it guards is no longer guarded directly by handlers that stand behind its own: those of statements around.
  void add(const bytecode::ExceptionRow& made) {
    std::vector<bytecode::ExceptionRow> rows{made};
    for (const bytecode::ExceptionRow& row : code_.rows) {
      if (row.end <= made.start || row.start >= made.end || row.target <= made.target) {
        rows.push_back(row);
        continue;
      }
      if (row.start < made.start) rows.push_back({row.start, made.start, row.target, row.depth, row.lasti});
      if (row.end > made.end) rows.push_back({made.end, row.end, row.target, row.depth, row.lasti});
    }
    code_.rows = std::move(rows);
  }

  bytecode::Code& code_;
  const std::vector<Instruction>& ins_;
  std::vector<Made> made_;
};

}  // namespace

bool revive_handlers(bytecode::Code& code, bytecode::Code* before) { return code.version >= 311 && Reviver(code).run(before); }

}  // namespace pellucid::decompile
