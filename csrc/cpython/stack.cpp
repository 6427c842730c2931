// The bounds of a thread's stack, asked of the system once per thread, and again when they seem reached: the main thread's stack may
// grow to whatever its resource limit is by then.
#include "cpython/stack.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>

namespace pellucid::cpython {

namespace {

constexpr size_t kReserve = size_t{256} << 10;  // of a large stack; an eighth of a small one

struct Bounds {
  bool known = false;
  uintptr_t low = 0, high = 0;  // both 0: the system does not say
  uintptr_t reserve = 0;
  uintptr_t foreign = 0;  // the mebibyte of the last address that lay on no stack of this thread's own
};

thread_local Bounds bounds;

void measure() {
  bounds = {true, 0, 0, 0, bounds.foreign};
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* address = nullptr;
  size_t size = 0, guard = 0;
  if (pthread_attr_getstack(&attributes, &address, &size) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0) {
    // glibc before 2.27 counts the guard pages in.
    bounds.low = reinterpret_cast<uintptr_t>(address) + guard;
    bounds.high = reinterpret_cast<uintptr_t>(address) + size;
    bounds.reserve = std::min(kReserve, size / 8);
  }
  pthread_attr_destroy(&attributes);
}

inline uintptr_t here() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

inline bool inside(uintptr_t address) { return address > bounds.low && address <= bounds.high; }

}  // namespace

size_t stack_left() {
  if (!bounds.known) measure();
  uintptr_t address = here();
  return inside(address) ? address - bounds.low : SIZE_MAX;
}

bool stack_is_low() {
  uintptr_t address = here();
  if (address > bounds.low + bounds.reserve && address <= bounds.high) [[likely]]
    return false;
  // First call on this thread, another stack, or little left: the main thread below its old bounds included.
  constexpr int kMebibyte = 20;
  if (address >> kMebibyte == bounds.foreign) return false;
  measure();
  if (inside(address)) return address - bounds.low < bounds.reserve;
  bounds.foreign = address >> kMebibyte;
  return false;
}

}  // namespace pellucid::cpython
