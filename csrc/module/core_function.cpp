// OptimizedFunction and DisabledFunction. Both pass for what they wrap: attributes are read and written there, they bind as methods
// without a bound-method object, and pickle and copy as functions do.
#include "module/core_function.h"

#include <alloca.h>
#include <structmember.h>

#include <algorithm>

#include "module/core_bind.h"
#include "module/core_call.h"

namespace pellucid::module {

namespace {

OptimizedFunction* as_optimized(PyObject* self) { return reinterpret_cast<OptimizedFunction*>(self); }

PyObject* wrapped_of(PyObject* self) {
  return Py_TYPE(self) == &disabled_function_type ? reinterpret_cast<DisabledFunction*>(self)->wrapped : as_optimized(self)->wrapped;
}

// ---- calling

// The function has new code, or the region was reset.
bool refresh(OptimizedFunction* self) {
  PyObject* code_object = PyFunction_GET_CODE(self->function);
  std::shared_ptr<cache::CodeCache> cache = cache_of(self->region, code_object);
  if (cache == nullptr) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(code_object);
  self->code = code_object;
  self->cache = cache.get();
  self->generation = self->region->generation;
  self->simple_count = code->co_kwonlyargcount == 0 && !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) ? code->co_argcount : -1;
  return true;
}

bool runs_later(PyObject* function) {  // a call only makes a generator or coroutine: its frames are not ours
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  return code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
}

// Making a generator or coroutine runs nothing of the program: there is nothing to look at.
PyObject* call_plainly(const OriginalCall& original) {
  return PyObject_Vectorcall(original.function, original.arguments, original.nargsf, original.keywords);
}

// What was given to optimize() alone may turn out to be a backend that is being used as a decorator, `optimize(backend)(function)`: a
// call with one callable where the backend takes more. Null without an exception: it is an ordinary call.
PyObject* decorate_if_backend(OptimizedFunction* self, const OriginalCall& original) {
  Py_ssize_t count = PyVectorcall_NARGS(original.nargsf) - (self->self != nullptr);
  if (!self->may_be_backend || count != 1 || original.keywords != nullptr) return nullptr;
  PyObject* target = original.arguments[self->self != nullptr];
  if (!PyCallable_Check(target)) return nullptr;
  py::Ref api = py::Ref::steal(PyImport_ImportModule("pellucid.api"));
  if (!api) return nullptr;
  py::Ref result = py::Ref::steal(PyObject_CallMethod(api.get(), "_decorate_with", "OO", reinterpret_cast<PyObject*>(self), target));
  return result.get() == Py_NotImplemented ? nullptr : result.release();
}

// These arguments do not fit the function: CPython says so, in its own words.
PyObject* call_unbound(OptimizedFunction* self, const OriginalCall& original) {
  PyObject* decorated = decorate_if_backend(self, original);
  return decorated != nullptr || PyErr_Occurred() ? decorated : call_as_written(self->region, original);
}

PyObject* call_binding(OptimizedFunction* self, const OriginalCall& original) {
  Py_ssize_t parameters = parameter_count(reinterpret_cast<PyCodeObject*>(self->code));
  auto** slots = static_cast<PyObject**>(alloca(sizeof(PyObject*) * static_cast<size_t>(parameters + 1)));
  if (original.keywords == nullptr && last_was_direct(*self->cache) && !in_capture()) {
    LentExtras lent;
    PyObject* result;
    if (lent.bind(original.function, original.arguments, PyVectorcall_NARGS(original.nargsf), slots) &&
        call_directly(self->cache, original.function, slots, result))
      return result;
  }
  BoundExtras extras;
  // The Python function made around a builtin or a functools.partial takes anything: its binding tells nothing.
  bool takes_anything = self->wrapped != self->function && self->self == nullptr;
  if (takes_anything && self->may_be_backend) [[unlikely]] {
    PyObject* decorated = decorate_if_backend(self, original);
    if (decorated != nullptr || PyErr_Occurred()) return decorated;
  }
  switch (bind_arguments(original.function, original.arguments, PyVectorcall_NARGS(original.nargsf), original.keywords, slots, extras)) {
    case Bind::kBound:
      return call_bound(self->region, self->cache, original.function, slots, parameters, original);
    case Bind::kUnbound:
      return call_unbound(self, original);
    case Bind::kError:
      break;
  }
  return nullptr;
}

PyObject* call_with_self(OptimizedFunction* self, const OriginalCall& original) {
  Py_ssize_t count = PyVectorcall_NARGS(original.nargsf);
  Py_ssize_t total = count + (original.keywords == nullptr ? 0 : PyTuple_GET_SIZE(original.keywords));
  auto** arguments = static_cast<PyObject**>(alloca(sizeof(PyObject*) * static_cast<size_t>(total + 1)));
  arguments[0] = self->self;
  std::copy(original.arguments, original.arguments + total, arguments + 1);
  OriginalCall call{original.function, arguments, static_cast<size_t>(count + 1), original.keywords};
  if (runs_later(call.function)) return call_plainly(call);
  if (call.keywords == nullptr && count + 1 == self->simple_count) {
    return call_bound(self->region, self->cache, call.function, arguments, count + 1, call);
  }
  return call_binding(self, call);
}

PyObject* optimized_call(PyObject* object, PyObject* const* arguments, size_t nargsf, PyObject* keywords) {
  OptimizedFunction* self = as_optimized(object);
  if (self->code != PyFunction_GET_CODE(self->function) || self->generation != self->region->generation) [[unlikely]] {
    if (!refresh(self)) return nullptr;
  }
  OriginalCall original{self->function, arguments, nargsf, keywords};
  if (self->self != nullptr) return call_with_self(self, original);
  if (keywords == nullptr && PyVectorcall_NARGS(nargsf) == self->simple_count) [[likely]] {
    if (!self->cache->entries.empty() || !runs_later(self->function)) [[likely]]
      return call_bound(self->region, self->cache, self->function, arguments, self->simple_count, original);
  }
  return runs_later(self->function) ? call_plainly(original) : call_binding(self, original);
}

PyObject* disabled_call(PyObject* object, PyObject* const* arguments, size_t nargsf, PyObject* keywords) {
  PyObject* wrapped = reinterpret_cast<DisabledFunction*>(object)->wrapped;
  if (*hook().busy == 0) return PyObject_Vectorcall(wrapped, arguments, nargsf, keywords);
  ActiveRegion nothing(nullptr);
  return PyObject_Vectorcall(wrapped, arguments, nargsf, keywords);
}

// ---- passing for the wrapped object

PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(wrapped_of(self), name);
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) { return PyObject_SetAttr(wrapped_of(self), name, value); }

