// One block of the block form: its instructions run on a stack of expressions. An expression is written where it is used only as long as
// that keeps the order in which things happen; else it goes into a temporary first. Calls, functions and classes are in block_calls.cpp.
#include <algorithm>

#include "bytecode/effects.h"
#include "bytecode/neutral_code.h"
#include "bytecode/tables.h"
#include "decompile/block_printer.h"

namespace pellucid::decompile::block {

using bytecode::Instruction;
using bytecode::LocalKind;
using bytecode::Op;

namespace {

constexpr int kMaxDepth = 8;  // of parentheses: the parser's stack is small
constexpr size_t kMany = 14;  // values, or names with values

constexpr const char* kBinary[] = {"+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"};
constexpr const char* kCompare[] = {"<", "<=", "==", "!=", ">", ">="};

// Up to 3.10 each operator is an opcode.
const char* old_operator(Op op, bool* in_place) {
  *in_place = false;
  switch (op) {
#define PELLUCID_OPERATOR(NAME, text) \
  case Op::INPLACE_##NAME:            \
    *in_place = true;                 \
    return text;                      \
  case Op::BINARY_##NAME:             \
    return text;
    PELLUCID_OPERATOR(ADD, "+")
    PELLUCID_OPERATOR(AND, "&")
    PELLUCID_OPERATOR(FLOOR_DIVIDE, "//")
    PELLUCID_OPERATOR(LSHIFT, "<<")
    PELLUCID_OPERATOR(MATRIX_MULTIPLY, "@")
    PELLUCID_OPERATOR(MULTIPLY, "*")
    PELLUCID_OPERATOR(MODULO, "%")
    PELLUCID_OPERATOR(OR, "|")
    PELLUCID_OPERATOR(POWER, "**")
    PELLUCID_OPERATOR(RSHIFT, ">>")
    PELLUCID_OPERATOR(SUBTRACT, "-")
    PELLUCID_OPERATOR(TRUE_DIVIDE, "/")
    PELLUCID_OPERATOR(XOR, "^")
#undef PELLUCID_OPERATOR
    default:
      return nullptr;
  }
}

}  // namespace

BlockPrinter::BlockPrinter(UnitPrinter& unit, const Instance& instance)
    : unit_(unit), code_(unit.code()), shared_(unit.shared()), instance_(instance), version_(unit.code().version) {
  for (size_t i = 0; i < instance.stack.size(); ++i) {
    Expr entry;
    entry.slot = instance.stack[i];
    if (at_run_time(entry.slot.kind)) entry.text = unit.home(i);
    entry.pure = true;
    stack_.push_back(entry);
  }
}

BlockText BlockPrinter::run() {
  int32_t index = instance_.start;
  level_ = instance_.level;
  depths_ = instance_.depths;
  find_row();
  if (instance_.raises_again) {
    statement(shared_.helper("reraise") + "(" + pop().text + ")");
    out_.ends = true;
    return finished();
  }
  for (bool first = true;; first = false) {
    if (index < 0 || static_cast<size_t>(index) >= code_.instructions.size()) throw Unsupported("execution runs off the end");
    if (!first && (unit_.starts_block(index) || out_.lines.size() > 400)) {
      go_to(index);
      break;
    }
    next_ = index + 1;
    leaves_ = false;
    const int level = level_;
    step(index);
    if (leaves_) break;
    if (level_ != level) {
      go_to(next_);
      break;
    }
    if (touched_below_) {
      touched_below_ = false;
      if (below_ > 0) {
        go_to(next_);
        break;
      }
    }
    index = next_;
  }
  return finished();
}

BlockText BlockPrinter::finished() {
  if (out_.raises && out_.handler < 0) find_handler();
  return std::move(out_);
}

void BlockPrinter::find_row() {
  row_ = unit_.row_at(instance_.start);
  if (row_ < 0) return;
  below_ = kept(code_.rows[static_cast<size_t>(row_)]);
  if (below_ > stack_.size()) throw Unsupported("an exception row keeps more than there is");
}

size_t BlockPrinter::kept(const bytecode::ExceptionRow& row) const {
  const auto known = instance_.depths.find(row.target);
  return static_cast<size_t>(known == instance_.depths.end() ? row.depth : known->second);
}

int32_t shadow_number(const bytecode::Code& code, int index) {
  const bytecode::Instruction& in = code.instructions[static_cast<size_t>(index)];
  const auto slot = static_cast<int32_t>(in.arg);
  if (in.arg >= code.localsplus_kinds.size() || code.localsplus_kinds[in.arg] == LocalKind::kLocal) return slot;
  const auto next = static_cast<size_t>(index) + 1;  // a comprehension makes its cells at once
  const bool made = next < code.instructions.size() && code.instructions[next].op == Op::MAKE_CELL && code.instructions[next].arg == in.arg;
  return made ? slot : ~slot;
}

bool may_be_empty(const bytecode::Code& code, uint32_t slot) {
  return std::any_of(code.instructions.begin(), code.instructions.end(), [slot](const Instruction& in) {
    return (in.op == Op::LOAD_FAST_CHECK || in.op == Op::DELETE_FAST) && in.arg == slot;
  });
}

void note_depth(const bytecode::Code& code, int32_t index, size_t depth, std::map<int32_t, int32_t>* depths) {
  for (const auto& [set_up, handler] : code.set_ups) {
    if (set_up != index) continue;
    depths->erase(handler);
    const auto row =
        std::find_if(code.rows.begin(), code.rows.end(), [target = handler](const auto& each) { return each.target == target; });
    if (row != code.rows.end() && static_cast<size_t>(row->depth) != depth) (*depths)[handler] = static_cast<int32_t>(depth);
  }
}

// What a block that may raise leads to then: what cannot happen gets no blocks.
void BlockPrinter::find_handler() {
  if (row_ < 0) return;
  const bytecode::ExceptionRow& row = code_.rows[static_cast<size_t>(row_)];
  Instance handler;
  handler.level = instance_.level;
  handler.stack.assign(instance_.stack.begin(), instance_.stack.begin() + static_cast<std::ptrdiff_t>(kept(row)));
  handler.depths = instance_.depths;
  handler.depths.erase(row.target);
  if (version_ < 311) {
    old_handler(row, &handler);
    return;
  }
  if (row.lasti) handler.stack.push_back({Kind::kLasti, 0});
  int32_t target = row.target;
  while (code_.instructions[static_cast<size_t>(target)].op == Op::NOP) ++target;
  if (code_.instructions[static_cast<size_t>(target)].op == Op::PUSH_EXC_INFO) {
    handler.stack.push_back({Kind::kSaved, 0});
    ++handler.level;
    ++target;
  }
  out_.handler_slot = static_cast<int>(handler.stack.size());
  handler.stack.push_back({Kind::kValue, 0});
  handler.start = target;
  out_.handler = unit_.instance(handler);
}

// Up to 3.10 the interpreter itself makes the exception the one being handled, and leaves the handlers entered inside of the block.
void BlockPrinter::old_handler(const bytecode::ExceptionRow& row, Instance* handler) {
  int level = 0;
  for (const Slot& slot : handler->stack) level += slot.kind == Kind::kSaved && slot.extra == 0;
  const bool crosses = level < instance_.level;
  if (crosses) {  // first back to where the block was set up
    handler->level = level;
    handler->start = instance_.start;
    handler->raises_again = true;
    out_.handler_slot = static_cast<int>(handler->stack.size());
    handler->stack.push_back({Kind::kValue, 0});
    handler->start = row.start;
    out_.handler = unit_.instance(*handler);
    return;
  }
  handler->level = level + 1;
  for (int i = 0; i < 4; ++i) handler->stack.push_back({Kind::kSaved, i});  // the last of them is the traceback
  // The top is the exception's type, below it the value: both are the exception here, as only `except` looks at the type.
  out_.handler_slot = static_cast<int>(handler->stack.size());
  out_.handler_twice = true;
  handler->stack.push_back({Kind::kValue, 0});
  handler->stack.push_back({Kind::kValue, 0});
  handler->start = row.target;
  out_.handler = unit_.instance(*handler);
}

// Lines and expressions.

void BlockPrinter::statement(const std::string& text, bool raises) {
  out_.lines.push_back({indent_, text});
  out_.raises |= raises;
}

Expr BlockPrinter::pop() {
  if (stack_.empty()) throw Unsupported("a value is taken from an empty stack");
  Expr top = stack_.back();
  stack_.pop_back();
  if (stack_.size() < below_) touched_below_ = true;
  return top;
}

Expr BlockPrinter::pop_value() {
  Expr top = pop();
  if (top.slot.kind == Kind::kSaved || top.slot.kind == Kind::kLasti || top.slot.kind == Kind::kNull) {
    top.text = "None";
    top.primary = top.pure = true;
    top.slot = {};
  }
  if (top.slot.kind == Kind::kLocals) return value_expr(shared_.helper("locals") + "()", true, false);
  if (top.slot.kind == Kind::kCode) return value_expr(shared_.literal(code_constant(top.slot.extra)), true, true);
  if (top.slot.kind == Kind::kClosure) return value_expr(cell(static_cast<uint32_t>(top.slot.extra)), true, true);
  if (top.slot.kind == Kind::kCells) {
    std::string text;
    for (const std::string& one : unit_.cells(top.slot.extra).texts) text += one + ", ";
    return value_expr("(" + text + ")", true, true);
  }
  if (top.slot.kind != Kind::kValue) throw Unsupported("something that is no value is used as one");
  return top;
}

Expr& BlockPrinter::at(size_t depth) {
  if (depth >= stack_.size()) throw Unsupported("a value below the stack");
  return stack_[stack_.size() - 1 - depth];
}

// The same as a value: code that others made has other things in the places of values.
Expr& BlockPrinter::value_at(size_t depth) {
  Expr& found = at(depth);
  switch (found.slot.kind) {
    case Kind::kNull:
    case Kind::kSaved:
    case Kind::kLasti:
      found.text = "None";
      break;
    case Kind::kCode:
    case Kind::kClosure:
    case Kind::kCells: {
      const size_t place = stack_.size() - 1 - depth;
      stack_.push_back(found);
      const Expr value = pop_value();
      stack_[place] = value;
      settle(stack_[place]);
      return stack_[place];
    }
    default:
      break;
  }
  return found;
}

void BlockPrinter::push(Expr expr) {
  if (expr.depth > kMaxDepth) {
    settle();
    const std::string name = fresh();
    statement(name + " = " + expr.text);
    expr = value_expr(name, true, true);
  }
  stack_.push_back(std::move(expr));
}

void BlockPrinter::push_kind(Kind kind, int32_t extra) {
  Expr expr;
  expr.slot = {kind, extra};
  expr.pure = true;
  stack_.push_back(expr);
}

Expr BlockPrinter::value_expr(std::string text, bool primary, bool pure, int depth) {
  Expr expr;
  expr.text = std::move(text);
  expr.primary = primary;
  expr.pure = pure;
  expr.depth = depth;
  return expr;
}

std::string BlockPrinter::fresh() { return unit_.temporary("t" + std::to_string(fresh_++)); }

std::string BlockPrinter::operand(const Expr& expr) { return expr.primary ? expr.text : "(" + expr.text + ")"; }

// Evaluates, in order, everything on the stack that is not done yet.
void BlockPrinter::settle() {
  for (Expr& expr : stack_) settle(expr);
}

// Compilers build something else for displays and calls of many values, in steps: those get values that are there.
void BlockPrinter::settle_for(size_t count) {
  if (count > kMany) settle();
}

void BlockPrinter::settle(Expr& expr) {
  if (expr.pure || !at_run_time(expr.slot.kind)) return;
  const std::string name = fresh();
  statement(name + " = " + expr.text);
  expr = value_expr(name, true, true);
}

// A statement that does something: what lies on the stack comes before it.
void BlockPrinter::act(const std::string& text) {
  settle();
  statement(text);
}

// The value of something that is more than an expression can be trusted with, in a temporary.
void BlockPrinter::push_done(const std::string& text) {
  settle();
  const std::string name = fresh();
  statement(name + " = " + text);
  push(value_expr(name, true, true));
}

void BlockPrinter::push_call(const char* helper, const std::string& arguments) {
  push(value_expr(shared_.helper(helper) + "(" + arguments + ")", true, false));
}

// Leaving.

std::string BlockPrinter::label(int32_t index) {
  Instance next;
  next.start = index;
  next.level = level_;
  next.depths = depths_;
  for (const Expr& expr : stack_) next.stack.push_back(expr.slot);
  return std::string("\x01") + std::to_string(unit_.instance(next)) + "\x01";
}

// Brings every value to its home, all at once, and lets go of what is not used any more.
void BlockPrinter::go_home() {
  settle_for(stack_.size());
  std::string targets, values;
  bool raises = false;
  for (size_t i = 0; i < stack_.size(); ++i) {
    if (!at_run_time(stack_[i].slot.kind)) continue;
    const std::string home = unit_.home(i);
    if (stack_[i].text == home) continue;
    targets += (targets.empty() ? "" : ", ") + home;
    values += (values.empty() ? "" : ", ") + stack_[i].text;
    raises |= !stack_[i].pure;
    stack_[i] = value_expr(home, true, true);
  }
  if (!targets.empty()) statement(targets + " = " + values, raises);
  std::string unused;
  for (size_t i = 0; i < instance_.stack.size(); ++i) {
    const bool still = i < stack_.size() && at_run_time(stack_[i].slot.kind);
    if (at_run_time(instance_.stack[i].kind) && !still) unused += unit_.home(i) + " = ";
  }
  for (int i = 0; i < fresh_; ++i) unused += unit_.temporary("t" + std::to_string(i)) + " = ";
  if (!unused.empty()) statement(unused + "None", false);
}

void BlockPrinter::go_to(int32_t index) {
  go_home();
  statement(unit_.temporary("at") + " = " + label(index), false);
  leaves_ = true;
}

// Two ways on: `condition` is evaluated behind everything on the stack.
void BlockPrinter::fork(const std::string& condition, int32_t if_true, int32_t if_false) {
  settle();
  const std::string test = unit_.temporary("test");
  statement(test + " = " + condition);  // or its truth may raise
  go_home();
  const std::string at = unit_.temporary("at");
  statement(at + " = " + label(if_true) + " if " + test + " else " + label(if_false), false);
  leaves_ = true;
}

void BlockPrinter::leave_with(const std::string& text, bool raises) {
  settle();
  statement(text, raises);
  out_.ends = true;
  leaves_ = true;
}

// Variables.

void BlockPrinter::load_slot(uint32_t slot) {
  const LocalKind kind = slot_kind(slot);
  if (version_ >= 311 && kind != LocalKind::kLocal && shadow_prefix(slot)[0] != 'p') {
    push_kind(Kind::kClosure, static_cast<int32_t>(slot));
    return;
  }
  push(value_expr(slot_text(slot), true, unit_.is_argument_for_good(slot)));
}

// A cell as an object: code that compilers of others make passes it on.
std::string BlockPrinter::cell(uint32_t slot) const {
  if (holds_cell(slot)) return cell_variable(slot);
  return cell_of(unit_.name_of_slot(slot));
}

std::string BlockPrinter::cell_of(const std::string& name) const { return "(lambda: " + name + ").__closure__[0]"; }

PyObject* BlockPrinter::code_constant(int32_t index) const { return code_.consts[static_cast<size_t>(index)].get(); }

// Inside of a comprehension that stands in this code (3.12), a name may be the comprehension's own variable.
std::string BlockPrinter::shadow_prefix(uint32_t slot) const {
  ShadowPrefix prefix(slot);
  for (const Expr& expr : stack_) {
    if (expr.slot.kind == Kind::kShadow) prefix.add(expr.slot.extra);
  }
  return prefix.text();
}

// Whether a variable holds its cell as a value. Functions made in different rounds of a loop around a comprehension have different cells.
bool BlockPrinter::holds_cell(uint32_t slot) const {
  return unit_.keeps_cell(slot) || (shadow_prefix(slot)[0] == 'x' && slot_kind(slot) != LocalKind::kLocal);
}

std::string BlockPrinter::cell_variable(uint32_t slot) const {
  const std::string prefix = shadow_prefix(slot);
  return prefix.empty() ? unit_.name_of_slot(slot) : unit_.shadow(prefix, slot);
}

std::string BlockPrinter::slot_text(uint32_t slot) const { return cell_variable(slot) + (holds_cell(slot) ? ".cell_contents" : ""); }

LocalKind BlockPrinter::slot_kind(uint32_t slot) const {
  if (slot >= code_.localsplus_kinds.size()) throw Unsupported("a variable that does not exist");
  return code_.localsplus_kinds[slot];
}

void BlockPrinter::store(const std::string& target, bool may_fail) {
  Expr value = pop();
  if (value.slot.kind == Kind::kShadow) {
    settle();
    return;
  }
  stack_.push_back(value);
  value = pop_value();
  settle();
  statement(target + " = " + value.text, may_fail || !value.pure);
}

std::string BlockPrinter::name(uint32_t index) const {
  if (index >= code_.names.size()) throw Unsupported("a name that does not exist");
  return utf8(code_.names[index].get());
}

bool BlockPrinter::mangled(const std::string& name) const {
  return unit_.scope().in_class && name.size() > 2 && name.rfind("__", 0) == 0 && name.compare(name.size() - 2, 2, "__") != 0;
}

bool BlockPrinter::writable(const std::string& name) const { return is_plain_name(name) && !mangled(name); }

std::string BlockPrinter::attribute(const Expr& owner, const std::string& name) {
  if (writable(name)) return operand(owner) + "." + name;
  return shared_.helper("getattr") + "(" + owner.text + ", " + quoted_name(name) + ")";
}

std::string BlockPrinter::quoted_name(const std::string& name) const {
  const py::Ref text = py::Ref::steal(PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "surrogatepass"));
  if (!text) throw PythonError();
  return quoted(text.get());
}

