// Tensors with symbolic sizes. C++ that asks one for a size as an int gets an error, or, where a Specializing lives, the size at the hint:
// that symbol is then a constant for good, as it is with PyTorch's own fake tensors. Knows no operator.
#pragma once
#include <ATen/core/Tensor.h>

namespace pellucid::bridge {

// A new meta tensor in a storage of its own, or one that lies in `base`'s.
at::Tensor symbolic_tensor(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, at::ScalarType dtype);
at::Tensor symbolic_alias(const at::Tensor& base, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, const c10::SymInt& offset,
                          caffe2::TypeMeta dtype);

// Whether sizes become ints where C++ asks for them, on this thread; returns what it was.
bool set_specializing(bool on);

}  // namespace pellucid::bridge
