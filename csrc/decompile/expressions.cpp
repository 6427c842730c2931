// Values and conditions across branches. A node that ends in a conditional jump is joined with the nodes it leads to as long as
// these only compute a value or a further condition: `and`, `or`, conditional expressions and chained comparisons, from the inside out.
// The condition of a node is the one under which execution falls through.
#include <algorithm>

#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

constexpr int32_t kByJumps = 1;  // Expr::number of kBool and kUnary that jumps made, and of comparisons with None that may be turned around
constexpr int32_t kInParentheses = 2;  // Expr::number of kBool: not to become part of another one

bool only_nops(const Stmts& stmts) {
  return std::all_of(stmts.begin(), stmts.end(), [](const Stmt* stmt) { return stmt->kind == StmtKind::kNop; });
}

// Whether an instruction has a place as wide as `break` or `continue`.
bool spans_jump(const Instruction& in) {
  if (in.op != Op::NOP && in.op != Op::JUMP_ABSOLUTE) return false;
  return spans(&in, 5) || spans(&in, 8);
}

}  // namespace

bool Structurer::same_stack(const Exprs& a, const Exprs& b, size_t count) {
  return a.size() >= count && b.size() >= count && std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin());
}

Expr* Structurer::negate(Expr* expr, const Instruction* where) {
  if (expr->kind == ExprKind::kUnary && expr->op == kNot && expr->number == kByJumps) return expr->items[0];
  Expr* made = arena_.expr(ExprKind::kUnary);
  made->at = where;
  made->first = expr->first;
  made->last = expr->last;
  if (expr->kind == ExprKind::kCompare && expr->number == kByJumps) {
    made->kind = ExprKind::kCompare;
    made->number = kByJumps;
    made->items = expr->items;
    made->ops = {static_cast<uint8_t>(expr->ops[0] == kIs ? kIsNot : kIs)};
    return made;
  }
  if (expr->kind == ExprKind::kBool && expr->number == kByJumps) {
    const auto negated = [](const Expr* item) { return item->kind == ExprKind::kUnary && item->op == kNot && item->number == kByJumps; };
    if (std::any_of(expr->items.begin(), expr->items.end(), negated)) {
      made->kind = ExprKind::kBool;
      made->number = kByJumps;
      made->op = expr->op == kAnd ? kOr : kAnd;
      for (Expr* item : expr->items) {
        Expr* turned = negate(item, where);
        if (turned->kind == ExprKind::kBool && turned->op == made->op && turned->number == kByJumps) {
          made->items.insert(made->items.end(), turned->items.begin(), turned->items.end());
        } else {
          made->items.push_back(turned);
        }
      }
      return made;
    }
  }
  made->op = kNot;
  made->number = kByJumps;
  made->items = {expr};
  return made;
}

Expr* Structurer::boolean(BoolOp op, Expr* left, Expr* right) {
  Expr* made = arena_.expr(ExprKind::kBool);
  made->at = left->at;
  made->op = op;
  made->number = kByJumps;
  for (Expr* side : {left, right}) {
    if (side->kind == ExprKind::kBool && side->op == op && side->number == kByJumps) {
      made->items.insert(made->items.end(), side->items.begin(), side->items.end());
    } else {
      made->items.push_back(side);
    }
  }
  order_joined(made);
  return made;
}

// What jumps join is done when the last part of it is: the code behind it may have been looked at before.
void Structurer::order_joined(Expr* made) {
  int32_t last = -1;
  for (const Expr* item : made->items) last = std::max(last, item->last);
  order_items(made);
  if (last >= 0) made->last = last;
}

bool Structurer::can_absorb(int from, int block) const {
  const Block& b = flow_.blocks[at(block)];
  return edges_[at(block)] == 1 && !b.header && !b.handler && barrier_[at(block)] == 0 &&
         flow_.within(flow_.blocks[at(from)].region, b.region);
}

