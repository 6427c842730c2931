// Making instances: the steps of type.__call__ that other rules need one by one (super().__new__, super().__init__, type.__call__).
#pragma once
#include "variables/tracer.h"

namespace pellucid::variables {

Answer construct(Tracer& t, Variable* cls, Arguments arguments);  // type.__call__(cls, ...): a metaclass's own __call__ is not asked

// BASE.__new__(cls, ...) of a builtin class.
Answer new_builtin_instance(Tracer& t, PyTypeObject* base, Variable* cls, Arguments& arguments);

// BASE.__init__(object, ...) of list or dict on an instance of a subclass.
Status init_container(Tracer& t, ObjectVariable* object, PyTypeObject* base, Arguments& arguments);

// A slot wrapper or method of list or dict, called on the container itself.
Answer call_container_slot(Tracer& t, PyObject* descriptor, Variable* self, PyObject* name, Arguments& arguments);

}  // namespace pellucid::variables
