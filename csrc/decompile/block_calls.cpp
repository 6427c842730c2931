// Block form: calls, functions and classes that a block makes, and instructions that suspend the frame.
#include <algorithm>

#include "bytecode/neutral_code.h"
#include "decompile/block_printer.h"

namespace pellucid::decompile::block {

using bytecode::Instruction;
using bytecode::Op;

namespace {

enum FunctionFlag : uint32_t { kDefaults = 1, kKeywordDefaults = 2, kAnnotations = 4, kClosureFlag = 8 };

bool is_class_body(const bytecode::Code& code) { return (code.flags & 1) == 0; }

}  // namespace

bool BlockPrinter::step_calls(const Instruction& in, int32_t index) {
  switch (in.op) {
    case Op::KW_NAMES:
      if (in.arg >= code_.consts.size()) throw Unsupported("names that do not exist");
      keyword_names_ = code_.consts[in.arg].get();
      return true;
    case Op::CALL: {
      PyObject* names = keyword_names_;
      keyword_names_ = nullptr;
      call(in.arg, names, true);
      return true;
    }
    case Op::CALL_METHOD:
      call(in.arg, nullptr, true);
      return true;
    case Op::CALL_FUNCTION:
      call(in.arg, nullptr, false);
      return true;
    case Op::CALL_FUNCTION_KW:
    case Op::CALL_KW: {
      PyObject* names = at(0).constant;
      if (names == nullptr) throw Unsupported("names of arguments that are no constant");
      drop(1);
      call(in.arg, names, in.op == Op::CALL_KW);
      return true;
    }
    case Op::CALL_FUNCTION_EX:
      call_star((in.arg & 1) != 0);
      return true;
    case Op::MAKE_FUNCTION:
      make_function(index, in.arg);
      return true;
    default:
      return false;
  }
}

void BlockPrinter::call(uint32_t count, PyObject* keyword_names, bool null_slot) {
  std::vector<Expr> arguments;
  if (count + (null_slot ? 2 : 1) > stack_.size()) throw Unsupported("a call below the stack");
  settle_for(count);
  for (uint32_t i = 0; i < count; ++i) arguments.insert(arguments.begin(), pop_value());
  Expr callee;
  if (null_slot) {
    Expr above = pop();
    if (above.slot.kind == Kind::kNull) {
      callee = pop_value();
    } else {
      stack_.push_back(above);
      above = pop_value();
      if (at(0).slot.kind == Kind::kNull) {
        drop(1);
        callee = above;
      } else {
        arguments.insert(arguments.begin(), above);
        callee = pop_value();
      }
    }
  } else {
    callee = pop_value();
  }
  const size_t named =
      keyword_names == nullptr ? 0 : static_cast<size_t>(PyTuple_Check(keyword_names) ? PyTuple_GET_SIZE(keyword_names) : 0);
  if (named > arguments.size()) throw Unsupported("more names than arguments");
  const size_t positional = arguments.size() - named;
  const auto key_of = [&](size_t argument) {
    PyObject* key = PyTuple_GET_ITEM(keyword_names, static_cast<Py_ssize_t>(argument - positional));
    if (!PyUnicode_Check(key)) throw Unsupported("a name of an argument that is no text");
    return utf8(key);
  };
  bool plain = named == 0 || arguments.size() < 14;
  for (size_t i = positional; i < arguments.size(); ++i) plain &= writable(key_of(i));
  std::string text = plain ? "" : callee.text + ", " + shared_.literal(keyword_names);
  int depth = callee.depth;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!text.empty()) text += ", ";
    depth = std::max(depth, arguments[i].depth + 1);
    text += (plain && i >= positional ? key_of(i) + "=" : "") + arguments[i].text;
  }
  const std::string made = (plain ? operand(callee) : shared_.helper("call")) + "(" + text + ")";
  if (callee.text == "super") {  // with an attribute behind it, 3.12 makes one instruction of both
    push_done(made);
  } else {
    push(value_expr(made, true, false, depth));
  }
}

void BlockPrinter::call_star(bool keywords) {
  settle();
  const Expr named = keywords ? pop_value() : Expr(), arguments = pop_value();
  if (version_ >= 313) drop(1);
  const Expr callee = pop_value();
  if (version_ >= 311 && version_ < 313) drop(1);
  std::string text = "*" + operand(arguments);
  if (keywords) text += ", **" + operand(named);
  push(value_expr(operand(callee) + "(" + text + ")", true, false, 1));
}

