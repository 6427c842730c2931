// The control-flow graph of decoded instructions: basic blocks with their successors and exception handlers. Knows nothing of what
// the instructions compute.
#pragma once
#include <cstdint>
#include <vector>

#include "bytecode/code.h"

namespace pellucid::bytecode {

struct Block {
  int32_t start = 0, end = 0;  // instructions [start, end)
  int32_t next = -1;           // the block execution falls into, -1: none
  int32_t jump = -1;           // the block its last instruction jumps to, -1: none
  int32_t row = -1;            // the exception row that covers it, -1: none
  int32_t handler = -1;        // the block that row leads to
};

struct Cfg {
  std::vector<Block> blocks;      // in instruction order
  std::vector<int32_t> block_of;  // by instruction
};

// Jump targets and rows must be in range, and the opcodes those of `code.version`.
Cfg build_cfg(const Code& code);

}  // namespace pellucid::bytecode
