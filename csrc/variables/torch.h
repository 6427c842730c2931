// Which callables of torch are operators of the graph, which answer questions about torch's state, and which are ordinary Python.
#pragma once
#include "variables/tracer.h"

namespace pellucid::variables {

enum class TorchRole : uint8_t {
  kNone,      // no function of torch: goes on as any callable
  kOperator,  // recorded in the graph as it is
  kState,     // answered or changed during capture (torch_state.cpp)
  kBreak,     // runs as written: a graph break
};

TorchRole torch_role(PyObject* callable);

Answer call_torch_state(Tracer& t, PyObject* callable, Arguments& arguments);

}  // namespace pellucid::variables
