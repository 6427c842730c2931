// The interpreter frame of CPython 3.13: where its function, code and locals are. Included by frame_access.h alone.
#pragma once

namespace pellucid::cpython {

inline PyObject* frame_function(_PyInterpreterFrame* frame) { return frame->f_funcobj; }
inline PyCodeObject* frame_code(_PyInterpreterFrame* frame) { return _PyFrame_GetCode(frame); }

// The frame has not begun: instr_ptr points at the first instruction.
inline bool frame_at_entry(_PyInterpreterFrame* frame) {
  return frame->owner == FRAME_OWNED_BY_THREAD && frame->instr_ptr == _PyCode_CODE(_PyFrame_GetCode(frame));
}

inline Py_ssize_t frame_size(PyCodeObject* code) { return code->co_framesize; }

inline void frame_set_code(_PyInterpreterFrame* frame, PyCodeObject* code) {
  frame->f_executable = reinterpret_cast<PyObject*>(code);
  frame->instr_ptr = _PyCode_CODE(code);
}

// How many more Python frames may start before the recursion limit is reached.
inline int& calls_remaining(PyThreadState* thread) { return thread->py_recursion_remaining; }

inline Py_ssize_t request_code_extra(freefunc release) { return PyUnstable_Eval_RequestCodeExtraIndex(release); }
inline int get_code_extra(PyObject* code, Py_ssize_t index, void** data) { return PyUnstable_Code_GetExtra(code, index, data); }
inline int set_code_extra(PyObject* code, Py_ssize_t index, void* data) { return PyUnstable_Code_SetExtra(code, index, data); }

}  // namespace pellucid::cpython
