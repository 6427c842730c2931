// Sequences of nodes and the statements that conditions and loops make of them. What follows a branch is the block where its arms meet,
// what follows a loop the block that its exits lead to; it is placed once, behind the statement.
#include <algorithm>
#include <map>

#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

const Stmt* last_of(const Stmts& stmts) {
  for (size_t i = stmts.size(); i-- > 0;) {
    if (stmts[i]->kind != StmtKind::kNop && stmts[i]->kind != StmtKind::kLeave) return stmts[i];
  }
  return nullptr;
}

bool only_nops(const Stmts& stmts) {
  return std::all_of(stmts.begin(), stmts.end(), [](const Stmt* stmt) { return stmt->kind == StmtKind::kNop; });
}

// `raise AssertionError` as assert makes it. 3.8 has no instruction of its own for the name; there it stands behind the jump that passes.
const Stmt* failed_assertion(const Stmts& body, int version) {
  const Stmt* found = nullptr;
  for (const Stmt* stmt : body) {
    if (stmt->kind == StmtKind::kNop) continue;
    if (found != nullptr) return nullptr;
    found = stmt;
  }
  if (found == nullptr || found->kind != StmtKind::kRaise || found->value == nullptr || found->cause != nullptr) return nullptr;
  const Expr* value = found->value;
  const auto is_assertion = [&](const Expr* expr) {
    if (expr->kind == ExprKind::kAssertion) return true;
    return version == 308 && expr->kind == ExprKind::kName && expr->text == "AssertionError" && expr->at->op == Op::LOAD_GLOBAL &&
           (expr->at - 1)->op == Op::POP_JUMP_IF_TRUE;
  };
  if (is_assertion(value)) return found;
  const bool called = value->kind == ExprKind::kCall && value->items.size() == 2 && value->items[1]->kind != ExprKind::kKeyword &&
                      value->items[1]->kind != ExprKind::kStarred;
  return called && is_assertion(value->items[0]) ? found : nullptr;
}

}  // namespace

// Whether going to `to` leaves the sequence: by reaching what follows it, or by the next round or the end of the loop around it.
bool Structurer::leave(int to, const Instruction* jump_at, const Instruction* about, int next, Stmts* out, bool* falls) {
  const int target = flow_.resolve(to);
  const int behind = next >= 0 ? flow_.resolve(next) : -1;
  const auto add = [&](StmtKind kind) {
    Stmt* made = arena_.stmt(kind);
    made->at = jump_at;
    made->order = ++clock_;
    made->explicit_jump = true;
    out->push_back(made);
  };
  const Instruction* jump = explicit_jump(to, jump_at, next);
  if (!loops_.empty()) {
    const Loop& loop = loops_.back();
    const bool may_stand = kind_ != CodeKind::kComprehension && inlining_ == 0;  // there is no `continue` in a comprehension
    if (target == loop.header && (target != behind || (may_stand && decide(ChoiceKind::kContinue, about, spans(jump, 8))))) {
      add(StmtKind::kContinue);
      return true;
    }
    if (loop.follow >= 0 && target == flow_.resolve(loop.follow) && target != behind) {
      add(StmtKind::kBreak);
      return true;
    }
  }
  if (to == next || (behind >= 0 && target == behind)) {
    *falls = true;
    return true;
  }
  if (flow_.end >= 0 && barrier_[at(target)] != 0 && target == flow_.block_of[at(flow_.end)]) {  // a `return` without a place of its own
    add(StmtKind::kReturn);
    return true;
  }
  return false;
}

// The jump on the way to `to` that may stand in the source as `break` or `continue`.
const Instruction* Structurer::explicit_jump(int to, const Instruction* jump, int next) const {
  const int target = flow_.resolve(to);
  // A jump without a place of its own has the one of what comes before it.
  const auto own = [&](const Instruction* in) {
    if (in == nullptr || in == flow_.ins.data()) return in != nullptr;
    const bytecode::Position &p = in->position, &q = (in - 1)->position;
    return p.line != q.line || p.column != q.column || p.end_column != q.end_column;
  };
  if (!own(jump)) jump = nullptr;
  for (int b = to; !spans(jump, 8) && !spans(jump, 5) && b != target && b != next; b = flow_.blocks[at(b)].fall) {
    for (int i = flow_.blocks[at(b)].start; i < flow_.blocks[at(b)].end; ++i) {
      if (flow_.ins[at(i)].position.line >= 0) jump = &flow_.ins[at(i)];
    }
  }
  return jump;
}

