// 3.8 to 3.10 brought to the form that 3.11 has: see decode_old.h. Blocks are followed along the control flow with the stack depth, as
// the interpreter would do at run time. Knows nothing of what the instructions compute.
#include "bytecode/decode_old.h"

#include <algorithm>

#include "bytecode/effects.h"

namespace pellucid::bytecode {
namespace {

bool damaged(const char* what, int32_t offset) {
  PyErr_Format(PyExc_ValueError, "damaged code object: %s at offset %d", what, offset);
  return false;
}

// Blocks that are set up, each inside of the next one down.
struct SetUp {
  int32_t outer = -1;  // index, -1: none
  int32_t target = 0;
  int32_t depth = 0;
};

class BlockFinder {
 public:
  BlockFinder(const Tables& tables, Code& code) : tables_(tables), code_(code) {}

  bool run() {
    const size_t n = code_.instructions.size();
    block_at_.assign(n, kUnseen);
    depth_at_.assign(n, -1);
    reach(0, -1, 0);
    while (!work_.empty()) {
      const int32_t index = work_.back();
      work_.pop_back();
      if (!walk(index)) return false;
    }
    make_rows();
    for (size_t i = 0; i < n; ++i) {
      Instruction& instruction = code_.instructions[i];
      if (sets_up_block(instruction.op)) {
        code_.set_ups.emplace_back(static_cast<int32_t>(i), instruction.target);
        instruction.target = -1;
        instruction.arg = 0;
      }
    }
    return true;
  }

 private:
  static constexpr int32_t kUnseen = -2;

  void reach(int32_t index, int32_t block, int32_t depth) {
    const auto i = static_cast<size_t>(index);
    if (i >= block_at_.size() || block_at_[i] != kUnseen) return;
    block_at_[i] = block;
    depth_at_[i] = depth;
    work_.push_back(index);
  }

  bool walk(int32_t index) {
    for (;; ++index) {
      const auto i = static_cast<size_t>(index);
      const Instruction& instruction = code_.instructions[i];
      int32_t block = block_at_[i];
      const int32_t depth = depth_at_[i];
      const Op op = instruction.op;
      if (sets_up_block(op)) {
        const int32_t kept = op == Op::SETUP_ASYNC_WITH ? depth - 1 : depth;
        if (kept < 0) return damaged("a block below the stack", instruction.offset);
        if (instruction.target < 0) return damaged("a block without a handler", instruction.offset);
        set_ups_.push_back({block, instruction.target, kept});
        reach(instruction.target, block, kept + kOldHandlerValues);
        block = static_cast<int32_t>(set_ups_.size()) - 1;
      } else if (op == Op::POP_BLOCK) {
        if (block < 0) return damaged("POP_BLOCK without a block", instruction.offset);
        block = set_ups_[static_cast<size_t>(block)].outer;
      } else if (instruction.target >= 0 && op != Op::CALL_FINALLY) {
        reach(instruction.target, block, std::max(0, depth + stack_effect(tables_, op, instruction.arg, true)));
      }
      if (!falls_through(op) || i + 1 >= code_.instructions.size() || block_at_[i + 1] != kUnseen) return true;
      block_at_[i + 1] = block;
      depth_at_[i + 1] = std::max(0, depth + stack_effect(tables_, op, instruction.arg, false));
    }
  }

  void make_rows() {
    for (size_t i = 0; i < block_at_.size(); ++i) {
      // Neither of the two can raise; leaving them out lets a row begin and end where 3.11 has it.
      const bool covered = block_at_[i] >= 0 && code_.instructions[i].op != Op::POP_BLOCK && !sets_up_block(code_.instructions[i].op);
      if (!covered) continue;
      const SetUp& block = set_ups_[static_cast<size_t>(block_at_[i])];
      const auto index = static_cast<int32_t>(i);
      if (!code_.rows.empty()) {
        ExceptionRow& last = code_.rows.back();
        if (last.end == index && last.target == block.target && last.depth == block.depth) {
          last.end = index + 1;
          continue;
        }
      }
      code_.rows.push_back({index, index + 1, block.target, block.depth, false});
    }
  }