Node* Structurer::node_at(int block, const Exprs& stack) {
  if (const auto found = cached_.find(block); found != cached_.end()) {
    Node* node = found->second;
    cached_.erase(found);
    return node;
  }
  nodes_.push_back(std::make_unique<Node>());
  Node* node = nodes_.back().get();
  node->first = block;
  node->stack = stack;
  build(*node, block);
  return node;
}

// The node of a block that only this one leads to, if it is part of the same region; built once.
Node* Structurer::child(int block, const Exprs& stack, int region) {
  if (block < 0 || edges_[at(block)] != 1) return nullptr;
  const Block& b = flow_.blocks[at(block)];
  if (b.header || b.handler || barrier_[at(block)] != 0 || b.region != region) return nullptr;
  if (const auto found = cached_.find(block); found != cached_.end()) return found->second;
  DepthGuard guard(session_);
  nodes_.push_back(std::make_unique<Node>());
  Node* node = nodes_.back().get();
  node->first = block;
  node->stack = stack;
  node->entry = stack.empty() ? nullptr : stack.back();
  build(*node, block);
  cached_[block] = node;
  return node;
}

void Structurer::build(Node& node, int block) {
  for (;;) {
    absorb(node, block);
    if (node.end == End::kCondition) reduce(node);
    while (node.end == End::kGo && inlined_comprehension(node)) {
    }
    if (node.end != End::kGo || !can_absorb(node.last, node.to)) return;
    // A jump over other code leads behind a statement; only an expression goes on there.
    if (node.taken && node.to > node.last + 1 && (node.stack.empty() || is_frame(node.stack.back()))) return;
    // What was merged with another copy of the finally block, whose place in the sequence is not known here.
    if (flow_.only_jumps(node.to) && leaves_finally(flow_.blocks[at(node.last)].region, node.to)) return;
    block = node.to;
    mark_leaving(flow_.blocks[at(node.last)].region, block, node.stack, &node.stmts);
    if (const auto found = cached_.find(block); found != cached_.end()) no_form("code reached in two ways");
  }
}

void Structurer::absorb(Node& node, int block) {
  const Block& b = flow_.blocks[at(block)];
  node.blocks.push_back(block);
  node.last = block;
  placed_[at(block)] = 1;
  ++reading_->blocks;
  session_.steps += static_cast<size_t>(b.end - b.start);
  node.end = End::kGo;
  node.taken = false;
  node.jump_at = nullptr;
  for (int i = b.start; i < b.end; ++i) {
    const Instruction& in = flow_.ins[at(i)];
    if (const int one = flow_.case_of[at(i)]; one >= 0) {
      if (test_case(node, i)) return;
      if (!flow_.cases[at(one)].bare) continue;
    }
    if (is_conditional(in.op)) {
      node.end = End::kCondition;
      node.fall = b.fall;
      node.jump = b.jump;
      node.keep = in.op == Op::JUMP_IF_FALSE_OR_POP || in.op == Op::JUMP_IF_TRUE_OR_POP;
      node.jump_if = in.op == Op::POP_JUMP_IF_TRUE || in.op == Op::JUMP_IF_TRUE_OR_POP;
      Expr* value = pop(node);
      // Done before it is jumped with: in parentheses of its own, over more than one line.
      if (node.keep && value->kind == ExprKind::kBool && value->number == kByJumps) value->number = 0;
      if (naming_) {
        name_stack(node, in);
        name_before(node, b.fall, in);
        name_before(node, b.jump, in);
      }
      node.value = value;
      if (value->kind == ExprKind::kExceptionMatch) {
        node.test = value;
      } else if (in.op == Op::POP_JUMP_IF_NONE || in.op == Op::POP_JUMP_IF_NOT_NONE) {
        Expr* test = combine(ExprKind::kCompare, in, {value, constant(Py_None, in)});
        test->ops = {static_cast<uint8_t>(in.op == Op::POP_JUMP_IF_NOT_NONE ? kIs : kIsNot)};
        test->number = kByJumps;
        node.test = test;
      } else if (in.op == Op::JUMP_IF_NOT_EXC_MATCH) {
        pop_raw(node);
        node.test = combine(ExprKind::kExceptionMatch, in, {value});
      } else {
        node.test = node.jump_if ? negate(value, &in) : value;
      }
      return;
    }
    execute(node, i);
    if (in.op == Op::RETURN_VALUE || in.op == Op::RETURN_CONST || in.op == Op::RAISE_VARARGS || in.op == Op::RERAISE ||
        in.op == Op::END_FINALLY) {
      node.end = End::kStop;
      return;
    }
    if (in.op == Op::JUMP_ABSOLUTE) {
      if (code_.version < 310) add_unreached_value(node, i);
      node.taken = true;
      node.jump_at = &in;
    }
  }
  if (b.fall < 0) no_form("code that runs off the end");
  if (naming_ && b.end > b.start) name_before(node, b.fall, flow_.ins[at(b.end - 1)]);
  node.to = b.fall;
}

