// What follows the copy of a finally block, where it was copied onto each way out of that: the return that the block belongs to stands in
// each of its branches, or in place of its `break`. Knows trees only.
#include <algorithm>

#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

bool is_nop(const Stmt* stmt) { return stmt->kind == StmtKind::kNop; }

class TailMatcher {
 public:
  // Whether `body` from `index` on is `final` with something behind it, the same on each way out.
  bool match(const Stmts& body, size_t index, const Stmts& final) { return list(body, index, final, 0, {false, {}, nullptr}); }
  const Stmts& tail() const { return tail_; }

 private:
  struct Around {
    bool falls = false;           // the end of the list goes on with what stands behind it in both
    Stmts behind;                 // what follows the list in the copy
    const Stmts* loop = nullptr;  // in a loop of the block: what follows the loop in the copy
  };

  bool list(const Stmts& body, size_t index, const Stmts& final, size_t from, const Around& around) {
    while (from < final.size() && is_nop(final[from])) ++from;
    while (index < body.size() && is_nop(body[index])) ++index;
    if (from == final.size()) return ends(body, index, around);
    const Stmt* original = final[from];
    if (original->kind == StmtKind::kBreak && around.loop != nullptr) {
      const bool breaks = index < body.size() && body[index]->kind == StmtKind::kBreak;
      return take(breaks ? body.size() : index, body, *around.loop);
    }
    if (index == body.size()) return false;
    const Stmt* copy = body[index];
    if (equal(Stmts{body[index]}, 0, Stmts{final[from]})) return list(body, index + 1, final, from + 1, around);
    if (copy->kind != original->kind) return false;
    const bool last = std::all_of(final.begin() + static_cast<std::ptrdiff_t>(from) + 1, final.end(), is_nop);
    Around inner = around;
    if (last) {
      const Stmts rest = without(body, index + 1);
      if (!rest.empty()) inner.behind = rest;
    } else {
      inner.falls = true;
    }
    if (!compound(body, index, original, inner, around)) return false;
    return last || list(body, index + 1, final, from + 1, around);
  }

  bool compound(const Stmts& body, size_t index, const Stmt* original, const Around& inner, const Around& around) {
    const Stmt* copy = body[index];
    const auto same = [](Expr* a, Expr* b) { return equal(a, b); };
    if (!equal(copy->value, original->value) || copy->is_async != original->is_async || copy->is_star != original->is_star) return false;
    switch (original->kind) {
      case StmtKind::kIf:
        if (!list(copy->body, 0, original->body, 0, inner)) return false;
        // Behind a branch that leaves the other one stands without `else`.
        if (copy->orelse.empty() && !original->orelse.empty()) return !inner.falls && list(body, index + 1, original->orelse, 0, around);
        return list(copy->orelse, 0, original->orelse, 0, inner);
      case StmtKind::kFor:
      case StmtKind::kWhile: {
        if (!std::equal(copy->targets.begin(), copy->targets.end(), original->targets.begin(), original->targets.end(), same)) return false;
        if (copy->orelse.empty() != original->orelse.empty() || inner.falls) return false;
        return list(copy->body, 0, original->body, 0, {true, {}, &inner.behind}) &&
               (original->orelse.empty() ? take(body.size(), body, inner.behind) : list(copy->orelse, 0, original->orelse, 0, inner));
      }
      case StmtKind::kTry: {
        if (copy->handlers.size() != original->handlers.size() || !original->final.empty() || !copy->final.empty()) return false;
        for (size_t i = 0; i < original->handlers.size(); ++i) {
          const Handler &a = copy->handlers[i], &b = original->handlers[i];
          if (a.name != b.name || !equal(a.type, b.type) || !list(a.body, 0, b.body, 0, inner)) return false;
        }
        if (original->orelse.empty() && copy->orelse.empty()) return list(copy->body, 0, original->body, 0, inner);
        if (original->orelse.empty()) {  // what follows the statement stands in the copy's else clause
          return list(copy->body, 0, original->body, 0, {true, {}, nullptr}) && take(0, copy->orelse, inner.behind);
        }
        return list(copy->body, 0, original->body, 0, {true, {}, nullptr}) && list(copy->orelse, 0, original->orelse, 0, inner);
      }
      case StmtKind::kWith:
        if (copy->withs.size() != 1 || original->withs.size() != 1 || !equal(copy->withs[0].context, original->withs[0].context) ||
            !equal(copy->withs[0].target, original->withs[0].target)) {
          return false;
        }
        return list(copy->body, 0, original->body, 0, inner);
      default:
        return false;
    }
  }

  bool ends(const Stmts& body, size_t index, const Around& around) {
    if (!around.falls) return take(index, body, around.behind);
    const Stmts rest = without(body, index);
    return rest.empty() || (around.loop != nullptr && rest.size() == 1 && rest[0]->kind == StmtKind::kContinue);
  }

  static Stmts without(const Stmts& body, size_t index) {
    Stmts rest;
    for (size_t i = index; i < body.size(); ++i) {
      if (!is_nop(body[i])) rest.push_back(body[i]);
    }
    return rest;
  }

  bool take(size_t index, const Stmts& body, const Stmts& behind) {
    Stmts rest = without(body, index);
    if (rest.empty() || !leaves(rest.back())) rest.insert(rest.end(), behind.begin(), behind.end());
    if (!known_) tail_ = rest;
    if (known_ && (rest.size() != tail_.size() || !equal(rest, 0, tail_))) return false;
    known_ = true;
    return true;
  }

  bool known_ = false;
  Stmts tail_;
};

}  // namespace

// Whether `body` from `index` on is `final`, and behind it the same on each way out of it: `*tail`.
bool copied_with_tail(const Stmts& body, size_t index, const Stmts& final, Stmts* tail) {
  TailMatcher matcher;
  if (!matcher.match(body, index, final)) return false;
  *tail = matcher.tail();
  return true;
}

}  // namespace pellucid::decompile
