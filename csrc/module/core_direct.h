// Entries whose transformed code is no more than the graph's call: their hits call the graph, without a Python frame in between.
// Knows nothing of guards but that they hold.
#pragma once
#include "cache/cache.h"
#include "cpython/tracing.h"

namespace pellucid::module {

// False: the entry's code has to run. So it is while somebody looks at frames, and expects that one.
inline bool runs_directly(const cache::GuardedCode& entry) { return entry.direct.graph && !cpython::frames_are_watched(); }

// What the entry's code would return for the frame that its guards have just hit. The entry must be running.
PyObject* run_directly(cache::GuardedCode& entry, const guard::FrameView& frame);

}  // namespace pellucid::module
