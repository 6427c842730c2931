// Operators that write to memory they also read. PyTorch's kernels compare data pointers, which fakes do not have.
#pragma once
#include <ATen/core/stack.h>

#include "torch_bridge/fake_table.h"

namespace pellucid::bridge {

// Raises what the kernels raise where an argument that `op` writes to overlaps itself, or partly overlaps another argument. Some kernels
// allow it; then the program is looked at no further than this, and the real call decides.
void check_no_overlap(const c10::OperatorHandle& op, const Entry& entry, const torch::jit::Stack& stack, size_t base);

}  // namespace pellucid::bridge
