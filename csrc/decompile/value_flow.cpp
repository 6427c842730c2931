// Both sides are executed with symbols for values, from one operation to the next; there the operations and what they work on must be the
// same, and what they give gets the same symbol. Moves between the stack and variables are no operations.
#include "decompile/value_flow.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "bytecode/effects.h"
#include "bytecode/tables.h"
#include "decompile/canonical.h"
#include "decompile/flow.h"

namespace pellucid::decompile {
namespace {

using bytecode::Code;
using bytecode::Instruction;
using bytecode::Op;

size_t at(int64_t index) { return static_cast<size_t>(index); }

struct CannotTell {
  std::string why;
};

struct Value {
  enum Kind : uint8_t { kNull, kConst, kArgument, kResult, kMade } kind = kNull;
  Op op = Op::NOP;             // kMade: what built it
  int64_t number = 0;          // kArgument: which; kResult: its symbol
  PyObject* object = nullptr;  // kConst; kMade of LOAD_CLOSURE: the name
  std::vector<int> parts;      // kMade
};

struct State {
  int pc = 0;
  std::vector<int> stack;
  std::vector<int> locals;  // by slot, -1: unbound
  PyObject* keywords = nullptr;
};

struct Operation {
  Op op = Op::NOP;
  int index = 0;
  int64_t number = 0;
  PyObject* object = nullptr;  // a name, or names of keywords
  bool named = false;
  std::vector<int> operands;
  int results = 0;
  bool null_below = false, null_above = false;  // beside the result
  bool ends = false, branches = false;
  int if_true = -1, if_false = -1;  // of a branch: on the value, or on its being None
  int keep = -1;                    // the outcome (1: true) that leaves the value on the stack
};

class Side {
 public:
  explicit Side(const Code& code) : code_(code), tables_(*bytecode::tables(code.version)) {}

  Code& code() { return code_; }

  int add(Value value) {
    values_.push_back(std::move(value));
    return static_cast<int>(values_.size()) - 1;
  }
  const Value& value(int index) const { return values_[at(index)]; }

  State start() {
    split_pairs(code_);
    State state;
    state.locals.assign(code_.localsplus_names.size(), -1);
    for (int i = 0; i < code_.n_arguments(); ++i) state.locals[at(i)] = add({Value::kArgument, Op::NOP, i, nullptr, {}});
    return state;
  }

  // Variables that are no one's business but this side's.
  void own_variables(const std::set<std::string>& of_other) {
    for (const py::Ref& name : code_.localsplus_names) own_.push_back(of_other.count(text(name.get())) == 0);
  }
  static std::string text(PyObject* name) {
    const char* bytes = PyUnicode_AsUTF8(name);
    if (bytes != nullptr) return bytes;
    PyErr_Clear();
    return "";
  }

  // Goes on to the next operation.
  Operation advance(State& state, const ValueQuestions* questions) {
    for (size_t steps = 0;; ++steps) {
      if (steps > 2 * code_.instructions.size() + 10) throw CannotTell{"a loop without operations"};
      if (at(state.pc) >= code_.instructions.size()) throw CannotTell{"the end of the code"};
      const int index = state.pc;
      const Instruction& in = code_.instructions[at(index)];
      state.pc = index + 1;
      Operation made;
      made.op = in.op;
      made.index = index;
      if (!silent(state, in, questions) && operation(state, in, made)) return made;
    }
  }

  void finish(State& state, const Operation& op, const std::vector<int>& results) {
    if (op.null_below) state.stack.push_back(add({}));
    state.stack.insert(state.stack.end(), results.begin(), results.end());
    if (op.null_above) state.stack.push_back(add({}));
  }