void BlockPrinter::make_function(int32_t index, uint32_t flags) {
  static_cast<void>(index);
  settle();
  const std::string qualname = version_ < 311 ? pop_value().text : "None";
  Expr code_value = pop();
  PyObject* code = code_value.slot.kind == Kind::kCode ? code_constant(code_value.slot.extra) : nullptr;
  if (code == nullptr) {
    stack_.push_back(code_value);
    code_value = pop_value();
  }
  std::string defaults = "None", keyword_defaults = "None", annotations = "None";
  Expr cells;
  bool has_cells = false;
  const auto take = [&](uint32_t flag) {
    if (flag == kClosureFlag) {
      cells = pop();
      has_cells = true;
      return;
    }
    const Expr value = pop_value();
    (flag == kDefaults ? defaults : flag == kKeywordDefaults ? keyword_defaults : annotations) = value.text;
  };
  std::vector<uint32_t> parts;
  if (version_ >= 313) {
    while (static_cast<size_t>(next_) < code_.instructions.size() &&
           code_.instructions[static_cast<size_t>(next_)].op == Op::SET_FUNCTION_ATTRIBUTE) {
      parts.push_back(code_.instructions[static_cast<size_t>(next_)].arg);
      ++next_;
    }
  } else {
    for (const uint32_t flag : {kClosureFlag, kAnnotations, kKeywordDefaults, kDefaults}) {
      if ((flags & flag) != 0) parts.push_back(flag);
    }
  }
  for (const uint32_t flag : parts) take(flag);
  bytecode::Code nested;
  if (code != nullptr && !bytecode::decode(code, nested)) throw PythonError();
  size_t wanted = 0;
  for (const bytecode::LocalKind kind : nested.localsplus_kinds) wanted += kind == bytecode::LocalKind::kFree;
  const bool known_cells = !has_cells || cells.slot.kind == Kind::kCells;
  const Cells given = has_cells && known_cells ? unit_.cells(cells.slot.extra) : Cells{};
  const std::string rest = ", " + defaults + ", " + keyword_defaults + ", " + annotations;
  if (code == nullptr || !known_cells || given.names.size() != wanted) {  // made by a compiler of others: what it is shows at run time
    std::string closure = "None";
    if (has_cells) {
      stack_.push_back(cells);
      closure = pop_value().text;
    }
    const std::string text = code == nullptr ? code_value.text : shared_.literal(code);
    push_done(shared_.helper("function") + "(" + shared_.helper("globals") + "(), " + text + ", " + qualname + rest + ", " + closure + ")");
    return;
  }
  const std::string printed = unit_.temporary("f" + std::to_string(shared_.next_number()));
  // A class statement would call the metaclass, and outside of functions nothing is a free variable: there a function stands around.
  const bool alone = !given.own.empty() && unit_.scope().type != Scope::kFunction && !unit_.inside_function();
  print_function(code, given, printed, alone);
  std::string shadows;
  for (const std::string& name : given.own) shadows += ", '" + name + "', " + name;
  const std::string name = version_ < 311 ? qualname : quoted(nested.qualname.get());
  push_done(shared_.helper(is_class_body(nested) || alone ? "made_inside" : "made") + "(" + printed + ", " + quoted(nested.name.get()) +
            ", " + name + rest + shadows + ")");
}

void BlockPrinter::print_function(PyObject* code, const Cells& cells, const std::string& name, bool alone) {
  UnitPrinter inner(shared_, &unit_.scope(), code, cells.names);
  const std::vector<Line> body = inner.body();
  unit_.borrow(inner.lent());
  const bool is_class = is_class_body(inner.code());
  int more = 1;
  if (is_class || alone) {
    statement("def " + name + "():");
    for (const std::string& own : cells.own) out_.lines.push_back({indent_ + 1, own + " = None"});
    more = 2;
  }
  // The class' own name would be a variable of the function around.
  out_.lines.push_back(
      {indent_ + more - 1, is_class ? "class " + name + ":" : inner.keyword() + " " + name + "(" + inner.parameters() + "):"});
  for (const Line& line : body) out_.lines.push_back({indent_ + more + line.indent, line.text});
}

// Whether a loop around SEND stands at `index`: what `await` and `yield from` are compiled to. Then `end` is where it goes on.
bool BlockPrinter::sends_in_loop(int32_t index, int32_t* end) const {
  const auto op_at = [&](int32_t i) {
    return static_cast<size_t>(i) < code_.instructions.size() ? code_.instructions[static_cast<size_t>(i)].op : Op::CACHE;
  };
  if (op_at(index) != Op::LOAD_CONST || op_at(index + 1) != Op::SEND) return false;
  if (code_.instructions[static_cast<size_t>(index)].arg >= code_.consts.size() ||
      code_.consts[code_.instructions[static_cast<size_t>(index)].arg].get() != Py_None) {
    return false;
  }
  if (op_at(index + 2) != Op::YIELD_VALUE || op_at(index + 3) != Op::RESUME) return false;
  const Op back = op_at(index + 4);
  if (back != Op::JUMP_BACKWARD_NO_INTERRUPT && back != Op::JUMP_BACKWARD) return false;
  if (code_.instructions[static_cast<size_t>(index) + 4].target != index + 1) return false;
  *end = code_.instructions[static_cast<size_t>(index) + 1].target;
  return true;
}

