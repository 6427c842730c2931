// The type NeutralCode: its checks, its attributes (those of a code object) and making one from a live code object. Knows nothing of
// instructions or of files.
#include "bytecode/neutral_code.h"

#include <new>
#include <string>
#include <utility>

#include "bytecode/lowering/code_object.h"

namespace pellucid::bytecode {
namespace {

constexpr int kVarargs = 0x04, kVarkeywords = 0x08;  // CO_VARARGS, CO_VARKEYWORDS

PyTypeObject* type = nullptr;

struct NeutralCode {
  PyObject_HEAD CodeFields* fields;
};

const CodeFields& fields_of(PyObject* self) { return *reinterpret_cast<NeutralCode*>(self)->fields; }

void dealloc(PyObject* self) {
  delete reinterpret_cast<NeutralCode*>(self)->fields;
  PyTypeObject* own = Py_TYPE(self);
  own->tp_free(self);
  Py_DECREF(own);
}

template <py::Ref CodeFields::*kMember>
PyObject* get_object(PyObject* self, void*) {
  PyObject* value = (fields_of(self).*kMember).get();
  if (value == nullptr) {
    PyErr_Format(PyExc_AttributeError, "code objects of 3.%d have no such attribute", fields_of(self).version % 100);
    return nullptr;
  }
  Py_INCREF(value);
  return value;
}

template <int CodeFields::*kMember>
PyObject* get_number(PyObject* self, void*) {
  return PyLong_FromLong(fields_of(self).*kMember);
}

PyObject* get_nlocals(PyObject* self, void*) { return PyLong_FromSsize_t(PyTuple_GET_SIZE(fields_of(self).varnames.get())); }

PyObject* get_lnotab(PyObject* self, void*) {
  if (fields_of(self).version < 310) return fields_of(self).linetable.new_ref();
  PyErr_SetString(PyExc_AttributeError, "co_lnotab is what 3.8 and 3.9 have");
  return nullptr;
}

PyObject* get_linetable(PyObject* self, void*) {
  if (fields_of(self).version >= 310) return fields_of(self).linetable.new_ref();
  PyErr_SetString(PyExc_AttributeError, "co_linetable came with 3.10");
  return nullptr;
}

PyObject* repr(PyObject* self) {
  const CodeFields& fields = fields_of(self);
  return PyUnicode_FromFormat("<code object %U of Python 3.%d, file %R, line %d>", fields.name.get(), fields.version % 100,
                              fields.filename.get(), fields.firstlineno);
}

PyGetSetDef getset[] = {
    {"version", get_number<&CodeFields::version>, nullptr, "the CPython version it was compiled for, 311 for 3.11", nullptr},
    {"co_argcount", get_number<&CodeFields::argcount>, nullptr, nullptr, nullptr},
    {"co_posonlyargcount", get_number<&CodeFields::posonly>, nullptr, nullptr, nullptr},
    {"co_kwonlyargcount", get_number<&CodeFields::kwonly>, nullptr, nullptr, nullptr},
    {"co_nlocals", get_nlocals, nullptr, nullptr, nullptr},
    {"co_stacksize", get_number<&CodeFields::stacksize>, nullptr, nullptr, nullptr},
    {"co_flags", get_number<&CodeFields::flags>, nullptr, nullptr, nullptr},
    {"co_firstlineno", get_number<&CodeFields::firstlineno>, nullptr, nullptr, nullptr},
    {"co_code", get_object<&CodeFields::code>, nullptr, nullptr, nullptr},
    {"co_consts", get_object<&CodeFields::consts>, nullptr, nullptr, nullptr},
    {"co_names", get_object<&CodeFields::names>, nullptr, nullptr, nullptr},
    {"co_varnames", get_object<&CodeFields::varnames>, nullptr, nullptr, nullptr},
    {"co_cellvars", get_object<&CodeFields::cellvars>, nullptr, nullptr, nullptr},
    {"co_freevars", get_object<&CodeFields::freevars>, nullptr, nullptr, nullptr},
    {"co_filename", get_object<&CodeFields::filename>, nullptr, nullptr, nullptr},
    {"co_name", get_object<&CodeFields::name>, nullptr, nullptr, nullptr},
    {"co_qualname", get_object<&CodeFields::qualname>, nullptr, nullptr, nullptr},
    {"co_lnotab", get_lnotab, nullptr, nullptr, nullptr},
    {"co_linetable", get_linetable, nullptr, nullptr, nullptr},
    {"co_exceptiontable", get_object<&CodeFields::exceptiontable>, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, getset},
    {Py_tp_doc, const_cast<char*>("A code object of Python 3.8 to 3.13 as plain data: it has the co_ attributes and cannot be run.")},
    {0, nullptr},
};

PyType_Spec spec = {"pellucid._bytecode.NeutralCode", sizeof(NeutralCode), 0, Py_TPFLAGS_DEFAULT, slots};

bool damaged(const char* what) {
  PyErr_Format(PyExc_ValueError, "damaged code object: %s", what);
  return false;
}

bool all_str(PyObject* tuple) {
  if (tuple == nullptr || !PyTuple_CheckExact(tuple)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(tuple, i))) return false;
  }
  return true;
}

