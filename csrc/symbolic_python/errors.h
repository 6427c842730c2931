// The shape engine's errors as Python exceptions: the one place that says which becomes which.
#pragma once
#include "symbolic/error.h"

namespace pellucid::symbolic_python {

// Sets the exception. The GIL is held.
void raise(const symbolic::Error& error);

}  // namespace pellucid::symbolic_python
