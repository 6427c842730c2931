// The decompilation of one code object from its first block to a finished body: docstring, declarations, what compilers add to every
// class and function, and statements that exist only as instructions without effect.
#include <algorithm>
#include <set>

#include "bytecode/tables.h"
#include "decompile/constants.h"
#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

bool stores_name(const Stmt* stmt, const char* name) {
  return stmt->kind == StmtKind::kAssign && stmt->targets.size() == 1 && stmt->targets[0]->kind == ExprKind::kName &&
         stmt->targets[0]->text == name;
}

bool equal_items(const Exprs& a, const Exprs& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

bool equal_patterns(const Pattern* a, const Pattern* b) {
  if (a->kind != b->kind || a->name != b->name || a->has_rest != b->has_rest || a->keywords != b->keywords || !equal(a->value, b->value) ||
      !equal_items(a->keys, b->keys) || a->items.size() != b->items.size()) {
    return false;
  }
  for (size_t i = 0; i < a->items.size(); ++i) {
    if (!equal_patterns(a->items[i], b->items[i])) return false;
  }
  return true;
}

bool equal_lists(const Stmts& a, const Stmts& b);

bool equal_stmt(const Stmt* a, const Stmt* b) {
  if (a->kind != b->kind || a->op != b->op || a->is_async != b->is_async || a->text != b->text || !equal(a->value, b->value) ||
      !equal(a->cause, b->cause) || !equal(a->annotation, b->annotation) || !equal_items(a->targets, b->targets) ||
      !equal_items(a->decorators, b->decorators) || a->names.size() != b->names.size() || a->handlers.size() != b->handlers.size() ||
      a->withs.size() != b->withs.size() || a->cases.size() != b->cases.size()) {
    return false;
  }
  if (a->function != nullptr && a->function->code.instructions.size() != b->function->code.instructions.size()) return false;
  for (size_t i = 0; i < a->names.size(); ++i) {
    if (a->names[i].name != b->names[i].name || a->names[i].as != b->names[i].as) return false;
  }
  for (size_t i = 0; i < a->withs.size(); ++i) {
    if (!equal(a->withs[i].context, b->withs[i].context) || !equal(a->withs[i].target, b->withs[i].target)) return false;
  }
  for (size_t i = 0; i < a->handlers.size(); ++i) {
    if (a->handlers[i].name != b->handlers[i].name || !equal(a->handlers[i].type, b->handlers[i].type) ||
        !equal_lists(a->handlers[i].body, b->handlers[i].body)) {
      return false;
    }
  }
  for (size_t i = 0; i < a->cases.size(); ++i) {
    if (!equal_patterns(a->cases[i].pattern, b->cases[i].pattern) || !equal(a->cases[i].guard, b->cases[i].guard) ||
        !equal_lists(a->cases[i].body, b->cases[i].body)) {
      return false;
    }
  }
  return equal_lists(a->body, b->body) && equal_lists(a->orelse, b->orelse) && equal_lists(a->final, b->final);
}

bool equal_lists(const Stmts& a, const Stmts& b) {
  size_t i = 0, k = 0;
  for (;;) {
    while (i < a.size() && a[i]->kind == StmtKind::kNop) ++i;
    while (k < b.size() && b[k]->kind == StmtKind::kNop) ++k;
    if (i == a.size() || k == b.size()) return i == a.size() && k == b.size();
    if (!equal_stmt(a[i++], b[k++])) return false;
  }
}

// The line of the first thing behind the body of a try statement; 0: it is not known.
int32_t line_behind_body(const Stmt* stmt) {
  const auto line_of = [](const Instruction* in) { return in != nullptr ? in->position.line : 0; };
  for (const Handler& handler : stmt->handlers) {
    if (handler.type != nullptr) return line_of(handler.type->at);
    if (!handler.body.empty()) return line_of(handler.body[0]->at);
  }
  return stmt->final.empty() ? 0 : line_of(stmt->final[0]->at);
}

// What is left of `try:` belongs to the statement behind it; where several stand one in the other, so do several lines. Its place covers
// the whole statement.
bool keep_header(const Stmts& body, size_t index) {
  size_t next = index;
  while (next < body.size() && body[next]->kind == StmtKind::kNop) ++next;
  if (next == body.size()) return false;
  Stmt* stmt = body[next];
  const int32_t end = body[index]->at->position.end_line;
  const auto stands_around = [&] { return stmt->header != nullptr || (end > 0 && line_behind_body(stmt) > end); };
  while (stmt->kind == StmtKind::kTry && stands_around() && !stmt->body.empty()) stmt = stmt->body[0];
  if (stmt->kind != StmtKind::kTry || stmt->header != nullptr) return false;
  stmt->header = body[index]->at;
  return true;
}

bool ends_with_pass(const Stmts& body) {
  if (body.empty()) return false;
  const Stmt* last = body.back();
  if (last->kind == StmtKind::kIf) return ends_with_pass(last->orelse.empty() ? last->body : last->orelse);
  return last->kind == StmtKind::kPass;
}

}  // namespace

