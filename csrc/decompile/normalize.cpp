// Rewrites instructions so that every version's code looks alike before blocks are made: one name for each kind of jump, waiting loops as
// one step, pairs of variables as two instructions, loops with one header. Knows nothing of blocks and merges no copies.
#include <algorithm>
#include <map>

#include "decompile/canonical.h"
#include "decompile/flow.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

Op plain(Op op) {
  switch (op) {
    case Op::POP_JUMP_FORWARD_IF_FALSE:
    case Op::POP_JUMP_BACKWARD_IF_FALSE:
      return Op::POP_JUMP_IF_FALSE;
    case Op::POP_JUMP_FORWARD_IF_TRUE:
    case Op::POP_JUMP_BACKWARD_IF_TRUE:
      return Op::POP_JUMP_IF_TRUE;
    case Op::POP_JUMP_FORWARD_IF_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NONE:
      return Op::POP_JUMP_IF_NONE;
    case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NOT_NONE:
      return Op::POP_JUMP_IF_NOT_NONE;
    case Op::JUMP_FORWARD:
    case Op::JUMP_BACKWARD:
    case Op::JUMP_BACKWARD_NO_INTERRUPT:
      return Op::JUMP_ABSOLUTE;
    default:
      return op;
  }
}

// 3.12 and later: COPY, POP_JUMP_IF_x, POP_TOP is what JUMP_IF_x_OR_POP was.
void join_value_jumps(Flow& flow) {
  const size_t n = flow.ins.size();
  for (size_t i = 0; i + 2 < n; ++i) {
    if (flow.ins[i].op != Op::COPY || flow.ins[i].arg != 1) continue;
    size_t jump = i + 1;
    while (jump < n && flow.ins[jump].op == Op::TO_BOOL) ++jump;
    if (jump + 1 >= n || flow.ins[jump + 1].op != Op::POP_TOP) continue;
    Instruction& taken = flow.ins[jump];
    if (taken.op == Op::POP_JUMP_IF_FALSE) {
      taken.op = Op::JUMP_IF_FALSE_OR_POP;
    } else if (taken.op == Op::POP_JUMP_IF_TRUE) {
      taken.op = Op::JUMP_IF_TRUE_OR_POP;
    } else {
      continue;
    }
    for (size_t k = i; k <= jump + 1; ++k) {
      if (k == jump) continue;
      flow.ins[k].op = Op::NOP;
      flow.hidden[k] = 1;
    }
  }
}

// From 3.12 on conditional jumps lead forward only: one that would lead back is turned around to skip a jump back made for it.
void join_backward_jumps(Flow& flow, std::vector<int>& row_of) {
  const size_t n = flow.ins.size();
  std::map<int, int> moved;
  std::vector<uint8_t> is_target(n + 1);
  for (const Instruction& in : flow.ins) {
    if (in.target >= 0) is_target[at(in.target)] = 1;
  }
  for (size_t i = 0; i + 2 < n; ++i) {
    Instruction &test = flow.ins[i], &back = flow.ins[i + 1];
    if (opposite(test.op) == test.op || test.target != static_cast<int>(i) + 2 || back.op != Op::JUMP_ABSOLUTE ||
        back.target > static_cast<int>(i) || is_target[i + 1] != 0 || !same_position(test, back)) {
      continue;
    }
    test.op = opposite(test.op);
    test.target = back.target;
    back.op = Op::NOP;
    back.target = -1;
    flow.hidden[i + 1] = 1;
    if (i > 0 && is_target[i] == 0) row_of[i] = row_of[i - 1];  // no row covers what was made last
    row_of[i + 1] = row_of[i];
    if (row_of[i + 2] == row_of[i]) moved[static_cast<int>(i) + 2] = static_cast<int>(i) + 1;
  }
  // Other jumps to where the test falls now lead to the same block.
  for (Instruction& in : flow.ins) {
    if (const auto found = moved.find(in.target); found != moved.end()) in.target = found->second;
  }
}

// except*: from 3.13 on what is left of the group joins what clauses raised in a copy of its own on each way there.
void join_star_ends(Flow& flow) {
  const int n = static_cast<int>(flow.ins.size());
  std::map<int, int> joined;  // by CALL_INTRINSIC_2: the copy right before it
  for (int i = 0; i + 1 < n; ++i) {
    if (flow.ins[at(i)].op == Op::LIST_APPEND && flow.ins[at(i + 1)].op == Op::CALL_INTRINSIC_2) joined[i + 1] = i;
  }
  for (int i = 0; i + 1 < n; ++i) {
    Instruction &append = flow.ins[at(i)], &jump = flow.ins[at(i + 1)];
    if (append.op != Op::LIST_APPEND || append.arg != 1 || jump.op != Op::JUMP_ABSOLUTE) continue;
    const auto found = joined.find(jump.target);
    if (found == joined.end()) continue;
    append.op = Op::JUMP_ABSOLUTE;
    append.target = found->second;
    append.arg = 0;
    append.position = {};
  }
}

}  // namespace