void Structurer::reduce(Node& node) {
  while (node.end == End::kCondition && node.test->kind != ExprKind::kExceptionMatch && reduce_once(node)) {
  }
}

void Structurer::take(Node& node, Node& other) {
  node.last = other.last;
  node.blocks.insert(node.blocks.end(), other.blocks.begin(), other.blocks.end());
  node.end = other.end;
  node.to = other.to;
  node.taken = other.taken;
  node.jump_at = other.jump_at;
  node.fall = other.fall;
  cached_.erase(other.first);
}

// Whether the node compares the value it found on the stack: the second comparison of a chain.
bool Structurer::continues_comparison(const Node& node) const {
  const Expr* test = node.keep ? node.value : node.test;
  if (test->kind == ExprKind::kUnary && test->number == kByJumps) test = test->items[0];
  return node.entry != nullptr && test->kind == ExprKind::kCompare && test->items[0] == node.entry;
}

bool Structurer::reduce_once(Node& node) {
  const int region = flow_.blocks[at(node.last)].region;
  if (code_.version < 310 && join_constant_branch(node)) return true;
  Node* other = child(node.fall, node.stack, region);
  if (other == nullptr || !only_nops(other->stmts) || case_test(*other) != nullptr) return false;
  if (case_test(node) != nullptr) return join_guard(node, *other);
  if (join_comparison(node, *other)) return true;
  if (continues_comparison(node)) return false;
  if (other->end == End::kCondition) {
    if (other->test->kind == ExprKind::kExceptionMatch) return false;
    if (other->stmts.empty() && other->stack.size() == node.stack.size() && same_stack(node.stack, other->stack, node.stack.size()) &&
        join_conditions(node, *other)) {
      return true;
    }
  }
  if (other->end == End::kGo && join_value(node, *other)) return true;
  if (node.keep || other->end == End::kStop) return false;
  const bool value = other->end == End::kGo && other->stack.size() == node.stack.size() + 1;
  const bool condition = other->end == End::kCondition && other->stack.size() == node.stack.size();
  if (!value && !condition) return false;
  // Only where the other branch may be an expression is it worth looking at.
  Node* jump = child(node.jump, node.stack, region);
  return jump != nullptr && only_nops(jump->stmts) && case_test(*jump) == nullptr && join_branches(node, *other, *jump);
}

// Whether two jumps lead to the same place: copies of what was there, merged, have become jumps themselves.
bool Structurer::same_target(int a, int b) const {
  const auto copied = [&](int block) {
    const Block& one = flow_.blocks[at(block)];
    return one.end - one.start == 1 && flow_.ins[at(one.start)].op == Op::JUMP_ABSOLUTE && flow_.ins[at(one.start)].position.line < 0;
  };
  if (a == b) return true;
  // From 3.10 on only jumps within a line are led past others; in a comprehension there is no statement that could make the difference.
  const bool jumps =
      code_.version >= 310 && (kind_ == CodeKind::kComprehension || inlining_ > 0) && (flow_.only_jumps(a) || flow_.only_jumps(b));
  return (copied(a) || copied(b) || jumps) && flow_.resolve(a) == flow_.resolve(b);
}

