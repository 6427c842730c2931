// Up to 3.9 code that nothing reaches stays where it is, and tells of else clauses: behind the last statement of a branch stands the jump
// over the other one, and behind two branches that both return what follows them.
#include <algorithm>

#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

}  // namespace

// Where the jump right before a block would lead that is never reached itself; -1: there is none.
int Structurer::dead_jump_before(int block) const {
  if (code_.version >= 310 || block <= 0) return -1;
  const Block& before = flow_.blocks[at(block) - 1];
  if (before.reachable || flow_.ins[at(before.end - 1)].op != Op::JUMP_ABSOLUTE) return -1;
  return before.fall;
}

// The jump over the else clause that ends the last except clause, reached or not; -1: a return took its place.
int Structurer::end_of_clauses(int otherwise) const {
  int i = flow_.blocks[at(otherwise)].start - 1;
  const auto is = [&](int k, Op op) { return k >= 0 && flow_.ins[at(k)].op == op; };
  if (!is(i, Op::RERAISE)) return -1;
  --i;
  if (is(i, Op::RERAISE) && is(i - 3, Op::LOAD_CONST)) i -= 4;  // the name of the exception unbound
  if (!is(i, Op::JUMP_ABSOLUTE) || flow_.ins[at(i)].target < 0) return -1;
  return flow_.block_of[at(flow_.ins[at(i)].target)];
}

// Where the body of a try statement and its handlers go on. The body ends with a jump over the handlers, which end with raising again what
// none of them took; behind that stands the else clause.
void Structurer::find_else(int region, int handlers_to, int* normal, int* follow) const {
  const Block& handler = flow_.blocks[at(flow_.regions[at(region)].handler)];
  const Instruction& jump = flow_.ins[at(handler.start - 1)];
  *normal = -1;
  if (handler.start == 0 || jump.op != Op::JUMP_ABSOLUTE || jump.target < handler.start) return;
  const int otherwise = flow_.block_of[at(jump.target)];
  const Instruction& before = flow_.ins[at(jump.target - 1)];
  const bool behind_handlers =
      before.op == Op::RETURN_VALUE && flow_.blocks[at(flow_.last_dominated[at(flow_.regions[at(region)].handler)])].end == jump.target;
  if (before.op != Op::RERAISE && !behind_handlers) return;
  int end = end_of_clauses(otherwise);
  if (!flow_.blocks[at(flow_.block_of[at(handler.start - 1)])].reachable) {  // the body never ends; an else clause may stand there still
    const bool stands = end > otherwise && !flow_.blocks[at(otherwise)].reachable && flow_.blocks[at(end)].reachable && handlers_to >= 0 &&
                        flow_.resolve(handlers_to) == flow_.resolve(end);
    if (stands) *normal = otherwise;
    return;
  }
  if (end < 0) end = handlers_to;
  const bool has_else = end >= 0 ? flow_.resolve(end) != flow_.resolve(otherwise) : returns_before_dead_code(otherwise);
  if (!has_else) {
    *follow = otherwise;
    return;
  }
  *normal = otherwise;
  if (*follow < 0 && end > otherwise && flow_.blocks[at(end)].reachable &&
      flow_.blocks[at(end)].region == flow_.blocks[at(otherwise)].region) {
    *follow = end;
  }
}

// 3.9 and 3.10: the block where what a region guards ends normally. Of the copies of what follows it is the last one in front of the
// handler; up to 3.9 it stands there even where nothing reaches it.
int Structurer::old_end(int region, int block, size_t depth) {
  const int handler = flow_.regions[at(region)].handler;
  const int before = flow_.blocks[at(handler)].start - 1;
  const auto dead = [&](int i) { return i >= 0 && !flow_.blocks[at(flow_.block_of[at(i)])].reachable; };
  // The jump over the handler alone may be dead because what led to it leads on at once.
  if (code_.version < 310 && dead(before)) {
    const bool likely = dead(before - 1) || flow_.ins[at(before)].op != Op::JUMP_ABSOLUTE;
    if (decide(ChoiceKind::kEndsInside, &flow_.ins[at(before)], likely)) return -1;
  }
  int end = -1;
  for (const auto& [from, to] : leaving_edges(region, block)) {
    if (flow_.blocks[at(to)].depth != static_cast<int>(depth)) continue;
    const bool better = end < 0 || (to < handler) == (end < handler) ? to > end : to < handler;
    if (better) end = to;
  }
  return end;
}

