// Global state as three words. The fast reader keeps the addresses of torch's thread-local objects per thread (they never move) and
// reads two private layouts, which are checked against the public accessors at load; with any doubt the accessors are used.
#include "torch_bridge/global_state.h"

#include <ATen/Context.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/forward_grad.h>

#include <cstdio>
#include <cstring>

#include "cpython/objects.h"
#include "py/collector.h"
#include "source/plain.h"

namespace pellucid::bridge {
namespace {

using at::impl::PythonTorchFunctionTLS;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::impl::TorchDispatchModeTLS;

// Bits of GlobalState::bits.
constexpr int kDisabledShift = 8, kSkipShift = 10, kDepthShift = 16, kDtypeShift = 32, kDeterministicShift = 40;
constexpr int kForwardLevelShift = 43, kHooksDisabledShift = 44, kHooksShift = 48;
constexpr uint64_t kFlagMask = 0x3f;  // grad, inference, forward grad, multithreading, view replay, grad layout enforcement

struct Words {
  uint64_t included, excluded, bits;
};

uint64_t process_bits() {  // process-wide, by accessors in both versions
  auto& context = at::globalContext();
  uint64_t deterministic = context.deterministicAlgorithms() | context.deterministicAlgorithmsWarnOnly() << 1 |
                           context.deterministicFillUninitializedMemory() << 2;
  // Levels are of the process, and level 0 is the only one there can be.
  const bool forward_level = torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr;
  return static_cast<uint64_t>(c10::get_default_dtype_as_scalartype()) << kDtypeShift | deterministic << kDeterministicShift |
         static_cast<uint64_t>(forward_level) << kForwardLevelShift;
}

// Saved-tensor hooks: how many there are, not which. Graphs call those that are there, and programs make new ones at every call.
uint64_t hook_bits(const at::impl::SavedTensorDefaultHooksTLS& hooks) {
  return static_cast<uint64_t>(hooks.disabled_error_message.has_value()) << kHooksDisabledShift |
         static_cast<uint64_t>(hooks.stack.size() & 0xffff) << kHooksShift;
}

uint64_t flags_by_accessor(const c10::AutogradState& state) {
  return state.get_grad_mode() | state.get_inference_mode() << 1 | state.get_fw_grad_mode() << 2 | state.get_multithreading_enabled() << 3 |
         state.get_view_replay_enabled() << 4 | state.get_grad_layout_enforcement_enabled() << 5;
}

uint64_t function_bits(uint64_t disabled, bool skip, uint64_t depth) {
  return disabled << kDisabledShift | static_cast<uint64_t>(skip) << kSkipShift | (depth & 0xffff) << kDepthShift;
}

Words read_by_accessor() {
  auto keys = c10::impl::tls_local_dispatch_key_set();
  uint64_t function = function_bits(PythonTorchFunctionTLS::get_disabled_state(), PythonTorchFunctionTLS::peek_skip_next(),
                                    static_cast<uint64_t>(PythonTorchFunctionTLS::stack_len()));
  return {keys.included_.raw_repr(), keys.excluded_.raw_repr(),
          flags_by_accessor(c10::AutogradState::get_tls_state()) | function | process_bits() |
              hook_bits(at::SavedTensorDefaultHooks::get_tls_state())};
}

// The private layout of PythonTorchFunctionTLS: checked in layout_as_expected.
struct FunctionState {
  int disabled;
  bool skip_next;
  void *stack_begin, *stack_end, *stack_capacity;
};
static_assert(sizeof(FunctionState) == sizeof(PythonTorchFunctionTLS));
constexpr size_t kStackEntry = sizeof(std::shared_ptr<c10::SafePyObject>);

struct ThreadPointers {  // trivially constructible, so that the thread-local below needs no guard
  c10::impl::PODLocalDispatchKeySet* keys;
  const char* autograd_flags;
  const FunctionState* function;
  const at::impl::SavedTensorDefaultHooksTLS* hooks;
};
thread_local ThreadPointers t_pointers;

uint64_t raw_flags(const char* at) {
  uint8_t flags;
  std::memcpy(&flags, at, 1);
  return flags & kFlagMask;
}

// The flags are bit fields behind the optional group, which is the only other member.
const char* flags_address(const c10::AutogradState& state) {
  return reinterpret_cast<const char*>(&state) + sizeof(std::optional<c10::SafePyObject>);
}

__attribute__((noinline)) void fill_pointers() {
  t_pointers.autograd_flags = flags_address(c10::AutogradState::get_tls_state());
  t_pointers.function = reinterpret_cast<const FunctionState*>(&PythonTorchFunctionTLS::get_state());
  t_pointers.hooks = &at::SavedTensorDefaultHooks::get_tls_state();
  t_pointers.keys = &c10::impl::raw_local_dispatch_key_set;
}

inline Words read_raw() {
  ThreadPointers& at = t_pointers;
  if (__builtin_expect(at.keys == nullptr, 0)) fill_pointers();
  const FunctionState* function = at.function;
  uint64_t depth = static_cast<uint64_t>(static_cast<char*>(function->stack_end) - static_cast<char*>(function->stack_begin)) / kStackEntry;
  return {at.keys->included().raw_repr(), at.keys->excluded().raw_repr(),
          raw_flags(at.autograd_flags) | function_bits(static_cast<uint64_t>(function->disabled), function->skip_next, depth) |
              process_bits() | hook_bits(*at.hooks)};
}

bool layout_as_expected() {
  for (int bits = 0; bits < 64; bits++) {
    c10::AutogradState state(bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3 & 1);
    state.set_view_replay_enabled(bits >> 4 & 1);
    state.set_grad_layout_enforcement_enabled(bits >> 5 & 1);
    if (raw_flags(flags_address(state)) != flags_by_accessor(state)) return false;
  }
  Words fast = read_raw(), slow = read_by_accessor();
  if (fast.included != slow.included || fast.excluded != slow.excluded || fast.bits != slow.bits) return false;
  auto disabled = PythonTorchFunctionTLS::get_disabled_state();
  bool skip = PythonTorchFunctionTLS::peek_skip_next();
  PythonTorchFunctionTLS::set_disabled_state(at::impl::SUBCLASSES_DISABLED);
  PythonTorchFunctionTLS::exchange_skip_next(!skip);
  bool same = read_raw().bits == read_by_accessor().bits && read_raw().bits != slow.bits;
  PythonTorchFunctionTLS::set_disabled_state(disabled);
  PythonTorchFunctionTLS::exchange_skip_next(skip);
  return same;
}

bool g_layout_known, g_use_raw;

void initialize() {
  static bool done = [] {
    g_use_raw = g_layout_known = layout_as_expected();
    return true;
  }();
  (void)done;
}

Words read() { return __builtin_expect(g_use_raw, 1) ? read_raw() : read_by_accessor(); }

bool any_autocast(uint64_t excluded) {
  // Autocast is on where its key is not excluded.
  return (excluded & c10::autocast_dispatch_keyset.raw_repr()) != c10::autocast_dispatch_keyset.raw_repr();
}

bool has(uint64_t keys, DispatchKey key) { return DispatchKeySet(DispatchKeySet::RAW, keys).has(key); }

bool needs_cold(const Words& words) {
  return (words.bits >> kDepthShift & 0xffff) != 0 || has(words.included, DispatchKey::Python) ||
         has(words.included, DispatchKey::FuncTorchDynamicLayerFrontMode) || any_autocast(words.excluded);
}

PyObject* function_mode(int64_t i) { return PythonTorchFunctionTLS::get_stack_at(i)->ptr(getPyInterpreter()); }
PyObject* dispatch_mode(int64_t i) { return TorchDispatchModeTLS::get_stack_at(i)->ptr(getPyInterpreter()); }

// The device of a torch.utils._device.DeviceContext (borrowed), or null.
PyObject* context_device(PyObject* mode) {
  if (std::strcmp(Py_TYPE(mode)->tp_name, "DeviceContext") != 0) return nullptr;
  static PyObject* const name = PyUnicode_InternFromString("device");
  cpython::Key key{name, PyObject_Hash(name)};
  PyObject* device = nullptr;
  cpython::find_in_instance(
      mode, key, [](PyObject* left, PyObject* right) { return left != nullptr && source::plain_equal(left, right) ? 1 : 0; }, &device);
  return device;
}

bool capture_mode(PyObject* object, GlobalState::Mode& mode) {
  if (PyObject* device = context_device(object)) {
    mode.device = py::Ref::share(device);
    return true;
  }
  mode.weak = py::Ref::steal(PyWeakref_NewRef(object, nullptr));
  return static_cast<bool>(mode.weak);
}

bool mode_matches(PyObject* object, const GlobalState::Mode& mode) {
  if (mode.weak) return PyWeakref_GET_OBJECT(mode.weak.get()) == object;
  PyObject* device = context_device(object);
  return device != nullptr && source::plain_equal(device, mode.device.get());
}

// Kinds of the functorch transforms in force, outermost first. Their C++ header needs one that the wheel lacks, so the C functions of
// torch._C._functorch are asked; only ever called while a transform is on. Guards do this too, so nothing of a program's may run: no
// import, which is a call of builtins.__import__, and no finalizer.
std::vector<int> functorch_layers() {
  const py::PauseCollector pause;
  std::vector<int> kinds;
  py::Ref name = py::Ref::steal(PyUnicode_InternFromString("torch._C._functorch"));
  py::Ref module = name ? py::Ref::steal(PyImport_GetModule(name.get())) : py::Ref();
  py::Ref stack = module ? py::Ref::steal(PyObject_CallMethod(module.get(), "get_interpreter_stack", nullptr)) : py::Ref();
  if (stack && stack.get() == Py_None) return kinds;
  Py_ssize_t count = stack ? PySequence_Size(stack.get()) : -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    py::Ref layer = py::Ref::steal(PySequence_GetItem(stack.get(), i));
    py::Ref kind = layer ? py::Ref::steal(PyObject_CallMethod(layer.get(), "key", nullptr)) : py::Ref();
    py::Ref number = kind ? py::Ref::steal(PyNumber_Long(kind.get())) : py::Ref();
    kinds.push_back(number ? static_cast<int>(PyLong_AsLong(number.get())) : -1);
  }
  if (!module || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    kinds.push_back(-2);  // equals nothing that was captured without an error
  }
  return kinds;
}

bool functorch_on(uint64_t included) { return has(included, DispatchKey::FuncTorchDynamicLayerFrontMode); }

std::string modes_difference(const char* what, const std::vector<GlobalState::Mode>& modes, int64_t depth, PyObject* (*at)(int64_t)) {
  if (static_cast<size_t>(depth) != modes.size()) {
    return std::string(what) + " depth " + std::to_string(depth) + " instead of " + std::to_string(modes.size());
  }
  for (int64_t i = 0; i < depth; i++) {
    if (!mode_matches(at(i), modes[static_cast<size_t>(i)])) return std::string(what) + " " + std::to_string(i) + " is another object";
  }
  return "";
}

bool modes_match(const std::vector<GlobalState::Mode>& modes, int64_t depth, PyObject* (*at)(int64_t)) {
  if (static_cast<size_t>(depth) != modes.size()) return false;
  for (int64_t i = 0; i < depth; i++) {
    if (!mode_matches(at(i), modes[static_cast<size_t>(i)])) return false;
  }
  return true;
}

bool cold_matches(const GlobalState& state) {
  if (functorch_on(state.included) && functorch_layers() != state.functorch_layers) return false;
  if (!modes_match(state.function_modes, PythonTorchFunctionTLS::stack_len(), function_mode)) return false;
  if (!modes_match(state.dispatch_modes, TorchDispatchModeTLS::stack_len(), dispatch_mode)) return false;
  for (auto [device, dtype] : state.autocast) {
    if (static_cast<int>(at::autocast::get_autocast_dtype(static_cast<at::DeviceType>(device))) != dtype) return false;
  }
  return state.autocast.empty() || at::autocast::is_autocast_cache_enabled() == state.autocast_cache;
}

std::string bool_text(bool value) { return value ? "True" : "False"; }

std::string dtype_name(int scalar_type) {
  static const std::pair<c10::ScalarType, const char*> kNames[] = {{c10::ScalarType::Float, "torch.float32"},
                                                                   {c10::ScalarType::Double, "torch.float64"},
                                                                   {c10::ScalarType::Half, "torch.float16"},
                                                                   {c10::ScalarType::BFloat16, "torch.bfloat16"}};
  for (auto [type, name] : kNames) {
    if (static_cast<int>(type) == scalar_type) return name;
  }
  return c10::toString(static_cast<c10::ScalarType>(scalar_type));
}

struct FlagName {
  int shift;
  uint64_t mask;
  const char* name;
};
constexpr FlagName kFlags[] = {
    {0, 1, "grad_mode"},
    {1, 1, "inference_mode"},
    {2, 1, "forward_grad_mode"},
    {3, 1, "multithreading"},
    {4, 1, "view_replay"},
    {5, 1, "grad_layout_enforcement"},
    {kDisabledShift, 3, "torch_function_disabled"},
    {kSkipShift, 1, "torch_function_skip_next"},
    {kDepthShift, 0xffff, "torch_function_modes"},
    {kDeterministicShift, 1, "deterministic_algorithms"},
    {kDeterministicShift + 1, 1, "deterministic_warn_only"},
    {kDeterministicShift + 2, 1, "fill_uninitialized_memory"},
    {kForwardLevelShift, 1, "forward_ad_level"},
    {kHooksDisabledShift, 1, "saved_tensors_hooks_disabled"},
    {kHooksShift, 0xffff, "saved_tensors_hooks"},
};

std::string keys_text(uint64_t keys) { return c10::toString(DispatchKeySet(DispatchKeySet::RAW, keys)); }

void append(std::string& text, const std::string& part) {
  if (part.empty()) return;
  if (!text.empty()) text += ", ";
  text += part;
}

}  // namespace

