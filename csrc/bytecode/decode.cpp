// From a code object, live or neutral, to `Code`: EXTENDED_ARG folded, inline caches dropped, jumps, exception rows and positions by
// instruction. On the capture path, so it makes no Python object per instruction.
#include <algorithm>

#include "bytecode/code.h"
#include "bytecode/decode_old.h"
#include "bytecode/exception_table.h"
#include "bytecode/location_table.h"
#include "bytecode/lowering/code_object.h"
#include "bytecode/tables.h"

namespace pellucid::bytecode {
namespace {

constexpr int kArgs = 0x04, kKwargs = 0x08;  // CO_VARARGS and CO_VARKEYWORDS

bool damaged(const char* what) {
  PyErr_Format(PyExc_ValueError, "damaged code object: %s", what);
  return false;
}

void share_all(PyObject* tuple, std::vector<py::Ref>* out) {
  const Py_ssize_t size = PyTuple_GET_SIZE(tuple);
  out->clear();
  out->reserve(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) out->push_back(py::Ref::share(PyTuple_GET_ITEM(tuple, i)));
}

bool decode_localsplus(const CodeParts& parts, Code& out) {
  share_all(parts.localsplus_names, &out.localsplus_names);
  const auto* kinds = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(parts.localsplus_kinds));
  const size_t size = out.localsplus_names.size();
  if (static_cast<size_t>(PyBytes_GET_SIZE(parts.localsplus_kinds)) != size) return damaged("co_localspluskinds");
  out.localsplus_kinds.resize(size);
  out.localsplus_hidden.clear();
  for (size_t i = 0; i < size; ++i) {
    const bool local = (kinds[i] & kFastLocal) != 0, cell = (kinds[i] & kFastCell) != 0;
    out.localsplus_kinds[i] = local ? cell ? LocalKind::kLocalCell : LocalKind::kLocal : cell ? LocalKind::kCell : LocalKind::kFree;
    if ((kinds[i] & kFastHidden) != 0) {
      out.localsplus_hidden.resize(size);
      out.localsplus_hidden[i] = true;
    }
  }
  return true;
}

// Fills `instructions`, and `index_of_unit`: the instruction that starts at a unit (at its first EXTENDED_ARG), -1 inside of one; one
// more entry than units, for the end. `args` of jumps still count units then.
bool decode_units(const Tables& tables, const uint8_t* bytes, size_t n_units, Code& out, std::vector<int32_t>* index_of_unit) {
  index_of_unit->assign(n_units + 1, -1);
  out.instructions.clear();
  out.instructions.reserve(n_units);
  size_t unit = 0;
  while (unit < n_units) {
    const size_t start = unit;
    uint32_t arg = 0;
    uint8_t extended = 0;
    const OpInfo* info = &tables.by_number[bytes[2 * unit]];
    arg = bytes[2 * unit + 1];
    while (info->op == Op::EXTENDED_ARG && info->known) {
      if (++unit >= n_units) return damaged("it ends in EXTENDED_ARG");
      ++extended;
      info = &tables.by_number[bytes[2 * unit]];
      arg = arg << 8 | bytes[2 * unit + 1];
    }
    if (!info->known) {
      PyErr_Format(PyExc_ValueError, "damaged code object: unknown opcode %d at offset %zu", bytes[2 * unit], 2 * unit);
      return false;
    }
    (*index_of_unit)[start] = static_cast<int32_t>(out.instructions.size());
    Instruction& made = out.instructions.emplace_back();
    made.op = info->op;
    made.arg = tables.version >= 311 || (info->flags & kHasArg) != 0 ? arg : 0;  // 3.10's compiler leaves values there that nobody reads
    made.offset = static_cast<int32_t>(2 * unit);
    made.extended = extended;
    unit += 1 + info->caches;
  }
  if (unit != n_units) return damaged("it ends in an inline cache");
  (*index_of_unit)[n_units] = static_cast<int32_t>(out.instructions.size());
  return true;
}

bool decode_jumps(const Tables& tables, const std::vector<int32_t>& index_of_unit, Code& out) {
  for (Instruction& instruction : out.instructions) {
    const OpInfo& info = tables.info(instruction.op);
    if ((info.flags & (kJumpRelative | kJumpAbsolute)) == 0) continue;
    const int64_t after = instruction.offset / 2 + 1 + info.caches;
    int64_t distance = instruction.arg;
    if (tables.version < 310) {  // counted in bytes
      if (distance % 2 != 0) return damaged("a jump into the middle of an instruction");
      distance /= 2;
    }
    const int64_t unit = (info.flags & kJumpAbsolute) != 0 ? distance : (info.flags & kBackward) != 0 ? after - distance : after + distance;
    if (unit < 0 || unit + 1 >= static_cast<int64_t>(index_of_unit.size()) || index_of_unit[static_cast<size_t>(unit)] < 0) {
      PyErr_Format(PyExc_ValueError, "damaged code object: the jump at offset %d leads to no instruction", instruction.offset);
      return false;
    }
    instruction.target = index_of_unit[static_cast<size_t>(unit)];
  }
  return true;
}

bool decode_rows(PyObject* table, const std::vector<int32_t>& index_of_unit, Code& out) {
  out.rows.clear();
  if (PyBytes_GET_SIZE(table) == 0) return true;
  std::vector<UnitRow> units;
  if (!read_exception_table(PyBytes_AS_STRING(table), static_cast<size_t>(PyBytes_GET_SIZE(table)), &units)) {
    return damaged("co_exceptiontable is cut off");
  }
  const auto index = [&](uint64_t unit) { return unit < index_of_unit.size() ? index_of_unit[static_cast<size_t>(unit)] : -1; };
  out.rows.reserve(units.size());
  for (const UnitRow& row : units) {
    const int32_t start = index(row.start), end = index(uint64_t{row.start} + row.length), target = index(row.target);
    if (start < 0 || end < 0 || target < 0) return damaged("co_exceptiontable names no instruction");
    out.rows.push_back({start, end, target, static_cast<int32_t>(row.depth), row.lasti});
  }
  return true;
}

// The position of an instruction is the one of its first unit.
void decode_positions(PyObject* table, int firstlineno, Code& out) {
  LocationReader reader(PyBytes_AS_STRING(table), static_cast<size_t>(PyBytes_GET_SIZE(table)), firstlineno);
  int end = 0;  // the first unit behind the entry read last
  Position position;
  for (Instruction& instruction : out.instructions) {
    const int unit = instruction.offset / 2 - instruction.extended;
    while (end <= unit) {
      int units;
      if (!reader.next(&units, &position)) return;  // as co_positions(): what a short table leaves out is unknown
      end += units;
    }
    instruction.position = position;
  }
}

}  // namespace