bool equal(const Expr* a, const Expr* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->kind != b->kind || a->op != b->op || a->text != b->text || a->ops != b->ops || !equal_items(a->items, b->items) ||
      a->clauses.size() != b->clauses.size()) {
    return false;
  }
  if (a->kind == ExprKind::kConst && !same_constant(a->object, b->object)) return false;
  if ((a->function == nullptr) != (b->function == nullptr)) return false;
  if (a->function != nullptr && a->function->code.instructions.size() != b->function->code.instructions.size()) return false;
  for (size_t i = 0; i < a->clauses.size(); ++i) {
    if (!equal(a->clauses[i].target, b->clauses[i].target) || !equal(a->clauses[i].iterable, b->clauses[i].iterable) ||
        !equal_items(a->clauses[i].conditions, b->clauses[i].conditions)) {
      return false;
    }
  }
  return true;
}

bool equal(const Stmts& a, size_t from, const Stmts& b) {
  for (size_t i = 0; i < b.size(); ++i) {
    if (from + i >= a.size() || !equal_stmt(a[from + i], b[i])) return false;
  }
  return true;
}

Structurer::Structurer(Session& session, Function& function, CodeKind kind, bool naming, Reading* reading)
    : session_(session),
      choices_(choices_of(session, function.code)),
      arena_(session.arena),
      function_(function),
      code_(function.code),
      kind_(kind),
      reading_(reading),
      naming_(naming),
      value_prefix_("_v") {
  const auto taken = [&](const std::vector<py::Ref>& names) {
    return std::any_of(names.begin(), names.end(), [&](const py::Ref& one) { return utf8(one.get()).rfind(value_prefix_, 0) == 0; });
  };
  while (naming && (taken(code_.names) || taken(code_.localsplus_names))) value_prefix_ += "v";
}

// 3.10 keeps an instruction without effect only where nothing else has its line: for `pass`, for what a false constant guards, and before
// what leaves a statement.
bool Structurer::is_old_pass(const Stmt* nop, const Stmt* next) const {
  if (code_.version != 310 || next == nullptr) return false;
  return decide(ChoiceKind::kPass, nop->at, likely_pass(nop, next));
}

// From 3.11 on what else leaves an instruction without effect is as good as a `pass`: a condition that is a constant, a statement of which
// nothing is left.
bool Structurer::is_new_pass(const Stmt* nop) const { return code_.version >= 311 && decide(ChoiceKind::kPass, nop->at, false); }

bool Structurer::likely_pass(const Stmt* nop, const Stmt* next) const {
  if (spans(nop->at, 6)) return false;
  const int block = flow_.block_of[at(static_cast<int>(nop->at - flow_.ins.data()))];
  if (flow_.blocks[at(block)].header) return false;
  switch (next->kind) {
    case StmtKind::kReturn:
    case StmtKind::kRaise:
    case StmtKind::kBreak:
    case StmtKind::kContinue:
    case StmtKind::kLeave:
    case StmtKind::kDropIterator:
      return false;
    default:
      return true;
  }
}

// From 3.11 on what is left of a jump has the place of what comes before it.
bool Structurer::has_place_of_another(const Instruction* nop) const { return code_.version >= 311 && flow_.taken.has(*nop); }

// Whether the end of a function has the place of a `pass`.
bool Structurer::is_last_pass(const Stmt* end) const {
  const auto index = static_cast<int>(end->at - flow_.ins.data());
  return code_.version >= 312 && flow_.end > 0 && index >= flow_.end && index <= flow_.end_last && spans(end->at, 4) &&
         (end->at - 1)->op == Op::NOP && (end->at - 1)->position.line < end->at->position.line;
}