bool Structurer::join_conditions(Node& node, Node& other) {
  const auto one = [&] { return decide(ChoiceKind::kJoin, last_in(node.last), true); };
  if (same_target(node.jump, other.jump) && node.keep == other.keep && (!node.keep || node.jump_if == other.jump_if) && one()) {
    const int jump = node.jump;
    if (node.keep) {
      node.value = boolean(node.jump_if ? kOr : kAnd, node.value, other.value);
      node.test = node.jump_if ? negate(node.value, node.value->at) : node.value;
    } else {
      node.test = boolean(kAnd, node.test, other.test);
    }
    take(node, other);
    node.jump = jump;
    --edges_[at(jump)];
    return true;
  }
  // Up to 3.9 the first condition jumps to where the jump leads that the second one falls to.
  const bool threaded = code_.version < 310 && (!flow_.blocks[at(node.first)].header || !only_nops(node.stmts)) &&
                        node.jump != other.fall && other.fall >= 0 && flow_.only_jumps(other.fall) && edges_[at(other.fall)] == 1 &&
                        flow_.resolve(other.fall) == flow_.resolve(node.jump) && node.jump != other.jump;
  // Behind a jump back that was turned around stands an instruction that is nothing.
  const auto stands_for = [&](int block) {
    const Block& b = flow_.blocks[at(block)];
    return b.fall == node.jump && b.end - b.start == 1 && flow_.hidden[at(b.start)] != 0 && edges_[at(block)] == 1;
  };
  const bool copied = node.jump != other.fall && other.fall >= 0 && code_.version >= 312 && same_target(node.jump, other.fall);
  if ((node.jump == other.fall || threaded || copied || (other.fall >= 0 && stands_for(other.fall))) && !node.keep && one()) {
    if (other.keep) {
      Expr* value = other.jump_if ? boolean(kAnd, node.test, other.value) : boolean(kOr, negate(node.test, node.test->at), other.value);
      node.value = value;
      node.keep = true;
      node.jump_if = other.jump_if;
      node.test = other.jump_if ? negate(value, value->at) : value;
    } else {
      node.test = boolean(kOr, negate(node.test, node.test->at), other.test);
    }
    const int jumped = node.jump;
    --edges_[at(jumped)];
    take(node, other);
    node.jump = other.jump;
    if (copied && edges_[at(jumped)] == 0) {  // a copy that nothing leads to any more
      placed_[at(jumped)] = 1;
      node.blocks.push_back(jumped);
      --edges_[at(flow_.blocks[at(jumped)].fall)];
    }
    return true;
  }
  return false;
}

