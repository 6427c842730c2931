// Whether somebody looks at the frames of the thread, so that one left out would be missed. The thread state's layout is CPython 3.11's,
// like that of objects.h.
#pragma once
#include "py/python.h"

namespace pellucid::cpython {

// A tracer, a profiler, or a frame hook: ours, or that of another compiler, which knows transformed code by its frame.
inline bool frames_are_watched() {
  PyThreadState* thread = PyThreadState_Get();
  return thread->cframe->use_tracing != 0 || _PyInterpreterState_GetEvalFrameFunc(thread->interp) != _PyEval_EvalFrameDefault;
}

}  // namespace pellucid::cpython
