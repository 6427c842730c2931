// Functions that ask for or change torch's global state: their answers are known during capture, because the state is guarded.
#pragma once
#include "variables/tracer.h"

namespace pellucid::variables {

bool is_torch_state(PyObject* callable);

}  // namespace pellucid::variables