 private:
  int pop(State& state) {
    if (state.stack.empty()) throw CannotTell{"an empty stack"};
    const int top = state.stack.back();
    state.stack.pop_back();
    return top;
  }
  std::vector<int> pop_many(State& state, size_t count) {
    if (state.stack.size() < count) throw CannotTell{"an empty stack"};
    std::vector<int> taken(state.stack.end() - static_cast<std::ptrdiff_t>(count), state.stack.end());
    state.stack.resize(state.stack.size() - count);
    return taken;
  }
  int& peek(State& state, size_t depth) {
    if (depth == 0 || state.stack.size() < depth) throw CannotTell{"an empty stack"};
    return state.stack[state.stack.size() - depth];
  }
  bool own(uint32_t slot) const { return slot < own_.size() && own_[slot]; }
  PyObject* constant(uint32_t index) const {
    if (index >= code_.consts.size()) throw CannotTell{"a constant out of range"};
    return code_.consts[index].get();
  }
  PyObject* name(uint32_t index) const {
    if (index >= code_.names.size()) throw CannotTell{"a name out of range"};
    return code_.names[index].get();
  }
  PyObject* local(uint32_t slot) const {
    if (slot >= code_.localsplus_names.size()) throw CannotTell{"a variable out of range"};
    return code_.localsplus_names[slot].get();
  }
  void push_const(State& state, PyObject* object) { state.stack.push_back(add({Value::kConst, Op::NOP, 0, object, {}})); }

