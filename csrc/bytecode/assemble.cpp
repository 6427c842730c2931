// From `Code` to a code object: directions of jumps, EXTENDED_ARG, inline caches, the two tables and the stack size. What came from a
// code object and was not changed is given back byte for byte. Knows nothing of what the instructions compute.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "bytecode/cfg.h"
#include "bytecode/code.h"
#include "bytecode/effects.h"
#include "bytecode/exception_table.h"
#include "bytecode/location_table.h"
#include "bytecode/lowering/code_object.h"
#include "bytecode/stack.h"
#include "bytecode/tables.h"

namespace pellucid::bytecode {
namespace {

// The opcode that does the same in the wanted direction; the same opcode where there is no other.
Op directed(Op op, bool backward) {
  switch (op) {
    case Op::JUMP_FORWARD:
    case Op::JUMP_BACKWARD:
      return backward ? Op::JUMP_BACKWARD : Op::JUMP_FORWARD;
    case Op::JUMP_BACKWARD_NO_INTERRUPT:
      return backward ? op : Op::JUMP_FORWARD;
    case Op::POP_JUMP_FORWARD_IF_TRUE:
    case Op::POP_JUMP_BACKWARD_IF_TRUE:
      return backward ? Op::POP_JUMP_BACKWARD_IF_TRUE : Op::POP_JUMP_FORWARD_IF_TRUE;
    case Op::POP_JUMP_FORWARD_IF_FALSE:
    case Op::POP_JUMP_BACKWARD_IF_FALSE:
      return backward ? Op::POP_JUMP_BACKWARD_IF_FALSE : Op::POP_JUMP_FORWARD_IF_FALSE;
    case Op::POP_JUMP_FORWARD_IF_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NONE:
      return backward ? Op::POP_JUMP_BACKWARD_IF_NONE : Op::POP_JUMP_FORWARD_IF_NONE;
    case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NOT_NONE:
      return backward ? Op::POP_JUMP_BACKWARD_IF_NOT_NONE : Op::POP_JUMP_FORWARD_IF_NOT_NONE;
    default:
      return op;
  }
}

int prefixes_for(uint32_t arg) { return arg > 0xffffff ? 3 : arg > 0xffff ? 2 : arg > 0xff ? 1 : 0; }

bool fail(const Code& code, size_t index, const char* what) {
  PyErr_Format(PyExc_ValueError, "cannot assemble instruction %zu (%s): %s", index, op_name(code.instructions[index].op), what);
  return false;
}

// The layout in code units, which begins with the original's EXTENDED_ARGs and only ever grows, so that it settles.
class Layout {
 public:
  Layout(const Code& code, const Tables& tables) : code_(code), tables_(tables) {}

  bool run() {
    const size_t n = code_.instructions.size();
    ops_.resize(n);
    args_.resize(n);
    prefixes_.resize(n);
    start_.resize(n + 1);
    for (size_t i = 0; i < n; ++i) {
      if (!choose(i)) return false;
    }
    for (bool grown = true; grown;) {
      place();
      grown = false;
      for (const int32_t i : jumps_) {
        const auto index = static_cast<size_t>(i);
        const uint32_t from = start_[index + 1], to = start_[static_cast<size_t>(code_.instructions[index].target)];
        args_[index] = (tables_.info(ops_[index]).flags & kBackward) != 0 ? from - to : to - from;
        if (prefixes_for(args_[index]) > prefixes_[index]) {
          prefixes_[index] = static_cast<uint8_t>(prefixes_for(args_[index]));
          grown = true;
        }
      }
    }
    return true;
  }

