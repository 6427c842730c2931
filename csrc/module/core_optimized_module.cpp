// OptimizedModule: the first base of the class that a wrapped module gets; the second is the module's own class. It brings the C
// `__call__` and the reference to the original; everything else comes from the module's class, over the dictionary both share.
#include <algorithm>

#include "module/core_call.h"
#include "module/core_function.h"

namespace pellucid::module {

namespace {

OptimizedModule* as_module(PyObject* self) { return reinterpret_cast<OptimizedModule*>(self); }

PyObject* module_call(PyObject* object, PyObject* const* arguments, size_t nargsf, PyObject* keywords) {
  OptimizedModule* self = as_module(object);
  static PyObject* name = PyUnicode_InternFromString("__call__");
  if (self->call == nullptr || name == nullptr) {
    PyErr_SetString(PyExc_TypeError, "this module was not made by optimize()");
    return nullptr;
  }
  auto* call = reinterpret_cast<OptimizedFunction*>(self->call);
  // `__call__` as the class has it now: tracers replace nn.Module.__call__ for a while, and what they put there has to be called.
  if (_PyType_Lookup(Py_TYPE(self->module), name) == call->function) [[likely]]
    return call->vectorcall(self->call, arguments, nargsf, keywords);
  return call_as_written(call->region, {self->module, arguments, nargsf, keywords});
}

PyObject* get_class(PyObject* self, void*) {
  PyObject* type = reinterpret_cast<PyObject*>(as_module(self)->module == nullptr ? Py_TYPE(self) : Py_TYPE(as_module(self)->module));
  Py_INCREF(type);
  return type;
}

PyObject* get_wrapped(PyObject* self, void*) {
  PyObject* module = as_module(self)->module;
  if (module == nullptr) {
    PyErr_SetString(PyExc_AttributeError, "__wrapped__");
    return nullptr;
  }
  Py_INCREF(module);
  return module;
}

PyObject* get_call(PyObject* self, void*) {
  PyObject* call = as_module(self)->call == nullptr ? Py_None : as_module(self)->call;
  Py_INCREF(call);
  return call;
}

int set_class(PyObject* self, PyObject* value, void*) {
  if (value == nullptr || as_module(self)->module == nullptr) {
    PyErr_SetString(PyExc_TypeError, "the class of a wrapped module cannot be deleted");
    return -1;
  }
  PyErr_SetString(PyExc_TypeError, "assign __class__ on the original module (__wrapped__), then wrap it again");
  return -1;
}

PyObject* no_subclass_notice(PyObject*, PyObject* const*, Py_ssize_t, PyObject*) { Py_RETURN_NONE; }

template <const char* name>
PyObject* call_api(PyObject* self, PyObject* argument) {
  py::Ref api = py::Ref::steal(PyImport_ImportModule("pellucid._modules"));
  return api ? PyObject_CallMethod(api.get(), name, "OO", self, argument == nullptr ? Py_None : argument) : nullptr;
}

constexpr char kReduce[] = "reduce_module", kCopy[] = "copy_module", kDeepcopy[] = "deepcopy_module";

PyGetSetDef module_getset[] = {
    {"__class__", get_class, set_class, "The original module's class.", nullptr},
    {"__wrapped__", get_wrapped, nullptr, "The original module.", nullptr},
    {"_optimized_call", get_call, nullptr, "The OptimizedFunction behind __call__.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef module_methods[] = {
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(no_subclass_notice)),
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS, "The class of a wrapped module is no subclass that its base would want to know of."},
    {"__reduce_ex__", call_api<kReduce>, METH_O, "Pickles the original and the settings."},
    {"__copy__", call_api<kCopy>, METH_NOARGS, "A wrapper around a copy of the module."},
    {"__deepcopy__", call_api<kDeepcopy>, METH_O, "A wrapper around a deep copy of the module."},
    {nullptr, nullptr, 0, nullptr},
};

int module_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(as_module(object)->module);
  Py_VISIT(as_module(object)->call);
  return 0;
}

int module_clear(PyObject* object) {
  Py_CLEAR(as_module(object)->call);
  Py_CLEAR(as_module(object)->module);
  return 0;
}

void module_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  module_clear(object);
  Py_TYPE(object)->tp_free(object);
}

}  // namespace

PyTypeObject optimized_module_type = {PyVarObject_HEAD_INIT(nullptr, 0) "pellucid._core.OptimizedModule"};

PyObject* new_optimized_module(PyTypeObject* type, PyObject* module, PyObject* call) {
  if (!PyType_IsSubtype(type, &optimized_module_type) || !Py_IS_TYPE(call, &optimized_function_type)) {
    PyErr_SetString(PyExc_TypeError, "expected a subclass of OptimizedModule, a module and an OptimizedFunction");
    return nullptr;
  }
  // CPython 3.11 does not pass this flag on to classes that can be changed; `__call__` of these is always ours.
  type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  PyObject* object = type->tp_alloc(type, 0);
  if (object == nullptr) return nullptr;
  Py_INCREF(module);
  Py_INCREF(call);
  as_module(object)->vectorcall = module_call;
  as_module(object)->module = module;
  as_module(object)->call = call;
  return object;
}

bool ready_module_type() {
  PyTypeObject& type = optimized_module_type;
  type.tp_basicsize = sizeof(OptimizedModule);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  type.tp_doc = "A module whose calls are captured.";
  type.tp_call = PyVectorcall_Call;
  type.tp_vectorcall_offset = offsetof(OptimizedModule, vectorcall);
  type.tp_traverse = module_traverse;
  type.tp_clear = module_clear;
  type.tp_dealloc = module_dealloc;
  type.tp_getset = module_getset;
  type.tp_methods = module_methods;
  return PyType_Ready(&type) == 0;
}

}  // namespace pellucid::module