  // What the compiler folds: a tuple of constants.
  int tuple(std::vector<int> parts) {
    if (!std::all_of(parts.begin(), parts.end(), [&](int part) { return value(part).kind == Value::kConst; }))
      return add({Value::kMade, Op::BUILD_TUPLE, 0, nullptr, std::move(parts)});
    py::Ref made = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(parts.size())));
    if (!made) {
      PyErr_Clear();
      throw CannotTell{"no memory"};
    }
    for (size_t i = 0; i < parts.size(); ++i)
      PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), py::Ref::share(value(parts[i]).object).release());
    kept_.push_back(std::move(made));
    return add({Value::kConst, Op::NOP, 0, kept_.back().get(), {}});
  }

  // A display of constants is an empty list that a constant tuple is added to.
  bool completes_display(State& state, const Instruction& in) {
    if (in.arg != 1 || state.stack.size() < 2) return false;
    const Value added = value(peek(state, 1));
    const int list = peek(state, 2);
    if (value(list).kind != Value::kMade || value(list).op != Op::BUILD_LIST || !value(list).parts.empty()) return false;
    if (added.kind != Value::kConst || !PyTuple_CheckExact(added.object)) return false;
    if (std::count(state.stack.begin(), state.stack.end(), list) + std::count(state.locals.begin(), state.locals.end(), list) != 1)
      return false;
    std::vector<int> parts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(added.object); ++i)
      parts.push_back(add({Value::kConst, Op::NOP, 0, PyTuple_GET_ITEM(added.object, i), {}}));
    pop_many(state, 2);
    state.stack.push_back(add({Value::kMade, Op::BUILD_LIST, 0, nullptr, std::move(parts)}));
    return true;
  }

  bool silent(State& state, const Instruction& in, const ValueQuestions* questions) {
    switch (in.op) {
      case Op::NOP:
      case Op::CACHE:
      case Op::EXTENDED_ARG:
      case Op::PRECALL:
      case Op::MAKE_CELL:
      case Op::COPY_FREE_VARS:
        return true;
      case Op::TO_BOOL:
        if (!only_tested(code_.instructions, static_cast<size_t>(&in - code_.instructions.data()))) throw CannotTell{"a value made a bool"};
        return true;
      case Op::RESUME:
        return (in.arg & 3) == 0;
      case Op::JUMP_FORWARD:
      case Op::JUMP_ABSOLUTE:
        if (in.target <= state.pc - 1) throw CannotTell{"a loop"};
        state.pc = in.target;
        return true;
      case Op::LOAD_CONST:
        push_const(state, constant(in.arg));
        return true;
      case Op::PUSH_NULL:
        state.stack.push_back(add({}));
        return true;
      case Op::LOAD_GLOBAL: {
        PyObject* object = questions != nullptr ? questions->bound(name(in.arg >> 1)) : nullptr;
        if (object == nullptr) return false;
        if ((in.arg & 1) != 0 && code_.version < 313) state.stack.push_back(add({}));
        push_const(state, object);
        if ((in.arg & 1) != 0 && code_.version >= 313) state.stack.push_back(add({}));
        return true;
      }
      case Op::LOAD_FAST:
      case Op::LOAD_FAST_CHECK: {
        if (in.arg >= state.locals.size() || state.locals[in.arg] < 0) throw CannotTell{"a variable that may be unbound"};
        state.stack.push_back(state.locals[in.arg]);
        return true;
      }
      case Op::STORE_FAST:
        if (!own(in.arg)) return false;
        state.locals[in.arg] = pop(state);
        return true;
      case Op::DELETE_FAST:
        if (!own(in.arg)) return false;
        state.locals[in.arg] = -1;
        return true;
      case Op::COPY:
        state.stack.push_back(peek(state, in.arg));
        return true;
      case Op::SWAP:
        std::swap(peek(state, in.arg), peek(state, 1));
        return true;
      case Op::POP_TOP:
        pop(state);
        return true;
      case Op::KW_NAMES:
        state.keywords = constant(in.arg);
        return true;
      case Op::BUILD_TUPLE:
        state.stack.push_back(tuple(pop_many(state, in.arg)));
        return true;
      case Op::BUILD_LIST:
      case Op::BUILD_SLICE: {
        std::vector<int> parts = pop_many(state, in.arg);
        state.stack.push_back(add({Value::kMade, in.op, 0, nullptr, std::move(parts)}));
        return true;
      }
      case Op::LOAD_CLOSURE:
        state.stack.push_back(add({Value::kMade, in.op, 0, local(in.arg), {}}));
        return true;
      case Op::LIST_EXTEND:
        return completes_display(state, in);
      default:
        return false;
    }
  }

  bool operation(State& state, const Instruction& in, Operation& made) {
    const uint32_t arg = in.arg;
    const auto load = [&](PyObject* object, bool with_null) {
      made.object = object;
      made.named = true;
      made.results = 1;
      made.null_below = with_null && code_.version < 313;
      made.null_above = with_null && code_.version >= 313;
    };
    switch (in.op) {
      case Op::LOAD_GLOBAL:
        load(name(arg >> 1), (arg & 1) != 0);
        return true;
      case Op::LOAD_METHOD:
        made.op = Op::LOAD_ATTR;
        made.operands = {pop(state)};
        load(name(arg), true);
        return true;
      case Op::LOAD_ATTR:
        made.operands = {pop(state)};
        load(name(code_.version >= 312 ? arg >> 1 : arg), code_.version >= 312 && (arg & 1) != 0);
        return true;
      case Op::CALL:
      case Op::CALL_KW: {
        if (in.op == Op::CALL_KW) state.keywords = value(pop(state)).object;
        std::vector<int> arguments = pop_many(state, arg);
        const int above = pop(state), below = pop(state);
        made.op = Op::CALL;
        made.object = std::exchange(state.keywords, nullptr);
        if (value(below).kind == Value::kNull) {
          made.operands = {above};
        } else if (value(above).kind == Value::kNull) {
          made.operands = {below};
        } else {
          made.operands = {below, above};
        }
        made.operands.insert(made.operands.end(), arguments.begin(), arguments.end());
        made.number = static_cast<int64_t>(made.operands.size());
        made.results = 1;
        return true;
      }
      case Op::BUILD_MAP: {
        std::vector<int> entries = pop_many(state, size_t{arg} * 2), keys;
        for (size_t i = 0; i < entries.size(); i += 2) keys.push_back(entries[i]);
        made.results = 1;
        made.number = arg;
        const bool constant_keys = std::all_of(keys.begin(), keys.end(), [&](int key) { return value(key).kind == Value::kConst; });
        if (!constant_keys || arg == 0) {
          made.operands = std::move(entries);
          return true;
        }
        made.op = Op::BUILD_CONST_KEY_MAP;  // as the compiler writes more than one
        made.object = value(tuple(std::move(keys))).object;
        for (size_t i = 1; i < entries.size(); i += 2) made.operands.push_back(entries[i]);
        return true;
      }
      case Op::BUILD_CONST_KEY_MAP:
        made.object = value(pop(state)).object;
        made.operands = pop_many(state, arg);
        made.number = arg;
        made.results = 1;
        return true;
      case Op::CALL_FUNCTION_EX: {
        made.operands = pop_many(state, (arg & 1) != 0 ? 2 : 1);
        const int above = pop(state), below = pop(state);
        made.operands.push_back(value(above).kind == Value::kNull ? below : above);
        made.number = arg & 1;
        made.results = 1;
        return true;
      }
      case Op::LIST_EXTEND:
      case Op::SET_UPDATE:
      case Op::DICT_UPDATE:
      case Op::DICT_MERGE:
      case Op::LIST_APPEND:
      case Op::SET_ADD: {
        const int value = pop(state);
        made.operands = {peek(state, arg), value};
        return true;
      }
      case Op::STORE_FAST: {
        made.object = local(arg);
        made.named = true;
        made.operands = {pop(state)};
        state.locals[arg] = made.operands[0];
        return true;
      }
      case Op::DELETE_FAST:
        made.object = local(arg);
        made.named = true;
        if (state.locals[arg] < 0) throw CannotTell{"a variable that may be unbound"};
        state.locals[arg] = -1;
        return true;
      case Op::RETURN_CONST:
        push_const(state, constant(arg));
        made.op = Op::RETURN_VALUE;
        [[fallthrough]];
      case Op::RETURN_VALUE:
        made.operands = {pop(state)};
        made.ends = true;
        return true;
      case Op::RAISE_VARARGS:
        made.operands = pop_many(state, arg);
        made.number = arg;
        made.ends = true;
        return true;
      default:
        break;
    }
    if (in.target >= 0) {
      branch(state, in, made);
      return true;
    }
    if (!bytecode::falls_through(in.op)) throw CannotTell{std::string("no rule for ") + bytecode::op_name(in.op)};
    const int needs = bytecode::stack_needs(tables_, in.op, arg), effect = bytecode::stack_effect(tables_, in.op, arg, false);
    made.operands = pop_many(state, at(needs));
    made.results = needs + effect;
    const int flags = tables_.info(in.op).flags;
    made.named = true;
    if ((flags & bytecode::kHasName) != 0) {
      made.object = name(arg);
    } else if ((flags & (bytecode::kHasLocal | bytecode::kHasFree)) != 0) {
      made.object = local(arg);
    } else {
      made.named = false;
      made.number = arg;
    }
    return true;
  }

  void branch(State& state, const Instruction& in, Operation& made) {
    made.branches = true;
    const auto split = [&](bool jumps_if) {
      if (in.target <= made.index) throw CannotTell{"a loop"};
      made.if_true = jumps_if ? in.target : made.index + 1;
      made.if_false = jumps_if ? made.index + 1 : in.target;
    };
    switch (in.op) {
      case Op::POP_JUMP_IF_TRUE:
      case Op::POP_JUMP_FORWARD_IF_TRUE:
        split(true);
        break;
      case Op::POP_JUMP_IF_FALSE:
      case Op::POP_JUMP_FORWARD_IF_FALSE:
        split(false);
        break;
      case Op::POP_JUMP_IF_NONE:
      case Op::POP_JUMP_FORWARD_IF_NONE:
        split(true);
        made.number = 1;
        break;
      case Op::POP_JUMP_IF_NOT_NONE:
      case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
        split(false);
        made.number = 1;
        break;
      case Op::JUMP_IF_TRUE_OR_POP:
        split(true);
        made.keep = 1;
        break;
      case Op::JUMP_IF_FALSE_OR_POP:
        split(false);
        made.keep = 0;
        break;
      default:
        throw CannotTell{std::string("no rule for ") + bytecode::op_name(in.op)};
    }
    made.op = Op::POP_JUMP_IF_TRUE;
    made.operands = {pop(state)};
  }

  Code code_;
  const bytecode::Tables& tables_;
  std::vector<Value> values_;
  std::vector<py::Ref> kept_;
  std::vector<bool> own_;
};

