// Backward operators that have no structured Meta kernel: a gradient looks like what it is the gradient of.
#include "torch_bridge/rules/like.h"

#include <ATen/TensorIterator.h>

namespace pellucid::bridge::rules {

namespace {

constexpr LikeRule kLikeAnArgument[] = {
    // Pooling.
    {"_adaptive_avg_pool2d_backward", "", {{"self", Layout::kSuggested}}},
    {"_adaptive_avg_pool3d_backward", "", {{"self"}}},
    {"adaptive_avg_pool3d_backward", "grad_input", {{"self"}}},
    {"fractional_max_pool3d_backward", "", {{"self"}}},
    {"max_pool3d_with_indices_backward", "", {{"self", Layout::kSuggested}}},
    // Padding, sampling and segments.
    {"reflection_pad2d_backward", "", {{"self", Layout::kSuggested}}},
    {"replication_pad2d_backward", "", {{"self", Layout::kSuggested}}},
    {"replication_pad3d_backward", "", {{"self", Layout::kSuggested}}},
    {"grid_sampler_2d_backward", "", {{"input"}, {.argument = "grid", .always = true}}, "output_mask"},
    {"grid_sampler_3d_backward", "", {{"input"}, {.argument = "grid", .always = true}}, "output_mask"},
    {"_segment_reduce_backward", "", {{.argument = "data", .dtype_of = "grad"}}},
    // Normalisation.
    {"native_layer_norm_backward", "", {{"input"}, {"weight"}, {"bias"}}, "output_mask"},
    {"native_group_norm_backward", "", {{"input", Layout::kSuggested}, {"weight"}, {"weight"}}, "output_mask"},
    {"native_batch_norm_backward", "", {{"input", Layout::kSuggested}, {"weight"}, {"weight"}}, "output_mask"},
    {"batch_norm_backward", "", {{"input", Layout::kSuggested}, {"weight"}, {"weight"}}, "output_mask"},
    {"_fused_rms_norm_backward", "", {{"input"}, {"weight"}}, "output_mask"},
    {"_weight_norm_interface_backward", "", {{"saved_v"}, {"saved_g"}}},
    {"batch_norm_backward_elemt", "", {{"input", Layout::kSuggested}}},
    // Losses.
    {"binary_cross_entropy_backward", "", {{"self", Layout::kPreserved}}},
    {"mse_loss_backward", "", {{"self"}}},
    {"smooth_l1_loss_backward", "grad_input", {{"self"}}},
    {"huber_loss_backward", "out", {{"self"}}},
    {"multi_margin_loss_backward", "", {{"self"}}},
    {"multilabel_margin_loss_backward", "", {{"self"}}},
    {"nll_loss2d_backward", "", {{"self", Layout::kPreserved}}},
    {"_ctc_loss_backward", "", {{"log_probs"}}},
    {"_ctc_loss_backward", "Tensor", {{"log_probs"}}},
    // Activations.
    {"glu_backward", "", {{"self"}}},
    {"glu_backward_jvp", "", {{"grad_x"}}},
    {"log_sigmoid_backward", "", {{"grad_output", Layout::kPreserved}}},
    // Attention.
    {"_masked_softmax_backward", "", {{"grad_output"}}},
    {"_scaled_dot_product_flash_attention_for_cpu_backward",
     "",
     {{"query", Layout::kHeads}, {"key", Layout::kHeads}, {"value", Layout::kHeads}}},
    {"_scaled_dot_product_flash_attention_backward",
     "",
     {{"query", Layout::kPreserved}, {"key", Layout::kPreserved}, {"value", Layout::kPreserved}}},
    // Distances and recurrent layers.
    {"_pdist_backward", "", {{"self"}}},
    {"mkldnn_rnn_layer_backward", "", {{"input"}, {"weight1"}, {"weight2"}, {"weight3"}, {"weight3"}, {"hx_"}, {"cx_tmp"}}},
};

constexpr IteratedRule kIterated[] = {
    {"hardtanh_backward", "", {"grad_output", "self"}},
    {"hardswish_backward", "", {"grad_output", "self"}},
    {"native_dropout_backward", "", {"grad_output", "mask", "scale"}, Promotion::kPromote},
};

std::tuple<Tensor, Tensor> prelu_kernel_backward(const Tensor& grad, const Tensor& x, const Tensor& weight) {
  auto iterator = at::TensorIteratorConfig()
                      .add_owned_output(Tensor())
                      .add_owned_output(Tensor())
                      .add_owned_const_input(x)
                      .add_owned_const_input(weight)
                      .add_owned_const_input(grad)
                      .build();
  return {iterator.output(0), iterator.output(1)};
}

Tensor unfold_backward(const Tensor& grad, IntArrayRef sizes, int64_t /*dim*/, int64_t /*size*/, int64_t /*step*/) {
  return make(sizes, grad.scalar_type());
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward_reduce(const Tensor& /*grad*/, const Tensor& x, const Tensor& mean,
                                                                      const Tensor& /*invstd*/, const OptionalTensor& weight,
                                                                      bool with_input, bool with_weight, bool with_bias) {
  const int64_t channels = x.size(1);
  const ScalarType parameter = given(weight) ? weight->scalar_type() : x.scalar_type();
  const auto sums = [&](bool wanted, ScalarType dtype) { return wanted ? make({channels}, dtype) : Tensor(); };
  return {sums(with_input, mean.scalar_type()), sums(with_input, mean.scalar_type()), sums(with_weight, parameter),
          sums(with_bias, parameter)};
}

}  // namespace

void add_backward(Table& table) {
  add_all(table, kLikeAnArgument);
  add_all(table, kIterated);
  table.add("_prelu_kernel_backward", "", TORCH_FN(prelu_kernel_backward));
  table.add("unfold_backward", "", TORCH_FN(unfold_backward));
  table.add("batch_norm_backward_reduce", "", TORCH_FN(batch_norm_backward_reduce));
}

}  // namespace pellucid::bridge::rules
