// Normalisations: the output keeps the input's layout (or is contiguous), the statistics have the dtype that the device's kernels use.
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

// CPU kernels take half-precision input with float parameters; the statistics then are float (at::native::is_mixed_type).
ScalarType statistics_type(const Tensor& x, std::initializer_list<const OptionalTensor*> parameters) {
  if (!device().is_cpu()) return accumulation_type(x.scalar_type());
  const bool half = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  if (!half) return x.scalar_type();
  for (const OptionalTensor* parameter : parameters) {
    if (given(*parameter)) return (*parameter)->scalar_type() == at::kFloat ? at::kFloat : x.scalar_type();
  }
  return x.scalar_type();
}

Three native_layer_norm(const Tensor& x, IntArrayRef shape, const OptionalTensor& weight, const OptionalTensor& bias, double /*eps*/) {
  const auto rank = static_cast<int64_t>(shape.size());
  TORCH_CHECK(
      rank >= 1,
      "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = ", shape);
  if (x.dim() < rank || last_of(x.sizes(), shape.size()) != shape) {
    std::string expected;
    for (const int64_t size : shape) expected += ", " + std::to_string(size);
    TORCH_CHECK(false, "Given normalized_shape=", shape, ", expected input with shape [*", expected, "], but got input of size", x.sizes());
  }
  const auto check_shape = [&](const OptionalTensor& parameter, const char* name) {
    TORCH_CHECK(!given(parameter) || parameter->sizes() == shape, "Expected ", name, " to be of same shape as normalized_shape, but got ",
                name, " of shape ", given(parameter) ? parameter->sizes() : shape, " and normalized_shape = ", shape);
  };
  check_shape(weight, "weight");
  check_shape(bias, "bias");
  Sizes statistics = sizes_of(x);
  for (size_t i = statistics.size() - shape.size(); i < statistics.size(); ++i) statistics[i] = 1;
  const ScalarType dtype = statistics_type(x, {&weight, &bias});
  return {make(x.sizes(), x.scalar_type()), make(statistics, dtype), make(statistics, dtype)};
}

void check_channels(const OptionalTensor& parameter, int64_t channels, const char* name) {
  TORCH_CHECK(!given(parameter) || parameter->numel() == channels, name, " should contain ", channels, " elements not ",
              given(parameter) ? parameter->numel() : 0);
}

Three batch_norm(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const OptionalTensor& running_mean,
                 const OptionalTensor& running_var, bool train) {
  const int64_t channels = x.size(1);
  check_channels(running_mean, channels, "running_mean");
  check_channels(running_var, channels, "running_var");
  check_channels(weight, channels, "weight");
  check_channels(bias, channels, "bias");
  const ScalarType dtype = statistics_type(x, {&weight, &bias, &running_mean, &running_var});
  const int64_t count = train ? channels : 0;
  return {make(x.sizes(), x.scalar_type(), x.suggest_memory_format()), make({count}, dtype), make({count}, dtype)};
}

Three native_batch_norm(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const OptionalTensor& running_mean,
                        const OptionalTensor& running_var, bool train, double /*momentum*/, double /*eps*/) {
  return batch_norm(x, weight, bias, running_mean, running_var, train);
}

Three native_batch_norm_legit(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, Tensor& running_mean,
                              Tensor& running_var, bool train, double /*momentum*/, double /*eps*/) {
  return batch_norm(x, weight, bias, running_mean, running_var, train);
}

