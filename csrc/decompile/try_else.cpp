// From 3.11 on an else clause is compiled before the except clauses that stand in front of it, so names that first occur in it come first
// among those of the code object. Where no handler goes on, only that and columns tell an else clause from what follows the statement.
#include <algorithm>

#include "bytecode/tables.h"
#include "decompile/canonical.h"
#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

constexpr size_t kMostBehind = 64;  // statements looked at behind one statement: time must stay linear

// The instructions that a tree was made of, as ranges.
class Ranges {
 public:
  explicit Ranges(const std::vector<Instruction>& all) : first_(all.data()), last_(all.data() + all.size()) {}

  void add(const Stmt* stmt) {
    const Instruction *low = nullptr, *high = nullptr;
    const auto see = [&](const Instruction* in) {
      if (in == nullptr || in < first_ || in >= last_) return;
      low = low == nullptr ? in : std::min(low, in);
      high = high == nullptr ? in : std::max(high, in);
    };
    if (stmt->kind != StmtKind::kTry && stmt->kind != StmtKind::kWith && stmt->kind != StmtKind::kIf) see(stmt->at);
    for (const Expr* value : {stmt->value, stmt->cause, stmt->annotation}) each(value, see);
    for (const Exprs* list : {&stmt->targets, &stmt->decorators}) {
      for (const Expr* one : *list) each(one, see);
    }
    for (const WithItem& item : stmt->withs) {
      each(item.context, see);
      each(item.target, see);
    }
    if (low != nullptr) ranges_.emplace_back(low, high + 1);
    for (const Stmts* list : {&stmt->body, &stmt->orelse, &stmt->final}) add(*list);
    for (const Handler& handler : stmt->handlers) add(handler);
    for (const Case& one : stmt->cases) add(one.body);
  }

  void add(const Stmts& body) {
    for (const Stmt* stmt : body) add(stmt);
  }

  void add(const Handler& handler) {
    const Instruction *low = nullptr, *high = nullptr;
    each(handler.type, [&](const Instruction* in) {
      if (in == nullptr || in < first_ || in >= last_) return;
      low = low == nullptr ? in : std::min(low, in);
      high = high == nullptr ? in : std::max(high, in);
    });
    if (low != nullptr) ranges_.emplace_back(low, high + 1);
    add(handler.body);
  }

  const std::vector<std::pair<const Instruction*, const Instruction*>>& all() const { return ranges_; }

 private:
  template <class See>
  void each(const Expr* expr, const See& see) {
    if (expr == nullptr) return;
    see(expr->at);
    each(expr->value, see);
    for (const Expr* item : expr->items) each(item, see);
    for (const Clause& clause : expr->clauses) {
      each(clause.target, see);
      each(clause.iterable, see);
      for (const Expr* condition : clause.conditions) each(condition, see);
    }
  }

  const Instruction *first_, *last_;
  std::vector<std::pair<const Instruction*, const Instruction*>> ranges_;
};

}  // namespace

// The place of what an instruction names among names (from 0) or local variables (behind them); -1: it names nothing.
int Structurer::named_by(const Instruction& in) const {
  const int flags = bytecode::tables(code_.version)->info(in.op).flags;
  if ((flags & bytecode::kHasName) != 0) {
    const uint32_t index = name_index(code_, in);
    return index < code_.names.size() ? static_cast<int>(index) : -1;
  }
  if ((flags & bytecode::kHasLocal) == 0 || in.arg >= code_.localsplus_names.size()) return -1;
  if (code_.localsplus_kinds[in.arg] != bytecode::LocalKind::kLocal || static_cast<int>(in.arg) < code_.n_arguments()) return -1;
  return static_cast<int>(code_.names.size() + in.arg);
}

