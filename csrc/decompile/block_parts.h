// What the files of the block form share: names, literals, values on the symbolic stack, scopes and printed lines. For block_*.cpp only.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bytecode/cfg.h"
#include "bytecode/code.h"
#include "decompile/decompile.h"

namespace pellucid::decompile::block {

// Code that the block form has no text for. Never leaves block_form().
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class PythonError : public std::exception {};  // an exception is set

std::string utf8(PyObject* text);             // with surrogates as they come
bool is_plain_name(const std::string& name);  // an identifier that is no keyword
std::string quoted(PyObject* text);           // a str or bytes as an ASCII literal

struct Line {
  int indent = 0;
  std::string text;
};

// What all code objects of one source share.
class Shared {
 public:
  explicit Shared(PyObject* root);

  // A name that no code object uses: `_` or a longer prefix, then `stem`.
  std::string temporary(const std::string& stem) const { return prefix_ + stem; }
  std::string helper(const char* name) { return helpers_ + "." + name; }
  const std::string& helpers() const { return helpers_; }
  std::string literal(PyObject* value);  // an expression that gives an equal constant
  std::string bind(const std::string& stem, PyObject* value, bool renamed);
  int next_number() { return numbers_++; }
  std::vector<Binding> bindings;

 private:
  void collect(PyObject* code, int depth);
  std::string literal(PyObject* value, int depth);

  std::set<std::string> used_;
  std::string prefix_, helpers_;
  std::map<PyObject*, std::string> bound_;
  int numbers_ = 0;
};

enum class Kind : uint8_t {
  kValue,
  kNull,       // nothing: PUSH_NULL, the place of a loop's value after the loop
  kSaved,      // the exception handled before, pushed by PUSH_EXC_INFO
  kLasti,      // the offset of the raising instruction
  kShadow,     // what LOAD_FAST_AND_CLEAR took: `extra` is the slot, which has another variable until it is put back; ~slot: one without a
               // cell, though others of the slot have one
  kLocals,     // LOAD_LOCALS
  kClosure,    // a cell: `extra` is its slot
  kCells,      // a tuple of cells: `extra` is the instruction that made it
  kCode,       // a code object: constant `extra`, printed where it becomes a function
  kNoFinally,  // 3.8: the finally block was entered in the normal way
  kReturnTo,   // 3.8: it was called: `extra` is the instruction to go back to
};

struct Slot {
  Kind kind = Kind::kValue;
  int32_t extra = 0;
  bool operator==(const Slot& other) const { return kind == other.kind && extra == other.extra; }
  bool operator<(const Slot& other) const { return std::tie(kind, extra) < std::tie(other.kind, other.extra); }
};

inline bool at_run_time(Kind kind) { return kind == Kind::kValue; }

// A place in the code with what is statically known there: one label of the dispatch loop.
struct Instance {
  int32_t start = 0;
  int level = 0;  // how many exceptions are being handled
  std::vector<Slot> stack;
  bool raises_again = false;          // goes to its handler with the value on top
  std::map<int32_t, int32_t> depths;  // 3.8: by handler, how many values it keeps where that is not what its row says
  bool operator<(const Instance& other) const {
    return std::tie(start, level, raises_again, stack, depths) <
           std::tie(other.start, other.level, other.raises_again, other.stack, other.depths);
  }
};

struct Expr {
  Slot slot;
  std::string text;
  bool primary = true;  // may stand before a dot or a bracket as it is
  bool pure = false;    // neither raises nor does anything, and gives the same later
  int depth = 0;
  PyObject* constant = nullptr;
};

// A block in text; `\x01N\x02` stands for the label of instance N.
struct BlockText {
  std::vector<Line> lines;
  int handler = -1;            // instance entered when it raises, -1: none
  int handler_slot = 0;        // the stack place where that finds the exception
  bool handler_twice = false;  // and in the next place too
  bool ends = false;           // the last line leaves the function
  bool raises = false;         // a line may raise
};

// How a code object's variables are printed, and where it stands.
struct Scope {
  const Scope* outer = nullptr;
  enum Type { kFunction, kClass, kModule } type = kFunction;
  std::vector<std::string> slots;  // by localsplus
  std::set<std::string> own;       // names that are variables of this scope, as printed
  std::set<std::string> globals, nonlocals;
  std::set<std::string> temporaries;  // names of ours that are assigned here
  bool in_class = false;              // names with two underscores would be mangled
};

struct Cells {                     // a tuple of cells
  std::vector<std::string> names;  // the variables
  std::vector<std::string> texts;  // the cells as expressions
  std::vector<std::string> own;    // those of them that hold a cell themselves
};

// Prints one code object.
class UnitPrinter {
 public:
  // `free_names`: how the free variables are printed in the scope around, in the order of co_freevars.
  UnitPrinter(Shared& shared, const Scope* outer, PyObject* code, const std::vector<std::string>& free_names);