bool tracer_is_watching() {
  if (has(c10::impl::tls_local_dispatch_key_set().included_.raw_repr(), DispatchKey::Tracer)) return true;
  if (TorchDispatchModeTLS::get_mode(c10::impl::TorchDispatchModeKey::PROXY)) return true;
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch.fx._symbolic_trace");
  PyObject* dict = module != nullptr && PyModule_Check(module) ? PyModule_GetDict(module) : nullptr;
  return dict != nullptr && PyDict_GetItemString(dict, "_is_fx_tracing_flag") == Py_True;
}

uint32_t float32_precision(unsigned classes) noexcept {
  constexpr at::Float32Op kOps[] = {at::Float32Op::MATMUL, at::Float32Op::CONV, at::Float32Op::RNN};
  const auto& context = at::globalContext();
  uint32_t result = 0;
  for (unsigned i = 0; i < 3; i++) {
    if ((classes >> i & 1) == 0) continue;
    for (auto backend : {at::Float32Backend::CUDA, at::Float32Backend::MKLDNN})
      result = result << 4 | static_cast<uint32_t>(context.float32Precision(backend, kOps[i]));
  }
  return result;
}

std::string float32_precision_text(uint32_t precision) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", precision);
  return text;
}

bool capture_global_state(GlobalState& out) {
  initialize();
  Words words = read();
  out = GlobalState{};
  out.included = words.included;
  out.excluded = words.excluded;
  out.bits = words.bits;
  out.cold = needs_cold(words);
  if (!out.cold) return true;
  for (int64_t i = 0; i < PythonTorchFunctionTLS::stack_len(); i++) {
    if (!capture_mode(function_mode(i), out.function_modes.emplace_back())) return false;
  }
  for (int64_t i = 0; i < TorchDispatchModeTLS::stack_len(); i++) {
    if (!capture_mode(dispatch_mode(i), out.dispatch_modes.emplace_back())) return false;
  }
  if (functorch_on(words.included)) out.functorch_layers = functorch_layers();
  for (auto device : at::autocast::_AUTOCAST_SUPPORTED_DEVICES) {
    if (at::autocast::is_autocast_enabled(device)) {
      out.autocast.emplace_back(static_cast<int>(device), static_cast<int>(at::autocast::get_autocast_dtype(device)));
    }
  }
  out.autocast_cache = at::autocast::is_autocast_cache_enabled();
  return true;
}

