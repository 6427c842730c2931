// try and with statements, made of the regions that handlers guard. Compilers copy a finally block, the call that ends a with statement
// and the end of a handler onto every way out; here the copies are recognised behind the marks that leaving a region makes, and go.
#include <algorithm>

#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

Stmts without_nops(const Stmts& body) {
  Stmts out;
  for (Stmt* stmt : body) {
    if (stmt->kind != StmtKind::kNop) out.push_back(stmt);
  }
  return out;
}

// Of two places in the source, whether the first one begins before the second one.
bool before(const bytecode::Position& a, const bytecode::Position& b) { return a.line != b.line ? a.line < b.line : a.column < b.column; }

bool covers(const bytecode::Position& outer, const bytecode::Position& inner) {
  const bool ends = inner.line != outer.end_line ? inner.line < outer.end_line : inner.column < outer.end_column;
  return !before(inner, outer) && ends;
}

}  // namespace

// Where a block stands deeper in the tree of regions than `from`: the outermost region it enters.
int Structurer::entered_region(int from, int block) const {
  int region = flow_.blocks[at(block)].region;
  if (region < 0 || flow_.within(from, region)) return -1;
  while (!flow_.within(from, flow_.regions[at(region)].parent)) region = flow_.regions[at(region)].parent;
  return region;
}

bool Structurer::leaves_finally(int from, int block) const {
  const int to = flow_.blocks[at(block)].region;
  for (int region = from; region != to && region >= 0; region = flow_.regions[at(region)].parent) {
    if (flow_.regions[at(region)].kind == RegionKind::kFinally) return true;
  }
  return false;
}

void Structurer::mark_leaving(int from, int block, const Exprs& stack, Stmts* out) {
  const int to = flow_.blocks[at(block)].region;
  if (!flow_.blocks[at(block)].reachable) return;  // what guards it is not known
  if (from < 0 || from == to || !flow_.within(from, to)) return;
  for (int region = from; region != to && region >= 0; region = flow_.regions[at(region)].parent) {
    if (flow_.regions[at(region)].kind != RegionKind::kFinally) continue;
    Stmt* mark = arena_.stmt(StmtKind::kLeave);
    mark->text = "finally";
    mark->number = region;
    mark->order = clock_;
    // What is to be returned; a finally block that leaves itself drops it.
    if (static_cast<int>(stack.size()) == flow_.regions[at(region)].depth + 1 && !is_frame(stack.back())) mark->value = stack.back();
    out->push_back(mark);
  }
}

// Ordinary edges from inside of a region to outside of it.
std::vector<std::pair<int, int>> Structurer::leaving_edges(int region, int entry) {
  std::vector<std::pair<int, int>> edges;
  std::vector<int> pending{entry};
  seen_.reset(flow_.blocks.size());
  seen_.add(entry);
  const auto go = [&](int s) {
    if (seen_.add(s)) pending.push_back(s);
  };
  while (!pending.empty()) {
    const int b = pending.back();
    pending.pop_back();
    const Block& block = flow_.blocks[at(b)];
    for (int s : {block.fall, block.jump}) {
      if (s < 0) continue;
      if (flow_.within(flow_.blocks[at(s)].region, region)) {
        go(s);
      } else {
        edges.push_back({b, s});
      }
    }
    if (block.region >= 0 && block.region != region && flow_.within(block.region, region)) go(flow_.regions[at(block.region)].handler);
  }
  return edges;
}

// No statement but the one at hand goes on at a block, nor on the way to the one it only jumps to.
void Structurer::bar(int block, int by) {
  for (size_t steps = 0; steps <= flow_.blocks.size(); ++steps) {
    barrier_[at(block)] += by;
    if (!flow_.only_jumps(block)) return;
    block = flow_.blocks[at(block)].fall;
  }
}

// A block that only returns or raises.
bool Structurer::is_exit(int block) const {
  const Block& b = flow_.blocks[at(block)];
  return b.fall < 0 && b.jump < 0;
}

