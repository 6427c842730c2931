// Helpers shared by the rules.
#include "torch_bridge/rules/common.h"

#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/Resize.h>

namespace pellucid::bridge::rules {

Tensor make_columns(IntArrayRef sizes, ScalarType dtype) {
  auto strides = c10::contiguous_strides(sizes);
  const size_t rank = sizes.size();
  if (rank >= 2) {
    strides[rank - 1] = std::max<int64_t>(sizes[rank - 2], 1);
    strides[rank - 2] = 1;
  }
  return make_strided(sizes, strides, dtype);
}

Sizes reduced_sizes(const Tensor& tensor, at::OptionalIntArrayRef dims, bool keepdim) {
  const int64_t rank = tensor.dim();
  std::bitset<at::dim_bitset_size> mask;
  if (!dims.has_value() || dims->empty()) {
    mask.set();
  } else {
    mask = at::dim_list_to_bitset(*dims, rank);
  }
  Sizes sizes;
  for (int64_t i = 0; i < rank; ++i) {
    if (!mask[static_cast<size_t>(i)]) {
      sizes.push_back(tensor.size(i));
    } else if (keepdim) {
      sizes.push_back(1);
    }
  }
  return sizes;
}

void check_dims(const Tensor& tensor, IntArrayRef dims) { at::dim_list_to_bitset(dims, tensor.dim()); }

void set_output(const Tensor& out, IntArrayRef sizes) { at::native::resize_output(out, sizes); }

}  // namespace pellucid::bridge::rules
