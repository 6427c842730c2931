// Code that compilers make keeps values on the stack where a person would give them a name: over statements, in another order, several
// times. Where code has no structured form as it stands, it gets one with such names. Every value on the stack that is not a name or a
// constant is assigned to a new variable before anything happens that would come between it and its use, in the order of evaluation.
#include <algorithm>

#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

bool is_atom(const Expr* expr) {
  if (expr->kind == ExprKind::kConst || expr->kind == ExprKind::kNull || (expr->kind == ExprKind::kName && expr->last < 0)) return true;
  const auto constant = [](const Expr* item) { return item == nullptr || item->kind == ExprKind::kConst; };
  return expr->kind == ExprKind::kSlice && std::all_of(expr->items.begin(), expr->items.end(), constant);
}

bool can_be_named(const Expr* expr) {
  switch (expr->kind) {
    case ExprKind::kName:
    case ExprKind::kAttribute:
    case ExprKind::kSubscript:
    case ExprKind::kCall:
    case ExprKind::kBinary:
    case ExprKind::kUnary:
    case ExprKind::kBool:
    case ExprKind::kCompare:
    case ExprKind::kConditional:
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kSet:
    case ExprKind::kDict:
    case ExprKind::kLambda:
    case ExprKind::kComprehension:
    case ExprKind::kJoined:
    case ExprKind::kYield:
    case ExprKind::kYieldFrom:
      return true;
    case ExprKind::kAwait:
      return expr->op == 0;
    default:
      return false;
  }
}

bool is_store(Op op) { return op == Op::STORE_FAST || op == Op::STORE_NAME || op == Op::STORE_GLOBAL || op == Op::STORE_DEREF; }

}  // namespace

// A name whose value nothing changes as long as it is on the stack: when it is read does not matter.
Expr* Structurer::atom(const std::string& text, const Instruction& in) {
  Expr* made = make(ExprKind::kName, in);
  made->text = text;
  if (is_value_name(made)) value_names_.push_back(made);
  return made;
}

// What is on the stack may be used more than once; what is printed stands once.
Expr* Structurer::another(Expr* expr) {
  if (!naming_ || !is_atom(expr) || expr->kind == ExprKind::kConst) return expr;
  Expr* made = arena_.expr(expr->kind);
  *made = *expr;
  if (is_value_name(made)) value_names_.push_back(made);
  return made;
}

Expr* Structurer::assign_name(Node& node, Expr* value, const Instruction& in) {
  const std::string text = value_prefix_ + std::to_string(n_values_++);
  Stmt* made = arena_.stmt(StmtKind::kAssign);
  made->targets = {atom(text, in)};
  made->value = value;
  made->at = &in;
  made->order = std::max(value->last, 0);
  node.stmts.push_back(made);
  return atom(text, in);
}

void Structurer::name_stack(Node& node, const Instruction& in) {
  for (Expr*& entry : node.stack) {
    if (is_frame(entry) || is_atom(entry)) continue;
    if (!can_be_named(entry)) no_form("a value that has no name stays on the stack");
    entry = assign_name(node, entry, in);
  }
}

// A return drops what is below its value; without names what made that would be lost.
void Structurer::leave_nothing(const Node& node) {
  for (size_t i = 0; i + 1 < node.stack.size(); ++i) {
    if (!is_frame(node.stack[i]) && can_be_named(node.stack[i])) no_form("a value left on the stack");
  }
}

// `text` is about to be stored or deleted: what it was is still wanted.
void Structurer::keep_value_of(Node& node, const std::string& text, const Instruction& in) {
  Expr* kept = nullptr;
  for (Expr*& entry : node.stack) {
    if (entry->kind != ExprKind::kName || entry->last >= 0 || entry->text != text) continue;
    if (kept == nullptr) {
      name_stack(node, in);
      kept = assign_name(node, atom(text, in), in);
    }
    entry = kept;
  }
}

