// Chooses among compiled variants of one graph by which of its tensor inputs share memory. Compilers that turn mutation into values decide
// by the example inputs what a write to one input does to another, and their result is wrong for inputs that overlap otherwise.
#pragma once
#include "py/ref.h"

namespace pellucid::bridge {

// A callable (vectorcall) that passes its positional arguments on to the variant for their sharing. `compiled` is the one for `example`, a
// tuple of inputs; other variants are made by `compile(*inputs)` at the first call that needs them, and kept.
// Null with a Python exception set.
py::Ref make_storage_dispatch(PyObject* compile, PyObject* example, PyObject* compiled);

}  // namespace pellucid::bridge
