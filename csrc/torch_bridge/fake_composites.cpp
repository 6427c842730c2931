// DispatchKey::DeferredInit lies above autograd and has no kernels in PyTorch: with a fallthrough for every operator it costs nothing,
// is looked at only by threads under a FakeScope, and lets single composite operators be met before they are split up.
#include "torch_bridge/fake_composites.h"

#include <ATen/native/MaxPooling.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/squeeze.h>
#include <ATen/ops/view.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "torch_bridge/fake_twin.h"

namespace pellucid::bridge {

namespace {

constexpr auto kKey = c10::DispatchKey::DeferredInit;

// For calling the operator itself from its kernel here. Not a redispatch of the key set: PyTorch's Python dispatcher hands one kernel at
// a time no keys but its own.
class Below {
 private:
  c10::impl::ExcludeDispatchKeyGuard guard_{kKey};
};

// Without gradients the CPU code of max_pool1d writes its result itself instead of calling an operator.
at::Tensor max_pool1d(const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                      at::IntArrayRef dilation, bool ceil_mode) {
  const bool by_hand = x.device().is_cpu() && !(x.requires_grad() && at::GradMode::is_enabled());
  const Below below;
  if (!by_hand) return at::_ops::max_pool1d::call(x, kernel, stride, padding, dilation, ceil_mode);
  at::native::check_max_pool1d(x, kernel, stride, padding, dilation, ceil_mode);
  const int64_t step = stride.empty() ? kernel[0] : stride[0];
  const int64_t width = at::native::pooling_output_shape<int64_t>(x.size(-1), kernel[0], padding[0], step, dilation[0], ceil_mode);
  TORCH_CHECK(width >= 0, "max_pool1d() Invalid computed output size: ", width);
  // As there: an input without a batch gets one for the time being.
  if (x.dim() == 3) return at::empty({x.size(0), x.size(1), width}, x.options());
  at::Tensor result = at::empty({1, x.size(0), width}, x.options());
  return at::_ops::squeeze__dim::call(result, 0);
}

// With the number of classes given, the CPU code looks at the values only to check them.
at::Tensor one_hot(const at::Tensor& x, int64_t classes) {
  const Below below;
  if (classes <= 0 || x.numel() == 0) return at::_ops::one_hot::call(x, classes);
  TORCH_CHECK(x.scalar_type() == at::kLong, "one_hot is only applicable to index tensor of type LongTensor.");
  c10::SmallVector<int64_t, 6> sizes(x.sizes().begin(), x.sizes().end());
  sizes.push_back(classes);
  at::Tensor result = at::zeros(sizes, x.options());
  return result.scatter_(-1, x.unsqueeze(-1), 1);
}

// Views of another dtype that has no gradients are made by copying the TensorImpl, which forgets a fake's device.
at::Tensor view_as_dtype(const at::Tensor& x, at::ScalarType dtype) {
  const Below below;
  at::Tensor view = at::_ops::view_dtype::call(x, dtype);
  auto* impl = view.unsafeGetTensorImpl();
  if (is_fake_impl(impl) && impl->device().is_meta()) repair_fake(impl);
  return view;
}

}  // namespace

bool register_fake_composites(std::string& error) {
  static bool registered = false;
  if (registered) return true;
  auto& dispatcher = c10::Dispatcher::singleton();
  if (dispatcher.hasBackendFallbackForDispatchKey(kKey)) {
    error = "another library already handles DispatchKey::DeferredInit";
    return false;
  }
  // Never given back, like the fallback at Fake.
  static auto* fallthrough =
      new c10::RegistrationHandleRAII(dispatcher.registerFallback(kKey, c10::KernelFunction::makeFallthrough(), "pellucid fake tensors"));
  static auto* library = new torch::Library(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  library->impl("max_pool1d", TORCH_FN(max_pool1d));
  library->impl("one_hot", TORCH_FN(one_hot));
  library->impl("view.dtype", TORCH_FN(view_as_dtype));
  registered = fallthrough != nullptr;
  return registered;
}

void set_composites_included(bool included) { c10::impl::tls_set_dispatch_key_included(kKey, included); }

}  // namespace pellucid::bridge