// The instructions that move values about. False: as without names.
bool Structurer::execute_moves(Node& node, int index) {
  const Instruction& in = flow_.ins[at(index)];
  switch (in.op) {
    case Op::COPY:
    case Op::DUP_TOP: {
      Expr* copied = peek(node, in.op == Op::COPY ? in.arg : 1);
      if (is_frame(copied)) return false;
      const Instruction* next = &in + 1;
      if ((in.op == Op::DUP_TOP || in.arg == 1) && !is_atom(copied) && can_be_named(copied) && next->op == Op::STORE_FAST &&
          index + 1 < flow_.blocks[at(node.last)].end) {  // the variable is the name
        const std::string text = local_at(next->arg);
        node.stack.pop_back();
        keep_value_of(node, text, in);
        store_value(node, atom(text, *next), copied, *next);
        push(node, atom(text, in));
        stored_already_ = index + 1;
        return true;
      }
      name_stack(node, in);
      push(node, another(peek(node, in.op == Op::COPY ? in.arg : 1)));
      return true;
    }
    case Op::DUP_TOP_TWO:
    case Op::SWAP:
    case Op::ROT_TWO:
    case Op::ROT_THREE:
    case Op::ROT_FOUR:
    case Op::ROT_N:
      name_stack(node, in);
      return false;
    case Op::STORE_FAST:
      if (index == stored_already_) return true;
      [[fallthrough]];
    case Op::DELETE_FAST: {
      Expr* value = in.op == Op::STORE_FAST ? pop_raw(node) : nullptr;
      keep_value_of(node, local_at(in.arg), in);
      if (value != nullptr) push(node, value);
      return false;
    }
    case Op::LOAD_FAST:
      push(node, atom(local_at(in.arg), in));
      return true;
    case Op::POP_TOP:
      if (!is_atom(peek(node, 1)) || peek(node, 1)->kind == ExprKind::kNull) return false;
      node.stack.pop_back();
      return true;
    case Op::LIST_EXTEND: {
      Expr* whole = peek(node, size_t{in.arg} + 1);
      if (in.arg == 1 && whole->kind == ExprKind::kList) return false;
      Expr* value = pop(node);
      name_stack(node, in);
      Expr*& target = node.stack[node.stack.size() - in.arg];
      if (target->kind != ExprKind::kName) no_form("a display extended from afar");
      if (target->text.rfind(value_prefix_, 0) != 0) target = assign_name(node, another(target), in);
      Stmt* made = arena_.stmt(StmtKind::kAugmented);  // of a list: nothing else can be extended
      made->op = kAdd;
      made->targets = {another(target)};
      made->value = value;
      emit(node, made, in);
      return true;
    }
    case Op::UNPACK_SEQUENCE: {
      bool stored = true;
      for (uint32_t i = 1; i <= in.arg; ++i) {
        stored = stored && at(index) + i < flow_.ins.size() && is_store(flow_.ins[at(index) + i].op);
      }
      if (stored) return false;
      Stmt* made = arena_.stmt(StmtKind::kAssign);
      made->value = pop(node);
      Expr* targets = make(ExprKind::kTuple, in);
      Exprs names;
      for (uint32_t i = 0; i < in.arg; ++i) {
        names.push_back(atom(value_prefix_ + std::to_string(n_values_++), in));
        targets->items.push_back(another(names.back()));
      }
      made->targets = {targets};
      emit(node, made, in);
      node.stack.insert(node.stack.end(), names.rbegin(), names.rend());
      return true;
    }
    default:
      return false;
  }
}

// Where paths meet, and where another region begins, values on the stack have no name that would be the same from everywhere.
void Structurer::name_before(Node& node, int to, const Instruction& in) {
  if (to < 0) return;
  const Block& target = flow_.blocks[at(to)];
  if (target.region != flow_.blocks[at(node.last)].region) name_stack(node, in);
  if (target.preds.size() < 2 && !target.header) return;
  if (std::any_of(node.stack.begin(), node.stack.end(),
                  [](const Expr* entry) { return !is_frame(entry) && entry->kind != ExprKind::kIterable; }))
    no_form("values on the stack where paths meet");
}

