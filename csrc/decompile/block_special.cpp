// Block form: exceptions, context managers, imports, patterns, and the rest of what has no operator or statement of its own.
#include <algorithm>

#include "bytecode/effects.h"
#include "decompile/block_printer.h"

namespace pellucid::decompile::block {

using bytecode::Instruction;
using bytecode::Op;

bool BlockPrinter::step_exceptions(const Instruction& in, int32_t index) {
  switch (in.op) {
    case Op::RAISE_VARARGS: {
      if (in.arg > 2) throw Unsupported("an unknown RAISE_VARARGS");
      const Expr cause = in.arg == 2 ? pop_value() : Expr();
      const Expr error = in.arg >= 1 ? pop_value() : Expr();
      leave_with(in.arg == 0 ? "raise" : "raise " + error.text + (in.arg == 2 ? " from " + cause.text : ""));
      return true;
    }
    case Op::RERAISE:
      leave_with(shared_.helper("reraise") + "(" + pop_value().text + ")");
      return true;
    case Op::PUSH_EXC_INFO: {
      // Not where a handler begins: entered by raising the exception and catching it again, in a block that does nothing else.
      settle();
      if (index != instance_.start) {
        go_to(index);
        return true;
      }
      const Expr error = pop_value();
      Instance inside;
      inside.level = level_ + 1;
      inside.depths = depths_;
      for (const Expr& expr : stack_) inside.stack.push_back(expr.slot);
      inside.stack.push_back({Kind::kSaved, 0});
      inside.stack.push_back({Kind::kValue, 0});
      inside.start = index + 1;
      const std::string held = fresh();
      statement(held + " = " + error.text);
      go_home();
      out_.handler = unit_.instance(inside);
      out_.handler_slot = static_cast<int>(stack_.size()) + 1;
      out_.handler_twice = false;
      // go_home() has let go of the temporary; it is the exception that is passed on.
      out_.lines.pop_back();
      leave_with(shared_.helper("reraise") + "(" + held + ")");
      return true;
    }
    case Op::POP_EXCEPT:
      settle();
      // Where none is being handled this puts back what is there, except in code that never runs: rows of code made by compilers cover
      // instructions in front of the handler that they belong to.
      for (int i = 0; i < (version_ >= 311 ? 1 : 3); ++i) pop();
      level_ = std::max(level_ - 1, 0);
      return true;
    case Op::CHECK_EXC_MATCH: {
      const Expr kinds = pop_value();
      settle();
      push_call("matches", value_at(0).text + ", " + kinds.text);
      return true;
    }
    case Op::JUMP_IF_NOT_EXC_MATCH: {
      const Expr kinds = pop_value(), error = pop_value();
      fork(shared_.helper("matches") + "(" + error.text + ", " + kinds.text + ")", index + 1, in.target);
      return true;
    }
    case Op::CHECK_EG_MATCH: {
      const Expr kinds = pop_value(), error = pop_value();
      settle();
      const std::string rest = fresh(), part = fresh();
      statement(rest + ", " + part + " = " + shared_.helper("group_matches") + "(" + error.text + ", " + kinds.text + ")");
      push(value_expr(rest, true, true));
      push(value_expr(part, true, true));
      return true;
    }
    case Op::PREP_RERAISE_STAR: {
      const Expr raised = pop_value(), original = pop_value();
      push_call("reraise_star", original.text + ", " + raised.text);
      return true;
    }
    case Op::WITH_EXCEPT_START: {
      settle();
      const Expr error = value_at(version_ >= 311 ? 0 : 1), exit = value_at(version_ >= 311 ? 3 : 6);
      push_call("leave", exit.text + ", " + error.text);
      return true;
    }
    case Op::BEFORE_WITH:
    case Op::SETUP_WITH:
    case Op::BEFORE_ASYNC_WITH: {
      const Expr manager = pop_value();
      settle();
      const std::string exit = fresh(), value = fresh();
      const char* helper = in.op == Op::BEFORE_ASYNC_WITH ? "enter_async" : "enter";
      statement(exit + ", " + value + " = " + shared_.helper(helper) + "(" + manager.text + ")");
      push(value_expr(exit, true, true));
      if (in.op == Op::SETUP_WITH) note_depth(code_, index, stack_.size(), &depths_);
      push(value_expr(value, true, true));
      return true;
    }
    case Op::LOAD_ASSERTION_ERROR:
      push(value_expr(shared_.helper("AssertionError"), true, true));
      return true;
    case Op::BEGIN_FINALLY:
      for (int i = 0; i < 6; ++i) push_kind(Kind::kNoFinally, 0);
      return true;
    case Op::CALL_FINALLY:
      settle();
      for (int i = 0; i < 6; ++i) push_kind(Kind::kReturnTo, index + 1);
      go_to(in.target);
      return true;
    case Op::END_FINALLY:
      settle();
      end_finally(index);
      return true;
    case Op::POP_FINALLY:
      settle();
      pop_finally(in.arg != 0);
      return true;
    case Op::WITH_CLEANUP_START:
      with_cleanup(index);
      return true;
    default:
      return false;
  }
}

bool BlockPrinter::step_imports(const Instruction& in) {
  switch (in.op) {
    case Op::IMPORT_NAME: {
      const Expr names = pop_value(), level = pop_value();
      const bool function = unit_.scope().type == Scope::kFunction;
      push(value_expr(shared_.helper("builtins") + ".__import__(" + quoted_name(name(in.arg)) + ", " + shared_.helper("globals") + "(), " +
                          (function ? "None" : shared_.helper("locals") + "()") + ", " + names.text + ", " + level.text + ")",
                      true, false));
      return true;
    }
    case Op::IMPORT_FROM:
      settle();
      push_call("import_from", value_at(0).text + ", " + quoted_name(name(in.arg)));
      return true;
    case Op::IMPORT_STAR: {
      const Expr module = pop_value();
      act(shared_.helper("import_star") + "(" + module.text + ", " + shared_.helper("locals") + "())");
      return true;
    }
    case Op::SETUP_ANNOTATIONS:
      act(shared_.helper("setup_annotations") + "(" + shared_.helper("locals") + "())");
      return true;
    case Op::LOAD_BUILD_CLASS:
      push(value_expr(shared_.helper("builtins") + ".__build_class__", true, true));
      return true;
    case Op::PRINT_EXPR: {
      const Expr value = pop_value();
      act(shared_.helper("show") + "(" + value.text + ")");
      return true;
    }
    case Op::CALL_INTRINSIC_1:
      intrinsic(in.arg);
      return true;
    case Op::CALL_INTRINSIC_2:
      intrinsic_2(in.arg);
      return true;
    default:
      return false;
  }
}

void BlockPrinter::intrinsic(uint32_t which) {
  const Expr value = pop_value();
  switch (which) {
    case 1:
      act(shared_.helper("show") + "(" + value.text + ")");
      push(value_expr("None", true, true));
      return;
    case 2:
      act(shared_.helper("import_star") + "(" + value.text + ", " + shared_.helper("locals") + "())");
      push(value_expr("None", true, true));
      return;
    case 3:  // StopIteration that leaves a generator: what is compiled from the text does that too
    case 4:  // the value of an asynchronous generator: likewise
      push(value);
      return;
    case 5:
      push(value_expr("+" + operand(value), false, false, value.depth + 1));
      return;
    case 6:
      push_call("tuple", value.text);
      return;
    case 7:
    case 8:
    case 9:
      push_call("type_variable", std::string(which == 7 ? "'TypeVar', " : which == 8 ? "'ParamSpec', " : "'TypeVarTuple', ") + value.text);
      return;
    case 10:
      push_call("generic", value.text);
      return;
    case 11:
      push_call("type_alias", value.text);
      return;
    default:
      throw Unsupported("an unknown CALL_INTRINSIC_1");
  }
}

void BlockPrinter::intrinsic_2(uint32_t which) {
  const Expr second = pop_value(), first = pop_value();
  switch (which) {
    case 1:
      push_call("reraise_star", first.text + ", " + second.text);
      return;
    case 2:
    case 3:
      push_call("type_variable", "'TypeVar', " + first.text + ", " + second.text);
      return;
    case 4:
      push_call("with_type_parameters", first.text + ", " + second.text);
      return;
    default:
      throw Unsupported("an unknown CALL_INTRINSIC_2");
  }
}

bool BlockPrinter::step_patterns(const Instruction& in) {
  switch (in.op) {
    case Op::GET_LEN:
      settle();
      push_call("len", value_at(0).text);
      return true;
    case Op::MATCH_SEQUENCE:
      settle();
      push_call("is_sequence", value_at(0).text);
      return true;
    case Op::MATCH_MAPPING:
      settle();
      push_call("is_mapping", value_at(0).text);
      return true;
    case Op::MATCH_KEYS: {
      settle();
      push_done(shared_.helper("match_keys") + "(" + value_at(1).text + ", " + value_at(0).text + ")");
      if (version_ < 311) push_done(operand(at(0)) + " is not None");
      return true;
    }
    case Op::MATCH_CLASS: {
      const Expr names = pop_value(), kind = pop_value(), subject = pop_value();
      push_done(shared_.helper("match_class") + "(" + subject.text + ", " + kind.text + ", " + std::to_string(in.arg) + ", " + names.text +
                ")");
      if (version_ < 311) push_done(operand(at(0)) + " is not None");
      return true;
    }
    case Op::COPY_DICT_WITHOUT_KEYS: {
      const Expr keys = pop_value();
      settle();
      push_call("without_keys", value_at(0).text + ", " + keys.text);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace pellucid::decompile::block
