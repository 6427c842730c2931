// The copies that compilers make of a finally block on every way out: recognised behind the marks that leaving makes, and gone. A copy on
// the way to a `return` has the value to be returned below what it does: it drops the value where it leaves otherwise, and where it ends
// within a statement the return is copied there too.
#include <algorithm>

#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

bool same(Stmt* a, Stmt* b) { return equal({a}, 0, {b}); }

class CopyMatcher {
 public:
  // Whether `copy` from `from` on does what `final` does; `*end`: where it ends.
  bool matches(const Stmts& copy, size_t from, const Stmts& final, bool inner, size_t* end) {
    size_t k = from;
    const auto skip = [&] {
      while (k < copy.size() && copy[k]->kind == StmtKind::kNop) ++k;
    };
    for (Stmt* stmt : final) {
      if (stmt->kind == StmtKind::kNop) continue;
      skip();
      if (k + 1 < copy.size() && copy[k]->kind == StmtKind::kExpression &&
          (leaves(copy[k + 1]) || copy[k + 1]->kind == StmtKind::kDropIterator) && !same(copy[k], stmt) && takes(copy[k]->value)) {
        ++k;
        skip();
      }
      if (k >= copy.size() || !(same(copy[k], stmt) || alike(copy[k], stmt))) return false;
      ++k;
    }
    *end = k;
    if (!inner) return true;
    skip();
    if (k + 1 == copy.size() && copy[k]->kind == StmtKind::kReturn && takes(copy[k]->value)) {
      returned_ = copy[k];
      return true;
    }
    return k == copy.size();
  }

  Stmt* returned() const { return returned_; }

 private:
  bool takes(Expr* value) {
    if (!known_) {
      known_ = true;
      value_ = value;
    }
    return equal(value, value_);
  }

  bool alike(Stmt* a, Stmt* b) {
    if (a->kind != b->kind || (a->kind != StmtKind::kTry && a->kind != StmtKind::kIf && a->kind != StmtKind::kWith)) return false;
    if (!equal(a->value, b->value) || a->handlers.size() != b->handlers.size() || a->withs.size() != b->withs.size()) return false;
    for (size_t i = 0; i < a->withs.size(); ++i) {
      if (!equal(a->withs[i].context, b->withs[i].context) || !equal(a->withs[i].target, b->withs[i].target)) return false;
    }
    size_t end = 0;
    for (size_t i = 0; i < a->handlers.size(); ++i) {
      const Handler &x = a->handlers[i], &y = b->handlers[i];
      if (x.name != y.name || !equal(x.type, y.type) || !matches(x.body, 0, y.body, true, &end)) return false;
    }
    return matches(a->body, 0, b->body, true, &end) && matches(a->orelse, 0, b->orelse, true, &end) &&
           matches(a->final, 0, b->final, true, &end);
  }

  bool known_ = false;
  Expr* value_ = nullptr;
  Stmt* returned_ = nullptr;
};

}  // namespace

// Removes the mark at `index` and behind it the copy of a finally block.
void Structurer::strip_copy(Stmts& body, size_t index, const Stmts& final) {
  CopyMatcher matcher;
  size_t k = index + 1;
  if (!matcher.matches(body, index + 1, final, false, &k)) {
    Stmts tail;
    if (!copied_with_tail(body, index + 1, final, &tail)) no_form("a finally block whose copies differ");
    body.resize(index);
    body.insert(body.end(), tail.begin(), tail.end());
    return;
  }
  if (matcher.returned() != nullptr) {  // within the copy
    size_t next = k;
    while (next < body.size() && body[next]->kind == StmtKind::kNop) ++next;
    if (next == body.size()) {
      body.push_back(matcher.returned());
    } else if (body[next]->kind != StmtKind::kReturn || !equal(body[next]->value, matcher.returned()->value)) {
      no_form("a finally block whose copies differ");
    }
  }
  Expr* dropped = always_leaves(final) ? body[index]->value : nullptr;
  erase(body, index, k - index);
  if (dropped == nullptr) return;
  Stmt* made = arena_.stmt(StmtKind::kReturn);
  made->at = dropped->at;
  made->order = ++clock_;
  made->value = dropped;
  body.insert(body.begin() + static_cast<std::ptrdiff_t>(index), made);
}

void Structurer::strip_finally(Stmts& body, int region, const Stmts& final) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (is_leave(body[i], "finally") && body[i]->number == region) {
      strip_copy(body, i, final);
      return;
    }
    each_list(body[i], [&](Stmts& inner) { strip_finally(inner, region, final); });
  }
}

// Removes what follows a statement as part of it: the copy of its finally block, the call that ends it.
void Structurer::settle(Stmts& body) {
  for (size_t i = body.size(); i-- > 0;) {
    if (is_leave(body[i], "with")) {
      size_t k = i;
      while (k > 0 && body[k - 1]->kind == StmtKind::kNop) --k;
      if (k > 0 && body[k - 1]->kind == StmtKind::kWith && body[k - 1]->number == body[i]->number) {
        Stmts& inside = body[k - 1]->body;
        inside.insert(inside.end(), body.begin() + static_cast<std::ptrdiff_t>(k), body.begin() + static_cast<std::ptrdiff_t>(i));
        erase(body, k, i - k + 1);
        i = k;
      }
      continue;
    }
    if (i == 0 || !is_leave(body[i], "after finally")) continue;
    const bool shared = flow_.regions[at(body[i]->number)].shared;
    // Of `finally: pass` only the copy has something left, with the place that raising again has.
    const bytecode::Position& end = last_in(flow_.regions[at(body[i]->number)].handler)->position;
    if (const Stmt* next = i + 1 < body.size() ? body[i + 1] : nullptr;
        code_.version >= 311 && body[i - 1]->final.empty() && next != nullptr && next->kind == StmtKind::kNop &&
        next->at->position.line == end.line && next->at->position.column == end.column) {
      erase(body, i + 1, 1);
    }
    strip_copy(body, i, shared ? Stmts{} : body[i - 1]->final);
  }
}

}  // namespace pellucid::decompile
