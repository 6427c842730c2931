// INTERNED("text"): a borrowed interned str, made at the first use of the line and kept for the life of the process.
#pragma once
#include "py/python.h"

#define INTERNED(text)                                             \
  ([]() -> PyObject* {                                             \
    static PyObject* const str = PyUnicode_InternFromString(text); \
    return str;                                                    \
  }())
