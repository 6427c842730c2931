// What most rules need: plain meta tensors of given sizes, as PyTorch's kernels would lay them out. Header of rules/ only.
#pragma once
#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS  // else ATen's utility headers include every operator
#endif
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <tuple>

#include "torch_bridge/rules/rules.h"

namespace pellucid::bridge::rules {

using at::IntArrayRef;
using at::MemoryFormat;
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Sizes = c10::SmallVector<int64_t, 6>;

inline Tensor make(IntArrayRef sizes, ScalarType dtype, MemoryFormat format = MemoryFormat::Contiguous) {
  return at::detail::empty_meta(sizes, dtype, format);
}

inline Tensor make_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype) {
  return at::detail::empty_strided_meta(sizes, strides, dtype);
}

// at::empty_like with preserved strides.
inline Tensor make_like(const Tensor& tensor, ScalarType dtype) {
  if (tensor.is_non_overlapping_and_dense()) return make_strided(tensor.sizes(), tensor.strides(), dtype);
  return make_strided(tensor.sizes(), at::infer_dense_strides(tensor.sizes(), tensor.strides()), dtype);
}
inline Tensor make_like(const Tensor& tensor) { return make_like(tensor, tensor.scalar_type()); }

// Batches of column-major matrices, as LAPACK's results are.
Tensor make_columns(IntArrayRef sizes, ScalarType dtype);

inline ScalarType accumulation_type(ScalarType dtype) { return dtype == at::kBFloat16 || dtype == at::kHalf ? at::kFloat : dtype; }

inline bool given(const OptionalTensor& tensor) { return tensor.has_value() && tensor->defined(); }

inline Sizes sizes_of(const Tensor& tensor) { return Sizes(tensor.sizes().begin(), tensor.sizes().end()); }

// The first ones but `count`, and the last `count`.
inline IntArrayRef without_last(IntArrayRef values, size_t count = 1) { return values.slice(0, values.size() - count); }
inline IntArrayRef last_of(IntArrayRef values, size_t count) { return values.slice(values.size() - count); }

// Sizes with `dims` (all of them when empty) reduced.
Sizes reduced_sizes(const Tensor& tensor, at::OptionalIntArrayRef dims, bool keepdim);

// Raises for a dimension out of range or named twice.
void check_dims(const Tensor& tensor, IntArrayRef dims);

// What resize_output does to an out= tensor, without its warning: the fallback carries the new sizes back to the fake.
void set_output(const Tensor& out, IntArrayRef sizes);

}  // namespace pellucid::bridge::rules
