// Recurrent layers: oneDNN's fused layer, which nn.LSTM takes on CPUs.
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

std::tuple<Tensor, Tensor, Tensor, Tensor> mkldnn_rnn_layer(const Tensor& x, const Tensor& /*weight_ih*/, const Tensor& /*weight_hh*/,
                                                            const Tensor& /*bias_ih*/, const Tensor& /*bias_hh*/, const Tensor& hidden,
                                                            const Tensor& cell, bool /*reverse*/, IntArrayRef /*batch_sizes*/,
                                                            int64_t /*mode*/, int64_t hidden_size, int64_t /*num_layers*/,
                                                            bool /*has_biases*/, bool /*bidirectional*/, bool /*batch_first*/,
                                                            bool /*train*/) {
  TORCH_CHECK(x.dim() == 3, "mkldnn_rnn_layer: expected a 3-D input");
  // The layer is given [length, batch, features] whatever batch_first says. The workspace is seen by its backward only.
  const auto like = [&](const Tensor& state) {
    return state.defined() ? make(state.sizes(), state.scalar_type()) : make({0}, x.scalar_type());
  };
  return {make({x.size(0), x.size(1), hidden_size}, x.scalar_type()), like(hidden), like(cell), make({0}, at::kByte)};
}

}  // namespace

void add_recurrent(Table& table) { table.add("mkldnn_rnn_layer", "", TORCH_FN(mkldnn_rnn_layer)); }

}  // namespace pellucid::bridge::rules
