// The state of a thread that decides what torch operators do: grad mode, autocast, modes, default dtype, determinism. Captured once per
// guard program and compared on every call in about ten nanoseconds. Users of this header see no torch.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "py/ref.h"

namespace pellucid::bridge {

struct GlobalState {
  uint64_t included = 0, excluded = 0;  // thread-local dispatch keys: inference mode, autocast, dispatch modes, functorch show here
  uint64_t bits = 0;                    // autograd flags, torch-function state, default dtype, determinism; layout in the .cpp

  // Only looked at when the words above say that something of the kind is on.
  struct Mode {
    py::Ref weak;    // weak reference to the mode object, or
    py::Ref device;  // the device of a DeviceContext (`with torch.device(...)` makes a new one each time)
  };
  std::vector<Mode> function_modes, dispatch_modes;
  std::vector<int> functorch_layers;          // transform kinds, outermost first
  std::vector<std::pair<int, int>> autocast;  // (device type, dtype) where autocast is on
  bool autocast_cache = true;
  bool cold = false;  // any of these is in use

  bool grad_mode() const { return bits & 1; }
  bool inference_mode() const { return bits >> 1 & 1; }
  int default_dtype() const { return static_cast<int>(bits >> 32 & 0xff); }  // c10::ScalarType
  bool torch_function_disabled() const { return (bits >> 8 & 3) != 0; }
  bool deterministic() const { return bits >> 40 & 1; }
  bool forward_level() const { return bits >> 43 & 1; }  // of forward-mode AD
  bool autocast_on() const { return !autocast.empty(); }
  size_t functorch_level() const { return functorch_layers.size(); }
};

// Whether torch.jit.trace, make_fx or torch.fx.symbolic_trace is looking at what this thread runs.
bool tracer_is_watching();

// What decides the precision of float32 products, for those of matmul (1), convolution (2) and recurrent operators (4) that `classes`
// names.
uint32_t float32_precision(unsigned classes) noexcept;
std::string float32_precision_text(uint32_t precision);

bool capture_global_state(GlobalState& out);  // false with a Python exception set
bool global_state_matches(const GlobalState& state) noexcept;

// What differs now from `state`: "grad_mode True instead of False, ..."; empty if nothing.
std::string global_state_difference(const GlobalState& state);

// Keyword arguments of pellucid.guard_text.global_state_is.
std::string global_state_text(const GlobalState& state);

bool reads_raw_state();
void force_state_accessors(bool on);  // for tests

}  // namespace pellucid::bridge
