// Fake quantisation, as quantisation-aware training does it, and going back to floats. Tensors of quantised dtypes have no fakes.
#include "torch_bridge/rules/like.h"

namespace pellucid::bridge::rules {

namespace {

constexpr Like kOutput{"self", Layout::kPreserved};
constexpr Like kMask{.argument = "self", .layout = Layout::kPreserved, .dtype = ScalarType::Bool};

constexpr LikeRule kFakeQuantizers[] = {
    {"fake_quantize_per_tensor_affine_cachemask", "", {kOutput, kMask}},
    {"_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "", {kOutput, kMask}},
    {"fake_quantize_per_channel_affine_cachemask", "", {kOutput, kMask}},
    {"_fused_moving_avg_obs_fq_helper", "", {kOutput, kMask}},
    {"_fake_quantize_learnable_per_tensor_affine", "", {kOutput}},
    {"_fake_quantize_learnable_per_channel_affine", "", {kOutput}},
    {"dequantize", "self", {{.argument = "self", .layout = Layout::kPreserved, .dtype = ScalarType::Float}}},
};

using Three = std::tuple<Tensor, Tensor, Tensor>;

Three learnable_per_tensor_backward(const Tensor& /*grad*/, const Tensor& x, const Tensor& scale, const Tensor& zero_point, int64_t /*min*/,
                                    int64_t /*max*/, double /*grad_factor*/) {
  if (x.numel() == 0) return {x, scale, zero_point};
  return {make_like(x), make({1}, x.scalar_type()), make({1}, x.scalar_type())};
}

Three learnable_per_channel_backward(const Tensor& /*grad*/, const Tensor& x, const Tensor& scale, const Tensor& zero_point,
                                     int64_t /*axis*/, int64_t /*min*/, int64_t /*max*/, double /*grad_factor*/) {
  if (x.numel() == 0) return {x, scale, zero_point};
  return {make_like(x), make(scale.sizes(), x.scalar_type()), make(zero_point.sizes(), x.scalar_type())};
}

}  // namespace

void add_quantization(Table& table) {
  add_all(table, kFakeQuantizers);
  table.add("_fake_quantize_learnable_per_tensor_affine_backward", "", TORCH_FN(learnable_per_tensor_backward));
  table.add("_fake_quantize_learnable_per_channel_affine_backward", "", TORCH_FN(learnable_per_channel_backward));
}

}  // namespace pellucid::bridge::rules