// a < b < c: the middle value stays on the stack for the second comparison, and what drops it when the first one fails is a block of
// its own.
bool Structurer::join_comparison(Node& node, Node& other) {
  Expr* first = node.keep ? node.value : node.test;
  if (node.keep && node.jump_if) return false;
  if (first->kind != ExprKind::kCompare || first->number == kByJumps || node.stack.empty() || node.stack.back() != first->items.back())
    return false;
  const size_t base = node.stack.size() - 1;
  const int drop = node.jump;
  int i = flow_.blocks[at(drop)].start;
  const int end = flow_.blocks[at(drop)].end;
  const auto next_op = [&] {
    while (i < end && flow_.ins[at(i)].op == Op::NOP) ++i;
    return i < end ? flow_.ins[at(i++)].op : Op::NOP;
  };
  if (node.keep) {
    const Op swap = next_op();
    if (swap != Op::SWAP && swap != Op::ROT_TWO) return false;
  }
  if (next_op() != Op::POP_TOP) return false;
  Expr* second = nullptr;
  bool negated = false, go_on = false;
  int failed = -1;
  if (other.end == End::kCondition && other.stack.size() == base + 1 && other.keep == node.keep && other.jump == drop) {
    second = other.keep ? other.value : other.test;  // a third comparison follows
    go_on = true;
  } else if (node.keep) {
    if (other.end != End::kGo || other.stack.size() != base + 1) return false;
    second = other.stack.back();
    failed = other.to;
  } else {
    if (other.end != End::kCondition || other.keep || other.stack.size() != base) return false;
    second = other.test;
    if (second->kind == ExprKind::kUnary && second->op == kNot && second->number == kByJumps) {
      second = second->items[0];
      negated = true;
    }
    failed = negated ? other.fall : other.jump;
  }
  if (second->kind != ExprKind::kCompare || second->items[0] != first->items.back() || !same_stack(node.stack, other.stack, base))
    return false;
  int drop_to = -1;
  if (!go_on) {
    for (; i < end; ++i) {
      if (flow_.ins[at(i)].op != Op::NOP && flow_.ins[at(i)].op != Op::JUMP_ABSOLUTE) return false;
    }
    drop_to = flow_.blocks[at(drop)].fall;
    if (drop_to < 0 || flow_.resolve(drop_to) != flow_.resolve(failed)) return false;
  }
  Expr* chain = arena_.expr(ExprKind::kCompare);
  chain->at = first->at;
  chain->items = first->items;
  chain->items.insert(chain->items.end(), second->items.begin() + 1, second->items.end());
  chain->ops = first->ops;
  chain->ops.insert(chain->ops.end(), second->ops.begin(), second->ops.end());
  chain->first = first->first;
  chain->last = second->last;
  node.stack.resize(base);
  if (go_on) {
    node.stack.push_back(other.stack.back());
    const bool keep = node.keep;
    take(node, other);
    node.keep = keep;
    node.jump = drop;
    (keep ? node.value : node.test) = chain;
    if (keep) node.test = chain;
    --edges_[at(drop)];
    return true;
  }
  if (node.keep) {
    node.stack.push_back(chain);
    take(node, other);
    node.keep = false;
  } else {
    take(node, other);
    node.jump = other.jump;
    node.test = negated ? negate(chain, chain->at) : chain;
    node.value = chain;
    node.jump_if = negated;
    // Where the comparison holds a jump leads over what drops the middle value.
    if (node.fall >= 0 && node.fall + 1 == drop && edges_[at(node.fall)] == 1 && flow_.only_jumps(node.fall)) {
      placed_[at(node.fall)] = 1;
      node.blocks.push_back(node.fall);
      node.fall = flow_.blocks[at(node.fall)].fall;
    }
  }
  placed_[at(drop)] = 1;
  if (--edges_[at(drop)] == 0) --edges_[at(drop_to)];
  node.blocks.push_back(drop);
  // The jump over what drops the value. Up to 3.10 one that leads back is where it goes on to, most often a `continue`.
  const int over = node.end == End::kCondition ? node.fall : -1;
  if (over >= 0 && (code_.version > 310 || flow_.blocks[at(over)].fall > drop)) skip_jump(node);
  return true;
}

// Behind a chain stands a jump over what drops the middle value.
void Structurer::skip_jump(Node& node) {
  const int jump = node.fall;
  if (!flow_.only_jumps(jump) || edges_[at(jump)] != 1 || barrier_[at(jump)] != 0) return;
  const auto found = cached_.find(jump);
  if (found != cached_.end() && found->second->blocks.size() > 1) return;
  if (found != cached_.end()) cached_.erase(found);
  placed_[at(jump)] = 1;
  node.blocks.push_back(jump);
  node.fall = flow_.blocks[at(jump)].fall;
}

