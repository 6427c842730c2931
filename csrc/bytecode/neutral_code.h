// NeutralCode: a code object of any version 3.8 to 3.13 as plain data, filled from a file or from a live code object. It can't be run,
// only read, so a damaged one does no harm. Knows nothing of instructions.
#pragma once
#include "py/ref.h"

namespace pellucid::bytecode {

struct CodeFields {
  int version = 0;  // 308 to 313
  int argcount = 0, posonly = 0, kwonly = 0, flags = 0, firstlineno = 0, stacksize = 0;
  py::Ref code, linetable, exceptiontable;     // bytes; `linetable` is co_lnotab up to 3.9, `exceptiontable` null up to 3.10
  py::Ref consts, names;                       // tuples; a code object among the constants is a NeutralCode too
  py::Ref varnames, cellvars, freevars;        // tuples of str, always there
  py::Ref localsplus_names, localsplus_kinds;  // from 3.11 on, else null
  py::Ref filename, name, qualname;            // `qualname` is `name` up to 3.10
};

// The type, made on first use: null with an exception set where that fails.
PyTypeObject* neutral_code_type();

// The fields, or null where `object` is no NeutralCode (no exception is set).
const CodeFields* neutral_fields(PyObject* object);

// Checks that the fields are what an interpreter could have made as far as reading them safely needs it, fills those that follow from
// others (varnames, cellvars and freevars from 3.11 on, qualname before) and makes the object. ValueError where they do not fit.
PyObject* new_neutral(CodeFields fields);

// The same as a NeutralCode, the constants too; a NeutralCode is returned itself. Null with an exception set for anything else.
PyObject* neutral_from(PyObject* code);

// Whether `object` is a live code object or a NeutralCode.
bool is_code(PyObject* object);

}  // namespace pellucid::bytecode