// `break` and `continue` at the end of a guarded body: they may be all that stands in the else clause. Up to 3.9 the jump there stays where
// it was, behind the handlers.
void Structurer::move_to_else(Stmt* made, int region) {
  if (made->body.empty() || (made->body.back()->kind != StmtKind::kBreak && made->body.back()->kind != StmtKind::kContinue)) return;
  size_t from = made->body.size() - 1;
  while (from > 0 && (made->body[from - 1]->kind == StmtKind::kNop || made->body[from - 1]->kind == StmtKind::kDropIterator)) --from;
  if (from == 0) return;
  const int handler = flow_.blocks[at(flow_.regions[at(region)].handler)].start;
  bool likely = false;
  if (code_.version < 310 && flow_.ins[at(handler - 1)].op == Op::JUMP_ABSOLUTE) {
    const int to = flow_.ins[at(handler - 1)].target;
    const int behind = flow_.last_dominated[at(flow_.regions[at(region)].handler)] + 1;
    likely = behind < static_cast<int>(flow_.blocks.size()) && !flow_.blocks[at(behind)].reachable && flow_.only_jumps(behind) &&
             flow_.ins[at(flow_.blocks[at(behind)].start)].target == to;
  }
  if (!decide(ChoiceKind::kTryElse, &flow_.ins[at(handler)], likely)) return;
  const auto first = made->body.begin() + static_cast<std::ptrdiff_t>(from);
  made->orelse.assign(first, made->body.end());
  made->body.erase(first, made->body.end());
}

// Where all handlers leave, what stands in the else clause may as well stand behind the statement.
void Structurer::move_behind(Stmt* made, int region, Stmts* out) {
  for (const Handler& handler : made->handlers) {
    if (handler.body.empty()) return;
    const StmtKind last = handler.body.back()->kind;
    if (last != StmtKind::kReturn && last != StmtKind::kRaise && last != StmtKind::kBreak && last != StmtKind::kContinue) return;
  }
  const int handler = flow_.blocks[at(flow_.regions[at(region)].handler)].start;
  if (!decide(ChoiceKind::kBehind, &flow_.ins[at(handler)], false)) return;
  out->insert(out->end(), made->orelse.begin(), made->orelse.end());
  made->orelse.clear();
}

// Whether a branch that ends right before a block has another one behind it: `jump` is where its condition leads.
bool Structurer::has_old_else(int jump) const {
  if (code_.version >= 310) return false;
  if (dead_jump_before(jump) >= 0) return flow_.blocks[at(jump) - 1].start != last_dead_continue_;
  const int start = flow_.blocks[at(jump)].start;
  return start > 0 && flow_.ins[at(start - 1)].op == Op::RETURN_VALUE && returns_before_dead_code(jump);
}

// `break` is a jump, even where nothing reaches it: a return or raise that no jump leads to stands in its loop.
void Structurer::drop_inner_exits(std::vector<int>* exits) {
  if (code_.version >= 310) return;
  if (jumped_to_.empty()) {
    jumped_to_.assign(flow_.ins.size(), 0);
    for (const Instruction& in : flow_.ins) {
      if (in.op == Op::JUMP_ABSOLUTE && in.target >= 0) jumped_to_[at(in.target)] = 1;
    }
  }
  const auto stands_inside = [&](int exit) {
    const int start = flow_.blocks[at(exit)].start;
    return is_exit(exit) && decide(ChoiceKind::kEndsInside, &flow_.ins[at(start)], jumped_to_[at(start)] == 0);
  };
  exits->erase(std::remove_if(exits->begin(), exits->end(), stands_inside), exits->end());
}

// Up to 3.9 a condition in front of `continue` or `break` jumps to where that leads; the jump itself stands behind what the condition
// guards, and nothing reaches it where that does not go on.
bool Structurer::stands_before_continue(const Node& node, const Stmts& guarded) {
  if (code_.version >= 310 || guarded.empty()) return false;
  const int header = loops_.back().header;
  const StmtKind last = guarded.back()->kind;
  if ((last != StmtKind::kRaise && last != StmtKind::kReturn) || node.jump != header) return false;
  const Block& head = flow_.blocks[at(header)];
  int dead = node.fall;
  while (dead < static_cast<int>(flow_.blocks.size()) && flow_.blocks[at(dead)].reachable) ++dead;
  if (dead == static_cast<int>(flow_.blocks.size()) || !flow_.only_jumps(dead) || flow_.blocks[at(dead)].fall != header) return false;
  if (dead == head.dead_back && std::all_of(head.back_edges.begin(), head.back_edges.end(), [&](int b) { return b < dead; })) return false;
  last_dead_continue_ = flow_.blocks[at(dead)].start;
  return true;
}

// `else: pass` is a jump to what follows it.
bool Structurer::has_empty_else(int jump) const {
  const int start = flow_.blocks[at(jump)].start;
  if (code_.version >= 310 || start == 0) return false;
  const Instruction& before = flow_.ins[at(start - 1)];
  return before.op == Op::JUMP_ABSOLUTE && before.target == start;
}

// Whether all code that a block dominates ends in a return, behind which stands code that nothing reaches.
bool Structurer::returns_before_dead_code(int block) const {
  if (code_.version >= 310) return false;
  const int last = flow_.last_dominated[at(block)];
  const int behind = flow_.blocks[at(last)].end;
  if (flow_.ins[at(behind - 1)].op != Op::RETURN_VALUE || at(behind) >= flow_.ins.size() || flow_.ins[at(behind)].offset < 0) return false;
  return !flow_.blocks[at(flow_.block_of[at(behind)])].reachable;
}

}  // namespace pellucid::decompile