  // The statements of the body, with declarations and, for a function, its docstring.
  std::vector<Line> body();
  std::string parameters(PyObject* function = nullptr);  // whose defaults, if it is known
  std::string keyword() const;                           // "def" or "async def"
  // Names that a class body (or a comprehension in one) assigns to for us, which the function around must own.
  const std::set<std::string>& lent() const { return lent_; }

  // For the blocks.
  Shared& shared() { return shared_; }
  Scope& scope() { return scope_; }
  const bytecode::Code& code() const { return code_; }
  const bytecode::Cfg& cfg() const { return cfg_; }
  int instance(const Instance& instance);  // its number; made on first use
  std::string home(size_t depth);          // the temporary for a place of the stack, between blocks
  std::string temporary(const std::string& stem);
  std::string name_of_slot(uint32_t slot) const;
  std::string shadow(const std::string& prefix, uint32_t slot) { return temporary(prefix + std::to_string(slot)); }
  bool is_argument_for_good(uint32_t slot) const { return slot < constant_slots_.size() && constant_slots_[slot]; }
  void borrow(const std::set<std::string>& names);  // of a class body inside: see lent()
  void use_global(const std::string& name, bool stores);
  bool inside_function() const;          // whether a function stands around
  bool keeps_cell(uint32_t slot) const;  // whether a variable holds its cell, as a value: classes and modules have no cells
  bool needs_global_form(const std::string& name) const;
  int32_t row_at(int32_t index) const { return cfg_.blocks[static_cast<size_t>(cfg_.block_of[static_cast<size_t>(index)])].row; }
  bool starts_block(int32_t index) const;
  Cells& cells(int32_t index) { return cells_[index]; }  // the variables of a tuple of cells

 private:
  void name_variables(const std::vector<std::string>& free_names);
  void collect_globals(PyObject* code, int depth, std::set<std::string>* names) const;
  void print_instances();
  void print_levels(std::vector<Line>* out);
  void print_level(int level, int indent, std::vector<Line>* out);
  void dispatch(const std::vector<int>& order, size_t begin, size_t end, int indent, std::vector<Line>* out) const;
  std::string with_labels(const std::string& text) const;
  std::vector<Line> declarations() const;
  bool has_docstring() const;

  Shared& shared_;
  Scope scope_;
  bytecode::Code code_;
  bytecode::Cfg cfg_;
  std::map<Instance, int> numbers_;
  std::vector<Instance> instances_;
  std::vector<BlockText> blocks_;
  std::vector<int> labels_;
  std::vector<std::vector<int>> by_level_;
  std::vector<int> first_label_;
  std::vector<bool> constant_slots_;
  std::map<int32_t, Cells> cells_;
  std::set<std::string> lent_;
  int unit_ = 0;
};

// 3.12: whether a variable that a comprehension has of its own may be read while it holds nothing, so that it has to be emptied.
bool may_be_empty(const bytecode::Code& code, uint32_t slot);

// What LOAD_FAST_AND_CLEAR at `index` leaves on the stack, as a number: the slot, or ~slot for a comprehension whose variable is in no cell
// though the slot has one elsewhere.
int32_t shadow_number(const bytecode::Code& code, int index);

// How a comprehension's variable is named before its slot, by the numbers on the stack; empty for the variable around all of them. Each
// comprehension inside of another has one of its own, `x` for what has the slot's kind and `p` for a plain one.
class ShadowPrefix {
 public:
  explicit ShadowPrefix(uint32_t slot) : slot_(static_cast<int32_t>(slot)) {}
  void add(int64_t number) {
    if (number != slot_ && number != ~slot_) return;
    ++count_;
    letter_ = number == slot_ ? 'x' : 'p';
  }
  std::string text() const { return std::string(count_, letter_); }

 private:
  int32_t slot_;
  size_t count_ = 0;
  char letter_ = 'x';
};

// 3.8: notes how many values a block that an instruction sets up keeps. A finally block that is called with a value to return on the stack
// has one more than its row says.
void note_depth(const bytecode::Code& code, int32_t index, size_t depth, std::map<int32_t, int32_t>* depths);

// The text of one block, from an instance to where control leaves it.
BlockText print_block(UnitPrinter& unit, const Instance& instance);

}  // namespace pellucid::decompile::block
