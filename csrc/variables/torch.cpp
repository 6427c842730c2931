// Calls into torch: classification by where a callable comes from, decided once per callable object.
#include "variables/torch.h"

#include <unordered_map>
#include <unordered_set>

#include "variables/torch_state.h"
#include "variables/torch_types.h"

namespace pellucid::variables {

namespace {

std::string attribute_text(PyObject* object, const char* name) {
  py::Ref value = py::Ref::steal(PyObject_GetAttrString(object, name));
  if (!value || !PyUnicode_Check(value.get())) {
    PyErr_Clear();
    return {};
  }
  return PyUnicode_AsUTF8(value.get());
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// Names in operator namespaces whose effect is not a tensor's value: they run as written.
const std::unordered_set<std::string_view> kNotOperators = {"manual_seed",
                                                            "seed",
                                                            "initial_seed",
                                                            "get_rng_state",
                                                            "set_rng_state",
                                                            "save",
                                                            "load",
                                                            "set_default_dtype",
                                                            "set_default_device",
                                                            "set_default_tensor_type",
                                                            "set_printoptions",
                                                            "compile",
                                                            "use_deterministic_algorithms",
                                                            "set_num_threads",
                                                            "set_num_interop_threads",
                                                            "set_flush_denormal",
                                                            "set_float32_matmul_precision",
                                                            "from_numpy",
                                                            "frombuffer",
                                                            "from_file",
                                                            "backward",
                                                            "register_hook",
                                                            "register_post_accumulate_grad_hook",
                                                            "retain_grad",
                                                            "share_memory_",
                                                            "storage",
                                                            "untyped_storage",
                                                            "is_shared",
                                                            "storage_type",
                                                            "pickle_storage_type",
                                                            "storage_offset",
                                                            "_is_view",
                                                            "is_set_to",
                                                            "_typed_storage",
                                                            "data_ptr",
                                                            "numpy",
                                                            "tolist",
                                                            "item",
                                                            "__array__",
                                                            "__reduce_ex__",
                                                            "__reduce__",
                                                            "__deepcopy__",
                                                            "__setstate__",
                                                            "__dlpack__",
                                                            "__repr__",
                                                            "__format__",
                                                            "__dir__",
                                                            "pin_memory",
                                                            "_jit_internal",
                                                            "wait",
                                                            "fork",
                                                            "import_ir_module",
                                                            "vmap",
                                                            "cond",
                                                            "set_warn_always",
                                                            "_assert_async",
                                                            "set_anomaly_enabled",
                                                            "to_dlpack",
                                                            "from_dlpack",
                                                            "sym_int",
                                                            "sym_max",
                                                            "sym_min",
                                                            "_sync",
                                                            "set_",
                                                            "_C",
                                                            "_nested_tensor_from_tensor_list",
                                                            "compiled_with_cxx11_abi",
                                                            "is_storage",
                                                            "typename",
                                                            "set_vital"};

// Modules whose Python functions are operators by themselves: the graph names them, as torch.nn.functional.relu.
bool operator_module(std::string_view module) {
  return module == "torch.nn.functional" || module == "torch.functional" || module == "torch._tensor" || module == "torch._VF" ||
         module == "torch.special" || module == "torch.linalg" || module == "torch.fft";
}

// Modules that are never inlined: driving autograd, compilers, serialization, data loading, processes.
bool break_module(std::string_view module) {
  for (std::string_view prefix :
       {"torch._dynamo",    "torch._inductor",  "torch.autograd.",     "torch.distributed",       "torch.jit",
        "torch.utils.data", "torch.fx",         "torch.serialization", "torch.multiprocessing",   "torch.onnx",
        "torch.export",     "torch._functorch", "torch.random",        "torch.utils.checkpoint",  "torch.profiler",
        "torch.hub",        "torch.optim",      "torch.func",          "torch._higher_order_ops", "torch._subclasses",
        "torch.cuda",       "torch.xpu",        "torch.mps",           "torch.package",           "torch.testing"})
    if (starts_with(module, prefix)) return module != "torch.autograd.grad_mode";
  return module == "torch.autograd" || module == "torch._ops" || module == "torch.hooks" || module == "torch.utils.hooks";
}

TorchRole role_of_c_function(PyObject* callable) {
  PyObject* self = PyCFunction_GET_SELF(callable);
  const std::string name = attribute_text(callable, "__name__");
  if (is_torch_state(callable)) return TorchRole::kState;
  if (self && PyModule_Check(self)) {
    const char* module = PyModule_GetName(self);
    if (!module) {
      PyErr_Clear();
      return TorchRole::kNone;
    }
    const std::string_view text = module;
    if (text == "torch._C._nn" || text == "torch._C._special" || text == "torch._C._linalg" || text == "torch._C._fft")
      return kNotOperators.count(name) ? TorchRole::kBreak : TorchRole::kOperator;
    return starts_with(text, "torch") ? TorchRole::kBreak : TorchRole::kNone;
  }
  const std::string_view owner = self ? (PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self)->tp_name : Py_TYPE(self)->tp_name) : "";
  if (owner == "torch._C._VariableFunctionsClass" || owner == "_VariableFunctionsClass" || owner == "torch._C._VariableFunctions")
    return kNotOperators.count(name) ? TorchRole::kBreak : TorchRole::kOperator;
  if (!self || owner == "NoneType") {
    const std::string module = attribute_text(callable, "__module__");
    if (starts_with(module, "torch")) return kNotOperators.count(name) ? TorchRole::kBreak : TorchRole::kOperator;
  }
  return TorchRole::kNone;
}

TorchRole find_role(PyObject* callable) {
  const TorchTypes& torch = *torch_types();
  if (is_torch_state(callable)) return TorchRole::kState;
  if (PyCFunction_Check(callable)) return role_of_c_function(callable);
  PyTypeObject* type = Py_TYPE(callable);
  if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyGetSetDescr_Type) {
    if (!PyType_IsSubtype(PyDescr_TYPE(callable), torch.tensor_base)) return TorchRole::kNone;
    const char* name = PyUnicode_AsUTF8(PyDescr_NAME(callable));
    return kNotOperators.count(name) ? TorchRole::kBreak : TorchRole::kOperator;
  }
  if (PyFunction_Check(callable)) {
    const std::string module = attribute_text(callable, "__module__");
    if (!starts_with(module, "torch")) return TorchRole::kNone;
    const std::string name = attribute_text(callable, "__name__");
    // Helpers of torch.nn.functional (_canonical_mask, _none_or_dtype): what they do is in the graph, not that they were called.
    if (module == "torch.nn.functional" && starts_with(name, "_")) return TorchRole::kNone;
    if (operator_module(module) && name != "__getattr__") {
      if (module == "torch._tensor" && attribute_text(callable, "__qualname__").find('.') == std::string::npos) return TorchRole::kNone;
      return kNotOperators.count(name) ? TorchRole::kBreak : TorchRole::kOperator;
    }
    if (module == "torch._jit_internal" && (name == "fn" || name.find("max_pool") != std::string::npos))
      return TorchRole::kOperator;  // boolean_dispatch
    if (module == "torch" && (name == "_assert" || name == "split" || name == "chunk")) return TorchRole::kOperator;
    return break_module(module) ? TorchRole::kBreak : TorchRole::kNone;
  }
  if (PyObject_TypeCheck(callable, torch.op_overload) || PyObject_TypeCheck(callable, torch.op_overload_packet))
    return TorchRole::kOperator;
  return TorchRole::kNone;
}

}  // namespace

