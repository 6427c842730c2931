// Exceptions of the traced program: their C fields (args, __cause__, __context__ ...) and texts. Created ones are
// ObjectVariable{existed = false, arguments = args}; the other fields are `attributes` with `slot` set. exception_instance and
// exception_matches are in tracer.h.
#pragma once
#include "variables/tracer.h"

namespace pellucid::variables {

// `handled` false: the name is none of the C fields; go on as for any object.
Answer get_exception_attribute(Tracer& t, ObjectVariable* exception, PyObject* name, bool* handled);
Status set_exception_attribute(Tracer& t, ObjectVariable* exception, PyObject* name, Variable* value, bool* handled);

bool is_modelled_exception(PyTypeObject* type);                                     // a builtin class without C fields beyond those above
Status init_exception(Tracer& t, ObjectVariable* exception, Arguments& arguments);  // BaseException.__init__ and its relatives
Answer exception_text(Tracer& t, ObjectVariable* exception, bool as_str);           // what the builtin __str__ or __repr__ gives

}  // namespace pellucid::variables
