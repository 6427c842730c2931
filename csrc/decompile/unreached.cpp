// Statements that nothing reaches, which stay in the code up to 3.9, and what only such code named. From 3.10 on compilers drop such code
// but keep its names among those of the code object; here a statement with these names is put where the source may have had one: behind a
// statement that leaves, in the else clause of a try statement whose body never ends, or behind the end of a function. Where it stood is
// one of the choices of the search (see choices.h).
#include <algorithm>

#include "bytecode/tables.h"
#include "decompile/canonical.h"
#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {

// The last instruction that nothing reaches of what ends a finally block of 3.8 that always leaves; what follows the statement stands
// behind it. -1: there is none.
int Structurer::unreached_end(int region) const {
  if (!flow_.regions[static_cast<size_t>(region)].shared || flow_.regions[static_cast<size_t>(region)].kind != RegionKind::kFinally)
    return -1;
  const int handler = flow_.regions[static_cast<size_t>(region)].handler;
  const auto n = static_cast<int>(flow_.ins.size());
  const int end = flow_.blocks[static_cast<size_t>(flow_.last_dominated[static_cast<size_t>(handler)])].end;
  if (end + 1 >= n || flow_.ins[static_cast<size_t>(end)].op != Op::RERAISE || flow_.ins[static_cast<size_t>(end) + 1].op != Op::POP_TOP ||
      flow_.blocks[static_cast<size_t>(flow_.block_of[static_cast<size_t>(end)])].reachable) {
    return -1;
  }
  return end + 1;
}

// Up to 3.9 statements that nothing reaches stay in the code. Those behind `i`, which leaves, as far as they are simple ones, unless what
// compilers add begins there. `stack`: what lies below statements there.
Stmts Structurer::unreached_statements(int i, const Exprs& stack) {
  if (code_.version >= 310 || kind_ == CodeKind::kComprehension || kind_ == CodeKind::kLambda || i < 0) return {};
  const int n = static_cast<int>(flow_.ins.size());
  const auto in = [&](int k) -> const Instruction& { return flow_.ins[static_cast<size_t>(k)]; };
  const auto returns_none = [&](int k) {
    return k + 1 < n && in(k).op == Op::LOAD_CONST && in(k + 1).op == Op::RETURN_VALUE && in(k).arg < code_.consts.size() &&
           code_.consts[in(k).arg].get() == Py_None;
  };
  const auto goes_on = [&](int k) {  // nothing was left out in front of it
    return k < n && in(k).offset >= 0 && in(k).offset == in(k - 1).offset + 2 && in(k).target < 0 && in(k).op != Op::RERAISE &&
           in(k).op != Op::POP_EXCEPT && in(k).op != Op::END_FINALLY && in(k).op != Op::PUSH_EXC_INFO && in(k).op != Op::BEFORE_WITH &&
           !flow_.blocks[static_cast<size_t>(flow_.block_of[static_cast<size_t>(k)])].reachable;
  };
  // Where code is reached up to `i` the jump is likely to be what a branch that ends there would go on to.
  const auto breaks = [&](int k) {
    return !flow_.blocks[static_cast<size_t>(flow_.block_of[static_cast<size_t>(i)])].reachable && !loops_.empty() &&
           loops_.back().follow >= 0 && in(k).op == Op::JUMP_ABSOLUTE && in(k).offset == in(k - 1).offset + 2 &&
           !flow_.blocks[static_cast<size_t>(flow_.block_of[static_cast<size_t>(k)])].reachable &&
           flow_.block_of[static_cast<size_t>(in(k).target)] == loops_.back().follow;
  };
  Node node;
  node.stack = stack;
  size_t complete = 0;
  bool ended = false;
  try {
    for (int k = i + 1; (goes_on(k) || breaks(k)) && !ended; ++k) {
      const int dropped = in(k).op == Op::POP_TOP && node.stack.size() == stack.size() && k + 1 < n ? k + 1 : k;  // a loop's iterator
      if (node.stack.size() == stack.size() && breaks(dropped)) {
        Stmt* made = arena_.stmt(StmtKind::kBreak);
        made->at = &in(dropped);
        node.stmts.push_back(made);
        complete = node.stmts.size();
        break;
      }
      if (node.stack.size() == stack.size() && returns_none(k) && (k + 2 >= n || in(k + 2).offset < 0)) break;  // the end of the code
      execute(node, k);
      ended = in(k).op == Op::RETURN_VALUE || in(k).op == Op::RAISE_VARARGS;
      if (node.stack.size() < stack.size() && !ended) return {};
      if (node.stack.size() == stack.size() || ended) complete = node.stmts.size();
    }
  } catch (const NoForm&) {  // what comes of it is not needed
  }
  if (complete != 0) {
    for (int k = i + 1; k < n && &in(k) <= node.stmts[complete - 1]->at; ++k) kept_unreached_.insert(k);
  }
  node.stmts.resize(std::min(complete, node.stmts.size()));
  return node.stmts;
}

