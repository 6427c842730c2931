// The frame hook (PEP 523) as the rest of the program sees it: per-thread state, installing, and a view of a frame that is about to
// run. All of its state lives in _bytecode; _core reaches it through the capsule `pellucid._bytecode.hook_api`, whose table is
// HookApi. Nothing here names a CPython struct: those are known to v311/, v312/ and v313/ only. Knows neither regions nor guards.
#pragma once
#include <cstdint>

#include "py/python.h"

namespace pellucid::cpython {

// What the hook looks at first, one per thread. `region` and `as_written` are borrowed: whoever sets them keeps the objects alive and
// puts the old values back.
struct ThreadState {
  void* region = nullptr;          // null: frames of this thread are none of our business, the hook forwards at once
  PyObject* as_written = nullptr;  // a function whose next frame runs unchanged; taken when that frame arrives
  // Arguments, owned by whoever set this, that are let go once the next frame of `handover_function` has references of its own.
  PyObject** handover = nullptr;
  Py_ssize_t handover_count = 0;
  PyObject* handover_function = nullptr;
  bool in_capture = false;       // a frame of this thread is being captured: wrappers call what they wrap as written
  PyObject* recorder = nullptr;  // tests: a list that gets one tuple per frame
};

// A frame at its entry: arguments bound, nothing run, cells not made. Borrowed throughout.
struct Frame {
  void* raw;  // the _PyInterpreterFrame
  PyThreadState* thread;
  PyObject* function;  // the function object
  PyObject* code;
  PyObject** locals;  // co_nlocalsplus slots, those that are not arguments null
  void* data;         // what set_code_data attached to `code`, or null
};

// Gets every frame that starts on a thread with a region, except those of generators' later steps. Runs it (evaluate) or puts a result
// in its place; returns a new reference or null with an exception set, as an evaluator does.
using FrameCallback = PyObject* (*)(ThreadState& thread, Frame& frame);

struct HookApi {
  static constexpr uint32_t kVersion = 3;
  uint32_t version;
  const int32_t* busy;  // installs and captures going on, over all threads; 0: no ThreadState can have anything set
  ThreadState* (*thread)();
  bool (*acquire)();  // installs the hook for the first holder; false with an exception set
  void (*release)();  // takes it out again for the last one; keeps a pending exception
  void (*begin_capture)();
  void (*end_capture)();
  void (*set_callback)(FrameCallback callback, void (*free_code_data)(void*));
  PyObject* (*evaluate)(Frame& frame);  // the frame as it is, through the hook that was there before ours
  // Makes a frame at entry run `code` in place of its own; false, with nothing changed, where the frame's place does not allow it (then
  // call a function over the code). `code` takes the same arguments in the same slots and has the same free variables.
  bool (*swap_code)(Frame& frame, PyObject* code);
  void (*drop_locals)(Frame& frame);  // lets go of the locals of a frame that is over, or will not be evaluated
  void* (*code_data)(PyObject* code);
  bool (*set_code_data)(PyObject* code, void* data);  // takes ownership, freed with the code; must have none yet. False: exception set
  bool (*has_neighbour)();                            // another hook is installed, above or below ours or instead of it
  size_t (*stack_left)();                             // bytes of C stack below the caller (stack.h)
};

inline constexpr const char* kHookCapsule = "pellucid._bytecode.hook_api";

const HookApi& hook_api();   // in _bytecode only
bool hook_supported();       // false below CPython 3.11: nothing else here may be called
bool hook_is_installed();    // ours is the interpreter's evaluator right now
int64_t hook_frames_seen();  // frames that reached the hook so far, forwarded or not

}  // namespace pellucid::cpython
