// The interpreter frame of CPython 3.11: where its function, code and locals are. Included by frame_access.h alone.
#pragma once

namespace pellucid::cpython {

inline PyObject* frame_function(_PyInterpreterFrame* frame) { return reinterpret_cast<PyObject*>(frame->f_func); }
inline PyCodeObject* frame_code(_PyInterpreterFrame* frame) { return frame->f_code; }

// The frame has not begun: prev_instr points one code unit before the first instruction.
inline bool frame_at_entry(_PyInterpreterFrame* frame) {
  return frame->owner == FRAME_OWNED_BY_THREAD && frame->prev_instr == _PyCode_CODE(frame->f_code) - 1;
}

inline Py_ssize_t frame_size(PyCodeObject* code) {
  return code->co_nlocalsplus + code->co_stacksize + static_cast<Py_ssize_t>(FRAME_SPECIALS_SIZE);
}

inline void frame_set_code(_PyInterpreterFrame* frame, PyCodeObject* code) {
  frame->f_code = code;
  frame->prev_instr = _PyCode_CODE(code) - 1;
}

// How many more Python frames may start before the recursion limit is reached.
inline int& calls_remaining(PyThreadState* thread) { return thread->recursion_remaining; }

inline Py_ssize_t request_code_extra(freefunc release) { return _PyEval_RequestCodeExtraIndex(release); }
inline int get_code_extra(PyObject* code, Py_ssize_t index, void** data) { return _PyCode_GetExtra(code, index, data); }
inline int set_code_extra(PyObject* code, Py_ssize_t index, void* data) { return _PyCode_SetExtra(code, index, data); }

}  // namespace pellucid::cpython
