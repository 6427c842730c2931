// Poolings without a structured Meta kernel, and the ways back.
#include "torch_bridge/rules/common.h"

#include <ATen/native/Pool.h>

namespace pellucid::bridge::rules {

namespace {

Tensor adaptive_average(const Tensor& x, IntArrayRef output, int64_t spatial, const char* name) {
  TORCH_CHECK(x.dim() == spatial + 1 || x.dim() == spatial + 2, name, "(): Expected ", spatial + 1, "D or ", spatial + 2,
              "D tensor, but got ", x.sizes());
  TORCH_CHECK(static_cast<int64_t>(output.size()) == spatial, name, ": output_size must be ", spatial);
  Sizes sizes(x.sizes().begin(), x.sizes().end() - spatial);
  sizes.append(output.begin(), output.end());
  // The 2-D kernel keeps channels_last, the 3-D one writes contiguous memory.
  return make(sizes, x.scalar_type(), spatial == 2 && x.dim() == 4 ? x.suggest_memory_format() : MemoryFormat::Contiguous);
}

Tensor adaptive_avg_pool2d(const Tensor& x, IntArrayRef output) { return adaptive_average(x, output, 2, "adaptive_avg_pool2d"); }
Tensor adaptive_avg_pool3d(const Tensor& x, IntArrayRef output) { return adaptive_average(x, output, 3, "adaptive_avg_pool3d"); }

int64_t per_dim(IntArrayRef values, size_t dim, int64_t otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[dim];
}

std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& x, IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                                                   IntArrayRef dilation, bool ceil_mode) {
  TORCH_CHECK(x.dim() == 4 || x.dim() == 5, "max_pool3d: Expected 4D or 5D tensor, but got ", x.sizes());
  Sizes sizes(x.sizes().begin(), x.sizes().end() - 3);
  std::array<int, 3> k;
  std::array<int, 3> s;
  std::array<int, 3> p;
  std::array<int, 3> d;
  std::array<int64_t, 3> in;
  for (size_t i = 0; i < 3; ++i) {
    k[i] = static_cast<int>(per_dim(kernel, i, 1));
    s[i] = static_cast<int>(per_dim(stride, i, k[i]));
    p[i] = static_cast<int>(per_dim(padding, i, 0));
    d[i] = static_cast<int>(per_dim(dilation, i, 1));
    in[i] = x.size(x.dim() - 3 + static_cast<int64_t>(i));
    sizes.push_back(at::native::pooling_output_shape<int64_t>(in[i], k[i], p[i], s[i], d[i], ceil_mode));
  }
  const int64_t* out = sizes.end() - 3;
  at::native::pool3d_shape_check(x, x.size(-4), k[0], k[1], k[2], s[0], s[1], s[2], p[0], p[1], p[2], d[0], d[1], d[2], in[0], in[1], in[2],
                                 out[0], out[1], out[2], "max_pool3d_with_indices_out_cpu_template()");
  const MemoryFormat format = x.dim() == 5 ? x.suggest_memory_format() : MemoryFormat::Contiguous;
  return {make(sizes, x.scalar_type(), format), make(sizes, at::kLong, format)};
}

void check_unpool(const Tensor& x, const Tensor& indices, IntArrayRef output, int64_t spatial) {
  TORCH_CHECK(indices.scalar_type() == at::kLong, "elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(static_cast<int64_t>(output.size()) == spatial, "There should be exactly ", spatial == 2 ? "two" : "three", " elements (",
              spatial == 2 ? "" : "depth, ", "height, width) in output_size, but got ", output.size(), " elements.");
  TORCH_CHECK(x.dim() == spatial + 1 || x.dim() == spatial + 2, "Input to max_unpooling", spatial, "d should be a ", spatial + 1, "d or ",
              spatial + 2, "d Tensor, but got a tensor with ", x.dim(), " dimensions");
  TORCH_CHECK(x.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (", x.sizes(),
              ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t i = 1; i < x.dim(); ++i) {
    TORCH_CHECK(x.size(i) > 0, "max_unpooling", spatial, "d(): Expected input to have non-zero size for non-batch dimensions, but got ",
                x.sizes(), " with dimension ", i, " being empty.");
  }
}

Sizes unpooled_sizes(const Tensor& x, IntArrayRef output) {
  Sizes sizes(x.sizes().begin(), x.sizes().end() - static_cast<int64_t>(output.size()));
  sizes.append(output.begin(), output.end());
  return sizes;
}

Tensor max_unpool2d(const Tensor& x, const Tensor& indices, IntArrayRef output) {
  check_unpool(x, indices, output, 2);
  const Sizes sizes = unpooled_sizes(x, output);
  return make(sizes, x.scalar_type(), x.dim() == 4 ? x.suggest_memory_format() : MemoryFormat::Contiguous);
}

Tensor max_unpool3d(const Tensor& x, const Tensor& indices, IntArrayRef output, IntArrayRef stride, IntArrayRef padding) {
  check_unpool(x, indices, output, 3);
  TORCH_CHECK(stride.size() == 3, "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(),
              " elements.");
  TORCH_CHECK(padding.size() == 3, "There should be exactly three elements (depth, height, width) in padding, but got: ", padding.size(),
              " elements.");
  TORCH_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0, "strides should be greater than zero, but got stride: ", stride);
  return make(unpooled_sizes(x, output), x.scalar_type());
}

}  // namespace

void add_pooling(Table& table) {
  table.add("_adaptive_avg_pool2d", "", TORCH_FN(adaptive_avg_pool2d));
  table.add("max_pool3d_with_indices", "", TORCH_FN(max_pool3d_with_indices));
  table.add("_adaptive_avg_pool3d", "", TORCH_FN(adaptive_avg_pool3d));
  table.add("max_unpool2d", "", TORCH_FN(max_unpool2d));
  table.add("max_unpool3d", "", TORCH_FN(max_unpool3d));
}

}  // namespace pellucid::bridge::rules
