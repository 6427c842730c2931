// Precompiled for every file of torch_bridge/: the headers of torch that are dear to read and that most files want. Never
// torch/extension.h, which brings all of the C++ frontend (half a minute a file).
#pragma once
#include "py/python.h"  // first: it defines PY_SSIZE_T_CLEAN, which torch's headers do not

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/SymInt.h>
#include <c10/core/TensorImpl.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/library.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "py/ref.h"

#undef CHECK  // c10's, for which base/check.h has our own
