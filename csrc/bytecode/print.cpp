// The text form of `Code`: one line per instruction, then the exception rows. Stable across processes: reprs of constants that
// carry addresses are cut to their type. Knows nothing of what instructions do.
#include "bytecode/code.h"
#include "bytecode/effects.h"
#include "bytecode/neutral_code.h"
#include "bytecode/tables.h"

namespace pellucid::bytecode {
namespace {

constexpr size_t kMaxConstant = 60;

std::string text_of(PyObject* str) {
  const char* text = str == nullptr ? nullptr : PyUnicode_AsUTF8(str);
  if (text == nullptr) {  // lone surrogates, say
    PyErr_Clear();
    return "?";
  }
  return text;
}

bool has_plain_repr(PyObject* object) {
  if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      if (!has_plain_repr(PyTuple_GET_ITEM(object, i))) return false;
    }
    return true;
  }
  return object == Py_None || object == Py_Ellipsis || PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyComplex_CheckExact(object) || PyUnicode_CheckExact(object) || PyBytes_CheckExact(object);
}

std::string constant(PyObject* object) {
  if (is_code(object)) {
    const py::Ref name = py::Ref::steal(PyObject_GetAttrString(object, "co_name"));
    if (!name) PyErr_Clear();
    return "<code " + text_of(name.get()) + ">";
  }
  if (!has_plain_repr(object)) return std::string("<") + Py_TYPE(object)->tp_name + ">";
  const py::Ref repr = py::Ref::steal(PyObject_Repr(object));
  if (!repr) {  // an int too long for its decimal form, say
    PyErr_Clear();
    return std::string("<") + Py_TYPE(object)->tp_name + ">";
  }
  std::string text = text_of(repr.get());
  if (text.size() > kMaxConstant) {
    size_t cut = kMaxConstant;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // not inside a character
    text = text.substr(0, cut) + "...";
  }
  return text;
}

std::string item(const std::vector<py::Ref>& items, size_t index, std::string (*show)(PyObject*)) {
  return index < items.size() ? show(items[index].get()) : "out of range";
}

std::string meaning(const Code& code, const OpInfo& info, const Instruction& instruction) {
  const uint32_t arg = instruction.arg;
  if ((info.flags & kHasConst) != 0) return item(code.consts, arg, constant);
  if ((info.flags & kHasName) != 0) {
    int shift = 0;  // the low bits of these say what else is pushed
    if (info.op == Op::LOAD_GLOBAL && code.version >= 311) shift = 1;
    if (info.op == Op::LOAD_ATTR && code.version >= 312) shift = 1;
    if (info.op == Op::LOAD_SUPER_ATTR) shift = 2;
    std::string text = item(code.names, arg >> shift, text_of);
    if (info.op == Op::LOAD_GLOBAL && shift > 0 && (arg & 1) != 0) text = "NULL + " + text;
    if (info.op == Op::LOAD_ATTR && shift > 0 && (arg & 1) != 0) text = "NULL|self + " + text;
    return text;
  }
  if (info.op == Op::LOAD_FAST_LOAD_FAST || info.op == Op::STORE_FAST_LOAD_FAST || info.op == Op::STORE_FAST_STORE_FAST) {
    return item(code.localsplus_names, arg >> 4, text_of) + ", " + item(code.localsplus_names, arg & 15, text_of);
  }
  if ((info.flags & (kHasLocal | kHasFree)) != 0) return item(code.localsplus_names, arg, text_of);
  return "";
}

}  // namespace

std::string to_text(const Code& code) {
  const Tables* tables = bytecode::tables(code.version);
  std::string out;
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    const Instruction& instruction = code.instructions[i];
    const std::string index = std::to_string(i);
    out.append(index.size() < 4 ? 4 - index.size() : 0, ' ');
    out += index + " " + op_name(instruction.op);
    if (tables == nullptr || !tables->has(instruction.op)) {
      out += " (not an opcode of this version)\n";
      continue;
    }
    const OpInfo& info = tables->info(instruction.op);
    if (instruction.target >= 0) {
      out += " to " + std::to_string(instruction.target);
    } else if ((info.flags & kHasArg) != 0) {
      out += " " + std::to_string(instruction.arg);
      const std::string text = meaning(code, info, instruction);
      if (!text.empty()) out += " (" + text + ")";
    }
    out += "\n";
  }
  for (const ExceptionRow& row : code.rows) {
    out += "  except [" + std::to_string(row.start) + ", " + std::to_string(row.end) + ") to " + std::to_string(row.target) + " depth " +
           std::to_string(row.depth) + (row.lasti ? " lasti" : "") + "\n";
  }
  return out;
}

}  // namespace pellucid::bytecode
