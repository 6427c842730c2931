// Losses without a structured Meta kernel.
#include "torch_bridge/rules/common.h"

#include <ATen/TensorIterator.h>
#include <ATen/core/Reduction.h>

namespace pellucid::bridge::rules {

namespace {

Tensor reduced(const Tensor& unreduced, int64_t reduction) {
  return reduction == at::Reduction::None ? unreduced : make({}, unreduced.scalar_type());
}

Tensor binary_result(const Tensor& a, const Tensor& b) {
  Tensor undefined;
  return at::TensorIterator::binary_op(undefined, a, b).output();
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const OptionalTensor& /*weight*/, int64_t reduction) {
  TORCH_CHECK(x.sizes() == target.sizes(), "Using a target size (", target.sizes(), ") that is different to the input size (", x.sizes(),
              ")");
  return reduced(make_like(x), reduction);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  return reduced(binary_result(x, target), reduction);
}

std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& x, const Tensor& target, const OptionalTensor& /*weight*/, int64_t reduction,
                                              int64_t /*ignore_index*/) {
  TORCH_CHECK(target.dim() == 3, "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  TORCH_CHECK(x.dim() == 4, "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", x.dim());
  TORCH_CHECK(x.size(0) == target.size(0) && x.size(2) == target.size(1) && x.size(3) == target.size(2),
              "size mismatch (got input: ", x.sizes(), " , target: ", target.sizes());
  if (reduction == at::Reduction::None) return {make({x.size(0), x.size(2), x.size(3)}, x.scalar_type()), make({}, x.scalar_type())};
  return {make({}, x.scalar_type()), make({}, x.scalar_type())};
}

}  // namespace

void add_losses(Table& table) {
  table.add("binary_cross_entropy", "", TORCH_FN(binary_cross_entropy));
  table.add("huber_loss", "", TORCH_FN(huber_loss));
  table.add("nll_loss2d_forward", "", TORCH_FN(nll_loss2d_forward));
}

}  // namespace pellucid::bridge::rules