bool is_bytes(const py::Ref& object) { return object && PyBytes_CheckExact(object.get()); }
bool is_str(const py::Ref& object) { return object && PyUnicode_CheckExact(object.get()); }

bool split_localsplus(CodeFields& fields) {
  if (!all_str(fields.localsplus_names.get()) || !is_bytes(fields.localsplus_kinds)) return damaged("its localsplus");
  const Py_ssize_t size = PyTuple_GET_SIZE(fields.localsplus_names.get());
  const char* kinds = PyBytes_AS_STRING(fields.localsplus_kinds.get());
  if (PyBytes_GET_SIZE(fields.localsplus_kinds.get()) != size) return damaged("co_localspluskinds");
  for (Py_ssize_t i = 0; i < size; ++i) {
    const int kind = static_cast<unsigned char>(kinds[i]) & (kFastLocal | kFastCell | kFastFree);
    if (kind != kFastLocal && kind != kFastCell && kind != kFastFree && kind != (kFastLocal | kFastCell)) {
      return damaged("co_localspluskinds");
    }
  }
  fields.varnames = names_of_kind(fields.localsplus_names.get(), kinds, kFastLocal);
  fields.cellvars = names_of_kind(fields.localsplus_names.get(), kinds, kFastCell);
  fields.freevars = names_of_kind(fields.localsplus_names.get(), kinds, kFastFree);
  return fields.varnames && fields.cellvars && fields.freevars;
}

bool check(CodeFields& fields) {
  if (fields.version < 308 || fields.version > 313) return damaged("its version");
  if (!is_bytes(fields.code)) return damaged("co_code");
  if (PyBytes_GET_SIZE(fields.code.get()) == 0 || PyBytes_GET_SIZE(fields.code.get()) % 2 != 0) return damaged("the length of co_code");
  if (!is_bytes(fields.linetable)) return damaged("its line table");
  if (!fields.consts || !PyTuple_CheckExact(fields.consts.get())) return damaged("co_consts");
  if (!all_str(fields.names.get())) return damaged("co_names");
  if (!is_str(fields.name) || !is_str(fields.filename)) return damaged("co_name or co_filename");
  if (fields.version >= 311) {
    if (!is_bytes(fields.exceptiontable)) return damaged("co_exceptiontable");
    if (!is_str(fields.qualname)) return damaged("co_qualname");
    if (!split_localsplus(fields)) return false;
  } else {
    if (!all_str(fields.varnames.get()) || !all_str(fields.cellvars.get()) || !all_str(fields.freevars.get())) {
      return damaged("co_varnames, co_cellvars or co_freevars");
    }
    fields.qualname = fields.name;
  }
  const Py_ssize_t locals = PyTuple_GET_SIZE(fields.varnames.get());
  if (fields.argcount < 0 || fields.kwonly < 0 || fields.posonly < 0 || fields.posonly > fields.argcount || fields.stacksize < 0) {
    return damaged("its numbers of arguments");
  }
  const int64_t arguments =
      int64_t{fields.argcount} + fields.kwonly + ((fields.flags & kVarargs) != 0) + ((fields.flags & kVarkeywords) != 0);
  if (arguments > locals) return damaged("it has fewer variables than arguments");
  if (fields.version >= 311) {
    const char* kinds = PyBytes_AS_STRING(fields.localsplus_kinds.get());
    for (int64_t i = 0; i < arguments; ++i) {
      if ((static_cast<unsigned char>(kinds[i]) & kFastLocal) == 0) return damaged("an argument is no local variable");
    }
  }
  return true;
}

