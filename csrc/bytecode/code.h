// The decoded form of a code object, the same for every CPython version: what the translator, the code generator and the
// assembler work on. Jump targets and exception rows are instruction indexes, EXTENDED_ARG is folded into `arg`, inline caches
// are gone. Knows nothing of frames or torch.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bytecode/op.h"
#include "py/ref.h"

namespace pellucid::bytecode {

struct Position {  // as in co_positions(); -1: not known. Columns are UTF-8 byte offsets, as CPython stores them
  int line = -1, end_line = -1, column = -1, end_column = -1;
};

struct Instruction {
  Op op = Op::NOP;
  uint32_t arg = 0;      // whole argument, EXTENDED_ARG folded in. For jumps: undefined after decode, `target` counts
  int32_t target = -1;   // jumps: index of the target instruction
  int32_t offset = -1;   // byte offset of the opcode itself (behind its EXTENDED_ARGs) in the original co_code; -1: made by us
  uint8_t extended = 0;  // EXTENDED_ARG prefixes the original had (kept so that assembling gives back identical bytes)
  Position position;
};

// Instructions [start, end) are covered; the handler runs with `depth` values kept on the stack and what the interpreter pushes above
// them: the exception, with `lasti` the offset of the raising instruction under it; up to 3.10 always six values.
struct ExceptionRow {
  int32_t start = 0, end = 0, target = 0, depth = 0;
  bool lasti = false;
};

enum class LocalKind : uint8_t { kLocal, kCell, kFree, kLocalCell };  // kLocalCell: an argument that is also a cell

struct Code {
  int version = 0;  // 308 to 313: which tables the opcodes follow
  std::vector<Instruction> instructions;
  std::vector<ExceptionRow> rows;
  std::vector<std::pair<int32_t, int32_t>> set_ups;  // up to 3.10: SETUP_FINALLY and its kin, each with its handler
  std::vector<py::Ref> consts;                       // co_consts
  std::vector<py::Ref> names;                        // co_names
  std::vector<py::Ref> localsplus_names;             // in the order of the frame's fast locals (3.11+: LOAD_FAST and LOAD_DEREF index it)
  std::vector<LocalKind> localsplus_kinds;
  std::vector<bool> localsplus_hidden;  // 3.12: variables of inlined comprehensions that locals() does not show; empty when there are none
  int argcount = 0, posonly = 0, kwonly = 0, flags = 0, firstlineno = 0, stacksize = 0;
  py::Ref filename, name, qualname;
  int nlocals() const;      // entries that are kLocal or kLocalCell
  int n_arguments() const;  // all parameters, *args and **kwargs included, in localsplus order
};

// Decodes a live code object or a NeutralCode of 3.8 to 3.13. Up to 3.10, exception rows stand for SETUP_FINALLY and its kin (which stay,
// without target), cells and free variables are numbered behind the locals, and CALL_FINALLY (3.8) both jumps and goes on, to where the
// END_FINALLY of what it calls comes back. On failure a Python exception is set and false returned.
bool decode(PyObject* code, Code& out);

// Assembles: lays out instructions, inserts EXTENDED_ARG and caches, writes the line and exception tables, computes the stack size
// (and raises `stacksize` to at least what is needed). Returns a new code object; on failure null with an exception set.
PyObject* assemble(const Code& code);

// Checks that stack depths agree at every merge, that no local is read which cannot be bound, that jumps and rows are in range.
// Returns an empty string, or what is wrong and where.
std::string validate(const Code& code);

// Which localsplus entries may be read before being overwritten, when execution is about to run instruction `index`.
std::vector<std::vector<bool>> live_locals(const Code& code);

// Stack depth before each instruction (-1: unreachable).
std::vector<int> stack_depths(const Code& code);

// "  12 LOAD_FAST 0 (x)" per line: what logs and golden tests hold.
std::string to_text(const Code& code);

}  // namespace pellucid::bytecode