// Turns marks into what stands in the source, drops what does not. `tail`: nothing but the end of the code object follows.
void Structurer::tidy(Stmts& body, bool tail, int32_t before) {
  DepthGuard guard(session_);
  Stmts out;
  for (size_t i = 0; i < body.size(); ++i) {
    Stmt* stmt = body[i];
    const bool last = tail && i + 1 == body.size();
    if (stmt->kind == StmtKind::kNop) {
      // The place of a constant that is returned behind what the return leaves.
      const StmtKind behind = i + 1 < body.size() ? body[i + 1]->kind : StmtKind::kPass;
      if (code_.version == 310 && (behind == StmtKind::kReturn || behind == StmtKind::kWhile) &&
          decide(ChoiceKind::kPass, stmt->at, false)) {
        stmt->kind = StmtKind::kPass;
        out.push_back(stmt);
        continue;
      }
      const bool pass = spans(stmt->at, 4) && !has_place_of_another(stmt->at);
      if (i + 1 < body.size() && body[i + 1]->kind == StmtKind::kReturn && !(pass && is_last_pass(body[i + 1])) && !is_new_pass(stmt)) {
        body[i + 1]->header = stmt->at;
        continue;
      }
      // The `True` of an endless loop.
      if (i + 1 < body.size() && body[i + 1]->kind == StmtKind::kWhile && body[i + 1]->value == nullptr) {
        body[i + 1]->header = stmt->at;
        continue;
      }
      if (pass || is_old_pass(stmt, i + 1 < body.size() ? body[i + 1] : nullptr)) {
        stmt->kind = StmtKind::kPass;
      } else if (spans(stmt->at, 3) && !has_place_of_another(stmt->at)) {
        stmt->kind = StmtKind::kExpression;
        stmt->value = constant(Py_Ellipsis, *stmt->at);
      } else if (keep_header(body, i)) {
        continue;
      } else if (guards_unreached_names(stmt)) {  // what is left of a condition that was a false constant
        out.push_back(stmt);
        continue;
      } else if (!is_new_pass(stmt)) {
        continue;
      } else {
        stmt->kind = StmtKind::kPass;
      }
    }
    if (stmt->kind == StmtKind::kRaise && stmt->cause == nullptr && stmt->value != nullptr) {
      const Expr* raised = stmt->value;
      const bool called = raised->kind == ExprKind::kCall && raised->items.size() == 2 && raised->items[0]->kind == ExprKind::kAssertion;
      if (called || raised->kind == ExprKind::kAssertion) {  // its condition was a false constant
        stmt->kind = StmtKind::kAssert;
        stmt->cause = called ? raised->items[1] : nullptr;
        stmt->value = constant(Py_False, *stmt->at);
      }
    }
    if (stmt->kind == StmtKind::kDelete && !out.empty() && out.back()->kind == StmtKind::kDelete && out.back()->at->position.line > 0 &&
        out.back()->at->position.line == stmt->at->position.line) {
      out.back()->targets.insert(out.back()->targets.end(), stmt->targets.begin(), stmt->targets.end());
      continue;
    }
    if (stmt->kind == StmtKind::kLeave) no_form("code leaves what it did not enter");
    if (stmt->kind == StmtKind::kDropIterator) {
      // A way out of a loop: the statement behind it says how.
      const Stmt* next = i + 1 < body.size() ? body[i + 1] : nullptr;
      for (size_t k = i + 1; next != nullptr && next->kind == StmtKind::kDropIterator; ++k)
        next = k + 1 < body.size() ? body[k + 1] : nullptr;
      if (next == nullptr || (next->kind != StmtKind::kReturn && next->kind != StmtKind::kBreak)) no_form("a loop left in an unknown way");
      continue;
    }
    // What a statement uses was evaluated behind the statements before it.
    int32_t first = INT32_MAX;
    for (const Expr* value : {stmt->value, stmt->cause}) {
      if (value != nullptr && value->last >= 0 && stmt->kind != StmtKind::kTypeAlias) first = std::min(first, value->first);
    }
    if (first < before) no_form("a value evaluated before a statement and used behind it");
    before = std::max(before, stmt->order);
    if (stmt->kind == StmtKind::kReturn && kind_ != CodeKind::kLambda) {
      if (is_none(stmt->value)) {
        const auto index = static_cast<int>(stmt->at - flow_.ins.data());
        const bool implied = flow_.end >= 0 && index >= flow_.end && index <= flow_.end_last;
        if (last && is_last_pass(stmt) && ends_with_pass(out)) {
          stmt->kind = StmtKind::kPass;
          stmt->value = nullptr;
          out.push_back(stmt);
          continue;
        }
        // Behind what ends a with statement only an instruction without effect has the place of `return`, or of its None.
        const Stmt* before_this = i > 0 ? body[i - 1] : nullptr;
        const bool placed = code_.version >= 311 && !implied && before_this != nullptr && before_this->kind == StmtKind::kNop &&
                            (spans(before_this->at, 6) || (spans(before_this->at, 4) && before_this->at->position.column % 4 == 3));
        if (last && !placed && (implied || (!spans(stmt->at, 6) && !spans(stmt->at, 4)))) continue;
        if (kind_ == CodeKind::kClass || kind_ == CodeKind::kModule) {
          if (last) continue;
          no_form("a return outside of a function");
        }
        constexpr int kAsyncGenerator = 0x200;  // returns no value
        if (implied || !spans(stmt->at, 4) || (code_.flags & kAsyncGenerator) != 0) stmt->value = nullptr;
      }
    }
    const bool inner_tail = last && stmt->kind != StmtKind::kWhile && stmt->kind != StmtKind::kFor;
    if (!stmt->body.empty() || stmt->kind == StmtKind::kIf)
      tidy(stmt->body, inner_tail && stmt->final.empty() && (stmt->orelse.empty() || stmt->kind == StmtKind::kIf), stmt->order);
    if (!stmt->orelse.empty()) tidy(stmt->orelse, last && stmt->final.empty(), stmt->order);
    if (!stmt->final.empty()) tidy(stmt->final, false, stmt->order);
    for (Handler& handler : stmt->handlers) tidy(handler.body, last && stmt->final.empty(), stmt->order);
    for (Case& one : stmt->cases) tidy(one.body, last, stmt->order);
    out.push_back(stmt);
  }
  body = std::move(out);
}