// How many of the statements behind a try statement its names say are its else clause.
size_t Structurer::else_by_names(const Stmt* stmt, const Stmts& body, size_t behind) {
  if (first_lines_.empty()) {
    first_lines_.assign(code_.names.size() + code_.localsplus_names.size(), INT32_MAX);
    for (const Instruction& in : flow_.ins) {
      const int named = named_by(in);
      if (named >= 0 && in.position.line > 0)
        first_lines_[static_cast<size_t>(named)] = std::min(first_lines_[static_cast<size_t>(named)], in.position.line);
    }
  }
  Ranges handlers(flow_.ins);
  for (const Handler& handler : stmt->handlers) handlers.add(handler);
  int begins = INT32_MAX;
  for (const auto& [from, to] : handlers.all()) {
    for (const Instruction* in = from; in < to; ++in) {
      if (in->position.line > 0) begins = std::min(begins, in->position.line);
    }
  }
  const auto names_in = [&](const Ranges& ranges) {
    std::set<int> found;
    for (const auto& [from, to] : ranges.all()) {
      for (const Instruction* in = from; in < to; ++in) {
        const int named = named_by(*in);
        if (named >= 0 && first_lines_[static_cast<size_t>(named)] >= begins) found.insert(named);
      }
    }
    return found;
  };
  const std::set<int> inside = names_in(handlers);
  const size_t end = std::min(body.size(), behind + kMostBehind);
  std::vector<std::set<int>> after;
  std::set<int> all_after;
  for (size_t i = behind; i < end; ++i) {
    Ranges ranges(flow_.ins);
    ranges.add(body[i]);
    after.push_back(names_in(ranges));
    all_after.insert(after.back().begin(), after.back().end());
  }
  size_t count = 0;
  const auto n_names = static_cast<int>(code_.names.size());
  for (const bool local : {false, true}) {
    int last = -1;  // of the names that occur in handlers first
    for (const int named : inside) {
      if ((named >= n_names) == local && all_after.count(named) == 0) last = std::max(last, named);
    }
    for (size_t i = 0; i < after.size(); ++i) {
      for (const int named : after[i]) {
        if ((named >= n_names) == local && named < last && inside.count(named) == 0) count = std::max(count, i + 1);
      }
    }
  }
  return count;
}

// How many of them begin where the statements of its body do. Of some nothing tells where they begin; these go with what precedes them.
size_t Structurer::else_by_columns(const Stmt* stmt, const Stmts& body, size_t behind) const {
  const auto beginning = [](const Stmt* one) {
    if (one->kind == StmtKind::kTry && one->header != nullptr) return one->header->position.column;
    return beginning_of(one);
  };
  int inside = -1;
  for (const Stmt* one : stmt->body) {
    if (inside < 0) inside = beginning(one);
  }
  size_t count = 0;
  for (size_t i = behind; inside >= 0 && i < body.size() && i < behind + kMostBehind; ++i) {
    const int column = beginning(body[i]);
    if (column >= 0 && column < inside) break;
    if (column == inside || (column < 0 && count != 0)) count = i + 1 - behind;
  }
  return count;
}

void Structurer::find_else_clauses(Stmts& body) {
  DepthGuard guard(session_);
  for (size_t i = 0; i < body.size(); ++i) {
    Stmt* stmt = body[i];
    for (Stmts* list : {&stmt->body, &stmt->orelse, &stmt->final}) find_else_clauses(*list);
    for (Handler& handler : stmt->handlers) find_else_clauses(handler.body);
    for (Case& one : stmt->cases) find_else_clauses(one.body);
    if (stmt->kind != StmtKind::kTry || stmt->handlers.empty() || !stmt->orelse.empty() || !stmt->final.empty() || i + 1 == body.size() ||
        stmt->at == nullptr) {
      continue;
    }
    if (!std::all_of(stmt->handlers.begin(), stmt->handlers.end(), [](const Handler& one) { return always_leaves(one.body); })) continue;
    const size_t count = std::max(else_by_names(stmt, body, i + 1), else_by_columns(stmt, body, i + 1));
    if (!decide(ChoiceKind::kTryElse, stmt->at, count != 0)) continue;
    const auto from = body.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const auto to = count != 0 ? from + static_cast<std::ptrdiff_t>(count) : body.end();
    stmt->orelse.assign(from, to);
    body.erase(from, to);
  }
}

}  // namespace pellucid::decompile
