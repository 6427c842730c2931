// BlockPrinter: prints one block of the block form. For block_*.cpp only.
#pragma once
#include "decompile/block_parts.h"

namespace pellucid::decompile::block {

class BlockPrinter {
 public:
  BlockPrinter(UnitPrinter& unit, const Instance& instance);
  BlockText run();

 private:
  void find_row();
  size_t kept(const bytecode::ExceptionRow& row) const;
  BlockText finished();
  void find_handler();
  void old_handler(const bytecode::ExceptionRow& row, Instance* handler);

  // block_ops.cpp: lines, expressions, leaving.
  void statement(const std::string& text, bool raises = true);
  Expr pop();
  Expr pop_value();
  void drop(size_t count);
  Expr& at(size_t depth);
  Expr& value_at(size_t depth);
  void push(Expr expr);
  void push_kind(Kind kind, int32_t extra);
  static Expr value_expr(std::string text, bool primary, bool pure, int depth = 0);
  std::string fresh();
  static std::string operand(const Expr& expr);
  void settle();
  void settle(Expr& expr);
  void settle_for(size_t count);
  void act(const std::string& text);
  void push_done(const std::string& text);
  void push_call(const char* helper, const std::string& arguments);
  std::string label(int32_t index);
  void go_home();
  void go_to(int32_t index);
  void settle_homes(int32_t index);
  void fork(const std::string& condition, int32_t if_true, int32_t if_false);
  void leave_with(const std::string& text, bool raises = true);

  // block_ops.cpp: variables and groups of instructions.
  void load_slot(uint32_t slot);
  void load_from_dict(const std::string& variable, const std::string& name);
  std::string shadow_prefix(uint32_t slot) const;  // empty: no comprehension has a variable of that slot here
  bool holds_cell(uint32_t slot) const;
  std::string cell_variable(uint32_t slot) const;
  std::string cell(uint32_t slot) const;
  std::string cell_of(const std::string& name) const;
  PyObject* code_constant(int32_t index) const;
  std::string slot_text(uint32_t slot) const;
  bytecode::LocalKind slot_kind(uint32_t slot) const;
  void store(const std::string& target, bool may_fail = true);
  std::string name(uint32_t index) const;
  bool mangled(const std::string& name) const;
  bool writable(const std::string& name) const;
  std::string attribute(const Expr& owner, const std::string& name);
  std::string quoted_name(const std::string& name) const;
  std::string variable(const std::string& name, bool global, bool stores);
  std::string loaded(const std::string& name, bool global);
  void remove(const std::string& name, bool global);
  void binary(const std::string& text, bool in_place);
  void display(const char* open, const char* close, uint32_t count, bool tuple);
  void build_map(uint32_t count);
  void unpack(uint32_t before, bool star, uint32_t after);
  void rotate(size_t count);
  void copy(size_t depth);
  void swap(size_t depth);
  void grow(uint32_t depth, const char* helper, bool two);
  void end_finally(int32_t index);
  void pop_finally(bool keep_top);
  void with_cleanup(int32_t index);

  // block_step.cpp: one instruction.
  void step(int32_t index);
  bool step_stack(const bytecode::Instruction& in, int32_t index);
  bool step_variables(const bytecode::Instruction& in, int index);
  bool step_operators(const bytecode::Instruction& in);
  bool step_displays(const bytecode::Instruction& in);
  bool step_jumps(const bytecode::Instruction& in, int32_t index);
  bool step_exceptions(const bytecode::Instruction& in, int32_t index);
  bool step_patterns(const bytecode::Instruction& in);
  bool step_imports(const bytecode::Instruction& in);
  void intrinsic(uint32_t which);
  void intrinsic_2(uint32_t which);
  void format(bool has_spec, uint32_t conversion);
  void unpacked_display(const char* open, const char* close, uint32_t count, const char* star);

  // block_calls.cpp: calls, functions, classes, suspension.
  bool step_calls(const bytecode::Instruction& in, int32_t index);
  void call(uint32_t count, PyObject* keyword_names, bool null_slot);
  void call_star(bool keywords);
  void make_function(int32_t index, uint32_t flags);
  void print_function(PyObject* code, const Cells& cells, const std::string& name, bool alone);
  bool step_suspension(const bytecode::Instruction& in, int32_t index);
  void delegate(const char* first, int32_t end);
  void send_once(int32_t ended, int32_t next);
  bool sends_in_loop(int32_t index, int32_t* end) const;
  PyObject* constant_under(size_t depth) { return at(depth).constant; }

  UnitPrinter& unit_;
  const bytecode::Code& code_;
  Shared& shared_;
  const Instance& instance_;
  const int version_;
  std::vector<Expr> stack_;
  std::map<int32_t, int32_t> depths_;
  BlockText out_;
  PyObject* keyword_names_ = nullptr;  // KW_NAMES, for the call behind it
  int32_t next_ = 0;
  size_t below_ = 0;  // places that the handler finds as they are
  int row_ = -1, level_ = 0, indent_ = 0, fresh_ = 0;
  bool leaves_ = false, touched_below_ = false;
};

const char* binary_operator(uint32_t arg, bool* in_place);
const char* old_binary_operator(bytecode::Op op, bool* in_place);
const char* compare_operator(uint32_t arg);

}  // namespace pellucid::decompile::block
