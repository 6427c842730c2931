// Binding the arguments of a vectorcall to a function's parameters, as CPython's initialize_locals does, without making a frame.
// Knows nothing of capture.
#pragma once
#include "py/ref.h"

namespace pellucid::module {

// The *args tuple and **kwargs dict of one call.
struct BoundExtras {
  py::Ref positional, keywords;
};

// The same for a call that only has its guards checked, and whose graph takes what is in them: used again for the next one, so that a hit
// allocates nothing. The tuple's items are borrowed. Nothing that gets these objects may keep them.
class LentExtras {
 public:
  LentExtras() = default;
  ~LentExtras();
  LentExtras(const LentExtras&) = delete;
  LentExtras& operator=(const LentExtras&) = delete;
  // Fills `slots` as bind_arguments does, for calls without keywords. False: bind_arguments has to (nothing is set then).
  bool bind(PyObject* function, PyObject* const* arguments, Py_ssize_t count, PyObject** slots);

 private:
  PyObject *positional_ = nullptr, *keywords_ = nullptr;
};

enum class Bind : uint8_t {
  kBound,
  kUnbound,  // these arguments do not fit, or only CPython itself can tell: it must make the call. No exception is set
  kError,    // an exception is set
};

// Fills `slots` (parameter_count of them) with borrowed references; `extras` holds what had to be made. Defaults are read from the
// function as they are now.
Bind bind_arguments(PyObject* function, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords, PyObject** slots,
                    BoundExtras& extras);

}  // namespace pellucid::module
