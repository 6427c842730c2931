// Plain twins: what shape functions see in place of fake tensors. Kernels registered for "CPU, Meta" would compute on a fake's absent data,
// and in-place Meta kernels insist on meta tensors; a twin is a temporary plain meta tensor of the same sizes. Knows nothing of operators.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

namespace pellucid::bridge {

// Makes a plain meta tensor fake: from now on it says it lives on `device`. Its storage is guarded against reading if `guard`.
void make_fake(at::TensorImpl* impl, c10::Device device, bool guard);

// Some PyTorch internals (`.data`, values saved for backward) copy a fake without the state that says which device it is on; the dispatch
// keys still know. Puts the device back and returns it.
c10::Device repair_fake(at::TensorImpl* impl);

inline bool is_fake_impl(const at::TensorImpl* impl) { return impl->is_fake(); }

// A fake on `device` with the geometry of a real tensor.
at::Tensor fake_like_real(const at::Tensor& real, c10::Device device);

// The twins of one operator call.
class Twins {
 public:
  // `share`: twins have the originals' storages (views); otherwise storages of their own, because kernels compare data pointers.
  explicit Twins(bool share) : share_(share) {}

  // `indexed`: what a list of indices, should the argument be one, is applied to.
  void replace_argument(c10::IValue& argument, const at::Tensor& indexed);

  // In-place and out= results are the originals again, resized if the kernel resized the twin. True if `result` was a twin.
  bool restore(at::Tensor& result) const;

 private:
  struct Pair {
    at::Tensor twin;
    at::Tensor original;
  };

  const at::Tensor& twin_of(const at::Tensor& original);

  bool share_;
  c10::SmallVector<Pair, 4> pairs_;
};

}  // namespace pellucid::bridge