// Whether an instruction has the place of a with statement that it leaves, not its own.
bool Structurer::leaves_with(int index) const {
  const Op op = flow_.ins[at(index)].op;
  if (op != Op::LOAD_CONST && op != Op::CALL && op != Op::POP_TOP && op != Op::RETURN_CONST && op != Op::RETURN_VALUE) return false;
  const bytecode::Position& p = flow_.ins[at(index)].position;
  return with_places_.count({p.line, p.column, p.end_column}) != 0;
}

// The column at which the first statement of a block begins, as far as positions tell; -1 where they don't.
int Structurer::statement_column(int block, bool behind_jump) const {
  const Block& b = flow_.blocks[at(block)];
  int line = -1, column = -1;
  for (int i = b.start; i < b.end; ++i) {
    const bytecode::Position& p = flow_.ins[at(i)].position;
    if (p.line <= 0 || p.column < 0 || (behind_jump && flow_.ins[at(i)].op == Op::NOP)) continue;
    if (leaves_with(i)) continue;
    // Of `return 4` only the constant's place is left, of `return` its own.
    const bool constant = flow_.ins[at(i)].op == Op::RETURN_CONST &&
                          !(p.line == p.end_line && p.end_column - p.column == 6 && code_.consts.at(flow_.ins[at(i)].arg).get() == Py_None);
    const int at_column = constant ? p.column - 7 : p.column;
    if (line < 0 || p.line < line || (p.line == line && at_column < column)) column = at_column;
    line = line < 0 ? p.line : std::min(line, p.line);
  }
  return column;
}

// The places of a statement's except clauses, which from 3.11 on the test for each one has.
std::vector<bytecode::Position> Structurer::clause_places(int region) const {
  std::vector<bytecode::Position> places;
  if (code_.version < 311) return places;
  const auto n = static_cast<int>(flow_.ins.size());
  int i = flow_.blocks[at(flow_.regions[at(region)].handler)].start;
  while (i >= 0 && i < n) {
    while (i < n && (flow_.ins[at(i)].op == Op::NOP || flow_.ins[at(i)].op == Op::PUSH_EXC_INFO)) ++i;
    if (i >= n || flow_.ins[at(i)].op == Op::RERAISE) break;
    bool last = flow_.ins[at(i)].op == Op::POP_TOP;  // `except:`
    while (!last && i < n && flow_.ins[at(i)].op != Op::CHECK_EXC_MATCH) ++i;
    if (i >= n || flow_.ins[at(i)].position.line <= 0 || flow_.ins[at(i)].position.column < 0) break;
    if (!places.empty() && !before(places.back(), flow_.ins[at(i)].position)) break;
    places.push_back(flow_.ins[at(i)].position);
    if (last) break;
    i = i + 1 < n ? flow_.ins[at(i + 1)].target : -1;
  }
  return places;
}

// Where the code from a block on stands; null where that is not known: what ends handlers, jumps, what has no effect, and the end of a
// function without `return` have the places of what comes before them.
const bytecode::Position* Structurer::place_of(int block) const {
  block = flow_.resolve(block);
  if (flow_.end >= 0 && block == flow_.block_of[at(flow_.end)]) return nullptr;
  const int end = flow_.blocks[at(block)].end;
  for (int i = flow_.blocks[at(block)].start; i < end; ++i) {
    const Instruction& in = flow_.ins[at(i)];
    if (in.op == Op::POP_EXCEPT || in.op == Op::JUMP_ABSOLUTE || in.op == Op::NOP) continue;
    if (in.op == Op::LOAD_CONST && i + 2 < end && flow_.ins[at(i + 2)].op == Op::DELETE_FAST) {  // unbinds the name of a handler
      i += 2;
      continue;
    }
    if (in.op == Op::LOAD_CONST && i + 1 < end) continue;  // text that `%` was made of has none
    const bytecode::Position& p = in.position;
    return p.line > 0 && p.column >= 0 ? &p : nullptr;
  }
  return nullptr;
}

