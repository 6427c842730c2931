// `pellucid._bytecode`: decoded code objects as Python sees them, for tests and for people. The capture path uses bytecode/ directly;
// only here does an instruction become a Python object.
#include <memory>
#include <new>
#include <stdexcept>

#include "bytecode/cfg.h"
#include "bytecode/code.h"
#include "bytecode/effects.h"
#include "bytecode/tables.h"
#include "module/bindings.h"

namespace pellucid::module {
namespace {

using bytecode::Code;
using bytecode::ExceptionRow;
using bytecode::Instruction;
using bytecode::LocalKind;

PyTypeObject* instruction_type = nullptr;
PyTypeObject* row_type = nullptr;
PyTypeObject* code_type = nullptr;

struct CodeObject {
  PyObject_HEAD Code* code;
};

Code& code_of(PyObject* self) { return *reinterpret_cast<CodeObject*>(self)->code; }

// No C++ exception crosses into the interpreter: out of memory and failed CHECKs become Python's.
template <class Function>
auto guarded(Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  if constexpr (std::is_pointer_v<decltype(function())>) {
    return nullptr;
  } else {
    return -1;
  }
}

PyObject* int_or_none(int value) {
  if (value < 0) Py_RETURN_NONE;
  return PyLong_FromLong(value);
}

// -1 for None; false with an exception set for anything that is no number of 32 bits.
bool get_int(PyObject* object, int* value) {
  *value = -1;
  if (object == Py_None) return true;
  const long number = PyLong_AsLong(object);
  if (number == -1 && PyErr_Occurred()) return false;
  if (number != static_cast<int>(number)) {
    PyErr_SetString(PyExc_OverflowError, "number out of range");
    return false;
  }
  *value = static_cast<int>(number);
  return true;
}

template <class T, class Make>
PyObject* list_from(const std::vector<T>& items, Make make) {
  py::Ref list = py::Ref::steal(PyList_New(static_cast<Py_ssize_t>(items.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < items.size(); ++i) {
    PyObject* item = make(items[i]);
    if (item == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

// Reads a sequence item by item into `out`; on failure false with an exception set.
template <class T, class Read>
bool vector_from(PyObject* sequence, std::vector<T>* out, Read read) {
  if (sequence == nullptr) {
    PyErr_SetString(PyExc_TypeError, "this attribute cannot be deleted");
    return false;
  }
  const py::Ref tuple = py::Ref::steal(PySequence_Tuple(sequence));
  if (!tuple) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
    T item;
    if (!read(PyTuple_GET_ITEM(tuple.get(), i), &item)) return false;
    out->push_back(std::move(item));
  }
  return true;
}

// Fills a struct sequence, which it takes over, from new references; null items mean that an exception is set.
PyObject* fill(PyObject* sequence, std::initializer_list<PyObject*> items) {
  bool good = sequence != nullptr;
  Py_ssize_t i = 0;
  for (PyObject* item : items) {
    good &= item != nullptr;
    if (sequence != nullptr) {
      PyStructSequence_SetItem(sequence, i++, item);
    } else {
      Py_XDECREF(item);
    }
  }
  if (!good) Py_CLEAR(sequence);
  return sequence;
}

PyObject* from_instruction(const Instruction& in) {
  return fill(PyStructSequence_New(instruction_type),
              {PyUnicode_InternFromString(bytecode::op_name(in.op)), PyLong_FromUnsignedLong(in.arg), int_or_none(in.target),
               int_or_none(in.offset), PyLong_FromLong(in.extended), int_or_none(in.position.line), int_or_none(in.position.end_line),
               int_or_none(in.position.column), int_or_none(in.position.end_column)});
}

bool to_instruction(PyObject* object, Instruction* out) {
  const py::Ref fields = py::Ref::steal(PySequence_Tuple(object));
  if (!fields) return false;
  if (PyTuple_GET_SIZE(fields.get()) != 9) {
    PyErr_SetString(PyExc_ValueError, "an instruction has nine fields");
    return false;
  }
  const auto field = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(fields.get(), i); };
  const char* name = PyUnicode_AsUTF8(field(0));
  if (name == nullptr) return false;
  if (!bytecode::op_from_name(name, &out->op)) {
    PyErr_Format(PyExc_ValueError, "no opcode is called %s", name);
    return false;
  }
  const unsigned long arg = PyLong_AsUnsignedLong(field(1));
  if (arg == static_cast<unsigned long>(-1) && PyErr_Occurred()) return false;
  if (arg != static_cast<uint32_t>(arg)) {
    PyErr_SetString(PyExc_OverflowError, "an argument has 32 bits");
    return false;
  }
  out->arg = static_cast<uint32_t>(arg);
  int extended;
  if (!get_int(field(2), &out->target) || !get_int(field(3), &out->offset) || !get_int(field(4), &extended)) return false;
  if (extended < 0 || extended > 3) {
    PyErr_SetString(PyExc_ValueError, "an instruction has 0 to 3 EXTENDED_ARGs");
    return false;
  }
  out->extended = static_cast<uint8_t>(extended);
  return get_int(field(5), &out->position.line) && get_int(field(6), &out->position.end_line) && get_int(field(7), &out->position.column) &&
         get_int(field(8), &out->position.end_column);
}

PyObject* from_row(const ExceptionRow& row) {
  return fill(PyStructSequence_New(row_type), {PyLong_FromLong(row.start), PyLong_FromLong(row.end), PyLong_FromLong(row.target),
                                               PyLong_FromLong(row.depth), PyBool_FromLong(row.lasti)});
}

bool to_row(PyObject* object, ExceptionRow* out) {
  const py::Ref fields = py::Ref::steal(PySequence_Tuple(object));
  if (!fields) return false;
  int lasti = 0;
  if (!PyArg_ParseTuple(fields.get(), "iiiip;an exception row is (start, end, target, depth, lasti)", &out->start, &out->end, &out->target,
                        &out->depth, &lasti)) {
    return false;
  }
  out->lasti = lasti != 0;
  return true;
}

constexpr const char* kKindNames[] = {"local", "cell", "free", "local+cell"};  // in the order of LocalKind

PyObject* new_code_object(std::unique_ptr<Code> code) {
  PyObject* self = code_type->tp_alloc(code_type, 0);
  if (self != nullptr) reinterpret_cast<CodeObject*>(self)->code = code.release();
  return self;
}

PyObject* decode_to_object(PyObject* code) {
  return guarded([&]() -> PyObject* {
    auto decoded = std::make_unique<Code>();
    if (!bytecode::decode(code, *decoded)) return nullptr;
    return new_code_object(std::move(decoded));
  });
}

PyObject* code_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  PyObject* code;
  if (kwargs != nullptr && PyDict_Size(kwargs) > 0) {
    PyErr_SetString(PyExc_TypeError, "Code() takes no keyword arguments");
    return nullptr;
  }
  if (!PyArg_ParseTuple(args, "O", &code)) return nullptr;
  return decode_to_object(code);
}

void code_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<CodeObject*>(self)->code;
  type->tp_free(self);
  Py_DECREF(type);
}

// Getters and setters. A setter builds the new value before it replaces the old one.

PyObject* get_instructions(PyObject* self, void*) {
  return guarded([&] { return list_from(code_of(self).instructions, from_instruction); });
}

int set_instructions(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    std::vector<Instruction> made;
    if (!vector_from(value, &made, to_instruction)) return -1;
    code_of(self).instructions = std::move(made);
    return 0;
  });
}

PyObject* get_rows(PyObject* self, void*) {
  return guarded([&] { return list_from(code_of(self).rows, from_row); });
}

int set_rows(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    std::vector<ExceptionRow> made;
    if (!vector_from(value, &made, to_row)) return -1;
    code_of(self).rows = std::move(made);
    return 0;
  });
}

