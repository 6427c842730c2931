// Factories that no composite kernel covers. The fallback puts the results on the device that the caller asked for.
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

Tensor scalar_tensor(const Scalar& /*value*/, std::optional<ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                     std::optional<at::Device> /*device*/, std::optional<bool> /*pin*/) {
  return make({}, dtype.value_or(c10::typeMetaToScalarType(c10::get_default_dtype())));
}

// Tensors that are known to be zero have views that no dispatch key of ours gets to see; the fake is one of ordinary zeros.
Tensor zero_tensor(IntArrayRef sizes, std::optional<ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                   std::optional<at::Device> /*device*/, std::optional<bool> /*pin*/) {
  return make(sizes, dtype.value_or(c10::typeMetaToScalarType(c10::get_default_dtype())));
}

Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement, const std::optional<at::Generator>& /*generator*/) {
  TORCH_CHECK(weights.dim() == 1 || weights.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || samples <= weights.size(-1), "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  return weights.dim() == 1 ? make({samples}, at::kLong) : make({weights.size(0), samples}, at::kLong);
}

Tensor& randperm_out(int64_t count, const std::optional<at::Generator>& /*generator*/, Tensor& out) {
  TORCH_CHECK(count >= 0, "n must be non-negative, got", count);
  set_output(out, {count});
  return out;
}

int64_t triangle(int64_t rows, int64_t columns, int64_t offset) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row) count += std::clamp<int64_t>(row + 1 + offset, 0, columns);
  return count;
}

Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                    std::optional<at::Device> /*device*/, std::optional<bool> /*pin*/) {
  return make({2, triangle(rows, columns, offset)}, dtype.value_or(at::kLong));
}

Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, std::optional<ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                    std::optional<at::Device> /*device*/, std::optional<bool> /*pin*/) {
  return make({2, rows * columns - triangle(rows, columns, offset - 1)}, dtype.value_or(at::kLong));
}

}  // namespace

void add_factories(Table& table) {
  table.add("scalar_tensor", "", TORCH_FN(scalar_tensor));
  table.add("_efficientzerotensor", "", TORCH_FN(zero_tensor));
  table.add("multinomial", "", TORCH_FN(multinomial));
  table.add("randperm", "generator_out", TORCH_FN(randperm_out));
  table.add("tril_indices", "", TORCH_FN(tril_indices));
  table.add("triu_indices", "", TORCH_FN(triu_indices));
}

}  // namespace pellucid::bridge::rules
