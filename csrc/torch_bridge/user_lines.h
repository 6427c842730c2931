// Graphs that run as generated Python: an exception out of one gets the lines of the user's program that recorded the operator.
#pragma once
#include "py/ref.h"

namespace pellucid::bridge {

// `compiled` itself, unless it is the bound forward of a pellucid.graph_module.GraphModule: then a callable (vectorcall) that calls it and
// has an exception completed by pellucid.graph_module.add_user_lines. (The module itself does so when it is called.) Null with a Python
// exception set.
py::Ref with_user_lines(PyObject* compiled);

}  // namespace pellucid::bridge
