// See old_positions.h. Up to 3.9 nothing is copied: a `return` of None that is not at the very end stands in the source, and a jump behind
// another one that is never reached shows that the first is a statement. 3.10 copies the end of a function to each jump that leads there,
// with the line of that jump.
#include "decompile/old_positions.h"

#include <vector>

#include "bytecode/effects.h"

namespace pellucid::decompile {
namespace {

using bytecode::Code;
using bytecode::Instruction;
using bytecode::Op;

size_t at(int32_t index) { return static_cast<size_t>(index); }

constexpr int32_t kFarthest = 4000;  // how far a condition may stand before the jump it was drawn past
constexpr int kReturn = 6, kContinue = 8, kBreak = 5, kPass = 4, kNothing = 0;

class Placer {
 public:
  Placer(Code& code, const CodeChoices& choices) : code_(code), choices_(choices), n_(static_cast<int32_t>(code.instructions.size())) {}

  void run() {
    find_reached();
    if (code_.version < 310) find_threaded();
    for (int32_t i = 0; i < n_; ++i) {
      if (returns_none(i)) {
        place_return(i);
      } else if (jumps(i) && reached_[at(i)] != 0) {
        place_jump(i);
      }
    }
  }

 private:
  Instruction& in(int32_t i) { return code_.instructions[at(i)]; }
  const Instruction& in(int32_t i) const { return code_.instructions[at(i)]; }
  bool is(int32_t i, Op op) const { return i >= 0 && i < n_ && code_.instructions[at(i)].op == op; }
  bool jumps(int32_t i) const { return is(i, Op::JUMP_ABSOLUTE) || is(i, Op::JUMP_FORWARD); }
  bool returns_none(int32_t i) const {
    if (!is(i, Op::LOAD_CONST) || !is(i + 1, Op::RETURN_VALUE)) return false;
    const uint32_t constant = code_.instructions[at(i)].arg;
    return constant < code_.consts.size() && code_.consts[constant].get() == Py_None;
  }

  void find_reached() {
    reached_.assign(at(n_), 0);
    handler_.assign(at(n_), -1);
    for (const bytecode::ExceptionRow& row : code_.rows) {
      for (int32_t i = row.start; i < row.end; ++i) handler_[at(i)] = row.target;
    }
    std::vector<int32_t> work{0};
    while (!work.empty()) {
      int32_t i = work.back();
      work.pop_back();
      for (; i < n_ && reached_[at(i)] == 0; ++i) {
        reached_[at(i)] = 1;
        const Instruction& instruction = in(i);
        if (instruction.target >= 0) work.push_back(instruction.target);
        if (handler_[at(i)] >= 0) work.push_back(handler_[at(i)]);
        if (!bytecode::falls_through(instruction.op) || instruction.op == Op::END_FINALLY) break;
      }
    }
    from_.resize(at(n_));
    last_dead_.assign(at(n_), -1);
    for (int32_t i = 0; i < n_; ++i) {
      if (in(i).target < 0) continue;
      if (reached_[at(i)] != 0) {
        from_[at(in(i).target)].push_back(i);
      } else {
        last_dead_[at(in(i).target)] = i;
      }
    }
  }

  // A condition that jumps back to a loop led to a jump there: `continue` at the end of what the condition guards, or the loop's own.
  void find_threaded() {
    threaded_.assign(at(n_), 0);
    for (int32_t i = 0; i < n_; ++i) {
      if (!is_branch(i) || in(i).target > i) continue;
      for (int32_t k = i + 1; k < n_ && k < i + kFarthest; ++k) {
        if (jumps(k) && in(k).target == in(i).target) {
          // Not what ends a guarded body or a handler.
          threaded_[at(k)] = k + 1 < n_ && !is(k + 1, Op::PUSH_EXC_INFO) && !is(k + 1, Op::RERAISE) && !is(k - 1, Op::POP_EXCEPT);
          break;
        }
      }
    }
  }

  void place(int32_t i, int width) {
    in(i).position.column = 0;
    in(i).position.end_column = width;
  }

