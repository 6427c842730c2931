// Operators about storage and metadata: copies, in-place restriding, checks that only look at values.
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

Tensor& copy_(Tensor& self, const Tensor& source, bool /*non_blocking*/) {
  TORCH_CHECK(at::is_expandable_to(source.sizes(), self.sizes()), "The size of tensor a (", self.sizes(),
              ") must match the size of tensor b (", source.sizes(), ")");
  return self;
}

const Tensor& as_strided_(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset) {
  auto* impl = self.unsafeGetTensorImpl();
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
  table.add("copy_", "", TORCH_FN(copy_));
  table.add("as_strided_", "", TORCH_FN(as_strided_));
  table.add("set_", "source_Tensor", TORCH_FN(set_to_tensor));
  table.add("_linalg_check_errors", "", TORCH_FN(check_errors));
}

}  // namespace pellucid::bridge::rules
