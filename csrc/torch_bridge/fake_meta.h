// Operators without a native shape function: what is registered at the Meta key, nearly always a Python function of PyTorch.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

namespace pellucid::bridge {

// With the Python dispatcher on, as PyTorch's own fake tensors run these functions (they rely on Python decompositions).
void run_registered_meta(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace pellucid::bridge
