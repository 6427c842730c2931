// Basic blocks: a block ends at jumps, returns and raises, before jump targets and handlers, and where the covering exception row
// changes. Knows nothing of what the instructions compute.
#include "bytecode/cfg.h"

#include "base/check.h"
#include "bytecode/effects.h"

namespace pellucid::bytecode {

Cfg build_cfg(const Code& code) {
  const Tables* tables = bytecode::tables(code.version);
  CHECK(tables != nullptr) << "no tables for version " << code.version;
  const size_t n = code.instructions.size();
  std::vector<bool> leader(n + 1);
  leader[0] = leader[n] = true;
  for (size_t i = 0; i < n; ++i) {
    const Instruction& instruction = code.instructions[i];
    if (instruction.target >= 0) {
      leader[static_cast<size_t>(instruction.target)] = true;
      leader[i + 1] = true;
    } else if (!falls_through(instruction.op)) {
      leader[i + 1] = true;
    }
  }
  std::vector<int32_t> row_of(n, -1);
  for (size_t r = code.rows.size(); r-- > 0;) {  // backwards: where rows overlap the first one wins
    const ExceptionRow& row = code.rows[r];
    leader[static_cast<size_t>(row.start)] = leader[static_cast<size_t>(row.end)] = leader[static_cast<size_t>(row.target)] = true;
    for (int32_t i = row.start; i < row.end; ++i) row_of[static_cast<size_t>(i)] = static_cast<int32_t>(r);
  }
  Cfg cfg;
  cfg.block_of.resize(n);
  for (size_t i = 0; i < n; ++i) {
    if (leader[i]) {
      Block& made = cfg.blocks.emplace_back();
      made.start = static_cast<int32_t>(i);
      made.row = row_of[i];
    }
    cfg.blocks.back().end = static_cast<int32_t>(i + 1);
    cfg.block_of[i] = static_cast<int32_t>(cfg.blocks.size() - 1);
  }
  for (size_t b = 0; b < cfg.blocks.size(); ++b) {
    Block& block = cfg.blocks[b];
    const Instruction& last = code.instructions[static_cast<size_t>(block.end) - 1];
    if (falls_through(last.op) && b + 1 < cfg.blocks.size()) block.next = static_cast<int32_t>(b + 1);
    if (last.target >= 0) block.jump = cfg.block_of[static_cast<size_t>(last.target)];
    if (block.row >= 0) block.handler = cfg.block_of[static_cast<size_t>(code.rows[static_cast<size_t>(block.row)].target)];
  }
  return cfg;
}

}  // namespace pellucid::bytecode
