// Instructions that only 3.8 has: displays and arguments with stars made of several parts.
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

bool is_const_tuple(const Expr* expr) { return expr->kind == ExprKind::kConst && PyTuple_CheckExact(expr->object); }

}  // namespace

// Parts are what stands behind a star, or tuples (in a set, sets) of items that have none.
void Structurer::unpack_parts(Node& node, ExprKind kind, uint8_t op, const Instruction& in) {
  Exprs parts = pop_many(node, in.arg);
  Expr* made = make(kind, in);
  bool plain_before = false;
  for (Expr* part : parts) {
    const bool display =
        part->kind == (kind == ExprKind::kSet ? ExprKind::kSet : ExprKind::kTuple) && !part->items.empty() && part->op == 0;
    const bool constants = kind != ExprKind::kSet && is_const_tuple(part) && PyTuple_GET_SIZE(part->object) > 0;
    const bool plain = (display || constants) && !plain_before && parts.size() > 1;
    plain_before = plain;
    if (plain && constants) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(part->object); ++i) {
        made->items.push_back(constant(PyTuple_GET_ITEM(part->object, i), *part->at));
      }
    } else if (plain) {
      made->items.insert(made->items.end(), part->items.begin(), part->items.end());
    } else {
      Expr* starred = make(ExprKind::kStarred, in);
      starred->items = {part};
      starred->first = part->first;
      starred->last = part->last;
      made->items.push_back(starred);
    }
  }
  order_items(made);
  made->op = op;
  push(node, made);
}

void Structurer::unpack_maps(Node& node, const Instruction& in) {
  Exprs parts = pop_many(node, in.arg);
  Expr* made = make(ExprKind::kDict, in);
  bool plain_before = false;
  for (Expr* part : parts) {
    const bool plain = part->kind == ExprKind::kDict && !part->items.empty() && part->number == 0 && !plain_before && parts.size() > 1 &&
                       (in.op == Op::BUILD_MAP_UNPACK || are_keywords(part));
    plain_before = plain;
    if (plain) {
      made->items.insert(made->items.end(), part->items.begin(), part->items.end());
    } else {
      made->items.push_back(nullptr);
      made->items.push_back(part);
    }
  }
  order_items(made);
  made->number = in.op == Op::BUILD_MAP_UNPACK ? 2 : 1;
  push(node, made);
}

bool Structurer::execute_old(Node& node, const Instruction& in) {
  switch (in.op) {
    case Op::BUILD_TUPLE_UNPACK:
      unpack_parts(node, ExprKind::kTuple, 2, in);
      return true;
    case Op::BUILD_TUPLE_UNPACK_WITH_CALL:
      unpack_parts(node, ExprKind::kTuple, 1, in);
      return true;
    case Op::BUILD_LIST_UNPACK:
      unpack_parts(node, ExprKind::kList, 1, in);
      return true;
    case Op::BUILD_SET_UNPACK:
      unpack_parts(node, ExprKind::kSet, 1, in);
      return true;
    case Op::BUILD_MAP_UNPACK:
    case Op::BUILD_MAP_UNPACK_WITH_CALL:
      unpack_maps(node, in);
      return true;
    default:
      return false;
  }
}

}  // namespace pellucid::decompile