bool Structurer::continues(int from, int to, int next) const {
  const Instruction& last = flow_.ins[at(flow_.blocks[at(from)].end - 1)];
  return spans(explicit_jump(to, last.op == Op::JUMP_ABSOLUTE ? &last : nullptr, next), 8);
}

Stmts Structurer::sequence(int block, Exprs stack, int next, int region, bool* falls) {
  DepthGuard guard(session_);
  Stmts out;
  const Instruction *jump_at = nullptr, *about = block < 0 ? nullptr : &flow_.ins[at(flow_.blocks[at(block)].start)];
  bool first = true;
  while (block >= 0) {
    if (leave(block, jump_at, about, next, &out, falls)) {
      if (jump_at != nullptr && !out.empty() && (out.back()->kind == StmtKind::kContinue || out.back()->kind == StmtKind::kBreak)) {
        add_unreached(static_cast<int>(jump_at - flow_.ins.data()), stack, &out);
      }
      break;
    }
    const Block& b = flow_.blocks[at(block)];
    if (barrier_[at(block)] != 0) no_form("a jump to code that follows an outer statement");
    jump_at = nullptr;
    if (const int entered = entered_region(region, block); entered >= 0) {
      first = false;
      if (flow_.regions[at(entered)].kind == RegionKind::kNameCleanup || flow_.regions[at(entered)].kind == RegionKind::kComprehension ||
          flow_.regions[at(entered)].kind == RegionKind::kStarClause) {
        region = entered;  // nothing of its own stands in the source
        continue;
      }
      block = make_try(entered, block, &stack, &out, next, falls);
      const int handlers = flow_.last_dominated[at(flow_.regions[at(entered)].handler)];
      if (block < 0 && last_in(handlers)->op == Op::RERAISE) add_unreached(flow_.blocks[at(handlers)].end - 1, stack, &out);
      if (block < 0) add_unreached(unreached_end(entered), stack, &out);
      continue;
    }
    mark_leaving(region, block, stack, &out);
    if (b.header && cached_.find(block) == cached_.end()) {
      region = b.region;
      block = make_loop(block, &stack, &out, next, falls);
      first = false;
      continue;
    }
    if (!first && placed_[at(block)] != 0 && cached_.find(block) == cached_.end()) no_form("code reached in two ways");
    first = false;
    Node* node = node_at(block, stack);
    out.insert(out.end(), node->stmts.begin(), node->stmts.end());
    region = flow_.blocks[at(node->last)].region;
    stack = node->stack;
    about = last_in(node->last);
    if (node->end == End::kStop) {
      if (last_in(node->last)->op == Op::END_FINALLY) {
        const auto ends = [&](const Region& r) { return r.shared && r.end >= node->first && r.end <= node->last; };
        const auto found = std::find_if(flow_.regions.begin(), flow_.regions.end(), ends);
        if (found != flow_.regions.end()) add_unreached(unreached_end(static_cast<int>(found - flow_.regions.begin())), stack, &out);
      } else if (last_in(node->last)->op != Op::RERAISE) {
        add_unreached(flow_.blocks[at(node->last)].end - 1, stack, &out);
      }
      break;
    }
    if (node->end == End::kGo) {
      block = node->to;
      jump_at = node->jump_at;
    } else {
      block = make_if(*node, &out, next, falls);
      stack = node->stack;
    }
  }
  settle(out);
  return out;
}

