// Reading the dispatcher's private list of kernels by explicit instantiation, which may name private members.
#include "torch_bridge/hidden_kernel.h"

namespace pellucid::bridge {

namespace {

template <class Tag, auto Member>
struct Open {
  friend constexpr auto member(Tag) { return Member; }
};

struct OperatorDefOfHandle {
  friend constexpr auto member(OperatorDefOfHandle);
};
template struct Open<OperatorDefOfHandle, &c10::OperatorHandle::operatorDef_>;

struct KernelsOfEntry {
  friend constexpr auto member(KernelsOfEntry);
};
template struct Open<KernelsOfEntry, &c10::impl::OperatorEntry::kernels_>;

}  // namespace

const c10::KernelFunction* cpp_kernel(const c10::OperatorHandle& op, c10::DispatchKey key) {
  const auto& kernels = (op.*member(OperatorDefOfHandle{}))->op.*member(KernelsOfEntry{});
  const auto found = kernels.find(key);
  if (found == kernels.end()) return nullptr;
  for (const auto& annotated : found->second) {
    const c10::KernelFunction& kernel = annotated.kernel;
    if ((kernel.isValidUnboxed() || kernel.isValidSymUnboxed()) && !kernel.isFallthrough()) return &kernel;
  }
  return nullptr;
}

}  // namespace pellucid::bridge
