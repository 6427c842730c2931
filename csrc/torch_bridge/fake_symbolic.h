// Operators on fakes with symbolic sizes: the operator runs on fakes of the hint sizes, which decides dtype, device, layout and errors, and
// a rule of its family says the same geometry in symbols. What a rule says is compared with what came out at the hints, always.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace pellucid::bridge {

// Does all of it; false: no rule for this operator and these arguments, and the stack is as it was.
bool run_at_hints(const c10::OperatorHandle& op, torch::jit::Stack* stack, size_t base);

// A fake of a real tensor's class, dtype, device and autograd state with these sizes and strides. The sizes at the hints must be the
// tensor's.
at::Tensor symbolic_fake(const at::Tensor& real, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides);

}  // namespace pellucid::bridge
