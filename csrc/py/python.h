// The one header through which all but cpython/, torch_bridge/ and module/ see Python: the public C API only.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