// The block at which execution goes on when the code that `region` guards ends normally: it stands behind all of that code.
int Structurer::normal_end(int region, int block, size_t depth) {
  if (flow_.regions[at(region)].shared) {
    const int known = flow_.regions[at(region)].end;
    return known >= 0 && flow_.blocks[at(known)].reachable ? known : -1;
  }
  const bool with = flow_.regions[at(region)].kind == RegionKind::kWith;
  if (code_.version < 310 || (code_.version == 310 && with)) return old_end(region, block, depth);
  int last = block, end = -1;
  const bool cold = flow_.blocks[at(block)].cold;
  const std::vector<std::pair<int, int>> edges = leaving_edges(region, block);
  for (const auto& [from, to] : edges) {
    if (flow_.blocks[at(from)].cold == cold || !flow_.blocks[at(from)].cold) last = std::max(last, from);
  }
  std::vector<int> others;
  for (const auto& [from, to] : edges) {
    (void)from;
    if (flow_.blocks[at(to)].depth != static_cast<int>(depth)) continue;
    others.push_back(to);
    if (to <= last) continue;
    // In 3.10 the copy of the finally block right in front of the handler is the one where the body ends.
    const bool later = code_.version == 310 && to < flow_.regions[at(region)].handler && end >= 0 && to > end;
    if (end < 0 || to < end || later) end = to;
  }
  std::sort(others.begin(), others.end());
  others.push_back(-1);
  return choose_block(end, others);
}

// Up to 3.10: whether a statement begins by taking the iterator of a loop off the stack, which leaves the loop.
bool Structurer::drops_iterator(int block) const {
  if (code_.version >= 311) return false;
  const Block& b = flow_.blocks[at(block)];
  int i = b.start;
  while (i + 1 < b.end && flow_.ins[at(i)].op == Op::NOP) ++i;
  return flow_.ins[at(i)].op == Op::POP_TOP && !b.handler;
}

int Structurer::make_try(int region, int block, Exprs* stack, Stmts* out, int next, bool* falls) {
  switch (flow_.regions[at(region)].kind) {
    case RegionKind::kExcept:
      return make_except(region, block, stack, out, next, falls);
    case RegionKind::kFinally:
      return make_finally(region, block, stack, out, next, falls);
    case RegionKind::kWith:
      return make_with(region, block, stack, out, next, falls);
    default:
      no_form("code guarded in an unknown way");
  }
}

int Structurer::make_with(int region, int block, Exprs* stack, Stmts* out, int next, bool* falls) {
  if (stack->size() < 2 || (*stack)[stack->size() - 1]->kind != ExprKind::kWithEnter ||
      (*stack)[stack->size() - 2]->kind != ExprKind::kWithExit) {
    no_form("a with statement entered in the middle");
  }
  const Region& r = flow_.regions[at(region)];
  Expr* enter = stack->back();
  Exprs base(stack->begin(), stack->end() - 2);
  Exprs inside(stack->begin(), stack->end() - 1);
  Stmt* made = arena_.stmt(StmtKind::kWith);
  made->at = enter->at;
  made->order = ++clock_;
  made->number = enter->number;
  made->is_async = enter->op != 0;
  made->withs = {{enter->value, nullptr}};
  int after = r.after_with;
  if (after >= 0 && !flow_.blocks[at(after)].reachable) after = -1;
  int end = normal_end(region, block, inside.size());
  // What follows the statement is where execution goes on when it swallowed an exception. Where nothing else leads there, its normal end
  // leaves otherwise: it returns, or goes on with a loop.
  const auto meets = [&] {
    if (flow_.blocks[at(after)].in_edges >= 2) return true;
    if (code_.version < 311) return false;
    const int behind = flow_.resolve(after), on = flow_.blocks[at(end)].fall;
    return on >= 0 && flow_.blocks[at(end)].jump < 0 && flow_.resolve(on) == behind && !flow_.blocks[at(behind)].header;
  };
  const bool likely = end >= 0 && (after < 0 || meets());
  const bool ends = likely != (end >= 0 && choose(2) != 0);
  if (!ends) end = -1;
  std::vector<int> barriers;
  if (end >= 0) barriers.push_back(end);
  if (after >= 0) barriers.push_back(after);
  for (int b : barriers) bar(b, 1);
  bool ends_here = false;
  made->body = sequence(block, *stack, end >= 0 ? end : after >= 0 ? after : -1, region, &ends_here);
  for (int b : barriers) bar(b, -1);
  Stmts body = without_nops(made->body);
  if (!body.empty() && body[0]->kind == StmtKind::kAssign && body[0]->value == enter && body[0]->targets.size() == 1) {
    made->withs[0].target = body[0]->targets[0];
    made->body.erase(std::find(made->body.begin(), made->body.end(), body[0]));
  }
  strip_with(made->body, made->number);
  out->push_back(made);
  (void)next;
  (void)falls;
  if (end >= 0) {
    *stack = inside;
    return end;
  }
  *stack = base;
  return after;
}