std::string BlockPrinter::variable(const std::string& name, bool global, bool stores) {
  const bool function = unit_.scope().type == Scope::kFunction;
  if (writable(name) && !(global && unit_.needs_global_form(name))) {
    if (global || function) unit_.use_global(name, stores);
    return name;
  }
  return shared_.helper(global || function ? "globals" : "locals") + "()[" + quoted_name(name) + "]";
}

// As variable(), to be read: builtins come behind globals.
std::string BlockPrinter::loaded(const std::string& name, bool global) {
  const std::string plain = variable(name, global, false);
  if (plain == name) return plain;
  const bool from_globals = global || unit_.scope().type == Scope::kFunction;
  const std::string space = shared_.helper("globals") + "()";
  if (from_globals) return shared_.helper("load_global") + "(" + space + ", " + quoted_name(name) + ")";
  return shared_.helper("load_name") + "(" + shared_.helper("locals") + "(), " + space + ", " + quoted_name(name) + ")";
}

void BlockPrinter::remove(const std::string& name, bool global) {
  const std::string plain = variable(name, global, true);
  if (plain == name) {
    act("del " + plain);
    return;
  }
  const bool from_globals = global || unit_.scope().type == Scope::kFunction;
  act(shared_.helper("delete_name") + "(" + shared_.helper(from_globals ? "globals" : "locals") + "(), " + quoted_name(name) + ")");
}

