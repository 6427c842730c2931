// A TensorImpl that answers questions for ints itself, where PyTorch's would look for a Python subclass to ask.
#include "torch_bridge/sym_tensor.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <utility>

namespace pellucid::bridge {

namespace {

thread_local bool specializing = false;

class SymbolicImpl final : public c10::TensorImpl {
 public:
  using TensorImpl::TensorImpl;

  int64_t size_custom(int64_t d) const override {
    if (!specializing) return TensorImpl::size_custom(d);
    return sym_size(d).guard_int(__FILE__, __LINE__);
  }
  c10::IntArrayRef sizes_custom() const override { return specializing ? as_ints(sym_sizes(), sizes_) : TensorImpl::sizes_custom(); }
  c10::IntArrayRef strides_custom() const override {
    return specializing ? as_ints(sym_strides(), strides_) : TensorImpl::strides_custom();
  }
  int64_t numel_custom() const override { return specializing ? sym_numel().guard_int(__FILE__, __LINE__) : TensorImpl::numel_custom(); }
  int64_t storage_offset_custom() const override {
    return specializing ? sym_storage_offset().guard_int(__FILE__, __LINE__) : TensorImpl::storage_offset_custom();
  }

  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version, bool may_change) const override {
    return copied(version, may_change);
  }
  c10::intrusive_ptr<TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version, bool may_change) const override {
    return copied(std::move(version), may_change);
  }

 private:
  // What is handed out lives as long as the tensor has as many dimensions.
  static c10::IntArrayRef as_ints(c10::SymIntArrayRef symbols, std::vector<int64_t>& ints) {
    ints.resize(symbols.size());
    for (size_t i = 0; i < symbols.size(); ++i) ints[i] = symbols[i].guard_int(__FILE__, __LINE__);
    return ints;
  }

  template <class Version>
  c10::intrusive_ptr<TensorImpl> copied(Version&& version, bool may_change) const {
    if (c10::impl::TorchDispatchModeTLS::stack_len() > 0) {
      return TensorImpl::shallow_copy_and_detach(std::forward<Version>(version), may_change);
    }
    auto copy = c10::make_intrusive<SymbolicImpl>(c10::Storage(storage()), key_set_, data_type_);
    copy_tensor_metadata(this, copy.get(), std::forward<Version>(version), may_change);
    return copy;
  }

  mutable std::vector<int64_t> sizes_;
  mutable std::vector<int64_t> strides_;
};

}  // namespace

at::Tensor symbolic_tensor(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, at::ScalarType dtype) {
  const at::Tensor plain = at::detail::empty_strided_symint_meta(sizes, strides, dtype);
  at::Tensor result =
      at::detail::make_tensor<SymbolicImpl>(c10::Storage(plain.storage()), c10::DispatchKeySet(c10::DispatchKey::Meta), plain.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return result;
}

at::Tensor symbolic_alias(const at::Tensor& base, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, const c10::SymInt& offset,
                          caffe2::TypeMeta dtype) {
  // Keys of autograd and views too, or views of it would be inference tensors.
  c10::DispatchKeySet keys(c10::DispatchKey::Meta);
  if (!base.is_inference()) {
    keys = keys | c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView) | c10::DispatchKeySet(c10::DispatchKey::AutogradMeta);
  }
  at::Tensor result = at::detail::make_tensor<SymbolicImpl>(at::TensorImpl::VIEW, c10::Storage(base.storage()), keys, dtype);
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return result;
}

bool set_specializing(bool on) { return std::exchange(specializing, on); }

}  // namespace pellucid::bridge