Three native_batch_norm_no_stats(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, bool train, double /*momentum*/,
                                 double /*eps*/) {
  return batch_norm(x, weight, bias, std::nullopt, std::nullopt, train);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_with_update(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias,
                                                                  Tensor& running_mean, Tensor& running_var, double /*momentum*/,
                                                                  double /*eps*/) {
  auto [out, mean, invstd] = batch_norm(x, weight, bias, running_mean, running_var, true);
  return {out, mean, invstd, make({0}, at::kByte)};
}

Three native_group_norm(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, int64_t batch, int64_t channels,
                        int64_t /*hxw*/, int64_t groups, double /*eps*/) {
  check_channels(weight, channels, "weight");
  check_channels(bias, channels, "bias");
  const ScalarType dtype = statistics_type(x, {&weight, &bias});
  const MemoryFormat format = device().is_cpu() ? x.suggest_memory_format() : MemoryFormat::Contiguous;
  return {make(x.sizes(), x.scalar_type(), format), make({batch, groups}, dtype), make({batch, groups}, dtype)};
}

std::tuple<Tensor, Tensor> weight_norm(const Tensor& direction, const Tensor& magnitude, int64_t /*dim*/) {
  const ScalarType dtype =
      device().is_cpu() && magnitude.scalar_type() != at::kBFloat16 ? magnitude.scalar_type() : accumulation_type(magnitude.scalar_type());
  return {make_like(direction), make_strided(magnitude.sizes(), magnitude.strides(), dtype)};
}

// The steps that nn.SyncBatchNorm is made of. Statistics are float for half-precision input.
std::tuple<Tensor, Tensor> channel_statistics(const Tensor& x) {
  const ScalarType dtype = accumulation_type(x.scalar_type());
  return {make({x.size(1)}, dtype), make({x.size(1)}, dtype)};
}

std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& x, double /*eps*/) { return channel_statistics(x); }

std::tuple<Tensor, Tensor> batch_norm_update_stats(const Tensor& x, const OptionalTensor& running_mean, const OptionalTensor& running_var,
                                                   double /*momentum*/) {
  check_channels(running_mean, x.size(1), "running_mean");
  check_channels(running_var, x.size(1), "running_var");
  const ScalarType dtype = statistics_type(x, {&running_mean, &running_var});
  return {make({x.size(1)}, dtype), make({x.size(1)}, dtype)};
}

Tensor batch_norm_elementwise(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const Tensor& /*mean*/,
                              const Tensor& /*invstd*/, double /*eps*/) {
  check_channels(weight, x.size(1), "weight");
  check_channels(bias, x.size(1), "bias");
  return make_like(x);
}

std::tuple<Tensor, Tensor> gathered_statistics(const Tensor& mean) {
  return {make({mean.size(1)}, mean.scalar_type()), make({mean.size(1)}, mean.scalar_type())};
}

std::tuple<Tensor, Tensor> batch_norm_gather(const Tensor& /*x*/, const Tensor& mean, const Tensor& /*invstd*/,
                                             const OptionalTensor& /*running_mean*/, const OptionalTensor& /*running_var*/,
                                             double /*momentum*/, double /*eps*/, int64_t /*count*/) {
  return gathered_statistics(mean);
}

std::tuple<Tensor, Tensor> batch_norm_gather_with_counts(const Tensor& /*x*/, const Tensor& mean, const Tensor& /*invstd*/,
                                                         const OptionalTensor& /*running_mean*/, const OptionalTensor& /*running_var*/,
                                                         double /*momentum*/, double /*eps*/, const Tensor& /*counts*/) {
  return gathered_statistics(mean);
}

}  // namespace

void add_normalization(Table& table) {
  table.add("native_layer_norm", "", TORCH_FN(native_layer_norm));
  table.add("native_batch_norm", "", TORCH_FN(native_batch_norm));
  table.add("_native_batch_norm_legit", "", TORCH_FN(native_batch_norm_legit));
  table.add("_native_batch_norm_legit", "no_stats", TORCH_FN(native_batch_norm_no_stats));
  table.add("_batch_norm_with_update", "", TORCH_FN(batch_norm_with_update));
  table.add("_weight_norm_interface", "", TORCH_FN(weight_norm));
  table.add("native_group_norm", "", TORCH_FN(native_group_norm));
  table.add("batch_norm_stats", "", TORCH_FN(batch_norm_stats));
  table.add("batch_norm_update_stats", "", TORCH_FN(batch_norm_update_stats));
  table.add("batch_norm_elemt", "", TORCH_FN(batch_norm_elementwise));
  table.add("batch_norm_gather_stats", "", TORCH_FN(batch_norm_gather));
  table.add("batch_norm_gather_stats_with_counts", "", TORCH_FN(batch_norm_gather_with_counts));
}

}  // namespace pellucid::bridge::rules
