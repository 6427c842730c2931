// Attention: the fused kernels of the CPU and of nn.TransformerEncoderLayer's and nn.MultiheadAttention's fast paths.
#include "torch_bridge/rules/common.h"

#include <ATen/ops/_softmax_meta_dispatch.h>

namespace pellucid::bridge::rules {

namespace {

Tensor safe_softmax(const Tensor& x, int64_t dim, std::optional<ScalarType> dtype) {
  return at::meta::_softmax(dtype && *dtype != x.scalar_type() ? make_like(x, *dtype) : x, dim, false);
}

Tensor masked_softmax(const Tensor& x, const Tensor& mask, std::optional<int64_t> /*dim*/, std::optional<int64_t> /*mask_type*/) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  return make_like(x);
}

std::tuple<Tensor, Tensor> flash_attention_for_cpu(const Tensor& query, const Tensor& /*key*/, const Tensor& /*value*/, double /*dropout*/,
                                                   bool /*is_causal*/, const OptionalTensor& /*mask*/, std::optional<double> /*scale*/) {
  // The log-sum-exp is [batch, length, heads] in memory, seen as [batch, heads, length].
  const int64_t batch = query.size(0);
  const int64_t heads = query.size(1);
  const int64_t length = query.size(2);
  return {make_like(query), make_strided({batch, heads, length}, {heads * length, 1, heads}, accumulation_type(query.scalar_type()))};
}

Tensor transformer_encoder_layer(const Tensor& src, int64_t /*embed*/, int64_t /*heads*/, const Tensor& /*qkv_weight*/,
                                 const Tensor& /*qkv_bias*/, const Tensor& /*proj_weight*/, const Tensor& /*proj_bias*/, bool /*use_gelu*/,
                                 bool /*norm_first*/, double /*eps*/, const Tensor& /*norm_weight_1*/, const Tensor& /*norm_bias_1*/,
                                 const Tensor& /*norm_weight_2*/, const Tensor& /*norm_bias_2*/, const Tensor& /*ffn_weight_1*/,
                                 const Tensor& /*ffn_bias_1*/, const Tensor& /*ffn_weight_2*/, const Tensor& /*ffn_bias_2*/,
                                 const OptionalTensor& /*mask*/, std::optional<int64_t> /*mask_type*/) {
  return make(src.sizes(), src.scalar_type());
}

std::tuple<Tensor, Tensor> multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& /*value*/, int64_t embed,
                                                int64_t heads, const Tensor& /*qkv_weight*/, const Tensor& /*qkv_bias*/,
                                                const Tensor& /*proj_weight*/, const Tensor& /*proj_bias*/, const OptionalTensor& /*mask*/,
                                                bool need_weights, bool average_weights, std::optional<int64_t> /*mask_type*/) {
  TORCH_CHECK(query.dim() == 3, "expected 3-D `query`, got ", query.dim(), "-D tensor");
  const int64_t batch = query.size(0);
  const int64_t length = query.size(1);
  Tensor weights;
  if (need_weights && average_weights) weights = make({batch, length, key.size(1)}, query.scalar_type());
  if (need_weights && !average_weights) weights = make({batch, heads, length, key.size(1)}, query.scalar_type());
  return {make({batch, length, embed}, query.scalar_type()), weights};
}

}  // namespace

void add_attention(Table& table) {
  table.add("_safe_softmax", "", TORCH_FN(safe_softmax));
  table.add("_masked_softmax", "", TORCH_FN(masked_softmax));
  table.add("_scaled_dot_product_flash_attention_for_cpu", "", TORCH_FN(flash_attention_for_cpu));
  table.add("_transformer_encoder_layer_fwd", "", TORCH_FN(transformer_encoder_layer));
  table.add("_native_multi_head_attention", "", TORCH_FN(multi_head_attention));
}

}  // namespace pellucid::bridge::rules