// The block where the branches behind the node meet again: the one they dominate without it being part of a single branch.
int Structurer::merge_of(const Node& node, int next, std::vector<int>* others) const {
  int best = -1;
  const int behind = next >= 0 ? flow_.resolve(next) : -1;
  for (int b : node.blocks) {
    for (int c : flow_.blocks[at(b)].dominated) {
      const Block& candidate = flow_.blocks[at(c)];
      if (candidate.handler || barrier_[at(c)] != 0 || placed_[at(c)] != 0 || c == next) continue;
      // Also the code of handlers leads to what follows their statement, which is not where the branches meet.
      if (flow_.resolve(c) == behind && !spans(explicit_jump(c, nullptr, next), 8)) continue;
      const int forward = edges_[at(c)] - static_cast<int>(candidate.back_edges.size());
      if (forward < 2) continue;
      others->push_back(c);
      if (best < 0 || candidate.order > flow_.blocks[at(best)].order) best = c;
    }
  }
  return best;
}

// Where only one branch of two goes on, it jumps over the other one to what follows.
int Structurer::behind_else(const Node& node) const {
  const int last = node.jump - 1;
  if (last < 0 || node.jump <= node.fall) return -1;
  const bool dead = dead_jump_before(node.jump) >= 0;
  if (!dead && !flow_.blocks[at(last)].reachable) return -1;
  const Block& b = flow_.blocks[at(last)];
  if (b.fall <= node.jump || b.jump >= 0 || flow_.ins[at(b.end - 1)].op != Op::JUMP_ABSOLUTE) return -1;
  const int to = b.fall;
  if (barrier_[at(to)] != 0 || placed_[at(to)] != 0 || flow_.blocks[at(to)].handler || (!dead && flow_.only_jumps(last))) return -1;
  if (!flow_.blocks[at(to)].reachable) return -1;
  if (flow_.blocks[at(to)].region != flow_.blocks[at(node.last)].region) return -1;
  if (flow_.end >= 0 && to == flow_.block_of[at(flow_.end)]) return -1;
  for (int up = to; up >= 0; up = flow_.blocks[at(up)].idom) {
    if (up == node.fall || (dead && up == node.jump)) return to;
    if (flow_.blocks[at(up)].order <= flow_.blocks[at(node.last)].order) return -1;
  }
  return -1;
}