// Attributes that the type itself has, so that plain lookup would find the type's: read from what is wrapped.
PyObject* get_forwarded(PyObject* self, void* name) { return PyObject_GetAttrString(wrapped_of(self), static_cast<const char*>(name)); }

PyObject* get_wrapped(PyObject* self, void*) {
  PyObject* wrapped = wrapped_of(self);
  Py_INCREF(wrapped);
  return wrapped;
}

PyObject* get_signature(PyObject* self, void*) {
  py::Ref inspect = py::Ref::steal(PyImport_ImportModule("inspect"));
  return inspect ? PyObject_CallMethod(inspect.get(), "signature", "O", wrapped_of(self)) : nullptr;
}

PyObject* get_true(PyObject*, void*) { Py_RETURN_TRUE; }

PyObject* get_region(PyObject* self, void*) {
  auto* region = reinterpret_cast<PyObject*>(as_optimized(self)->region);
  Py_INCREF(region);
  return region;
}

PyObject* get_captured_code(PyObject* self, void*) {
  PyObject* code = PyFunction_GET_CODE(as_optimized(self)->function);
  Py_INCREF(code);
  return code;
}

PyObject* bind_as_method(PyObject* self, PyObject* instance, PyObject*) {
  // A callable object is no descriptor: put into a class it stays what it is, as it would unwrapped.
  bool plain =
      Py_TYPE(self) == &disabled_function_type ? Py_TYPE(wrapped_of(self))->tp_descr_get != nullptr : as_optimized(self)->self == nullptr;
  if (instance == nullptr || instance == Py_None || !plain) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, instance);
}

PyObject* represent(PyObject* self) {
  const char* what = Py_TYPE(self) == &disabled_function_type ? "disabled" : "optimized";
  return PyUnicode_FromFormat("<%s %R>", what, wrapped_of(self));
}

PyObject* reduce(PyObject* self, PyObject*) {
  py::Ref api = py::Ref::steal(PyImport_ImportModule("pellucid.api"));
  return api ? PyObject_CallMethod(api.get(), "_reduce", "O", self) : nullptr;
}

PyObject* copy_is_self(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}

#define PELLUCID_FORWARDED(name) \
  { name, get_forwarded, nullptr, "The wrapped object's.", const_cast<char*>(name) }

