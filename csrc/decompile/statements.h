// What several passes over the syntax tree ask of its nodes. Knows nothing else.
#pragma once
#include "decompile/ast.h"

namespace pellucid::decompile {

inline bool is_none(const Expr* expr) { return expr != nullptr && expr->kind == ExprKind::kConst && expr->object == Py_None; }

// Whether what stood in the source is so wide, on one line: the keyword, say, that an instruction is all that is left of.
inline bool spans(const bytecode::Instruction* in, int width) {
  return in != nullptr && in->position.line > 0 && in->position.line == in->position.end_line && in->position.column >= 0 &&
         in->position.end_column - in->position.column == width;
}

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
