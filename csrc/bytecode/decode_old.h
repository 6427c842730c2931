// What decoding needs for 3.8 to 3.10 alone: line tables of their own, blocks set up by instructions instead of an exception table, cells
// that are numbered apart from locals. For decode.cpp.
#pragma once
#include <vector>

#include "bytecode/code.h"
#include "bytecode/tables.h"

namespace pellucid::bytecode {

// One numbering for locals, cells and free variables, as 3.11 has it, and the arguments of LOAD_DEREF and its kin changed to it. The
// instructions must be there.
bool unify_localsplus(const Tables& tables, PyObject* varnames, PyObject* cellvars, PyObject* freevars, Code& out);

// Lines from co_lnotab (3.8, 3.9) or co_linetable (3.10).
void decode_old_lines(const uint8_t* table, size_t size, Code& out);

// Exception rows from SETUP_FINALLY, SETUP_WITH, SETUP_ASYNC_WITH and POP_BLOCK, whose targets are taken away. A handler finds six values
// above the row's depth.
bool decode_blocks(const Tables& tables, Code& out);

}  // namespace pellucid::bytecode
