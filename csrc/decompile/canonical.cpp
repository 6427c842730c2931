// Two passes: each instruction becomes no, one or two nodes; then links are drawn past what became none, and short-circuit jumps that lead
// to branches are threaded. See canonical.h.
#include "decompile/canonical.h"

#include "bytecode/effects.h"
#include "bytecode/tables.h"

namespace pellucid::decompile {
namespace {

using bytecode::Code;
using bytecode::Instruction;
using bytecode::Op;

constexpr int32_t kNone = -1;

class Builder {
 public:
  explicit Builder(const Code& code) : code_(code), tables_(*bytecode::tables(code.version)) {}

  CanonicalFlow run() {
    find_rows();
    const size_t n = code_.instructions.size();
    first_node_.assign(n + 1, kNone);
    for (size_t i = 0; i < n; ++i) {
      const auto before = static_cast<int32_t>(flow_.nodes.size());
      add(i);
      if (static_cast<int32_t>(flow_.nodes.size()) > before) first_node_[i] = before;
    }
    forever_ = static_cast<int32_t>(flow_.nodes.size());
    flow_.nodes.push_back({});
    flow_.nodes.back().kind = CanonicalKind::kForever;
    link();
    thread();
    flow_.entry = n == 0 ? kNone : landing(0);
    return std::move(flow_);
  }

 private:
  void find_rows() {
    const size_t n = code_.instructions.size();
    row_of_.assign(n, kNone);
    for (size_t r = code_.rows.size(); r-- > 0;) {
      for (int32_t i = code_.rows[r].start; i < code_.rows[r].end; ++i) row_of_[static_cast<size_t>(i)] = static_cast<int32_t>(r);
    }
    for (size_t i = 0; i < n; ++i) {
      if (code_.instructions[i].op == Op::RESUME) {
        prologue_end_ = i;
        break;
      }
    }
  }

  CanonicalNode& node(size_t index, Op op) {
    CanonicalNode& made = flow_.nodes.emplace_back();
    made.op = op;
    made.instruction = static_cast<int32_t>(index);
    return made;
  }

  PyObject* local(uint32_t slot) const { return slot < code_.localsplus_names.size() ? code_.localsplus_names[slot].get() : nullptr; }
  PyObject* name(uint32_t index) const { return index < code_.names.size() ? code_.names[index].get() : nullptr; }
  PyObject* constant(uint32_t index) const { return index < code_.consts.size() ? code_.consts[index].get() : nullptr; }

  void add_local(size_t index, Op op, uint32_t slot) {
    CanonicalNode& made = node(index, op);
    made.object = local(slot);
    made.named = true;
  }

  void add_name(size_t index, Op op, uint32_t arg, int64_t number = 0) {
    CanonicalNode& made = node(index, op);
    made.object = name(arg);
    made.named = true;
    made.number = number;
  }

  void add_const(size_t index, Op op, uint32_t arg) { node(index, op).object = constant(arg); }

  bool copies_top_before(size_t index) const {
    return index > 0 && code_.instructions[index].op == Op::COPY && code_.instructions[index].arg == 1;
  }

  void branch(size_t index, Op op, bool jumps_if) {
    CanonicalNode& made = node(index, op);
    made.kind = CanonicalKind::kBranch;
    made.number = jumps_if ? 1 : 0;  // until link() has put the sides where they belong
  }

  void jump_or_pop(size_t index, bool jumps_if) {
    CanonicalNode& made = node(index, Op::JUMP_IF_TRUE_OR_POP);
    made.kind = CanonicalKind::kJumpOrPop;
    made.number = jumps_if ? 1 : 0;
  }

