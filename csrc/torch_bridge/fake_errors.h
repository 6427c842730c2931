// The errors of fake tensors, as C++ exceptions that PyTorch's bindings turn into the Python exceptions the translator looks for.
#pragma once
#include <string>

#include "py/python.h"

namespace pellucid::bridge {

// What a storage of a fake tensor says when its data is asked for (numpy(), data_ptr(), tolist() ...).
inline constexpr const char* kNoValues = "a fake tensor has no values";

// The Python exception class (a RuntimeError) of operators whose result depends on values. A new reference is never given out: the class
// lives as long as the process. Null with an exception set when it can't be made. The GIL is held.
PyObject* data_dependent_error_type();

// Needs no GIL.
[[noreturn]] void throw_data_dependent(const std::string& operator_name);

}  // namespace pellucid::bridge
