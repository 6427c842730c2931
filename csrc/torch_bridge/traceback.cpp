// Each entry gets a frame that never ran, over an empty code object with the file, the name and one location: the operator's. Python's
// own traceback printing then finds the source line and marks the columns.
#include "torch_bridge/traceback.h"

#include <frameobject.h>

#include <string>

#include "torch_bridge/interned.h"

namespace pellucid::bridge {
namespace {

using py::Ref;
using translate::StackEntry;

// The varints of a location table (CPython, Objects/locations.md): six bits each, bit 6 set when more follow.
void append_varint(std::string* out, unsigned value) {
  while (value >= 64) {
    out->push_back(static_cast<char>(0x40 | (value & 0x3f)));
    value >>= 6;
  }
  out->push_back(static_cast<char>(value));
}

// One entry in the long form (code 14), covering the code units of an empty code object: line delta 0 from co_firstlineno.
std::string location_table(const StackEntry& entry, Py_ssize_t units) {
  std::string out;
  const bool has_columns = entry.column >= 0 && entry.end_column >= 0 && entry.end_line >= entry.line;
  out.push_back(static_cast<char>(0x80 | ((has_columns ? 14 : 13) << 3) | (units - 1)));
  append_varint(&out, 0);
  if (has_columns) {
    append_varint(&out, static_cast<unsigned>(entry.end_line - entry.line));
    append_varint(&out, static_cast<unsigned>(entry.column + 1));
    append_varint(&out, static_cast<unsigned>(entry.end_column + 1));
  }
  return out;
}

struct Names {  // borrowed
  PyObject *filename, *name, *qualname;
};

Ref location_code(const StackEntry& entry, const Names& names) {
  Ref empty = Ref::steal(reinterpret_cast<PyObject*>(PyCode_NewEmpty("", "", entry.line)));
  if (!empty) return Ref();
  Ref bytes = Ref::steal(PyObject_GetAttrString(empty.get(), "co_code"));
  Ref replace = Ref::steal(PyObject_GetAttrString(empty.get(), "replace"));
  if (!bytes || !replace) return Ref();
  const Py_ssize_t units = PyBytes_GET_SIZE(bytes.get()) / 2;
  const std::string table = location_table(entry, units < 8 ? units : 8);
  Ref no_args = Ref::steal(PyTuple_New(0));
  Ref kwargs = Ref::steal(Py_BuildValue("{sOsOsOsy#}", "co_filename", names.filename, "co_name", names.name, "co_qualname", names.qualname,
                                        "co_linetable", table.data(), static_cast<Py_ssize_t>(table.size())));
  if (!no_args || !kwargs) return Ref();
  return Ref::steal(PyObject_Call(replace.get(), no_args.get(), kwargs.get()));
}

// A traceback object in front of `next` (or None).
Ref make_entry(const StackEntry& entry, const Names& names, PyObject* next, const Ref& globals) {
  Ref code = location_code(entry, names);
  if (!code) return Ref();
  Ref frame = Ref::steal(
      reinterpret_cast<PyObject*>(PyFrame_New(PyThreadState_Get(), reinterpret_cast<PyCodeObject*>(code.get()), globals.get(), nullptr)));
  if (!frame) return Ref();
  return Ref::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyTraceBack_Type), "OOii", next, frame.get(), 0, entry.line));
}

}  // namespace

void add_user_stack(const std::vector<StackEntry>& stacks, int32_t index) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  Ref chain = Ref::steal(traceback);
  Ref globals = Ref::steal(PyDict_New());
  size_t seen = 0;
  for (int32_t at = index; globals && at >= 0 && static_cast<size_t>(at) < stacks.size() && seen++ < stacks.size();
       at = stacks[at].parent) {
    if (!stacks[at].code || !PyCode_Check(stacks[at].code.get())) break;
    auto* code = reinterpret_cast<PyCodeObject*>(stacks[at].code.get());
    const Names names = {code->co_filename, code->co_name, code->co_qualname};
    Ref entry = make_entry(stacks[at], names, chain ? chain.get() : Py_None, globals);
    if (!entry) break;
    chain = std::move(entry);
  }
  PyErr_Clear();  // of our own making: the operator's exception is what counts
  PyErr_Restore(type, value, chain.release());
}

Ref make_traceback(PyObject* filename, PyObject* name, int line, PyObject* next) {
  Ref globals = Ref::steal(PyDict_New());
  if (!globals) return Ref();
  StackEntry entry;
  entry.line = line;
  return make_entry(entry, {filename, name, name}, next, globals);
}

}  // namespace pellucid::bridge