template <std::vector<py::Ref> Code::*kMember>
PyObject* get_objects(PyObject* self, void*) {
  return guarded([&] { return list_from(code_of(self).*kMember, [](const py::Ref& item) { return item.new_ref(); }); });
}

template <std::vector<py::Ref> Code::*kMember, bool kNames>
int set_objects(PyObject* self, PyObject* value, void*) {
  return guarded([&] {
    std::vector<py::Ref> made;
    const auto share = [](PyObject* item, py::Ref* out) {
      if (kNames && !PyUnicode_Check(item)) {
        PyErr_Format(PyExc_TypeError, "a name is a str, not %.200s", Py_TYPE(item)->tp_name);
        return false;
      }
      *out = py::Ref::share(item);
      return true;
    };
    if (!vector_from(value, &made, share)) return -1;
    std::swap(code_of(self).*kMember, made);  // the old ones are let go when nothing of ours is half done
    return 0;
  });
}

PyObject* get_kinds(PyObject* self, void*) {
  return guarded([&] {
    return list_from(code_of(self).localsplus_kinds,
                     [](LocalKind kind) { return PyUnicode_InternFromString(kKindNames[static_cast<int>(kind)]); });
  });
}

template <int Code::*kMember>
PyObject* get_number(PyObject* self, void*) {
  return PyLong_FromLong(code_of(self).*kMember);
}

