// Installing and taking out the evaluator, the evaluator itself, and the data attached to code objects. One interpreter: the hook and
// its counts belong to the main one, and the GIL guards them. Must not know what a region is or what is done with a frame.
#include "cpython/hook.h"

#include <utility>

#include "cpython/frame_access.h"
#include "cpython/stack.h"

namespace pellucid::cpython {

#if PELLUCID_HAS_FRAME_HOOK

namespace {

thread_local ThreadState thread_state;
int32_t busy = 0;
int32_t holders = 0;  // acquire() without release(), over all threads
int64_t frames_seen = 0;
_PyFrameEvalFunction previous = nullptr;  // what we forward to; set as long as anything can still reach `evaluator`
bool buried = false;                      // another hook was put on top of ours and is still there as far as we know
FrameCallback frame_callback = nullptr;
void (*free_data)(void*) = nullptr;
Py_ssize_t data_index = -1;

PyObject* forward(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  return previous == nullptr ? _PyEval_EvalFrameDefault(thread, frame, throwing) : previous(thread, frame, throwing);
}

void* code_data(PyObject* code) {
  void* data = nullptr;
  if (data_index >= 0) get_code_extra(code, data_index, &data);
  return data;
}

void record(PyObject* recorder, _PyInterpreterFrame* frame, bool throwing) {
  PyCodeObject* code = frame_code(frame);
  bool entry = !throwing && frame_at_entry(frame);
  int bound = 0;
  for (int i = 0; entry && i < code->co_nlocalsplus; i++) bound += frame->localsplus[i] != nullptr;
  PyObject* row = Py_BuildValue("(OOOi)", code, frame_function(frame), entry ? Py_True : Py_False, bound);
  if (row == nullptr || PyList_Append(recorder, row) < 0) PyErr_WriteUnraisable(recorder);
  Py_XDECREF(row);
}

// The frame holds its arguments now, so none of these is the last reference.
void hand_over(ThreadState& state) {
  PyObject** arguments = state.handover;
  state.handover = nullptr;
  for (Py_ssize_t i = 0; i < state.handover_count; i++) Py_CLEAR(arguments[i]);
}

// The evaluator fails at its entry as it does at the recursion limit: RecursionError, and the frame is cleared by whoever clears frames
// in this version.
PyObject* refuse(PyThreadState* thread, _PyInterpreterFrame* raw, int throwing) {
  int remaining = std::exchange(calls_remaining(thread), 0);
  PyObject* result = forward(thread, raw, throwing);
  calls_remaining(thread) = remaining;
  return result;
}

PyObject* evaluator(PyThreadState* thread, _PyInterpreterFrame* raw, int throwing) {
  frames_seen++;
  if (stack_is_low()) [[unlikely]]
    return refuse(thread, raw, throwing);
  ThreadState& state = thread_state;
  if (state.recorder != nullptr) [[unlikely]]
    record(state.recorder, raw, throwing != 0);
  if (state.handover != nullptr && frame_function(raw) == state.handover_function) [[unlikely]]
    hand_over(state);
  // `close` and `throw` of a generator arrive with `throwing`, its later steps in a frame that the generator owns.
  if (state.region == nullptr || throwing != 0 || frame_callback == nullptr || !frame_at_entry(raw)) return forward(thread, raw, throwing);
  PyObject* code = reinterpret_cast<PyObject*>(frame_code(raw));
  Frame frame{raw, thread, frame_function(raw), code, raw->localsplus, code_data(code)};
  return frame_callback(state, frame);
}

// Whether a frame started now reaches `evaluator`: asked by running one, as other hooks do not say what they forward to.
bool reachable() {
  PyObject* globals = PyDict_New();
  if (globals == nullptr) return false;
  int64_t before = frames_seen;
  void* region = thread_state.region;
  thread_state.region = nullptr;
  PyObject* result = PyRun_String("None", Py_eval_input, globals, globals);
  thread_state.region = region;
  if (result == nullptr) PyErr_Clear();  // of our own one-word program, under a hook that failed
  Py_XDECREF(result);
  Py_DECREF(globals);
  return frames_seen != before;
}

bool acquire() {
  if (holders == 0) {
    PyInterpreterState* interpreter = PyInterpreterState_Get();
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    // Under a hook that itself forwards to ours, installing again would make the two forward to each other for ever.
    bool in_place = current == evaluator || (buried && current != _PyEval_EvalFrameDefault && reachable());
    if (!in_place) {
      previous = current == _PyEval_EvalFrameDefault ? nullptr : current;
      _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluator);
    }
    buried = in_place && current != evaluator;
  }
  holders++;
  busy++;
  return true;
}

void release() {
  busy--;
  if (--holders > 0) return;
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  if (current == evaluator) {
    _PyInterpreterState_SetEvalFrameFunc(interpreter, previous == nullptr ? _PyEval_EvalFrameDefault : previous);
  } else {
    // Someone put a hook on top and will put `evaluator` back when it goes, or already took ours out. Either way leave theirs alone.
    buried = current != _PyEval_EvalFrameDefault;
  }
}

bool has_neighbour() {
  _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
  return current == evaluator ? previous != nullptr : current != _PyEval_EvalFrameDefault;
}

void begin_capture() {
  thread_state.in_capture = true;
  busy++;
}

void end_capture() {
  thread_state.in_capture = false;
  busy--;
}

void free_code_data(void* data) {
  if (free_data != nullptr && data != nullptr) free_data(data);
}

bool set_code_data(PyObject* code, void* data) {
  if (data_index < 0) {
    data_index = request_code_extra(free_code_data);
    if (data_index < 0) {
      PyErr_SetString(PyExc_RuntimeError, "CPython has no free code extra index: too many tools attach data to code objects");
      return false;
    }
  }
  return set_code_extra(code, data_index, data) == 0;
}

PyObject* evaluate(Frame& frame) { return forward(frame.thread, static_cast<_PyInterpreterFrame*>(frame.raw), 0); }

// At entry the frame is the last one on the data stack and can grow there. What it grows by is given back with the frame.
bool swap_code(Frame& frame, PyObject* code_object) {
  auto* raw = static_cast<_PyInterpreterFrame*>(frame.raw);
  auto* code = reinterpret_cast<PyCodeObject*>(code_object);
  PyCodeObject* old = frame_code(raw);
  PyThreadState* thread = frame.thread;
  auto** base = reinterpret_cast<PyObject**>(raw);
  bool fits = base + frame_size(old) == thread->datastack_top && base + frame_size(code) < thread->datastack_limit;
  if (!fits || raw->frame_obj != nullptr) return false;
  thread->datastack_top = base + frame_size(code);
  for (int i = old->co_nlocalsplus; i < code->co_nlocalsplus; i++) raw->localsplus[i] = nullptr;
  raw->stacktop = code->co_nlocalsplus;
  Py_INCREF(code);
  frame_set_code(raw, code);
  Py_DECREF(old);
  frame.code = code_object;
  return true;
}

void drop_locals(Frame& frame) {
  if (static_cast<_PyInterpreterFrame*>(frame.raw)->frame_obj != nullptr) return;  // somebody holds the frame and may look at them
  int count = reinterpret_cast<PyCodeObject*>(frame.code)->co_nlocalsplus;
  for (int i = 0; i < count; i++) Py_CLEAR(frame.locals[i]);
}

const HookApi api = {
    HookApi::kVersion,
    &busy,
    [] { return &thread_state; },
    acquire,
    release,
    begin_capture,
    end_capture,
    [](FrameCallback callback, void (*free_code_data_callback)(void*)) {
      frame_callback = callback;
      free_data = free_code_data_callback;
    },
    evaluate,
    swap_code,
    drop_locals,
    code_data,
    set_code_data,
    has_neighbour,
    stack_left,
};

}  // namespace

const HookApi& hook_api() { return api; }
bool hook_supported() { return true; }
bool hook_is_installed() { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == evaluator; }
int64_t hook_frames_seen() { return frames_seen; }

#else  // below 3.11: no frame access

const HookApi& hook_api() {
  static const HookApi none = {};
  return none;
}
bool hook_supported() { return false; }
bool hook_is_installed() { return false; }
int64_t hook_frames_seen() { return 0; }

#endif

}  // namespace pellucid::cpython