bool global_state_matches(const GlobalState& state) noexcept {
  Words now = read();
  if (((now.included ^ state.included) | (now.excluded ^ state.excluded) | (now.bits ^ state.bits)) != 0) return false;
  return __builtin_expect(!state.cold, 1) || cold_matches(state);
}

std::string global_state_difference(const GlobalState& state) {
  Words now = read();
  std::string text;
  for (const FlagName& flag : kFlags) {
    uint64_t is = now.bits >> flag.shift & flag.mask, was = state.bits >> flag.shift & flag.mask;
    if (is == was) continue;
    std::string name = flag.name;
    append(text, flag.mask == 1 ? name + " " + bool_text(is) + " instead of " + bool_text(was)
                                : name + " " + std::to_string(is) + " instead of " + std::to_string(was));
  }
  int dtype = static_cast<int>(now.bits >> kDtypeShift & 0xff);
  if (dtype != state.default_dtype())
    append(text, "default dtype " + dtype_name(dtype) + " instead of " + dtype_name(state.default_dtype()));
  append(text, modes_difference("torch function mode", state.function_modes, PythonTorchFunctionTLS::stack_len(), function_mode));
  append(text, modes_difference("torch dispatch mode", state.dispatch_modes, TorchDispatchModeTLS::stack_len(), dispatch_mode));
  size_t level = functorch_on(now.included) ? functorch_layers().size() : 0;
  if (level != state.functorch_level())
    append(text, "functorch level " + std::to_string(level) + " instead of " + std::to_string(state.functorch_level()));
  for (auto device : at::autocast::_AUTOCAST_SUPPORTED_DEVICES) {
    int was = -1;
    for (auto [kept, dtype] : state.autocast) was = kept == static_cast<int>(device) ? dtype : was;
    int is = at::autocast::is_autocast_enabled(device) ? static_cast<int>(at::autocast::get_autocast_dtype(device)) : -1;
    if (is == was) continue;
    append(text, "autocast on " + c10::DeviceTypeName(device, true) + " " + (is < 0 ? "off" : dtype_name(is)) + " instead of " +
                     (was < 0 ? "off" : dtype_name(was)));
  }
  if (text.empty() && now.included != state.included)
    append(text, "included keys " + keys_text(now.included) + " instead of " + keys_text(state.included));
  if (text.empty() && now.excluded != state.excluded)
    append(text, "excluded keys " + keys_text(now.excluded) + " instead of " + keys_text(state.excluded));
  if (text.empty() && !global_state_matches(state)) text = "autocast cache or functorch layers";
  return text;
}

