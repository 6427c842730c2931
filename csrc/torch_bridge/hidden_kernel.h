// The C++ kernels of an operator, also those that a later Python registration hides. PyTorch's Python meta functions take the Meta key
// over, and the dispatcher then shows only the newest kernel of a key; the older ones stay in a private list of the operator's entry.
// Knows the dispatcher's layout (a renamed member fails to compile) and nothing about fake tensors.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

namespace pellucid::bridge {

// The newest kernel that C++ registered at exactly `key`, or null. Python kernels have no unboxed form, which is how they are told
// apart; kernels with symbolic sizes have only the symbolic unboxed form.
const c10::KernelFunction* cpp_kernel(const c10::OperatorHandle& op, c10::DispatchKey key);

}  // namespace pellucid::bridge
