// and/or as text. Jumps say nothing of `not (a or b)` against `not a and not b`. The compiler turns `not a in b` around, so where such a
// test was not turned it stood in the first form; what else stood there is one of several that compile to the same.
#include <algorithm>

#include "decompile/print.h"

namespace pellucid::decompile {
namespace {

constexpr int32_t kByJumps = 1;

// Whether `not` in front of it would compile to the opposite comparison.
bool turns_around(const Expr* expr) {
  return expr->kind == ExprKind::kCompare && expr->ops.size() == 1 && expr->ops[0] >= kIn && expr->number != kByJumps;
}

bool is_not(const Expr* expr) { return expr->kind == ExprKind::kUnary && expr->op == kNot; }
bool is_not_turned(const Expr* expr) { return is_not(expr) && turns_around(expr->items[0]); }

bool by_jumps(const Expr* expr) { return expr->kind == ExprKind::kBool && expr->number == kByJumps; }

// Whether it may be the opposite of what stood there. Where `gladly` it then has no more `not` than before.
bool can_be_denied(const Expr* expr, bool gladly) {
  if (is_not(expr)) return true;
  if (!by_jumps(expr)) return !gladly && !turns_around(expr);
  const auto any = [](const Expr* item) { return can_be_denied(item, true); };
  const auto all = [](const Expr* item) { return can_be_denied(item, false); };
  return (!gladly || std::any_of(expr->items.begin(), expr->items.end(), any)) && std::all_of(expr->items.begin(), expr->items.end(), all);
}

}  // namespace

// The opposite of an expression, for printing.
const Expr* Printer::denied(const Expr* e) {
  if (is_not(e)) return e->items[0];
  Expr& made = made_.emplace_back();
  made.at = e->at;
  made.number = kByJumps;
  if (!by_jumps(e)) {
    made.kind = ExprKind::kUnary;
    made.op = kNot;
    made.items = {const_cast<Expr*>(e)};  // only read
    return &made;
  }
  made.kind = ExprKind::kBool;
  made.op = e->op == kAnd ? kOr : kAnd;
  for (const Expr* item : e->items) made.items.push_back(const_cast<Expr*>(denied(item)));
  return &made;
}

// How many items from `i` on stand in one `not (...)`; 0: none.
size_t Printer::denied_items(const Expr* e, size_t i) {
  const Exprs& items = e->items;
  if (!by_jumps(e) || std::none_of(items.begin(), items.end(), is_not_turned)) return 0;
  // Those alike from `from` on, if a test among them that was not turned around needs it.
  const auto run = [&](size_t from, auto alike) -> size_t {
    size_t end = from;
    bool needed = false;
    while (end < items.size() && alike(items[end])) needed |= is_not_turned(items[end++]);
    return needed && end - from > 1 ? end - from : 0;
  };
  const auto gladly = [](const Expr* item) { return can_be_denied(item, true); };
  const auto at_all = [](const Expr* item) { return can_be_denied(item, false); };
  if (const size_t count = run(i, is_not); count != 0) return count;
  for (size_t later = i + 1; later < items.size(); ++later) {
    if (run(later, is_not) != 0) return 0;
  }
  if (const size_t count = run(i, gladly); count != 0) return count;
  for (size_t later = i + 1; later < items.size(); ++later) {
    if (run(later, gladly) != 0) return 0;
  }
  return run(i, at_all);
}

void Printer::boolean(const Expr* e) {
  const int level = e->op == kOr ? kPrecOr : kPrecAnd;
  const char* text = e->op == kOr ? " or " : " and ";
  const char* other = e->op == kOr ? " and " : " or ";
  for (size_t i = 0; i < e->items.size();) {
    if (i > 0) out_ += text;
    const size_t count = denied_items(e, i);
    if (count == 0) {
      expr(e->items[i++], level + 1);
      continue;
    }
    out_ += "not ";
    open('(');
    for (size_t k = 0; k < count; ++k) {
      if (k > 0) out_ += other;
      expr(denied(e->items[i + k]), e->op == kOr ? kPrecAnd + 1 : kPrecOr + 1);
    }
    close(')');
    i += count;
  }
}

}  // namespace pellucid::decompile