PyGetSetDef function_getset[] = {
    {"__wrapped__", get_wrapped, nullptr, "What was given to optimize().", nullptr},
    {"__signature__", get_signature, nullptr, "The wrapped object's signature.", nullptr},
    {"_captured_code", get_captured_code, nullptr, "The code object whose frames are captured.", nullptr},
    {"_region", get_region, nullptr, "The region this wrapper's calls run in.", nullptr},
    PELLUCID_FORWARDED("__doc__"),
    PELLUCID_FORWARDED("__module__"),
    PELLUCID_FORWARDED("__dict__"),
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyGetSetDef disabled_getset[] = {
    {"__wrapped__", get_wrapped, nullptr, "What was given to disable().", nullptr},
    {"__signature__", get_signature, nullptr, "The wrapped object's signature.", nullptr},
    {"_torchdynamo_disable", get_true, nullptr, "PyTorch's compiler leaves it alone too.", nullptr},
    PELLUCID_FORWARDED("__doc__"),
    PELLUCID_FORWARDED("__module__"),
    PELLUCID_FORWARDED("__dict__"),
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef wrapper_methods[] = {
    {"__reduce__", reduce, METH_NOARGS, "Pickles by reference, as functions do."},
    {"__copy__", copy_is_self, METH_NOARGS, "Itself, as for functions."},
    {"__deepcopy__", copy_is_self, METH_O, "Itself, as for functions."},
    {nullptr, nullptr, 0, nullptr},
};

int optimized_traverse(PyObject* object, visitproc visit, void* arg) {
  OptimizedFunction* self = as_optimized(object);
  Py_VISIT(self->function);
  Py_VISIT(self->self);
  Py_VISIT(self->wrapped);
  Py_VISIT(self->region);
  return 0;
}

// Nothing is cleared: every cycle through a wrapper also goes through a function, a region or a dictionary, which can be cleared, and
// so a wrapper is whole as long as anybody can call it.
void optimized_dealloc(PyObject* object) {
  OptimizedFunction* self = as_optimized(object);
  PyObject_GC_UnTrack(object);
  if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
  Py_CLEAR(self->function);
  Py_CLEAR(self->self);
  Py_CLEAR(self->wrapped);
  Py_CLEAR(self->region);
  Py_TYPE(object)->tp_free(object);
}

int disabled_traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<DisabledFunction*>(object)->wrapped);
  return 0;
}

void disabled_dealloc(PyObject* object) {
  auto* self = reinterpret_cast<DisabledFunction*>(object);
  PyObject_GC_UnTrack(object);
  if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
  Py_CLEAR(self->wrapped);
  Py_TYPE(object)->tp_free(object);
}

PyMemberDef optimized_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OptimizedFunction, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

void fill_common(PyTypeObject& type) {
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                  Py_TPFLAGS_DISALLOW_INSTANTIATION;
  type.tp_call = PyVectorcall_Call;
  type.tp_descr_get = bind_as_method;
  type.tp_getattro = get_attribute;
  type.tp_setattro = set_attribute;
  type.tp_repr = represent;
  type.tp_methods = wrapper_methods;
}

}  // namespace

PyTypeObject optimized_function_type = {PyVarObject_HEAD_INIT(nullptr, 0) "pellucid._core.OptimizedFunction"};
PyTypeObject disabled_function_type = {PyVarObject_HEAD_INIT(nullptr, 0) "pellucid._core.DisabledFunction"};

PyObject* new_optimized_function(PyObject* function, PyObject* self, PyObject* wrapped, RegionObject* region, bool may_be_backend) {
  auto* object = PyObject_GC_New(OptimizedFunction, &optimized_function_type);
  if (object == nullptr) return nullptr;
  Py_INCREF(function);
  Py_XINCREF(self);
  Py_INCREF(wrapped);
  Py_INCREF(region);
  object->vectorcall = optimized_call;
  object->function = function;
  object->self = self;
  object->wrapped = wrapped;
  object->region = region;
  object->weakrefs = nullptr;
  object->code = nullptr;  // the first call refreshes
  object->generation = 0;
  object->cache = nullptr;
  object->simple_count = -1;
  object->may_be_backend = may_be_backend;
  PyObject_GC_Track(object);
  return reinterpret_cast<PyObject*>(object);
}

PyObject* new_disabled_function(PyObject* wrapped) {
  auto* object = PyObject_GC_New(DisabledFunction, &disabled_function_type);
  if (object == nullptr) return nullptr;
  Py_INCREF(wrapped);
  object->vectorcall = disabled_call;
  object->wrapped = wrapped;
  object->weakrefs = nullptr;
  PyObject_GC_Track(object);
  return reinterpret_cast<PyObject*>(object);
}

bool ready_function_types() {
  PyTypeObject& optimized = optimized_function_type;
  fill_common(optimized);
  optimized.tp_basicsize = sizeof(OptimizedFunction);
  optimized.tp_vectorcall_offset = offsetof(OptimizedFunction, vectorcall);
  optimized.tp_weaklistoffset = offsetof(OptimizedFunction, weakrefs);
  optimized.tp_traverse = optimized_traverse;
  optimized.tp_dealloc = optimized_dealloc;
  optimized.tp_getset = function_getset;
  optimized.tp_members = optimized_members;
  PyTypeObject& disabled = disabled_function_type;
  fill_common(disabled);
  disabled.tp_basicsize = sizeof(DisabledFunction);
  disabled.tp_vectorcall_offset = offsetof(DisabledFunction, vectorcall);
  disabled.tp_weaklistoffset = offsetof(DisabledFunction, weakrefs);
  disabled.tp_traverse = disabled_traverse;
  disabled.tp_dealloc = disabled_dealloc;
  disabled.tp_getset = disabled_getset;
  return PyType_Ready(&optimized) == 0 && PyType_Ready(&disabled) == 0;
}

}  // namespace pellucid::module
