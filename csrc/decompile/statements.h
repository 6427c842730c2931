// What several passes over statement lists ask of them. Knows the syntax tree only.
#pragma once
#include "decompile/ast.h"

namespace pellucid::decompile {

// Whether execution never goes on behind a statement, by its kind alone.
inline bool leaves(const Stmt* stmt) {
  return stmt->kind == StmtKind::kReturn || stmt->kind == StmtKind::kRaise || stmt->kind == StmtKind::kBreak ||
         stmt->kind == StmtKind::kContinue;
}

// Whether execution never goes on behind a list, on any branch at its end.
inline bool always_leaves(const Stmts& body) {
  if (body.empty()) return false;
  const Stmt* last = body.back();
  return leaves(last) || (last->kind == StmtKind::kIf && always_leaves(last->body) && always_leaves(last->orelse));
}

inline bool is_leave(const Stmt* stmt, const char* what) { return stmt->kind == StmtKind::kLeave && stmt->text == what; }

inline void erase(Stmts& body, size_t from, size_t count) {
  body.erase(body.begin() + static_cast<std::ptrdiff_t>(from), body.begin() + static_cast<std::ptrdiff_t>(from + count));
}

// The lists that stand in a statement.
template <class Visit>
void each_list(Stmt* stmt, Visit visit) {
  visit(stmt->body);
  visit(stmt->orelse);
  visit(stmt->final);
  for (Handler& handler : stmt->handlers) visit(handler.body);
  for (Case& one : stmt->cases) visit(one.body);
}

}  // namespace pellucid::decompile
