// Recurrent layers: oneDNN's fused layer, which nn.LSTM takes on CPUs, and the fused cells of GPUs.
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

void check_cell(const Tensor& input, const Tensor& hidden, const OptionalTensor& input_bias, const OptionalTensor& hidden_bias,
                int64_t gates, const Tensor& state) {
  TORCH_CHECK(input.dim() == 2 && input.sizes() == hidden.sizes(), "expected gates of equal sizes, got ", input.sizes(), " and ",
              hidden.sizes());
  TORCH_CHECK(!given(input_bias) || (input_bias->dim() == 1 && input_bias->numel() == input.size(1) && given(hidden_bias) &&
                                     hidden_bias->sizes() == input_bias->sizes()),
              "expected biases of ", input.size(1), " elements");
  TORCH_CHECK(state.dim() == 2 && state.numel() * gates == input.numel(), "expected ", input.numel() / gates,
              " elements of hidden state, got ", state.sizes());
}

std::tuple<Tensor, Tensor, Tensor> fused_lstm_cell(const Tensor& input, const Tensor& hidden, const Tensor& cell,
                                                   const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  check_cell(input, hidden, input_bias, hidden_bias, 4, cell);
  return {make(cell.sizes(), cell.scalar_type()), make(cell.sizes(), cell.scalar_type()), make(input.sizes(), input.scalar_type())};
}

std::tuple<Tensor, Tensor> fused_gru_cell(const Tensor& input, const Tensor& hidden, const Tensor& state, const OptionalTensor& input_bias,
                                          const OptionalTensor& hidden_bias) {
  check_cell(input, hidden, input_bias, hidden_bias, 3, state);
  return {make(state.sizes(), state.scalar_type()), make({state.size(0), state.size(1) * 5}, state.scalar_type())};
}

std::tuple<Tensor, Tensor, Tensor> fused_lstm_cell_backward(const OptionalTensor& /*grad_hidden*/, const OptionalTensor& /*grad_cell*/,
                                                            const Tensor& cell, const Tensor& /*new_cell*/, const Tensor& workspace,
                                                            bool has_bias) {
  return {make(workspace.sizes(), workspace.scalar_type()), make(cell.sizes(), cell.scalar_type()),
          has_bias ? make({workspace.size(1)}, workspace.scalar_type()) : Tensor()};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> fused_gru_cell_backward(const Tensor& grad, const Tensor& workspace, bool has_bias) {
  const int64_t size = grad.size(1);
  const Tensor gates = make({workspace.size(0), 3 * size}, workspace.scalar_type());
  const auto bias = [&] { return has_bias ? make({3 * size}, workspace.scalar_type()) : Tensor(); };
  return {gates, make_like(gates), make(grad.sizes(), grad.scalar_type()), bias(), bias()};
}

}  // namespace

void add_recurrent(Table& table) {
  table.add("mkldnn_rnn_layer", "", TORCH_FN(mkldnn_rnn_layer));
  table.add("_thnn_fused_lstm_cell", "", TORCH_FN(fused_lstm_cell));
  table.add("_thnn_fused_gru_cell", "", TORCH_FN(fused_gru_cell));
  table.add("_thnn_fused_lstm_cell_backward_impl", "", TORCH_FN(fused_lstm_cell_backward));
  table.add("_thnn_fused_gru_cell_backward", "", TORCH_FN(fused_gru_cell_backward));
}

}  // namespace pellucid::bridge::rules