template <int Code::*kMember>
int set_number(PyObject* self, PyObject* value, void*) {
  int number;
  if (value == nullptr || value == Py_None) {
    PyErr_SetString(PyExc_TypeError, "expected an int");
    return -1;
  }
  if (!get_int(value, &number)) return -1;
  code_of(self).*kMember = number;
  return 0;
}

template <py::Ref Code::*kMember>
PyObject* get_object(PyObject* self, void*) {
  return (code_of(self).*kMember).new_ref();
}

PyGetSetDef code_getset[] = {
    {"version", get_number<&Code::version>, nullptr, "the CPython version, 311 for 3.11", nullptr},
    {"instructions", get_instructions, set_instructions, "a new list of Instruction; assign a list to change them", nullptr},
    {"rows", get_rows, set_rows, "a new list of ExceptionRow; assign a list to change them", nullptr},
    {"consts", get_objects<&Code::consts>, set_objects<&Code::consts, false>, "co_consts as a new list", nullptr},
    {"names", get_objects<&Code::names>, set_objects<&Code::names, true>, "co_names as a new list", nullptr},
    {"localsplus_names", get_objects<&Code::localsplus_names>, nullptr, "the names of the frame's slots", nullptr},
    {"localsplus_kinds", get_kinds, nullptr, "'local', 'cell', 'free' or 'local+cell' for each slot", nullptr},
    {"argcount", get_number<&Code::argcount>, nullptr, "co_argcount", nullptr},
    {"posonly", get_number<&Code::posonly>, nullptr, "co_posonlyargcount", nullptr},
    {"kwonly", get_number<&Code::kwonly>, nullptr, "co_kwonlyargcount", nullptr},
    {"flags", get_number<&Code::flags>, set_number<&Code::flags>, "co_flags", nullptr},
    {"firstlineno", get_number<&Code::firstlineno>, set_number<&Code::firstlineno>, "co_firstlineno", nullptr},
    {"stacksize", get_number<&Code::stacksize>, set_number<&Code::stacksize>, "co_stacksize; assembling raises it where too small",
     nullptr},
    {"filename", get_object<&Code::filename>, nullptr, "co_filename", nullptr},
    {"name", get_object<&Code::name>, nullptr, "co_name", nullptr},
    {"qualname", get_object<&Code::qualname>, nullptr, "co_qualname", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot code_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(code_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(code_dealloc)},
    {Py_tp_getset, code_getset},
    {Py_tp_doc, const_cast<char*>("A decoded code object: jump targets and exception rows by instruction, no EXTENDED_ARG, no caches.")},
    {0, nullptr},
};

PyType_Spec code_spec = {"pellucid._bytecode.Code", sizeof(CodeObject), 0, Py_TPFLAGS_DEFAULT, code_slots};

// Module functions.

Code* expect_code(PyObject* object) {
  if (Py_TYPE(object) == code_type) return &code_of(object);
  PyErr_Format(PyExc_TypeError, "expected a decoded Code, not %.200s", Py_TYPE(object)->tp_name);
  return nullptr;
}

// For functions that take instructions on trust: what validate() says is raised.
Code* expect_valid_code(PyObject* object) {
  Code* code = expect_code(object);
  if (code == nullptr) return nullptr;
  const std::string problem = bytecode::validate(*code);
  if (problem.empty()) return code;
  PyErr_SetString(PyExc_ValueError, problem.c_str());
  return nullptr;
}

PyObject* text_object(const std::string& text) { return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())); }

