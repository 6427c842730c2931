// Functions that ask for or change torch's global state: their answers are known during capture, because the state is guarded.
#pragma once
#include "variables/tracer.h"

namespace pellucid::variables {

bool is_torch_state(PyObject* callable);

// torch._C._InferenceMode(mode), entered and left by nodes of the graph.
Answer make_inference_mode(Tracer& t, Arguments& arguments);
Answer call_inference_mode(Tracer& t, ObjectVariable* context, PyObject* method);

}  // namespace pellucid::variables