// Goes on with the loop of SEND that execution was put into, with the iterator and a value on the stack: the value is sent to the
// iterator, or yielded first.
void BlockPrinter::delegate(const char* first, int32_t end) {
  const Expr value = pop_value(), iterator = pop_value();
  const std::string rest = shared_.helper("delegate") + "('" + first + "', " + iterator.text + ", " + value.text + ")";
  push_done(((code_.flags & 0x20) != 0 ? "yield from " : "await ") + rest);
  const bool ends_send = version_ >= 312 && code_.instructions[static_cast<size_t>(end)].op == Op::END_SEND;
  go_to(ends_send ? end + 1 : end);
}

// SEND outside of the loop that compilers make: goes one way with what the iterator yields, another with what it returns.
void BlockPrinter::send_once(int32_t ended, int32_t next) {
  const Expr value = pop_value();
  settle();
  const std::string done = fresh(), result = fresh();
  statement(done + ", " + result + " = " + shared_.helper("send") + "(" + value_at(0).text + ", " + value.text + ")");
  statement("if " + done + ":");
  const std::vector<Expr> before = stack_;
  indent_ += 2;
  if (version_ < 312) drop(1);
  push(value_expr(result, true, true));
  go_to(ended);
  indent_ -= 2;
  statement("else:", false);
  stack_ = before;
  push(value_expr(result, true, true));
  indent_ += 2;
  go_to(next);
  indent_ -= 2;
}

bool BlockPrinter::step_suspension(const Instruction& in, int32_t index) {
  const bool async_generator = (code_.flags & 0x200) != 0;
  const auto finish = [&](const std::string& text, const std::string& iterator) {
    int32_t end = -1;
    const bool old = version_ < 311 && static_cast<size_t>(index) + 2 < code_.instructions.size() &&
                     code_.instructions[static_cast<size_t>(index) + 2].op == Op::YIELD_FROM;
    if (old) {
      end = index + 3;
    } else if (!sends_in_loop(index + 1, &end)) {
      push_done(iterator);  // code that others made goes on with it elsewhere
      return;
    }
    push_done(text);
    if (version_ >= 312) {
      if (code_.instructions[static_cast<size_t>(end)].op != Op::END_SEND) throw Unsupported("SEND that does not lead to END_SEND");
      ++end;
    }
    next_ = end;
    // The loop lies between; its blocks are not entered.
    if (!old) go_to(end);
  };
  switch (in.op) {
    case Op::GET_AWAITABLE: {
      const Expr value = pop_value();
      finish("await " + operand(value), shared_.helper("awaited") + "(" + value.text + ")");
      return true;
    }
    case Op::GET_ANEXT:
      settle();
      finish("await " + shared_.helper("anext") + "(" + value_at(0).text + ")",
             shared_.helper("awaited") + "(" + shared_.helper("anext") + "(" + value_at(0).text + "))");
      return true;
    case Op::GET_YIELD_FROM_ITER: {
      if (async_generator) throw Unsupported("yield from in an asynchronous generator");
      const Expr value = pop_value();
      finish("yield from " + operand(value), shared_.helper("yielded_from") + "(" + value.text + ")");
      return true;
    }
    case Op::SEND:
    case Op::YIELD_FROM: {  // entered in the middle: otherwise what stands in front has gone past it
      int32_t end = index + 1;
      if (in.op == Op::SEND && !sends_in_loop(index - 1, &end)) {
        send_once(in.target, index + 1);
        return true;
      }
      delegate("send", end);
      return true;
    }
    case Op::GET_AITER: {
      const Expr value = pop_value();
      push_call("aiter", value.text);
      return true;
    }
    case Op::END_ASYNC_FOR:
      settle();
      if (version_ >= 311) {
        statement(shared_.helper("stop_async") + "(" + value_at(0).text + ")");
        drop(2);
      } else {
        statement(shared_.helper("stop_async") + "(" + value_at(1).text + ")");
        drop(7);
        --level_;
      }
      return true;
    case Op::YIELD_VALUE: {
      int32_t end = -1;
      if (version_ >= 311 && index >= 2 && sends_in_loop(index - 2, &end)) {
        delegate("yield", end);
        return true;
      }
      const Expr value = pop_value();
      push_done("yield " + operand(value));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace pellucid::decompile::block
