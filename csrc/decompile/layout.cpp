// Printing with the original's lines: a token stands on a line of its own where the line table says that it stood on a later line than
// what precedes it, and on one line with it where it did. Only where lines begin counts, not their numbers. Knows where lines break,
// not what is printed.
#include <algorithm>

#include "decompile/print.h"

namespace pellucid::decompile {
namespace {

constexpr char kBreak = '\x01';  // a line break outside of brackets, until the end of its statement says what it becomes
constexpr int32_t kByJumps = 1;

int line_at(const bytecode::Instruction* at) { return at != nullptr ? at->position.line : -1; }

const bytecode::Instruction* leftmost_of(const Exprs& items) {
  for (const Expr* item : items) {
    if (item != nullptr) return Printer::leftmost(item);
  }
  return nullptr;
}

bool is_simple(const Stmt* stmt) {
  switch (stmt->kind) {
    case StmtKind::kIf:
    case StmtKind::kWhile:
    case StmtKind::kFor:
    case StmtKind::kTry:
    case StmtKind::kWith:
    case StmtKind::kFunction:
    case StmtKind::kClass:
    case StmtKind::kMatch:
      return false;
    default:
      return true;
  }
}

}  // namespace

// The instruction whose position is where an expression begins.
const bytecode::Instruction* Printer::leftmost(const Expr* e) {
  for (int steps = 0; e != nullptr && steps < 1000; ++steps) {
    switch (e->kind) {
      case ExprKind::kAttribute:
      case ExprKind::kSubscript:
      case ExprKind::kCall:
      case ExprKind::kKeyword:
      case ExprKind::kStarred:
      case ExprKind::kBinary:
      case ExprKind::kBool:
      case ExprKind::kCompare:
      case ExprKind::kNamed:
        e = e->items[0];
        break;
      case ExprKind::kSlice:
        return leftmost_of(e->items);
      case ExprKind::kConditional:
        e = e->items[1];
        break;
      case ExprKind::kUnary:
        if (e->number != kByJumps) return e->at;
        e = e->items[0];
        break;
      case ExprKind::kTuple:
        // A tuple of targets has the place of its first one.
        if (e->at == nullptr || (!e->items.empty() && line_at(e->at) <= 0)) return leftmost_of(e->items);
        if (const auto* first = leftmost_of(e->items); first != nullptr && line_at(first) > 0 && line_at(first) < line_at(e->at))
          return first;
        return e->at;
      default:
        return e->at;
    }
  }
  return nullptr;
}

// Behind what ends a statement around it a `return` has that one's place; its own is what was left of it in front of that, if anything.
const bytecode::Instruction* Printer::place_of_return(const Stmt* stmt) {
  const bytecode::Instruction* value = stmt->value != nullptr ? leftmost(stmt->value) : nullptr;
  const auto reaches = [&](const bytecode::Instruction* in) {
    if (value == nullptr || in->position.end_line <= 0) return true;
    return in->position.line <= value->position.line && in->position.end_line >= value->position.line;
  };
  if (stmt->header != nullptr && reaches(stmt->header)) return stmt->header;
  return stmt->at == nullptr || reaches(stmt->at) ? stmt->at : value;
}

int Printer::first_line(const Stmt* stmt) {
  switch (stmt->kind) {
    case StmtKind::kReturn:
      return line_at(place_of_return(stmt));
    case StmtKind::kExpression:
    case StmtKind::kAssert:
    case StmtKind::kIf:
    case StmtKind::kMatch:
      return line_at(leftmost(stmt->value));
    case StmtKind::kWhile:
      return stmt->value != nullptr ? line_at(leftmost(stmt->value)) : line_at(stmt->header);
    case StmtKind::kAssign:
    case StmtKind::kAugmented:
    case StmtKind::kAnnotated:
      return line_at(leftmost(stmt->targets[0]));
    case StmtKind::kFor:
      return std::min(line_at(leftmost(stmt->targets[0])), line_at(leftmost(stmt->value)));
    case StmtKind::kWith:
      return line_at(leftmost(stmt->withs[0].context));
    case StmtKind::kTry:
      return line_at(stmt->header);
    case StmtKind::kFunction:
    case StmtKind::kClass:
      return stmt->decorators.empty() ? line_at(stmt->at) : line_at(leftmost(stmt->decorators[0]));
    default:
      return line_at(stmt->at);
  }
}

void Printer::place(const bytecode::Instruction* at) {
  if (!layout_ || at == nullptr || at->position.line <= original_) return;
  if (original_ > 0) {
    while (!out_.empty() && out_.back() == ' ') out_.pop_back();
    out_ += brackets_ > 0 ? '\n' : kBreak;
    out_.append(static_cast<size_t>(indent_ + 1) * 4, ' ');
    ++line_;
  }
  original_ = at->position.line;
}

// An expression that takes up a whole part of its statement may stand in parentheses where its lines are broken.
void Printer::whole(const Expr* e, int least) {
  size_t begin = out_.size();
  expr(e, least);
  if (begin > 0 && out_[begin - 1] == kBreak) --begin;  // the break in front of it belongs inside too
  const auto broken = std::find(out_.begin() + static_cast<std::ptrdiff_t>(begin), out_.end(), kBreak);
  if (broken == out_.end()) return;
  std::replace(out_.begin() + static_cast<std::ptrdiff_t>(begin), out_.end(), kBreak, '\n');
  size_t at = begin;
  if (out_[begin - 1] != ' ' && out_[begin] != ' ') out_.insert(at++, 1, ' ');
  out_.insert(at, 1, '(');
  out_ += ')';
}

// What is left of line breaks outside of brackets.
void Printer::continue_lines() {
  if (!layout_) return;
  for (size_t at = out_.find(kBreak, statement_); at != std::string::npos; at = out_.find(kBreak, at)) out_.replace(at, 1, " \\\n");
}

// Whether the statements of a block stood on the line of what opens it.
bool Printer::stands_behind(const Stmts& stmts, const Function* function) const {
  if (!layout_ || original_ <= 0 || stmts.empty()) return false;
  if (function != nullptr && (function->docstring != nullptr || !function->declarations.empty())) return false;
  return first_line(stmts[0]) == original_ && std::all_of(stmts.begin(), stmts.end(), is_simple);
}

bool Printer::stands_beside(const Stmt* before, const Stmt* stmt) const {
  return layout_ && original_ > 0 && is_simple(before) && is_simple(stmt) && first_line(stmt) == original_;
}

}  // namespace pellucid::decompile
