// The areas of the two extension modules. Each area adds its own functions and types to the module in one `bind_AREA`, in
// bytecode_AREA.cpp or core_AREA.cpp; adding an area is one line in the list of its module below. On failure a binder returns
// false with a Python exception set.
#pragma once
#include "py/python.h"

#define PELLUCID_BYTECODE_AREAS(AREA) \
  AREA(code)                          \
  AREA(compare)                       \
  AREA(decompile)                     \
  AREA(neutral)                       \
  AREA(hook)                          \
  AREA(symbolic)                      \
  AREA(symbolic_border)

#define PELLUCID_CORE_AREAS(AREA) \
  AREA(backends)                  \
  AREA(graph)                     \
  AREA(fake)                      \
  AREA(guards)                    \
  AREA(runtime)                   \
  AREA(symbolic_nodes)            \
  AREA(testing)                   \
  AREA(translate)

namespace pellucid::module {

#define PELLUCID_DECLARE_AREA(name) bool bind_##name(PyObject* module);
PELLUCID_BYTECODE_AREAS(PELLUCID_DECLARE_AREA)
PELLUCID_CORE_AREAS(PELLUCID_DECLARE_AREA)
#undef PELLUCID_DECLARE_AREA

// For binders: adds `value`, a new reference that is taken over and may be null with an exception set.
inline bool add_object(PyObject* module, const char* name, PyObject* value) {
  if (value == nullptr) return false;
  if (PyModule_AddObject(module, name, value) == 0) return true;  // takes the reference only when it succeeds
  Py_DECREF(value);
  return false;
}

}  // namespace pellucid::module
