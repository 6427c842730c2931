// DispatchKey::DeferredInit lies above autograd and has no kernels in PyTorch: with a fallthrough for every operator it costs nothing,
// is looked at only by threads under a FakeScope, and lets single composite operators be met before they are split up.
#include "torch_bridge/fake_composites.h"

#include <ATen/core/Reduction.h>
#include <ATen/native/MaxPooling.h>
#include <ATen/ops/combinations.h>
#include <ATen/ops/corrcoef.h>
#include <ATen/ops/cov.h>
#include <ATen/ops/ctc_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/istft.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/logspace.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool1d_with_indices.h>
#include <ATen/ops/nanquantile.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/quantile.h>
#include <ATen/ops/squeeze.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/take.h>
#include <ATen/ops/view.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "torch_bridge/fake_assumption.h"
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
  if (x.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {  // what PyTorch does of a subclass
    return std::get<0>(at::_ops::max_pool1d_with_indices::call(x, kernel, stride, padding, dilation, ceil_mode));
  }
  if (!by_hand) return at::_ops::max_pool1d::call(x, kernel, stride, padding, dilation, ceil_mode);
  const bool channels = x.dim() == 2 ? x.size(0) != 0 && x.size(1) != 0 : x.dim() == 3 && x.size(1) != 0 && x.size(2) != 0;
  TORCH_CHECK(channels, "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:", x.sizes());
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
  if (classes <= 0 || x.sym_numel() == 0) return at::_ops::one_hot::call(x, classes);
  TORCH_CHECK(x.scalar_type() == at::kLong, "one_hot is only applicable to index tensor of type LongTensor.");
  c10::SymDimVector sizes(x.sym_sizes().begin(), x.sym_sizes().end());
  sizes.emplace_back(classes);
  at::Tensor result = at::zeros_symint(sizes, x.options());
  return result.scatter_(-1, x.unsqueeze(-1), 1);
}

// The reduction by which CPU code makes a tensor of the lengths and fills it itself.
at::Tensor ctc_loss_of_lengths(const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
                               at::IntArrayRef target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  const Below below;
  const at::Tensor losses =
      at::_ops::ctc_loss_IntList::call(log_probs, targets, input_lengths, target_lengths, blank, at::Reduction::None, zero_infinity);
  if (reduction == at::Reduction::Sum) return losses.sum();
  if (reduction == at::Reduction::Mean) return losses.div(at::ones_like(losses)).mean();
  return losses;
}

// Lengths in tensors decide how the code walks over the data, not what the loss looks like: the largest ones possible stand for them.
at::Tensor ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input_lengths,
                    const at::Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  TORCH_CHECK(c10::isIntegralType(input_lengths.scalar_type(), false), "input_lengths must be integral");
  TORCH_CHECK(c10::isIntegralType(target_lengths.scalar_type(), false), "target_lengths must be integral");
  const std::vector<int64_t> inputs(static_cast<size_t>(input_lengths.numel()), log_probs.size(0));
  std::vector<int64_t> lengths(static_cast<size_t>(target_lengths.numel()), targets.dim() > 1 ? targets.size(-1) : 0);
  if (targets.dim() == 1 && !lengths.empty()) lengths[0] = targets.size(0);  // one after the other: together as many
  return ctc_loss_of_lengths(log_probs, targets, inputs, lengths, blank, reduction, zero_infinity);
}

// How many combinations there are is no matter of values, though the composite code selects them with a mask.
at::Tensor combinations(const at::Tensor& x, int64_t r, bool with_replacement) {
  const Below below;
  if (x.dim() != 1 || r <= 0) return at::_ops::combinations::call(x, r, with_replacement);
  const int64_t size = with_replacement && x.size(0) > 0 ? x.size(0) + r - 1 : x.size(0);
  int64_t count = size >= r ? 1 : 0;
  for (int64_t i = 0; i < r && count != 0; ++i) count = count * (size - i) / (i + 1);
  const at::Tensor places = at::empty({count}, x.options().dtype(at::kLong));
  return at::stack(std::vector<at::Tensor>(static_cast<size_t>(r), at::take(x, places)), 1);
}

// Composite operators that look at values only to check them, and what a check that holds finds.
template <class Operator, bool answer, class Signature = typename Operator::schema>
struct Checked;
template <class Operator, bool answer, class Result, class... Arguments>
struct Checked<Operator, answer, Result(Arguments...)> {
  static Result call(Arguments... arguments) {
    const Below below;
    const AssumedAnswer assumed(answer);
    return Operator::call(std::forward<Arguments>(arguments)...);
  }
};

template <class Operator, bool answer>
void add_checked(torch::Library& library) {
  const std::string name =
      Operator::overload_name[0] == 0 ? std::string(Operator::name) : std::string(Operator::name) + "." + Operator::overload_name;
  library.impl(name.c_str(), torch::CppFunction::makeFromUnboxedFunction(&Checked<Operator, answer>::call));
}

// Observation weights are checked for more than one thing.
at::Tensor cov(const at::Tensor& x, int64_t correction, const std::optional<at::Tensor>& fweights,
               const std::optional<at::Tensor>& aweights) {
  const Below below;
  if ((fweights && fweights->defined()) || (aweights && aweights->defined())) {
    return at::_ops::cov::call(x, correction, fweights, aweights);
  }
  const AssumedAnswer assumed(false);
  return at::_ops::cov::call(x, correction, fweights, aweights);
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
  library->impl("ctc_loss.IntList", TORCH_FN(ctc_loss_of_lengths));
  library->impl("ctc_loss.Tensor", TORCH_FN(ctc_loss));
  library->impl("combinations", TORCH_FN(combinations));
  library->impl("cov", TORCH_FN(cov));
  add_checked<at::_ops::corrcoef, false>(*library);
  add_checked<at::_ops::istft, false>(*library);
  add_checked<at::_ops::quantile, true>(*library);
  add_checked<at::_ops::quantile_scalar, true>(*library);
  add_checked<at::_ops::nanquantile, true>(*library);
  add_checked<at::_ops::nanquantile_scalar, true>(*library);
  add_checked<at::_ops::linspace_Tensor_Tensor, true>(*library);
  add_checked<at::_ops::linspace_Tensor_Scalar, true>(*library);
  add_checked<at::_ops::linspace_Scalar_Tensor, true>(*library);
  add_checked<at::_ops::logspace_Tensor_Tensor, true>(*library);
  add_checked<at::_ops::logspace_Tensor_Scalar, true>(*library);
  add_checked<at::_ops::logspace_Scalar_Tensor, true>(*library);
  registered = fallthrough != nullptr;
  return registered;
}

void set_composites_included(bool included) { c10::impl::tls_set_dispatch_key_included(kKey, included); }

}  // namespace pellucid::bridge
