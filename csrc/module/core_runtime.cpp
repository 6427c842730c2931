// What Python builds its API from: regions, wrappers, reset, the skip table and tail_call. pellucid.api checks what it passes in.
#include "cache/skip_rules.h"
#include "module/bindings.h"
#include "module/core_call.h"
#include "module/core_capture.h"
#include "module/core_function.h"
#include "module/core_torch_compiler.h"
#include "translate/resume.h"

namespace pellucid::module {

namespace {

RegionObject* checked_region(PyObject* object) {
  if (Py_IS_TYPE(object, &region_type)) return reinterpret_cast<RegionObject*>(object);
  PyErr_Format(PyExc_TypeError, "expected a Region, not %s", Py_TYPE(object)->tp_name);
  return nullptr;
}

PyObject* py_region(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"backend", "backend_name", "options", "fullgraph", "dynamic", "settings", nullptr};
  PyObject *backend, *name, *options = Py_None, *dynamic = Py_None, *settings = Py_None;
  int fullgraph = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OpOO:region", const_cast<char**>(names), &backend, &name, &options, &fullgraph,
                                   &dynamic, &settings))
    return nullptr;
  int dynamic_value = dynamic == Py_None ? -1 : PyObject_IsTrue(dynamic);
  if (dynamic_value == -1 && PyErr_Occurred()) return nullptr;
  return new_region(backend, name, options, fullgraph != 0, dynamic_value, settings);
}

PyObject* py_optimized_function(PyObject*, PyObject* args) {
  PyObject *function, *self, *wrapped, *region_object;
  int may_be_backend = 0;
  if (!PyArg_ParseTuple(args, "OOOO|p:optimized_function", &function, &self, &wrapped, &region_object, &may_be_backend)) return nullptr;
  RegionObject* region = checked_region(region_object);
  if (region == nullptr) return nullptr;
  if (!PyFunction_Check(function)) {
    PyErr_Format(PyExc_TypeError, "expected a Python function, not %s", Py_TYPE(function)->tp_name);
    return nullptr;
  }
  return new_optimized_function(function, self == Py_None ? nullptr : self, wrapped, region, may_be_backend != 0);
}

PyObject* py_disabled_function(PyObject*, PyObject* wrapped) {
  if (PyCallable_Check(wrapped)) return new_disabled_function(wrapped);
  PyErr_Format(PyExc_TypeError, "%s is not callable", Py_TYPE(wrapped)->tp_name);
  return nullptr;
}

PyObject* py_optimized_module(PyObject*, PyObject* args) {
  PyObject *type, *module, *call;
  if (!PyArg_ParseTuple(args, "O!OO:optimized_module", &PyType_Type, &type, &module, &call)) return nullptr;
  return new_optimized_module(reinterpret_cast<PyTypeObject*>(type), module, call);
}

PyObject* py_set_capture_observer(PyObject*, PyObject* observer) {
  set_capture_observer(observer);
  Py_RETURN_NONE;
}

PyObject* py_resumed_code(PyObject*, PyObject* code) {
  const translate::Resume* resume = translate::resume_of(code);
  return Py_NewRef(resume == nullptr ? Py_None : resume->original.get());
}

PyObject* py_describe_region(PyObject*, PyObject* object) {
  RegionObject* region = checked_region(object);
  return region == nullptr ? nullptr : describe_region(region);
}

PyObject* py_reset_region(PyObject*, PyObject* object) {
  RegionObject* region = checked_region(object);
  if (region == nullptr) return nullptr;
  reset_region(region);
  Py_RETURN_NONE;
}

PyObject* py_reset_all(PyObject*, PyObject*) {
  reset_all_regions();
  Py_RETURN_NONE;
}

PyObject* py_set_skip_roots(PyObject*, PyObject* args) {
  const char *torch, *own, *library, *site;
  if (!PyArg_ParseTuple(args, "ssss:set_skip_roots", &torch, &own, &library, &site)) return nullptr;
  cache::set_skip_roots({torch, own, library, site});
  Py_RETURN_NONE;
}

PyObject* py_skip_reason(PyObject*, PyObject* code) {
  if (!PyCode_Check(code)) {
    PyErr_SetString(PyExc_TypeError, "skip_reason takes a code object");
    return nullptr;
  }
  const char* reason = cache::skip_reason(code);
  if (reason == nullptr) Py_RETURN_NONE;
  return PyUnicode_FromString(reason);
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"region", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(py_region)), METH_VARARGS | METH_KEYWORDS,
     "region(backend, backend_name, options=None, fullgraph=False, dynamic=None, settings=None): what one optimize() call owns."},
    {"optimized_function", py_optimized_function, METH_VARARGS,
     "optimized_function(function, self or None, wrapped, region, may_be_backend=False)."},
    {"disabled_function", py_disabled_function, METH_O, "A callable below which no frame is looked at."},
    {"optimized_module", py_optimized_module, METH_VARARGS, "optimized_module(type, module, optimized_function)."},
    {"describe_region", py_describe_region, METH_O, "The region's caches and entries, as lists of dicts."},
    {"reset_region", py_reset_region, METH_O, "Drop everything that was captured in a region."},
    {"reset_all", py_reset_all, METH_NOARGS, "Drop everything that was captured in any region."},
    {"resumed_code", py_resumed_code, METH_O, "The code object that the code of a resume function goes on with; None for other code."},
    {"set_capture_observer", py_set_capture_observer, METH_O,
     "set_capture_observer(observer): observer(function, entry, reason) is called for every capture that ends; None: no more."},
    {"set_skip_roots", py_set_skip_roots, METH_VARARGS,
     "set_skip_roots(torch, own, library, site): directories, each with a trailing separator."},
    {"skip_reason", py_skip_reason, METH_O, "Why frames of this code object run as written, or None if they are looked at."},
    {"tail_call", fast(tail_call), METH_FASTCALL, "What transformed code ends with to call fn(*args) once its own frame is gone."},
    {nullptr, nullptr, 0, nullptr},
};

bool add_type(PyObject* module, const char* name, PyTypeObject& type) {
  return PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(&type)) == 0;
}

}  // namespace

bool bind_runtime(PyObject* module) {
  if (!load_hook_api() || !ready_region_type() || !ready_call_types() || !ready_capture() || !ready_torch_compiler() ||
      !ready_function_types() || !ready_module_type())
    return false;
  install_frame_callback();
  return PyModule_AddFunctions(module, methods) == 0 && add_type(module, "Region", region_type) &&
         add_type(module, "TailCall", tail_call_type) && add_type(module, "OptimizedFunction", optimized_function_type) &&
         add_type(module, "DisabledFunction", disabled_function_type) && add_type(module, "OptimizedModule", optimized_module_type);
}

}  // namespace pellucid::module
