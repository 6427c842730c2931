// Where the user's program is, for the ShapeEnv's log, guards and errors.
#pragma once
#include "symbolic/location.h"

namespace pellucid::symbolic_python {

// The innermost Python frame whose file lies neither in this package nor in PyTorch. The GIL is held when it is asked.
symbolic::Site user_site();

}  // namespace pellucid::symbolic_python
