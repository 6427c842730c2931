// Losses without a structured Meta kernel.
#include "torch_bridge/rules/common.h"

#include <ATen/TensorIterator.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/LossMulti.h>

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

Tensor multi_margin_loss(const Tensor& x, const Tensor& target, const Scalar& p, const Scalar& /*margin*/, const OptionalTensor& weight,
                         int64_t reduction) {
  TORCH_CHECK(p.toLong() == 1 || p.toLong() == 2, "only p == 1 and p == 2 supported");
  int64_t frames = 0;
  int64_t classes = 0;
  at::native::multi_margin_loss_shape_check(frames, classes, x.dim(), x, target, weight);
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type Long but found ", target.scalar_type());
  // The target of a single sample without a batch may be a vector of one element, and the loss is as the target is.
  if (reduction == at::Reduction::None && target.dim() > 0) return make({frames}, x.scalar_type());
  return make({}, x.scalar_type());
}

std::tuple<Tensor, Tensor> multilabel_margin_loss(const Tensor& x, const Tensor& target, int64_t reduction) {
  int64_t frames = 0;
  int64_t classes = 0;
  at::native::multilabel_margin_loss_shape_check(frames, classes, x.dim(), x, target);
  const bool each = reduction == at::Reduction::None && target.dim() > 1;
  return {each ? make({frames}, x.scalar_type()) : make({}, x.scalar_type()), make(target.sizes(), x.scalar_type())};
}

// Operators that torch.nn defines in Python. Their gradients are computed with the loss.
std::tuple<Tensor, Tensor, Tensor, Tensor> chunked_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& /*target*/,
                                                                 const OptionalTensor& /*bias*/, const OptionalTensor& /*class_weight*/,
                                                                 std::string_view reduction, int64_t /*ignore_index*/, double /*smoothing*/,
                                                                 int64_t /*chunk*/, std::string_view /*policy*/, ScalarType /*acc_dtype*/,
                                                                 bool /*retain*/, bool with_input, bool with_weight, bool with_bias) {
  TORCH_CHECK_NOT_IMPLEMENTED(reduction == "mean" || reduction == "sum", "linear_cross_entropy does not support reduction=", reduction);
  const ScalarType dtype = x.scalar_type();
  const auto gradient = [&](bool wanted, IntArrayRef sizes) { return wanted ? make(sizes, dtype) : make({0, 0}, dtype); };
  return {make({}, dtype), gradient(with_input, x.sizes()), gradient(with_weight, weight.sizes()),
          with_bias ? make(without_last(weight.sizes()), dtype) : make({0}, dtype)};
}

Tensor chunked_cross_entropy_unreduced(const Tensor& x, const Tensor& /*weight*/, const Tensor& target, const OptionalTensor& /*bias*/,
                                       const OptionalTensor& /*class_weight*/, int64_t /*ignore_index*/, int64_t /*chunk*/,
                                       std::string_view /*policy*/, ScalarType /*acc_dtype*/) {
  return make(target.sizes(), x.scalar_type());
}

}  // namespace

void add_losses(Table& table) {
  table.add("binary_cross_entropy", "", TORCH_FN(binary_cross_entropy));
  table.add("huber_loss", "", TORCH_FN(huber_loss));
  table.add("nll_loss2d_forward", "", TORCH_FN(nll_loss2d_forward));
  table.add("torch_nn::_linear_cross_entropy_batch_chunked", "", TORCH_FN(chunked_cross_entropy));
  table.add("torch_nn::_linear_cross_entropy_batch_chunked_no_reduction", "", TORCH_FN(chunked_cross_entropy_unreduced));
  table.add("multi_margin_loss", "", TORCH_FN(multi_margin_loss));
  table.add("multilabel_margin_loss_forward", "", TORCH_FN(multilabel_margin_loss));
}

}  // namespace pellucid::bridge::rules
