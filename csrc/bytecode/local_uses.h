// Which slots of localsplus an instruction reads and writes: what liveness and the validator's binding check stand on. Knows
// opcodes and arguments, not code objects.
#pragma once
#include "bytecode/op.h"
#include "bytecode/tables.h"

namespace pellucid::bytecode {

// What happens to a slot, in this order: it is read, then written or emptied.
enum SlotUse : uint8_t {
  kReads = 1 << 0,        // the slot's content (for a cell: the cell itself)
  kWrites = 1 << 1,       // the slot holds a value afterwards
  kEmpties = 1 << 2,      // the slot holds nothing afterwards
  kMayBeEmpty = 1 << 3,   // an empty slot is read without an error
  kThroughCell = 1 << 4,  // what is read is used as a cell, unchecked by the interpreter
  kMakesCell = 1 << 5,    // MAKE_CELL: the slot's content moves into a new cell
};

struct SlotEffects {
  struct One {
    uint32_t slot = 0;
    uint8_t use = 0;
  };
  One slots[2];
  int count = 0;
};

// COPY_FREE_VARS, which fills all free slots, is left to the caller.
SlotEffects slot_effects(const Tables& tables, Op op, uint32_t arg);

}  // namespace pellucid::bytecode
