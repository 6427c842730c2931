// Sliding windows as columns and back, and shuffled channels.
#include "torch_bridge/rules/common.h"

#include <ATen/native/im2col_shape_check.h>

namespace pellucid::bridge::rules {

namespace {

void check_pairs(std::initializer_list<IntArrayRef> arguments) {
  for (const IntArrayRef values : arguments) {
    TORCH_CHECK(values.size() == 2, "It is expected that the arguments of fold and unfold have 2 elements, but got ", values.size());
  }
}

// Blocks of 2-D windows: how many there are of each kernel size.
int64_t block_count(IntArrayRef size, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  int64_t count = 1;
  for (size_t i = 0; i < 2; ++i) {
    count *= at::native::sliding_window_count(size[i], padding[i], dilation[i], kernel[i], stride[i]);
  }
  return count;
}

Tensor im2col(const Tensor& x, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  check_pairs({kernel, dilation, padding, stride});
  at::native::im2col_shape_check(x, Tensor(), kernel[0], kernel[1], dilation[0], dilation[1], padding[0], padding[1], stride[0], stride[1]);
  const int64_t columns = x.size(-3) * kernel[0] * kernel[1];
  const int64_t blocks = block_count(last_of(x.sizes(), 2), kernel, dilation, padding, stride);
  if (x.dim() == 3) return make({columns, blocks}, x.scalar_type());
  return make({x.size(0), columns, blocks}, x.scalar_type());
}

Tensor col2im(const Tensor& x, IntArrayRef size, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  check_pairs({size, kernel, dilation, padding, stride});
  at::native::col2im_shape_check(x, Tensor(), size[0], size[1], kernel[0], kernel[1], dilation[0], dilation[1], padding[0], padding[1],
                                 stride[0], stride[1]);
  const int64_t channels = x.size(-2) / (kernel[0] * kernel[1]);
  if (x.dim() == 2) return make({channels, size[0], size[1]}, x.scalar_type());
  return make({x.size(0), channels, size[0], size[1]}, x.scalar_type());
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  TORCH_CHECK(x.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", x.sizes());
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  TORCH_CHECK(x.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ", x.size(1), " channels and ", groups,
              " groups.");
  return make(x.sizes(), x.scalar_type(), x.suggest_memory_format());
}

}  // namespace

void add_folding(Table& table) {
  table.add("im2col", "", TORCH_FN(im2col));
  table.add("col2im", "", TORCH_FN(col2im));
  table.add("channel_shuffle", "", TORCH_FN(channel_shuffle));
}

}  // namespace pellucid::bridge::rules
