// Calls: by the kind of the callee, in the order modelled, polyfilled, folded, graph break.
#include "base/check.h"
#include "variables/function.h"
#include "variables/torch_state.h"
#include "variables/torch_types.h"
#include "variables/tracer.h"

namespace pellucid::variables {

namespace {

std::string callable_name(PyObject* callable) {
  py::Ref name = py::Ref::steal(PyObject_GetAttrString(callable, "__qualname__"));
  if (!name) PyErr_Clear();
  py::Ref module = py::Ref::steal(PyObject_GetAttrString(callable, "__module__"));
  if (!module) PyErr_Clear();
  std::string text;
  if (module && PyUnicode_Check(module.get())) text = std::string(PyUnicode_AsUTF8(module.get())) + ".";
  if (name && PyUnicode_Check(name.get())) return text + PyUnicode_AsUTF8(name.get());
  return text + Py_TYPE(callable)->tp_name;
}

// Functions may say of themselves that they end the graph: torch.compiler.disable, torch._dynamo.disable, pellucid.disable and
// pellucid.graph_break set an attribute in the function's __dict__.
PyObject* function_mark(PyObject* function, const char* name) {  // borrowed or null
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  return dict ? PyDict_GetItemString(dict, name) : nullptr;
}

// What torch.compile returns for a function: below it PyTorch's compiler decides what is done with frames. The mark alone does not tell, as
// functools.wraps copies it.
bool is_compiled_by_torch(PyObject* function) {
  if (!function_mark(function, "_torchdynamo_orig_callable")) return false;
  PyObject* module = PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "__name__");
  return module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "torch._dynamo.eval_frame") == 0;
}

bool is_optimized_module(PyTypeObject* type) {
  for (; type; type = type->tp_base)
    if (std::string_view(type->tp_name) == "pellucid._core.OptimizedModule") return true;
  return false;
}

Answer call_python_function(Tracer& t, FunctionVariable* function, Arguments arguments) {
  if (function->real) {
    if (function_mark(function->real, "_pellucid_graph_break")) return t.fail(Reason::user_graph_break, "");
    if (function_mark(function->real, "_torchdynamo_disable") || function_mark(function->real, "_pellucid_disable"))
      return t.fail(Reason::disabled_function, callable_name(function->real));
    if (is_compiled_by_torch(function->real)) return t.fail(Reason::torch_compiled_function, callable_name(function->real));
    bool handled = false;
    Answer answer = call_torch(t, function->real, arguments, &handled);
    if (handled) return answer;
    answer = call_builtin(t, function->real, arguments, &handled);
    if (handled) return answer;
  }
  return t.call_function(function, std::move(arguments));
}

// A C function or descriptor, or any other callable object whose type is no Python class.
Answer call_c_callable(Tracer& t, ObjectVariable* callee, Arguments arguments) {
  PyObject* callable = callee->real;
  bool handled = false;
  Answer answer = call_torch(t, callable, arguments, &handled);
  if (handled) return answer;
  answer = call_builtin(t, callable, arguments, &handled);
  if (handled) return answer;
  PyTypeObject* type = Py_TYPE(callable);
  if ((type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type) && !arguments.positional.empty()) {  // str.upper(s), list.append(l, x)
    Variable* self = t.force(arguments.positional[0]);
    PyTypeObject* owner = PyDescr_TYPE(callable);
    PyTypeObject* self_type = type_of(self);
    if (self_type && PyType_IsSubtype(self_type, owner) && self->kind != Kind::kObject) {
      arguments.positional.erase(arguments.positional.begin());
      return call_method(t, self, PyDescr_NAME(callable), std::move(arguments));
    }
  }
  if (type == &PyCFunction_Type && PyCFunction_GET_SELF(callable) && !PyModule_Check(PyCFunction_GET_SELF(callable)) &&
      !PyType_Check(PyCFunction_GET_SELF(callable))) {  // a method bound outside: d.get, lst.append
    Variable* self =
        t.force(t.lazy(PyCFunction_GET_SELF(callable),
                       callee->source ? t.sources().keyed(source::Kind::kAttr, callee->source, t.intern("__self__")) : nullptr));
    if (self->kind != Kind::kObject) {
      py::Ref name = py::Ref::steal(PyObject_GetAttrString(callable, "__name__"));
      return call_method(t, self, t.keep(name.get()), std::move(arguments));
    }
  }
  answer = fold_call(t, callable, arguments, &handled);
  if (handled) return answer;
  return t.fail(Reason::unsupported_callable, callable_name(callable));
}

}  // namespace