// Instructions.

void BlockPrinter::binary(const std::string& text, bool in_place) {
  const Expr right = pop_value();
  Expr left = pop_value();
  if (text == "%" && left.constant != nullptr && PyUnicode_Check(left.constant)) {  // compilers make a formatted string of some
    const std::string pattern = fresh();
    act(pattern + " = " + left.text);
    left.text = pattern;
  }
  if (in_place) {
    settle();
    const std::string name = fresh();
    // The left one is evaluated before the right one.
    statement(name + " = " + left.text);
    statement(name + " " + text + "= " + right.text);
    push(value_expr(name, true, true));
    return;
  }
  push(value_expr(operand(left) + " " + text + " " + operand(right), false, false, std::max(left.depth, right.depth) + 1));
}

void BlockPrinter::display(const char* open, const char* close, uint32_t count, bool tuple) {
  if (count > stack_.size()) throw Unsupported("a display of more than there is");
  bool cells = tuple && count > 0;
  for (uint32_t i = 0; i < count && cells; ++i) cells = at(i).slot.kind == Kind::kClosure;
  if (cells) {
    Cells made;
    for (uint32_t i = 0; i < count; ++i) {
      const auto slot = static_cast<uint32_t>(pop().slot.extra);
      made.texts.insert(made.texts.begin(), cell(slot));
      made.names.insert(made.names.begin(), cell_variable(slot));
      if (holds_cell(slot)) made.own.push_back(cell_variable(slot));
    }
    unit_.cells(next_ - 1) = made;
    push_kind(Kind::kCells, next_ - 1);
    return;
  }
  std::vector<Expr> items;
  settle_for(count);
  for (uint32_t i = 0; i < count; ++i) items.insert(items.begin(), pop_value());
  const bool many = count > kMany && !tuple;
  Expr made = value_expr(many ? shared_.helper(*open == '[' ? "list_of" : "set_of") + "((" : open, true, false);
  for (uint32_t i = 0; i < count; ++i) {
    made.text += (i > 0 ? ", " : "") + items[i].text;
    made.depth = std::max(made.depth, items[i].depth + 1);
  }
  if (tuple && count == 1) made.text += ",";
  made.text += many ? ",))" : close;
  push(made);
}

