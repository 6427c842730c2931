// The wrapper types: OptimizedFunction (what optimize() returns for anything callable but a module), OptimizedModule (the base of the
// classes that wrapped modules get) and DisabledFunction. Knows binding and the call path, not capture.
#pragma once
#include "module/core_region.h"

namespace pellucid::module {

struct OptimizedFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;  // the Python function whose frames are captured
  PyObject* self;      // null, or what goes before the caller's arguments (a callable object)
  PyObject* wrapped;   // what optimize() was given: `function`, or the callable object
  RegionObject* region;
  PyObject* weakrefs;
  // What was found for `code` in generation `generation` of the region; `code` is compared, never used, so it may be stale.
  PyObject* code;
  uint64_t generation;
  cache::CodeCache* cache;
  Py_ssize_t simple_count;  // number of positional parameters if there are no other ones, else -1
  bool may_be_backend;      // optimize(callable) alone: see pellucid.api.optimize
};

struct DisabledFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* wrapped;
  PyObject* weakrefs;
};

struct OptimizedModule {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* module;
  PyObject* call;  // an OptimizedFunction with `module` as its self
};

extern PyTypeObject optimized_function_type, disabled_function_type, optimized_module_type;

PyObject* new_optimized_function(PyObject* function, PyObject* self, PyObject* wrapped, RegionObject* region, bool may_be_backend);
PyObject* new_disabled_function(PyObject* wrapped);
// `type`: a subclass of OptimizedModule and the module's class.
PyObject* new_optimized_module(PyTypeObject* type, PyObject* module, PyObject* call);

bool ready_function_types();
bool ready_module_type();

}  // namespace pellucid::module
