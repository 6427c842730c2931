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
  for (uint32_t i = 0; i < count; ++i) {
    const Kind kind = at(0).slot.kind;
    arguments.insert(arguments.begin(), kind == Kind::kClassBody || kind == Kind::kBuildClass ? pop() : pop_value());
  }
  Expr callee = pop();
  if (null_slot) {
    Expr below = pop();
    if (callee.slot.kind == Kind::kNull) {
      callee = below;
    } else if (below.slot.kind != Kind::kNull) {
      arguments.insert(arguments.begin(), callee);
      callee = below;
    }
  }
  const size_t named =
      keyword_names == nullptr ? 0 : static_cast<size_t>(PyTuple_Check(keyword_names) ? PyTuple_GET_SIZE(keyword_names) : 0);
  if (named > arguments.size()) throw Unsupported("more names than arguments");
  std::string text;
  const bool is_class = callee.slot.kind == Kind::kBuildClass && arguments.size() >= 2 && arguments[0].slot.kind == Kind::kClassBody;
  int depth = callee.depth;
  const size_t positional = arguments.size() - named;
  for (size_t i = is_class ? 2 : 0; i < arguments.size(); ++i) {
    if (arguments[i].slot.kind != Kind::kValue) {
      stack_.push_back(arguments[i]);
      arguments[i] = pop_value();
    }
    if (!text.empty()) text += ", ";
    depth = std::max(depth, arguments[i].depth + 1);
    if (i < positional) {
      text += arguments[i].text;
    } else {
      const std::string key = utf8(PyTuple_GET_ITEM(keyword_names, static_cast<Py_ssize_t>(i - positional)));
      text += writable(key) ? key + "=" + arguments[i].text : "**{" + quoted_name(key) + ": " + arguments[i].text + "}";
    }
  }
  if (is_class) {
    make_class_statement(arguments[0], class_name_of(arguments[0].slot.extra), text);
    return;
  }
  if (callee.slot.kind != Kind::kValue) {
    stack_.push_back(callee);
    callee = pop_value();
  }
  push(value_expr(operand(callee) + "(" + text + ")", true, false, depth));
}

void BlockPrinter::call_star(bool keywords) {
  const Expr named = keywords ? pop_value() : Expr();
  const Expr arguments = at(0).slot.kind == Kind::kClassBases ? pop() : pop_value();
  Expr callee = pop();
  if (version_ >= 311) {
    Expr below = pop();
    if (callee.slot.kind == Kind::kNull) std::swap(callee, below);
  }
  std::string text = "*" + operand(arguments);
  if (keywords) text += ", **" + operand(named);
  if (callee.slot.kind == Kind::kBuildClass && arguments.slot.kind == Kind::kClassBases) {
    make_class_statement(arguments, class_name_of(arguments.slot.extra), text);
    return;
  }
  if (callee.slot.kind != Kind::kValue) {
    stack_.push_back(callee);
    callee = pop_value();
  }
  push(value_expr(operand(callee) + "(" + text + ")", true, false, std::max(arguments.depth, named.depth) + 1));
}

std::vector<std::string> BlockPrinter::free_names(PyObject* code, const Expr* cells) const {
  bytecode::Code nested;
  if (!bytecode::decode(code, nested)) throw PythonError();
  size_t wanted = 0;
  for (const bytecode::LocalKind kind : nested.localsplus_kinds) wanted += kind == bytecode::LocalKind::kFree;
  if (cells == nullptr) return {};
  const std::vector<std::string> names = unit_.cells(cells->slot.extra).names;
  if (names.size() != wanted) throw Unsupported("a closure of another length");
  return names;
}

