// Reading code objects, live and neutral, and making live ones. The only part of bytecode/ that looks at PyCodeObject and at the
// version it is compiled for. Knows nothing of instructions.
#pragma once
#include "py/ref.h"

namespace pellucid::bytecode {

// 308 to 313: the version this build runs in.
int running_version();

struct CodeParts {  // borrowed from the code object, but for `code`, which PyCode_GetCode makes
  int version = 0;
  py::Ref code;                        // bytes: co_code, never the adaptive array (which is rewritten while it runs)
  PyObject* linetable = nullptr;       // co_lnotab up to 3.9
  PyObject* exceptiontable = nullptr;  // null up to 3.10
  PyObject* consts = nullptr;
  PyObject* names = nullptr;
  PyObject* localsplus_names = nullptr;                                    // from 3.11 on
  PyObject* localsplus_kinds = nullptr;                                    // bytes of the kFast... below
  PyObject *varnames = nullptr, *cellvars = nullptr, *freevars = nullptr;  // up to 3.10
  PyObject* filename = nullptr;
  PyObject* name = nullptr;
  PyObject* qualname = nullptr;
  int argcount = 0, posonly = 0, kwonly = 0, flags = 0, firstlineno = 0, stacksize = 0;
};

// The bits of co_localspluskinds (CO_FAST_* in CPython's pycore_code.h, the same from 3.11 on).
inline constexpr unsigned char kFastHidden = 0x10;  // 3.12: a variable of an inlined comprehension, not shown by locals()
inline constexpr unsigned char kFastLocal = 0x20;
inline constexpr unsigned char kFastCell = 0x40;
inline constexpr unsigned char kFastFree = 0x80;

// Of a live code object or a NeutralCode; false with an exception set for anything else.
bool read_code(PyObject* code, CodeParts* parts);

// The names of localsplus whose kind has one of `bits`, in order, as a tuple; null with an exception set.
py::Ref names_of_kind(PyObject* names, const char* kinds, unsigned char bits);

// A new code object, or null with an exception set. The order of localsplus must be the one the compiler uses (locals, cells that are no
// arguments, free variables); any other is a ValueError. So is an interpreter older than 3.11.
PyObject* new_code(const CodeParts& parts);

}  // namespace pellucid::bytecode
