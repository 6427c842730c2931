// 3.10 copies code that ends in a return or a raise: up to four instructions to each jump that leads there, and what begins without a line
// (the end of the function, the end of a guarded body) whatever its length. Here the copies become one again, the last. Lines tell copies
// from code that is merely alike.
#include <algorithm>
#include <map>
#include <tuple>

#include "bytecode/effects.h"
#include "bytecode/tables.h"
#include "decompile/flow.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

constexpr int kMostInstructions = 4;   // MAX_COPY_SIZE of 3.10's compiler
constexpr size_t kMostCandidates = 8;  // the nearest ones, and as many of those that stand last

class ExitMerger {
 public:
  ExitMerger(const bytecode::Code& code, Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths,
             const std::vector<uint8_t>& leaders, const CodeChoices& choices)
      : flow_(flow),
        choices_(choices),
        original_(flow.ins),
        row_of_(row_of),
        depths_(depths),
        leaders_(leaders),
        tables_(*bytecode::tables(code.version)) {
    targets_.assign(flow.ins.size(), 0);
    for (const Instruction& in : flow.ins) {
      if (in.target < 0) continue;
      const bool keeps = in.op == Op::JUMP_IF_TRUE_OR_POP || in.op == Op::JUMP_IF_FALSE_OR_POP;
      uint8_t& kind = targets_[at(in.target)];
      kind = std::max(kind, static_cast<uint8_t>(keeps ? 2 : 1));
    }
  }

  void run() {
    std::map<std::tuple<int, int, int>, std::vector<int>> kept;
    for (int i = static_cast<int>(flow_.ins.size()); i-- > 0;) {
      const Instruction& in = original_[at(i)];
      if ((in.op != Op::RETURN_VALUE && in.op != Op::RAISE_VARARGS && in.op != Op::RERAISE) || depths_[at(i)] < 0) continue;
      const bool implied = is_implied(i);
      if (in.position.line < 0 && !implied) continue;
      std::vector<int>& same = kept[{implied ? -1 : in.position.line, static_cast<int>(in.op), implied ? 0 : in.position.end_column}];
      int best = 0, other = -1;
      for (size_t k = same.size(); k-- > 0;) {
        if (k >= kMostCandidates && same.size() - k > kMostCandidates) continue;
        if (const int length = alike(same[k], i); length >= std::max(best, 1)) {
          best = length;
          other = same[k];
        }
      }
      same.push_back(i);
      if (best == 0 || !choices_.decide(ChoiceKind::kCopy, i, true)) continue;
      Instruction& jump = flow_.ins[at(i - best + 1)];
      jump.op = Op::JUMP_ABSOLUTE;
      jump.target = other - best + 1;
      jump.arg = 0;
      jump.position = {};
    }
  }

 private:
  // A return of None that stands nowhere: see old_positions.cpp.
  bool is_implied(int i) const {
    const bytecode::Position& p = original_[at(i)].position;
    return original_[at(i)].op == Op::RETURN_VALUE && p.column == 0 && p.end_column == 0;
  }

  bool same_step(int a, int b, bool implied) const {
    const Instruction &p = original_[at(a)], &q = original_[at(b)];
    if (p.op != q.op || p.arg != q.arg || p.target >= 0 || q.target >= 0 || row_of_[at(a)] != row_of_[at(b)] ||
        depths_[at(a)] != depths_[at(b)]) {
      return false;
    }
    return implied ||
           (p.position.line == q.position.line && p.position.column == q.position.column && p.position.end_column == q.position.end_column);
  }

  bool begins(int i) const { return i == 0 || targets_[at(i)] != 0 || leaders_[at(i)] != 0 || row_of_[at(i - 1)] != row_of_[at(i)]; }

  // How many instructions up to these two are copies of each other, 0: none.
  int alike(int a, int b) const {
    const bool implied = is_implied(a);
    int length = 0;
    bool bounded = false;
    while (a - length > b && b - length >= 0) {
      const int i = a - length, j = b - length;
      if (!same_step(i, j, implied && length < 2)) break;
      const Instruction& in = original_[at(i)];
      if (in.op == Op::RETURN_VALUE || in.op == Op::RAISE_VARARGS || in.op == Op::RERAISE) {
        if (length > 0) break;
      } else if (!bytecode::falls_through(in.op)) {
        break;
      }
      ++length;
      // What ends a handler is guarded otherwise than the value that is returned behind it.
      if (in.op == Op::POP_EXCEPT && targets_[at(i)] == 0 && targets_[at(j)] == 0 && consumes(a, length)) continue;
      if (begins(i) && begins(j)) {
        bounded = true;
        break;
      }
      if (begins(i) || begins(j)) break;
    }
    if (length == 0) return 0;
    // What ends a finally block is copied with it, never alone.
    if (length > 1 && begins_with_value(a - length + 1) && in_expression(b - length)) return length;
    if (original_[at(a)].op == Op::RERAISE) return bounded && length > 1 && !consumes(a, length) ? length : 0;
    if ((bounded || implied) && !consumes(a, length)) return length;
    return bounded ? 0 : small(a, b, length);
  }

  // Whether a branch of an expression leads here with its value, which is dropped.
  bool begins_with_value(int i) const { return original_[at(i)].op == Op::POP_TOP && targets_[at(i)] == 2; }

