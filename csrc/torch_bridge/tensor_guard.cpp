// Tensor metadata read with plain loads. TensorImpl's protected members get their offsets from the compiled headers; the one private
// member, autograd_meta_, is found by its neighbour and checked against the public accessor at load. With any doubt, accessors are used.
// All that is compared for equality lies in the last 128 bytes of a TensorImpl: they are compared at once, with whatever vectors the
// processor has.
#include "torch_bridge/tensor_guard.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>

namespace pellucid::bridge {
namespace {

static_assert(sizeof(at::Tensor) == sizeof(void*));
static_assert(offsetof(THPVariable, cdata) == sizeof(PyObject));

using torch::autograd::AutogradMeta;

struct Peek : c10::TensorImpl {  // never instantiated: a derived class may name protected members
  static const Peek* of(const c10::TensorImpl* impl) { return static_cast<const Peek*>(impl); }
  uint64_t meta_word() const {
    uint64_t word;
    std::memcpy(&word, &data_type_, sizeof word);
    return word;
  }
  uint64_t keys() const { return key_set_.raw_repr(); }
  const int64_t* sizes_data() const { return sizes_and_strides_.sizes_data(); }
  const int64_t* strides_data() const { return sizes_and_strides_.strides_data(); }
  size_t rank() const { return sizes_and_strides_.size(); }
  const AutogradMeta* autograd_raw() const {
    return *reinterpret_cast<AutogradMeta* const*>(reinterpret_cast<const char*>(&extra_meta_) - sizeof(void*));
  }
  bool custom_policy() const {
    return sizes_strides_policy_ != 0 || has_symbolic_sizes_strides_ || device_policy_ || layout_policy_ ||
           python_custom_sizes_strides_ != 0 || python_custom_device_ || python_custom_layout_;
  }
  // The last 16 words hold the rank, the sizes and strides of most tensors, the meta word and the keys.
  static constexpr size_t kTail = sizeof(c10::TensorImpl) - 16 * sizeof(uint64_t);
  size_t word_of(const void* member) const {  // of the tail; anything else gives no index of it
    return static_cast<size_t>(static_cast<const char*>(member) - (reinterpret_cast<const char*>(this) + kTail)) / sizeof(uint64_t);
  }
  const char* head() const { return reinterpret_cast<const char*>(&sizes_and_strides_); }
  const char* meta_and_keys() const { return reinterpret_cast<const char*>(&data_type_); }
  bool head_is_rank_and_sizes() const {
    uint64_t words[4];
    std::memcpy(words, head(), sizeof words);
    for (size_t i = 0; i < rank(); i++) {
      if (rank() > 3 || words[1 + i] != static_cast<uint64_t>(sizes_data()[i])) return false;
    }
    return words[0] == rank();
  }
  // The contiguity flag is part of the meta word. It fixes the strides but for dimensions of less than two.
  bool sizes_suffice() const {
    return rank() <= 3 && is_contiguous_ && std::all_of(sizes_data(), sizes_data() + rank(), [](int64_t size) { return size >= 2; });
  }
  bool dims_inside() const { return rank() == 0 || (word_of(sizes_data()) < 16 && word_of(strides_data()) < 16); }
  bool tail_covers_all() const {
    size_t first = word_of(&sizes_and_strides_), meta = word_of(&data_type_), keys = word_of(&key_set_);
    if (sizeof(Peek) != sizeof(c10::TensorImpl) || first >= 16 || meta >= 16 || keys >= 16 || first == meta || first == keys) return false;
    uint64_t words[16];
    std::memcpy(words, reinterpret_cast<const char*>(this) + kTail, sizeof words);
    return words[first] == rank() && words[meta] == meta_word() && words[keys] == this->keys();
  }
  void tail(TensorSpec& spec) const {
    spec.dims_inside = dims_inside();
    spec.sizes_suffice = sizes_suffice();
    std::fill(spec.head_mask, spec.head_mask + std::min<size_t>(rank() + 1, 4), ~uint64_t{0});
    std::memcpy(spec.head, head(), sizeof spec.head);
    for (size_t i = 0; i < 4; i++) spec.head[i] &= spec.head_mask[i];
    spec.mask[word_of(&sizes_and_strides_)] = spec.mask[word_of(&key_set_)] = ~uint64_t{0};
    spec.mask[word_of(&data_type_)] = meta_mask();
    for (size_t i = 0; spec.dims_inside && i < rank(); i++) {
      spec.mask[word_of(sizes_data() + i)] = spec.mask[word_of(strides_data() + i)] = ~uint64_t{0};
    }
    std::memcpy(spec.image, reinterpret_cast<const char*>(this) + kTail, sizeof spec.image);
    for (size_t i = 0; i < 16; i++) spec.image[i] &= spec.mask[i];
  }
  static bool word_covers_flags() {  // data_type_, device_opt_ and all flags lie in the eight bytes that meta_word reads
    auto* p = reinterpret_cast<Peek*>(0x1000);
    return reinterpret_cast<char*>(&p->key_set_) - reinterpret_cast<char*>(&p->data_type_) == 8 &&
           reinterpret_cast<char*>(&p->device_opt_) > reinterpret_cast<char*>(&p->data_type_) &&
           reinterpret_cast<char*>(&p->device_opt_) < reinterpret_cast<char*>(&p->key_set_);
  }
  // The bits that say something about metadata: not allow_tensor_metadata_change_ and reserved_, and not the bits that belong to no
  // member, which constructors leave as they find them.
  static uint64_t meta_mask() {
    alignas(Peek) char bytes[sizeof(Peek)];
    std::memset(bytes, 0, sizeof bytes);
    auto* p = reinterpret_cast<Peek*>(bytes);
    std::memset(static_cast<void*>(&p->data_type_), 0xff, sizeof p->data_type_);
    std::memset(static_cast<void*>(&p->device_opt_), 0xff, sizeof p->device_opt_);
    p->is_contiguous_ = p->storage_access_should_throw_ = p->is_channels_last_ = p->is_channels_last_contiguous_ = true;
    p->is_channels_last_3d_ = p->is_channels_last_3d_contiguous_ = p->is_non_overlapping_and_dense_ = p->is_wrapped_number_ = true;
    p->has_symbolic_sizes_strides_ = p->device_policy_ = p->layout_policy_ = p->custom_device_ = p->custom_layout_ = true;
    p->python_custom_device_ = p->python_custom_layout_ = true;
    p->sizes_strides_policy_ = p->custom_sizes_strides_ = p->python_custom_sizes_strides_ = 3;
    return p->meta_word();
  }
};

uint64_t g_meta_mask;
bool g_raw_layout_known;
bool g_use_raw;

const c10::TensorImpl* impl_of(PyObject* tensor) {
  return *reinterpret_cast<const c10::TensorImpl* const*>(reinterpret_cast<const char*>(tensor) + sizeof(PyObject));
}

bool same_dims(const int64_t* sizes, const int64_t* strides, const TensorSpec& spec) {
  uint64_t difference = 0;
  for (size_t i = 0; i < spec.rank; i++) {
    difference |= static_cast<uint64_t>(sizes[i] ^ spec.dims[i]) | static_cast<uint64_t>(strides[i] ^ spec.dims[spec.rank + i]);
  }
  return difference == 0;
}

// A dual tensor's words are those of a plain one, so its tangent has to be asked for.
bool has_tangent(const AutogradMeta* meta) { return meta->fw_grad_ != nullptr && !meta->fw_grad_->empty(); }

[[gnu::noinline]] bool tangents_may_exist() { return torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr; }

using Words16 [[gnu::vector_size(16)]] = uint64_t;
using Words32 [[gnu::vector_size(32)]] = uint64_t;
using Words64 [[gnu::vector_size(64)]] = uint64_t;

// Inlined into a function for each instruction set. What can be told without a branch is told at the end of each few tensors.
template <class Words>
[[gnu::always_inline]] inline bool match_run(PyObject* const* objects, const TensorSpec* const* specs, size_t count, Tangents possible) {
  constexpr size_t kAtOnce = 8;
  constexpr size_t kMany = 32;  // as many look at their own tangents for the price of asking whether there can be any
  const bool tangents = possible == Tangents::kPossible && (count < kMany || tangents_may_exist());
  const Words16 meta_and_keys_mask = {g_meta_mask, ~uint64_t{0}};
  for (size_t i = 0; i < count;) {
    Words difference = {};
    Words32 head_difference = {};
    Words16 meta_difference = {};
    uint64_t other = 0;
    for (const size_t end = std::min(count, i + kAtOnce); i < end; i++) {
      const TensorSpec& spec = *specs[i];
      if (Py_TYPE(objects[i]) != spec.type) return false;
      const Peek* p = Peek::of(impl_of(objects[i]));
      if (spec.sizes_suffice) {
        Words32 is, expected, mask;
        std::memcpy(&is, p->head(), sizeof is);
        std::memcpy(&expected, spec.head, sizeof expected);
        std::memcpy(&mask, spec.head_mask, sizeof mask);
        head_difference |= (is ^ expected) & mask;
        Words16 words, expected_words;
        std::memcpy(&words, p->meta_and_keys(), sizeof words);
        std::memcpy(&expected_words, &spec.meta, sizeof expected_words);
        meta_difference |= (words ^ expected_words) & meta_and_keys_mask;
      } else {
#pragma GCC unroll 8
        for (size_t at = 0; at < sizeof spec.mask; at += sizeof(Words)) {
          Words is, image, mask;
          std::memcpy(&is, reinterpret_cast<const char*>(p) + Peek::kTail + at, sizeof is);
          std::memcpy(&image, reinterpret_cast<const char*>(spec.image) + at, sizeof image);
          std::memcpy(&mask, reinterpret_cast<const char*>(spec.mask) + at, sizeof mask);
          difference |= (is ^ image) & mask;
        }
        if (!spec.dims_inside && (p->rank() != spec.rank || !same_dims(p->sizes_data(), p->strides_data(), spec))) return false;
      }
      const AutogradMeta* meta = p->autograd_raw();
      if (meta == nullptr) {
        other |= spec.requires_grad;
      } else {
        other |= (meta->requires_grad_ || meta->grad_fn_) != spec.requires_grad;
        if (tangents && has_tangent(meta)) return false;
      }
    }
    for (size_t k = 0; k < 4; k++) other |= head_difference[k];
    for (size_t k = 0; k < 2; k++) other |= meta_difference[k];
    for (size_t k = 0; k < sizeof(Words) / sizeof(uint64_t); k++) other |= difference[k];
    if (other != 0) return false;
  }
  return true;
}

bool match_plain(PyObject* const* objects, const TensorSpec* const* specs, size_t count, Tangents tangents) {
  return match_run<Words16>(objects, specs, count, tangents);
}

struct WordWidth {
  const char* name;
  bool (*match)(PyObject* const* objects, const TensorSpec* const* specs, size_t count, Tangents tangents);
};

#if defined(__x86_64__)
[[gnu::target("avx2")]] bool match_avx2(PyObject* const* objects, const TensorSpec* const* specs, size_t count, Tangents tangents) {
  return match_run<Words32>(objects, specs, count, tangents);
}
[[gnu::target("avx512f,avx512vl,avx512dq,prefer-vector-width=512")]] bool match_avx512(PyObject* const* objects,
                                                                                       const TensorSpec* const* specs, size_t count,
                                                                                       Tangents tangents) {
  return match_run<Words64>(objects, specs, count, tangents);
}
#endif

std::vector<WordWidth> word_widths() {
  std::vector<WordWidth> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    found.push_back({"avx512", match_avx512});
  if (__builtin_cpu_supports("avx2")) found.push_back({"avx2", match_avx2});
#endif
  found.push_back({"plain", match_plain});
  return found;
}

WordWidth g_words;

bool tangent_by_accessor(const c10::TensorImpl* impl) {
  auto* meta = static_cast<const AutogradMeta*>(const_cast<c10::TensorImpl*>(impl)->autograd_meta());
  return meta != nullptr && has_tangent(meta);
}

// The key set is compared first: with equal keys there is no subclass or wrapper whose accessors would call Python.
bool matches_by_accessor(PyObject* object, const TensorSpec& spec) {
  if (Py_TYPE(object) != spec.type) return false;
  const c10::TensorImpl* impl = impl_of(object);
  if (impl->key_set().raw_repr() != spec.keys || Peek::of(impl)->custom_policy()) return false;
  if (static_cast<uint64_t>(impl->dim()) != spec.rank || impl->requires_grad() != spec.requires_grad) return false;
  if (((Peek::of(impl)->meta_word() ^ spec.meta) & g_meta_mask) != 0) return false;
  return same_dims(impl->sizes().data(), impl->strides().data(), spec) && !tangent_by_accessor(impl);
}

bool layout_as_expected() {
  if (!Peek::word_covers_flags()) return false;
  at::Tensor plain = at::empty({2, 3}), grad = at::empty({4}, at::kDouble).set_requires_grad(true);
  for (const at::Tensor& t : {plain, grad, grad.alias()}) {
    auto* impl = t.unsafeGetTensorImpl();
    const Peek* p = Peek::of(impl);
    if (static_cast<const void*>(p->autograd_raw()) != static_cast<const void*>(impl->autograd_meta())) return false;
    if (p->rank() != static_cast<size_t>(impl->dim()) || p->sizes_data() != impl->sizes().data()) return false;
    if (p->keys() != impl->key_set().raw_repr() || !p->tail_covers_all() || !p->dims_inside() || !p->head_is_rank_and_sizes()) return false;
  }
  if (Peek::of(at::empty({1, 1, 1, 1, 1, 1}).unsafeGetTensorImpl())->dims_inside()) return false;
  const Peek *a = Peek::of(plain.unsafeGetTensorImpl()), *b = Peek::of(grad.unsafeGetTensorImpl());
  return ((a->meta_word() ^ b->meta_word()) & g_meta_mask) != 0;  // float and double differ in the word
}

void initialize() {
  static bool done = [] {
    g_meta_mask = Peek::meta_mask();
    g_words = word_widths().front();
    g_use_raw = g_raw_layout_known = layout_as_expected();
    return true;
  }();
  (void)done;
}

std::string dims_text(const int64_t* dims, size_t rank) {
  std::string text = "(";
  for (size_t i = 0; i < rank; i++) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + (rank == 1 ? ",)" : ")");
}

caffe2::TypeMeta dtype_of(const TensorSpec& spec) {
  caffe2::TypeMeta dtype;
  static_assert(sizeof dtype <= sizeof spec.meta);
  std::memcpy(static_cast<void*>(&dtype), &spec.meta, sizeof dtype);
  return dtype;
}

std::string dtype_text(const caffe2::TypeMeta& dtype) {
  switch (c10::typeMetaToScalarType(dtype)) {
    case c10::ScalarType::Float:
      return "torch.float32";
    case c10::ScalarType::Double:
      return "torch.float64";
    case c10::ScalarType::Half:
      return "torch.float16";
    case c10::ScalarType::BFloat16:
      return "torch.bfloat16";
    case c10::ScalarType::Byte:
      return "torch.uint8";
    case c10::ScalarType::Char:
      return "torch.int8";
    case c10::ScalarType::Short:
      return "torch.int16";
    case c10::ScalarType::Int:
      return "torch.int32";
    case c10::ScalarType::Long:
      return "torch.int64";
    case c10::ScalarType::Bool:
      return "torch.bool";
    case c10::ScalarType::ComplexHalf:
      return "torch.complex32";
    case c10::ScalarType::ComplexFloat:
      return "torch.complex64";
    case c10::ScalarType::ComplexDouble:
      return "torch.complex128";
    default: {  // the rarer ones are named in Python as in C++, in lower case
      std::string text = c10::toString(c10::typeMetaToScalarType(dtype));
      for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return "torch." + text;
    }
  }
}

c10::Device device_of(const TensorSpec& spec) {
  std::optional<c10::Device> device;
  // device_opt_ follows data_type_ inside the word.
  static_assert(sizeof device + sizeof(caffe2::TypeMeta) <= sizeof spec.meta);
  std::memcpy(static_cast<void*>(&device), reinterpret_cast<const char*>(&spec.meta) + sizeof(caffe2::TypeMeta), sizeof device);
  return device ? *device : c10::Device(c10::kCPU);
}

std::string keys_text(uint64_t keys) { return c10::toString(c10::DispatchKeySet(c10::DispatchKeySet::RAW, keys)); }

}  // namespace

struct FreeSpec {
  void operator()(char* bytes) const { ::operator delete (bytes, std::align_val_t{alignof(TensorSpec)}); }
};
using SpecBytes = std::unique_ptr<char, FreeSpec>;

struct SpecTable::Impl {
  std::map<std::string, SpecBytes> specs;
};

SpecTable::SpecTable() : impl_(std::make_unique<Impl>()) { initialize(); }
SpecTable::~SpecTable() = default;

bool is_tensor(PyObject* object) { return THPVariable_Check(object); }

bool getters_may_run_python(PyObject* object) {
  return THPVariable_Check(object) && (!THPVariable_CheckExact(object) || at::impl::PythonTorchFunctionTLS::stack_len() != 0 ||
                                       c10::impl::TorchDispatchModeTLS::stack_len() != 0);
}

const TensorSpec* SpecTable::add(PyObject* tensor) {
  if (!is_tensor(tensor)) {
    PyErr_Format(PyExc_TypeError, "a tensor guard needs a tensor, not %.100s", Py_TYPE(tensor)->tp_name);
    return nullptr;
  }
  if (!Peek::word_covers_flags()) {
    PyErr_SetString(PyExc_RuntimeError, "this torch lays tensors out in another way than the one this module was built for");
    return nullptr;
  }
  const c10::TensorImpl* impl = impl_of(tensor);
  const Peek* p = Peek::of(impl);
  if (p->custom_policy()) {
    PyErr_Format(PyExc_TypeError, "the metadata of this %.100s is computed by its class or symbolic: it cannot be guarded",
                 Py_TYPE(tensor)->tp_name);
    return nullptr;
  }
  if (tangent_by_accessor(impl)) {
    PyErr_SetString(PyExc_TypeError, "a tensor with a forward-mode tangent cannot be guarded");
    return nullptr;
  }
  size_t rank = p->rank(), size = sizeof(TensorSpec) + 2 * rank * sizeof(int64_t);
  SpecBytes bytes(static_cast<char*>(::operator new (size, std::align_val_t{alignof(TensorSpec)})));
  std::memset(bytes.get(), 0, size);  // padding too: specs are told apart by their bytes
  auto* spec = reinterpret_cast<TensorSpec*>(bytes.get());
  spec->type = Py_TYPE(tensor);
  spec->meta = p->meta_word() & g_meta_mask;
  spec->keys = impl->key_set().raw_repr();
  spec->rank = static_cast<uint32_t>(rank);
  spec->requires_grad = impl->requires_grad();
  if (rank != 0) {
    std::memcpy(spec->dims, impl->sizes().data(), rank * sizeof(int64_t));
    std::memcpy(spec->dims + rank, impl->strides().data(), rank * sizeof(int64_t));
  }
  p->tail(*spec);
  auto [found, inserted] = impl_->specs.emplace(std::string(bytes.get(), size), nullptr);
  if (inserted) found->second = std::move(bytes);
  return reinterpret_cast<const TensorSpec*>(found->second.get());
}

bool tensors_match(PyObject* const* objects, const TensorSpec* const* specs, size_t count, Tangents tangents) noexcept {
  if (__builtin_expect(!g_use_raw, 0)) {
    for (size_t i = 0; i < count; i++) {
      if (!matches_by_accessor(objects[i], *specs[i])) return false;
    }
    return true;
  }
  return g_words.match(objects, specs, count, tangents);
}

namespace {

uint64_t dims_key(uint64_t meta, const int64_t* sizes, size_t rank) {
  uint64_t key = meta ^ rank;
  for (size_t i = 0; i < rank; i++) key = (key ^ static_cast<uint64_t>(sizes[i])) * 0x9E3779B97F4A7C15ull;
  return key;
}

}  // namespace

uint64_t tensor_key(const TensorSpec& spec) noexcept { return dims_key(spec.meta, spec.sizes(), spec.rank); }

uint64_t tensor_key(PyObject* object) noexcept {
  if (!g_use_raw || !PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(THPVariableClass))) return 0;
  const Peek* p = Peek::of(impl_of(object));
  return p->custom_policy() ? 0 : dims_key(p->meta_word() & g_meta_mask, p->sizes_data(), p->rank());
}

