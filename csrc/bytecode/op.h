// Op: every opcode of CPython 3.8 to 3.13 by name, the same value in every version. What differs by version (numbers, caches, stack
// effects) stands in bytecode/tables.h. Knows nothing of Python's headers.
#pragma once
#include <cstdint>

namespace pellucid::bytecode {

enum class Op : uint16_t {
#define OP(name) name,
#include "bytecode/generated/ops.def"
#undef OP
};

inline constexpr int kOpCount = 0
#define OP(name) +1
#include "bytecode/generated/ops.def"
#undef OP
    ;

const char* op_name(Op op);

}  // namespace pellucid::bytecode
