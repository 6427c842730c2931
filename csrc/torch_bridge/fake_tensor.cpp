// Fakes of real tensors, as Python objects. Knows the Python binding of tensors; operators are fake_fallback.cpp's.
#include "torch_bridge/fake_tensor.h"

#include <ATen/EmptyTensor.h>
#include <ATen/SavedTensorHooks.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/python_variable.h>

#include "torch_bridge/fake_composites.h"
#include "torch_bridge/fake_twin.h"

namespace pellucid::bridge {

namespace {

// Why a tensor has no fake, or null.
const char* unsupported(const at::Tensor& tensor) {
  const auto* impl = tensor.unsafeGetTensorImpl();
  constexpr c10::DispatchKeySet kWrappers({c10::DispatchKey::Python, c10::DispatchKey::Functionalize, c10::DispatchKey::Batched,
                                           c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
                                           c10::DispatchKey::NestedTensor, c10::DispatchKey::BatchedNestedTensor,
                                           c10::DispatchKey::ZeroTensor});
  if (!tensor.defined()) return "an undefined tensor";
  if (impl->key_set().has_any(kWrappers)) return "a wrapper tensor (subclass, vmap, functionalized, nested ...)";
  if (impl->layout() != c10::kStrided) return "a tensor that isn't strided";
  if (tensor.is_quantized()) return "a quantized tensor";
  if (impl->has_symbolic_sizes_strides()) return "a tensor with symbolic sizes";
  if (!tensor.has_storage()) return "a tensor without storage";
  if (tensor._fw_grad(0).defined()) return "a tensor with a forward-mode gradient";
  return nullptr;
}

// Same storage size and offset, so that as_strided on a fake has the room that it has on the real tensor.
at::Tensor with_geometry_of(const at::Tensor& real) {
  const c10::InferenceMode mode(real.is_inference());
  auto* allocator = c10::GetAllocator(c10::kMeta);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), real.storage().nbytes(), allocator, true);
  at::Tensor fake =
      at::detail::make_tensor<at::TensorImpl>(c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::Meta), real.dtype());
  auto* impl = fake.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(real.sizes(), real.strides(), real.storage_offset());
  if (real.is_conj()) impl->_set_conj(true);
  if (real.is_neg()) impl->_set_neg(true);
  if (real.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  // A real meta tensor stays what it is: it has no data either, and its operators are shape functions already.
  if (!real.is_meta()) make_fake(impl, real.device(), true);
  if (!real.is_inference())
    impl->set_version_counter(c10::VariableVersion(real.unsafeGetTensorImpl()->version_counter().current_version()));
  return fake;
}

py::Ref wrap_parameter(const at::Tensor& fake, bool requires_grad) {
  const auto tensor = py::Ref::steal(THPVariable_Wrap(fake));
  if (!tensor) return {};
  const auto flag = py::Ref::share(requires_grad ? Py_True : Py_False);
  return py::Ref::steal(PyObject_CallMethod(THPVariableClass, "_make_subclass", "OOO", ParameterClass, tensor.get(), flag.get()));
}

py::Ref fake_of(PyObject* object) {
  const at::Tensor& real = THPVariable_Unpack(object);
  if (const char* reason = unsupported(real)) {
    PyErr_Format(PyExc_TypeError, "can't make a fake of %s", reason);
    return {};
  }
  at::Tensor fake = with_geometry_of(real);
  const bool is_parameter = reinterpret_cast<PyObject*>(Py_TYPE(object)) == ParameterClass;
  if (is_parameter) return wrap_parameter(fake, real.requires_grad());
  if (real.requires_grad()) {
    if (real.is_leaf()) {
      fake.set_requires_grad(true);
    } else {
      // What made the real tensor lies outside of the program that is looked at; a gradient may stop here but not pass.
      auto node = c10::make_intrusive<torch::autograd::Error>("the gradient of a fake tensor goes beyond the captured program",
                                                              torch::autograd::edge_list());
      torch::autograd::set_history(fake, node);
    }
  }
  return py::Ref::steal(THPVariable_Wrap(std::move(fake)));
}

}  // namespace

py::Ref fake_from_real(PyObject* tensor) {
  // The exact classes: what a subclass does with an operator is its own affair.
  if (!THPVariable_Check(tensor) || !THPVariable_CheckExact(tensor)) {
    PyErr_Format(PyExc_TypeError, "can't make a fake of a %.200s", Py_TYPE(tensor)->tp_name);
    return {};
  }
  try {
    return fake_of(tensor);
  } catch (...) {
    torch::translate_exception_to_python(std::current_exception());
    return {};
  }
}

bool is_fake(PyObject* object) {
  if (!THPVariable_CheckExact(object)) return false;
  return is_fake_impl(THPVariable_Unpack(object).unsafeGetTensorImpl());
}

void mend_fake(PyObject* tensor) {
  if (!THPVariable_CheckExact(tensor)) return;
  auto* impl = THPVariable_Unpack(tensor).unsafeGetTensorImpl();
  if (is_fake_impl(impl) && impl->device().is_meta()) repair_fake(impl);
}

FakeScope::FakeScope() : was_included_(c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Fake)) {
  if (was_included_) return;
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Fake, true);
  set_composites_included(true);
  hooks_were_off_ = at::SavedTensorDefaultHooks::set_tracing(true);  // a user's hooks are for tensors with data
}

FakeScope::~FakeScope() {
  if (was_included_) return;
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Fake, false);
  set_composites_included(false);
  at::SavedTensorDefaultHooks::set_tracing(hooks_were_off_);
}

}  // namespace pellucid::bridge