  std::string bytes() const {
    std::string out(2 * size_t{start_.back()}, '\0');  // inline caches stay zero
    const char extended = static_cast<char>(tables_.number[static_cast<int>(Op::EXTENDED_ARG)]);
    for (size_t i = 0; i < ops_.size(); ++i) {
      char* at = &out[2 * size_t{start_[i]}];
      for (int shift = prefixes_[i]; shift > 0; --shift) {
        *at++ = extended;
        *at++ = static_cast<char>(args_[i] >> (8 * shift));
      }
      *at++ = static_cast<char>(tables_.number[static_cast<int>(ops_[i])]);
      *at++ = static_cast<char>(args_[i]);
    }
    return out;
  }

  uint32_t start(size_t index) const { return start_[index]; }
  uint32_t units(size_t index) const { return start_[index + 1] - start_[index]; }

 private:
  bool choose(size_t index) {
    const Instruction& instruction = code_.instructions[index];
    Op op = instruction.op;
    if (static_cast<int>(op) >= kOpCount || !tables_.has(op)) return fail(code_, index, "this version has no such opcode");
    if (op == Op::EXTENDED_ARG || op == Op::CACHE) return fail(code_, index, "these are placed by the assembler");
    if (is_jump(tables_, op)) {
      if (instruction.target < 0 || instruction.target >= static_cast<int32_t>(code_.instructions.size())) {
        return fail(code_, index, "the jump's target is out of range");
      }
      const bool backward = instruction.target <= static_cast<int32_t>(index);
      op = directed(op, backward);
      const OpInfo& info = tables_.info(op);
      if ((info.flags & kJumpRelative) == 0) return fail(code_, index, "absolute jumps are not supported");
      if (((info.flags & kBackward) != 0) != backward) return fail(code_, index, "this version cannot jump backwards with it");
      jumps_.push_back(static_cast<int32_t>(index));
      args_[index] = 0;
    } else if (instruction.target >= 0) {
      return fail(code_, index, "it has a target, but is no jump");
    } else {
      args_[index] = instruction.arg;
    }
    ops_[index] = op;
    const int kept = instruction.offset >= 0 ? std::min<int>(instruction.extended, 3) : 0;
    prefixes_[index] = static_cast<uint8_t>(std::max(kept, prefixes_for(args_[index])));
    return true;
  }

  void place() {
    uint32_t unit = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      start_[i] = unit;
      unit += prefixes_[i] + 1u + tables_.info(ops_[i]).caches;
    }
    start_[ops_.size()] = unit;
  }