class Walk {
 public:
  Walk(const Code& first, const Code& second, const ValueQuestions& questions) : left_(first), right_(second), questions_(questions) {}

  std::string run() {
    if (left_.code().version < 311) return "values are not followed before 3.11";
    if (!left_.code().rows.empty() || !right_.code().rows.empty()) return "values are not followed where exceptions are handled";
    std::vector<std::pair<State, State>> work;
    work.emplace_back(left_.start(), right_.start());
    std::set<std::string> of_first, none;
    for (const py::Ref& name : left_.code().localsplus_names) of_first.insert(Side::text(name.get()));
    right_.own_variables(of_first);
    size_t steps = 0;
    const size_t most = 50 * (left_.code().instructions.size() + right_.code().instructions.size());
    while (!work.empty()) {
      auto [x, y] = std::move(work.back());
      work.pop_back();
      for (;;) {
        if (++steps > most) return "too many paths to follow values on";
        const Operation a = left_.advance(x, nullptr), b = right_.advance(y, &questions_);
        if (!matches(a, b)) return shown(a) + " / " + shown(b);
        if (a.ends) break;
        if (a.branches) {
          State other_x = x, other_y = y;
          follow(x, a, true), follow(y, b, true);
          follow(other_x, a, false), follow(other_y, b, false);
          work.emplace_back(std::move(other_x), std::move(other_y));
          continue;
        }
        give(a, b, x, y);
      }
    }
    return "";
  }