bool Structurer::join_value(Node& node, Node& other) {
  if (!node.keep || other.to != node.jump || other.stack.size() != node.stack.size() + 1 ||
      !same_stack(node.stack, other.stack, node.stack.size())) {
    return false;
  }
  Expr* value = value_of(other.stack.back());
  if (is_frame(value)) return false;
  Expr* made = boolean(node.jump_if ? kOr : kAnd, node.value, value);
  // A jump to a test of the same line would lead where that leads: it stood in parentheses, on a line of its own.
  const Op next = flow_.ins[at(flow_.blocks[at(node.jump)].start)].op;
  if (code_.version >= 310 && code_.version < 312 && is_conditional(next)) made->number = kInParentheses;
  node.stack.push_back(made);
  --edges_[at(node.jump)];
  take(node, other);
  node.keep = false;
  return true;
}

bool Structurer::join_branches(Node& node, Node& fall, Node& jump) {
  const size_t base = node.stack.size();
  if (!same_stack(node.stack, fall.stack, base) || !same_stack(node.stack, jump.stack, base)) return false;
  Expr* made = arena_.expr(ExprKind::kConditional);
  made->at = node.test->at;
  if (fall.end == End::kGo && jump.end == End::kGo) {
    if (fall.stack.size() != base + 1 || jump.stack.size() != base + 1 || flow_.resolve(fall.to) != flow_.resolve(jump.to)) return false;
    if (is_frame(fall.stack.back()) || is_frame(jump.stack.back())) return false;
    made->items = {node.test, value_of(fall.stack.back()), value_of(jump.stack.back())};
    order_joined(made);
    node.stack.push_back(made);
    const int to = jump.to;
    if (fall.to == to) --edges_[at(to)];
    cached_.erase(fall.first);
    node.blocks.insert(node.blocks.end(), fall.blocks.begin(), fall.blocks.end());
    take(node, jump);
    return true;
  }
  if (fall.end == End::kCondition && jump.end == End::kCondition && !fall.keep && !jump.keep && fall.jump == jump.jump &&
      flow_.resolve(fall.fall) == flow_.resolve(jump.fall) && fall.stack.size() == base && jump.stack.size() == base) {
    if (!fall.stmts.empty() || !jump.stmts.empty()) return false;
    // What is left of a `break` or `continue` behind one of them makes it a statement.
    const Instruction &a = flow_.ins[at(flow_.blocks[at(fall.fall)].start)], &b = flow_.ins[at(flow_.blocks[at(jump.fall)].start)];
    const bool same = fall.fall == jump.fall || (a.position.line == b.position.line && a.position.column == b.position.column);
    if (!decide(ChoiceKind::kJoin, last_in(node.last), same || (!spans_jump(a) && !spans_jump(b)))) return false;
    made->items = {node.test, fall.test, jump.test};
    // Both branches test the other way round where the whole is negated.
    if (fall.jump_if && jump.jump_if) {
      made->items = {node.test, negate(fall.test, made->at), negate(jump.test, made->at)};
      order_joined(made);
      made = negate(made, made->at);
    } else {
      order_joined(made);
    }
    const int target = jump.jump;
    --edges_[at(target)];
    if (fall.fall == jump.fall || fall.fall == flow_.resolve(jump.fall)) {
      --edges_[at(fall.fall)];
    } else {
      for (int b = fall.fall; b != jump.fall && b != flow_.resolve(jump.fall);) {  // a block that only jumps goes with its edge
        if (--edges_[at(b)] > 0) break;
        b = flow_.blocks[at(b)].fall;
        if (b == jump.fall || b == flow_.resolve(jump.fall)) --edges_[at(b)];
      }
    }
    cached_.erase(fall.first);
    node.blocks.insert(node.blocks.end(), fall.blocks.begin(), fall.blocks.end());
    const bool keep = jump.keep;
    take(node, jump);
    node.keep = keep;
    node.jump = target;
    node.test = made;
    node.value = made;
    node.jump_if = false;
    return true;
  }
  return false;
}

}  // namespace pellucid::decompile
