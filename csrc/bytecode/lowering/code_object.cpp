// PyCodeObject's fields, which carry different names in different versions, and the constructor that goes with them.
#include "bytecode/lowering/code_object.h"

#include "bytecode/neutral_code.h"

namespace pellucid::bytecode {
namespace {

void read_neutral(const CodeFields& fields, CodeParts* parts) {
  parts->version = fields.version;
  parts->code = fields.code;
  parts->linetable = fields.linetable.get();
  parts->exceptiontable = fields.exceptiontable.get();
  parts->consts = fields.consts.get();
  parts->names = fields.names.get();
  parts->localsplus_names = fields.localsplus_names.get();
  parts->localsplus_kinds = fields.localsplus_kinds.get();
  parts->varnames = fields.varnames.get();
  parts->cellvars = fields.cellvars.get();
  parts->freevars = fields.freevars.get();
  parts->filename = fields.filename.get();
  parts->name = fields.name.get();
  parts->qualname = fields.qualname.get();
  parts->argcount = fields.argcount;
  parts->posonly = fields.posonly;
  parts->kwonly = fields.kwonly;
  parts->flags = fields.flags;
  parts->firstlineno = fields.firstlineno;
  parts->stacksize = fields.stacksize;
}

}  // namespace

int running_version() { return PY_MAJOR_VERSION * 100 + PY_MINOR_VERSION; }

bool read_code(PyObject* object, CodeParts* parts) {
  if (const CodeFields* fields = neutral_fields(object)) {
    read_neutral(*fields, parts);
    return true;
  }
  if (!PyCode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "expected a code object, not %.200s", Py_TYPE(object)->tp_name);
    return false;
  }
  auto* code = reinterpret_cast<PyCodeObject*>(object);
  parts->version = running_version();
#if PY_VERSION_HEX >= 0x030B0000
  parts->code = py::Ref::steal(PyCode_GetCode(code));
  if (!parts->code) return false;
  parts->linetable = code->co_linetable;
  parts->exceptiontable = code->co_exceptiontable;
  parts->localsplus_names = code->co_localsplusnames;
  parts->localsplus_kinds = code->co_localspluskinds;
  parts->qualname = code->co_qualname;
#else
  parts->code = py::Ref::share(code->co_code);
#if PY_VERSION_HEX >= 0x030A0000
  parts->linetable = code->co_linetable;
#else
  parts->linetable = code->co_lnotab;
#endif
  parts->varnames = code->co_varnames;
  parts->cellvars = code->co_cellvars;
  parts->freevars = code->co_freevars;
  parts->qualname = code->co_name;
#endif
  parts->consts = code->co_consts;
  parts->names = code->co_names;
  parts->filename = code->co_filename;
  parts->name = code->co_name;
  parts->argcount = code->co_argcount;
  parts->posonly = code->co_posonlyargcount;
  parts->kwonly = code->co_kwonlyargcount;
  parts->flags = code->co_flags;
  parts->firstlineno = code->co_firstlineno;
  parts->stacksize = code->co_stacksize;
  return true;
}

py::Ref names_of_kind(PyObject* names, const char* kinds, unsigned char bits) {
  py::Ref list = py::Ref::steal(PyList_New(0));
  if (!list) return {};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    if ((static_cast<unsigned char>(kinds[i]) & bits) != 0 && PyList_Append(list.get(), PyTuple_GET_ITEM(names, i)) < 0) return {};
  }
  return py::Ref::steal(PyList_AsTuple(list.get()));
}

#if PY_VERSION_HEX >= 0x030B0000

namespace {

// The constructor knows nothing of hidden variables and computes the rest of the kinds from the names; the bytes are still ours
// alone, as nobody has seen the new code object. Returns false with an exception set if names or other kinds came out differently.
bool settle_localsplus(PyCodeObject* code, const CodeParts& parts) {
  const Py_ssize_t size = PyTuple_GET_SIZE(parts.localsplus_names);
  char* made = PyBytes_AS_STRING(code->co_localspluskinds);
  const char* wanted = PyBytes_AS_STRING(parts.localsplus_kinds);
  bool same = PyTuple_GET_SIZE(code->co_localsplusnames) == size;
  for (Py_ssize_t i = 0; same && i < size; ++i) {
    const int equal =
        PyObject_RichCompareBool(PyTuple_GET_ITEM(code->co_localsplusnames, i), PyTuple_GET_ITEM(parts.localsplus_names, i), Py_EQ);
    if (equal < 0) return false;
    same = equal == 1 && (made[i] | kFastHidden) == (wanted[i] | kFastHidden);
    if (same) made[i] = wanted[i];
  }
  if (!same) {
    PyErr_SetString(PyExc_ValueError, "localsplus is not in the compiler's order: locals, cells that are no locals, free variables");
  }
  return same;
}

}  // namespace

PyObject* new_code(const CodeParts& parts) {
  const char* kinds = PyBytes_AS_STRING(parts.localsplus_kinds);
  const py::Ref locals = names_of_kind(parts.localsplus_names, kinds, kFastLocal);
  const py::Ref cells = names_of_kind(parts.localsplus_names, kinds, kFastCell);
  const py::Ref frees = names_of_kind(parts.localsplus_names, kinds, kFastFree);
  if (!locals || !cells || !frees) return nullptr;
#if PY_VERSION_HEX >= 0x030C0000
  constexpr auto construct = PyUnstable_Code_NewWithPosOnlyArgs;
#else
  constexpr auto construct = PyCode_NewWithPosOnlyArgs;
#endif
  PyCodeObject* code =
      construct(parts.argcount, parts.posonly, parts.kwonly, static_cast<int>(PyTuple_GET_SIZE(locals.get())), parts.stacksize, parts.flags,
                parts.code.get(), parts.consts, parts.names, locals.get(), frees.get(), cells.get(), parts.filename, parts.name,
                parts.qualname, parts.firstlineno, parts.linetable, parts.exceptiontable);
  if (code != nullptr && !settle_localsplus(code, parts)) Py_CLEAR(code);
  return reinterpret_cast<PyObject*>(code);
}

#else

PyObject* new_code(const CodeParts&) {
  PyErr_Format(PyExc_ValueError, "code objects can be assembled on CPython 3.11, 3.12 and 3.13; this is CPython %d.%d", PY_MAJOR_VERSION,
               PY_MINOR_VERSION);
  return nullptr;
}

#endif

}  // namespace pellucid::bytecode
