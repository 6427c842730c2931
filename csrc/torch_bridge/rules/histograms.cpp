// Histograms, and places in sorted sequences.
#include "torch_bridge/rules/common.h"

#include <ATen/core/List.h>

namespace pellucid::bridge::rules {

namespace {

using Two = std::tuple<Tensor, Tensor>;
using Range = std::optional<at::ArrayRef<double>>;

void check_inputs(const Tensor& x, const OptionalTensor& weight, size_t bins) {
  TORCH_CHECK(x.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ", x.dim());
  TORCH_CHECK(static_cast<int64_t>(bins) == x.size(-1),
              "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  if (!given(weight)) return;
  TORCH_CHECK(x.scalar_type() == weight->scalar_type(),
              "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input ",
              x.scalar_type(), " and weight ", weight->scalar_type());
  TORCH_CHECK(weight->sizes() == without_last(x.sizes()),
              "torch.histogramdd: if weight tensor is provided it should have the same shape as"
              " the input tensor excluding its innermost dimension, but got input with shape ",
              x.sizes(), " and weight with shape ", weight->sizes());
}

Two histogram(const Tensor& x, int64_t bins, const Range& /*range*/, const OptionalTensor& weight, bool /*density*/) {
  TORCH_CHECK(bins > 0, "torch.histogram: bins must be > 0, but got ", bins);
  check_inputs(make({x.numel(), 1}, x.scalar_type()),
               given(weight) ? OptionalTensor(make({weight->numel()}, weight->scalar_type())) : weight, 1);
  return {make({bins}, x.scalar_type()), make({bins + 1}, x.scalar_type())};
}

Two histogram_of_edges(const Tensor& x, const Tensor& edges, const OptionalTensor& weight, bool /*density*/) {
  TORCH_CHECK(edges.dim() == 1, "torch.histogramdd: bins tensor for dimension 0 should have one dimension, but got ", edges.dim());
  TORCH_CHECK(edges.numel() > 0, "torch.histogramdd: bins tensor for dimension 0 should have at least one element");
  check_inputs(make({x.numel(), 1}, x.scalar_type()),
               given(weight) ? OptionalTensor(make({weight->numel()}, weight->scalar_type())) : weight, 1);
  return {make({edges.numel() - 1}, x.scalar_type()), make({edges.numel()}, x.scalar_type())};
}

std::vector<Tensor> histogramdd_edges(const Tensor& x, IntArrayRef bins, const Range& /*range*/, const OptionalTensor& weight,
                                      bool /*density*/) {
  check_inputs(x, weight, bins.size());
  std::vector<Tensor> edges;
  for (const int64_t count : bins) edges.push_back(make({count + 1}, x.scalar_type()));
  return edges;
}

Tensor histogramdd_of_counts(const Tensor& x, IntArrayRef bins, const Range& /*range*/, const OptionalTensor& weight, bool /*density*/) {
  check_inputs(x, weight, bins.size());
  return make(bins, x.scalar_type());
}

Tensor histogramdd_of_edges(const Tensor& x, at::TensorList edges, const OptionalTensor& weight, bool /*density*/) {
  check_inputs(x, weight, edges.size());
  Sizes sizes;
  for (const Tensor& of_one : edges) sizes.push_back(of_one.numel() - 1);
  return make(sizes, x.scalar_type());
}

// searchsorted and bucketize: positions, one for each value looked up.
ScalarType position_type(bool int32) { return int32 ? at::kInt : at::kLong; }

void check_boundaries(const Tensor& boundaries) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool int32, bool /*right*/) {
  check_boundaries(boundaries);
  return make(x.sizes(), position_type(int32));
}

Tensor bucketize_number(const Scalar& /*x*/, const Tensor& boundaries, bool int32, bool /*right*/) {
  check_boundaries(boundaries);
  return make({}, position_type(int32));
}

void check_sorter(const Tensor& sorted, const OptionalTensor& sorter, bool right, std::optional<std::string_view> side) {
  if (side) {
    TORCH_CHECK(*side == "left" || *side == "right", "torch.searchsorted(): side can only be 'left' or 'right' but got ", *side);
    TORCH_CHECK(!right || *side == "right", "torch.searchsorted(): side and right can't be set to opposites, got side of ", *side,
                " while right was True");
  }
  if (!given(sorter)) return;
  TORCH_CHECK(sorter->sizes() == sorted.sizes(),
              "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ", sorted.sizes(),
              "and got sorter tensor ", sorter->sizes());
  TORCH_CHECK(sorter->scalar_type() == at::kLong, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ",
              sorter->scalar_type());
}

Tensor searchsorted(const Tensor& sorted, const Tensor& x, bool int32, bool right, std::optional<std::string_view> side,
                    const OptionalTensor& sorter) {
  check_sorter(sorted, sorter, right, side);
  TORCH_CHECK(x.dim() > 0 || sorted.dim() == 1,
              "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1,"
              " but we got boundaries tensor dim(",
              sorted.dim(), ") and input value's dim(", x.dim(), ") numel(", x.numel(), ")");
  TORCH_CHECK(sorted.dim() != 0, "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  TORCH_CHECK(
      sorted.dim() == 1 || (x.dim() == sorted.dim() && without_last(x.sizes()) == without_last(sorted.sizes())),
      "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value"
      " tensor must match, but we got boundaries tensor ",
      sorted.sizes(), " and input value tensor ", x.sizes());
  TORCH_CHECK(x.scalar_type() == sorted.scalar_type() || x.dim() == 0,
              "torch.searchsorted(): boundary tensor and input value tensor should"
              " have same dtype, but got boundary tensor dtype ",
              sorted.scalar_type(), " and input value tensor dtype ", x.scalar_type());
  return make(x.sizes(), position_type(int32));
}

Tensor searchsorted_number(const Tensor& sorted, const Scalar& /*x*/, bool int32, bool right, std::optional<std::string_view> side,
                           const OptionalTensor& sorter) {
  check_sorter(sorted, sorter, right, side);
  TORCH_CHECK(sorted.dim() == 1,
              "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1,"
              " but we got boundaries tensor dim(",
              sorted.dim(), ") and input value's dim(0) numel(1)");
  return make({}, position_type(int32));
}

}  // namespace

void add_histograms(Table& table) {
  table.add("histogram", "bin_ct", TORCH_FN(histogram));
  table.add("histogram", "bins_tensor", TORCH_FN(histogram_of_edges));
  table.add("_histogramdd_bin_edges", "", TORCH_FN(histogramdd_edges));
  table.add("_histogramdd_from_bin_cts", "", TORCH_FN(histogramdd_of_counts));
  table.add("_histogramdd_from_bin_tensors", "", TORCH_FN(histogramdd_of_edges));
  table.add("bucketize", "Tensor", TORCH_FN(bucketize));
  table.add("bucketize", "Scalar", TORCH_FN(bucketize_number));
  table.add("searchsorted", "Tensor", TORCH_FN(searchsorted));
  table.add("searchsorted", "Scalar", TORCH_FN(searchsorted_number));
}

}  // namespace pellucid::bridge::rules
