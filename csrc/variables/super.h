// super(): lookup in the MRO behind a class.
#pragma once
#include "variables/tracer.h"

namespace pellucid::variables {

Answer get_super_attribute(Tracer& t, SuperVariable* super, PyObject* name);

}  // namespace pellucid::variables
