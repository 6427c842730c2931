// Making fakes and twins out of TensorImpls.
#include "torch_bridge/fake_twin.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/List.h>

#include <algorithm>

#include "torch_bridge/fake_constant.h"
#include "torch_bridge/fake_errors.h"

namespace pellucid::bridge {

namespace {

// The one place where sizes are read. With symbolic sizes the twin gets the hints here, and after the call a rule of the operator's family
// sets the symbolic sizes of the results; until then symbolic tensors raise in sizes().
at::Tensor plain_copy(const at::Tensor& tensor) {
  at::Tensor copy = at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  return copy;
}

// A real tensor's storage without the data: as many bytes, and guarded, because views of it become fakes.
c10::Storage empty_storage_like(const at::Tensor& tensor) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(),
                                                       c10::GetAllocator(c10::kMeta), true);
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(kNoValues);
  return c10::Storage(std::move(storage));
}

at::Tensor plain_alias(const at::Tensor& tensor) {
  // View kernels copy the key set of what they view: without the autograd keys the view would be an inference tensor.
  c10::DispatchKeySet keys(c10::DispatchKey::Meta);
  if (!tensor.is_inference()) {
    keys = keys | c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView) | c10::DispatchKeySet(c10::DispatchKey::AutogradMeta);
  }
  c10::Storage storage = is_fake_impl(tensor.unsafeGetTensorImpl()) ? tensor.storage() : empty_storage_like(tensor);
  at::Tensor alias = at::detail::make_tensor<at::TensorImpl>(at::TensorImpl::VIEW, std::move(storage), keys, tensor.dtype());
  auto* impl = alias.unsafeGetTensorImpl();
  impl->set_storage_offset(tensor.storage_offset());
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return alias;
}

at::Tensor make_twin(const at::Tensor& tensor, bool share) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  at::Tensor twin = share ? plain_alias(tensor) : plain_copy(tensor);
  auto* twin_impl = twin.unsafeGetTensorImpl();
  if (tensor.is_conj()) twin_impl->_set_conj(true);
  if (tensor.is_neg()) twin_impl->_set_neg(true);
  if (impl->is_wrapped_number()) twin_impl->set_wrapped_number(true);
  return twin;
}

// What indexing does with a mask first: one vector of positions for each of its dimensions.
void push_positions(const at::Tensor& mask, const at::Tensor& indexed, c10::List<std::optional<at::Tensor>>& indices) {
  const auto first = static_cast<int64_t>(indices.size());
  for (int64_t dim = 0; dim < mask.dim(); ++dim) {
    TORCH_CHECK_INDEX(first + dim < indexed.dim() && mask.size(dim) == indexed.size(first + dim), "The shape of the mask ", mask.sizes(),
                      " at index ", dim, " does not match the shape of the indexed tensor ", indexed.sizes(), " at index ", first + dim);
  }
  const bool* values = mask.const_data_ptr<bool>();
  const int64_t count = std::count(values, values + mask.numel(), true);
  for (int64_t dim = 0; dim < mask.dim(); ++dim) indices.push_back(at::Tensor(at::detail::empty_meta({count}, at::kLong)));
}

bool needs_twin(const at::Tensor& tensor) {
  if (!tensor.defined()) return false;
  const auto* impl = tensor.unsafeGetTensorImpl();
  return is_fake_impl(impl) || !impl->device().is_meta();
}

}  // namespace

void make_fake(at::TensorImpl* impl, c10::Device device, bool guard) {
  impl->set_fake_device(device);
  if (guard) {
    auto* storage = impl->unsafe_storage().unsafeGetStorageImpl();
    storage->release_data_and_set_meta_custom_data_ptr_error_msg_(kNoValues);
  }
}

c10::Device repair_fake(at::TensorImpl* impl) {
  const auto type =
      c10::dispatchKeyToDeviceType(c10::toRuntimePerBackendFunctionalityKey(c10::DispatchKey::Dense, impl->key_set().highestBackendKey()));
  impl->set_and_normalize_fake_device(c10::Device(type, type == c10::kCPU ? -1 : 0));
  return impl->device();
}

at::Tensor fake_like_real(const at::Tensor& real, c10::Device device) {
  at::Tensor fake = plain_copy(real);
  make_fake(fake.unsafeGetTensorImpl(), device, true);
  return fake;
}

const at::Tensor& Twins::twin_of(const at::Tensor& original) {
  for (const auto& pair : pairs_) {
    if (pair.original.is_same(original)) return pair.twin;
  }
  pairs_.push_back({make_twin(original, share_), original});
  return pairs_.back().twin;
}

void Twins::replace_argument(c10::IValue& argument, const at::Tensor& indexed) {
  if (argument.isTensor()) {
    const at::Tensor& tensor = argument.toTensor();
    if (needs_twin(tensor)) argument = twin_of(tensor);
  } else if (argument.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : argument.toTensorList()) list.push_back(needs_twin(tensor) ? twin_of(tensor) : tensor);
    argument = std::move(list);
  } else if (argument.isList() && argument.toList().elementType()->kind() == c10::TypeKind::OptionalType) {
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue& item : argument.toListRef()) {
      if (item.isNone()) {
        list.push_back(std::nullopt);
      } else {
        const at::Tensor& tensor = item.toTensor();
        if (tensor.defined() && tensor.scalar_type() == at::kBool) {
          if (const at::Tensor mask = constant_of(tensor.unsafeGetTensorImpl()); mask.defined()) {
            push_positions(mask, indexed, list);
            continue;
          }
        }
        list.push_back(needs_twin(tensor) ? twin_of(tensor) : tensor);
      }
    }
    argument = std::move(list);
  }
}

bool Twins::restore(at::Tensor& result) const {
  for (const auto& [twin, original] : pairs_) {
    if (!twin.is_same(result)) continue;
    auto* from = twin.unsafeGetTensorImpl();
    auto* to = original.unsafeGetTensorImpl();
    if (!share_) {
      const size_t bytes = from->unsafe_storage().nbytes();
      auto* storage = to->unsafe_storage().unsafeGetStorageImpl();
      if (to->sizes() != from->sizes() || to->strides() != from->strides()) {
        if (bytes + to->storage_offset() * to->itemsize() > storage->nbytes())
          storage->set_nbytes(bytes + to->storage_offset() * to->itemsize());
        to->set_sizes_and_strides(from->sizes(), from->strides());
      }
    } else {
      if (from->unsafe_storage().unsafeGetStorageImpl() != to->unsafe_storage().unsafeGetStorageImpl()) {
        to->set_storage_keep_dtype(from->storage());
      }
      to->set_sizes_and_strides(from->sizes(), from->strides(), from->storage_offset());
    }
    result = original;
    return true;
  }
  return false;
}

}  // namespace pellucid::bridge
