// GraphCall: what transformed functions call. It adds the parameters that the guard program has just verified to the arguments, and
// puts torch's modes back when a graph that changes them raises in the middle. What the graph runs is not captured.
#pragma once
#include "cpython/hook.h"
#include "guard/guard.h"
#include "py/ref.h"

namespace pellucid::bridge {

// `program` must outlive the result's calls: both belong to one cache entry. Null with a Python exception set.
py::Ref make_graph_call(PyObject* callable, const guard::GuardProgram* program, bool changes_state);

// Before the first call.
void set_graph_call_hook(const cpython::HookApi* api);

}  // namespace pellucid::bridge
