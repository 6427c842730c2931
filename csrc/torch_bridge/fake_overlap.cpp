// Overlap as ATen/MemoryOverlap.h has it, with storages and offsets in place of pointers.
#include "torch_bridge/fake_overlap.h"

#include <ATen/MemoryOverlap.h>

#include "torch_bridge/rules/rules.h"

namespace pellucid::bridge {

namespace {

enum class Overlap : uint8_t { kNone, kPartial, kSame };

Overlap overlap_of(const at::TensorImpl* a, const at::TensorImpl* b) {
  if (a == b) return Overlap::kSame;
  if (a->numel() == 0 || b->numel() == 0) return Overlap::kNone;
  // Tensors with gaps are not looked into, there as here.
  if (!a->is_non_overlapping_and_dense_or_false() || !b->is_non_overlapping_and_dense_or_false()) return Overlap::kNone;
  const int64_t a_begin = a->storage_offset() * static_cast<int64_t>(a->itemsize());
  const int64_t b_begin = b->storage_offset() * static_cast<int64_t>(b->itemsize());
  const int64_t a_end = a_begin + a->numel() * static_cast<int64_t>(a->itemsize());
  const int64_t b_end = b_begin + b->numel() * static_cast<int64_t>(b->itemsize());
  if (a_begin == b_begin && a_end == b_end) return a->strides() == b->strides() ? Overlap::kSame : Overlap::kPartial;
  return a_begin < b_end && b_begin < a_end ? Overlap::kPartial : Overlap::kNone;
}

template <class Visit>
void each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor().unsafeGetTensorImpl());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) visit(tensor.unsafeGetTensorImpl());
  }
}

void check_against(const c10::OperatorHandle& op, at::TensorImpl* written, at::TensorImpl* other) {
  if (!other->is_fake()) return;
  if (other->unsafe_storage().unsafeGetStorageImpl() != written->unsafe_storage().unsafeGetStorageImpl()) return;
  const Overlap overlap = overlap_of(written, other);
  TORCH_CHECK(overlap != Overlap::kPartial && (overlap == Overlap::kNone || !rules::refuses_same_memory(op.operator_name())),
              "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
              "Please clone() the tensor before performing the operation.");
}

}  // namespace

void check_no_overlap(const c10::OperatorHandle& op, const Entry& entry, const torch::jit::Stack& stack, size_t base) {
  for (uint64_t mask = entry.written_mask; mask != 0; mask &= mask - 1) {
    const auto place = static_cast<size_t>(__builtin_ctzll(mask));
    each_tensor(stack[base + place], [&](at::TensorImpl* written) {
      if (!written->is_fake()) return;
      at::assert_no_internal_overlap(written);
      for (size_t i = 0; i < entry.argument_count; ++i) {
        if (i == place) continue;
        each_tensor(stack[base + i], [&](at::TensorImpl* other) { check_against(op, written, other); });
      }
    });
  }
}

}  // namespace pellucid::bridge