bool decode(PyObject* code, Code& out) {
  CodeParts parts;
  if (!read_code(code, &parts)) return false;
  const Tables* tables = bytecode::tables(parts.version);
  if (tables == nullptr) {
    PyErr_Format(PyExc_ValueError, "no opcode tables for CPython %d.%d", parts.version / 100, parts.version % 100);
    return false;
  }
  out.version = tables->version;
  out.argcount = parts.argcount;
  out.posonly = parts.posonly;
  out.kwonly = parts.kwonly;
  out.flags = parts.flags;
  out.firstlineno = parts.firstlineno;
  out.stacksize = parts.stacksize;
  out.filename = py::Ref::share(parts.filename);
  out.name = py::Ref::share(parts.name);
  out.qualname = py::Ref::share(parts.qualname);
  share_all(parts.consts, &out.consts);
  share_all(parts.names, &out.names);
  const bool old = tables->version < 311;
  if (!old && !decode_localsplus(parts, out)) return false;

  const auto* bytes = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(parts.code.get()));
  const size_t n_units = static_cast<size_t>(PyBytes_GET_SIZE(parts.code.get())) / 2;
  std::vector<int32_t> index_of_unit;
  if (!decode_units(*tables, bytes, n_units, out, &index_of_unit)) return false;
  if (!decode_jumps(*tables, index_of_unit, out)) return false;
  if (old) {
    decode_old_lines(reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(parts.linetable)),
                     static_cast<size_t>(PyBytes_GET_SIZE(parts.linetable)), out);
    return unify_localsplus(*tables, parts.varnames, parts.cellvars, parts.freevars, out) && decode_blocks(*tables, out);
  }
  if (!decode_rows(parts.exceptiontable, index_of_unit, out)) return false;
  decode_positions(parts.linetable, parts.firstlineno, out);
  return true;
}

int Code::nlocals() const {
  return static_cast<int>(std::count_if(localsplus_kinds.begin(), localsplus_kinds.end(),
                                        [](LocalKind kind) { return kind == LocalKind::kLocal || kind == LocalKind::kLocalCell; }));
}

int Code::n_arguments() const { return argcount + kwonly + ((flags & kArgs) != 0) + ((flags & kKwargs) != 0); }

}  // namespace pellucid::bytecode
