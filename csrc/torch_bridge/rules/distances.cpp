// Distances between rows.
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

Sizes common_batch(const Tensor& a, const Tensor& b) {
  const auto batch = [](const Tensor& x) { return x.sizes().slice(0, static_cast<size_t>(x.dim() - 2)); };
  const auto sizes = at::infer_size_dimvector(batch(a), batch(b));
  return Sizes(sizes.begin(), sizes.end());
}

Tensor cdist_forward(const Tensor& a, const Tensor& b, double p, std::optional<int64_t> mode) {
  TORCH_CHECK(a.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", a.dim(), "D");
  TORCH_CHECK(b.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", b.dim(), "D");
  TORCH_CHECK(a.size(-1) == b.size(-1), "X1 and X2 must have the same number of columns. X1: ", a.size(-1), " X2: ", b.size(-1));
  TORCH_CHECK(c10::isFloatingType(a.scalar_type()), "cdist only supports floating-point dtypes, X1 got: ", a.scalar_type());
  TORCH_CHECK(c10::isFloatingType(b.scalar_type()), "cdist only supports floating-point dtypes, X2 got: ", b.scalar_type());
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  TORCH_CHECK(mode.value_or(0) >= 0 && mode.value_or(0) <= 2, "possible modes: 0, 1, 2, but was: ", mode.value_or(0));
  Sizes sizes = common_batch(a, b);
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-2));
  return make(sizes, a.scalar_type());
}

Tensor cdist_backward(const Tensor& /*grad*/, const Tensor& a, const Tensor& b, double /*p*/, const Tensor& /*distances*/) {
  Sizes sizes = common_batch(a, b);
  sizes.push_back(a.size(-2));
  sizes.push_back(a.size(-1));
  const bool empty = b.size(-2) == 0 || c10::multiply_integers(sizes) == 0;
  return empty ? make_like(a) : make(sizes, a.scalar_type());
}

Tensor pdist_forward(const Tensor& x, double /*p*/) {
  TORCH_CHECK(x.is_contiguous(), "_pdist_forward requires contiguous input");
  const int64_t rows = x.size(0);
  return make({rows <= 1 ? 0 : rows * (rows - 1) / 2}, x.scalar_type());
}

}  // namespace

void add_distances(Table& table) {
  table.add("_cdist_forward", "", TORCH_FN(cdist_forward));
  table.add("_cdist_backward", "", TORCH_FN(cdist_backward));
  table.add("_pdist_forward", "", TORCH_FN(pdist_forward));
}

}  // namespace pellucid::bridge::rules
