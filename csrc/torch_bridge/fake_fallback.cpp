// One operator call on fakes: which device its results live on, the shape function on twins, results made fake. Below autograd and view
// tracking, so grad_fn, version counters and _base are PyTorch's own. Reads no data and knows no operator by name.
#include "torch_bridge/fake_fallback.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/node.h>

#include "torch_bridge/fake_assumption.h"
#include "torch_bridge/fake_constant.h"
#include "torch_bridge/fake_errors.h"
#include "torch_bridge/fake_meta.h"
#include "torch_bridge/fake_overlap.h"
#include "torch_bridge/fake_symbolic.h"
#include "torch_bridge/fake_table.h"
#include "torch_bridge/fake_twin.h"
#include "torch_bridge/rules/rules.h"

namespace pellucid::bridge {

namespace {

using Stack = torch::jit::Stack;

// Composite kernels make tensors with factories, which must arrive here too.
class IncludeFakeKey {
 public:
  IncludeFakeKey() : was_(c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Fake)) {
    if (!was_) c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Fake, true);
  }
  ~IncludeFakeKey() {
    if (!was_) c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Fake, false);
  }
  IncludeFakeKey(const IncludeFakeKey&) = delete;
  IncludeFakeKey& operator=(const IncludeFakeKey&) = delete;

 private:
  const bool was_;
};

// One walk over the arguments: the device of the results, by PyTorch's rule (that of the tensors, CPU scalars yield), and whether any size
// is a symbol.
class CommonDevice {
 public:
  void add(const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    auto* impl = tensor.unsafeGetTensorImpl();
    symbolic_ |= impl->has_symbolic_sizes_strides();
    c10::Device device = impl->device();
    if (device.is_meta() && is_fake_impl(impl)) device = repair_fake(impl);
    const bool yields = device.is_cpu() && impl->dim() == 0;
    if (!device_ || (yields_ && !yields)) {
      device_ = device;
      yields_ = yields;
    } else if (!yields && *device_ != device) {
      mixed_ = device;
    }
  }
  void add(const c10::IValue& value) {
    if (value.isTensor()) {
      add(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorList()) add(tensor);
    } else if (value.isSymInt() || value.isSymIntList()) {
      symbolic_ = true;  // what is a plain number arrives as an int
    } else if (value.isOptionalTensorList()) {
      // Indices, which may live on the CPU whatever they index.
      for (const c10::IValue& item : value.toListRef()) {
        if (!item.isTensor()) continue;
        const at::Tensor& tensor = item.toTensor();
        symbolic_ |= tensor.defined() && tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
      }
    }
  }
  bool symbolic() const { return symbolic_; }
  c10::Device get() const {
    c10::Device device = device_.value_or(c10::kCPU);
    if (!device.has_index() && !device.is_cpu() && !device.is_meta()) device.set_index(0);
    return device;
  }
  void set(c10::Device device) { device_ = device; }
  void check_not_mixed() const {
    TORCH_CHECK(!mixed_, "Expected all tensors to be on the same device, but found at least two devices, ", *device_, " and ", *mixed_,
                "!");
  }

 private:
  std::optional<c10::Device> device_;
  std::optional<c10::Device> mixed_;
  bool yields_ = false;
  bool symbolic_ = false;
};

class RuleDevice {
 public:
  explicit RuleDevice(c10::Device device) : previous_(rules::device()) { rules::set_device(device); }
  ~RuleDevice() { rules::set_device(previous_); }
  RuleDevice(const RuleDevice&) = delete;
  RuleDevice& operator=(const RuleDevice&) = delete;

 private:
  const c10::Device previous_;
};

// Autograd's formulas ask values that were saved for where to make new ones, and those have lost their device: then it is that of the
// gradient which the node was called with.
c10::Device named_device(c10::Device device) {
  if (!device.is_meta()) return device;
  const auto node = torch::autograd::get_current_node();
  return node && node->num_inputs() > 0 ? node->input_metadata(0).device() : device;
}

void check_writes_no_real_tensor(const c10::OperatorHandle& op, const Entry& entry, const Stack& stack, size_t base) {
  for (uint64_t mask = entry.written_mask; mask != 0; mask &= mask - 1) {
    const c10::IValue& value = stack[base + static_cast<size_t>(__builtin_ctzll(mask))];
    const auto check = [&](const at::Tensor& tensor) {
      TORCH_CHECK(!tensor.defined() || is_fake_impl(tensor.unsafeGetTensorImpl()) || tensor.is_meta(), op.operator_name(),
                  " would write to a real tensor while only shapes are computed");
    };
    if (value.isTensor()) {
      check(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorList()) check(tensor);
    }
  }
}

// Any of the arguments may be the one written to or viewed; what is forgotten needlessly costs a graph break at worst.
void forget_constants(const Stack& stack, size_t base) {
  for (size_t i = base; i < stack.size(); ++i) {
    if (!stack[i].isTensor()) continue;
    auto* impl = stack[i].unsafeToTensorImpl();
    if (is_fake_impl(impl)) forget_constant(impl);
  }
}