TorchRole torch_role(PyObject* callable) {
  static std::unordered_map<PyObject*, TorchRole> roles;  // keeps its keys alive: an id must not come to mean another callable
  auto found = roles.find(callable);
  if (found != roles.end()) return found->second;
  const TorchRole role = find_role(callable);
  if (role != TorchRole::kNone) {
    Py_INCREF(callable);
    roles.emplace(callable, role);
  }
  return role;
}

namespace {

// pellucid.allow_in_graph(f): by id, holding the function. Borrowed; null with an exception set.
PyObject* allowed_in_graph() {
  static PyObject* allowed = nullptr;
  if (allowed == nullptr) {
    py::Ref api = py::Ref::steal(PyImport_ImportModule("pellucid.api"));
    allowed = api ? PyObject_GetAttrString(api.get(), "allowed_in_graph") : nullptr;
  }
  return allowed;
}

}  // namespace

Answer call_torch(Tracer& t, PyObject* callable, Arguments& arguments, bool* handled) {
  *handled = true;
  PyObject* allowed = allowed_in_graph();
  if (!allowed) return t.fatal();
  if (PyDict_GET_SIZE(allowed) > 0) {
    py::Ref id = py::Ref::steal(PyLong_FromVoidPtr(callable));
    if (id && PyDict_GetItemWithError(allowed, id.get())) return t.torch_operator(callable, nullptr, arguments);
  }
  switch (torch_role(callable)) {
    case TorchRole::kState:
      return call_torch_state(t, callable, arguments);
    case TorchRole::kBreak: {
      const std::string name = attribute_text(callable, "__name__");
      return t.fail(name == "backward" || name == "grad" ? Reason::backward_call : Reason::unsupported_callable,
                    attribute_text(callable, "__module__") + "." + name);
    }
    case TorchRole::kOperator: {
      PyTypeObject* type = Py_TYPE(callable);
      if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type) {
        if (arguments.positional.empty() || t.force(arguments.positional[0])->kind != Kind::kTensor) break;
        return t.torch_operator(nullptr, PyDescr_NAME(callable), arguments);
      }
      return t.torch_operator(callable, nullptr, arguments);
    }
    case TorchRole::kNone:
      break;
  }
  *handled = false;
  return nullptr;
}

}  // namespace pellucid::variables
