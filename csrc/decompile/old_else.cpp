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

// Whether all code that a block dominates ends in a return, behind which stands code that nothing reaches.
bool Structurer::returns_before_dead_code(int block) const {
  if (code_.version >= 310) return false;
  const int last = flow_.last_dominated[at(block)];
  const int behind = flow_.blocks[at(last)].end;
  if (flow_.ins[at(behind - 1)].op != Op::RETURN_VALUE || at(behind) >= flow_.ins.size() || flow_.ins[at(behind)].offset < 0) return false;
  return !flow_.blocks[at(flow_.block_of[at(behind)])].reachable;
}

}  // namespace pellucid::decompile