void make_result_fake(at::Tensor& result, c10::Device device, bool guard, bool constant) {
  if (!result.defined()) return;
  auto* impl = result.unsafeGetTensorImpl();
  if (is_fake_impl(impl)) {
    if (impl->device().is_meta()) repair_fake(impl);
  } else if (impl->device().is_meta()) {
    if (!device.is_meta()) make_fake(impl, device, guard);
  } else {
    // A kernel that skipped the dispatcher made a real tensor: only its geometry is wanted.
    at::Tensor fake = fake_like_real(result, impl->device());
    if (constant) remember_constant(fake.unsafeGetTensorImpl(), result);
    result = std::move(fake);
  }
}

void make_results_fake(const Entry& entry, Stack& stack, c10::Device device) {
  const bool guard = !entry.shares_storage;
  for (size_t i = stack.size() - entry.return_count; i < stack.size(); ++i) {
    c10::IValue& value = stack[i];
    if (value.isTensor()) {
      at::Tensor tensor = std::move(value).toTensor();
      make_result_fake(tensor, device, guard, entry.lifts_constants);
      value = std::move(tensor);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list = value.toTensorList();
      for (size_t j = 0; j < list.size(); ++j) {
        at::Tensor tensor = list.get(j);
        make_result_fake(tensor, device, guard, false);
        list.set(j, std::move(tensor));
      }
    }
  }
}

void run_on_twins(const c10::OperatorHandle& op, const Entry& entry, Stack* stack, size_t base, c10::Device device) {
  Twins twins(entry.shares_storage);
  const at::Tensor first = entry.argument_count > 0 && (*stack)[base].isTensor() ? (*stack)[base].toTensor() : at::Tensor();
  for (size_t i = base; i < stack->size(); ++i) twins.replace_argument((*stack)[i], first);
  {
    const RuleDevice rule_device(device);
    entry.kernel.callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::Meta), stack);
  }
  for (size_t i = stack->size() - entry.return_count; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (!value.isTensor()) continue;
    at::Tensor tensor = std::move(value).toTensor();
    twins.restore(tensor);
    value = std::move(tensor);
  }
}

thread_local unsigned precision_seen = 0;
thread_local uint64_t calls_of_thread = 0;

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  Entry& entry = entry_of(op);
  entry.count();
  precision_seen |= entry.precision;
  calls_of_thread++;
  const size_t base = stack->size() - entry.argument_count;
  if (entry.origin == Origin::kDataDependent) {
    if (answer_by_assumption(op, stack)) return;
    throw_data_dependent(toString(op.operator_name()));
  }

  CommonDevice common;
  for (size_t i = base; i < stack->size(); ++i) common.add((*stack)[i]);
  const IncludeFakeKey include;
  const bool symbolic = common.symbolic();
  if (symbolic && run_at_hints(op, stack, base)) {
    Entry::add_one(entry.symbolic_calls);
    return;
  }
  if (entry.written_mask != 0) {
    check_writes_no_real_tensor(op, entry, *stack, base);
    if (!entry.shares_storage && !symbolic) check_no_overlap(op, entry, *stack, base);
  }
  if (entry.device_argument >= 0) {
    c10::IValue& argument = (*stack)[base + static_cast<size_t>(entry.device_argument)];
    if (argument.isDevice()) {
      common.set(named_device(argument.toDevice()));
      argument = common.get();
    }
    if (entry.on_twins) argument = c10::Device(c10::kMeta);
  }
  if (entry.on_twins && entry.pin_argument >= 0) (*stack)[base + static_cast<size_t>(entry.pin_argument)] = c10::IValue();
  const c10::Device device = common.get();
  if (entry.written_mask != 0 || (entry.shares_storage && !entry.lifts_constants)) forget_constants(*stack, base);

  if (symbolic) {
    // PyTorch's Python functions take symbols; its C++ kernels do not.
    Entry::add_one(entry.symbolic_python);
    common.check_not_mixed();
    run_registered_meta(op, stack);
    make_results_fake(entry, *stack, device);
    return;
  }
  switch (entry.origin) {
    case Origin::kRule:
    case Origin::kMeta:
      if (!entry.mixes_devices) common.check_not_mixed();
      run_on_twins(op, entry, stack, base, device);
      break;
    case Origin::kExplicit:
    case Origin::kImplicit:
      entry.kernel.callBoxed(op, keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake), stack);
      break;
    case Origin::kPython:
      common.check_not_mixed();
      run_registered_meta(op, stack);
      break;
    case Origin::kDataDependent:
    case Origin::kNone:
      C10_THROW_ERROR(NotImplementedError, c10::str("no shape function for ", op.operator_name()));
  }
  make_results_fake(entry, *stack, device);
}

}  // namespace

unsigned take_precision_seen() { return std::exchange(precision_seen, 0); }
uint64_t fake_calls() { return calls_of_thread; }

bool register_fake_fallback(std::string& error) {
  static bool registered = false;
  if (registered) return true;
  auto& dispatcher = c10::Dispatcher::singleton();
  if (dispatcher.hasBackendFallbackForDispatchKey(c10::DispatchKey::Fake)) {
    error = "another library already handles DispatchKey::Fake";
    return false;
  }
  // Never given back: fakes may be alive until the interpreter ends.
  static auto* registration = new c10::RegistrationHandleRAII(dispatcher.registerFallback(
      c10::DispatchKey::Fake, c10::KernelFunction::makeFromBoxedFunction<&fallback>(), "pellucid fake tensors"));
  registered = registration != nullptr;
  return registered;
}

}  // namespace pellucid::bridge