Op opposite(Op op) {
  switch (op) {
    case Op::POP_JUMP_IF_FALSE:
      return Op::POP_JUMP_IF_TRUE;
    case Op::POP_JUMP_IF_TRUE:
      return Op::POP_JUMP_IF_FALSE;
    case Op::POP_JUMP_IF_NONE:
      return Op::POP_JUMP_IF_NOT_NONE;
    case Op::POP_JUMP_IF_NOT_NONE:
      return Op::POP_JUMP_IF_NONE;
    default:
      return op;
  }
}

bool same_position(const Instruction& a, const Instruction& b) {
  // The second one of a pair has no place of its own.
  if ((a.position.end_column < 0) != (b.position.end_column < 0) && a.op == b.op) return a.position.line == b.position.line;
  return a.position.line == b.position.line && a.position.column == b.position.column && a.position.end_line == b.position.end_line &&
         a.position.end_column == b.position.end_column;
}

bool is_conditional(Op op) {
  switch (op) {
    case Op::POP_JUMP_IF_FALSE:
    case Op::POP_JUMP_IF_TRUE:
    case Op::POP_JUMP_IF_NONE:
    case Op::POP_JUMP_IF_NOT_NONE:
    case Op::JUMP_IF_FALSE_OR_POP:
    case Op::JUMP_IF_TRUE_OR_POP:
    case Op::JUMP_IF_NOT_EXC_MATCH:
      return true;
    default:
      return false;
  }
}

// 3.13's instructions for two variables, each as two.
void split_pairs(bytecode::Code& code) {
  const auto parts = [](Op op) -> std::pair<Op, Op> {
    switch (op) {
      case Op::LOAD_FAST_LOAD_FAST:
        return {Op::LOAD_FAST, Op::LOAD_FAST};
      case Op::STORE_FAST_LOAD_FAST:
        return {Op::STORE_FAST, Op::LOAD_FAST};
      case Op::STORE_FAST_STORE_FAST:
        return {Op::STORE_FAST, Op::STORE_FAST};
      default:
        return {Op::NOP, Op::NOP};
    }
  };
  std::vector<int32_t> moved;
  std::vector<Instruction> split;
  moved.reserve(code.instructions.size() + 1);
  for (const Instruction& in : code.instructions) {
    moved.push_back(static_cast<int32_t>(split.size()));
    split.push_back(in);
    const auto [first, second] = parts(in.op);
    if (first == Op::NOP) continue;
    split.back().op = first;
    split.back().arg = in.arg >> 4;
    split.push_back(in);
    split.back().op = second;
    split.back().arg = in.arg & 15;
    split.back().position.end_column = -1;
  }
  moved.push_back(static_cast<int32_t>(split.size()));
  if (split.size() == code.instructions.size()) return;
  for (Instruction& in : split) {
    if (in.target >= 0) in.target = moved[at(in.target)];
  }
  for (bytecode::ExceptionRow& row : code.rows) {
    row.start = moved[at(row.start)];
    row.end = moved[at(row.end)];
    row.target = moved[at(row.target)];
  }
  code.instructions = std::move(split);
}

