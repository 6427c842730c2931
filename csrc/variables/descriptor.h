// Helpers of attribute access that other rules share.
#pragma once
#include "variables/tracer.h"

namespace pellucid::variables {

Result<Variable*> class_variable(Tracer& t, Variable* object);  // type(object) as a variable

}  // namespace pellucid::variables
