// What neural networks are made of: softmax, normalisation, dropout, attention, recurrent cells, losses.
#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

Geometry nothing(Call& call) { return dense({call.constant(0)}); }

std::vector<Geometry> layer_norm(Call& call) {
  const Exprs sizes = call.sizes(0);
  const Exprs shape = call.integers(1);
  for (size_t i = 0; i < shape.size(); ++i) call.equal(sizes[sizes.size() - shape.size() + i], shape[i]);
  Exprs statistics = sizes;
  for (size_t i = sizes.size() - shape.size(); i < sizes.size(); ++i) statistics[i] = call.constant(1);
  return {dense(sizes), dense(statistics), dense(statistics)};
}

std::vector<Geometry> rms_norm(Call& call) {
  std::vector<Geometry> all = layer_norm(call);
  all.pop_back();
  return all;
}

// Statistics by channel where the operator gives any (at the hints they are empty otherwise).
std::vector<Geometry> batch_norm(Call& call) {
  const Exprs sizes = call.sizes(0);
  std::vector<Geometry> result{dense(sizes)};
  for (size_t i = 1; i < call.results().size(); ++i) {
    const at::Tensor& statistics = call.result(i);
    const bool by_channel = statistics.defined() && statistics.dim() == 1 && statistics.size(0) != 0;
    result.push_back(by_channel ? dense({sizes[1]}) : nothing(call));
  }
  return result;
}

std::vector<Geometry> group_norm(Call& call) {
  const Expr groups = call.constant(call.number(6));
  const Exprs statistics{call.integer(3), groups};
  call.is(call.build().mod(call.integer(4), groups), 0);
  return {dense(call.sizes(0)), dense(statistics), dense(statistics)};
}

// [batch, heads, queries, size] with [batch, heads, keys, size] and [batch, heads, keys, value size].
Exprs attended(Call& call) {
  Exprs sizes = call.sizes(0);
  const Exprs key = call.sizes(1);
  const Exprs value = call.sizes(2);
  call.equal(sizes.back(), key.back());
  call.equal(key[key.size() - 2], value[value.size() - 2]);
  sizes.back() = value.back();
  return sizes;
}

std::vector<Geometry> attention(Call& call) { return call.one(attended(call)); }

std::vector<Geometry> flash_attention(Call& call) {
  const Exprs query = call.sizes(0);
  // The logarithms of the sums are laid out [batch, queries, heads], seen as [batch, heads, queries].
  Exprs sums{query[0], query[1], query[2]};
  return {dense(attended(call)), dense(std::move(sums))};
}

std::vector<Geometry> attention_math(Call& call) {
  const Exprs query = call.sizes(0);
  const Exprs key = call.sizes(1);
  Exprs weights = query;
  weights.back() = key[key.size() - 2];
  return {dense(attended(call)), dense(std::move(weights))};
}

// The negative log likelihood of classes: the target's sizes, or none where it is reduced.
std::vector<Geometry> nll_loss(Call& call) {
  const Exprs target = call.sizes(1);
  const Exprs self = call.sizes(0);
  if (!target.empty()) call.equal(self[0], target[0]);
  for (size_t i = 1; i < target.size(); ++i) call.equal(self[i + 1], target[i]);
  return {dense(call.result(0).dim() == 0 ? Exprs{} : target), dense({})};
}

// Losses of an input beside a target: expanded to each other, or reduced.
std::vector<Geometry> loss(Call& call) {
  Exprs sizes = call.broadcast(call.sizes(0), call.sizes(1));
  return call.one(call.result(0).dim() == 0 ? Exprs{} : sizes);
}

// Losses by row of the input, or reduced.
std::vector<Geometry> loss_by_row(Call& call) {
  const Exprs self = call.sizes(0);
  return call.one(call.result(0).dim() == 0 ? Exprs{} : Exprs{self[0]});
}

std::vector<Geometry> multilabel_loss(Call& call) { return {loss_by_row(call)[0], dense(call.sizes(1))}; }

std::vector<Geometry> glu(Call& call) {
  Exprs sizes = call.sizes(0);
  Expr& size = sizes[call.dim(1, sizes.size())];
  call.is(call.build().mod(size, call.constant(2)), 0);
  size = call.build().floor_div(size, call.constant(2));
  return call.one(std::move(sizes));
}

// The fused cells: hidden and cell state of the old state's sizes, and the gates that backward wants.
std::vector<Geometry> fused_cell(Call& call) {
  const Exprs state = call.sizes(2);
  std::vector<Geometry> result;
  for (const at::Tensor& tensor : call.results()) {
    Exprs sizes = state;
    const int64_t hidden = call.result(0).size(1);
    if (hidden != 0 && tensor.size(1) % hidden == 0) sizes[1] = call.build().scale(sizes[1], tensor.size(1) / hidden);
    result.push_back(dense(std::move(sizes)));
  }
  return result;
}

}  // namespace

void add_networks(Table& table) {
  table.add({"_softmax", "_log_softmax", "_safe_softmax", "softmax.int", "log_softmax.int"}, same_as_first);
  table.add({"native_dropout", "_fused_dropout"}, all_same_as_first);
  table.add({"dropout", "alpha_dropout"}, same_as_first);
  table.add({"native_layer_norm"}, layer_norm);
  table.add({"_fused_rms_norm"}, rms_norm);
  table.add({"native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit.no_stats", "_native_batch_norm_legit_no_training",
             "_batch_norm_with_update", "_batch_norm_no_update"},
            batch_norm);
  table.add({"native_group_norm"}, group_norm);
  table.add({"scaled_dot_product_attention"}, attention);
  table.add({"_scaled_dot_product_flash_attention_for_cpu"}, flash_attention);
  table.add({"_scaled_dot_product_attention_math"}, attention_math);
  table.add({"nll_loss_forward", "nll_loss2d_forward"}, nll_loss);
  table.add({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy"}, loss);
  table.add({"_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"}, fused_cell);
  table.add({"log_sigmoid_forward"}, all_same_as_first);
  table.add({"log_sigmoid", "hardswish", "rrelu_with_noise", "channel_shuffle"}, same_as_first);
  table.add({"_prelu_kernel"}, pointwise);
  table.add({"binary_cross_entropy_with_logits"}, loss);
  table.add({"multi_margin_loss"}, loss_by_row);
  table.add({"multilabel_margin_loss_forward"}, multilabel_loss);
  table.add({"glu"}, glu);
}

}  // namespace pellucid::bridge::sym_rules
