// Where the shape of each operator's result comes from: decided once per operator and kept. Knows the dispatcher and the rules, not
// tensors.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace pellucid::bridge {

enum class Origin : uint8_t {
  kRule,           // a rule of torch_bridge/rules, on plain twins
  kMeta,           // PyTorch's C++ Meta kernel, on plain twins
  kExplicit,       // PyTorch's CompositeExplicitAutograd kernel, on the fakes themselves: it calls other operators
  kImplicit,       // PyTorch's CompositeImplicitAutograd kernel (reached in inference mode)
  kPython,         // what the Meta key has: a Python function, or a kernel registered for a library that isn't PyTorch's own
  kDataDependent,  // the result depends on values
  kNone,           // no shape can be had
};

const char* origin_name(Origin origin);

struct Entry {
  Origin origin = Origin::kNone;
  c10::KernelFunction kernel;  // valid for kRule, kMeta, kExplicit, kImplicit
  uint16_t argument_count = 0;
  uint16_t return_count = 0;
  int16_t device_argument = -1;
  int16_t pin_argument = -1;
  bool shares_storage = false;   // a view: the twin must have the storage of the tensor it stands for
  bool lifts_constants = false;  // lift_fresh: how PyTorch hands on a tensor that it made of Python numbers
  bool mixes_devices = false;    // copy_ and its kind
  bool on_twins = false;         // kRule and kMeta
  uint64_t written_mask = 0;     // bit i: argument i is written to
  uint8_t precision = 0;         // whose float32 precision it depends on: the classes of float32_precision
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> symbolic_calls{0};   // with symbolic sizes, by a rule
  std::atomic<uint64_t> symbolic_python{0};  // with symbolic sizes, by PyTorch's Python functions

  // A plain load and store: counts are for reports, and a lost update between threads is cheaper than a locked instruction.
  void count() { add_one(calls); }
  static void add_one(std::atomic<uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

// The entry never moves and lives for the rest of the process: callers keep the reference while nested calls add entries.
Entry& entry_of(const c10::OperatorHandle& op);

struct EntryReport {
  std::string name;
  Origin origin;
  uint64_t calls;
  uint64_t symbolic_calls;
  uint64_t symbolic_python;
};
std::vector<EntryReport> entry_reports();
void reset_entry_counts();

}  // namespace pellucid::bridge
