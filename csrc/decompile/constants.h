// When two constants are the same to a compiler. Knows nothing of code.
#pragma once
#include "py/ref.h"

namespace pellucid::decompile {

// As the compiler tells constants apart: 1, 1.0 and True differ, and so do 0.0 and -0.0; a NaN is the same as one of its bits. Objects that
// no literal gives are the same only if they are one. Either may be null.
bool same_constant(PyObject* a, PyObject* b);

}  // namespace pellucid::decompile