  const Tables& tables_;
  Code& code_;
  std::vector<SetUp> set_ups_;
  std::vector<int32_t> block_at_, depth_at_, work_;
};

}  // namespace

bool decode_blocks(const Tables& tables, Code& out) {
  out.rows.clear();
  out.set_ups.clear();
  return out.instructions.empty() || BlockFinder(tables, out).run();
}

bool unify_localsplus(const Tables& tables, PyObject* varnames, PyObject* cellvars, PyObject* freevars, Code& out) {
  out.localsplus_names.clear();
  out.localsplus_kinds.clear();
  out.localsplus_hidden.clear();
  const auto add = [&](PyObject* name, LocalKind kind) {
    out.localsplus_names.push_back(py::Ref::share(name));
    out.localsplus_kinds.push_back(kind);
  };
  const Py_ssize_t n_locals = PyTuple_GET_SIZE(varnames), n_cells = PyTuple_GET_SIZE(cellvars), n_frees = PyTuple_GET_SIZE(freevars);
  for (Py_ssize_t i = 0; i < n_locals; ++i) add(PyTuple_GET_ITEM(varnames, i), LocalKind::kLocal);
  std::vector<uint32_t> slots;  // by the number that LOAD_DEREF has
  const Py_ssize_t n_arguments = std::min<Py_ssize_t>(out.n_arguments(), n_locals);
  for (Py_ssize_t c = 0; c < n_cells; ++c) {
    PyObject* name = PyTuple_GET_ITEM(cellvars, c);
    size_t slot = out.localsplus_names.size();
    for (Py_ssize_t a = 0; a < n_arguments; ++a) {
      if (PyUnicode_Compare(PyTuple_GET_ITEM(varnames, a), name) == 0) slot = static_cast<size_t>(a);
    }
    if (slot == out.localsplus_names.size()) {
      add(name, LocalKind::kCell);
    } else {
      out.localsplus_kinds[slot] = LocalKind::kLocalCell;
    }
    slots.push_back(static_cast<uint32_t>(slot));
  }
  for (Py_ssize_t f = 0; f < n_frees; ++f) {
    slots.push_back(static_cast<uint32_t>(out.localsplus_names.size()));
    add(PyTuple_GET_ITEM(freevars, f), LocalKind::kFree);
  }
  for (Instruction& instruction : out.instructions) {
    if ((tables.info(instruction.op).flags & kHasFree) == 0) continue;
    if (instruction.arg >= slots.size()) return damaged("a cell that does not exist", instruction.offset);
    instruction.arg = slots[instruction.arg];
  }
  return true;
}

void decode_old_lines(const uint8_t* table, size_t size, Code& out) {
  size_t at = 0;
  int line = out.firstlineno, shown = out.firstlineno;
  int64_t end = 0;  // bytes of code that the entries read so far cover
  bool more = true;
  for (Instruction& instruction : out.instructions) {
    const int64_t offset = instruction.offset - 2 * instruction.extended;
    if (out.version == 310) {
      while (end <= offset && more) {
        more = at + 1 < size;
        if (!more) break;
        end += table[at];
        const int delta = static_cast<int8_t>(table[at + 1]);
        if (delta != -128) line += delta;
        shown = delta == -128 ? -1 : line;
        at += 2;
      }
      if (!more && end <= offset) return;
    } else {
      while (at + 1 < size && end + table[at] <= offset) {
        end += table[at];
        line += static_cast<int8_t>(table[at + 1]);
        at += 2;
      }
      shown = line;
    }
    instruction.position.line = instruction.position.end_line = shown;
  }
}

}  // namespace pellucid::bytecode
