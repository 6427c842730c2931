// Up to 3.9 of a condition that is a constant the test goes, but not what it decides about: the branch that is never taken, and the jump
// over it.
#include <algorithm>

#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

constexpr int32_t kByJumps = 1;
size_t at(int index) { return static_cast<size_t>(index); }

bool is_constant(const Expr* expr, bool truth) {
  if (expr->kind != ExprKind::kConst) return false;
  const int found = PyObject_IsTrue(expr->object);
  if (found < 0) PyErr_Clear();
  return found == (truth ? 1 : 0);
}

// A true constant of which a jump says that it is not: `not` in front of it would have become a constant.
bool is_denied_constant(const Expr* expr) {
  return expr->kind == ExprKind::kUnary && expr->op == kNot && expr->number == kByJumps && is_constant(expr->items[0], true);
}

}  // namespace

// `x if True else y`: behind x stands a jump over y.
void Structurer::add_unreached_value(Node& node, int jump) {
  const int to = flow_.ins[at(jump)].target;
  if (node.stack.empty() || is_frame(node.stack.back()) || to <= jump + 1 || to - jump > 200) return;
  for (int i = jump + 1; i < to; ++i) {
    if (flow_.blocks[at(flow_.block_of[at(i)])].reachable || flow_.ins[at(i)].target >= 0) return;
  }
  Node other;
  other.stack.assign(node.stack.begin(), node.stack.end() - 1);
  try {
    for (int i = jump + 1; i < to; ++i) {
      execute(other, i);
      if (other.stack.size() + 1 < node.stack.size()) return;
    }
  } catch (const NoForm&) {  // no value then
    return;
  }
  if (!other.stmts.empty() || other.stack.size() != node.stack.size() || is_frame(other.stack.back())) return;
  Expr* made = arena_.expr(ExprKind::kConditional);
  Expr* value = value_of(node.stack.back());
  made->at = value->at;
  made->items = {constant(Py_True, *value->at), value, value_of(other.stack.back())};
  order_joined(made);
  node.stack.back() = made;
}

// `if (True if x else False)`: where x holds a jump leads past the other test, which has a constant.
bool Structurer::join_constant_branch(Node& node) {
  const int over = node.fall;
  if (node.keep || over < 0 || !flow_.only_jumps(over) || edges_[at(over)] != 1 || barrier_[at(over)] != 0) return false;
  const int to = flow_.blocks[at(over)].fall;
  Node* other = child(node.jump, node.stack, flow_.blocks[at(node.last)].region);
  if (other == nullptr || other->end != End::kCondition || other->keep || !other->stmts.empty() || !is_constant(other->test, false) ||
      other->fall != to || other->stack.size() != node.stack.size()) {
    return false;
  }
  Expr* made = arena_.expr(ExprKind::kConditional);
  made->at = node.test->at;
  made->items = {node.test, constant(Py_True, *node.test->at), other->test};
  order_joined(made);
  placed_[at(over)] = 1;
  node.blocks.push_back(over);
  --edges_[at(to)];
  take(node, *other);
  node.jump = other->jump;
  node.test = made;
  node.value = made;
  node.jump_if = false;
  return true;
}

// A test of a constant that is left was part of a longer one. `guards`: something depends on it.
Expr* Structurer::constant_test(Expr* test, bool guards) {
  const auto joined = [&](BoolOp op, Exprs items) {
    Expr* made = arena_.expr(ExprKind::kBool);
    made->at = test->at;
    made->op = op;
    made->items = std::move(items);
    return made;
  };
  if (is_constant(test, false)) return joined(kAnd, {test, constant(Py_True, *test->at)});
  if (guards) return test;
  if (is_denied_constant(test)) return joined(kOr, {test->items[0], constant(Py_True, *test->at)});
  if (test->kind != ExprKind::kBool || test->number != kByJumps || test->op != kAnd) return test;
  Exprs items;
  for (Expr* item : test->items) {
    if (!is_denied_constant(item) && !is_constant(item, false)) return test;
    items.push_back(is_denied_constant(item) ? item->items[0] : constant_test(item, true));
  }
  return joined(kOr, std::move(items));
}

}  // namespace pellucid::decompile
