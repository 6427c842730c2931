// Poolings without a structured Meta kernel.
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
  for (size_t i = 0; i < 3; ++i) {
    const int64_t window = per_dim(kernel, i, 1);
    sizes.push_back(at::native::pooling_output_shape<int64_t>(x.size(x.dim() - 3 + static_cast<int64_t>(i)), window, per_dim(padding, i, 0),
                                                              per_dim(stride, i, window), per_dim(dilation, i, 1), ceil_mode));
    TORCH_CHECK(sizes.back() >= 1, "max_pool3d: the output of input ", x.sizes(), " would be too small");
  }
  const MemoryFormat format = x.dim() == 5 ? x.suggest_memory_format() : MemoryFormat::Contiguous;
  return {make(sizes, x.scalar_type(), format), make(sizes, at::kLong, format)};
}

}  // namespace

void add_pooling(Table& table) {
  table.add("_adaptive_avg_pool2d", "", TORCH_FN(adaptive_avg_pool2d));
  table.add("max_pool3d_with_indices", "", TORCH_FN(max_pool3d_with_indices));
  table.add("_adaptive_avg_pool3d", "", TORCH_FN(adaptive_avg_pool3d));
}

}  // namespace pellucid::bridge::rules
