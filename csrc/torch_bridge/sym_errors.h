// The shape engine's errors as Python exceptions, thrown through PyTorch's C++ as pybind11's.
#pragma once
#include "symbolic/error.h"

namespace pellucid::bridge {

[[noreturn]] void raise_in_python(const symbolic::Error& error);  // throws pybind11::error_already_set; the GIL is held

template <class Function>
auto raising(Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const symbolic::Error& error) {
    raise_in_python(error);
  }
}

}  // namespace pellucid::bridge
