// Poolings without a structured Meta kernel.
#include "torch_bridge/rules/common.h"

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

}  // namespace

void add_pooling(Table& table) {
  table.add("_adaptive_avg_pool2d", "", TORCH_FN(adaptive_avg_pool2d));
  table.add("_adaptive_avg_pool3d", "", TORCH_FN(adaptive_avg_pool3d));
}

}  // namespace pellucid::bridge::rules