bool Structurer::is_value_name(const Expr* expr) const {
  return expr->kind == ExprKind::kName && expr->last < 0 && expr->text.rfind(value_prefix_, 0) == 0;
}

// Names that were needed while the code was read, but not in the end: what is pure goes, what is used nowhere is a statement of its own,
// and what the next statement evaluates first stands there. Those that stay are numbered anew.
void Structurer::settle_names(Stmts& body) {
  std::unordered_map<std::string, int> uses;
  count_names(body, &uses);
  settle_names(body, uses);
  std::unordered_map<std::string, std::string> again;
  for (Expr* one : value_names_) {
    if (uses.count(one->text) == 0) continue;
    const auto [found, fresh] = again.try_emplace(one->text, "");
    if (fresh) found->second = value_prefix_ + std::to_string(again.size() - 1);
  }
  for (Expr* one : value_names_) {
    if (const auto found = again.find(one->text); found != again.end()) one->text = found->second;
  }
}

void Structurer::settle_names(Stmts& stmts, std::unordered_map<std::string, int>& uses) {
  const auto pure = [](const Expr* value) {
    if (is_atom(value)) return true;
    return (value->kind == ExprKind::kTuple || value->kind == ExprKind::kList) &&
           std::all_of(value->items.begin(), value->items.end(), is_atom);
  };
  Stmts out;
  for (size_t i = stmts.size(); i-- > 0;) {
    Stmt* stmt = stmts[i];
    settle_names(stmt->body, uses);
    settle_names(stmt->orelse, uses);
    settle_names(stmt->final, uses);
    for (Handler& handler : stmt->handlers) settle_names(handler.body, uses);
    for (Case& one : stmt->cases) settle_names(one.body, uses);
    if (stmt->kind == StmtKind::kAssign && stmt->targets.size() == 1 && is_value_name(stmt->targets[0])) {
      const std::string& text = stmt->targets[0]->text;
      const int used = uses[text];
      if (used == 0 && pure(stmt->value)) {
        uses.erase(text);
        std::unordered_map<std::string, int> dropped;
        count_names(stmt->value, &dropped);
        for (const auto& [name, count] : dropped) uses[name] -= count;
        continue;
      }
      if (used == 0) {
        uses.erase(text);
        stmt->kind = StmtKind::kExpression;
        stmt->targets.clear();
      } else if (Expr** place = used == 1 && !out.empty() ? evaluated_first(out.back(), text) : nullptr; place != nullptr) {
        uses.erase(text);
        *place = stmt->value;
        continue;
      }
    }
    out.push_back(stmt);
  }
  stmts.assign(out.rbegin(), out.rend());
}

namespace {

enum class Search : uint8_t { kPassed, kFound, kBlocked };

// Looks for a name among what is evaluated before anything that is more than a name or a constant.
Search find_first(Expr*& place, const std::string& text, Expr*** found) {
  Expr* expr = place;
  if (expr == nullptr) return Search::kPassed;
  if (expr->kind == ExprKind::kName && expr->text == text) {
    *found = &place;
    return Search::kFound;
  }
  if (is_atom(expr)) return Search::kPassed;
  size_t certain = expr->items.size();  // that are evaluated whatever the others give
  switch (expr->kind) {
    case ExprKind::kAttribute:
    case ExprKind::kSubscript:
    case ExprKind::kSlice:
    case ExprKind::kCall:
    case ExprKind::kKeyword:
    case ExprKind::kStarred:
    case ExprKind::kBinary:
    case ExprKind::kUnary:
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kSet:
    case ExprKind::kDict:
      break;
    case ExprKind::kCompare:
      certain = 2;
      break;
    case ExprKind::kBool:
    case ExprKind::kConditional:
      certain = 1;
      break;
    default:
      return Search::kBlocked;
  }
  for (size_t i = 0; i < certain; ++i) {
    if (const Search result = find_first(expr->items[i], text, found); result != Search::kPassed) return result;
  }
  return Search::kBlocked;
}

}  // namespace