  void add(size_t i) {
    const Instruction& in = code_.instructions[i];
    const uint32_t arg = in.arg;
    switch (in.op) {
      case Op::NOP:
      case Op::CACHE:
      case Op::EXTENDED_ARG:
      case Op::PRECALL:
      case Op::PUSH_NULL:
      case Op::GEN_START:
      case Op::POP_BLOCK:
      case Op::SETUP_FINALLY:
      case Op::COPY_FREE_VARS:
      case Op::JUMP_FORWARD:
      case Op::JUMP_BACKWARD:
      case Op::JUMP_BACKWARD_NO_INTERRUPT:
      case Op::JUMP_ABSOLUTE:
        return;
      case Op::TO_BOOL:
        if (!only_tested(code_.instructions, i)) node(i, in.op);
        return;
      case Op::RESUME:
        if ((arg & 3) != 0) node(i, in.op).number = arg;  // at the start of a function it is a mark
        return;
      case Op::MAKE_CELL:
        if (i > prologue_end_) add_local(i, in.op, arg);
        return;
      case Op::LOAD_FAST_LOAD_FAST:
        add_local(i, Op::LOAD_FAST, arg >> 4);
        add_local(i, Op::LOAD_FAST, arg & 15);
        return;
      case Op::STORE_FAST_LOAD_FAST:
        add_local(i, Op::STORE_FAST, arg >> 4);
        add_local(i, Op::LOAD_FAST, arg & 15);
        return;
      case Op::STORE_FAST_STORE_FAST:
        add_local(i, Op::STORE_FAST, arg >> 4);
        add_local(i, Op::STORE_FAST, arg & 15);
        return;
      case Op::LOAD_FAST_CHECK:
        add_local(i, Op::LOAD_FAST, arg);
        return;
      case Op::RETURN_CONST:
        add_const(i, Op::LOAD_CONST, arg);
        node(i, Op::RETURN_VALUE).kind = CanonicalKind::kEnd;
        return;
      case Op::LOAD_GLOBAL:
        add_name(i, in.op, code_.version >= 311 ? arg >> 1 : arg);
        return;
      case Op::LOAD_METHOD:
        add_name(i, Op::LOAD_ATTR, arg);
        return;
      case Op::LOAD_ATTR:
        add_name(i, in.op, code_.version >= 312 ? arg >> 1 : arg);
        return;
      case Op::LOAD_SUPER_ATTR:
        add_name(i, in.op, arg >> 2, arg & 2);
        return;
      case Op::CALL_METHOD:
        node(i, Op::CALL_FUNCTION).number = arg;
        return;
      case Op::COMPARE_OP:
        node(i, in.op).number = code_.version == 312 ? arg >> 4 : code_.version == 313 ? arg >> 5 : arg;
        if (code_.version >= 313 && (arg & 16) != 0 && !only_tested(code_.instructions, i)) node(i, Op::TO_BOOL);
        return;
      case Op::POP_JUMP_IF_TRUE:
      case Op::POP_JUMP_FORWARD_IF_TRUE:
      case Op::POP_JUMP_BACKWARD_IF_TRUE:
        branch_or_pop(i, true);
        return;
      case Op::POP_JUMP_IF_FALSE:
      case Op::POP_JUMP_FORWARD_IF_FALSE:
      case Op::POP_JUMP_BACKWARD_IF_FALSE:
        branch_or_pop(i, false);
        return;
      case Op::POP_JUMP_IF_NONE:
      case Op::POP_JUMP_FORWARD_IF_NONE:
      case Op::POP_JUMP_BACKWARD_IF_NONE:
        branch(i, Op::IS_OP, true);
        return;
      case Op::POP_JUMP_IF_NOT_NONE:
      case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
      case Op::POP_JUMP_BACKWARD_IF_NOT_NONE:
        branch(i, Op::IS_OP, false);
        return;
      case Op::JUMP_IF_TRUE_OR_POP:
        jump_or_pop(i, true);
        return;
      case Op::JUMP_IF_FALSE_OR_POP:
        jump_or_pop(i, false);
        return;
      default:
        break;
    }
    const bytecode::OpInfo& info = tables_.info(in.op);
    if ((info.flags & bytecode::kHasConst) != 0) {
      add_const(i, in.op, arg);
    } else if ((info.flags & bytecode::kHasName) != 0) {
      add_name(i, in.op, arg);
    } else if ((info.flags & (bytecode::kHasLocal | bytecode::kHasFree)) != 0) {
      add_local(i, in.op, arg);
    } else {
      CanonicalNode& made = node(i, in.op);
      made.number = in.target >= 0 ? 0 : arg;
      if (!bytecode::falls_through(in.op)) made.kind = CanonicalKind::kEnd;
    }
  }

  // From 3.12 on JUMP_IF_X_OR_POP is written COPY 1, (TO_BOOL,) POP_JUMP_IF_X, POP_TOP.
  void branch_or_pop(size_t i, bool jumps_if) {
    if (code_.version >= 312 && !flow_.nodes.empty()) {
      size_t before = i;
      if (before > 0 && code_.instructions[before - 1].op == Op::TO_BOOL) --before;
      const bool copied = before > 0 && copies_top_before(before - 1) && first_node_[before - 1] >= 0;
      if (copied && i + 1 < code_.instructions.size() && code_.instructions[i + 1].op == Op::POP_TOP &&
          static_cast<size_t>(first_node_[before - 1]) + 1 == flow_.nodes.size() && !is_target(i) && !is_target(i + 1)) {
        CanonicalNode& made = flow_.nodes.back();  // in the place of COPY
        made.kind = CanonicalKind::kJumpOrPop;
        made.op = Op::JUMP_IF_TRUE_OR_POP;
        made.number = jumps_if ? 1 : 0;
        made.instruction = static_cast<int32_t>(i);
        return;
      }
    }
    branch(i, Op::POP_JUMP_IF_TRUE, jumps_if);
  }

  bool is_target(size_t index) {
    if (targets_.empty()) {
      targets_.assign(code_.instructions.size(), false);
      for (const Instruction& in : code_.instructions) {
        if (in.target >= 0) targets_[static_cast<size_t>(in.target)] = true;
      }
      for (const bytecode::ExceptionRow& row : code_.rows) targets_[static_cast<size_t>(row.target)] = true;
    }
    return targets_[index];
  }