// 3.11 writes an else clause in front of the handlers, and what follows the statement behind them: the first block there that the else
// clause leads to.
int Structurer::behind_handlers(int otherwise, int handler) const {
  int found = -1;
  for (int from = otherwise; from < handler; ++from) {
    const Block& block = flow_.blocks[at(from)];
    if (block.cold) continue;
    for (const int to : {block.fall, block.jump}) {
      if (to < handler || (found >= 0 && to >= found)) continue;
      const Block& reached = flow_.blocks[at(to)];
      if (!reached.reachable || reached.handler || reached.cold) continue;
      int up = from;
      while (up > otherwise && flow_.blocks[at(up)].idom >= 0) up = flow_.blocks[at(up)].idom;
      if (up == otherwise) found = to;
    }
  }
  return found;
}

int Structurer::make_except(int region, int block, Exprs* stack, Stmts* out, int next, bool* falls) {
  const Region& r = flow_.regions[at(region)];
  const int outer = flow_.regions[at(region)].parent;
  const int own = flow_.blocks[at(r.handler)].region;
  if (own < 0 || flow_.regions[at(own)].kind != RegionKind::kCleanup) no_form("a handler that nothing cleans up behind");
  const auto depth = static_cast<int>(stack->size());
  const int behind = next >= 0 ? flow_.resolve(next) : -1;

  // Where the body and the handlers lead.
  // A `break` or `continue` behind the statement, to which its body and its handlers lead.
  const auto stands_behind = [&](int to) {
    const Block& b = flow_.blocks[at(to)];
    const bytecode::Position& p = flow_.ins[at(b.start)].position;
    if (code_.version < 312 || !flow_.only_jumps(to) || b.end - b.start != 1 || p.line <= 0 || p.line != p.end_line) return false;
    if (p.end_column - p.column != 5 && p.end_column - p.column != 8) return false;
    const auto cold = [&](int from) { return flow_.blocks[at(from)].cold != b.cold; };
    return std::any_of(b.preds.begin(), b.preds.end(), cold) && !std::all_of(b.preds.begin(), b.preds.end(), cold);
  };
  const auto is_loop_target = [&](int from, int to) {
    if (loops_.empty()) return false;
    const int target = flow_.resolve(to);
    if (drops_iterator(target)) return true;
    if (target == loops_.back().header && continues(from, to, -1)) return true;
    return target != behind &&
           (target == loops_.back().header || (loops_.back().follow >= 0 && target == flow_.resolve(loops_.back().follow)));
  };
  const std::vector<bytecode::Position> clauses = clause_places(region);
  // `continue`, `break` or the constant of a `return` in a handler, which leaves a with or finally statement around it on its way.
  const auto leaves_around = [&](int end) {
    const bytecode::Position& p = flow_.ins[at(end)].position;
    const int width = p.end_column - p.column;
    if (code_.version < 312 || outer < 0 || p.line <= 0 || p.line != p.end_line) return false;
    constexpr int kReturn = 7;  // `return `
    const bool returned = std::any_of(clauses.begin(), clauses.end(), [&](const bytecode::Position& clause) {
      return covers(clause, p) && p.column - kReturn > clause.column;
    });
    const bool jumps = (width == 8 || width == 5) && !loops_.empty() && outer != flow_.blocks[at(loops_.back().header)].region;
    if (!returned && !jumps) return false;
    if (!decide(jumps ? ChoiceKind::kJump : ChoiceKind::kReturn, &flow_.ins[at(end)], true)) return false;
    const bytecode::Position& q = flow_.ins[at(end) - 1].position;  // without a place of its own it has the one of what comes before it
    return p.line != q.line || p.column != q.column || p.end_column != q.end_column;
  };
  // The first such jump on the way that begins at `to`.
  const auto led_behind = [&](int to) {
    for (size_t steps = 0; !loops_.empty() && steps < flow_.blocks.size() && flow_.only_jumps(to);
         ++steps, to = flow_.blocks[at(to)].fall) {
      if (stands_behind(to)) return to;
    }
    return -1;
  };
  std::vector<int> from_body, from_handlers, leaving;
  int last_line = 0;
  int jump_behind = -1;  // a `break` or `continue` that follows the statement
  for (const auto& [from, to] : leaving_edges(region, block)) {
    if (flow_.blocks[at(to)].depth != depth) continue;
    const int jump = led_behind(to);
    if (jump >= 0 || !is_loop_target(from, to)) {
      from_body.push_back(jump >= 0 ? jump : to);
    } else if (code_.version == 311 && from < r.handler) {
      const int over = to < r.handler && flow_.only_jumps(to) ? flow_.blocks[at(to)].fall : to;  // over the handlers
      if (over > r.handler && flow_.only_jumps(over)) jump_behind = over;
    }
  }
  // Where what is around is left, too, the place of a constant that is returned is kept by the end of the handler only.
  std::set<int> returned;
  const auto returns_constant = [&](const Instruction& before_end, const Instruction& end, int target) {
    const bytecode::Position &p = before_end.position, &q = end.position;
    if (code_.version < 311 || q.line <= 0 || q.line != q.end_line || (p.line == q.line && p.column == q.column)) return false;
    if (q.end_column - q.column == 4 && q.column % 4 != 3) return false;  // a `pass`
    const int last = flow_.blocks[at(target)].end - 1;
    const Op op = flow_.ins[at(last)].op;
    return is_exit(target) && (op == Op::RETURN_CONST || (op == Op::RETURN_VALUE && flow_.ins[at(last - 1)].op == Op::LOAD_CONST));
  };
  for (const auto& [from, to] : leaving_edges(own, r.handler)) {
    last_line = std::max(last_line, flow_.ins[at(flow_.blocks[at(from)].end - 1)].position.line);
    int target = to, source = from;
    const Block& b = flow_.blocks[at(to)];
    int i = b.start;
    while (i + 1 < b.end && flow_.ins[at(i)].op == Op::NOP) ++i;
    if (flow_.ins[at(i)].op == Op::POP_EXCEPT && b.fall >= 0) {
      target = b.fall;
      source = to;
      if (leaves_around(i)) {
        leaving.push_back(target);
        continue;
      }
      if (returns_constant(*last_in(from), flow_.ins[at(i)], target)) returned.insert(target);
    }
    const int jump = led_behind(target);
    if (jump >= 0) target = jump;
    if (flow_.blocks[at(target)].depth == depth && (jump >= 0 || !is_loop_target(source, target))) from_handlers.push_back(target);
  }
  // What the statement's place says: code that leaves from inside of it stands further to the right.
  const Instruction* placed = out->empty() || out->back()->kind != StmtKind::kNop ? nullptr : out->back()->at;
  int around = outer;  // what the end of a handler leaves is not around its statements
  while (around >= 0 && flow_.regions[at(around)].kind != RegionKind::kExcept && flow_.regions[at(around)].kind != RegionKind::kFinally &&
         flow_.regions[at(around)].kind != RegionKind::kWith) {
    around = flow_.regions[at(around)].parent;
  }
  const auto exits_alone = [&](int to, bool handler) {
    if (handler && returned.count(to) != 0) return true;
    const bool inside = flow_.within(flow_.blocks[at(flow_.resolve(to))].region, around);  // does not leave what is around, too
    if (const bytecode::Position* p = clauses.empty() || !inside ? nullptr : place_of(to); p != nullptr) {
      if (!handler) return before(*p, clauses[0]);
      return std::any_of(clauses.begin(), clauses.end(), [&](const bytecode::Position& clause) { return covers(clause, *p); });
    }
    int last = to;
    for (size_t steps = 0; !is_exit(last) && steps < flow_.blocks.size(); ++steps) {  // also behind the end of a handler around it
      const Block& b = flow_.blocks[at(last)];
      if (b.in_edges > 1 || b.jump >= 0 || b.fall < 0 || b.header) return false;
      for (int i = b.start; i < b.end; ++i) {
        const Op op = flow_.ins[at(i)].op;
        if (op != Op::POP_EXCEPT && op != Op::LOAD_CONST && op != Op::STORE_FAST && op != Op::DELETE_FAST && op != Op::NOP) return false;
      }
      last = b.fall;
    }
    if (!is_exit(last) || flow_.blocks[at(last)].in_edges > 1) return false;
    const bool implied = flow_.end >= 0 && last == flow_.block_of[at(flow_.end)];
    const int column = implied ? -1 : statement_column(last);
    // What is raised, or returned and no constant, is evaluated before a handler ends; up to 3.10 no columns say more.
    if (const int end = flow_.blocks[at(last)].end; handler && code_.version <= 310 && !implied) {
      const bool constant = flow_.ins[at(end - 1)].op == Op::RETURN_VALUE && end > 1 && flow_.ins[at(end - 2)].op == Op::LOAD_CONST;
      if (!constant) return false;
    }
    if (handler) return placed == nullptr || placed->position.column < 0 || column < 0 || column > placed->position.column;
    return flow_.ins[at(flow_.blocks[at(last)].end - 1)].position.line <= last_line;
  };
  const auto reaches_next = [&](int to) { return behind >= 0 && flow_.resolve(to) == behind; };
  // What leaves the statement around other than by its end. In 3.10 what follows a statement may have been copied to where it returns.
  const auto returns = [&](int to) {
    for (size_t steps = 0; to >= 0 && steps < flow_.blocks.size(); ++steps, to = flow_.blocks[at(to)].fall) {
      if (is_exit(to)) return true;
      if (flow_.blocks[at(to)].jump >= 0 || flow_.blocks[at(to)].header) return false;
    }
    return false;
  };
  const auto goes_elsewhere = [&](int to) {
    return code_.version <= 311 && around >= 0 && behind >= 0 && flow_.regions[at(around)].kind != RegionKind::kExcept &&
           !flow_.within(flow_.blocks[at(to)].region, around) && !reaches_next(to) && (code_.version != 310 || !returns(to));
  };
  int follow = -1, normal = -1;
  const bool exact = code_.version < 310;  // dead code tells: see old_else.cpp
  bool to_next = false, handlers_to_next = false;
  for (int to : from_handlers) {
    if (reaches_next(to)) {
      to_next = handlers_to_next = true;
    } else if (!goes_elsewhere(to) && !exits_alone(to, true) &&
               (follow < 0 || flow_.blocks[at(to)].order > flow_.blocks[at(follow)].order)) {
      follow = to;
    }
  }
  for (int to : from_body) {
    if (reaches_next(to)) {
      to_next = true;
    } else if (!exact && to != follow && !goes_elsewhere(to) && !exits_alone(to, false) && (normal < 0 || to > normal)) {
      normal = to;
    }
  }
  if (exact) find_else(region, follow >= 0 ? follow : handlers_to_next ? next : -1, &normal, &follow);
  // Up to 3.11 handlers stand between an else clause and what follows the statement.
  const bool has_else = exact || (code_.version <= 311 && normal >= 0 && flow_.resolve(normal) < r.handler);
  if (follow < 0 && !handlers_to_next && has_else && code_.version == 311) follow = behind_handlers(normal, r.handler);
  if (follow < 0 && !handlers_to_next && normal >= 0 && !has_else) {
    follow = normal;
    normal = -1;
  } else if (follow < 0 && to_next) {
    follow = next;
  }
  if (normal >= 0 && follow >= 0 && flow_.resolve(normal) == flow_.resolve(follow)) normal = -1;
  if (follow < 0 && normal < 0 && !handlers_to_next && jump_behind >= 0) follow = jump_behind;
  if (!exact) {
    std::vector<int> ends = from_handlers;
    ends.insert(ends.end(), from_body.begin(), from_body.end());
    ends.insert(ends.end(), leaving.begin(), leaving.end());
    if (next >= 0) ends.push_back(next);
    ends.push_back(-1);
    const int chosen = choose_block(follow, ends);
    if (chosen != follow) normal = -1;
    follow = chosen;
    ends = from_body;
    ends.push_back(-1);
    normal = choose_block(normal, ends);
    if (normal >= 0 && follow >= 0 && flow_.resolve(normal) == flow_.resolve(follow)) normal = -1;
  }

  Stmt* made = arena_.stmt(StmtKind::kTry);
  made->at = &flow_.ins[at(flow_.blocks[at(block)].start)];
  made->order = ++clock_;
  std::vector<int> barriers;
  for (int b : {follow, normal}) {
    if (b >= 0) barriers.push_back(b);
  }
  for (int b : barriers) bar(b, 1);
  bool body_falls = false, handler_falls = false, else_falls = false;
  made->body = sequence(block, *stack, normal >= 0 ? normal : follow, region, &body_falls);
  if (normal < 0 && code_.version < 311) move_to_else(made, region);

  if (r.depth > depth) no_form("a handler deeper than what it guards");
  Exprs handler_stack(stack->begin(), stack->begin() + r.depth);
  if (r.lasti) handler_stack.push_back(make(ExprKind::kException, *made->at));
  handler_stack.push_back(make(ExprKind::kException, *made->at));
  int clause = r.handler;
  Exprs clause_stack = handler_stack;
  if (r.is_star) {
    star_clauses(made, clause, clause_stack, own);
    clause = -1;
  }
  while (clause >= 0) {
    const Block& b = flow_.blocks[at(clause)];
    int i = b.start;
    while (i < b.end && (flow_.ins[at(i)].op == Op::NOP || flow_.ins[at(i)].op == Op::PUSH_EXC_INFO)) ++i;
    if (i < b.end && flow_.ins[at(i)].op == Op::RERAISE) {
      placed_[at(clause)] = 1;
      break;
    }
    Handler handler;
    if (i < b.end && flow_.ins[at(i)].op == Op::POP_TOP) {
      handler.body = sequence(clause, clause_stack, follow, own, &handler_falls);
      clause = -1;
    } else {
      Node* node = node_at(clause, clause_stack);
      if (node->end != End::kCondition || node->test->kind != ExprKind::kExceptionMatch || !without_nops(node->stmts).empty()) {
        no_form("an except clause of an unknown form");
      }
      handler.type = node->test->items[0];
      clause_stack = node->stack;
      handler.body = sequence(node->fall, node->stack, follow, own, &handler_falls);
      clause = node->jump;
    }
    for (size_t k = 0; k < handler.body.size(); ++k) {
      Stmt* first = handler.body[k];
      if (first->kind == StmtKind::kNop) continue;
      if (first->kind == StmtKind::kAssign && first->value->kind == ExprKind::kException && first->targets.size() == 1 &&
          first->targets[0]->kind == ExprKind::kName) {
        handler.name = first->targets[0]->text;
        erase(handler.body, k, 1);
      }
      break;
    }
    strip_handler(handler.body, !handler.name.empty());
    made->handlers.push_back(std::move(handler));
  }
  if (normal >= 0) {
    bar(normal, -1);
    made->orelse = sequence(normal, *stack, follow >= 0 ? follow : next, outer, &else_falls);
    bar(normal, 1);
    if (follow < 0 && else_falls) *falls = true;
  }
  for (int b : barriers) bar(b, -1);
  out->push_back(made);
  if (made->orelse.size() > 0 && normal < 0) move_behind(made, region, out);
  if (follow == next && (body_falls || handler_falls || else_falls)) *falls = true;
  return follow == next ? (next >= 0 ? next : -1) : follow;
}

