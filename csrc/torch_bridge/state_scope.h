// StateScope: torch's thread-local modes that a captured program may change (grad mode, autocast), remembered and put back.
#pragma once
#include <array>
#include <cstdint>

namespace pellucid::bridge {

class StateScope {
 public:
  StateScope();
  void restore() const;  // puts everything back; safe with an exception set

 private:
  struct Device {
    bool enabled;
    int dtype;
  };
  static constexpr int kDevices = 2;  // CPU, CUDA
  bool grad_enabled_, cache_enabled_, inference_, forward_grad_, multithreading_;
  uint64_t included_keys_, excluded_keys_;
  int nesting_;
  std::array<Device, kDevices> devices_;
};

// Restores at the end of its life: around capture, where the traced program's changes are made for real.
class RestoredState {
 public:
  RestoredState() = default;
  ~RestoredState() { state_.restore(); }
  RestoredState(const RestoredState&) = delete;
  RestoredState& operator=(const RestoredState&) = delete;

 private:
  StateScope state_;
};

// Operators on fakes, while a program is traced, are none that the program's dispatch modes are to see. Until StateScope::restore.
void hide_dispatch_modes();

bool grad_enabled();

}  // namespace pellucid::bridge
