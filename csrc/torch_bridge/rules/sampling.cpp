// Interpolation at given places, padding by reflection, and embedding bags.
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

Tensor grid_sampler(const Tensor& x, const Tensor& grid, int64_t spatial) {
  TORCH_CHECK(x.dim() == spatial + 2 && grid.dim() == spatial + 2, "grid_sampler(): expected ", spatial + 2,
              "D input and grid, but got input with sizes ", x.sizes(), " and grid with sizes ", grid.sizes());
  TORCH_CHECK(x.size(0) == grid.size(0), "grid_sampler(): expected grid and input to have same batch size");
  TORCH_CHECK(grid.size(-1) == spatial, "grid_sampler(): expected grid to have size ", spatial, " in last dimension");
  Sizes sizes{x.size(0), x.size(1)};
  for (int64_t i = 0; i < spatial; ++i) sizes.push_back(grid.size(1 + i));
  return make(sizes, x.scalar_type());
}

Tensor grid_sampler_2d(const Tensor& x, const Tensor& grid, int64_t /*interpolation*/, int64_t /*padding*/, bool /*align_corners*/) {
  return grid_sampler(x, grid, 2);
}
Tensor grid_sampler_3d(const Tensor& x, const Tensor& grid, int64_t /*interpolation*/, int64_t /*padding*/, bool /*align_corners*/) {
  return grid_sampler(x, grid, 3);
}

Tensor reflection_pad2d(const Tensor& x, IntArrayRef padding) {
  TORCH_CHECK(padding.size() == 4, "padding size is expected to be 4");
  TORCH_CHECK(
      x.dim() == 3 || x.dim() == 4,
      "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ", x.sizes());
  Sizes sizes = sizes_of(x);
  const size_t rank = sizes.size();
  for (size_t i = 0; i < 2; ++i) {
    int64_t& size = sizes[rank - 1 - i];
    TORCH_CHECK(padding[2 * i] < size && padding[2 * i + 1] < size,
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (", padding[2 * i], ", ",
                padding[2 * i + 1], ") at dimension ", rank - 1 - i, " of input ", x.sizes());
    size += padding[2 * i] + padding[2 * i + 1];
  }
  return make(sizes, x.scalar_type(), x.suggest_memory_format());
}

}  // namespace

void add_sampling(Table& table) {
  table.add("grid_sampler_2d", "", TORCH_FN(grid_sampler_2d));
  table.add("grid_sampler_3d", "", TORCH_FN(grid_sampler_3d));
  table.add("reflection_pad2d", "", TORCH_FN(reflection_pad2d));
}

}  // namespace pellucid::bridge::rules