  // The node that execution reaches from an instruction, past what became none.
  int32_t landing(int32_t index) {
    size_t steps = 0;
    while (index >= 0 && static_cast<size_t>(index) < code_.instructions.size()) {
      const auto i = static_cast<size_t>(index);
      if (first_node_[i] >= 0) return first_node_[i];
      if (++steps > code_.instructions.size()) return forever_;
      const Instruction& in = code_.instructions[i];
      const bool jumps = in.target >= 0 && !bytecode::falls_through(in.op);
      index = jumps ? in.target : index + 1;
    }
    return kNone;
  }

  void link() {
    for (size_t n = 0; n + 1 < flow_.nodes.size(); ++n) {
      CanonicalNode& node = flow_.nodes[n];
      const Instruction& in = code_.instructions[static_cast<size_t>(node.instruction)];
      const int32_t row = row_of_[static_cast<size_t>(node.instruction)];
      if (row >= 0) {
        node.handler = landing(code_.rows[static_cast<size_t>(row)].target);
        node.lasti = code_.rows[static_cast<size_t>(row)].lasti;
      }
      if (node.kind == CanonicalKind::kEnd) continue;
      const bool same_instruction =
          flow_.nodes[n + 1].instruction == node.instruction && flow_.nodes[n + 1].kind != CanonicalKind::kForever;
      // What was made in the place of COPY goes on behind the POP_TOP that belongs to it.
      const bool took_pop = node.kind == CanonicalKind::kJumpOrPop && in.op != Op::JUMP_IF_TRUE_OR_POP && in.op != Op::JUMP_IF_FALSE_OR_POP;
      node.next = same_instruction ? static_cast<int32_t>(n + 1) : landing(node.instruction + (took_pop ? 2 : 1));
      if (in.target >= 0) node.other = landing(in.target);
      if (node.kind == CanonicalKind::kBranch) {
        if (node.number != 0) std::swap(node.next, node.other);
        node.number = 0;
      }
    }
  }

  // A kept value that is tested again right away decides that test too.
  void thread() {
    for (size_t n = flow_.nodes.size(); n-- > 0;) {
      CanonicalNode& node = flow_.nodes[n];
      for (size_t steps = 0; node.kind == CanonicalKind::kJumpOrPop && node.other >= 0 && steps < flow_.nodes.size(); ++steps) {
        const CanonicalNode& then = flow_.nodes[static_cast<size_t>(node.other)];
        const bool value = node.number != 0;
        if (then.kind == CanonicalKind::kBranch && then.op == Op::POP_JUMP_IF_TRUE) {
          become_branch(node, value, value ? then.next : then.other);
        } else if (then.kind == CanonicalKind::kJumpOrPop && then.number == node.number) {
          node.other = then.other;
        } else if (then.kind == CanonicalKind::kJumpOrPop) {
          become_branch(node, value, then.next);
        } else {
          break;
        }
      }
    }
  }

  static void become_branch(CanonicalNode& node, bool value, int32_t when_value) {
    node.kind = CanonicalKind::kBranch;
    node.op = Op::POP_JUMP_IF_TRUE;
    const int32_t otherwise = node.next;
    node.next = value ? when_value : otherwise;
    node.other = value ? otherwise : when_value;
    node.number = 0;
  }

  const Code& code_;
  const bytecode::Tables& tables_;
  CanonicalFlow flow_;
  std::vector<int32_t> first_node_;  // by instruction, kNone where it became none
  std::vector<int32_t> row_of_;
  std::vector<bool> targets_;
  size_t prologue_end_ = 0;
  int32_t forever_ = kNone;
};

}  // namespace

CanonicalFlow canonical_flow(const Code& code) { return Builder(code).run(); }

uint32_t name_index(const bytecode::Code& code, const bytecode::Instruction& in) {
  if (in.op == Op::LOAD_GLOBAL && code.version >= 311) return in.arg >> 1;
  if (in.op == Op::LOAD_ATTR && code.version >= 312) return in.arg >> 1;
  if (in.op == Op::LOAD_SUPER_ATTR) return in.arg >> 2;
  return in.arg;
}

bool only_tested(const std::vector<bytecode::Instruction>& instructions, size_t index) {
  for (size_t i = index + 1; i < instructions.size(); ++i) {
    switch (instructions[i].op) {
      case Op::NOP:
      case Op::CACHE:
      case Op::EXTENDED_ARG:
      case Op::TO_BOOL:
        continue;
      case Op::POP_JUMP_IF_TRUE:
      case Op::POP_JUMP_IF_FALSE:
      case Op::UNARY_NOT:
        return true;
      default:
        return false;
    }
  }
  return false;
}

}  // namespace pellucid::decompile
