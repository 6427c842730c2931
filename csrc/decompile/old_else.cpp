// Up to 3.9 code that nothing reaches stays where it is, and tells of else clauses: behind the last statement of a branch stands the jump
// over the other one, and behind two branches that both return what follows them.
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
  if (!flow_.blocks[at(flow_.block_of[at(handler.start - 1)])].reachable || before.op != Op::RERAISE) return;
  int end = end_of_clauses(otherwise);
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

// Whether all code that a block dominates ends in a return, behind which stands code that nothing reaches.
bool Structurer::returns_before_dead_code(int block) const {
  if (code_.version >= 310) return false;
  const int last = flow_.last_dominated[at(block)];
  const int behind = flow_.blocks[at(last)].end;
  if (flow_.ins[at(behind - 1)].op != Op::RETURN_VALUE || at(behind) >= flow_.ins.size() || flow_.ins[at(behind)].offset < 0) return false;
  return !flow_.blocks[at(flow_.block_of[at(behind)])].reachable;
}

}  // namespace pellucid::decompile