PyObject* py_decode(PyObject*, PyObject* code) { return decode_to_object(code); }

PyObject* py_assemble(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const Code* code = expect_code(object);
    return code == nullptr ? nullptr : bytecode::assemble(*code);
  });
}

PyObject* py_roundtrip(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    Code code;
    return bytecode::decode(object, code) ? bytecode::assemble(code) : nullptr;
  });
}

PyObject* py_validate(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const Code* code = expect_code(object);
    return code == nullptr ? nullptr : text_object(bytecode::validate(*code));
  });
}

PyObject* py_to_text(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const Code* code = expect_code(object);
    return code == nullptr ? nullptr : text_object(bytecode::to_text(*code));
  });
}

PyObject* py_live_locals(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const Code* code = expect_valid_code(object);
    if (code == nullptr) return nullptr;
    return list_from(bytecode::live_locals(*code), [code](const std::vector<bool>& live) -> PyObject* {
      py::Ref names = py::Ref::steal(PyList_New(0));
      for (size_t slot = 0; names && slot < live.size(); ++slot) {
        if (live[slot] && PyList_Append(names.get(), code->localsplus_names[slot].get()) < 0) return nullptr;
      }
      return names.release();
    });
  });
}

PyObject* py_stack_depths(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const Code* code = expect_valid_code(object);
    if (code == nullptr) return nullptr;
    return list_from(bytecode::stack_depths(*code), [](int depth) { return int_or_none(depth); });
  });
}

PyObject* py_blocks(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const Code* code = expect_valid_code(object);
    if (code == nullptr) return nullptr;
    return list_from(bytecode::build_cfg(*code).blocks, [](const bytecode::Block& block) {
      return Py_BuildValue("(iiNNN)", block.start, block.end, int_or_none(block.next), int_or_none(block.jump), int_or_none(block.handler));
    });
  });
}

const bytecode::Tables* expect_tables(int version) {
  const bytecode::Tables* tables = bytecode::tables(version);
  if (tables == nullptr) PyErr_Format(PyExc_ValueError, "no opcode tables for version %d: there are 308 to 313", version);
  return tables;
}

constexpr struct {
  bytecode::OpFlag flag;
  const char* name;
} kFlagNames[] = {
    {bytecode::kHasArg, "arg"},     {bytecode::kJumpRelative, "jrel"},  {bytecode::kJumpAbsolute, "jabs"},
    {bytecode::kHasConst, "const"}, {bytecode::kHasName, "name"},       {bytecode::kHasLocal, "local"},
    {bytecode::kHasFree, "free"},   {bytecode::kHasCompare, "compare"}, {bytecode::kBackward, "backward"},
};

PyObject* flag_names(int flags) {
  py::Ref names = py::Ref::steal(PyList_New(0));
  for (const auto& [flag, text] : kFlagNames) {
    if (!names || (flags & flag) == 0) continue;
    const py::Ref name = py::Ref::steal(PyUnicode_InternFromString(text));
    if (!name || PyList_Append(names.get(), name.get()) < 0) return nullptr;
  }
  return names.release();
}

PyObject* py_opcodes(PyObject*, PyObject* version) {
  int number;
  if (!get_int(version, &number)) return nullptr;
  const bytecode::Tables* tables = expect_tables(number);
  py::Ref result = py::Ref::steal(tables == nullptr ? nullptr : PyDict_New());
  if (!result) return nullptr;
  for (int opcode = 0; opcode < 256; ++opcode) {
    const bytecode::OpInfo& info = tables->by_number[static_cast<size_t>(opcode)];
    if (!info.known) continue;
    const py::Ref row = py::Ref::steal(Py_BuildValue("(iiN)", opcode, info.caches, flag_names(info.flags)));
    if (!row || PyDict_SetItemString(result.get(), bytecode::op_name(info.op), row.get()) < 0) return nullptr;
  }
  return result.release();
}