// except*: each clause takes its part of the group; what is left is raised behind the last one.
void Structurer::star_clauses(Stmt* made, int clause, Exprs stack, int own) {
  made->is_star = true;
  for (;;) {
    const Block& b = flow_.blocks[at(clause)];
    if (flow_.ins[at(b.start)].op == Op::LIST_APPEND) return;
    Node* node = node_at(clause, stack);
    if (node->end != End::kCondition || node->test->kind != ExprKind::kExceptionMatch || !without_nops(node->stmts).empty()) {
      no_form("an except* clause of an unknown form");
    }
    Handler handler;
    handler.type = node->test->items[0];
    const int next = flow_.blocks[at(node->jump)].fall;
    if (next < 0) no_form("an except* clause of an unknown form");
    bool falls = false;
    ++barrier_[at(next)];
    handler.body = sequence(node->fall, node->stack, next, own, &falls);
    --barrier_[at(next)];
    for (size_t k = 0; k < handler.body.size(); ++k) {
      Stmt* first = handler.body[k];
      if (first->kind == StmtKind::kNop) continue;
      if (first->kind == StmtKind::kAssign && first->value->kind == ExprKind::kExceptionMatch && first->targets.size() == 1 &&
          first->targets[0]->kind == ExprKind::kName) {
        handler.name = first->targets[0]->text;
        erase(handler.body, k, 1);
      }
      break;
    }
    if (!handler.name.empty() && falls) {
      if (handler.body.size() < 2 || handler.body.back()->kind != StmtKind::kDelete) no_form("a handler whose name stays bound");
      handler.body.resize(handler.body.size() - 2);
    }
    stack = node->stack;
    stack.pop_back();
    made->handlers.push_back(std::move(handler));
    clause = next;
  }
}

