// Chooses the frame layout of the CPython that is compiled for. For files of cpython/ only.
#pragma once
#include "py/python.h"

#if PY_VERSION_HEX >= 0x030B0000
#define PELLUCID_HAS_FRAME_HOOK 1
#if PY_VERSION_HEX >= 0x030C0000
#undef _PyGC_FINALIZED  // pycore_gc.h defines it again
#endif
#define Py_BUILD_CORE 1
extern "C" {
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
}
#undef Py_BUILD_CORE

#if PY_VERSION_HEX >= 0x030E0000
#error "frames of this CPython are not known: add a folder beside v313/"
#elif PY_VERSION_HEX >= 0x030D0000
#include "cpython/v313/frame_access.h"
#elif PY_VERSION_HEX >= 0x030C0000
#include "cpython/v312/frame_access.h"
#else
#include "cpython/v311/frame_access.h"
#endif
#else
#define PELLUCID_HAS_FRAME_HOOK 0
#endif
