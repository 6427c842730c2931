// Indexing, rearranging and repeating.
#include "torch_bridge/rules/common.h"

#include <ATen/ops/index_meta_dispatch.h>

namespace pellucid::bridge::rules {

namespace {

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector, but got dim: ", index.dim());
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  Sizes sizes = sizes_of(x);
  dim = at::maybe_wrap_dim(dim, x.dim());
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = index.numel();
  return make(sizes, x.scalar_type());
}

bool has_mask(const c10::List<OptionalTensor>& indices) {
  for (const OptionalTensor& index : indices) {
    if (given(index) && (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte)) return true;
  }
  return false;
}

Tensor indexed(const Tensor& x, const c10::List<OptionalTensor>& indices) {
  if (has_mask(indices)) throw_data_dependent("index.Tensor");
  return at::meta::index(x, indices);
}

Tensor& index_put(Tensor& self, const c10::List<OptionalTensor>& indices, const Tensor& values, bool /*accumulate*/, bool /*unsafe*/) {
  TORCH_CHECK_INDEX(self.scalar_type() == values.scalar_type(), "Index put requires the source and destination dtypes match, got ",
                    self.scalar_type(), " for the destination and ", values.scalar_type(), " for the source.");
  if (!has_mask(indices)) {  // with masks the number of places is a value; the real call checks it
    const Tensor places = indexed(self, indices);
    TORCH_CHECK(at::is_expandable_to(values.sizes(), places.sizes()), "shape mismatch: value tensor of shape ", values.sizes(),
                " cannot be broadcast to indexing result of shape ", places.sizes());
  }
  return self;
}

Tensor flip(const Tensor& x, IntArrayRef dims) {
  check_dims(x, dims);
  return make_like(x);
}

Tensor roll(const Tensor& x, IntArrayRef shifts, IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  TORCH_CHECK(dims.empty() ? shifts.size() == 1 : shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
              ", dims:", dims.size());
  check_dims(x, dims);
  if (x.numel() == 0 || !device().is_cpu()) return make_like(x);
  if (dims.empty()) return make(x.sizes(), x.scalar_type());
  // The CPU code is cat of two parts; with an empty one cat gives contiguous memory.
  for (size_t i = 0; i < dims.size(); ++i) {
    if (shifts[i] % x.size(dims[i]) == 0) return make(x.sizes(), x.scalar_type());
  }
  return make(x.sizes(), x.scalar_type(), x.suggest_memory_format());
}

Tensor repeat(const Tensor& x, IntArrayRef repeats) {
  TORCH_CHECK(static_cast<int64_t>(repeats.size()) >= x.dim(),
              "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  const size_t extra = repeats.size() - static_cast<size_t>(x.dim());
  Sizes sizes(repeats.begin(), repeats.end());
  for (size_t i = 0; i < sizes.size(); ++i) {
    TORCH_CHECK(sizes[i] >= 0, "Trying to create tensor with negative dimension ", sizes[i]);
    if (i >= extra) sizes[i] *= x.size(static_cast<int64_t>(i - extra));
  }
  return make(sizes, x.scalar_type());
}

Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  if (!output_size) throw_data_dependent("repeat_interleave.Tensor");
  return make({*output_size}, repeats.scalar_type());
}

Tensor take(const Tensor& x, const Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ", index.scalar_type());
  return make(index.sizes(), x.scalar_type());
}

Tensor nonzero_static(const Tensor& x, int64_t size, int64_t /*fill*/) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  if (device().is_cpu()) return make({size, x.dim()}, at::kLong);
  return make_strided({size, x.dim()}, {1, size}, at::kLong);
}

// Rows of unequal numbers, one after the other, and padded to one length.
Tensor padded_of_jagged(const Tensor& values, at::TensorList offsets, IntArrayRef lengths, double /*padding*/) {
  TORCH_CHECK(offsets.size() == 1 && lengths.size() == 1, "Only one jagged dim is supported, got ", offsets.size(), " offsets and ",
              lengths.size(), " max_lengths");
  Sizes sizes{offsets[0].size(0) - 1, lengths[0]};
  sizes.append(values.sizes().begin() + 1, values.sizes().end());
  return make(sizes, values.scalar_type());
}

Tensor jagged_of_padded(const Tensor& dense, at::TensorList offsets, std::optional<int64_t> total) {
  TORCH_CHECK(offsets.size() == 1, "Only one jagged dim is supported, got ", offsets.size(), " offsets");
  if (!total) throw_data_dependent("_padded_dense_to_jagged_forward");
  Sizes sizes{*total};
  sizes.append(dense.sizes().begin() + 2, dense.sizes().end());
  return make(sizes, dense.scalar_type());
}

}  // namespace

void add_indexing(Table& table) {
  table.add("index_select", "", TORCH_FN(index_select));
  table.add("index", "Tensor", TORCH_FN(indexed));
  table.add("_index_put_impl_", "", TORCH_FN(index_put));
  table.add("flip", "", TORCH_FN(flip));
  table.add("roll", "", TORCH_FN(roll));
  table.add("repeat", "", TORCH_FN(repeat));
  table.add("repeat_interleave", "Tensor", TORCH_FN(repeat_interleave));
  table.add("take", "", TORCH_FN(take));
  table.add("_jagged_to_padded_dense_forward", "", TORCH_FN(padded_of_jagged));
  table.add("_padded_dense_to_jagged_forward", "", TORCH_FN(jagged_of_padded));
  table.add("nonzero_static", "", TORCH_FN(nonzero_static));
}

}  // namespace pellucid::bridge::rules
