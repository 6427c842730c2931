// Backward operators: a gradient has the sizes of what it is the gradient of.
#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

// grad_output, input, weight, bias_sizes
std::vector<Geometry> convolution_backward(Call& call) {
  return {dense(call.sizes(1)), dense(call.sizes(2)), dense(call.given(3) ? call.integers(3) : Exprs{})};
}

// The input at `input`, and parameters by channel.
template <size_t input>
std::vector<Geometry> by_channel(Call& call) {
  const Exprs sizes = call.sizes(input);
  return {dense(sizes), dense({sizes[1]}), dense({sizes[1]})};
}

std::vector<Geometry> group_norm_backward(Call& call) {
  const Expr channels = call.integer(6);
  return {dense(call.sizes(1)), dense({channels}), dense({channels})};
}

// grad_output, indices, num_weights
std::vector<Geometry> embedding_dense_backward(Call& call) { return call.one({call.integer(2), call.sizes(0).back()}); }

template <size_t at>
std::vector<Geometry> sizes_given_at(Call& call) {
  return call.one(call.integers(at));
}

// grad_hy, grad_cy, cx, cy, workspace
std::vector<Geometry> lstm_cell_backward(Call& call) {
  const Exprs gates = call.sizes(4);
  return {dense(gates), dense(call.sizes(2)), dense({gates[1]})};
}

}  // namespace

void add_backward(Table& table) {
  table.add({"convolution_backward"}, convolution_backward);
  table.add({"native_batch_norm_backward", "batch_norm_backward"}, by_channel<1>);
  table.add({"native_layer_norm_backward"}, like<"input", "weight", "bias">);
  table.add({"_fused_rms_norm_backward"}, like<"input", "weight">);
  table.add({"native_group_norm_backward"}, group_norm_backward);
  table.add({"_softmax_backward_data", "_log_softmax_backward_data"}, like<"grad_output">);
  table.add({"embedding_dense_backward"}, embedding_dense_backward);
  table.add({"_thnn_fused_lstm_cell_backward_impl"}, lstm_cell_backward);
  table.add({"_scaled_dot_product_flash_attention_for_cpu_backward"}, like<"query", "key", "value">);
  table.add({"grid_sampler_2d_backward", "grid_sampler_3d_backward"}, like<"input", "grid">);
  table.add({"avg_pool2d_backward",
             "avg_pool3d_backward",
             "max_pool2d_with_indices_backward",
             "max_pool3d_with_indices_backward",
             "_adaptive_avg_pool2d_backward",
             "_adaptive_avg_pool3d_backward",
             "adaptive_max_pool2d_backward",
             "adaptive_max_pool3d_backward",
             "fractional_max_pool2d_backward",
             "fractional_max_pool3d_backward",
             "reflection_pad1d_backward",
             "reflection_pad2d_backward",
             "reflection_pad3d_backward",
             "replication_pad1d_backward",
             "replication_pad2d_backward",
             "replication_pad3d_backward",
             "nll_loss_backward",
             "nll_loss2d_backward",
             "multi_margin_loss_backward",
             "multilabel_margin_loss_backward",
             "glu_backward",
             "_pdist_backward"},
            like<"self">);
  table.add({"_cdist_backward"}, like<"x1">);
  table.add({"_ctc_loss_backward", "_ctc_loss_backward.Tensor"}, like<"log_probs">);
  table.add({"mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward", "binary_cross_entropy_backward",
             "soft_margin_loss_backward", "hardtanh_backward", "hardswish_backward", "hardshrink_backward", "softshrink_backward",
             "native_dropout_backward", "log_sigmoid_backward", "rrelu_with_noise_backward"},
            pointwise);
  table.add({"_prelu_kernel_backward"}, pointwise);
  table.add({"slice_backward", "select_backward", "diagonal_backward", "unfold_backward"}, sizes_given_at<1>);
  table.add({"upsample_nearest1d_backward", "upsample_nearest2d_backward", "upsample_nearest3d_backward",
             "_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d_backward", "_upsample_nearest_exact3d_backward",
             "upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_trilinear3d_backward", "upsample_bicubic2d_backward",
             "_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward"},
            sizes_given_at<2>);
}

}  // namespace pellucid::bridge::sym_rules
