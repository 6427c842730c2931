// torch's global state: queries are called during capture (the traced program's own changes are applied to the real state while
// capture lasts, and undone after it), constants are answered, changes become nodes of the graph.
#include "variables/torch_state.h"

#include <iterator>
#include <unordered_map>
#include <vector>

#include "torch_bridge/state_scope.h"
#include "variables/torch.h"
#include "variables/torch_types.h"

namespace pellucid::variables {

namespace {

enum class StateKind : uint8_t {
  kQuery,  // call it: its answer follows from guarded state
  kTrue,
  kFalse,
  kNone,
  kSetGrad,  // torch._C._set_grad_enabled
  kSet,      // other changes of modes: a node that is always kept
  kIsTensor,
  kIsCompiling,
  kHasTorchFunction,
  kCheck,  // torch._check(condition, message)
};

struct Entry {
  const char* module;
  const char* path;
  StateKind kind;
};

const Entry kEntries[] = {
    {"torch", "is_grad_enabled", StateKind::kQuery},
    {"torch._C", "is_grad_enabled", StateKind::kQuery},
    {"torch", "is_inference_mode_enabled", StateKind::kQuery},
    {"torch", "get_default_dtype", StateKind::kQuery},
    {"torch", "is_autocast_enabled", StateKind::kQuery},
    {"torch", "is_autocast_cpu_enabled", StateKind::kQuery},
    {"torch", "get_autocast_dtype", StateKind::kQuery},
    {"torch", "get_autocast_cpu_dtype", StateKind::kQuery},
    {"torch", "get_autocast_gpu_dtype", StateKind::kQuery},
    {"torch", "is_autocast_cache_enabled", StateKind::kQuery},
    {"torch", "are_deterministic_algorithms_enabled", StateKind::kQuery},
    {"torch.backends.mha", "get_fastpath_enabled", StateKind::kQuery},
    {"torch._C", "_is_torch_function_enabled", StateKind::kQuery},
    {"torch._C", "_get_tracing_state", StateKind::kNone},
    {"torch._C", "_log_api_usage_once", StateKind::kNone},
    {"torch.jit", "is_scripting", StateKind::kFalse},
    {"torch.jit", "is_tracing", StateKind::kFalse},
    {"torch._jit_internal", "is_scripting", StateKind::kFalse},
    {"torch.onnx", "is_in_onnx_export", StateKind::kFalse},
    {"torch.compiler", "is_compiling", StateKind::kTrue},
    {"torch.compiler", "is_dynamo_compiling", StateKind::kFalse},
    {"pellucid.api", "is_compiling", StateKind::kTrue},
    {"torch.compiler", "is_exporting", StateKind::kFalse},
    {"torch._utils", "is_compiling", StateKind::kTrue},
    {"pellucid.api", "is_compiling", StateKind::kTrue},
    {"torch._C", "_set_grad_enabled", StateKind::kSetGrad},
    {"torch", "set_autocast_enabled", StateKind::kSet},
    {"torch", "set_autocast_dtype", StateKind::kSet},
    {"torch", "set_autocast_cache_enabled", StateKind::kSet},
    {"torch", "autocast_increment_nesting", StateKind::kSet},
    {"torch", "autocast_decrement_nesting", StateKind::kSet},
    {"torch", "clear_autocast_cache", StateKind::kSet},
    {"torch._C", "_is_autocast_available", StateKind::kQuery},
    {"torch._C", "_get_privateuse1_backend_name", StateKind::kQuery},
    {"torch._C", "_is_torch_function_mode_enabled", StateKind::kQuery},
    {"torch._C", "_len_torch_dispatch_stack", StateKind::kQuery},
    {"torch._C", "_len_torch_function_stack", StateKind::kQuery},
    {"torch.cuda", "is_available", StateKind::kQuery},
    {"torch", "is_tensor", StateKind::kIsTensor},
    {"torch.overrides", "has_torch_function", StateKind::kHasTorchFunction},
    {"torch.overrides", "has_torch_function_unary", StateKind::kHasTorchFunction},
    {"torch.overrides", "has_torch_function_variadic", StateKind::kHasTorchFunction},
    {"torch._C", "_has_torch_function", StateKind::kHasTorchFunction},
    {"torch._C", "_has_torch_function_unary", StateKind::kHasTorchFunction},
    {"torch._C", "_has_torch_function_variadic", StateKind::kHasTorchFunction},
    {"torch.overrides", "is_tensor_like", StateKind::kIsTensor},
    {"torch", "_check", StateKind::kCheck},
};

// By function. Functions of modules that nobody has imported are found when a callable is looked for after their module was: importing
// them here would cost more than the capture (torch.onnx).
const std::unordered_map<PyObject*, StateKind>& table() {
  static std::unordered_map<PyObject*, StateKind> made;
  static std::vector<Entry> pending(std::begin(kEntries), std::end(kEntries));
  const std::vector<Entry> looked_for = pending;  // reading attributes may run Python, and other threads may be here meanwhile
  for (const Entry& entry : looked_for) {
    py::Ref name = py::Ref::steal(PyUnicode_InternFromString(entry.module));
    py::Ref module = name ? py::Ref::steal(PyImport_GetModule(name.get())) : py::Ref();
    PyObject* function = module ? PyObject_GetAttrString(module.get(), entry.path) : nullptr;  // kept for the life of the process
    if (function == nullptr) {
      PyErr_Clear();  // not imported; or another torch lacks it, or it is being imported: an ordinary callable, or looked for again
      continue;
    }
    made.emplace(function, entry.kind);
    std::erase_if(pending, [&](const Entry& one) { return one.module == entry.module && one.path == entry.path; });
  }
  return made;
}

Answer query(Tracer& t, PyObject* callable, Arguments& arguments) {
  std::vector<PyObject*> values;
  for (Variable* argument : arguments.positional) {
    PyObject* value = known(t, argument);
    if (!value) return t.fail(Reason::unsupported_builtin, "a query of torch's state with " + describe(argument));
    values.push_back(value);
  }
  if (!arguments.keywords.empty()) return t.fail(Reason::unsupported_builtin, "a query of torch's state with keywords");
  py::Ref result = py::Ref::steal(PyObject_Vectorcall(callable, values.data(), values.size(), nullptr));
  if (!result) return t.raise_python_error();
  return t.constant(result.get());
}

}  // namespace

bool is_torch_state(PyObject* callable) { return table().count(callable) != 0; }

Answer call_torch_state(Tracer& t, PyObject* callable, Arguments& arguments) {
  switch (table().at(callable)) {
    case StateKind::kQuery:
      return query(t, callable, arguments);
    case StateKind::kTrue:
      return t.boolean(true);
    case StateKind::kIsCompiling:
      return t.boolean(true);
    case StateKind::kFalse:
      return t.boolean(false);
    case StateKind::kNone:
      return t.none();
    case StateKind::kHasTorchFunction:
      return t.boolean(false);  // tensor inputs are plain tensors and parameters: guarded by class
    case StateKind::kIsTensor: {
      if (!arguments.only_positional(1, 1)) break;
      Variable* value = t.force(arguments.positional[0]);
      if (value->kind == Kind::kObject && PyType_IsSubtype(static_cast<ObjectVariable*>(value)->type, torch_types()->tensor_base))
        return t.boolean(true);
      if (value->kind == Kind::kObject && callable != nullptr && class_lookup(t, value, t.intern("__torch_function__")).value()) break;
      return t.boolean(value->kind == Kind::kTensor);
    }
    case StateKind::kSetGrad: {
      if (!arguments.only_positional(1, 1)) break;
      PyObject* mode = known(t, arguments.positional[0]);
      if (mode != Py_True && mode != Py_False) break;
      if (bridge::grad_enabled() == (mode == Py_True)) return t.none();
      return t.state_operator(callable, arguments);  // made for real during capture: the fakes after it see the mode
    }
    case StateKind::kSet:
      if (!arguments.keywords.empty()) break;
      return t.state_operator(callable, arguments);
    case StateKind::kCheck: {
      if (arguments.positional.empty() || arguments.positional.size() > 2 || !arguments.keywords.empty()) break;
      const int holds = TRY(maybe_truth(t, arguments.positional[0]));
      if (holds == 1) return t.none();
      break;
    }
  }
  return t.fail(Reason::unsupported_builtin, "a function of torch's state with these arguments");
}

Answer make_inference_mode(Tracer& t, Arguments& arguments) {
  if (!arguments.only_positional(1, 1) || !known(t, arguments.positional[0]))
    return t.fail(Reason::unsupported_builtin, "_InferenceMode with these arguments");
  auto* context = t.make<ObjectVariable>();
  context->existed = false;
  context->type = torch_types()->inference_mode_context;
  context->arguments = arguments.positional;
  return context;
}

Answer call_inference_mode(Tracer& t, ObjectVariable* context, PyObject* method) {
  const bool enters = PyUnicode_CompareWithASCIIString(method, "__enter__") == 0;
  std::vector<Variable*>& state = context->arguments;  // the mode, then what entering returned
  if (enters && state.size() == 1) {
    state.push_back(TRY(t.state_operator(torch_types()->enter_inference_mode, {{state[0]}, {}})));
    return context;
  }
  if (PyUnicode_CompareWithASCIIString(method, "__exit__") == 0 && state.size() == 2) {
    return t.state_operator(torch_types()->exit_inference_mode, {{state[1]}, {}});
  }
  return t.fail(Reason::unsupported_method, "a method of an inference mode context");
}

}  // namespace pellucid::variables