int Structurer::make_if(Node& node, Stmts* out, int next, bool* falls) {
  if (node.keep) no_form("a value that stays on the stack in one branch only");
  if (node.test->kind == ExprKind::kExceptionMatch) no_form("a test for an exception outside of a handler");
  const int region = flow_.blocks[at(node.last)].region;
  std::vector<int> others;
  int merge = merge_of(node, next, &others);
  if (merge < 0) merge = behind_else(node);
  others.push_back(-1);
  merge = choose_block(merge, others);
  const int behind = merge >= 0 ? merge : next;
  if (merge >= 0) ++barrier_[at(merge)];
  Stmt* made = arena_.stmt(StmtKind::kIf);
  made->value = node.test;
  made->at = node.test->at;
  made->order = node.test->first == INT32_MAX ? 0 : node.test->first;
  bool then_falls = false, else_falls = false;
  const int jump = node.jump;
  const Instruction* about = last_in(node.last);
  const Exprs stack = node.stack;
  made->body = sequence(node.fall, stack, behind, region, &then_falls);
  // Up to 3.9 a condition inside jumps to the loop past the `continue` behind it.
  if (const Stmt* last = last_of(made->body); code_.version < 310 && last != nullptr && last->kind == StmtKind::kContinue)
    then_falls = false;
  int follow = merge;
  const bool is_case = case_test(node) != nullptr;
  const Stmt* leaves = last_of(made->body);
  if (!is_case && leaves != nullptr && leaves->kind == StmtKind::kBreak && leaves == made->body.back() && merge < 0 &&
      loops_.back().follow >= 0 && flow_.resolve(jump) == flow_.resolve(loops_.back().follow) && made->body.size() > 1) {
    // `break` behind both branches, of which one has been led past it.
    const Instruction* jump_at = leaves->at;
    const bool likely = code_.version < 310 && jump_at != nullptr && jump_at->op == Op::JUMP_ABSOLUTE &&
                        jump == flow_.block_of[at(jump_at->target)] &&
                        (flow_.blocks[at(flow_.block_of[at(static_cast<int>(jump_at - flow_.ins.data()))]) + 1].reachable);
    if (decide(ChoiceKind::kBehind, about, likely)) {
      made->body.pop_back();
      out->push_back(made);
      return jump;
    }
  }
  const bool plain = code_.version == 308 && has_old_else(jump);  // an assertion has no else clause
  if (const Stmt* failed = is_case || plain ? nullptr : failed_assertion(made->body, code_.version); failed != nullptr) {
    made->kind = StmtKind::kAssert;
    made->value = negate(node.test, node.test->at);
    made->body.clear();
    if (failed->value->kind == ExprKind::kCall) made->cause = failed->value->items[1];
    if (merge >= 0) {
      --barrier_[at(merge)];
      if (jump != merge) no_form("an assertion that goes on elsewhere");
    }
    out->push_back(made);
    return jump;
  }
  if (is_case && behind >= 0 && keep_default(node, jump, behind, &made->orelse)) {
    leave(jump, nullptr, about, behind, &made->orelse, &else_falls);
  } else if (behind >= 0 && (jump == behind || flow_.resolve(jump) == flow_.resolve(behind))) {
    // No else, unless there stands a `continue`.
    Stmts otherwise;
    const bool loops = !loops_.empty() && flow_.resolve(jump) == loops_.back().header && flow_.resolve(jump) == flow_.resolve(behind);
    if (loops && !is_case && kind_ != CodeKind::kComprehension && inlining_ == 0 &&
        decide(ChoiceKind::kBehind, about, stands_before_continue(node, made->body))) {
      if (merge >= 0) --barrier_[at(merge)];
      out->push_back(made);
      Stmt* back = arena_.stmt(StmtKind::kContinue);
      back->order = ++clock_;
      back->explicit_jump = true;
      out->push_back(back);
      return -1;
    }
    leave(jump, nullptr, about, behind, &otherwise, &else_falls);
    made->orelse = std::move(otherwise);
    if (made->orelse.empty() && !is_case && decide(ChoiceKind::kEmptyElse, about, has_empty_else(jump))) {
      made->orelse.push_back(arena_.stmt(StmtKind::kPass));
    }
  } else if (merge < 0 && !then_falls && !decide(ChoiceKind::kElse, about, has_old_else(jump))) {
    follow = jump;
  } else {
    made->orelse = sequence(jump, stack, behind, region, &else_falls);
  }
  if (code_.version < 310 && !is_case) made->value = constant_test(made->value, !only_nops(made->body) || !made->orelse.empty());
  if (is_case) make_case(made, follow == jump && merge < 0 && !then_falls);
  out->push_back(made);
  if (merge >= 0) {
    --barrier_[at(merge)];
    drop_subject(node, merge);
    return merge;
  }
  if (then_falls || else_falls) *falls = true;
  return follow == jump ? jump : -1;
}