  void place_return(int32_t i) {
    const bool likely = code_.version < 310 ? i + 2 < last_ordinary() : stands_in_310(i);
    const bool stands = choices_.decide(ChoiceKind::kReturn, i, likely);
    const int width = stands ? kReturn : kNothing;
    place(i, width);
    place(i + 1, width);
  }

  // Behind the code that the compiler of the old version made.
  int32_t last_ordinary() {
    int32_t end = n_;
    while (end > 0 && in(end - 1).offset < 0) --end;
    return end;
  }

  bool stands_in_310(int32_t i) {
    const int line = in(i).position.line;
    if (line < 0) return false;
    for (int32_t from : from_[at(i)]) {
      if (in(from).position.line == line) return false;
    }
    if (i == 0 || !bytecode::falls_through(in(i - 1).op) || in(i - 1).position.line != line) return true;
    if (in(i - 1).target >= i) return true;  // `if a: return` in one line
    // Past what takes the iterators of loops off the stack.
    int32_t before = i - 1;
    while (before > 0 && in(before).position.line == line && is(before, Op::POP_TOP)) --before;
    if (before < i - 1 && !returns_none(last_ordinary() - 2) && in(before).position.line != line && ends_statement(before)) return true;
    return behind_nop(i);
  }

  bool ends_statement(int32_t i) const {
    const Op op = code_.instructions[at(i)].op;
    return is_branch(i) || op == Op::POP_TOP || op == Op::NOP || op == Op::STORE_FAST || op == Op::STORE_NAME || op == Op::STORE_ATTR ||
           op == Op::STORE_SUBSCR || op == Op::STORE_GLOBAL || op == Op::STORE_DEREF;
  }

  // Where `return` leaves a with statement or a finally block its own line is kept before the copy of what ends these.
  bool behind_nop(int32_t i) {
    const int32_t outer = handler_[at(i)];
    for (int32_t k = i - 1; k > 0; --k) {
      const Instruction& before = in(k);
      if (before.target >= 0 || !bytecode::falls_through(before.op)) return false;
      if (before.op != Op::NOP) continue;
      if (handler_[at(k)] == outer || before.position.line < 0 || before.position.line == in(k + 1).position.line) return false;
      const bool alone = (is(k - 1, Op::POP_TOP) || is(k - 1, Op::STORE_FAST)) && is(k - 2, Op::BEFORE_WITH);
      place(k, alone ? kPass : kReturn);
      return !alone;
    }
    return false;
  }

  void place_jump(int32_t i) {
    const bool back = in(i).target <= i;
    if (code_.version < 310 && !back) return;
    if (choices_.decide(ChoiceKind::kJump, i, code_.version < 310 ? continues(i) : jump_stands_in_310(i)))
      place(i, back ? kContinue : kBreak);
  }

  bool jump_stands_in_310(int32_t i) const {
    const bool back = in(i).target <= i;
    const int line = in(i).position.line;
    int before = i - 1;  // past the end of a handler, which has the line of what leaves it
    while (before > 0 && in(before).position.line == line && ends_handler(before)) --before;
    if (line < 0 || i == 0 || in(before).position.line == line) return false;
    if (back && (in(in(i).target).position.line == line || (is(in(i).target - 1, Op::NOP) && in(in(i).target - 1).position.line == line))) {
      return false;  // the jump of `while True`
    }
    if (!bytecode::falls_through(in(i - 1).op) || in(i - 1).target < 0) {
      if (!from_[at(i)].empty()) return false;
    }
    return true;
  }

  bool ends_handler(int32_t i) const {
    switch (code_.instructions[at(i)].op) {
      case Op::POP_EXCEPT:
      case Op::NOP:
        return true;
      case Op::LOAD_CONST:
        return is(i - 1, Op::POP_EXCEPT);
      case Op::STORE_FAST:
      case Op::STORE_NAME:
      case Op::STORE_GLOBAL:
      case Op::STORE_DEREF:
        return is(i - 2, Op::POP_EXCEPT);
      case Op::DELETE_FAST:
      case Op::DELETE_NAME:
      case Op::DELETE_GLOBAL:
      case Op::DELETE_DEREF:
        return is(i - 3, Op::POP_EXCEPT);
      default:
        return false;
    }
  }