std::string global_state_text(const GlobalState& state) {
  std::string text = "default_dtype='" + dtype_name(state.default_dtype()) + "'";
  for (const FlagName& flag : kFlags) {
    uint64_t value = state.bits >> flag.shift & flag.mask;
    text += std::string(", ") + flag.name + "=" + (flag.mask == 1 ? bool_text(value) : std::to_string(value));
  }
  char keys[80];
  std::snprintf(keys, sizeof keys, ", included=0x%llx, excluded=0x%llx", static_cast<unsigned long long>(state.included),
                static_cast<unsigned long long>(state.excluded));
  text += keys;
  text += ", torch_dispatch_modes=" + std::to_string(state.dispatch_modes.size()) +
          ", functorch_level=" + std::to_string(state.functorch_level());
  text += ", autocast={";
  for (size_t i = 0; i < state.autocast.size(); i++) {
    auto [device, dtype] = state.autocast[i];
    text += (i ? ", '" : "'") + c10::DeviceTypeName(static_cast<at::DeviceType>(device), true) + "': '" + dtype_name(dtype) + "'";
  }
  return text + "}";
}

bool reads_raw_state() {
  initialize();
  return g_use_raw;
}

void force_state_accessors(bool on) {
  initialize();
  g_use_raw = g_layout_known && !on;
}

}  // namespace pellucid::bridge