Answer call(Tracer& t, Variable* callee, Arguments arguments) {
  callee = t.force(callee);
  switch (callee->kind) {
    case Kind::kFunction:
      return call_python_function(t, static_cast<FunctionVariable*>(callee), std::move(arguments));
    case Kind::kBoundMethod: {
      auto* method = static_cast<BoundMethodVariable*>(callee);
      arguments.positional.insert(arguments.positional.begin(), method->self);
      return call(t, method->function, std::move(arguments));
    }
    case Kind::kBuiltinMethod: {
      auto* method = static_cast<BuiltinMethodVariable*>(callee);
      if (auto* object = as_object(method->self); object && object->type == torch_types()->inference_mode_context && !object->existed)
        return call_inference_mode(t, object, method->name);
      if (PyUnicode_CompareWithASCIIString(method->name, "__getattribute__") == 0 && arguments.only_positional(1, 1)) {
        auto* object = as_object(t.force(method->self));
        PyObject* name = known(t, arguments.positional[0]);
        if (object && name && PyUnicode_Check(name))
          return get_attribute(t, object, name);  // the builtin one: a class's own is no builtin method
      }
      return call_method(t, method->self, method->name, std::move(arguments));
    }
    case Kind::kPartial: {
      auto* partial = static_cast<PartialVariable*>(callee);
      Arguments joined{partial->args, partial->kwargs};
      joined.positional.insert(joined.positional.end(), arguments.positional.begin(), arguments.positional.end());
      for (auto& [name, value] : arguments.keywords) {
        bool replaced = false;
        for (auto& [key, old] : joined.keywords)
          if (PyUnicode_Compare(key, name) == 0) {
            old = value;
            replaced = true;
          }
        if (!replaced) joined.keywords.emplace_back(name, value);
      }
      return call(t, partial->function, std::move(joined));
    }
    case Kind::kObject: {
      auto* object = static_cast<ObjectVariable*>(callee);
      if (object->real == reinterpret_cast<PyObject*>(torch_types()->inference_mode_context)) return make_inference_mode(t, arguments);
      if (object->real && PyType_Check(object->real)) return instantiate(t, object, std::move(arguments));
      if (object->real && PyFunction_Check(object->real)) {  // a function known without a source
        Variable* function = t.force(t.lazy(object->real, object->source));
        if (function->kind == Kind::kFunction) return call(t, function, std::move(arguments));
        auto* made = function_without_guards(t, object->real);
        return call_python_function(t, made, std::move(arguments));
      }
      const TorchTypes& torch = *torch_types();
      if (!(object->type->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyType_IsSubtype(object->type, torch.op_overload) ||
          PyType_IsSubtype(object->type, torch.op_overload_packet)) {
        if (!object->real || !object->existed) return t.fail(Reason::unsupported_callable, describe(callee));
        if (std::string_view(object->type->tp_name) == "pellucid._core.OptimizedFunction") {
          py::Ref wrapped = py::Ref::steal(PyObject_GetAttrString(object->real, "__wrapped__"));
          if (!wrapped) return t.raise_python_error();
          t.guard(guard::Kind::kId, object->source, object->real);
          return call(t, t.lazy(wrapped.get(), t.sources().constant(wrapped.get())), std::move(arguments));
        }
        if (std::string_view(object->type->tp_name) == "pellucid._core.DisabledFunction")
          return t.fail(Reason::disabled_function, callable_name(object->real));
        if (PyWeakref_CheckRef(object->real) && object->source && arguments.only_positional(0, 0)) {
          // Known by identity, a weak reference stands for one object for as long as it lives.
          t.guard(guard::Kind::kId, object->source, object->real);
          PyObject* referent = PyWeakref_GetObject(object->real);
          const source::Source* from = t.sources().derived(source::Kind::kReferent, object->source);
          if (referent == Py_None) return t.lazy(referent, from);  // which it stays
          t.guard(guard::Kind::kId, from, referent);
          return t.lazy(referent, from);
        }
        return call_c_callable(t, object, std::move(arguments));
      }
      if (object->real && object->existed && is_optimized_module(object->type)) {  // a graph within a graph: what it wraps is inlined
        py::Ref wrapped = py::Ref::steal(PyObject_GetAttrString(object->real, "__wrapped__"));
        if (!wrapped) return t.raise_python_error();
        t.guard(guard::Kind::kId, object->source, object->real);
        return call(t, t.lazy(wrapped.get(), t.sources().constant(wrapped.get())), std::move(arguments));
      }
      if (object->real && object->existed) {
        bool handled = false;
        Answer answer = call_torch(t, object->real, arguments, &handled);
        if (handled) return answer;
        answer = call_builtin(t, object->real, arguments, &handled);
        if (handled) return answer;
      }
      Variable* function = TRY(class_lookup(t, object, t.intern("__call__")));
      if (!function) return t.raise_new(PyExc_TypeError, "'%.200s' object is not callable", object->type->tp_name);
      return call_special(t, object, "__call__", std::move(arguments));
    }
    default: {
      PyTypeObject* type = type_of(callee);
      if (type && !type->tp_call) return t.raise_new(PyExc_TypeError, "'%.200s' object is not callable", type->tp_name);
      return t.fail(Reason::unsupported_callable, describe(callee));
    }
  }
}

}  // namespace pellucid::variables
