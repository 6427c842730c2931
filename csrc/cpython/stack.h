// How much C stack the running thread has left. Under a frame hook every Python call recurses in C, and CPython 3.11 counts calls, not
// bytes: with a raised recursion limit, or in a thread with a small stack, only measuring tells when to stop. Knows no frames.
#pragma once
#include <cstddef>

namespace pellucid::cpython {

// Bytes between the caller's frame and the end of its thread's stack. SIZE_MAX where that can't be told: on a stack that is not the
// thread's own (a fiber), or where the system does not say.
size_t stack_left();

// Whether so little is left that no further Python frame may start: what a frame's own C calls (PyTorch's kernels, destructors) get by
// with.
bool stack_is_low();

}  // namespace pellucid::cpython
