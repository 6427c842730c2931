// Hand-written shape rules: typed C++ functions by operator name, one file per family. A rule gets plain meta tensors (twins of the
// fakes, of the right sizes, strides and dtype), makes plain meta tensors, and never runs a kernel on data. What depends on the device asks
// `device()`, because the twins' own device is meta.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/operator_name.h>

#include <string>
#include <string_view>
#include <unordered_map>

namespace pellucid::bridge::rules {

class Table {
 public:
  // `name` without "aten::", or with another namespace; `function` is TORCH_FN(a function whose parameters are those of the schema).
  template <class Function>
  void add(const char* name, const char* overload, Function function) {
    add(name, overload, c10::KernelFunction::makeFromUnboxedFunction(function));
  }
  void add(const char* name, const char* overload, c10::KernelFunction kernel) {
    const bool fresh = rules_.emplace(key(name, overload), std::move(kernel)).second;
    TORCH_INTERNAL_ASSERT(fresh, "two rules for ", name, ".", overload);
  }
  const c10::KernelFunction* find(const c10::OperatorName& name) const {
    const auto found = rules_.find(name);
    return found == rules_.end() ? nullptr : &found->second;
  }
  const std::unordered_map<c10::OperatorName, c10::KernelFunction>& all() const { return rules_; }

  static c10::OperatorName key(std::string_view name, const char* overload) {
    return {name.find("::") == name.npos ? "aten::" + std::string(name) : std::string(name), overload};
  }

 private:
  std::unordered_map<c10::OperatorName, c10::KernelFunction> rules_;
};

const Table& table();
const c10::KernelFunction* find(const c10::OperatorName& name);

// A rule for an operator that takes `count` out= arguments after those of the operator whose rule this is.
c10::KernelFunction writing_to_out(const c10::KernelFunction& functional, size_t count);

// Operators whose result (its shape, or a Python number) depends on values: item, nonzero, equal ...
bool is_data_dependent(const c10::OperatorName& name);

// Whether the kernels refuse to write to the very memory that they read, not only to a part of it.
bool refuses_same_memory(const c10::OperatorName& name);

// Rules that change or read a tensor's storage, so that the twins must share it with the originals.
bool needs_storage(const c10::OperatorName& name);

// Rules whose tensors may be on different devices.
bool mixes_devices(const c10::OperatorName& name);

[[noreturn]] void throw_data_dependent(const char* name);

// The device of the operator whose rule runs now.
c10::Device device();
void set_device(c10::Device device);

void add_attention(Table& table);
void add_backward(Table& table);
void add_convolution(Table& table);
void add_distances(Table& table);
void add_embedding(Table& table);
void add_factories(Table& table);
void add_folding(Table& table);
void add_fourier(Table& table);
void add_histograms(Table& table);
void add_indexing(Table& table);
void add_linear_algebra(Table& table);
void add_losses(Table& table);
void add_matrices(Table& table);
void add_normalization(Table& table);
void add_pointwise(Table& table);
void add_pooling(Table& table);
void add_quantization(Table& table);
void add_random(Table& table);
void add_recurrent(Table& table);
void add_reductions(Table& table);
void add_sampling(Table& table);
void add_storage(Table& table);

}  // namespace pellucid::bridge::rules
