// Indexing, rearranging and repeating.
#include "torch_bridge/rules/common.h"

#include <ATen/ops/index_meta_dispatch.h>

namespace pellucid::bridge::rules {

namespace {

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t /*padding_idx*/, bool /*scale_grad*/, bool /*sparse*/) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  TORCH_CHECK(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
              "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got ",
              indices.scalar_type(), " instead (while checking arguments for embedding)");
  Sizes sizes = sizes_of(indices);
  sizes.push_back(weight.size(1));
  return make(sizes, weight.scalar_type());
}

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

// searchsorted and bucketize: positions, one for each value looked up.
ScalarType position_type(bool int32) { return int32 ? at::kInt : at::kLong; }
Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool int32, bool /*right*/) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return make(x.sizes(), position_type(int32));
}
Tensor searchsorted(const Tensor& sorted, const Tensor& x, bool int32, bool /*right*/, std::optional<std::string_view> /*side*/,
                    const OptionalTensor& /*sorter*/) {
  TORCH_CHECK(sorted.dim() > 0, "input value can be a scalar only when boundaries tensor dimension is 1");
  return make(x.sizes(), position_type(int32));
}

}  // namespace

void add_indexing(Table& table) {
  table.add("embedding", "", TORCH_FN(embedding));
  table.add("index_select", "", TORCH_FN(index_select));
  table.add("index", "Tensor", TORCH_FN(indexed));
  table.add("_index_put_impl_", "", TORCH_FN(index_put));
  table.add("flip", "", TORCH_FN(flip));
  table.add("roll", "", TORCH_FN(roll));
  table.add("repeat", "", TORCH_FN(repeat));
  table.add("repeat_interleave", "Tensor", TORCH_FN(repeat_interleave));
  table.add("take", "", TORCH_FN(take));
  table.add("bucketize", "Tensor", TORCH_FN(bucketize));
  table.add("searchsorted", "Tensor", TORCH_FN(searchsorted));
}

}  // namespace pellucid::bridge::rules