 private:
  static bool extends(const Operation& a) { return a.op == Op::LIST_EXTEND; }
  static bool adds_in_place(const Operation& a) {
    constexpr int kInplaceAdd = 13;
    return a.op == Op::BINARY_OP && a.number == kInplaceAdd;
  }
  // `list += iterable` is what extends a list, and gives the list itself.
  static bool same_extension(const Operation& a, const Operation& b) { return extends(a) && adds_in_place(b); }

  bool matches(const Operation& a, const Operation& b) {
    const bool same = a.op == b.op && a.number == b.number && a.named == b.named && a.ends == b.ends && a.branches == b.branches &&
                      a.keep == b.keep && a.results == b.results && same_object(a, b);
    if (!same && !same_extension(a, b)) return false;
    if (a.operands.size() != b.operands.size()) return false;
    for (size_t i = 0; i < a.operands.size(); ++i) {
      if (!same_value(a.operands[i], b.operands[i], 0)) return false;
    }
    return true;
  }

  bool same_object(const Operation& a, const Operation& b) const {
    if (a.object == b.object) return true;
    if (a.object == nullptr || b.object == nullptr) return false;
    return questions_.same_constant(a.object, b.object);
  }

  bool same_value(int x, int y, int depth) {
    const Value &a = left_.value(x), &b = right_.value(y);
    if (a.kind != b.kind || depth > 100) return false;
    switch (a.kind) {
      case Value::kNull:
        return true;
      case Value::kConst:
        return questions_.same_constant(a.object, b.object);
      case Value::kArgument:
      case Value::kResult:
        return a.number == b.number;
      case Value::kMade:
        break;
    }
    if (const auto known = made_.find(x); known != made_.end()) return known->second == y;
    if (a.op != b.op || a.parts.size() != b.parts.size() || taken_.count(y) != 0) return false;
    if (a.object != nullptr && (b.object == nullptr || !questions_.same_constant(a.object, b.object))) return false;
    for (size_t i = 0; i < a.parts.size(); ++i) {
      if (!same_value(a.parts[i], b.parts[i], depth + 1)) return false;
    }
    made_[x] = y;
    taken_.insert(y);
    return true;
  }

  void give(const Operation& a, const Operation& b, State& x, State& y) {
    if (same_extension(a, b)) {
      right_.finish(y, b, {b.operands[0]});
      return;
    }
    std::vector<int> left, right;
    for (int i = 0; i < a.results; ++i) {
      const int64_t symbol = next_++;
      left.push_back(left_.add({Value::kResult, Op::NOP, symbol, nullptr, {}}));
      right.push_back(right_.add({Value::kResult, Op::NOP, symbol, nullptr, {}}));
    }
    left_.finish(x, a, left);
    right_.finish(y, b, right);
  }

  static void follow(State& state, const Operation& op, bool outcome) {
    state.pc = outcome ? op.if_true : op.if_false;
    if (op.keep == static_cast<int>(outcome)) state.stack.push_back(op.operands[0]);
  }

  static std::string shown(const Operation& op) { return std::to_string(op.index) + " " + bytecode::op_name(op.op); }

  Side left_, right_;
  const ValueQuestions& questions_;
  int64_t next_ = 0;
  std::map<int, int> made_;  // lists and the like that stand for each other
  std::set<int> taken_;
};

}  // namespace

std::string values_differ(const Code& first, const Code& second, const ValueQuestions& questions) {
  try {
    return Walk(first, second, questions).run();
  } catch (const CannotTell& reason) {
    return reason.why;
  }
}

}  // namespace pellucid::decompile
