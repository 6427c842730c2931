// Reading .pyc files and marshal data of CPython 3.8 to 3.13 whatever Python runs it. Made for files nobody vouches for: memory and time
// are bounded by the length of the data. Knows nothing of instructions.
#pragma once
#include <cstddef>
#include <cstdint>

#include "py/python.h"

namespace pellucid::bytecode {

// The value that `size` bytes of marshal data hold, code objects of `version` (308 to 313) as NeutralCode. On failure null with
// ValueError set, whose text says what is wrong and at which byte. Bytes behind the value are not looked at.
PyObject* read_marshal(const uint8_t* bytes, size_t size, int version);

// The code object of a .pyc file as NeutralCode; its magic number says the version. On failure null with ValueError set.
PyObject* read_pyc(const uint8_t* bytes, size_t size);

}  // namespace pellucid::bytecode
