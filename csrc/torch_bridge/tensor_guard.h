// What a guard knows of a tensor, and the check that costs a few nanoseconds. Users of this header see Python objects only, no torch.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "py/ref.h"

namespace pellucid::bridge {

// The metadata of a tensor: equal words mean the same dtype, device, layout, memory format flags and dispatch keys.
struct TensorSpec {
  PyTypeObject* type;  // not owned: whoever keeps the spec watches the class
  uint64_t meta;       // dtype, device and flag bits, one word of TensorImpl; 0 where the private layout is not as expected
  uint64_t keys;       // dispatch key set
  uint32_t rank;
  bool requires_grad;
  bool dims_inside;    // sizes and strides lie in the tensor itself, so `image` covers them
  bool sizes_suffice;  // contiguous with two or more in each of at most three dimensions: `head`, meta and keys say all, strides follow
  // Rank and sizes as they stand in a TensorImpl, and which of their bits count.
  alignas(32) uint64_t head[4], head_mask[4];
  // The last words of a TensorImpl of this kind: rank, sizes, strides, meta and keys, and which of their bits count.
  alignas(64) uint64_t image[16], mask[16];
  int64_t dims[1];  // sizes, then strides: 2 * rank values follow

  const int64_t* sizes() const { return dims; }
  const int64_t* strides() const { return dims + rank; }
};

// Specs of one guard program, each distinct one once: a model's layers share most of theirs.
class SpecTable {
 public:
  SpecTable();
  ~SpecTable();
  SpecTable(const SpecTable&) = delete;
  SpecTable& operator=(const SpecTable&) = delete;

  // Null with an exception set if this tensor's metadata cannot be read without running Python or has no fixed sizes.
  const TensorSpec* add(PyObject* tensor);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

bool is_tensor(PyObject* object);

// Whether reading a C getter of `object` can reach a __torch_function__ or __torch_dispatch__: that of its class, or a mode's.
bool getters_may_run_python(PyObject* object);

enum class Tangents : uint8_t { kPossible, kNone };  // none: no forward-AD level exists, which every tangent belongs to

// Whether objects[i] is a tensor as specs[i] says, for all i. Any object may be passed. Reads memory only.
bool tensors_match(PyObject* const* objects, const TensorSpec* const* specs, size_t count,
                   Tangents tangents = Tangents::kPossible) noexcept;

// Dtype, device and sizes as a number: of what is expected, and of any object (0: no tensor, or its sizes can't be read here).
uint64_t tensor_key(const TensorSpec& spec) noexcept;
uint64_t tensor_key(PyObject* object) noexcept;

// The first difference as "size (2, 3) instead of (4, 3)"; empty if it matches.
std::string tensor_difference(PyObject* object, const TensorSpec& spec);

// The spec as keyword arguments of pellucid.guard_text.tensor_matches; the class is left out.
std::string tensor_spec_text(const TensorSpec& spec);

// False where the checks above go through public accessors, because the private layout was not the expected one when torch was loaded.
bool reads_raw_tensors();
void force_tensor_accessors(bool on);  // for tests: both versions must agree

// The instruction sets that this processor can compare words with, the widest first; the first is used. For tests: all must agree.
std::vector<std::string> tensor_word_widths();
bool force_tensor_word_width(const std::string& name);  // false: not one of them

}  // namespace pellucid::bridge