  // Where it is not known where the copied code began: as much as is copied at all.
  int small(int a, int b, int length) const {
    // The branches of an expression leave their value to what was copied.
    if (length <= kMostInstructions && in_expression(a - length) && in_expression(b - length)) return length;
    for (int shorter = std::min(length, kMostInstructions); shorter > 0; --shorter) {
      if (!consumes(a, shorter)) return shorter;
      if (carried(a - shorter) && carried(b - shorter)) return shorter;
    }
    return 0;
  }

  // Whether what lies on the stack behind an instruction lay there before the branch that leads to it.
  bool carried(int i) const {
    const int depth = i + 1 < static_cast<int>(original_.size()) ? depths_[at(i + 1)] : -1;
    for (; i >= 0; --i) {
      if (is_conditional(original_[at(i)].op)) return true;
      if (!bytecode::falls_through(original_[at(i)].op) || depths_[at(i)] < depth || row_of_[at(i)] != row_of_[at(i + 1)]) return false;
      if (targets_[at(i)] != 0) return true;
    }
    return false;
  }

  // Whether nothing but an expression stands between the branch before an instruction and the instruction.
  bool in_expression(int i) const {
    for (; i >= 0; --i) {
      const Instruction& in = original_[at(i)];
      if (is_conditional(in.op)) return true;
      if (in.op == Op::POP_TOP && i > 0 && original_[at(i - 1)].op == Op::ROT_TWO && targets_[at(i - 1)] != 0) return true;  // a < b < c
      switch (in.op) {
        case Op::POP_TOP:
        case Op::POP_EXCEPT:
        case Op::STORE_FAST:
        case Op::STORE_NAME:
        case Op::STORE_GLOBAL:
        case Op::STORE_DEREF:
        case Op::STORE_ATTR:
        case Op::STORE_SUBSCR:
        case Op::ROT_TWO:
        case Op::SWAP:
          return false;
        default:
          break;
      }
      if (targets_[at(i)] != 0) return true;
      if (!bytecode::falls_through(in.op) || row_of_[at(i)] != row_of_[at(i + 1)]) return false;
    }
    return false;
  }

  // Whether the last `length` instructions up to `a` use values they did not make, but for what they leave.
  bool consumes(int a, int length) const {
    int low = 0, depth = 0, allowed = 0;
    for (int k = length; k-- > 0;) {
      const Instruction& in = original_[at(a - k)];
      depth -= std::max(0, needs(in));
      low = std::min(low, depth);
      depth += std::max(0, needs(in)) + effect(in);
      if (in.op == Op::POP_EXCEPT || in.op == Op::RERAISE ||
          (in.op == Op::CALL_FUNCTION && in.arg == 3 && k + 2 < length && original_[at(a - k - 1)].op == Op::DUP_TOP &&
           original_[at(a - k - 2)].op == Op::DUP_TOP)) {
        ++allowed;
      }
    }
    const Op first = original_[at(a - length + 1)].op;
    return -low > allowed || first == Op::ROT_TWO || first == Op::SWAP;
  }

  int needs(const Instruction& in) const {
    if (in.op == Op::POP_EXCEPT || in.op == Op::RERAISE) return 1;
    return bytecode::stack_needs(tables_, in.op, in.arg);
  }
  int effect(const Instruction& in) const {
    if (in.op == Op::POP_EXCEPT || in.op == Op::RERAISE) return -1;
    if (in.op == Op::SWAP) return 0;
    return bytecode::stack_effect(tables_, in.op, in.arg, false);
  }

  Flow& flow_;
  const CodeChoices& choices_;
  const std::vector<Instruction> original_;
  const std::vector<int>&row_of_, &depths_;
  const std::vector<uint8_t>& leaders_;
  const bytecode::Tables& tables_;
  std::vector<uint8_t> targets_;  // by instruction: 1 where jumps lead to it, 2 where some do with a value
};

}  // namespace

// Up to 3.9, and sometimes from 3.12 on, `return a < b < c` returns in both places; the first return was a jump to the second one.
void join_returned_comparisons(Flow& flow) {
  for (size_t i = 1; i + 2 < flow.ins.size(); ++i) {
    const bool swaps = flow.ins[i].op == Op::ROT_TWO || (flow.ins[i].op == Op::SWAP && flow.ins[i].arg == 2);
    if (!swaps || flow.ins[i + 1].op != Op::POP_TOP || flow.ins[i + 2].op != Op::RETURN_VALUE || flow.ins[i - 1].op != Op::RETURN_VALUE) {
      continue;
    }
    const auto leads_here = [&](const Instruction& in) { return in.op == Op::JUMP_IF_FALSE_OR_POP && in.target == static_cast<int>(i); };
    const size_t from = i > 64 ? i - 64 : 0;
    if (std::none_of(flow.ins.begin() + static_cast<std::ptrdiff_t>(from), flow.ins.begin() + static_cast<std::ptrdiff_t>(i), leads_here)) {
      continue;
    }
    Instruction& jump = flow.ins[i - 1];
    jump.op = Op::JUMP_ABSOLUTE;
    jump.target = static_cast<int>(i) + 2;
    jump.arg = 0;
  }
}

void merge_old_exits(const bytecode::Code& code, Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths,
                     const std::vector<uint8_t>& leaders, const CodeChoices& choices) {
  ExitMerger(code, flow, row_of, depths, leaders, choices).run();
}

}  // namespace pellucid::decompile