// Blocks outside of the loop that its code leads to. Inside is what can come back to the header, what stands before the last jump back,
// and what holds more on the stack than the loop itself does.
std::vector<int> Structurer::loop_exits(int header, bool iterates, int exit) {
  const Block& head = flow_.blocks[at(header)];
  inside_.reset(flow_.blocks.size());
  inside_.add(header);
  std::vector<int> pending, members{header};
  const auto add = [&](int b) {
    if (flow_.blocks[at(b)].reachable && flow_.blocks[at(b)].order >= head.order && inside_.add(b)) {
      members.push_back(b);
      pending.push_back(b);
    }
  };
  for (int source : head.back_edges) add(source);
  while (!pending.empty()) {
    const int b = pending.back();
    pending.pop_back();
    for (int p : flow_.blocks[at(b)].preds) add(p);
    if (const int region = region_of_handler_[at(b)]; region >= 0) {
      for (int guarded : guarded_[at(region)]) add(guarded);
    }
  }
  int last = header;
  for (int b : members) {
    if (flow_.blocks[at(b)].cold == head.cold) last = std::max(last, b);
  }
  last = std::max(last, head.dead_back);
  // 3.10 writes an exit that stands behind the loop over the jump to it. Its line tells: code of the loop follows that has a lower one.
  std::map<int, int> lowest_behind;  // by block of the loop: the lowest line from there on
  if (code_.version == 310) {
    std::sort(members.begin(), members.end());
    int lowest = INT32_MAX;
    for (size_t k = members.size(); k-- > 0;) {
      const int line = flow_.ins[at(flow_.blocks[at(members[k])].start)].position.line;
      if (line > flow_.ins[at(head.start)].position.line) lowest = std::min(lowest, line);
      lowest_behind[members[k]] = lowest;
    }
  }
  // From 3.11 on its column does: it stands further to the left than the statements of the loop.
  int inner_column = INT32_MAX;
  for (size_t k = 0; k < members.size() && code_.version >= 311; ++k) {
    const Block& member = flow_.blocks[at(members[k])];
    for (int i = member.start; i < member.end; ++i) {
      const bytecode::Position& p = flow_.ins[at(i)].position;
      if (p.line > flow_.ins[at(head.start)].position.line && p.column >= 0) inner_column = std::min(inner_column, p.column);
    }
  }
  const auto stands_behind = [&](int s) {
    if (code_.version >= 311) {
      const Block& b = flow_.blocks[at(s)];
      const bool to_end = flow_.end >= 0 && b.jump < 0 && b.fall >= 0 && flow_.resolve(b.fall) == flow_.block_of[at(flow_.end)];
      if (!is_exit(s) && !to_end) return false;
      if (flow_.blocks[at(s)].region != head.region) return false;  // it begins with what leaves a statement
      const int column = statement_column(s, true);
      return column >= 0 && inner_column != INT32_MAX && column < inner_column;
    }
    if (code_.version != 310 || !is_exit(s)) return false;
    const auto behind = lowest_behind.upper_bound(s);
    int first = flow_.blocks[at(s)].start;
    while (first + 1 < flow_.blocks[at(s)].end && flow_.ins[at(first)].op == Op::NOP) ++first;  // the place of `break`
    return behind != lowest_behind.end() && behind->second < flow_.ins[at(first)].position.line;
  };
  // From 3.12 on handlers stand behind everything else, and code of the loop may follow its last jump back; its column tells.
  const auto stands_inside = [&](int s) {
    const Block& b = flow_.blocks[at(s)];
    if (code_.version < 312 || s < last || b.cold != head.cold || inner_column == INT32_MAX) return false;
    if (flow_.end >= 0 && s == flow_.block_of[at(flow_.end)]) return false;
    for (int p : b.preds) {  // where the test of a loop fails its else clause stands no less to the right
      if (last_in(p)->position.line == flow_.ins[at(head.start)].position.line) return false;
    }
    if (is_exit(s)) return statement_column(s, true) >= inner_column;
    const Instruction* asserts = b.jump >= 0 ? &flow_.ins[at(flow_.blocks[at(b.fall)].start)] : nullptr;
    return asserts != nullptr && asserts->op == Op::LOAD_ASSERTION_ERROR && asserts->position.column >= inner_column;
  };
  std::vector<int> exits;
  seen_.reset(flow_.blocks.size());
  pending = {header};
  seen_.add(header);
  const int depth = head.depth;
  while (!pending.empty()) {
    const int b = pending.back();
    pending.pop_back();
    const Block& block = flow_.blocks[at(b)];
    const bool ends = b == header && iterates;
    const int handler = block.region >= 0 && !flow_.within(head.region, block.region) ? flow_.regions[at(block.region)].handler : -1;
    for (int s : {block.fall, ends ? -1 : block.jump, handler}) {
      if (s < 0 || s == exit || !seen_.add(s)) continue;
      const Block& target = flow_.blocks[at(s)];
      const bool deeper = iterates ? target.depth >= depth : target.depth > depth;
      if (iterates && target.behind_break && s == block.fall) {
        exits.push_back(s);
      } else if (inside_.has(s) || deeper || (target.handler && target.depth >= depth) ||
                 decide(ChoiceKind::kInside, &flow_.ins[at(target.start)],
                        (s > header && s <= last && !stands_behind(s)) || stands_inside(s))) {
        pending.push_back(s);
      } else {
        exits.push_back(s);
      }
    }
  }
  return exits;
}

// Where execution goes on behind a loop, given where its normal end leads (-1: it has none) and where else it is left.
int Structurer::choose_follow(const std::vector<int>& exits, int exit, int next) {
  std::vector<int> others = exits;
  others.push_back(exit);
  others.push_back(-1);
  return choose_block(likely_follow(exits, exit, next), others);
}