void normalize(const bytecode::Code& code, Flow& flow, std::vector<uint8_t>* leaders, std::vector<int>* row_of) {
  flow.ins = code.instructions;
  const size_t n = flow.ins.size();
  flow.hidden.assign(n, 0);
  flow.tested_below.assign(n, 0);
  leaders->assign(n + 1, 0);
  row_of->assign(n, -1);
  for (size_t r = code.rows.size(); r-- > 0;) {  // backwards: where rows overlap the first one wins
    for (int i = code.rows[r].start; i < code.rows[r].end; ++i) (*row_of)[at(i)] = static_cast<int>(r);
  }
  // What one handler guards may be several rows; the first one stands for all.
  std::map<int, int> first_row;
  for (size_t r = 0; r < code.rows.size(); ++r) first_row.insert({code.rows[r].target, static_cast<int>(r)});
  for (int& row : *row_of) {
    if (row >= 0) row = first_row[code.rows[at(row)].target];
  }
  for (size_t i = 0; i < n; ++i) flow.ins[i].op = plain(flow.ins[i].op);
  join_value_jumps(flow);
  if (code.version >= 312) join_backward_jumps(flow, *row_of);
  if (code.version >= 313) join_star_ends(flow);
  for (size_t i = 0; i < n; ++i) {
    Instruction& in = flow.ins[i];
    switch (in.op) {
      case Op::SEND: {  // the loop up to its target waits; nothing in it stands in the source
        if (in.target < 0) break;
        for (int k = static_cast<int>(i) + 1; k < in.target; ++k) {
          flow.ins[at(k)].op = Op::NOP;
          flow.ins[at(k)].target = -1;
          flow.hidden[at(k)] = 1;
          (*row_of)[at(k)] = (*row_of)[i];
        }
        in.target = -1;
        break;
      }
      case Op::GET_ANEXT: {
        (*leaders)[i] = 1;  // the handler's END_ASYNC_FOR ends the loop: as FOR_ITER with the code behind it as its target
        const int row = (*row_of)[i];
        if (row < 0) break;
        const int handler = code.rows[at(row)].target;
        if (flow.ins[at(handler)].op != Op::END_ASYNC_FOR || at(handler) + 1 >= n) break;
        in.target = handler + 1;
        break;
      }
      case Op::TO_BOOL:
        if (!only_tested(flow.ins, i)) break;  // `not not x`
        in.op = Op::NOP;
        flow.hidden[i] = 1;
        break;
      case Op::FOR_ITER: {
        (*leaders)[i] = 1;
        // 3.12 and later drop the iterator behind the loop; here it is not on the stack there.
        int end = in.target;
        if (end >= 0 && flow.ins[at(end)].op == Op::END_FOR) {
          flow.ins[at(end)].op = Op::NOP;
          flow.hidden[at(end)] = 1;
          if (code.version >= 313 && at(++end) < n && flow.ins[at(end)].op == Op::POP_TOP) {
            flow.ins[at(end)].op = Op::NOP;
            flow.hidden[at(end)] = 1;
          }
        }
        break;
      }
      default:
        break;
    }
  }
  // A loop that begins with instructions without effect may be entered again at any of them; it has one header.
  std::vector<uint8_t> back(n), loops(n);
  size_t cold = n;  // from 3.12 on handlers stand behind everything else and jump back to where their statement ends, too
  for (const bytecode::ExceptionRow& row : code.rows) {
    if (code.version >= 312 && code.instructions[at(row.target)].op == Op::PUSH_EXC_INFO) cold = std::min(cold, at(row.target));
  }
  for (size_t i = 0; i < n; ++i) {
    const int target = flow.ins[i].target;
    if (target < 0 || target > static_cast<int>(i)) continue;
    back[at(target)] = 1;
    if (i < cold || at(target) >= cold) loops[at(target)] = 1;
  }
  // A loop goes back from its end with the place of its test, or of what is left of its `True`, to behind that: a loop that begins there
  // with instructions without effect is another one.
  std::vector<uint8_t> bodies(n);
  for (size_t i = 0; i < n; ++i) {
    const Instruction& in = flow.ins[i];
    if (in.target < 1 || in.target > static_cast<int>(i)) continue;
    const Instruction& header = flow.ins[at(in.target - 1)];
    const bool tests = header.op == Op::NOP || is_conditional(header.op);
    if (tests && in.position.line > 0 && same_position(header, in)) bodies[at(in.target)] = 1;
  }
  for (size_t i = 0; i < n; ++i) {
    int& target = flow.ins[i].target;
    if (target < 0 || target > static_cast<int>(i)) continue;
    int first = target, last = target;
    while (at(last) + 1 < n && flow.ins[at(last)].op == Op::NOP) ++last;
    for (int k = target; k > 0 && flow.ins[at(k - 1)].op == Op::NOP; --k) {
      if (bodies[at(k - 1)] != 0) break;
      if (back[at(k - 1)] != 0) first = k - 1;
    }
    if (std::find(loops.begin() + first, loops.begin() + last + 1, 1) != loops.begin() + last + 1) target = first;
  }
  // Rows that only guard the waiting of an async for are not a try statement.
  for (size_t i = 0; i < n; ++i) {
    int& row = (*row_of)[i];
    const auto guards_nothing = [&](int r) {
      const Instruction& first = code.instructions[at(code.rows[at(r)].target)];
      return first.op == Op::END_ASYNC_FOR || first.op == Op::CLEANUP_THROW || (first.op == Op::CALL_INTRINSIC_1 && first.arg == 3);
    };
    while (row >= 0 && guards_nothing(row)) {
      row = code.rows[at(row)].target < static_cast<int>(n) ? (*row_of)[at(code.rows[at(row)].target)] : -1;
      if (row >= 0 && code.rows[at(row)].target <= static_cast<int>(i)) break;
    }
  }
}

}  // namespace pellucid::decompile
