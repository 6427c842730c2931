// Convolutions: output sizes by the window formula, channels_last when the input or the weight is (and the kernel can).
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

int64_t per_dim(IntArrayRef values, int64_t dim) { return values.size() == 1 ? values[0] : values[static_cast<size_t>(dim)]; }

MemoryFormat output_format(const Tensor& x, const Tensor& weight, int64_t spatial) {
  if (spatial < 2 || x.dim() != spatial + 2) return MemoryFormat::Contiguous;
  // The CPU has no channels_last kernel for three dimensions of double.
  if (spatial == 3 && device().is_cpu() && (x.scalar_type() == at::kDouble || weight.scalar_type() == at::kDouble))
    return MemoryFormat::Contiguous;
  const MemoryFormat last = spatial == 2 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  return x.suggest_memory_format() == last || weight.suggest_memory_format() == last ? last : MemoryFormat::Contiguous;
}

Tensor convolve(const Tensor& x, const Tensor& weight, const OptionalTensor& bias, IntArrayRef stride, IntArrayRef padding,
                IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups) {
  const int64_t spatial = weight.dim() - 2;
  TORCH_CHECK(spatial >= 1 && (x.dim() == spatial + 2 || x.dim() == spatial + 1), "Expected ", spatial + 2, "-dimensional input for ",
              spatial + 2, "-dimensional weight ", weight.sizes(), ", but got ", x.dim(), "-dimensional input of size ", x.sizes(),
              " instead");
  TORCH_CHECK(x.scalar_type() == weight.scalar_type(), "Input type (", x.scalar_type(), ") and weight type (", weight.scalar_type(),
              ") should be the same");
  TORCH_CHECK(groups > 0, "non-positive groups is not supported");
  for (int64_t i = 0; i < spatial; ++i) {
    TORCH_CHECK(per_dim(padding, i) >= 0, "negative padding is not supported");
    TORCH_CHECK(per_dim(stride, i) > 0, "non-positive stride is not supported");
    TORCH_CHECK(per_dim(dilation, i) > 0, "dilation should be greater than zero");
  }
  TORCH_CHECK(weight.size(0) >= groups, "Given groups=", groups, ", expected weight to be at least ", groups,
              " at dimension 0, but got weight of size ", weight.sizes(), " instead");
  TORCH_CHECK(weight.size(0) % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups,
              " at dimension 0, but got weight of size ", weight.sizes(), " instead");
  const bool batched = x.dim() == spatial + 2;
  const int64_t channel_dim = batched ? 1 : 0;
  TORCH_CHECK(transposed ? x.size(channel_dim) == weight.size(0) : x.size(channel_dim) == weight.size(1) * groups, "Given groups=", groups,
              ", weight of size ", weight.sizes(), ", expected input", x.sizes(), " to have ",
              transposed ? weight.size(0) : weight.size(1) * groups, " channels, but got ", x.size(channel_dim), " channels instead");
  const int64_t out_channels = transposed ? weight.size(1) * groups : weight.size(0);
  TORCH_CHECK(!given(bias) || (bias->dim() == 1 && bias->size(0) == out_channels), "Given weight of size ", weight.sizes(),
              ", expected bias to be 1-dimensional with ", out_channels, " elements");
  Sizes sizes;
  if (batched) sizes.push_back(x.size(0));
  sizes.push_back(out_channels);
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t in = x.size(channel_dim + 1 + i);
    const int64_t extent = per_dim(dilation, i) * (weight.size(2 + i) - 1) + 1;
    const int64_t pad = per_dim(padding, i);
    const int64_t step = per_dim(stride, i);
    if (transposed) {
      sizes.push_back((in - 1) * step - 2 * pad + extent + per_dim(output_padding, i));
    } else {
      TORCH_CHECK(in + 2 * pad >= extent, "Calculated padded input size per channel: (", in + 2 * pad, "). Kernel size: (", extent,
                  "). Kernel size can't be greater than actual input size");
      sizes.push_back((in + 2 * pad - extent) / step + 1);
    }
  }
  return make(sizes, x.scalar_type(), output_format(x, weight, spatial));
}

