// Operators about storage and metadata: copies, in-place restriding, checks that only look at values, updates that only write them.
#include "torch_bridge/rules/like.h"

#include <ATen/native/Resize.h>

namespace pellucid::bridge::rules {

namespace {

constexpr LikeRule kNoResult[] = {
    {"_assert_async", ""},
    {"_assert_async", "msg"},
    {"_fused_adam_", ""},
    {"_fused_adam_", "tensor_lr"},
    {"_fused_adamw_", ""},
    {"_fused_adamw_", "tensor_lr"},
    {"_fused_sgd_", ""},
    {"_fused_sgd_", "tensor_lr"},
    {"_fused_adagrad_", ""},
    {"_fused_adagrad_", "tensor_lr"},
    {"_amp_foreach_non_finite_check_and_unscale_", ""},
    {"record_stream", ""},
};

constexpr LikeRule kLikeAnArgument[] = {
    {"_functional_assert_async", "msg", {{"dep_token", Layout::kPreserved}}},
};

Tensor dep_token(std::optional<ScalarType> /*dtype*/, std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                 std::optional<bool> /*pin*/, std::optional<MemoryFormat> /*format*/) {
  return make({}, c10::typeMetaToScalarType(c10::get_default_dtype()));
}

Tensor& copy_(Tensor& self, const Tensor& source, bool /*non_blocking*/) {
  TORCH_CHECK(at::is_expandable_to(source.sizes(), self.sizes()), "The size of tensor a (", self.sizes(),
              ") must match the size of tensor b (", source.sizes(), ")");
  return self;
}

void check_in_bounds(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  at::native::checkAsStridedArgs(sizes, strides, offset);
  at::native::checkInBoundsForStorage(sizes, strides, offset, self.dtype(), self.storage());
}

Tensor as_strided(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset) {
  check_in_bounds(self, sizes, strides, offset.value_or(self.storage_offset()));
  Tensor view = at::detail::make_tensor<at::TensorImpl>(at::TensorImpl::VIEW, at::Storage(self.storage()), self.key_set(), self.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset.value_or(self.storage_offset()));
  return view;
}

const Tensor& as_strided_(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset) {
  auto* impl = self.unsafeGetTensorImpl();
  check_in_bounds(self, sizes, strides, offset.value_or(impl->storage_offset()));
  impl->set_sizes_and_strides(sizes, strides, offset.value_or(impl->storage_offset()));
  return self;
}

Tensor& set_to_tensor(Tensor& self, const Tensor& source) {
  auto* impl = self.unsafeGetTensorImpl();
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), "Could not set tensor of type ", source.scalar_type(), " to a tensor of type ",
              self.scalar_type());
  impl->set_storage_keep_dtype(source.storage());
  impl->set_sizes_and_strides(source.sizes(), source.strides(), source.storage_offset());
  return self;
}

// A check of values whose failure the real call reports.
void check_errors(const Tensor& /*info*/, std::string_view /*api_name*/, bool /*is_matrix*/) {}

}  // namespace

void add_storage(Table& table) {
  add_all(table, kNoResult);
  add_all(table, kLikeAnArgument);
  table.add("_make_dep_token", "", TORCH_FN(dep_token));
  table.add("copy_", "", TORCH_FN(copy_));
  table.add("as_strided", "", TORCH_FN(as_strided));
  table.add("as_strided_", "", TORCH_FN(as_strided_));
  table.add("set_", "source_Tensor", TORCH_FN(set_to_tensor));
  table.add("_linalg_check_errors", "", TORCH_FN(check_errors));
}

}  // namespace pellucid::bridge::rules