int Structurer::make_finally(int region, int block, Exprs* stack, Stmts* out, int next, bool* falls) {
  const Region& r = flow_.regions[at(region)];
  const int own = flow_.blocks[at(r.handler)].region;
  if (own < 0 || flow_.regions[at(own)].kind != RegionKind::kCleanup) no_form("a handler that nothing cleans up behind");
  if (r.depth > static_cast<int>(stack->size())) no_form("a handler deeper than what it guards");
  Stmt* made = arena_.stmt(StmtKind::kTry);
  made->at = &flow_.ins[at(flow_.blocks[at(block)].start)];
  made->order = ++clock_;
  int end = normal_end(region, block, stack->size());
  if (end >= 0 && !r.shared && is_exit(end)) {  // `return` of a constant at the end of the body, or behind the statement
    const int line = flow_.ins[at(flow_.blocks[at(end)].end - 1)].position.line;
    const int final_line = flow_.ins[at(flow_.blocks[at(r.handler)].end - 1)].position.line;
    const bool likely = line >= 0 && line < final_line && flow_.blocks[at(end)].in_edges == 1;
    if (decide(ChoiceKind::kEndsInside, &flow_.ins[at(flow_.blocks[at(end)].start)], likely)) end = -1;
  }
  if (end >= 0) bar(end, 1);
  bool ends_here = false, ignored = false;
  made->body = sequence(block, *stack, end, region, &ends_here);
  if (end >= 0) bar(end, -1);
  Exprs handler_stack(stack->begin(), stack->begin() + r.depth);
  if (r.lasti) handler_stack.push_back(make(ExprKind::kException, *made->at));
  handler_stack.push_back(make(ExprKind::kException, *made->at));
  made->final = sequence(r.handler, handler_stack, -1, own, &ignored);
  strip_handler(made->final, false);
  strip_finally(made->body, region, r.shared ? Stmts{} : made->final);
  out->push_back(made);
  if (end >= 0) {
    Stmt* mark = arena_.stmt(StmtKind::kLeave);
    mark->text = "after finally";
    mark->number = region;
    out->push_back(mark);
  }
  (void)next;
  (void)falls;
  return end;
}

// The end of a handler on each way out: POP_EXCEPT, and for `as name` the name unbound.
void Structurer::strip_handler(Stmts& body, bool named) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (!is_leave(body[i], "except")) {
      each_list(body[i], [&](Stmts& inner) { strip_handler(inner, named); });
      continue;
    }
    size_t count = 1;
    if (named) {
      if (i + 2 >= body.size() || body[i + 1]->kind != StmtKind::kAssign || body[i + 2]->kind != StmtKind::kDelete) {
        no_form("a handler whose name stays bound");
      }
      count = 3;
    }
    erase(body, i, count);
    return;
  }
}

void Structurer::strip_with(Stmts& body, int number) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (is_leave(body[i], "with") && body[i]->number == number) {
      erase(body, i, 1);
      return;
    }
    each_list(body[i], [&](Stmts& inner) { strip_with(inner, number); });
  }
}

}  // namespace pellucid::decompile