Tensor convolve_with_flags(const Tensor& x, const Tensor& weight, const OptionalTensor& bias, IntArrayRef stride, IntArrayRef padding,
                           IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups, bool /*benchmark*/,
                           bool /*deterministic*/, bool /*cudnn_enabled*/, bool /*allow_tf32*/) {
  return convolve(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
}

std::tuple<Tensor, Tensor, Tensor> convolve_backward(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                     at::OptionalIntArrayRef bias_sizes, IntArrayRef /*stride*/, IntArrayRef /*padding*/,
                                                     IntArrayRef /*dilation*/, bool /*transposed*/, IntArrayRef /*output_padding*/,
                                                     int64_t /*groups*/, std::array<bool, 3> wanted) {
  const MemoryFormat format = output_format(x, weight, weight.dim() - 2);
  Tensor grad_x;
  Tensor grad_weight;
  Tensor grad_bias;
  if (wanted[0]) grad_x = make(x.sizes(), grad.scalar_type(), format);
  if (wanted[1]) grad_weight = make(weight.sizes(), grad.scalar_type(), format);
  if (wanted[2] && bias_sizes) grad_bias = make(*bias_sizes, grad.scalar_type());
  return {grad_x, grad_weight, grad_bias};
}

// The kernels below `convolution`, each with sizes of its own.
constexpr int64_t kOnes[] = {1, 1, 1};
constexpr int64_t kZeros[] = {0, 0, 0};

Tensor contiguous(const Tensor& x) { return make(x.sizes(), x.scalar_type()); }

Tensor slow_conv(const Tensor& x, const Tensor& weight, IntArrayRef kernel, const OptionalTensor& bias, IntArrayRef stride,
                 IntArrayRef padding) {
  const size_t spatial = kernel.size();
  Tensor out = convolve(x, weight, bias, stride, padding, IntArrayRef(kOnes, spatial), false, IntArrayRef(kZeros, spatial), 1);
  return spatial == 2 ? out : contiguous(out);
}

Tensor slow_conv_dilated(const Tensor& x, const Tensor& weight, IntArrayRef kernel, const OptionalTensor& bias, IntArrayRef stride,
                         IntArrayRef padding, IntArrayRef dilation) {
  const size_t spatial = kernel.size();
  Tensor out = convolve(x, weight, bias, stride, padding, dilation, false, IntArrayRef(kZeros, spatial), 1);
  return spatial == 2 ? out : contiguous(out);
}

Tensor slow_conv_transpose3d(const Tensor& x, const Tensor& weight, IntArrayRef /*kernel*/, const OptionalTensor& bias, IntArrayRef stride,
                             IntArrayRef padding, IntArrayRef output_padding, IntArrayRef dilation) {
  return contiguous(convolve(x, weight, bias, stride, padding, dilation, true, output_padding, 1));
}

Tensor depthwise(const Tensor& x, const Tensor& weight, IntArrayRef kernel, const OptionalTensor& bias, IntArrayRef stride,
                 IntArrayRef padding, IntArrayRef dilation) {
  const size_t spatial = kernel.size();
  return contiguous(convolve(x, weight, bias, stride, padding, dilation, false, IntArrayRef(kZeros, spatial), x.size(1)));
}

}  // namespace

void add_convolution(Table& table) {
  table.add("convolution", "", TORCH_FN(convolve));
  table.add("_convolution", "", TORCH_FN(convolve_with_flags));
  table.add("convolution_backward", "", TORCH_FN(convolve_backward));
  table.add("_slow_conv2d_forward", "", TORCH_FN(slow_conv));
  table.add("slow_conv3d_forward", "", TORCH_FN(slow_conv));
  table.add("slow_conv_dilated2d", "", TORCH_FN(slow_conv_dilated));
  table.add("slow_conv_dilated3d", "", TORCH_FN(slow_conv_dilated));
  table.add("slow_conv_transpose3d", "", TORCH_FN(slow_conv_transpose3d));
  table.add("_conv_depthwise2d", "", TORCH_FN(depthwise));
  table.add("conv_depthwise3d", "", TORCH_FN(depthwise));
}

}  // namespace pellucid::bridge::rules