// Where `stmt` uses the name, if nothing that matters is evaluated before; null otherwise.
Expr** Structurer::evaluated_first(Stmt* stmt, const std::string& text) const {
  Expr** found = nullptr;
  const auto look = [&](Expr*& place) { return find_first(place, text, &found); };
  switch (stmt->kind) {
    case StmtKind::kAssign:
      if (look(stmt->value) != Search::kPassed || stmt->targets.size() != 1 || stmt->targets[0]->items.empty()) return found;
      for (Expr*& item : stmt->targets[0]->items) {
        if (stmt->targets[0]->kind != ExprKind::kSubscript && stmt->targets[0]->kind != ExprKind::kAttribute) return nullptr;
        if (look(item) != Search::kPassed) return found;
      }
      return found;
    case StmtKind::kAugmented:
      if (stmt->targets[0]->kind == ExprKind::kName && stmt->targets[0]->last < 0 && stmt->targets[0]->text != text) look(stmt->value);
      return found;
    case StmtKind::kDelete:
      if (stmt->targets.size() != 1) return nullptr;
      for (Expr*& item : stmt->targets[0]->items) {
        if (look(item) != Search::kPassed) break;
      }
      return found;
    case StmtKind::kExpression:
    case StmtKind::kReturn:
    case StmtKind::kRaise:
    case StmtKind::kIf:
    case StmtKind::kFor:
      look(stmt->value);
      return found;
    default:
      return nullptr;
  }
}

void Structurer::count_names(const Expr* expr, std::unordered_map<std::string, int>* uses) const {
  if (expr == nullptr) return;
  if (expr->kind == ExprKind::kName) ++(*uses)[expr->text];
  count_names(expr->value, uses);
  for (const Expr* item : expr->items) count_names(item, uses);
  for (const Clause& clause : expr->clauses) {
    count_names(clause.target, uses);
    count_names(clause.iterable, uses);
    for (const Expr* condition : clause.conditions) count_names(condition, uses);
  }
  if (expr->function != nullptr) {
    for (const Expr* value : expr->function->defaults) count_names(value, uses);
    for (const auto& [name, value] : expr->function->kw_defaults) count_names(value, uses);
    for (const auto& [name, value] : expr->function->annotations) count_names(value, uses);
  }
}

void Structurer::count_names(const Stmts& body, std::unordered_map<std::string, int>* uses) const {
  for (const Stmt* stmt : body) {
    for (const Expr* value : {stmt->value, stmt->cause, stmt->annotation}) count_names(value, uses);
    for (const Expr* target : stmt->targets) {
      if (target->kind != ExprKind::kName || stmt->kind != StmtKind::kAssign) count_names(target, uses);
    }
    for (const Expr* decorator : stmt->decorators) count_names(decorator, uses);
    for (const WithItem& item : stmt->withs) {
      count_names(item.context, uses);
      count_names(item.target, uses);
    }
    if (stmt->function != nullptr) {
      for (const Expr* value : stmt->function->defaults) count_names(value, uses);
      for (const auto& [name, value] : stmt->function->kw_defaults) count_names(value, uses);
      for (const auto& [name, value] : stmt->function->annotations) count_names(value, uses);
    }
    for (const Handler& handler : stmt->handlers) {
      count_names(handler.type, uses);
      count_names(handler.body, uses);
    }
    for (const Case& one : stmt->cases) {
      count_names(one.guard, uses);
      count_names(one.body, uses);
    }
    count_names(stmt->body, uses);
    count_names(stmt->orelse, uses);
    count_names(stmt->final, uses);
  }
}

}  // namespace pellucid::decompile