std::string tensor_difference(PyObject* object, const TensorSpec& spec) {
  if (Py_TYPE(object) != spec.type) return std::string("class ") + Py_TYPE(object)->tp_name + " instead of " + spec.type->tp_name;
  const c10::TensorImpl* impl = impl_of(object);
  const Peek* p = Peek::of(impl);
  uint64_t keys = impl->key_set().raw_repr();
  if (p->custom_policy()) return "metadata that its class computes, or symbolic sizes";
  if (impl->dtype() != dtype_of(spec)) return "dtype " + dtype_text(impl->dtype()) + " instead of " + dtype_text(dtype_of(spec));
  c10::Device device = impl->device();
  if (device != device_of(spec)) return "device " + device.str() + " instead of " + device_of(spec).str();
  if (keys != spec.keys) return "dispatch keys " + keys_text(keys) + " instead of " + keys_text(spec.keys);
  size_t rank = p->rank();
  if (rank != spec.rank || std::memcmp(p->sizes_data(), spec.sizes(), rank * sizeof(int64_t)) != 0) {
    return "size " + dims_text(p->sizes_data(), rank) + " instead of " + dims_text(spec.sizes(), spec.rank);
  }
  if (std::memcmp(p->strides_data(), spec.strides(), rank * sizeof(int64_t)) != 0) {
    return "stride " + dims_text(p->strides_data(), rank) + " instead of " + dims_text(spec.strides(), spec.rank);
  }
  if (impl->requires_grad() != spec.requires_grad) {
    return std::string("requires_grad=") + (spec.requires_grad ? "False instead of True" : "True instead of False");
  }
  if (tangent_by_accessor(impl)) return "a forward-mode tangent";
  if (((p->meta_word() ^ spec.meta) & g_meta_mask) != 0) return "other flags (wrapped number, storage access)";
  return "";
}

std::string tensor_spec_text(const TensorSpec& spec) {
  char keys[32];
  std::snprintf(keys, sizeof keys, "0x%llx", static_cast<unsigned long long>(spec.keys));
  return "dtype='" + dtype_text(dtype_of(spec)) + "', device='" + device_of(spec).str() + "', size=" + dims_text(spec.sizes(), spec.rank) +
         ", stride=" + dims_text(spec.strides(), spec.rank) + ", requires_grad=" + (spec.requires_grad ? "True" : "False") +
         ", keys=" + keys;
}

bool reads_raw_tensors() {
  initialize();
  return g_use_raw;
}

void force_tensor_accessors(bool on) {
  initialize();
  g_use_raw = g_raw_layout_known && !on;
}

std::vector<std::string> tensor_word_widths() {
  std::vector<std::string> names;
  for (const WordWidth& each : word_widths()) names.emplace_back(each.name);
  return names;
}

bool force_tensor_word_width(const std::string& name) {
  initialize();
  for (const WordWidth& each : word_widths()) {
    if (each.name != name) continue;
    g_words = each;
    return true;
  }
  return false;
}

}  // namespace pellucid::bridge
