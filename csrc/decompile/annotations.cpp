// Annotations of what is no variable: their parts are evaluated and dropped. Values that no statement is left of where it stands alone,
// and the scope's dictionary of annotations, tell of them.
#include <algorithm>

#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

// Whether it is a constant that was dropped; compilers leave nothing of one that is a statement.
bool is_dropped_constant(const Stmt* stmt) { return stmt->kind == StmtKind::kExpression && stmt->value->kind == ExprKind::kConst; }

bool any_annotated(const Stmts& body) {
  return std::any_of(body.begin(), body.end(), [](Stmt* stmt) {
    bool found = stmt->kind == StmtKind::kAnnotated;
    each_list(stmt, [&](const Stmts& inner) { found |= any_annotated(inner); });
    return found;
  });
}

}  // namespace

// a[0]: T without a value. In functions the annotation is not evaluated, elsewhere behind the parts of the target.
void Structurer::find_annotated_items(Stmts& body) {
  for (size_t i = 0; i < body.size(); ++i) {
    each_list(body[i], [&](Stmts& inner) { find_annotated_items(inner); });
    if (i == 0 || !is_dropped_constant(body[i]) || body[i - 1]->kind != StmtKind::kExpression) continue;
    const bool evaluated = kind_ == CodeKind::kClass || kind_ == CodeKind::kModule;
    size_t end = i + 1;
    while (end < body.size() && end < i + 3 && is_dropped_constant(body[end])) ++end;
    if (evaluated && (end == body.size() || body[end]->kind != StmtKind::kExpression)) continue;
    Expr* index = body[i]->value;
    if (end > i + 1) {
      index = arena_.expr(ExprKind::kSlice);
      index->at = body[i]->at;
      for (size_t k = i; k < end; ++k) index->items.push_back(body[k]->value);
      index->items.resize(3);
    }
    Stmt* made = arena_.stmt(StmtKind::kAnnotated);
    made->at = body[i - 1]->at;
    made->order = body[i - 1]->order;
    Expr* target = arena_.expr(ExprKind::kSubscript);
    target->at = body[i]->at;
    target->items = {body[i - 1]->value, index};
    made->targets = {target};
    made->annotation = evaluated ? body[end]->value : constant(Py_Ellipsis, *body[i]->at);
    body[i - 1] = made;
    erase(body, i, end - i + (evaluated ? 1 : 0));
    --i;
  }
}

// a.b: T = value, where nothing else tells why there is a dictionary of annotations.
void Structurer::find_annotated_attributes(Stmts& body) {
  const auto sets_up = [](const Instruction& in) { return in.op == Op::SETUP_ANNOTATIONS; };
  if ((kind_ != CodeKind::kClass && kind_ != CodeKind::kModule) || std::none_of(flow_.ins.begin(), flow_.ins.end(), sets_up) ||
      any_annotated(body)) {
    return;
  }
  for (size_t i = 0; i + 1 < body.size(); ++i) {
    Stmt *assigned = body[i], *dropped = body[i + 1];
    if (assigned->kind != StmtKind::kAssign || assigned->targets.size() != 1 || dropped->kind != StmtKind::kExpression) continue;
    const ExprKind kind = assigned->targets[0]->kind;
    if (kind != ExprKind::kAttribute && kind != ExprKind::kSubscript) continue;
    assigned->kind = StmtKind::kAnnotated;
    assigned->annotation = dropped->value;
    erase(body, i + 1, 1);
    return;
  }
}

}  // namespace pellucid::decompile
