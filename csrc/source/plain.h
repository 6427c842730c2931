// Plain values: exact builtin values that compare without running anybody's Python code. Interning of sources, value guards and
// dictionary lookups in guards may only compare these. Knows nothing of frames, guards or torch.
#pragma once
#include <string>

#include "py/ref.h"

namespace pellucid::source {

// None, ..., exact int, float, complex, str, bytes, bool, range-free tuples and frozensets of them, slices of them, and values of
// static types that hold no other objects (torch.device, torch.dtype): their comparison is C code.
bool is_plain(PyObject* object);

// Same type and equal value, both plain; -0.0 is not 0.0, a nan equals a nan of the same bits, 1 is not True. False for anything that
// is not plain unless it is the same object. Never raises, never runs Python code.
bool plain_equal(PyObject* left, PyObject* right) noexcept;

// A hash that agrees with plain_equal; the address of anything that is not plain.
size_t plain_hash(PyObject* object) noexcept;

// Text of a plain value as Python source where it has one (repr), else "<type name>".
std::string plain_text(PyObject* object);

}  // namespace pellucid::source
