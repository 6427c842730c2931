// DispatchKey::DeferredInit lies above autograd and has no kernels in PyTorch: with a fallthrough for every operator it costs nothing,
// is looked at only by threads under a FakeScope, and lets single composite operators be met before they are split up.
#include "torch_bridge/fake_composites.h"

#include <ATen/native/MaxPooling.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/squeeze.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

namespace pellucid::bridge {

namespace {

constexpr auto kKey = c10::DispatchKey::DeferredInit;

// Without gradients the CPU code of max_pool1d writes its result itself instead of calling an operator.
at::Tensor max_pool1d(c10::DispatchKeySet keys, const at::Tensor& x, at::IntArrayRef kernel, at::IntArrayRef stride,
                      at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  const bool by_hand = x.device().is_cpu() && !(x.requires_grad() && at::GradMode::is_enabled());
  if (!by_hand) {
    const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
    return at::_ops::max_pool1d::redispatch(below, x, kernel, stride, padding, dilation, ceil_mode);
  }
  at::native::check_max_pool1d(x, kernel, stride, padding, dilation, ceil_mode);
  const int64_t step = stride.empty() ? kernel[0] : stride[0];
  const int64_t width = at::native::pooling_output_shape<int64_t>(x.size(-1), kernel[0], padding[0], step, dilation[0], ceil_mode);
  TORCH_CHECK(width >= 0, "max_pool1d() Invalid computed output size: ", width);
  // As there: an input without a batch gets one for the time being.
  if (x.dim() == 3) return at::empty({x.size(0), x.size(1), width}, x.options());
  at::Tensor result = at::empty({1, x.size(0), width}, x.options());
  return at::_ops::squeeze__dim::call(result, 0);
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
  registered = fallthrough != nullptr;
  return registered;
}

void set_composites_included(bool included) { c10::impl::tls_set_dispatch_key_included(kKey, included); }

}  // namespace pellucid::bridge