void BlockPrinter::build_map(uint32_t count) {
  std::vector<std::pair<Expr, Expr>> items;
  settle_for(count);
  for (uint32_t i = 0; i < count; ++i) {
    const Expr value = pop_value(), key = pop_value();
    items.insert(items.begin(), {key, value});
  }
  const bool many = count > kMany;
  Expr made = value_expr(many ? shared_.helper("map_of") + "((" : "{", true, false);
  for (size_t i = 0; i < items.size(); ++i) {
    made.text += (i > 0 ? ", " : "") + items[i].first.text + (many ? ", " : ": ") + items[i].second.text;
    made.depth = std::max({made.depth, items[i].first.depth + 1, items[i].second.depth + 1});
  }
  made.text += many ? ",))" : "}";
  push(made);
}

void BlockPrinter::unpack(uint32_t before, bool star, uint32_t after) {
  const Expr value = pop_value();
  settle();
  std::vector<std::string> names;
  std::string text;
  const uint32_t count = before + (star ? 1 : 0) + after;
  for (uint32_t i = 0; i < count; ++i) {
    names.push_back(fresh());
    text += (star && i == before ? "*" : "") + names.back() + ", ";
  }
  statement((count == 0 ? std::string("()") : "(" + text.substr(0, text.size() - (count == 1 ? 1 : 2)) + ")") + " = " + value.text);
  for (size_t i = names.size(); i-- > 0;) push(value_expr(names[i], true, true));
}