  // Whether a jump back is no loop's own one, nor what a jump to the end of the loop was turned into: behind `continue` stands, not
  // reached, what ends the branch or the block it is in.
  bool continues(int32_t i) {
    const int32_t target = in(i).target;
    // The loop's own: the last one, unless a return stands behind it, which has nothing unreached behind itself.
    const bool last = from_[at(target)].back() <= i && last_dead_[at(target)] <= i;
    if (is(target, Op::FOR_ITER) ? in(target).target == i + 1 : last) return false;
    if (threaded_[at(i)] != 0) return true;
    if (i > 0 && in(i - 1).target == i + 1 && from_[at(i)].empty() && is_branch(i - 1)) return true;  // all that a branch does
    // Behind a < b < c, past what drops the value, the `continue` that the jump led to stands not reached.
    if (is(i + 1, Op::POP_TOP) && i + 3 < n_ && jumps(i + 2) && jumps(i + 3) && reached_[at(i + 3)] == 0 && in(i + 3).target == target) {
      return true;
    }
    if (i + 1 >= n_ || reached_[at(i + 1)] != 0 || in(i + 1).offset < 0) {
      // 3.8: a handler, or the one that unbinds an exception's name. What it guards ends otherwise than by jumping back.
      return code_.version == 308 && i + 1 < n_ &&
             (returns_to_name(i) || (is(i + 1, Op::PUSH_EXC_INFO) && in(i + 1).arg != 0 && !guarded_by(target, i + 1)));
    }
    const bool left_handler = is(i - 1, Op::POP_EXCEPT) || is(i - 1, Op::DELETE_FAST) || is(i - 1, Op::DELETE_NAME) ||
                              is(i - 1, Op::DELETE_GLOBAL) || is(i - 1, Op::DELETE_DEREF);
    if (is(i + 1, Op::POP_EXCEPT)) return left_handler;
    if (is(i + 1, Op::LOAD_CONST) && is(i + 2, Op::DUP_TOP) && is(i + 3, Op::DUP_TOP)) return is(i - 1, Op::POP_TOP);  // ends `with`
    if (!jumps(i + 1) || i + 2 >= n_) return false;
    if (is(i + 2, Op::PUSH_EXC_INFO)) return !guarded_by(target, i + 2);
    if (left_handler) return true;
    for (int32_t from : from_[at(i + 2)]) {
      if (from > target && from < i) return true;
    }
    return false;
  }

  bool is_branch(int32_t i) const { return is(i, Op::POP_JUMP_IF_FALSE) || is(i, Op::POP_JUMP_IF_TRUE); }

  bool returns_to_name(int32_t i) const {
    if (!(is(i - 1, Op::DELETE_FAST) || is(i - 1, Op::DELETE_NAME) || is(i - 1, Op::DELETE_GLOBAL) || is(i - 1, Op::DELETE_DEREF)))
      return false;
    return is(i + 1, Op::LOAD_CONST) && is(i + 4, Op::RERAISE);
  }

  bool guarded_by(int32_t i, int32_t handler) const {
    for (const bytecode::ExceptionRow& row : code_.rows) {
      if (row.target == handler && row.start <= i) return true;
    }
    return false;
  }

  Code& code_;
  const CodeChoices& choices_;
  int32_t n_;
  std::vector<uint8_t> reached_, threaded_;
  std::vector<int32_t> handler_;  // what guards each instruction
  std::vector<std::vector<int32_t>> from_;
  std::vector<int32_t> last_dead_;  // the last jump to an instruction that is never reached
};

}  // namespace

void place_old_statements(Code& code, const CodeChoices& choices) {
  if (code.version < 311 && !code.instructions.empty()) Placer(code, choices).run();
}

}  // namespace pellucid::decompile
