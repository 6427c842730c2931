// Tensors whose values the program itself writes down (`torch.tensor([True, False])`, the list in `x[[True, False]]`): their fakes remember
// them, because a mask among indices decides a shape.
#pragma once
#include <ATen/core/Tensor.h>

namespace pellucid::bridge {

// `fake` stands for `constant`. Only masks are remembered.
void remember_constant(at::TensorImpl* fake, const at::Tensor& constant);

// The constant, or an undefined tensor when there is none or `fake` was written to since.
at::Tensor constant_of(at::TensorImpl* fake);

// For operators that write to the tensor, or make a view that others may write through.
void forget_constant(at::TensorImpl* fake);

}  // namespace pellucid::bridge