// A generator whose every `yield` is dead code has none left, but was one.
void Structurer::keep_generator(Stmts& body) {
  constexpr int kGenerator = 0x20, kAsyncGenerator = 0x200;
  if (code_.version < 311 || (code_.flags & (kGenerator | kAsyncGenerator)) == 0) return;
  const bool async = (code_.flags & kAsyncGenerator) != 0;
  for (const Instruction& in : flow_.ins) {
    if (in.op == Op::YIELD_VALUE || (!async && (in.op == Op::YIELD_FROM || in.op == Op::SEND))) return;
  }
  static const Instruction kNowhere;
  if (body.empty() || (body.back()->kind != StmtKind::kReturn && body.back()->kind != StmtKind::kRaise)) {
    Stmt* leaves = arena_.stmt(StmtKind::kReturn);
    leaves->at = &kNowhere;
    body.push_back(leaves);
  }
  Stmt* made = arena_.stmt(StmtKind::kExpression);
  made->at = &kNowhere;
  made->value = make(ExprKind::kYield, kNowhere);
  body.push_back(made);
}

void Structurer::finish(Stmts& body) {
  settle_matches(body);
  find_unreached_names();
  tidy(body, true, 0);
  find_annotated_items(body);
  find_annotated_attributes(body);
  if (code_.version >= 311) {
    find_else_clauses(body);
    place_branches(body, false);
  }
  if (kind_ == CodeKind::kFunction) keep_generator(body);
  if (naming_) settle_names(body);
  if (kind_ == CodeKind::kFunction && !code_.consts.empty() && PyUnicode_Check(code_.consts[0].get())) {
    function_.docstring = code_.consts[0].get();
  }
  if (kind_ == CodeKind::kClass || kind_ == CodeKind::kModule) {
    Stmts out;
    size_t i = 0;
    if (kind_ == CodeKind::kClass && i < body.size() && stores_name(body[i], "__module__") && body[i]->value->kind == ExprKind::kName &&
        body[i]->value->text == "__name__") {
      ++i;
      if (i < body.size() && stores_name(body[i], "__qualname__") && body[i]->value->kind == ExprKind::kConst) ++i;
      if (code_.version >= 313 && i < body.size() && stores_name(body[i], "__firstlineno__")) ++i;
      if (i < body.size() && stores_name(body[i], "__type_params__") && body[i]->value->kind == ExprKind::kName &&
          body[i]->value->text == ".type_params") {
        ++i;
      }
      if (i < body.size() && stores_name(body[i], "__classdict__") && body[i]->value->kind == ExprKind::kOther) ++i;
    }
    if (i < body.size() && stores_name(body[i], "__doc__") && body[i]->value->kind == ExprKind::kConst &&
        PyUnicode_Check(body[i]->value->object)) {
      function_.docstring = body[i]->value->object;
      ++i;
    }
    for (; i < body.size(); ++i) {
      Stmt* stmt = body[i];
      if (stores_name(stmt, "__classdictcell__") && (stmt->value->kind == ExprKind::kClosure || stmt->value->text == "__classdict__")) {
        continue;
      }
      if (kind_ == CodeKind::kClass && code_.version >= 313 && i + 2 >= body.size() && stores_name(stmt, "__static_attributes__")) continue;
      if (kind_ == CodeKind::kClass && i + 1 == body.size()) {
        // return __class__'s cell, which it stores for type.__new__.
        if (stmt->kind == StmtKind::kReturn && stmt->value != nullptr &&
            (stmt->value->kind == ExprKind::kClosure ||
             (stmt->value->kind == ExprKind::kNamed && stmt->value->items[0]->text == "__classcell__"))) {
          continue;
        }
      }
      out.push_back(stmt);
    }
    body = std::move(out);
  }
  declare_names();
  add_unreached_names(&body);
  add_unreached_yield(&body);
  function_.body = std::move(body);
}

