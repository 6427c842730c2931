// The opcodes that touch localsplus. Knows opcodes and arguments, not code objects.
#include "bytecode/local_uses.h"

namespace pellucid::bytecode {

SlotEffects slot_effects(const Tables& tables, Op op, uint32_t arg) {
  const auto one = [arg](int use) {
    SlotEffects effects;
    effects.slots[0] = {arg, static_cast<uint8_t>(use)};
    effects.count = 1;
    return effects;
  };
  const auto pair = [arg](int first, int second) {  // 3.13's pairs: the high four bits come first
    SlotEffects effects;
    effects.slots[0] = {arg >> 4, static_cast<uint8_t>(first)};
    effects.slots[1] = {arg & 15, static_cast<uint8_t>(second)};
    effects.count = 2;
    return effects;
  };
  if ((tables.info(op).flags & (kHasLocal | kHasFree)) == 0) return {};
  switch (op) {
    case Op::LOAD_FAST:
    case Op::LOAD_FAST_CHECK:
      return one(kReads);
    case Op::LOAD_FAST_AND_CLEAR:
      return one(kReads | kMayBeEmpty | kEmpties);
    case Op::STORE_FAST:
      return one(kWrites);
    case Op::DELETE_FAST:
      return one(kReads | kEmpties);
    case Op::LOAD_FAST_LOAD_FAST:
      return pair(kReads, kReads);
    case Op::STORE_FAST_LOAD_FAST:
      return pair(kWrites, kReads);
    case Op::STORE_FAST_STORE_FAST:
      return pair(kWrites, kWrites);
    case Op::MAKE_CELL:
      return one(kReads | kMayBeEmpty | kWrites | kMakesCell);
    case Op::LOAD_CLOSURE:
      return one(kReads);
    default:
      return one(kReads | kThroughCell);  // LOAD_DEREF and its kin
  }
}

}  // namespace pellucid::bytecode
