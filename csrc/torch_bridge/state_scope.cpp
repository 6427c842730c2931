// Saving and restoring through ATen's accessors.
#include "torch_bridge/state_scope.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

namespace pellucid::bridge {

namespace {

constexpr c10::DeviceType kDeviceTypes[] = {c10::DeviceType::CPU, c10::DeviceType::CUDA};

int autocast_nesting() {  // there is no accessor that only reads
  const int above = at::autocast::increment_nesting();
  at::autocast::decrement_nesting();
  return above - 1;
}

}  // namespace

StateScope::StateScope()
    : grad_enabled_(at::GradMode::is_enabled()), cache_enabled_(at::autocast::is_autocast_cache_enabled()), nesting_(autocast_nesting()) {
  for (int i = 0; i < kDevices; i++)
    devices_[static_cast<size_t>(i)] = {at::autocast::is_autocast_enabled(kDeviceTypes[i]),
                                        static_cast<int>(at::autocast::get_autocast_dtype(kDeviceTypes[i]))};
}

void StateScope::restore() const {
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