// Reordering is about values that are there, so whatever is still to be evaluated is.
void BlockPrinter::rotate(size_t count) {
  if (count > stack_.size()) throw Unsupported("ROT below the stack");
  settle();
  if (stack_.size() - count < below_) touched_below_ = true;
  if (count > 1) std::rotate(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end() - 1, stack_.end());
}

void BlockPrinter::copy(size_t depth) {
  settle();
  stack_.push_back(at(depth));
}

void BlockPrinter::swap(size_t depth) {
  settle();
  if (depth >= stack_.size()) throw Unsupported("SWAP below the stack");
  std::swap(at(0), at(depth));
  if (stack_.size() - 1 - depth < below_) touched_below_ = true;
}

// Adds to a collection on the stack: one value, or a key and a value.
void BlockPrinter::grow(uint32_t depth, const char* helper, bool two) {
  const Expr value = pop_value();
  const Expr key = two ? pop_value() : Expr();
  if (depth == 0 || depth > stack_.size()) throw Unsupported("a list below the stack");
  settle();
  statement(shared_.helper(helper) + "(" + value_at(depth - 1).text + ", " + (two ? key.text + ", " : "") + value.text + ")");
}

// 3.8: the six values that say how a finally block was entered.
void BlockPrinter::end_finally(int32_t index) {
  const Expr top = at(0);
  at(5);
  if (top.slot.kind == Kind::kValue) {
    leave_with(shared_.helper("reraise") + "(" + top.text + ")");
    return;
  }
  drop(6);
  if (top.slot.kind == Kind::kReturnTo) {
    settle();
    go_to(top.slot.extra);
  } else {
    next_ = index + 1;
  }
}

