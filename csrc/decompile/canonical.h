// The instructions of a code object with what compilers are free to choose taken out: NOPs and jumps, opcode pairs, polarity of branches,
// short-circuit jumps that lead to other branches, the forms of a method call. What remains is what the code does, in order. Knows nothing
// of source text.
#pragma once
#include <cstdint>
#include <vector>

#include "bytecode/code.h"

namespace pellucid::decompile {

enum class CanonicalKind : uint8_t {
  kPlain,      // `op` with `number` and `object`, then `next`
  kBranch,     // takes off the top: `next` if it is true, else `other`; of `op` IS_OP: if it is None
  kJumpOrPop,  // if the top is `number` (1: true, 0: false) keeps it and goes to `other`, else takes it off and goes to `next`
  kEnd,        // `op` and nothing after it
  kForever,    // an empty loop
};

struct CanonicalNode {
  CanonicalKind kind = CanonicalKind::kPlain;
  bytecode::Op op = bytecode::Op::NOP;
  bool named = false;  // `object` is a name, else a constant
  int64_t number = 0;
  PyObject* object = nullptr;     // borrowed from the Code
  int32_t next = -1, other = -1;  // nodes
  int32_t handler = -1;           // node
  bool lasti = false;
  int32_t instruction = 0;
};

struct CanonicalFlow {
  std::vector<CanonicalNode> nodes;
  int32_t entry = -1;
};

CanonicalFlow canonical_flow(const bytecode::Code& code);

// Which name an instruction that has one (kHasName) means; newer versions keep flags beside it.
uint32_t name_index(const bytecode::Code& code, const bytecode::Instruction& in);

// Whether what an instruction leaves is only tested next, so that making it a bool changes nothing.
bool only_tested(const std::vector<bytecode::Instruction>& instructions, size_t index);

}  // namespace pellucid::decompile