int Structurer::likely_follow(const std::vector<int>& exits, int exit, int next) const {
  std::vector<int> candidates;
  const int behind = next >= 0 ? flow_.resolve(next) : -1;
  const int normal = exit >= 0 ? flow_.resolve(exit) : -1;
  for (int s : exits) {
    if (flow_.resolve(s) == normal) return exit;
    candidates.push_back(s);
  }
  if (candidates.empty()) return exit;
  if (exit >= 0) {
    for (int s : candidates) {
      if (flow_.resolve(s) == behind) return s;
    }
  }
  int best = -1;
  for (int s : candidates) {
    if (is_exit(s) && flow_.blocks[at(s)].preds.size() < 2 && candidates.size() > 1) continue;
    const int target = flow_.resolve(s);
    bool outer = false;
    for (const Loop& loop : loops_) outer |= target == loop.header || (loop.follow >= 0 && target == flow_.resolve(loop.follow));
    if (best < 0 || (outer ? 0 : flow_.blocks[at(target)].order) > flow_.blocks[at(flow_.resolve(best))].order) best = s;
  }
  return best >= 0 ? best : exit >= 0 ? exit : candidates[0];
}

// Where `continue` leads to what is left of the `True` of an endless loop, that stands inside of the loop: further to the right than its
// statements do, on a line of its own in front of them.
void Structurer::take_true(Stmt* loop) const {
  if (code_.version < 311 || loop->body.empty() || loop->body[0]->kind != StmtKind::kNop) return;
  const bytecode::Position& nop = loop->body[0]->at->position;
  int line = -1, column = -1;  // of the first statement
  for (const Instruction* in = loop->body[0]->at + 1; in < flow_.ins.data() + flow_.ins.size(); ++in) {
    const bytecode::Position& p = in->position;
    if (p.line <= nop.line || p.column < 0) continue;
    if (line >= 0 && p.line != line) break;
    column = line < 0 ? p.column : std::min(column, p.column);
    line = p.line;
  }
  if (loop->body.size() > 1) {
    if (const int begins = beginning_of(loop->body[1]); begins >= 0) column = std::min(column, begins);
  }
  if (line < 0 || nop.line != nop.end_line || nop.column <= column) return;
  loop->header = loop->body[0]->at;
  loop->body.erase(loop->body.begin());
}