// 3.12 and later: by instruction, whether it belongs to an inlined comprehension and binds a variable of that, not of the code around.
std::vector<uint8_t> Structurer::stores_of_comprehensions() const {
  const std::vector<Instruction>& ins = code_.instructions;
  std::vector<uint8_t> found(ins.size());
  std::set<uint32_t> saved;
  for (const Instruction& in : ins) {
    if (in.op == Op::LOAD_FAST_AND_CLEAR) saved.insert(in.arg);
  }
  if (saved.empty()) return found;
  const auto mark = [&](size_t i) {
    const Op op = ins[i].op;
    if ((op == Op::STORE_FAST || op == Op::LOAD_FAST || op == Op::LOAD_FAST_AND_CLEAR) && saved.count(ins[i].arg) != 0) found[i] = 1;
  };
  for (const bytecode::ExceptionRow& row : code_.rows) {
    if (ins[static_cast<size_t>(row.target)].op != Op::SWAP) continue;  // restores variables and raises again
    size_t first = static_cast<size_t>(row.start), end = static_cast<size_t>(row.end);
    while (first > 0 && (ins[first - 1].op == Op::LOAD_FAST_AND_CLEAR || ins[first - 1].op == Op::SWAP)) mark(--first);
    for (size_t i = static_cast<size_t>(row.start); i < end; ++i) mark(i);
    while (end < ins.size() && (ins[end].op == Op::SWAP || ins[end].op == Op::POP_TOP)) ++end;
    for (size_t count = row.start - first; end < ins.size() && ins[end].op == Op::STORE_FAST && count > 0; --count) mark(end++);
    for (size_t i = static_cast<size_t>(row.target); i < ins.size() && ins[i].op != Op::RERAISE; ++i) mark(i);
  }
  return found;
}

void Structurer::find_unreached_names() {
  if (kind_ == CodeKind::kComprehension || kind_ == CodeKind::kLambda) return;
  std::vector<uint8_t> named(code_.names.size()), used(code_.localsplus_names.size()), bound(used.size()), inside(used.size());
  const bytecode::Tables& tables = *bytecode::tables(code_.version);
  const std::vector<uint8_t> isolated = stores_of_comprehensions();
  for (const Instruction& in : code_.instructions) {
    const int flags = tables.info(in.op).flags;
    if ((flags & bytecode::kHasName) != 0) {
      const uint32_t index = name_index(code_, in);
      if (index < named.size()) named[index] = 1;
    }
    if ((flags & (bytecode::kHasLocal | bytecode::kHasFree)) != 0 && in.arg < used.size()) {
      if (isolated[static_cast<size_t>(&in - code_.instructions.data())] != 0) {
        inside[in.arg] = 1;
        continue;
      }
      used[in.arg] = 1;
      const bool loads = in.op == Op::LOAD_FAST_CHECK || (in.op == Op::LOAD_FAST && code_.version < 312);
      if (!loads) bound[in.arg] = 1;
    }
  }
  for (size_t i = 0; i < named.size(); ++i) {
    if (named[i] == 0) unreached_names_.push_back(utf8(code_.names[i].get()));
  }
  for (size_t i = static_cast<size_t>(code_.n_arguments()); i < used.size() && kind_ == CodeKind::kFunction; ++i) {
    if (bound[i] != 0 || (inside[i] != 0 && used[i] == 0) || code_.localsplus_kinds[i] != bytecode::LocalKind::kLocal) continue;
    unreached_locals_.push_back(local_at(static_cast<uint32_t>(i)));
    needs_unreached_ |= used[i] != 0;  // it is local only because something binds it
  }
  find_unreached_cells();
}

// Variables in cells that nothing closes over: functions that nothing reaches did.
void Structurer::find_unreached_cells() {
  if (kind_ != CodeKind::kFunction) return;
  std::vector<uint8_t> closed(code_.localsplus_names.size()), bound(closed.size());
  for (const Instruction& in : code_.instructions) {
    if (in.arg >= closed.size()) continue;
    if (in.op == Op::LOAD_CLOSURE || (code_.version >= 313 && in.op == Op::LOAD_FAST)) closed[in.arg] = 1;
    if (in.op == Op::STORE_DEREF || in.op == Op::DELETE_DEREF) bound[in.arg] = 1;
  }
  for (size_t i = 0; i < closed.size(); ++i) {
    const bytecode::LocalKind kind = code_.localsplus_kinds[i];
    if (closed[i] != 0 || (kind != bytecode::LocalKind::kCell && kind != bytecode::LocalKind::kLocalCell)) continue;
    const std::string text = local_at(static_cast<uint32_t>(i));
    size_t named = 0;  // the variable of an inlined comprehension may have the name of another one
    for (size_t k = 0; k < closed.size(); ++k) named += local_at(static_cast<uint32_t>(k)) == text ? 1 : 0;
    if (named > 1) continue;
    unreached_cells_.push_back(text);
    if (kind == bytecode::LocalKind::kCell && bound[i] == 0) unreached_locals_.push_back(unreached_cells_.back());
    needs_unreached_ = true;
  }
}

