// Saving and restoring through ATen's accessors.
#include "torch_bridge/state_scope.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace pellucid::bridge {

namespace {

constexpr c10::DeviceType kDeviceTypes[] = {c10::DeviceType::CPU, c10::DeviceType::CUDA};

constexpr c10::DispatchKey kModeKeys[] = {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot};

int autocast_nesting() {  // there is no accessor that only reads
  const int above = at::autocast::increment_nesting();
  at::autocast::decrement_nesting();
  return above - 1;
}

}  // namespace

StateScope::StateScope()
    : grad_enabled_(at::GradMode::is_enabled()),
      cache_enabled_(at::autocast::is_autocast_cache_enabled()),
      inference_(c10::AutogradState::get_tls_state().get_inference_mode()),
      forward_grad_(c10::AutogradState::get_tls_state().get_fw_grad_mode()),
      multithreading_(c10::AutogradState::get_tls_state().get_multithreading_enabled()),
      included_keys_(c10::impl::tls_local_dispatch_key_set().included_.raw_repr()),
      excluded_keys_(c10::impl::tls_local_dispatch_key_set().excluded_.raw_repr()),
      nesting_(autocast_nesting()) {
  for (int i = 0; i < kDevices; i++)
    devices_[static_cast<size_t>(i)] = {at::autocast::is_autocast_enabled(kDeviceTypes[i]),
                                        static_cast<int>(at::autocast::get_autocast_dtype(kDeviceTypes[i]))};
}

void hide_dispatch_modes() {
  if (c10::impl::TorchDispatchModeTLS::stack_len() == 0) return;
  for (c10::DispatchKey key : kModeKeys) c10::impl::tls_set_dispatch_key_excluded(key, true);
}

void StateScope::restore() const {
  if (c10::AutogradState& state = c10::AutogradState::get_tls_state(); state.get_inference_mode() != inference_) {
    state.set_inference_mode(inference_);  // what c10::InferenceMode's destructor does
    state.set_fw_grad_mode(forward_grad_);
    state.set_multithreading_enabled(multithreading_);
    c10::impl::PODLocalDispatchKeySet keys{};
    keys.set_included(c10::DispatchKeySet(c10::DispatchKeySet::RAW, included_keys_));
    keys.set_excluded(c10::DispatchKeySet(c10::DispatchKeySet::RAW, excluded_keys_));
    c10::impl::_force_tls_local_dispatch_key_set(c10::impl::LocalDispatchKeySet(keys));
  }
  for (c10::DispatchKey key : kModeKeys)
    c10::impl::tls_set_dispatch_key_excluded(key, c10::DispatchKeySet(c10::DispatchKeySet::RAW, excluded_keys_).has(key));
  if (at::GradMode::is_enabled() != grad_enabled_) at::GradMode::set_enabled(grad_enabled_);
  for (int i = 0; i < kDevices; i++) {
    const Device& device = devices_[static_cast<size_t>(i)];
    if (at::autocast::is_autocast_enabled(kDeviceTypes[i]) != device.enabled)
      at::autocast::set_autocast_enabled(kDeviceTypes[i], device.enabled);
    const auto dtype = static_cast<at::ScalarType>(device.dtype);
    if (at::autocast::get_autocast_dtype(kDeviceTypes[i]) != dtype) at::autocast::set_autocast_dtype(kDeviceTypes[i], dtype);
  }
  if (at::autocast::is_autocast_cache_enabled() != cache_enabled_) at::autocast::set_autocast_cache_enabled(cache_enabled_);
  const int now = autocast_nesting();
  if (now == nesting_) return;
  for (int i = now; i < nesting_; i++) at::autocast::increment_nesting();
  for (int i = now; i > nesting_; i--) at::autocast::decrement_nesting();
  at::autocast::clear_cache();
}

bool grad_enabled() { return at::GradMode::is_enabled(); }

}  // namespace pellucid::bridge
