// The shape engine's side of PyTorch's border, as `pellucid._core` offers it to Python. Shows no torch.
#pragma once
#include "py/python.h"

namespace pellucid::bridge {

// Adds SymNode, torch_number and engine_number. False with a Python exception set.
bool bind_sym_nodes(PyObject* module);

}  // namespace pellucid::bridge
