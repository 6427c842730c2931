// Python functions: making variables for known ones, and binding arguments to parameters (CPython: initialize_locals).
#pragma once
#include "bytecode/code.h"
#include "variables/tracer.h"

namespace pellucid::variables {

FunctionVariable* function_without_guards(Tracer& t, PyObject* function);  // of a function that can't change: polyfills, library internals

// Fills `locals` (one per localsplus entry) from the arguments. Errors are TypeErrors of the traced program, with CPython's wording
// left to eager execution (a Break) where it would be long.
Status bind_arguments(Tracer& t, FunctionVariable* function, const bytecode::Code& code, Arguments& arguments,
                      std::vector<Variable*>& locals);

}  // namespace pellucid::variables
