// Attributes of exceptions of the traced program (args, __cause__, __context__ ...), which CPython keeps in C fields.
#pragma once
#include "variables/tracer.h"

namespace pellucid::variables {

// `handled` false: the name is none of the C fields; go on as for any object.
Answer get_exception_attribute(Tracer& t, ObjectVariable* exception, PyObject* name, bool* handled);
Status set_exception_attribute(Tracer& t, ObjectVariable* exception, PyObject* name, Variable* value, bool* handled);

}  // namespace pellucid::variables