void BlockPrinter::pop_finally(bool keep_top) {
  Expr kept;
  if (keep_top) kept = pop();
  if (at(0).slot.kind == Kind::kValue) --level_;
  drop(6);
  if (keep_top) stack_.push_back(kept);
}

void BlockPrinter::drop(size_t count) {
  for (size_t i = 0; i < count; ++i) pop();
}

// 3.8's WITH_CLEANUP_START and WITH_CLEANUP_FINISH, which always stand together.
void BlockPrinter::with_cleanup(int32_t index) {
  const auto op_at = [&](int32_t i) {
    return static_cast<size_t>(i) < code_.instructions.size() ? code_.instructions[static_cast<size_t>(i)].op : Op::CACHE;
  };
  const bool async = op_at(index + 1) == Op::GET_AWAITABLE && op_at(index + 2) == Op::LOAD_CONST && op_at(index + 3) == Op::YIELD_FROM;
  const int32_t finish = index + (async ? 4 : 1);
  if (op_at(finish) != Op::WITH_CLEANUP_FINISH) throw Unsupported("WITH_CLEANUP_START without WITH_CLEANUP_FINISH");
  const std::string wait = async ? "await " : "";
  settle();
  const Expr top = at(0), exit = at(6);
  const auto remove_exit = [&] { stack_.erase(stack_.end() - 7); };
  next_ = finish + 1;
  if (top.slot.kind != Kind::kValue) {
    statement(wait + exit.text + "(None, None, None)");
    remove_exit();
    settle_homes(next_);
    return;
  }
  const std::string test = unit_.temporary("test");
  statement(test + " = " + wait + shared_.helper("leave") + "(" + exit.text + ", " + top.text + ")");
  remove_exit();
  const std::vector<Expr> handled = stack_;
  statement("if " + test + ":");
  indent_ = 2;
  drop(6);
  for (int i = 0; i < 6; ++i) push_kind(Kind::kNoFinally, 0);
  --level_;
  go_to(next_);
  ++level_;
  indent_ = 0;
  statement("else:", false);
  indent_ = 2;
  stack_ = handled;
  go_to(next_);
  indent_ = 0;
}

// Ends the block where the places of the stack were changed under values that stay.
void BlockPrinter::settle_homes(int32_t index) { go_to(index); }

BlockText print_block(UnitPrinter& unit, const Instance& instance) { return BlockPrinter(unit, instance).run(); }

const char* binary_operator(uint32_t arg, bool* in_place) {
  *in_place = arg >= 13;
  return arg < 26 ? kBinary[arg % 13] : nullptr;
}

const char* old_binary_operator(Op op, bool* in_place) { return old_operator(op, in_place); }

const char* compare_operator(uint32_t arg) { return arg < 6 ? kCompare[arg] : nullptr; }

}  // namespace pellucid::decompile::block
