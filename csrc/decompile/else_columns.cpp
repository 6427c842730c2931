// From 3.11 on columns say what lines alone do not: whether a branch behind one that never goes on was written as `elif` or `else`, or as
// a statement that follows. Compilers make the same of all of them.
#include <algorithm>

#include "decompile/print.h"
#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

constexpr int kIndent = 4;

const bytecode::Position* place_of(const Expr* expr) {
  // The second half of a pair of instructions has no place; what is made of it has.
  for (const Instruction* in : {Printer::leftmost(expr), expr->at}) {
    if (in != nullptr && in->position.line > 0 && in->position.column >= 0 && in->position.end_column >= 0) return &in->position;
  }
  return nullptr;
}

// Whether the second of two conditions stood behind an `elif` of the first one's `if`.
bool is_elif(const Stmt* first, const Stmt* second) {
  const bytecode::Position *p = place_of(first->value), *q = place_of(second->value);
  return p != nullptr && q != nullptr && p->line < q->line && q->column == p->column + 2;
}

}  // namespace

int beginning_of(const Stmt* stmt) {
  const auto behind = [](const Expr* expr, int keyword) {
    const bytecode::Position* p = place_of(expr);
    return p != nullptr ? p->column - keyword : -1;
  };
  switch (stmt->kind) {
    case StmtKind::kIf:
      return behind(stmt->value, 3);
    case StmtKind::kWhile:
      return stmt->value != nullptr ? behind(stmt->value, 6) : -1;
    case StmtKind::kFor:
      return stmt->is_async ? -1 : behind(stmt->targets[0], 4);
    case StmtKind::kExpression:
      return behind(stmt->value, 0);
    case StmtKind::kAssign:
    case StmtKind::kAugmented:
      return behind(stmt->targets[0], 0);
    case StmtKind::kReturn:
      if (stmt->at == nullptr || stmt->value == nullptr || stmt->at->position.line <= 0) return -1;
      // Of `return 4` only the constant's place is left.
      return stmt->value->kind == ExprKind::kConst ? stmt->at->position.column - 7 : stmt->at->position.column;
    case StmtKind::kRaise:
      return stmt->at != nullptr && stmt->at->position.line > 0 ? stmt->at->position.column : -1;
    default:
      return -1;
  }
}

namespace {

// Gives a branch whose every arm leaves what its columns say is its own of the statements behind it.
void take_what_follows(Stmt* stmt, Stmts& body, size_t behind) {
  Stmt* last = stmt;  // the innermost `elif`
  const int column = beginning_of(stmt);
  if (column < 0) return;
  for (;;) {
    if (!always_leaves(last->body)) return;
    while (last->orelse.size() == 1 && last->orelse[0]->kind == StmtKind::kIf && is_elif(stmt, last->orelse[0])) {
      last = last->orelse[0];
      if (!always_leaves(last->body)) return;
    }
    if (!last->orelse.empty() || behind >= body.size()) return;
    Stmt* next = body[behind];
    if (next->kind != StmtKind::kIf || !is_elif(stmt, next)) break;
    last->orelse = {next};
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(behind));
  }
  size_t end = behind;
  while (end < body.size() && beginning_of(body[end]) >= column + kIndent) ++end;
  if (end == behind) return;
  const auto from = body.begin() + static_cast<std::ptrdiff_t>(behind), to = body.begin() + static_cast<std::ptrdiff_t>(end);
  last->orelse.assign(from, to);
  body.erase(from, to);
}

}  // namespace

void place_branches(Stmts& body, bool behind_elif) {
  for (size_t i = 0; i < body.size(); ++i) {
    Stmt* stmt = body[i];
    if (stmt->kind == StmtKind::kIf) {
      if (!behind_elif && !stmt->orelse.empty() && always_leaves(stmt->body) && beginning_of(stmt) >= 0 &&
          beginning_of(stmt->orelse[0]) == beginning_of(stmt)) {
        body.insert(body.begin() + static_cast<std::ptrdiff_t>(i) + 1, stmt->orelse.begin(), stmt->orelse.end());  // it stood behind
        stmt->orelse.clear();
      }
      take_what_follows(stmt, body, i + 1);
      // An else clause that begins with what was an `elif` that leaves.
      while (stmt->orelse.size() > 1 && stmt->orelse[0]->kind == StmtKind::kIf && stmt->orelse[0]->orelse.empty() &&
             always_leaves(stmt->orelse[0]->body) && is_elif(stmt, stmt->orelse[0])) {
        Stmt* first = stmt->orelse[0];
        first->orelse.assign(stmt->orelse.begin() + 1, stmt->orelse.end());
        stmt->orelse.resize(1);
      }
    }
    const bool chained = stmt->kind == StmtKind::kIf && stmt->orelse.size() == 1 && stmt->orelse[0]->kind == StmtKind::kIf;
    place_branches(stmt->orelse, chained && (behind_elif || is_elif(stmt, stmt->orelse[0])));
    for (Stmts* list : {&stmt->body, &stmt->final}) place_branches(*list, false);
    for (Handler& handler : stmt->handlers) place_branches(handler.body, false);
    for (Case& one : stmt->cases) place_branches(one.body, false);
  }
}

}  // namespace pellucid::decompile