PyObject* py_stack_effect(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int version, jump;
    unsigned int arg;
    const char* name;
    if (!PyArg_ParseTuple(args, "isIp", &version, &name, &arg, &jump)) return nullptr;
    const bytecode::Tables* tables = expect_tables(version);
    if (tables == nullptr) return nullptr;
    bytecode::Op op;
    if (!bytecode::op_from_name(name, &op) || !tables->has(op)) {
      PyErr_Format(PyExc_ValueError, "version %d has no opcode %s", version, name);
      return nullptr;
    }
    return PyLong_FromLong(bytecode::stack_effect(*tables, op, arg, jump != 0));
  });
}

PyMethodDef functions[] = {
    {"decode", py_decode, METH_O, "decode(code, /)\n--\n\nDecodes a code object or a NeutralCode of 3.8 to 3.13 to a Code."},
    {"assemble", py_assemble, METH_O, "assemble(code, /)\n--\n\nA new code object from a Code."},
    {"roundtrip", py_roundtrip, METH_O, "roundtrip(code, /)\n--\n\nDecodes and assembles: a new, equal code object."},
    {"validate", py_validate, METH_O, "validate(code, /)\n--\n\nWhat is wrong with a Code, or an empty string."},
    {"to_text", py_to_text, METH_O, "to_text(code, /)\n--\n\nA Code as text, one line per instruction."},
    {"live_locals", py_live_locals, METH_O, "live_locals(code, /)\n--\n\nFor each instruction the names that may still be read."},
    {"stack_depths", py_stack_depths, METH_O, "stack_depths(code, /)\n--\n\nThe stack depth before each instruction; None: unreachable."},
    {"blocks", py_blocks, METH_O,
     "blocks(code, /)\n--\n\nThe basic blocks: (start, end, next, jump, handler), the last three as block numbers or None."},
    {"opcodes", py_opcodes, METH_O, "opcodes(version, /)\n--\n\nThe opcode table of 308 to 313: {name: (number, caches, flags)}."},
    {"stack_effect", py_stack_effect, METH_VARARGS,
     "stack_effect(version, name, arg, jump, /)\n--\n\nHow many values the stack gains when falling through or jumping."},
    {nullptr, nullptr, 0, nullptr},
};

PyStructSequence_Field instruction_fields[] = {
    {"op", "name of the opcode"},
    {"arg", "the whole argument; of no meaning for jumps"},
    {"target", "jumps: index of the target instruction"},
    {"offset", "byte offset in the code object it came from"},
    {"extended", "EXTENDED_ARGs it had there"},
    {"line", "first line"},
    {"end_line", "last line"},
    {"column", "first column, in UTF-8 bytes"},
    {"end_column", "column behind the last one, in UTF-8 bytes"},
    {nullptr, nullptr},
};
PyStructSequence_Desc instruction_desc = {"pellucid._bytecode.Instruction", "One decoded instruction.", instruction_fields, 9};

PyStructSequence_Field row_fields[] = {
    {"start", "first instruction covered"},
    {"end", "the instruction behind the last one covered"},
    {"target", "the handler's first instruction"},
    {"depth", "stack values kept for the handler"},
    {"lasti", "whether the raising instruction's offset is pushed"},
    {nullptr, nullptr},
};
PyStructSequence_Desc row_desc = {"pellucid._bytecode.ExceptionRow", "One row of the exception table.", row_fields, 5};

}  // namespace

bool bind_code(PyObject* module) {
  if (instruction_type == nullptr) instruction_type = PyStructSequence_NewType(&instruction_desc);
  if (row_type == nullptr) row_type = PyStructSequence_NewType(&row_desc);
  if (code_type == nullptr) code_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&code_spec));
  const auto add_type = [&](const char* name, PyTypeObject* type) {
    Py_XINCREF(type);
    return add_object(module, name, reinterpret_cast<PyObject*>(type));
  };
  return add_type("Instruction", instruction_type) && add_type("ExceptionRow", row_type) && add_type("Code", code_type) &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace pellucid::module
