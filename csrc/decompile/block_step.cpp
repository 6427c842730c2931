// What each instruction becomes in the block form. Exceptions, imports and patterns are in block_special.cpp; calls, functions, classes and
// what suspends a frame in block_calls.cpp.
#include <algorithm>

#include "bytecode/effects.h"
#include "bytecode/neutral_code.h"
#include "bytecode/tables.h"
#include "decompile/block_printer.h"

namespace pellucid::decompile::block {

using bytecode::Instruction;
using bytecode::Op;

void BlockPrinter::step(int32_t index) {
  const Instruction& in = code_.instructions[static_cast<size_t>(index)];
  if (step_stack(in, index) || step_variables(in, index) || step_operators(in) || step_displays(in) || step_calls(in, index) ||
      step_jumps(in, index) || step_exceptions(in, index) || step_suspension(in, index) || step_imports(in) || step_patterns(in)) {
    return;
  }
  throw Unsupported(std::string("the block form has no text for ") + bytecode::op_name(in.op));
}

bool BlockPrinter::step_stack(const Instruction& in, int32_t index) {
  switch (in.op) {
    case Op::NOP:
    case Op::RESUME:
    case Op::PRECALL:
    case Op::CACHE:
    case Op::COPY_FREE_VARS:
    case Op::GEN_START:
    case Op::POP_BLOCK:
    case Op::ASYNC_GEN_WRAP:
      return true;
    case Op::SETUP_FINALLY:
    case Op::SETUP_ASYNC_WITH:
      note_depth(code_, index, stack_.size() - (in.op == Op::SETUP_ASYNC_WITH ? 1 : 0), &depths_);
      return true;
    case Op::MAKE_CELL:
      if (holds_cell(in.arg)) act(cell_variable(in.arg) + " = " + shared_.helper("CellType") + "()");
      return true;
    case Op::RETURN_GENERATOR:
      push(value_expr("None", true, true));
      return true;
    case Op::PUSH_NULL:
      push_kind(Kind::kNull, 0);
      return true;
    case Op::POP_TOP: {
      const Expr top = pop();
      if (!top.pure && top.slot.kind == Kind::kValue) {
        settle();
        statement(top.text);
      }
      return true;
    }
    case Op::END_FOR:
      drop(version_ == 312 ? 2 : 1);
      return true;
    case Op::END_SEND:
      stack_.erase(stack_.end() - 2);
      return true;
    case Op::COPY:
      if (in.arg == 0) throw Unsupported("COPY 0");
      copy(in.arg - 1);
      return true;
    case Op::SWAP:
      if (in.arg == 0) throw Unsupported("SWAP 0");
      swap(in.arg - 1);
      return true;
    case Op::DUP_TOP:
      copy(0);
      return true;
    case Op::DUP_TOP_TWO:
      copy(1);
      copy(1);
      return true;
    case Op::ROT_TWO:
      rotate(2);
      return true;
    case Op::ROT_THREE:
      rotate(3);
      return true;
    case Op::ROT_FOUR:
      rotate(4);
      return true;
    case Op::ROT_N:
      rotate(in.arg);
      return true;
    case Op::LOAD_CONST: {
      if (in.arg >= code_.consts.size()) throw Unsupported("a constant that does not exist");
      PyObject* value = code_.consts[in.arg].get();
      if (bytecode::is_code(value)) {
        push_kind(Kind::kCode, static_cast<int32_t>(in.arg));
        return true;
      }
      Expr made = value_expr("", !PyLong_Check(value) && !PyFloat_Check(value), true);
      made.constant = value;
      made.text = shared_.literal(value);
      push(made);
      return true;
    }
    default:
      return false;
  }
}

// A name that is looked up in a namespace on the stack first; `variable` is where it is otherwise.
void BlockPrinter::load_from_dict(const std::string& variable, const std::string& name) {
  const bool own = at(0).slot.kind == Kind::kLocals;
  const Expr space = pop_value();
  if (own && variable == name) {  // as class bodies do
    push(value_expr(variable, true, false));
  } else {
    push_call("load_from", space.text + ", " + quoted_name(name) + ", lambda: " + variable);
  }
}

bool BlockPrinter::step_variables(const Instruction& in, int index) {
  const auto slot_name = [&](uint32_t slot) {
    slot_kind(slot);
    return slot_text(slot);
  };
  switch (in.op) {
    case Op::LOAD_FAST:
    case Op::LOAD_FAST_CHECK:
    case Op::LOAD_CLOSURE:
      if (in.op == Op::LOAD_CLOSURE) {
        slot_kind(in.arg);
        push_kind(Kind::kClosure, static_cast<int32_t>(in.arg));
      } else {
        load_slot(in.arg);
      }
      return true;
    case Op::LOAD_FAST_LOAD_FAST:
      load_slot(in.arg >> 4);
      load_slot(in.arg & 15);
      return true;
    case Op::STORE_FAST_LOAD_FAST:
      store(slot_name(in.arg >> 4), false);
      load_slot(in.arg & 15);
      return true;
    case Op::STORE_FAST_STORE_FAST:
      store(slot_name(in.arg >> 4), false);
      store(slot_name(in.arg & 15), false);
      return true;
    case Op::STORE_FAST:
    case Op::STORE_DEREF:
      store(slot_name(in.arg), false);
      return true;
    case Op::DELETE_FAST:
    case Op::DELETE_DEREF:
      act("del " + slot_name(in.arg));
      return true;
    case Op::LOAD_FAST_AND_CLEAR:
      // As long as this lies on the stack, the name stands for another variable.
      slot_kind(in.arg);
      settle();
      push_kind(Kind::kShadow, shadow_number(code_, index));
      if (may_be_empty(code_, in.arg)) {
        statement(cell_variable(in.arg) + " = None", false);
        statement("del " + cell_variable(in.arg));
      }
      return true;
    case Op::LOAD_DEREF:
      push(value_expr(slot_name(in.arg), true, false));
      return true;
    case Op::LOAD_CLASSDEREF:
      push_kind(Kind::kLocals, 0);
      load_from_dict(slot_name(in.arg), utf8(code_.localsplus_names[in.arg].get()));
      return true;
    case Op::LOAD_FROM_DICT_OR_DEREF:
    case Op::LOAD_FROM_DICT_OR_GLOBALS: {
      const std::string plain = in.op == Op::LOAD_FROM_DICT_OR_DEREF ? slot_name(in.arg) : loaded(name(in.arg), /*global=*/true);
      load_from_dict(plain, in.op == Op::LOAD_FROM_DICT_OR_DEREF ? utf8(code_.localsplus_names[in.arg].get()) : name(in.arg));
      return true;
    }
    case Op::LOAD_LOCALS:
      push_kind(Kind::kLocals, 0);
      return true;
    case Op::LOAD_NAME:
      push(value_expr(loaded(name(in.arg), false), true, false));
      return true;
    case Op::STORE_NAME:
      if (name(in.arg) == "__classcell__" && at(0).slot.kind != Kind::kValue) {
        drop(1);  // the class statement around stores it
        return true;
      }
      store(variable(name(in.arg), false, true));
      return true;
    case Op::DELETE_NAME:
      remove(name(in.arg), false);
      return true;
    case Op::LOAD_GLOBAL: {
      const bool null = version_ >= 311 && (in.arg & 1) != 0;
      if (null && version_ < 313) push_kind(Kind::kNull, 0);
      push(value_expr(loaded(name(version_ >= 311 ? in.arg >> 1 : in.arg), true), true, false));
      if (null && version_ >= 313) push_kind(Kind::kNull, 0);
      return true;
    }
    case Op::STORE_GLOBAL:
      store(variable(name(in.arg), true, true));
      return true;
    case Op::DELETE_GLOBAL:
      remove(name(in.arg), true);
      return true;
    case Op::LOAD_METHOD:
    case Op::LOAD_ATTR: {
      const bool method = in.op == Op::LOAD_METHOD || (version_ >= 312 && (in.arg & 1) != 0);
      const std::string wanted = name(in.op == Op::LOAD_ATTR && version_ >= 312 ? in.arg >> 1 : in.arg);
      const Expr owner = pop_value();
      if (method && version_ < 313) push_kind(Kind::kNull, 0);
      push(value_expr(attribute(owner, wanted), true, false, owner.depth));
      if (method && version_ >= 313) push_kind(Kind::kNull, 0);
      return true;
    }
    case Op::LOAD_SUPER_ATTR: {
      const Expr self = pop_value(), kind = pop_value(), callee = pop_value();
      if ((in.arg & 1) != 0 && version_ < 313) push_kind(Kind::kNull, 0);
      Expr owner = value_expr(operand(callee) + "(" + kind.text + ", " + self.text + ")", true, false);
      push(value_expr(attribute(owner, name(in.arg >> 2)), true, false));
      if ((in.arg & 1) != 0 && version_ >= 313) push_kind(Kind::kNull, 0);
      return true;
    }
    case Op::STORE_ATTR: {
      const std::string wanted = name(in.arg);
      const Expr owner = pop_value(), value = pop_value();
      if (writable(wanted)) {
        act(operand(owner) + "." + wanted + " = " + value.text);
      } else {
        settle();
        const std::string first = fresh();
        statement(first + " = " + value.text);
        statement(shared_.helper("setattr") + "(" + owner.text + ", " + quoted_name(wanted) + ", " + first + ")");
      }
      return true;
    }
    case Op::DELETE_ATTR: {
      const std::string wanted = name(in.arg);
      const Expr owner = pop_value();
      act(writable(wanted) ? "del " + operand(owner) + "." + wanted
                           : shared_.helper("delattr") + "(" + owner.text + ", " + quoted_name(wanted) + ")");
      return true;
    }
    default:
      return false;
  }
}

bool BlockPrinter::step_operators(const Instruction& in) {
  bool in_place = false;
  if (const char* text = old_binary_operator(in.op, &in_place)) {
    binary(text, in_place);
    return true;
  }
  const auto unary = [&](const char* text) {
    const Expr value = pop_value();
    push(value_expr(std::string(text) + operand(value), false, false, value.depth + 1));
  };
  switch (in.op) {
    case Op::BINARY_OP: {
      const char* text = binary_operator(in.arg, &in_place);
      if (text == nullptr) throw Unsupported("an unknown BINARY_OP");
      binary(text, in_place);
      return true;
    }
    case Op::UNARY_POSITIVE:
      unary("+");
      return true;
    case Op::UNARY_NEGATIVE:
      unary("-");
      return true;
    case Op::UNARY_INVERT:
      unary("~");
      return true;
    case Op::UNARY_NOT:
      unary("not ");
      return true;
    case Op::TO_BOOL:
      unary("not not ");
      return true;
    case Op::COMPARE_OP: {
      const uint32_t which = version_ == 312 ? in.arg >> 4 : version_ >= 313 ? in.arg >> 5 : in.arg;
      if (const char* text = compare_operator(which)) {
        binary(text, false);
        if (version_ >= 313 && (in.arg & 16) != 0) unary("not not ");
        return true;
      }
      if (version_ != 308 || which > 10) throw Unsupported("an unknown COMPARE_OP");
      if (which == 10) {
        const Expr kinds = pop_value(), error = pop_value();
        push_call("matches", error.text + ", " + kinds.text);
        return true;
      }
      constexpr const char* kOthers[] = {"in", "not in", "is", "is not"};
      binary(kOthers[which - 6], false);
      return true;
    }
    case Op::IS_OP:
      binary(in.arg != 0 ? "is not" : "is", false);
      return true;
    case Op::CONTAINS_OP:
      binary(in.arg != 0 ? "not in" : "in", false);
      return true;
    case Op::BINARY_SUBSCR: {
      const Expr key = pop_value(), owner = pop_value();
      push(value_expr(operand(owner) + "[" + key.text + "]", true, false, std::max(owner.depth, key.depth + 1)));
      return true;
    }
    case Op::STORE_SUBSCR: {
      const Expr key = pop_value(), owner = pop_value(), value = pop_value();
      act(operand(owner) + "[" + key.text + "] = " + value.text);
      return true;
    }
    case Op::DELETE_SUBSCR: {
      const Expr key = pop_value(), owner = pop_value();
      act("del " + operand(owner) + "[" + key.text + "]");
      return true;
    }
    case Op::BINARY_SLICE: {
      const Expr end = pop_value(), start = pop_value(), owner = pop_value();
      push(value_expr(operand(owner) + "[" + operand(start) + ":" + operand(end) + "]", true, false, owner.depth + 1));
      return true;
    }
    case Op::STORE_SLICE: {
      const Expr end = pop_value(), start = pop_value(), owner = pop_value(), value = pop_value();
      act(operand(owner) + "[" + operand(start) + ":" + operand(end) + "] = " + value.text);
      return true;
    }
    default:
      return false;
  }
}

// The pieces are in temporaries or names first: a literal inside of a formatted string may not hold every character.
void BlockPrinter::format(bool has_spec, uint32_t conversion) {
  if (has_spec && conversion != 0) settle();  // the conversion comes behind both
  Expr spec;
  if (has_spec) spec = pop_value();
  const Expr value = pop_value();
  std::string text = value.text;
  if (conversion != 0) text = shared_.helper("convert") + "(" + text + ", " + std::to_string(conversion) + ")";
  push_call("format", text + (has_spec ? ", " + spec.text : ""));
}

void BlockPrinter::unpacked_display(const char* open, const char* close, uint32_t count, const char* star) {
  std::vector<Expr> items;
  for (uint32_t i = 0; i < count; ++i) items.insert(items.begin(), pop_value());
  std::string text = open;
  for (const Expr& item : items) text += star + operand(item) + ", ";
  push(value_expr(text + close, true, false, 1));
}

bool BlockPrinter::step_displays(const Instruction& in) {
  switch (in.op) {
    case Op::BUILD_TUPLE:
      display("(", ")", in.arg, true);
      return true;
    case Op::BUILD_LIST:
      display("[", "]", in.arg, false);
      return true;
    case Op::BUILD_SET:
      if (in.arg == 0) {
        push_call("set", "");
      } else {
        display("{", "}", in.arg, false);
      }
      return true;
    case Op::BUILD_MAP:
      build_map(in.arg);
      return true;
    case Op::BUILD_CONST_KEY_MAP: {
      const Expr given = pop_value();
      PyObject* keys = given.constant;
      std::vector<Expr> values;
      settle_for(in.arg);
      for (uint32_t i = 0; i < in.arg; ++i) values.insert(values.begin(), pop_value());
      if (keys == nullptr || !PyTuple_Check(keys) || PyTuple_GET_SIZE(keys) != static_cast<Py_ssize_t>(in.arg)) {  // made by others
        std::string all;
        for (const Expr& value : values) all += value.text + ", ";
        push_call("with_keys", "(" + all + "), " + given.text);
        return true;
      }
      const bool many = in.arg > 16;
      std::string text = many ? shared_.helper("map_of") + "((" : "{";
      for (uint32_t i = 0; i < in.arg; ++i) {
        text += (i > 0 ? ", " : "") + shared_.literal(PyTuple_GET_ITEM(keys, static_cast<Py_ssize_t>(i))) + (many ? ", " : ": ") +
                values[i].text;
      }
      push(value_expr(text + (many ? ",))" : "}"), true, false, 1));
      return true;
    }
    case Op::BUILD_STRING: {
      std::string text = "''.join((";
      std::vector<Expr> items;
      settle_for(in.arg);
      for (uint32_t i = 0; i < in.arg; ++i) items.insert(items.begin(), pop_value());
      for (const Expr& item : items) text += item.text + ", ";
      push(value_expr(text + "))", true, false, 1));
      return true;
    }
    case Op::BUILD_SLICE: {
      const Expr third = in.arg == 3 ? pop_value() : Expr(), second = pop_value(), first = pop_value();
      push_call("slice", first.text + ", " + second.text + (in.arg == 3 ? ", " + third.text : ""));
      return true;
    }
    case Op::BUILD_LIST_UNPACK:
      unpacked_display("[", "]", in.arg, "*");
      return true;
    case Op::BUILD_TUPLE_UNPACK:
    case Op::BUILD_TUPLE_UNPACK_WITH_CALL:
      unpacked_display("(", ")", in.arg, "*");
      return true;
    case Op::BUILD_SET_UNPACK:
      unpacked_display("{", "}", in.arg, "*");
      return true;
    case Op::BUILD_MAP_UNPACK:
      unpacked_display("{", "}", in.arg, "**");
      return true;
    case Op::BUILD_MAP_UNPACK_WITH_CALL: {
      std::vector<Expr> maps;
      for (uint32_t i = 0; i < in.arg; ++i) maps.insert(maps.begin(), pop_value());
      settle();
      for (Expr& map : maps) settle(map);
      std::string all;
      for (const Expr& map : maps) all += ", " + map.text;
      push_done(shared_.helper("merged") + "(" + value_at(1).text + all + ")");
      return true;
    }
    case Op::LIST_TO_TUPLE: {
      const Expr value = pop_value();
      push_call("tuple", value.text);
      return true;
    }
    case Op::LIST_APPEND:
      grow(in.arg, "append", false);
      return true;
    case Op::SET_ADD:
      grow(in.arg, "add", false);
      return true;
    case Op::MAP_ADD:
      grow(in.arg, "map_add", true);
      return true;
    case Op::LIST_EXTEND:
      grow(in.arg, "extend", false);
      return true;
    case Op::SET_UPDATE:
      grow(in.arg, "set_update", false);
      return true;
    case Op::DICT_UPDATE:
      grow(in.arg, "update", false);
      return true;
    case Op::DICT_MERGE: {
      const Expr value = pop_value();
      settle();
      // The function that is called: below the dictionary and the positional arguments (and on 3.13 a NULL).
      const size_t depth = in.arg + (version_ >= 313 ? 2 : 1);
      const std::string callee = depth < stack_.size() && at(depth).slot.kind == Kind::kValue ? at(depth).text : "None";
      statement(shared_.helper("merge") + "(" + value_at(in.arg - 1).text + ", " + value.text + ", " + callee + ")");
      return true;
    }
    case Op::UNPACK_SEQUENCE:
      unpack(in.arg, false, 0);
      return true;
    case Op::UNPACK_EX:
      unpack(in.arg & 0xff, true, in.arg >> 8);
      return true;
    case Op::FORMAT_VALUE:
      format((in.arg & 4) != 0, in.arg & 3);
      return true;
    case Op::FORMAT_SIMPLE:
      format(false, 0);
      return true;
    case Op::FORMAT_WITH_SPEC:
      format(true, 0);
      return true;
    case Op::CONVERT_VALUE: {
      const Expr value = pop_value();
      push_call("convert", value.text + ", " + std::to_string(in.arg));
      return true;
    }
    default:
      return false;
  }
}

bool BlockPrinter::step_jumps(const Instruction& in, int32_t index) {
  const int32_t next = index + 1;
  switch (in.op) {
    case Op::JUMP_FORWARD:
    case Op::JUMP_BACKWARD:
    case Op::JUMP_BACKWARD_NO_INTERRUPT:
    case Op::JUMP_ABSOLUTE:
      settle();
      go_to(in.target);
      return true;
    case Op::POP_JUMP_IF_TRUE:
    case Op::POP_JUMP_FORWARD_IF_TRUE:
    case Op::POP_JUMP_BACKWARD_IF_TRUE:
      fork(pop_value().text, in.target, next);
      return true;
    case Op::POP_JUMP_IF_FALSE:
    case Op::POP_JUMP_FORWARD_IF_FALSE:
    case Op::POP_JUMP_BACKWARD_IF_FALSE:
      fork(pop_value().text, next, in.target);
      return true;
    case Op::POP_JUMP_IF_NONE:
    case Op::POP_JUMP_FORWARD_IF_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NONE:
      fork(operand(pop_value()) + " is None", in.target, next);
      return true;
    case Op::POP_JUMP_IF_NOT_NONE:
    case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NOT_NONE:
      fork(operand(pop_value()) + " is None", next, in.target);
      return true;
    case Op::JUMP_IF_TRUE_OR_POP:
    case Op::JUMP_IF_FALSE_OR_POP: {
      settle();
      const bool when = in.op == Op::JUMP_IF_TRUE_OR_POP;
      const Expr top = at(0);
      statement("if " + std::string(when ? "" : "not ") + top.text + ":");
      const std::vector<Expr> before = stack_;
      indent_ += 2;
      go_to(in.target);
      indent_ -= 2;
      statement("else:", false);
      stack_ = before;
      drop(1);
      indent_ += 2;
      go_to(next);
      indent_ -= 2;
      return true;
    }
    case Op::GET_ITER: {
      const Expr value = pop_value();
      push_call("iter", value.text);
      return true;
    }
    case Op::FOR_ITER: {
      settle();
      const std::string item = fresh();
      statement(item + " = " + shared_.helper("next") + "(" + value_at(0).text + ", " + shared_.helper("NULL") + ")");
      statement("if " + item + " is " + shared_.helper("NULL") + ":", false);
      const std::vector<Expr> before = stack_;
      indent_ += 2;
      if (version_ >= 312) {
        push_kind(Kind::kNull, 0);
      } else {
        drop(1);
      }
      go_to(in.target);
      indent_ -= 2;
      statement("else:", false);
      stack_ = before;
      push(value_expr(item, true, true));
      indent_ += 2;
      go_to(next);
      indent_ -= 2;
      return true;
    }
    case Op::RETURN_VALUE:
    case Op::RETURN_CONST: {
      std::string text = "None";
      bool raises = false;
      if (in.op == Op::RETURN_CONST) {
        if (in.arg >= code_.consts.size()) throw Unsupported("a constant that does not exist");
        text = shared_.literal(code_.consts[in.arg].get());
      } else if (at(0).slot.kind != Kind::kValue) {
        drop(1);  // a class body returns its cell
      } else {
        const Expr value = pop_value();
        text = value.text;
        raises = !value.pure;
      }
      if ((code_.flags & 0x200) != 0 && text != "None") {  // an asynchronous generator gives nothing back
        act(text);
        text = "None";
      }
      settle();
      if (unit_.scope().type == Scope::kFunction) {
        leave_with((code_.flags & 0x200) != 0 && text == "None" ? "return" : "return " + text, raises);
      } else {
        statement(unit_.temporary("at") + " = -1", false);
        leaves_ = true;
      }
      return true;
    }
    default:
      return false;
  }
}

}  // namespace pellucid::decompile::block