py::Ref neutral_consts(PyObject* consts) {
  py::Ref result = py::Ref::steal(PyTuple_New(PyTuple_GET_SIZE(consts)));
  for (Py_ssize_t i = 0; result && i < PyTuple_GET_SIZE(consts); ++i) {
    PyObject* item = PyTuple_GET_ITEM(consts, i);
    if (PyCode_Check(item)) {
      item = neutral_from(item);
      if (item == nullptr) return {};
    } else {
      Py_INCREF(item);
    }
    PyTuple_SET_ITEM(result.get(), i, item);
  }
  return result;
}

}  // namespace

PyTypeObject* neutral_code_type() {
  if (type == nullptr) type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

const CodeFields* neutral_fields(PyObject* object) { return type != nullptr && Py_TYPE(object) == type ? &fields_of(object) : nullptr; }

bool is_code(PyObject* object) { return PyCode_Check(object) || neutral_fields(object) != nullptr; }

PyObject* new_neutral(CodeFields fields) {
  if (!check(fields) || neutral_code_type() == nullptr) return nullptr;
  auto* held = new (std::nothrow) CodeFields(std::move(fields));
  if (held == nullptr) return PyErr_NoMemory();
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) {
    delete held;
    return nullptr;
  }
  reinterpret_cast<NeutralCode*>(self)->fields = held;
  return self;
}

PyObject* neutral_from(PyObject* code) {
  if (neutral_fields(code) != nullptr) {
    Py_INCREF(code);
    return code;
  }
  CodeParts parts;
  if (!read_code(code, &parts)) return nullptr;
  if (Py_EnterRecursiveCall(" while reading a code object")) return nullptr;
  CodeFields fields;
  fields.consts = neutral_consts(parts.consts);
  Py_LeaveRecursiveCall();
  if (!fields.consts) return nullptr;
  fields.version = parts.version;
  fields.argcount = parts.argcount;
  fields.posonly = parts.posonly;
  fields.kwonly = parts.kwonly;
  fields.flags = parts.flags;
  fields.firstlineno = parts.firstlineno;
  fields.stacksize = parts.stacksize;
  fields.code = parts.code;
  fields.linetable = py::Ref::share(parts.linetable);
  fields.exceptiontable = py::Ref::share(parts.exceptiontable);
  fields.names = py::Ref::share(parts.names);
  fields.varnames = py::Ref::share(parts.varnames);
  fields.cellvars = py::Ref::share(parts.cellvars);
  fields.freevars = py::Ref::share(parts.freevars);
  fields.localsplus_names = py::Ref::share(parts.localsplus_names);
  fields.localsplus_kinds = py::Ref::share(parts.localsplus_kinds);
  fields.filename = py::Ref::share(parts.filename);
  fields.name = py::Ref::share(parts.name);
  fields.qualname = py::Ref::share(parts.qualname);
  return new_neutral(std::move(fields));
}

}  // namespace pellucid::bytecode
