// What an instruction does to the value stack and to control flow. Knows opcodes and arguments, not code objects.
#pragma once
#include "bytecode/op.h"
#include "bytecode/tables.h"

namespace pellucid::bytecode {

// How many values the stack gains (or loses) when execution goes on behind the instruction, or at its target (`jump`). This is what
// happens at run time; where the compiler's own bookkeeping (dis.stack_effect) differs, effects.cpp says so.
int stack_effect(const Tables& tables, Op op, uint32_t arg, bool jump);

// How many values must be on the stack.
int stack_needs(const Tables& tables, Op op, uint32_t arg);

// Whether execution can go on with the next instruction.
bool falls_through(Op op);

// SETUP_FINALLY and its kin (up to 3.10), which decode() turns into exception rows: they stay, as instructions that do not jump.
inline bool sets_up_block(Op op) { return op == Op::SETUP_FINALLY || op == Op::SETUP_WITH || op == Op::SETUP_ASYNC_WITH; }

// Up to 3.10 a handler finds so many values above its row's depth: the exception handled before and the one raised, three each.
inline constexpr int kOldHandlerValues = 6;

inline bool is_jump(const Tables& tables, Op op) {
  return (tables.info(op).flags & (kJumpRelative | kJumpAbsolute)) != 0 && !sets_up_block(op);
}

}  // namespace pellucid::bytecode