void BlockPrinter::make_function(int32_t index, uint32_t flags) {
  const std::string qualname = version_ < 311 ? pop_value().text : "None";
  Expr code_value = pop();
  PyObject* code = code_value.slot.kind == Kind::kCode ? code_constant(code_value.slot.extra) : nullptr;
  if (code == nullptr) {
    stack_.push_back(code_value);
    code_value = pop_value();
  }
  std::string defaults, keyword_defaults, annotations;
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
  const size_t given = has_cells && known_cells ? unit_.cells(cells.slot.extra).names.size() : 0;
  if (code == nullptr || !known_cells || given != wanted) {  // made by a compiler of others: what it is shows at run time
    if (has_cells) {
      stack_.push_back(cells);
      cells = pop_value();
    }
    settle();
    const std::string text = code == nullptr ? code_value.text : shared_.literal(code);
    const auto or_none = [](const std::string& one) { return one.empty() ? std::string("None") : one; };
    push_done(shared_.helper("function") + "(" + shared_.helper("globals") + "(), " + or_none(defaults) + ", " + or_none(keyword_defaults) +
              ", " + or_none(annotations) + ", " + or_none(cells.text) + ", " + text + ", " + qualname + ")");
    return;
  }
  const std::vector<std::string> free = free_names(code, has_cells ? &cells : nullptr);
  if (is_class_body(nested)) {
    unit_.keep_class(index, code, free);
    push_kind(Kind::kClassBody, index);
    return;
  }
  settle();
  // What was taken off is evaluated before the function is there.
  const auto held = [&](std::string& text) {
    if (text.empty()) return;
    const std::string name = fresh();
    statement(name + " = " + text);
    text = name;
  };
  held(defaults);
  held(keyword_defaults);
  held(annotations);
  const std::string printed = unit_.temporary("f" + std::to_string(shared_.next_number()));
  UnitPrinter inner(shared_, &unit_.scope(), code, free);
  const std::vector<Line> body = inner.body();
  unit_.borrow(inner.lent());
  statement(inner.keyword() + " " + printed + "(" + inner.parameters() + "):");
  for (const Line& line : body) out_.lines.push_back({indent_ + 2 + line.indent, line.text});
  statement(shared_.helper("named") + "(" + printed + ", " + quoted(nested.name.get()) + ", " + quoted(nested.qualname.get()) + ")");
  if (has_cells && !unit_.cells(cells.slot.extra).own.empty()) {
    std::string names, values;
    for (const std::string& name : unit_.cells(cells.slot.extra).own) {
      names += "'" + name + "', ";
      values += name + ", ";
    }
    statement(printed + " = " + shared_.helper("with_cells") + "(" + printed + ", (" + names + "), (" + values + "))");
  }
  if (!defaults.empty()) statement(printed + ".__defaults__ = " + defaults);
  if (!keyword_defaults.empty()) statement(printed + ".__kwdefaults__ = " + keyword_defaults);
  if (!annotations.empty()) statement(printed + ".__annotations__ = " + shared_.helper("annotations") + "(" + annotations + ")");
  push(value_expr(printed, true, true));
  // A loop may make another one before this one is used.
  const std::string made = fresh();
  statement(made + " = " + printed);
  at(0).text = made;
}

// The name that is loaded behind the function of a class body.
std::string BlockPrinter::class_name_of(int32_t index) const {
  for (auto i = static_cast<size_t>(index) + 1; i < code_.instructions.size(); ++i) {
    const Instruction& in = code_.instructions[i];
    if (in.op == Op::SET_FUNCTION_ATTRIBUTE) continue;
    if (in.op != Op::LOAD_CONST || in.arg >= code_.consts.size() || !PyUnicode_Check(code_.consts[in.arg].get())) break;
    return utf8(code_.consts[in.arg].get());
  }
  throw Unsupported("a class whose name is no constant");
}

void BlockPrinter::make_class_statement(const Expr& body, const std::string& class_name, const std::string& bases) {
  const auto& [code, free] = unit_.kept_class(body.slot.extra);
  if (!writable(class_name)) throw Unsupported("a class whose name is no identifier");
  settle();
  UnitPrinter inner(shared_, &unit_.scope(), code, free);
  const std::vector<Line> lines = inner.body();
  unit_.borrow(inner.lent());
  statement("class " + class_name + (bases.empty() ? "" : "(" + bases + ")") + ":");
  for (const Line& line : lines) out_.lines.push_back({indent_ + 2 + line.indent, line.text});
  if (unit_.scope().type == Scope::kFunction && !unit_.is_own_name(class_name)) unit_.use_class_name(class_name);
  const std::string made = fresh();
  statement(made + " = " + class_name);
  push(value_expr(made, true, true));
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
      if (in.op == Op::SEND && !sends_in_loop(index - 1, &end)) throw Unsupported("SEND outside of its loop");
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
