// Constants ride on the fake's BackendMeta, which CPU and CUDA tensors have no other use for.
#include "torch_bridge/fake_constant.h"

namespace pellucid::bridge {

namespace {

struct Constant : c10::BackendMeta {
  at::Tensor tensor;
  uint32_t version = 0;  // of the fake, where it counts versions
};

uint32_t version_of(at::TensorImpl* fake) { return fake->is_inference() ? 0 : fake->version_counter().current_version(); }

Constant* find(at::TensorImpl* fake) { return dynamic_cast<Constant*>(fake->get_backend_meta()); }

}  // namespace

void remember_constant(at::TensorImpl* fake, const at::Tensor& constant) {
  if (constant.scalar_type() != at::kBool || constant.dim() == 0 || !constant.is_cpu() || !constant.is_contiguous()) return;
  auto meta = c10::make_intrusive<Constant>();
  meta->tensor = constant;
  meta->version = version_of(fake);
  fake->set_backend_meta(std::move(meta));
}

at::Tensor constant_of(at::TensorImpl* fake) {
  const Constant* meta = find(fake);
  return meta != nullptr && meta->version == version_of(fake) ? meta->tensor : at::Tensor();
}

void forget_constant(at::TensorImpl* fake) {
  // Copies of the TensorImpl (`.data`) share the object, and are as wrong about the values now.
  if (Constant* meta = find(fake)) meta->tensor.reset();
}

}  // namespace pellucid::bridge