int Structurer::make_loop(int header, Exprs* stack, Stmts* out, int next, bool* falls) {
  const Block head = flow_.blocks[at(header)];
  const Instruction& first = flow_.ins[at(head.start)];
  const bool iterates = first.op == Op::FOR_ITER || first.op == Op::GET_ANEXT;
  if (placed_[at(header)] != 0) no_form("a loop reached in two ways");
  placed_[at(header)] = 1;
  Stmt* made = arena_.stmt(iterates ? StmtKind::kFor : StmtKind::kWhile);
  made->at = &first;
  made->order = ++clock_;
  int follow = -1, exit = -1;
  Exprs behind = *stack;
  const auto closed = [&](const std::vector<int>& blocks, uint8_t value) {
    for (int b : blocks) barrier_[at(b)] += value != 0 ? 1 : -1;
  };
  bool ignored = false, else_falls = false;
  if (iterates) {
    exit = head.jump;
    const std::vector<int> exits = loop_exits(header, true, exit);
    follow = choose_follow(exits, exit, next);
    if (stack->empty()) no_form("a loop over nothing");
    Expr* iterable = stack->back();
    behind.pop_back();
    Expr* iterator = make(ExprKind::kIterator, first);
    iterator->number = header;
    Expr* item = make(ExprKind::kNext, first);
    if (iterable->kind == ExprKind::kIterable) {
      made->value = iterable->items[0];
    } else if (iterable->kind == ExprKind::kName && iterable->text == ".0") {
      made->value = iterable;
    } else {
      no_form("a loop over a value that is no iterator");
    }
    made->is_async = first.op == Op::GET_ANEXT;
    Exprs inner = behind;
    inner.push_back(iterator);
    inner.push_back(item);
    loops_.push_back({header, follow});
    std::vector<int> barriers;
    if (follow >= 0) barriers.push_back(follow);
    if (follow >= 0 && flow_.resolve(follow) != follow) barriers.push_back(flow_.resolve(follow));
    closed(barriers, 1);
    made->body = sequence(head.fall, inner, header, head.region, &ignored);
    closed(barriers, 0);
    loops_.pop_back();
    size_t i = 0;
    while (i < made->body.size() && made->body[i]->kind == StmtKind::kNop) ++i;
    if (i == made->body.size() || made->body[i]->kind != StmtKind::kAssign || made->body[i]->value->kind != ExprKind::kNext ||
        made->body[i]->targets.size() != 1) {
      no_form("a loop whose value is not stored");
    }
    made->targets = made->body[i]->targets;
    made->body.erase(made->body.begin() + static_cast<std::ptrdiff_t>(i));
  } else {
    std::vector<int> exits = loop_exits(header, false, -1);
    loops_.push_back({header, -1});
    closed(exits, 1);
    placed_[at(header)] = 0;
    Node* node = node_at(header, *stack);
    closed(exits, 0);
    const bool repeats_test = code_.version >= 310;
    bool tested = node->end == End::kCondition && only_nops(node->stmts) && !node->keep && node->test->kind != ExprKind::kExceptionMatch &&
                  std::find(exits.begin(), exits.end(), node->jump) != exits.end() && node->stack.size() == stack->size();
    const bool may_test = tested;
    if (tested && repeats_test && flow_.tested_below[at(head.start)] == 0) {
      // The test would be repeated below; only where the body always ends in `continue` or leaves the loop it is not.
      for (int source : head.back_edges) {
        const Instruction& jump = flow_.ins[at(flow_.blocks[at(source)].end - 1)];
        if (jump.op != Op::JUMP_ABSOLUTE || !spans(&jump, 8)) tested = false;
      }
    }
    if (may_test) tested = decide(ChoiceKind::kTested, last_in(node->last), tested);
    if (tested && choose(2) != 0) tested = false;
    if (tested) {
      exit = node->jump;
      std::vector<int> others;
      for (int s : exits) {
        if (s != exit) others.push_back(s);
      }
      follow = choose_follow(others, exit, next);
      made->value = node->test;
    } else {
      drop_inner_exits(&exits);
      follow = choose_follow(exits, -1, next);
    }
    loops_.back().follow = follow;
    std::vector<int> barriers;
    if (follow >= 0) barriers.push_back(follow);
    if (follow >= 0 && flow_.resolve(follow) != follow) barriers.push_back(flow_.resolve(follow));
    closed(barriers, 1);
    made->body = node->stmts;
    if (tested) {
      Stmts body = sequence(node->fall, node->stack, header, flow_.blocks[at(node->last)].region, &ignored);
      made->body.insert(made->body.end(), body.begin(), body.end());
    } else {
      const int region = flow_.blocks[at(node->last)].region;
      int on = -1;
      const Instruction* jump_at = nullptr;
      if (node->end == End::kGo) {
        on = node->to;
        jump_at = node->jump_at;
      } else if (node->end == End::kCondition) {
        on = make_if(*node, &made->body, header, &ignored);
      }
      if (on >= 0 && !leave(on, jump_at, last_in(node->last), header, &made->body, &ignored)) {
        Stmts body = sequence(on, node->stack, header, region, &ignored);
        made->body.insert(made->body.end(), body.begin(), body.end());
      }
    }
    closed(barriers, 0);
    loops_.pop_back();
  }
  if (made->kind == StmtKind::kWhile && made->value == nullptr) take_true(made);
  if (const Stmt* last = last_of(made->body); last != nullptr && last->kind == StmtKind::kContinue && !spans(last->at, 8)) {
    while (made->body.back() != last) made->body.pop_back();
    made->body.pop_back();
  }
  out->push_back(made);
  if (exit >= 0 && follow != exit && flow_.resolve(follow) != flow_.resolve(exit)) {
    if (follow >= 0) ++barrier_[at(follow)];
    made->orelse = sequence(exit, behind, follow, head.region, &else_falls);
    if (follow >= 0) --barrier_[at(follow)];
  }
  (void)falls;
  *stack = behind;
  return follow;
}

}  // namespace pellucid::decompile
