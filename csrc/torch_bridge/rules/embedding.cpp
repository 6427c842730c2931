// Embeddings, bags of them, and their gradients.
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

constexpr int64_t kSum = 0;
constexpr int64_t kMax = 2;

void check_indices(const Tensor& indices, const char* name, const char* function) {
  TORCH_CHECK(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt, "Expected tensor for argument #1 '", name,
              "' to have one of the following scalar types: Long, Int; but got ", indices.toString(),
              " instead (while checking arguments for ", function, ")");
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t /*padding_idx*/, bool /*scale_grad*/, bool /*sparse*/) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_indices(indices, "indices", "embedding");
  Sizes sizes = sizes_of(indices);
  sizes.push_back(weight.size(1));
  return make(sizes, weight.scalar_type());
}

Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t count, int64_t /*padding_idx*/, bool /*scale_grad*/) {
  check_indices(indices, "indices", "embedding_backward");
  return make({count, grad.size(-1)}, grad.scalar_type());
}

// What the CPU kernel has no need of, it leaves empty: with a sum over rows it can add up at once.
bool is_sum_at_once(const Tensor& weight, const OptionalTensor& scale, int64_t padding) {
  const ScalarType dtype = weight.scalar_type();
  const bool fast = dtype == at::kFloat || dtype == at::kHalf || dtype == at::kBFloat16;
  return fast && weight.stride(1) == 1 && padding < 0 && (!given(scale) || scale->stride(0) == 1);
}

Four bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode, const OptionalTensor& scale, bool last_offset,
         int64_t padding, bool forward_only) {
  check_indices(indices, "indices", "embedding_bag");
  check_indices(offsets, "offsets", "embedding_bag");
  TORCH_CHECK(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
  TORCH_CHECK(c10::isFloatingType(weight.scalar_type()), "Expected weight to be of a floating point type, got ", weight.scalar_type());
  TORCH_CHECK(offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets.dim());
  TORCH_CHECK(!last_offset || offsets.size(0) >= 1, "include_last_offset: number of offset should be at least 1");
  if (given(scale)) {
    TORCH_CHECK(mode == kSum,
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='",
                mode == kMax ? "max" : "mean", "').");
    TORCH_CHECK(scale->dim() == 1 && scale->numel() == indices.numel(), "expected per_sample_weights to have the size of the indices, ",
                indices.sizes(), ", got ", scale->sizes());
  }
  const int64_t bags = offsets.size(0) - (last_offset ? 1 : 0);
  const Tensor out = make({bags, weight.size(1)}, weight.scalar_type());
  if (!device().is_cpu()) {
    const ScalarType dtype = indices.scalar_type();
    return {out, make({indices.size(0)}, dtype), make(offsets.sizes(), dtype),
            mode == kMax ? make({bags, weight.size(1)}, dtype) : make({0}, dtype)};
  }
  const ScalarType dtype = offsets.scalar_type();
  const bool at_once = mode == kSum && is_sum_at_once(weight, scale, padding);
  const Tensor bag_of_index = make({at_once ? 0 : indices.size(0)}, dtype);
  const Tensor bag_size = forward_only && mode == kSum ? make(offsets.sizes(), dtype) : make({bags}, dtype);
  return {out, bag_of_index, bag_size, mode == kMax ? make({bags, weight.size(1)}, dtype) : make(bag_size.sizes(), dtype)};
}

Four embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool /*scale_grad*/, int64_t mode, bool /*sparse*/,
                   const OptionalTensor& scale, bool last_offset, int64_t padding) {
  return bag(weight, indices, offsets, mode, scale, last_offset, padding, false);
}

Four embedding_bag_forward_only(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool /*scale_grad*/, int64_t mode,
                                bool /*sparse*/, const OptionalTensor& scale, bool last_offset, int64_t padding) {
  return bag(weight, indices, offsets, mode, scale, last_offset, padding, true);
}

Tensor embedding_bag_backward(const Tensor& grad, const Tensor& /*indices*/, const Tensor& /*offsets*/, const Tensor& /*bag_of_index*/,
                              const Tensor& /*bag_size*/, const Tensor& /*maximum*/, int64_t count, bool /*scale_grad*/, int64_t /*mode*/,
                              bool sparse, const OptionalTensor& /*scale*/, int64_t /*padding*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(!sparse, "a sparse gradient of embedding_bag has no fake");
  return make({count, grad.size(1)}, grad.scalar_type());
}

Tensor embedding_bag_dense_backward(const Tensor& grad, const Tensor& /*indices*/, const Tensor& /*bag_of_index*/,
                                    const Tensor& /*bag_size*/, const Tensor& /*maximum*/, int64_t count, bool /*scale_grad*/,
                                    int64_t /*mode*/, const OptionalTensor& /*scale*/, int64_t /*padding*/) {
  return make({count, grad.size(1)}, grad.scalar_type());
}

Tensor embedding_bag_scale_backward(const Tensor& grad, const Tensor& /*weight*/, const Tensor& indices, const Tensor& /*offsets*/,
                                    const Tensor& /*bag_of_index*/, int64_t mode, int64_t /*padding*/) {
  TORCH_CHECK(mode == kSum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  return make({indices.size(0)}, grad.scalar_type());
}

}  // namespace

void add_embedding(Table& table) {
  table.add("embedding", "", TORCH_FN(embedding));
  table.add("embedding_dense_backward", "", TORCH_FN(embedding_backward));
  table.add("_embedding_bag", "", TORCH_FN(embedding_bag));
  table.add("_embedding_bag_forward_only", "", TORCH_FN(embedding_bag_forward_only));
  table.add("_embedding_bag_backward", "", TORCH_FN(embedding_bag_backward));
  table.add("_embedding_bag_dense_backward", "", TORCH_FN(embedding_bag_dense_backward));
  table.add("_embedding_bag_per_sample_weights_backward", "", TORCH_FN(embedding_bag_scale_backward));
}

}  // namespace pellucid::bridge::rules