// A generator whose only `yield` is never reached, so that nothing of it is left.
void Structurer::add_unreached_yield(Stmts* body) {
  constexpr int kGenerator = 0x20, kAsyncGenerator = 0x200;
  if (kind_ != CodeKind::kFunction || code_.version > 310 || (code_.flags & (kGenerator | kAsyncGenerator)) == 0) return;
  // Also one that nothing reaches may be among the statements, behind one that leaves.
  const bool async = (code_.flags & kAsyncGenerator) != 0;
  for (const Instruction& in : flow_.ins) {
    if (in.op != Op::YIELD_VALUE && (async || in.op != Op::YIELD_FROM)) continue;
    const int index = static_cast<int>(&in - flow_.ins.data());
    if (flow_.blocks[at(flow_.block_of[at(index)])].reachable || kept_unreached_.count(index) != 0) return;
  }
  if (body->empty() || body->back()->kind != StmtKind::kReturn) body->push_back(arena_.stmt(StmtKind::kReturn));
  Stmt* made = arena_.stmt(StmtKind::kExpression);
  made->value = arena_.expr(ExprKind::kYield);
  body->push_back(made);
}

// A free variable that nothing in the code names is one only because it is declared.
void Structurer::add_unused_free() {
  if (kind_ != CodeKind::kFunction) return;
  std::vector<uint8_t> used(code_.localsplus_names.size());
  const bytecode::Tables& tables = *bytecode::tables(code_.version);
  for (const Instruction& in : flow_.ins) {
    const bool closes = code_.version >= 313 && in.op == Op::LOAD_FAST;  // what was LOAD_CLOSURE
    if ((closes || (tables.info(in.op).flags & bytecode::kHasFree) != 0) && in.arg < used.size()) used[in.arg] = 1;
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] != 0 || code_.localsplus_kinds[i] != bytecode::LocalKind::kFree) continue;
    const std::string text = local_at(static_cast<uint32_t>(i));
    if (text != "__class__") nonlocals_.push_back(text);
  }
}

