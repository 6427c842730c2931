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

// The fused kernels of GPUs. Their random state lives on the GPU, which the fallback sees to.
using Flash = std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t, int64_t, Tensor, Tensor, Tensor>;

int64_t debug_length(const Tensor& query, int64_t query_length, int64_t key_length) {
  if (key_length <= 128) return 128;
  if (key_length <= 256) return 256;
  const int64_t block = query.size(-1) > 64 ? 128 : 256;
  return (query_length + block - 1) / block;
}

Flash flash_attention(const Tensor& query, const Tensor& key, const Tensor& /*value*/, double /*dropout*/, bool /*is_causal*/,
                      bool debug_mask, std::optional<double> /*scale*/) {
  const int64_t length = query.size(2);
  const int64_t key_length = key.size(2);
  const ScalarType dtype = query.scalar_type();
  Tensor debug =
      debug_mask ? make({query.size(0), query.size(1), length, debug_length(query, length, key_length)}, dtype) : make({0}, dtype);
  return {make_like(query),
          make({query.size(0), query.size(1), length}, at::kFloat),
          {},
          {},
          length,
          key_length,
          make({2}, ScalarType::UInt64),
          make({}, ScalarType::UInt64),
          std::move(debug)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_attention(const Tensor& query, const Tensor& /*key*/, const Tensor& value,
                                                               const OptionalTensor& /*bias*/, bool log_sum_exp, double /*dropout*/,
                                                               bool /*is_causal*/, std::optional<double> /*scale*/) {
  const int64_t batch = query.size(0);
  const int64_t heads = query.size(1);
  const int64_t length = query.size(2);
  const int64_t size = value.size(-1);
  const Tensor out = make_strided({batch, heads, length, size}, {length * heads * size, size, heads * size, 1}, query.scalar_type());
  return {out, make({batch, heads, log_sum_exp ? (length + 31) / 32 * 32 : 0}, at::kFloat), make({}, at::kLong), make({}, at::kLong)};
}

std::tuple<Tensor, Tensor, Tensor> transform_bias_rescale_qkv(const Tensor& qkv, const Tensor& bias, int64_t heads) {
  TORCH_CHECK(qkv.dim() == 3 && bias.dim() == 1 && bias.size(0) == qkv.size(2), "expected qkv of [batch, length, 3 * embed] and its bias");
  const int64_t embed = bias.size(0) / 3;
  TORCH_CHECK(embed % heads == 0, "expected an embedding of a multiple of ", heads);
  const Tensor all = make({3, qkv.size(0), heads, qkv.size(1), embed / heads}, qkv.scalar_type());
  return {all.select(0, 0), all.select(0, 1), all.select(0, 2)};
}

}  // namespace

void add_attention(Table& table) {
  table.add("_safe_softmax", "", TORCH_FN(safe_softmax));
  table.add("_masked_softmax", "", TORCH_FN(masked_softmax));
  table.add("_scaled_dot_product_flash_attention_for_cpu", "", TORCH_FN(flash_attention_for_cpu));
  table.add("_transformer_encoder_layer_fwd", "", TORCH_FN(transformer_encoder_layer));
  table.add("_native_multi_head_attention", "", TORCH_FN(multi_head_attention));
  table.add("_scaled_dot_product_flash_attention", "", TORCH_FN(flash_attention));
  table.add("_scaled_dot_product_efficient_attention", "", TORCH_FN(efficient_attention));
  table.add("_transform_bias_rescale_qkv", "", TORCH_FN(transform_bias_rescale_qkv));
}

}  // namespace pellucid::bridge::rules
