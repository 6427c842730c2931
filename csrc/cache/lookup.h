// Finding the entry for a call. The order only decides which guards run first: every hit has run its whole program. Knows no frames.
#pragma once
#include "cache/cache.h"

namespace pellucid::cache {

// The entry whose guards hold, tried in this order: what followed the last hit the last time; where there are many, the one that expects
// what a certain argument shows; the last hit; then all others.
// kHit and kError (an exception that names the guard is set) give `found`. Nothing is freed here: entries whose objects died are
// passed over until drop_invalid. Runs no Python code unless a guard does.
guard::Verdict find(CodeCache& cache, const guard::FrameView& frame, GuardedCode*& found) noexcept;

// Adds an entry, as the last hit.
void add(CodeCache& cache, std::shared_ptr<GuardedCode> entry);

// Forgets entries that can never hit again because a guarded object was freed. Frees them, which may run any Python code, after the
// cache is whole again. Returns how many there were.
size_t drop_invalid(CodeCache& cache);

}  // namespace pellucid::cache