void Structurer::declare_names() {
  const auto declare = [&](std::vector<std::string>& names, StmtKind kind, Stmts* out) {
    std::set<std::string> seen;
    Stmt* made = nullptr;
    for (const std::string& one : names) {
      if (!seen.insert(one).second) continue;
      if (made == nullptr) {
        made = arena_.stmt(kind);
        out->push_back(made);
      }
      made->names.push_back({one, ""});
    }
  };
  add_unused_free();
  Stmts declared;
  declare(globals_, StmtKind::kGlobal, &declared);
  declare(nonlocals_, StmtKind::kNonlocal, &declared);
  function_.declarations = std::move(declared);
}

void Structurer::run() {
  flow_ = build_flow(code_, choices_);
  function_.name = utf8(code_.name.get());
  function_.qualname = utf8(code_.qualname.get());
  function_.kind = static_cast<uint8_t>(kind_);
  edges_.assign(flow_.blocks.size(), 0);
  for (size_t b = 0; b < flow_.blocks.size(); ++b) edges_[b] = flow_.blocks[b].in_edges;
  barrier_.assign(flow_.blocks.size(), 0);
  placed_.assign(flow_.blocks.size(), 0);
  guarded_.resize(flow_.regions.size());
  region_of_handler_.assign(flow_.blocks.size(), -1);
  for (size_t b = 0; b < flow_.blocks.size(); ++b) {
    if (flow_.blocks[b].region >= 0 && flow_.blocks[b].reachable) guarded_[at(flow_.blocks[b].region)].push_back(static_cast<int>(b));
  }
  for (size_t r = 0; r < flow_.regions.size(); ++r) region_of_handler_[at(flow_.regions[r].handler)] = static_cast<int>(r);
  for (const Instruction& in : flow_.ins) {
    if (in.op == Op::BEFORE_WITH || in.op == Op::BEFORE_ASYNC_WITH)
      with_places_.insert({in.position.line, in.position.column, in.position.end_column});
  }
  constexpr int kCoroutine = 0x80, kAsyncGenerator = 0x200;
  function_.is_async = (code_.flags & (kCoroutine | kAsyncGenerator)) != 0;
  if (kind_ == CodeKind::kFunction || kind_ == CodeKind::kLambda) signature();
  bool falls = false;
  // Reaching the end without `return` is falling off the end of the body.
  const int end = flow_.end >= 0 ? flow_.block_of[at(flow_.end)] : -1;
  Stmts body = sequence(0, {}, end > 0 ? end : -1, -1, &falls);
  if (kind_ == CodeKind::kComprehension) {
    Stmts loops;
    for (Stmt* stmt : body) {
      if (stmt->kind == StmtKind::kReturn || stmt->kind == StmtKind::kNop) continue;
      loops.push_back(stmt);
    }
    body = std::move(loops);
    tidy(body, false, 0);
    declare_names();
    function_.body = std::move(body);
    return;
  }
  if (is_type_scope(function_.name)) {
    function_.body = std::move(body);
    return;
  }
  if (kind_ == CodeKind::kLambda) {
    Stmts rest;
    for (Stmt* stmt : body) {
      if (stmt->kind != StmtKind::kNop) rest.push_back(stmt);
    }
    function_.result = lambda_result(rest);
    return;
  }
  finish(body);
}

// A lambda has one value; branches that return each their own are a conditional expression.
Expr* Structurer::lambda_result(const Stmts& body) {
  DepthGuard guard(session_);
  constexpr int kGenerator = 0x20;
  if (body.size() == 2 && (code_.flags & kGenerator) != 0 && body[0]->kind == StmtKind::kExpression && is_none(body[1]->value))
    return body[0]->value;
  if (body.empty()) no_form("a lambda without a value");
  if (body[0]->kind == StmtKind::kReturn) return body[0]->value;
  if (body[0]->kind != StmtKind::kIf) no_form("a lambda with statements");
  Expr* made = arena_.expr(ExprKind::kConditional);
  made->at = body[0]->at;
  Stmts otherwise = body[0]->orelse;
  if (otherwise.empty()) otherwise.assign(body.begin() + 1, body.end());
  made->items = {body[0]->value, lambda_result(body[0]->body), lambda_result(otherwise)};
  return made;
}

CodeChoices choices_of(Session& session, const bytecode::Code& code) {
  if (!code.name) return {session.choices, ""};
  return {session.choices, utf8(code.name.get()) + ":" + std::to_string(code.firstlineno)};
}

}  // namespace pellucid::decompile
