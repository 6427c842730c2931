// Thrown as PyTorch's C++ carries Python's exceptions. Which class an error becomes is said in symbolic_python.
#include "torch_bridge/sym_errors.h"

#include "symbolic_python/errors.h"
#include "torch_bridge/interned.h"

namespace pellucid::bridge {

void raise_in_python(const symbolic::Error& error) {
  symbolic_python::raise(error);
  throw pybind11::error_already_set();
}

}  // namespace pellucid::bridge