// The statement goes to `out` if `about` is where it is to stand.
void Structurer::add_unreached_names(ChoiceKind kind, const Instruction* about, Stmts* out) {
  if (about < flow_.ins.data() || about >= flow_.ins.data() + flow_.ins.size() ||
      !decide(kind, about, kind == ChoiceKind::kUnreachedEnd && needs_unreached_)) {
    return;
  }
  static const Instruction kNowhere;
  if (!unreached_locals_.empty()) {
    Stmt* made = arena_.stmt(StmtKind::kAssign);
    made->at = &kNowhere;
    made->value = constant(Py_None, kNowhere);
    for (const std::string& text : unreached_locals_) made->targets.push_back(name(text, kNowhere));
    out->push_back(made);
  }
  if (!unreached_cells_.empty()) {
    Stmt* made = arena_.stmt(StmtKind::kExpression);
    made->at = &kNowhere;
    made->value = make(ExprKind::kFunction, kNowhere);
    made->value->function = arena_.function();
    Expr* result = name(unreached_cells_[0], kNowhere);
    if (unreached_cells_.size() > 1) {
      result = make(ExprKind::kTuple, kNowhere);
      for (const std::string& text : unreached_cells_) result->items.push_back(name(text, kNowhere));
    }
    made->value->function->result = result;
    out->push_back(made);
  }
  if (!unreached_names_.empty()) {
    Expr* value = constant(Py_None, kNowhere);
    for (const std::string& text : unreached_names_) {  // as attributes no name gets another meaning
      Expr* made = make(ExprKind::kAttribute, kNowhere);
      made->items = {value};
      made->text = text;
      value = made;
    }
    Stmt* made = arena_.stmt(StmtKind::kExpression);
    made->at = &kNowhere;
    made->value = value;
    out->push_back(made);
  }
}

// Makes `if False:` with these names of an instruction without effect, if that is where they stood.
bool Structurer::guards_unreached_names(Stmt* nop) {
  if (code_.version < 310 || (unreached_names_.empty() && unreached_locals_.empty() && unreached_cells_.empty())) return false;
  Stmts body;
  add_unreached_names(ChoiceKind::kUnreachedIf, nop->at, &body);
  if (body.empty()) return false;
  nop->kind = StmtKind::kIf;
  nop->value = constant(Py_False, *nop->at);
  nop->body = std::move(body);
  return true;
}

void Structurer::place_unreached_names(Stmts& body) {
  for (Stmt* stmt : body) {
    place_unreached_names(stmt->body);
    for (Handler& handler : stmt->handlers) place_unreached_names(handler.body);
    if (stmt->kind == StmtKind::kTry && !stmt->handlers.empty() && stmt->orelse.empty() && stmt->at != nullptr) {
      add_unreached_names(ChoiceKind::kUnreachedElse, stmt->at, &stmt->orelse);
    } else {
      place_unreached_names(stmt->orelse);
    }
    place_unreached_names(stmt->final);
    for (Case& one : stmt->cases) place_unreached_names(one.body);
  }
  if (!body.empty() && leaves(body.back()) && body.back()->at != nullptr) {
    add_unreached_names(ChoiceKind::kUnreached, body.back()->at, &body);
  }
}

// Names that are used nowhere, put somewhere into the body of the code object.
void Structurer::add_unreached_names(Stmts* body) {
  if (unreached_names_.empty() && unreached_locals_.empty() && unreached_cells_.empty()) return;
  place_unreached_names(*body);
  if (kind_ != CodeKind::kFunction) return;
  static const Instruction kNowhere;
  Stmts behind;
  add_unreached_names(ChoiceKind::kUnreachedEnd, &flow_.ins.back(), &behind);
  if (behind.empty()) return;
  if (code_.version < 310 && unreached_names_.empty() && !unreached_cells_.empty()) {  // leaves nothing there, no names either
    Stmt* made = arena_.stmt(StmtKind::kIf);
    made->at = &kNowhere;
    made->value = constant(Py_False, kNowhere);
    made->body = std::move(behind);
    body->push_back(made);
    return;
  }
  const bool ends = !body->empty() && (leaves(body->back()) || (body->back()->kind == StmtKind::kWhile && body->back()->value == nullptr));
  if (!ends) {
    Stmt* made = arena_.stmt(StmtKind::kReturn);
    made->at = &kNowhere;
    body->push_back(made);
  }
  body->insert(body->end(), behind.begin(), behind.end());
}

}  // namespace pellucid::decompile