  const Code& code_;
  const Tables& tables_;
  std::vector<Op> ops_;
  std::vector<uint32_t> args_;
  std::vector<uint8_t> prefixes_;
  std::vector<uint32_t> start_;  // unit of the first EXTENDED_ARG; one more than instructions
  std::vector<int32_t> jumps_;
};

// Rows in the order CPython searches: by start, none overlapping another.
bool sorted_rows(const Code& code, std::vector<ExceptionRow>* rows) {
  const auto n = static_cast<int32_t>(code.instructions.size());
  for (const ExceptionRow& row : code.rows) {
    if (row.start < 0 || row.end > n || row.start > row.end || row.target < 0 || row.target >= n || row.depth < 0) {
      PyErr_Format(PyExc_ValueError, "cannot assemble: the exception row [%d, %d) -> %d is out of range", row.start, row.end, row.target);
      return false;
    }
    if (row.start < row.end) rows->push_back(row);
  }
  std::stable_sort(rows->begin(), rows->end(), [](const ExceptionRow& a, const ExceptionRow& b) { return a.start < b.start; });
  for (size_t i = 1; i < rows->size(); ++i) {
    if ((*rows)[i].start < (*rows)[i - 1].end) {
      PyErr_Format(PyExc_ValueError, "cannot assemble: two exception rows cover instruction %d", (*rows)[i].start);
      return false;
    }
  }
  return true;
}

py::Ref bytes_of(const std::string& text) {
  return py::Ref::steal(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

py::Ref tuple_of(const std::vector<py::Ref>& items) {
  py::Ref tuple = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  if (!tuple) return tuple;
  for (size_t i = 0; i < items.size(); ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), items[i].new_ref());
  return tuple;
}

py::Ref kinds_of(const Code& code) {
  std::string kinds;
  for (size_t i = 0; i < code.localsplus_kinds.size(); ++i) {
    unsigned char bits = 0;
    switch (code.localsplus_kinds[i]) {
      case LocalKind::kLocal:
        bits = kFastLocal;
        break;
      case LocalKind::kCell:
        bits = kFastCell;
        break;
      case LocalKind::kFree:
        bits = kFastFree;
        break;
      case LocalKind::kLocalCell:
        bits = kFastLocal | kFastCell;
        break;
    }
    if (!code.localsplus_hidden.empty() && code.localsplus_hidden[i]) bits |= kFastHidden;
    kinds.push_back(static_cast<char>(bits));
  }
  return bytes_of(kinds);
}

}  // namespace

PyObject* assemble(const Code& code) {
  const Tables* tables = bytecode::tables(code.version);
  if (tables == nullptr || code.version != running_version()) {
    PyErr_Format(PyExc_ValueError, "cannot assemble code of version %d in version %d", code.version, running_version());
    return nullptr;
  }
  if (code.version < 311) {
    PyErr_Format(PyExc_ValueError, "code objects can be assembled on CPython 3.11, 3.12 and 3.13; this is CPython %d.%d",
                 code.version / 100, code.version % 100);
    return nullptr;
  }
  if (code.instructions.empty()) {
    PyErr_SetString(PyExc_ValueError, "cannot assemble: there are no instructions");
    return nullptr;
  }
  if (code.localsplus_kinds.size() != code.localsplus_names.size() ||
      (!code.localsplus_hidden.empty() && code.localsplus_hidden.size() != code.localsplus_names.size())) {
    PyErr_SetString(PyExc_ValueError, "cannot assemble: the names and kinds of localsplus differ in number");
    return nullptr;
  }
  Layout layout(code, *tables);
  std::vector<ExceptionRow> rows;
  if (!layout.run() || !sorted_rows(code, &rows)) return nullptr;

  std::string exceptions;
  for (const ExceptionRow& row : rows) {
    const uint32_t start = layout.start(static_cast<size_t>(row.start));
    append_exception_row({start, layout.start(static_cast<size_t>(row.end)) - start, layout.start(static_cast<size_t>(row.target)),
                          static_cast<uint32_t>(row.depth), row.lasti},
                         &exceptions);
  }
  LocationWriter locations(code.firstlineno, /*merge=*/code.version >= 312);
  for (size_t i = 0; i < code.instructions.size(); ++i) locations.add(static_cast<int>(layout.units(i)), code.instructions[i].position);

  CodeParts parts;
  parts.code = bytes_of(layout.bytes());
  const py::Ref linetable = bytes_of(locations.finish());
  const py::Ref exceptiontable = bytes_of(exceptions);
  const py::Ref consts = tuple_of(code.consts);
  const py::Ref names = tuple_of(code.names);
  const py::Ref localsplus_names = tuple_of(code.localsplus_names);
  const py::Ref localsplus_kinds = kinds_of(code);
  if (!parts.code || !linetable || !exceptiontable || !consts || !names || !localsplus_names || !localsplus_kinds) return nullptr;
  parts.linetable = linetable.get();
  parts.exceptiontable = exceptiontable.get();
  parts.consts = consts.get();
  parts.names = names.get();
  parts.localsplus_names = localsplus_names.get();
  parts.localsplus_kinds = localsplus_kinds.get();
  parts.filename = code.filename.get();
  parts.name = code.name.get();
  parts.qualname = code.qualname.get();
  parts.argcount = code.argcount;
  parts.posonly = code.posonly;
  parts.kwonly = code.kwonly;
  parts.flags = code.flags;
  parts.firstlineno = code.firstlineno;
  parts.stacksize = std::max(code.stacksize, compute_stack_depths(code, build_cfg(code)).max);
  return new_code(parts);
}

}  // namespace pellucid::bytecode
