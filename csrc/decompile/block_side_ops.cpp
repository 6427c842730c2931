// A side of the check: operators, displays, patterns, and everything that is one event as it stands.
#include <algorithm>

#include "bytecode/effects.h"
#include "bytecode/neutral_code.h"
#include "decompile/block_parts.h"
#include "decompile/block_printer.h"
#include "decompile/block_side.h"

namespace pellucid::decompile::block {

namespace {

size_t at(int64_t index) { return static_cast<size_t>(index); }

using bytecode::Op;

bool is_plain(PyObject* value) {
  return PyLong_CheckExact(value) || PyBool_Check(value) || PyFloat_CheckExact(value) || PyComplex_CheckExact(value) ||
         PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || PyTuple_CheckExact(value);
}

// Whether an operation is over at once, whatever the values: of powers, products and shifts only small ones.
bool is_cheap(const std::string& text, PyObject* left, PyObject* right) {
  if (text != "**" && text != "*" && text != "<<") return text != "%" || (!PyUnicode_Check(left) && !PyBytes_Check(left));
  for (PyObject* value : {left, right}) {
    if (PyFloat_CheckExact(value) || PyComplex_CheckExact(value)) continue;
    if (!PyLong_Check(value)) {
      if (PyObject_Size(value) > 256) return false;
      continue;
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    const long long most = text == "*" ? 1LL << 62 : value == left ? 1 << 16 : 128;
    if (overflow != 0 || number > most || number < -most) return false;
  }
  return text != "*" || (PyLong_Check(left) && PyLong_Check(right)) || is_cheap("**", right, left);
}

// New reference, or null: not a constant, or not to be worked out (perhaps with an exception set).
PyObject* folded(Op op, int64_t number, const std::vector<PyObject*>& values) {
  if (op == Op::UNARY_NEGATIVE) return PyNumber_Negative(values[0]);
  if (op == Op::UNARY_POSITIVE) return PyNumber_Positive(values[0]);
  if (op == Op::UNARY_INVERT) return PyNumber_Invert(values[0]);
  if (values.size() != 2) return nullptr;
  PyObject *left = values[0], *right = values[1];
  if (op == Op::BINARY_SUBSCR) return PyObject_GetItem(left, right);
  bool in_place = false;
  const char* found = op == Op::BINARY_OP ? binary_operator(static_cast<uint32_t>(number), &in_place) : old_binary_operator(op, &in_place);
  if (found == nullptr || in_place || !is_cheap(found, left, right)) return nullptr;
  const std::string text = found;
  if (text == "**") return PyNumber_Power(left, right, Py_None);
  using Function = PyObject* (*)(PyObject*, PyObject*);
  const std::pair<const char*, Function> functions[] = {
      {"+", PyNumber_Add},          {"-", PyNumber_Subtract},  {"*", PyNumber_Multiply}, {"/", PyNumber_TrueDivide},
      {"//", PyNumber_FloorDivide}, {"%", PyNumber_Remainder}, {"<<", PyNumber_Lshift},  {">>", PyNumber_Rshift},
      {"&", PyNumber_And},          {"|", PyNumber_Or},        {"^", PyNumber_Xor},
  };
  for (const auto& [name, function] : functions) {
    if (text == name) return function(left, right);
  }
  return nullptr;
}

bool is_old_operator(bytecode::Op op) {
  bool in_place = false;
  return old_binary_operator(op, &in_place) != nullptr;
}

}  // namespace

// What was compiled from constants alone the compiler of the block form may have worked out: so are both sides.
Side::Step Side::fold(State& state, Event& event) {
  std::vector<PyObject*> values;
  for (const int operand : event.operands) {
    if (terms_.kind(operand) != TermKind::kConst || !is_plain(terms_[operand].object)) return Step::kEvent;
    values.push_back(terms_[operand].object);
  }
  py::Ref made = py::Ref::steal(folded(event.op, event.number, values));
  if (!made) {
    PyErr_Clear();
    return Step::kEvent;
  }
  push(state, terms_.own_constant(std::move(made)));
  return Step::kDone;
}

Side::Step Side::operator_step(State& state, const Instruction& in, Event& event) {
  const auto result = [&](size_t operands) {
    event.operands = pop_many(state, operands);
    event.results = 1;
    return Step::kEvent;
  };
  const auto contains = [&](bool inverted) {
    event.op = Op::CONTAINS_OP;
    event.truth = true;
    event.after = inverted ? Event::kNot : Event::kPush;
    return result(2);
  };
  const auto is = [&](bool inverted) {
    const int right = pop(state), left = pop(state);
    const int made = terms_.is(left, right);
    push(state, inverted ? terms_.negated(made) : made);
    return Step::kDone;
  };
  if (is_old_operator(in.op)) {
    result(2);
    return fold(state, event);
  }
  switch (in.op) {
    case Op::BINARY_OP:
      event.number = in.arg;
      result(2);
      return fold(state, event);
    case Op::UNARY_POSITIVE:
    case Op::UNARY_NEGATIVE:
    case Op::UNARY_INVERT:
      result(1);
      return fold(state, event);
    case Op::TO_BOOL:
      return truth(state, event);
    case Op::UNARY_NOT: {
      const Step done = truth(state, event);
      if (done == Step::kEvent) {
        event.after = Event::kNot;
        return done;
      }
      peek(state, 1) = terms_.negated(peek(state, 1));
      return Step::kDone;
    }
    case Op::COMPARE_OP: {
      const int version = code_.version;
      if (version == 308 && in.arg >= 6) {
        if (in.arg <= 7) return contains(in.arg == 7);
        return is(in.arg == 9);
      }
      if (phase_ == 1) return truth(state, event);
      const int right = peek(state, 1), left = peek(state, 2);
      if (terms_.kind(left) == TermKind::kLabel) return compare_label(state, in);
      static_cast<void>(right);
      event.number = version == 312 ? in.arg >> 4 : version >= 313 ? in.arg >> 5 : in.arg;
      if (version >= 313 && (in.arg & 16) != 0) {
        event.then = event.index;
        event.phase = 1;
      }
      return result(2);
    }
    case Op::IS_OP:
      return is(in.arg != 0);
    case Op::CONTAINS_OP:
      return contains(in.arg != 0);
    case Op::BINARY_SUBSCR: {
      const Term key = terms_[peek(state, 1)];
      const int owner = peek(state, 2);
      if (original_ != nullptr && terms_.is_cells(owner) && key.kind == TermKind::kConst && PyLong_CheckExact(key.object)) {
        const std::vector<int> parts = terms_[owner].parts;
        const long index = PyLong_AsLong(key.object);
        if (index < 0 || at(index) >= parts.size()) throw NotProven{"a cell that does not exist"};
        pop_many(state, 2);
        push(state, parts[at(index)]);
        return Step::kDone;
      }
      result(2);
      return fold(state, event);
    }
    default:
      return Step::kOther;
  }
}

// The dispatch: what label comes next is known.
Side::Step Side::compare_label(State& state, const Instruction& in) {
  const int version = code_.version;
  const int which = static_cast<int>(version == 312 ? in.arg >> 4 : version >= 313 ? in.arg >> 5 : in.arg);
  const Term bound = terms_[pop(state)];
  const int64_t label = terms_[pop(state)].number;
  if (bound.kind != TermKind::kConst || !PyLong_CheckExact(bound.object)) throw NotProven{"a label is compared with something else"};
  const long other = PyLong_AsLong(bound.object);
  const bool answers[] = {label<other, label <= other, label == other, label != other, label> other, label >= other};
  push(state, terms_.constant(answers[which % 6] ? Py_True : Py_False));
  return Step::kDone;
}

// Displays.

bool Side::builds_tuple(int index) const {
  for (int i = index + 1;; ++i) {
    switch (op_at(i)) {
      case Op::LOAD_FAST:
      case Op::LOAD_CONST:
      case Op::LOAD_DEREF:
      case Op::LOAD_NAME:
      case Op::LOAD_GLOBAL:
      case Op::LOAD_FAST_CHECK:
      case Op::LOAD_ATTR:
      case Op::EXTENDED_ARG:
        continue;
      case Op::LIST_APPEND:
        if (code_.instructions[at(i)].arg != 1) return false;
        continue;
      case Op::LIST_TO_TUPLE:
        return true;
      case Op::CALL_INTRINSIC_1:
        return code_.instructions[at(i)].arg == 6;
      default:
        return false;
    }
  }
}

// A set display of constants is compiled to a frozen set, in another order.
void Side::sort_constants(std::vector<int>* items) const {
  const bool constants = items->size() > 2 && std::all_of(items->begin(), items->end(), [&](int item) {
                           return terms_.kind(item) == TermKind::kConst && !bytecode::is_code(terms_[item].object);
                         });
  if (!constants) return;
  std::sort(items->begin(), items->end());
  items->erase(std::unique(items->begin(), items->end()), items->end());
}

// Whether this is the dictionary that `**` in a call of the block form makes of another one: where it is merged in, or -1.
int Side::copies_keywords(int index) const {
  if (original_ == nullptr || op_at(index) != Op::BUILD_MAP || code_.instructions[at(index)].arg != 0) return -1;
  const int merged = op_at(index + 1) == Op::LOAD_LOCALS ? index + 3 : index + 2;
  return op_at(merged) == Op::DICT_MERGE && op_at(merged + 1) == Op::CALL_FUNCTION_EX ? merged : -1;
}

Side::Step Side::display_step(State& state, const Instruction& in, Event& event) {
  const auto result = [&](Op op, std::vector<int> operands) {
    event.op = op;
    event.operands = std::move(operands);
    event.results = 1;
    return Step::kEvent;
  };
  const auto grow = [&](size_t values) {
    std::vector<int> operands = pop_many(state, values);
    operands.insert(operands.begin(), peek(state, in.arg));
    event.operands = std::move(operands);
    return Step::kEvent;
  };
  switch (in.op) {
    case Op::BUILD_TUPLE:
      push(state, terms_.tuple(pop_many(state, in.arg)));
      return Step::kDone;
    case Op::BUILD_LIST:
      if (original_ != nullptr && in.arg == 0) {
        if (builds_tuple(event.index)) {
          push(state, terms_.tuple({}));
          return Step::kDone;
        }
        std::vector<int> parts;  // three constants or more
        if (op_at(event.index + 1) == Op::LOAD_CONST && op_at(event.index + 2) == Op::LIST_EXTEND &&
            terms_.parts_of(constant(code_.instructions[at(event.index) + 1].arg), &parts)) {
          event.then = event.index + 3;
          event.number = static_cast<int64_t>(parts.size());
          return result(in.op, std::move(parts));
        }
      }
      event.number = in.arg;
      return result(in.op, pop_many(state, in.arg));
    case Op::BUILD_SET: {
      if (original_ != nullptr && in.arg == 0 && op_at(event.index + 1) == Op::LOAD_CONST && op_at(event.index + 2) == Op::SET_UPDATE) {
        const py::Ref items = py::Ref::steal(PySequence_Tuple(terms_[constant(code_.instructions[at(event.index) + 1].arg)].object));
        if (!items) throw NotProven{"a set of something else"};
        std::vector<int> parts;
        if (!terms_.parts_of(terms_.constant(items.get()), &parts)) throw NotProven{"a set of something else"};
        std::sort(parts.begin(), parts.end());
        event.then = event.index + 3;
        return result(in.op, std::move(parts));
      }
      std::vector<int> items = pop_many(state, in.arg);
      sort_constants(&items);
      return result(in.op, std::move(items));
    }
    case Op::BUILD_MAP:
      if (copies_keywords(event.index) >= 0) {
        push(state, terms_.of(TermKind::kPackage));
        return Step::kDone;
      }
      return result(in.op, pop_many(state, size_t{in.arg} * 2));
    case Op::BUILD_CONST_KEY_MAP: {
      const int keys = pop(state);
      std::vector<int> values = pop_many(state, in.arg), parts, all;
      if (!terms_.parts_of(keys, &parts) || parts.size() != values.size()) {
        return result(in.op, {terms_.tuple(std::move(values)), keys});
      }
      for (size_t i = 0; i < parts.size(); ++i) {
        all.push_back(parts[i]);
        all.push_back(values[i]);
      }
      return result(Op::BUILD_MAP, std::move(all));
    }
    case Op::BUILD_STRING:
      return result(in.op, pop_many(state, in.arg));
    case Op::BUILD_SLICE:
      return result(in.op, pop_many(state, in.arg));
    case Op::BUILD_LIST_UNPACK:
    case Op::BUILD_SET_UNPACK:
    case Op::BUILD_MAP_UNPACK:
      return result(in.op, pop_many(state, in.arg));
    case Op::BUILD_TUPLE_UNPACK:
    case Op::BUILD_TUPLE_UNPACK_WITH_CALL:
      return result(Op::BUILD_TUPLE_UNPACK, pop_many(state, in.arg));
    case Op::BUILD_MAP_UNPACK_WITH_CALL: {
      std::vector<int> maps = pop_many(state, in.arg);
      maps.insert(maps.begin(), peek(state, 2));
      return result(in.op, std::move(maps));
    }
    case Op::LIST_TO_TUPLE: {
      const int list = pop(state);
      std::vector<int> parts;
      if (original_ != nullptr && terms_.parts_of(list, &parts)) {
        push(state, list);
        return Step::kDone;
      }
      return result(in.op, {list});
    }
    case Op::LIST_APPEND: {
      std::vector<int> parts;
      if (original_ != nullptr && in.arg == 1 && terms_.parts_of(peek(state, 2), &parts)) {
        parts.push_back(pop(state));
        peek(state, 1) = terms_.tuple(std::move(parts));
        return Step::kDone;
      }
      return grow(1);
    }
    case Op::SET_ADD:
    case Op::LIST_EXTEND:
    case Op::SET_UPDATE:
    case Op::DICT_UPDATE:
      return grow(1);
    case Op::MAP_ADD:
      return grow(2);
    case Op::DICT_MERGE: {
      if (copies_keywords(event.index - 2) == event.index || copies_keywords(event.index - 3) == event.index) {
        const int mapping = pop(state);
        peek(state, 1) = mapping;
        return Step::kDone;
      }
      const int value = pop(state);
      const size_t depth = in.arg + (code_.version >= 313 ? 2U : 1U);
      const bool known = depth < state.stack.size() && terms_.kind(peek(state, depth + 1)) != TermKind::kNull;
      event.operands = {peek(state, in.arg), value, known ? peek(state, depth + 1) : terms_.constant(Py_None)};
      return Step::kEvent;
    }
    case Op::UNPACK_SEQUENCE: {
      std::vector<int> parts;
      if (terms_.parts_of(peek(state, 1), &parts) && parts.size() == in.arg) {
        pop(state);
        state.stack.insert(state.stack.end(), parts.rbegin(), parts.rend());
        return Step::kDone;
      }
      event.operands = {pop(state)};
      event.number = in.arg;
      event.results = static_cast<int>(in.arg);
      event.after = Event::kReversed;
      return Step::kEvent;
    }
    case Op::UNPACK_EX:
      event.operands = {pop(state)};
      event.number = in.arg;
      event.results = static_cast<int>((in.arg & 0xff) + 1 + (in.arg >> 8));
      event.after = Event::kReversed;
      return Step::kEvent;
    case Op::FORMAT_VALUE: {
      const bool has_spec = (in.arg & 4) != 0;
      if (phase_ == 0 && (in.arg & 3) != 0) {
        const int spec = has_spec ? pop(state) : -1;
        event.op = Op::CONVERT_VALUE;
        event.number = in.arg & 3;
        event.operands = {pop(state)};
        event.results = 1;
        event.then = event.index;
        event.phase = 1;
        if (has_spec) {
          push(state, spec);
          event.after = Event::kUnder;
        }
        return Step::kEvent;
      }
      return result(in.op, pop_many(state, has_spec ? 2 : 1));
    }
    case Op::FORMAT_SIMPLE:
      return result(Op::FORMAT_VALUE, pop_many(state, 1));
    case Op::FORMAT_WITH_SPEC:
      return result(Op::FORMAT_VALUE, pop_many(state, 2));
    case Op::CONVERT_VALUE:
      event.number = in.arg;
      return result(in.op, pop_many(state, 1));
    default:
      return Step::kOther;
  }
}

Side::Step Side::pattern_step(State& state, const Instruction& in, Event& event) {
  const bool old = code_.version < 311;
  const auto result = [&](std::vector<int> operands) {
    event.operands = std::move(operands);
    event.results = 1;
    return Step::kEvent;
  };
  switch (in.op) {
    case Op::GET_LEN:
      return result({peek(state, 1)});
    case Op::MATCH_SEQUENCE:
    case Op::MATCH_MAPPING:
      event.truth = true;
      return result({peek(state, 1)});
    case Op::MATCH_KEYS:
      if (old) event.after = Event::kFound;
      return result({peek(state, 2), peek(state, 1)});
    case Op::MATCH_CLASS:
      event.number = in.arg;
      if (old) event.after = Event::kFound;
      return result(pop_many(state, 3));
    case Op::COPY_DICT_WITHOUT_KEYS: {
      const int keys = pop(state);
      return result({peek(state, 1), keys});
    }
    default:
      return Step::kOther;
  }
}

Side::Step Side::plain_step(State& state, const Instruction& in, Event& event) {
  const int flags = tables_.info(in.op).flags;
  if ((flags & (bytecode::kHasName | bytecode::kHasLocal | bytecode::kHasFree | bytecode::kHasConst)) != 0 || in.target >= 0 ||
      !bytecode::falls_through(in.op)) {
    throw NotProven{std::string("no rule for ") + bytecode::op_name(in.op)};
  }
  const int needs = bytecode::stack_needs(tables_, in.op, in.arg);
  event.operands = pop_many(state, at(needs));
  event.results = needs + bytecode::stack_effect(tables_, in.op, in.arg, false);
  event.number = in.arg;
  return Step::kEvent;
}

}  // namespace pellucid::decompile::block
