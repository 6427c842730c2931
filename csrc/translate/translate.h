// The cold path's entry: a frame that missed is executed symbolically and becomes a cache entry.
#pragma once
#include <memory>
#include <string>

#include "cache/cache.h"
#include "guard/guard.h"

namespace pellucid::translate {

enum class Outcome : uint8_t {
  kCaptured,  // `entry` is set
  kSkip,      // this code can't or should not be captured: never ask again (`reason`)
  kRunAsIs,   // run this call as written, ask again next time (`reason`)
  kError,     // a Python exception is set and is to be raised (fullgraph, backend errors, KeyboardInterrupt)
};

struct Result {
  Outcome outcome = Outcome::kRunAsIs;
  std::shared_ptr<cache::GuardedCode> entry;
  std::string reason;
};

// `locals` of `frame` are the arguments as bound at entry. Never throws; never runs the user's Python code.
Result translate(const guard::FrameView& frame, PyObject* code, cache::Region& region);

}  // namespace pellucid::translate
