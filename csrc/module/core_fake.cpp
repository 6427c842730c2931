// fake_tensor, FakeScope, is_fake, fake_stats in pellucid._core: plain C API, no torch.
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "module/bindings.h"
#include "torch_bridge/fake_composites.h"
#include "torch_bridge/fake_errors.h"
#include "torch_bridge/fake_fallback.h"
#include "torch_bridge/fake_report.h"
#include "torch_bridge/fake_tensor.h"

namespace pellucid::module {

namespace {

// For what allocates in C++: no exception may pass through CPython.
template <class Function>
PyObject* without_exceptions(Function function) {
  try {
    return function();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* fake_tensor(PyObject* /*module*/, PyObject* tensor) { return bridge::fake_from_real(tensor).release(); }

PyObject* is_fake(PyObject* /*module*/, PyObject* object) { return PyBool_FromLong(bridge::is_fake(object) ? 1 : 0); }

PyObject* fake_stats(PyObject* /*module*/, PyObject* /*unused*/) {
  return without_exceptions([] { return bridge::fake_stats().release(); });
}

PyObject* symbolic_stats(PyObject* /*module*/, PyObject* /*unused*/) {
  return without_exceptions([] { return bridge::symbolic_stats().release(); });
}

PyObject* reset_fake_stats(PyObject* /*module*/, PyObject* /*unused*/) {
  bridge::reset_fake_stats();
  Py_RETURN_NONE;
}

PyObject* fake_rules(PyObject* /*module*/, PyObject* /*unused*/) {
  return without_exceptions([] { return bridge::rule_names().release(); });
}

PyObject* fake_origin(PyObject* /*module*/, PyObject* args) {
  const char* name = nullptr;
  const char* overload = "";
  if (PyArg_ParseTuple(args, "s|s:fake_origin", &name, &overload) == 0) return nullptr;
  return without_exceptions([&]() -> PyObject* {
    const char* origin = bridge::origin_of(name, overload);
    if (origin == nullptr) return PyErr_Format(PyExc_KeyError, "no operator %s.%s", name, overload);
    return PyUnicode_FromString(origin);
  });
}

PyMethodDef kFunctions[] = {
    {"fake_tensor", fake_tensor, METH_O,
     "fake_tensor(tensor): a tensor of the same class, geometry, dtype, device and autograd state without data."},
    {"is_fake", is_fake, METH_O, "is_fake(object): whether it is a fake tensor."},
    {"fake_stats", fake_stats, METH_NOARGS, "fake_stats(): {operator: (origin of its shape function, calls)}."},
    {"symbolic_stats", symbolic_stats, METH_NOARGS, "symbolic_stats(): {operator: (calls by a symbolic rule, calls by PyTorch's Python)}."},
    {"reset_fake_stats", reset_fake_stats, METH_NOARGS, "reset_fake_stats(): set the counts to zero."},
    {"fake_rules", fake_rules, METH_NOARGS, "fake_rules(): names of the operators with a hand-written rule."},
    {"fake_origin", fake_origin, METH_VARARGS, "fake_origin(name, overload=''): where an operator's shape function comes from."},
    {nullptr, nullptr, 0, nullptr},
};

struct ScopeObject {
  PyObject_HEAD std::optional<bridge::FakeScope>* scope;
};

PyObject* scope_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (PyTuple_Size(args) != 0 || (kwargs != nullptr && PyDict_Size(kwargs) != 0)) {
    PyErr_SetString(PyExc_TypeError, "FakeScope takes no arguments");
    return nullptr;
  }
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  auto* scope = new (std::nothrow) std::optional<bridge::FakeScope>;
  if (scope == nullptr) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  reinterpret_cast<ScopeObject*>(self)->scope = scope;
  return self;
}

void scope_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<ScopeObject*>(self)->scope;
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* scope_enter(PyObject* self, PyObject* /*unused*/) {
  auto& scope = *reinterpret_cast<ScopeObject*>(self)->scope;
  if (scope) {
    PyErr_SetString(PyExc_RuntimeError, "this FakeScope is entered already");
    return nullptr;
  }
  scope.emplace();
  Py_INCREF(self);
  return self;
}

PyObject* scope_exit(PyObject* self, PyObject* /*args*/) {
  reinterpret_cast<ScopeObject*>(self)->scope->reset();
  Py_RETURN_NONE;
}

PyMethodDef kScopeMethods[] = {
    {"__enter__", scope_enter, METH_NOARGS, nullptr},
    {"__exit__", scope_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot kScopeSlots[] = {
    {Py_tp_doc, const_cast<char*>("While entered, every operator called on this thread computes shapes only, factories too.")},
    {Py_tp_new, reinterpret_cast<void*>(scope_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(scope_dealloc)},
    {Py_tp_methods, kScopeMethods},
    {0, nullptr},
};

PyType_Spec kScopeSpec = {"pellucid._core.FakeScope", sizeof(ScopeObject), 0, Py_TPFLAGS_DEFAULT, kScopeSlots};

}  // namespace

bool bind_fake(PyObject* module) {
  std::string error;
  try {
    if (!bridge::register_fake_fallback(error) || !bridge::register_fake_composites(error)) {
      PyErr_SetString(PyExc_ImportError, error.c_str());
      return false;
    }
  } catch (const std::exception& failure) {
    PyErr_SetString(PyExc_ImportError, failure.what());
    return false;
  }
  PyObject* error_type = bridge::data_dependent_error_type();
  if (error_type == nullptr || PyModule_AddObjectRef(module, "DataDependentError", error_type) < 0) return false;
  const auto scope_type = py::Ref::steal(PyType_FromSpec(&kScopeSpec));
  if (!scope_type || PyModule_AddObjectRef(module, "FakeScope", scope_type.get()) < 0) return false;
  return PyModule_AddFunctions(module, kFunctions) == 0;
}

}  // namespace pellucid::module
