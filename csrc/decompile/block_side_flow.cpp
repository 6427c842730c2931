// A side of the check: names, jumps, exceptions, and what suspends a frame.
#include "bytecode/effects.h"
#include "decompile/block_parts.h"
#include "decompile/block_side.h"

namespace pellucid::decompile::block {

using bytecode::LocalKind;

namespace {

size_t at(int64_t index) { return static_cast<size_t>(index); }

constexpr int kAsyncGenerator = 0x200;

}  // namespace

// Names and attributes.

Side::Step Side::load_name(State& state, const std::string& wanted, Op op, Event& event) {
  if (original_ != nullptr) {
    PyObject* bound = naming_.bindings == nullptr ? nullptr : PyDict_GetItemString(naming_.bindings, wanted.c_str());
    if (bound != nullptr) {
      push(state, terms_.constant(bound));
      return Step::kDone;
    }
    if (load_own(state, wanted)) return Step::kDone;
    // Classes and modules keep variables of the original under names of ours.
    if (const std::string key = key_of_name(wanted); !key.empty()) return load(state, key, holds_cell(key), event);
  }
  event.op = op;
  event.text = wanted;
  event.results = 1;
  return Step::kEvent;
}

Side::Step Side::store_name(State& state, const std::string& wanted, Op op, Event& event) {
  const int value = pop(state);
  if (wanted == "__firstlineno__" || wanted == "__static_attributes__") {
    if (code_.version >= 313 && op == Op::STORE_NAME) return Step::kDone;  // where it stands in a file
  }
  event.op = op;
  event.text = wanted;
  event.operands = {value};
  if (original_ == nullptr) return Step::kEvent;
  if (role(wanted) == Role::kSupport) {
    if (terms_.kind(value) != TermKind::kSupport) throw NotProven{"block_support is something else"};
    return Step::kDone;
  }
  if (role(wanted) == Role::kTemporary) {
    store_own(state, wanted, value);
    return Step::kDone;
  }
  if (wanted.rfind(naming_.prefix, 0) == 0) {
    event.op = Op::STORE_FAST;
    event.text = key_of_name(wanted);
    event.raises = false;
  }
  return Step::kEvent;
}

Side::Step Side::attribute(State& state, const std::string& wanted, bool method, Event& event) {
  const int owner = pop(state);
  const Term& term = terms_[owner];
  const auto done = [&](int value) {
    const int null = terms_.of(TermKind::kNull);
    if (method && code_.version < 313) push(state, null);
    push(state, value);
    if (method && code_.version >= 313) push(state, null);
    return Step::kDone;
  };
  if (original_ != nullptr) {
    if (term.kind == TermKind::kSupport) {
      if (wanted == "nan") return done(terms_.own_constant(py::Ref::steal(PyFloat_FromDouble(Py_NAN))));
      if (wanted == "negative_nan") return done(terms_.own_constant(py::Ref::steal(PyFloat_FromDouble(-Py_NAN))));
      return done(terms_.named(TermKind::kHelper, wanted));
    }
    if (term.kind == TermKind::kHelper && term.text == "builtins") return done(terms_.named(TermKind::kHelper, "builtins." + wanted));
    if (term.kind == TermKind::kRaw && wanted == "__closure__") return done(term.parts[0]);
    if (term.kind == TermKind::kCell && wanted == "cell_contents") {
      event.op = Op::LOAD_FAST;
      event.text = term.text + ".";
      event.results = 1;
      return Step::kEvent;
    }
  }
  if (std::string text; wanted == "join" && text_of(owner, &text) && text.empty()) return done(terms_.of(TermKind::kJoin));
  event.op = Op::LOAD_ATTR;
  event.text = wanted;
  event.operands = {owner};
  event.results = 1;
  event.after = method ? Event::kWithNull : Event::kPush;
  return Step::kEvent;
}

Side::Step Side::named_step(State& state, const Instruction& in, Event& event) {
  const int version = code_.version;
  switch (in.op) {
    case Op::LOAD_NAME:
      return load_name(state, name(in.arg), Op::LOAD_NAME, event);
    case Op::STORE_NAME:
    case Op::STORE_GLOBAL:
      return store_name(state, name(in.arg), in.op, event);
    case Op::DELETE_NAME:
    case Op::DELETE_GLOBAL: {
      const std::string wanted = name(in.arg);
      event.text = wanted;
      if (original_ == nullptr || wanted.rfind(naming_.prefix, 0) != 0) return Step::kEvent;
      if (role(wanted) != Role::kVariable) {
        state.own.erase(wanted);
        return Step::kDone;
      }
      event.op = Op::DELETE_FAST;
      event.text = key_of_name(wanted);
      return Step::kEvent;
    }
    case Op::LOAD_GLOBAL: {
      const bool null = version >= 311 && (in.arg & 1) != 0;
      const size_t before = state.stack.size();
      const Step done = load_name(state, name(version >= 311 ? in.arg >> 1 : in.arg), Op::LOAD_GLOBAL, event);
      if (null && done == Step::kDone) {
        state.stack.insert(version < 313 ? state.stack.begin() + static_cast<std::ptrdiff_t>(before) : state.stack.end(),
                           terms_.of(TermKind::kNull));
      }
      if (null) event.after = Event::kWithNull;
      return done;
    }
    case Op::LOAD_LOCALS:
      push(state, terms_.of(TermKind::kLocals));
      return Step::kDone;
    case Op::LOAD_FROM_DICT_OR_GLOBALS: {
      const int space = pop(state);
      if (terms_.kind(space) == TermKind::kLocals) return load_name(state, name(in.arg), Op::LOAD_NAME, event);
      event.text = name(in.arg);
      event.operands = {space};
      event.results = 1;
      return Step::kEvent;
    }
    case Op::LOAD_ATTR:
      return attribute(state, name(version >= 312 ? in.arg >> 1 : in.arg), version >= 312 && (in.arg & 1) != 0, event);
    case Op::LOAD_METHOD:
      return attribute(state, name(in.arg), true, event);
    case Op::LOAD_SUPER_ATTR: {
      if (phase_ == 1) return attribute(state, name(in.arg >> 2), (in.arg & 1) != 0, event);
      event.operands = pop_many(state, 3);
      event.op = Op::CALL;
      event.number = 3;
      event.results = 1;
      event.then = event.index;
      event.phase = 1;
      return Step::kEvent;
    }
    case Op::STORE_ATTR:
    case Op::DELETE_ATTR: {
      const int owner = pop(state);
      event.text = name(in.arg);
      event.operands = {owner};
      if (in.op == Op::STORE_ATTR) event.operands.push_back(pop(state));
      if (original_ != nullptr && terms_.kind(owner) == TermKind::kCell && event.text == "cell_contents") {
        event.op = in.op == Op::STORE_ATTR ? Op::STORE_FAST : Op::DELETE_FAST;
        event.text = terms_[owner].text + ".";
        event.operands.erase(event.operands.begin());
      }
      return Step::kEvent;
    }
    case Op::STORE_SUBSCR: {
      const std::vector<int> parts = pop_many(state, 3);  // value, owner, key
      std::string text;
      const TermKind kind = terms_.kind(parts[1]);
      if (original_ != nullptr && (kind == TermKind::kGlobals || kind == TermKind::kLocals) && text_of(parts[2], &text)) {
        event.op = kind == TermKind::kGlobals ? Op::STORE_GLOBAL : Op::STORE_NAME;
        event.text = text;
        event.operands = {parts[0]};
      } else {
        event.operands = parts;
      }
      return Step::kEvent;
    }
    case Op::IMPORT_NAME: {
      event.operands = pop_many(state, 2);
      if (original_ != nullptr) {
        if (name(in.arg) != "pellucid") throw NotProven{"an import of the block form's own"};
        push(state, terms_.of(TermKind::kPackage));
        return Step::kDone;
      }
      event.text = name(in.arg);
      event.results = 1;
      return Step::kEvent;
    }
    case Op::IMPORT_FROM: {
      const int module = peek(state, 1);
      event.text = name(in.arg);
      if (terms_.kind(module) == TermKind::kPackage && event.text == "block_support") {
        push(state, terms_.of(TermKind::kSupport));
        return Step::kDone;
      }
      event.operands = {module};
      event.results = 1;
      return Step::kEvent;
    }
    case Op::IMPORT_STAR:
      event.operands = {pop(state)};
      return Step::kEvent;
    case Op::LOAD_BUILD_CLASS:
      push(state, terms_.named(TermKind::kHelper, "builtins.__build_class__"));
      return Step::kDone;
    case Op::LOAD_ASSERTION_ERROR:
      push(state, terms_.named(TermKind::kHelper, "AssertionError"));
      return Step::kDone;
    default:
      return Step::kOther;
  }
}

// Jumps.

// Makes the value at this depth of the stack a bool, in its place.
Side::Step Side::truth(State& state, Event& event) {
  const int value = peek(state, 1);
  if (terms_.is_bool(value)) return Step::kDone;
  const int known = terms_.truth(value);
  pop(state);
  if (known >= 0) {
    push(state, terms_.constant(known != 0 ? Py_True : Py_False));
    return Step::kDone;
  }
  event.op = Op::TO_BOOL;
  event.number = 0;
  event.text.clear();
  event.operands = {value};
  event.results = 1;
  event.truth = true;
  return Step::kEvent;
}

Side::Step Side::fork(State& state, int condition, int if_true, int if_false, Event& event) {
  while (terms_.kind(condition) == TermKind::kNot) {
    condition = terms_[condition].parts[0];
    std::swap(if_true, if_false);
  }
  if (terms_.kind(condition) == TermKind::kConst) {
    state.pc = terms_.truth(condition) == 1 ? if_true : if_false;
    return Step::kDone;
  }
  event.kind = Event::kBranch;
  event.op = Op::POP_JUMP_IF_TRUE;
  event.number = 0;
  event.operands = {condition};
  event.if_true = if_true;
  event.if_false = if_false;
  return Step::kEvent;
}

Side::Step Side::jump_step(State& state, const Instruction& in, Event& event) {
  const int next = event.index + 1;
  // Jumps on the truth of the top.
  const auto jump_if = [&](bool when) {
    const Step done = truth(state, event);
    if (done == Step::kEvent) {
      event.then = event.index;
      return done;
    }
    const int condition = pop(state);
    return fork(state, condition, when ? in.target : next, when ? next : in.target, event);
  };
  switch (in.op) {
    case Op::JUMP_FORWARD:
    case Op::JUMP_BACKWARD:
    case Op::JUMP_BACKWARD_NO_INTERRUPT:
    case Op::JUMP_ABSOLUTE:
      state.pc = in.target;
      return Step::kDone;
    case Op::POP_JUMP_IF_TRUE:
    case Op::POP_JUMP_FORWARD_IF_TRUE:
    case Op::POP_JUMP_BACKWARD_IF_TRUE:
      return jump_if(true);
    case Op::POP_JUMP_IF_FALSE:
    case Op::POP_JUMP_FORWARD_IF_FALSE:
    case Op::POP_JUMP_BACKWARD_IF_FALSE:
      return jump_if(false);
    case Op::POP_JUMP_IF_NONE:
    case Op::POP_JUMP_FORWARD_IF_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NONE:
      return fork(state, terms_.is(pop(state), terms_.constant(Py_None)), in.target, next, event);
    case Op::POP_JUMP_IF_NOT_NONE:
    case Op::POP_JUMP_FORWARD_IF_NOT_NONE:
    case Op::POP_JUMP_BACKWARD_IF_NOT_NONE:
      return fork(state, terms_.is(pop(state), terms_.constant(Py_None)), next, in.target, event);
    case Op::JUMP_IF_TRUE_OR_POP:
    case Op::JUMP_IF_FALSE_OR_POP: {
      if (phase_ == 2) {
        pop(state);
        return Step::kDone;
      }
      if (phase_ == 0) push(state, peek(state, 1));
      const Step done = truth(state, event);
      if (done == Step::kEvent) {
        event.then = event.index;
        event.phase = 1;
        return done;
      }
      const bool when = in.op == Op::JUMP_IF_TRUE_OR_POP;
      const int condition = pop(state);
      // The way that takes the value off is the rest of this instruction.
      event.phase = 2;
      const Step forked = fork(state, condition, when ? in.target : event.index, when ? event.index : in.target, event);
      if (forked == Step::kDone && state.pc == event.index) state.phase = 2;
      return forked;
    }
    case Op::GET_ITER:
      event.operands = {pop(state)};
      event.results = 1;
      return Step::kEvent;
    case Op::FOR_ITER: {
      const int null = terms_.named(TermKind::kHelper, "NULL");
      if (phase_ == 0) {
        event.operands = {peek(state, 1)};
        event.results = 1;
        event.then = event.index;
        event.phase = 1;
        return Step::kEvent;
      }
      if (phase_ == 1) {
        event.phase = 2;
        return fork(state, terms_.is(peek(state, 1), null), event.index, next, event);
      }
      pop(state);
      if (code_.version >= 312) {
        push(state, terms_.of(TermKind::kNull));
      } else {
        pop(state);
      }
      state.pc = in.target;
      return Step::kDone;
    }
    case Op::RETURN_VALUE:
    case Op::RETURN_CONST: {
      const int value = in.op == Op::RETURN_CONST ? constant(in.arg) : pop(state);
      event.kind = Event::kReturn;
      event.op = Op::RETURN_VALUE;
      if (is_optimized() && (code_.flags & kAsyncGenerator) == 0) event.operands = {value};
      return Step::kEvent;
    }
    default:
      return Step::kOther;
  }
}

// Exceptions.

Side::Step Side::exception_step(State& state, const Instruction& in, Event& event) {
  const bool old = code_.version < 311;
  const auto one = [&](Op op, std::vector<int> operands, bool is_bool) {
    event.op = op;
    event.number = 0;
    event.operands = std::move(operands);
    event.results = 1;
    event.truth = is_bool;
    return Step::kEvent;
  };
  const auto is_everything = [&](int kinds) {
    return original_ != nullptr && terms_.kind(kinds) == TermKind::kHelper && terms_[kinds].text == "BaseException";
  };
  const auto exception_of = [&](int type) {
    if (original_ != nullptr || terms_.kind(type) != TermKind::kTypeOf) throw NotProven{"the type of an exception is another value"};
    return terms_[type].parts[0];
  };
  switch (in.op) {
    case Op::RAISE_VARARGS:
      event.operands = pop_many(state, in.arg);
      event.number = in.arg;
      event.returns = false;
      if (in.arg == 0 && terms_.kind(state.current) != TermKind::kNothing) return raise_now(state, event.index, state.current);
      return Step::kEvent;
    case Op::RERAISE:
      if (!old) return raise_now(state, event.index, pop(state));
      return raise_now(state, event.index, pop_many(state, 3)[1]);
    case Op::PUSH_EXC_INFO: {
      const int error = pop(state);
      push(state, terms_.of(TermKind::kSaved, {state.current}));
      push(state, error);
      state.current = error;
      return Step::kDone;
    }
    case Op::POP_EXCEPT: {
      const int saved = old ? pop_many(state, 3)[1] : pop(state);
      if (terms_.kind(saved) != TermKind::kSaved) throw NotProven{"an except clause ends that never began"};
      state.current = terms_[saved].parts[0];
      return Step::kDone;
    }
    case Op::CHECK_EXC_MATCH: {
      const int kinds = pop(state);
      if (is_everything(kinds)) {
        push(state, terms_.constant(Py_True));
        return Step::kDone;
      }
      return one(Op::CHECK_EXC_MATCH, {peek(state, 1), kinds}, true);
    }
    case Op::JUMP_IF_NOT_EXC_MATCH: {
      if (phase_ == 1) return fork(state, pop(state), event.index + 1, in.target, event);
      const int kinds = pop(state), type = pop(state);
      if (is_everything(kinds)) return Step::kDone;
      event.then = event.index;
      event.phase = 1;
      return one(Op::CHECK_EXC_MATCH, {exception_of(type), kinds}, true);
    }
    case Op::COMPARE_OP: {
      if (code_.version != 308 || in.arg != 10) return Step::kOther;
      const int kinds = pop(state), type = pop(state);
      if (is_everything(kinds)) {
        push(state, terms_.constant(Py_True));
        return Step::kDone;
      }
      return one(Op::CHECK_EXC_MATCH, {exception_of(type), kinds}, true);
    }
    case Op::CHECK_EG_MATCH:
      event.operands = pop_many(state, 2);
      event.results = 2;
      return Step::kEvent;
    case Op::PREP_RERAISE_STAR:
      return one(in.op, pop_many(state, 2), false);
    case Op::WITH_EXCEPT_START:
      return one(in.op, {peek(state, old ? 7 : 4), peek(state, old ? 2 : 1)}, false);
    case Op::BEFORE_WITH:
    case Op::SETUP_WITH:
    case Op::BEFORE_ASYNC_WITH:
      event.op = in.op == Op::BEFORE_ASYNC_WITH ? Op::BEFORE_ASYNC_WITH : Op::BEFORE_WITH;
      event.number = 0;
      event.operands = {pop(state)};
      event.results = 2;
      if (in.op == Op::SETUP_WITH) note_depth(code_, event.index, state.stack.size() + 1, &state.depths);
      return Step::kEvent;
    case Op::END_ASYNC_FOR:
      if (phase_ == 0) {
        event.operands = {peek(state, old ? 2 : 1)};
        event.then = event.index;
        event.phase = 1;
        return Step::kEvent;
      }
      if (old) {
        pop_many(state, 3);
        const int saved = pop_many(state, 3)[1];
        if (terms_.kind(saved) != TermKind::kSaved) throw NotProven{"an except clause ends that never began"};
        state.current = terms_[saved].parts[0];
        pop(state);
      } else {
        pop_many(state, 2);
      }
      return Step::kDone;
    default:
      return Step::kOther;
  }
}

// 3.8's finally blocks: six places say how one was entered.
Side::Step Side::finally_step(State& state, const Instruction& in, Event& event) {
  const auto leave_exception = [&] {
    pop_many(state, 3);
    const int saved = pop_many(state, 3)[1];
    if (terms_.kind(saved) == TermKind::kSaved) state.current = terms_[saved].parts[0];
  };
  const auto normally = [&] {
    for (int i = 0; i < 6; ++i) push(state, terms_.of(TermKind::kNormal));
  };
  switch (in.op) {
    case Op::BEGIN_FINALLY:
      normally();
      return Step::kDone;
    case Op::CALL_FINALLY:
      for (int i = 0; i < 6; ++i) push(state, terms_.of(TermKind::kReturnTo, {}, event.index + 1));
      state.pc = in.target;
      return Step::kDone;
    case Op::END_FINALLY: {
      const int top = peek(state, 1);
      switch (terms_.kind(top)) {
        case TermKind::kReturnTo:
          state.pc = static_cast<int>(terms_[top].number);
          pop_many(state, 6);
          return Step::kDone;
        case TermKind::kNormal:
          pop_many(state, 6);
          return Step::kDone;
        default:
          return raise_now(state, event.index, pop_many(state, 3)[1]);
      }
    }
    case Op::POP_FINALLY: {
      const int kept = in.arg != 0 ? pop(state) : -1;
      leave_exception();
      if (kept >= 0) push(state, kept);
      return Step::kDone;
    }
    case Op::WITH_CLEANUP_START: {
      const TermKind kind = terms_.kind(peek(state, 1));
      const bool normal = kind == TermKind::kNormal || kind == TermKind::kReturnTo;
      const int exit = peek(state, 7), error = normal ? terms_.constant(Py_None) : peek(state, 2);
      state.stack.erase(state.stack.end() - 7);
      push(state, error);
      if (normal) {
        event.op = Op::CALL;
        event.operands = {exit, error, error, error};
        event.number = 4;
      } else {
        event.op = Op::WITH_EXCEPT_START;
        event.operands = {exit, error};
      }
      event.results = 1;
      return Step::kEvent;
    }
    case Op::WITH_CLEANUP_FINISH: {
      if (phase_ == 2) {
        leave_exception();
        normally();
        return Step::kDone;
      }
      if (phase_ == 0 && terms_.kind(peek(state, 2)) == TermKind::kConst) {
        pop_many(state, 2);
        return Step::kDone;
      }
      const Step done = truth(state, event);
      if (done == Step::kEvent) {
        event.then = event.index;
        event.phase = 1;
        return done;
      }
      const int condition = pop(state);
      pop(state);
      event.phase = 2;
      const Step forked = fork(state, condition, event.index, event.index + 1, event);
      if (forked == Step::kDone && state.pc == event.index) state.phase = 2;
      return forked;
    }
    default:
      return Step::kOther;
  }
}

// What suspends a frame.

// Whether a SEND is that of `await` or `yield from`, with the loop around it that compilers make.
bool Side::in_send_loop(int send) const {
  if (op_at(send) != Op::SEND || op_at(send - 1) != Op::LOAD_CONST || op_at(send + 1) != Op::YIELD_VALUE || op_at(send + 2) != Op::RESUME) {
    return false;
  }
  const Instruction& none = code_.instructions[at(send - 1)];
  if (none.arg >= code_.consts.size() || code_.consts[none.arg].get() != Py_None) return false;
  const Op back = op_at(send + 3);
  if ((back != Op::JUMP_BACKWARD && back != Op::JUMP_BACKWARD_NO_INTERRUPT) || code_.instructions[at(send + 3)].target != send)
    return false;
  // What is thrown in goes to the iterator; from 3.12 on a handler of its own does that.
  const int row = cfg_.blocks[at(cfg_.block_of[at(send)])].row, inner = cfg_.blocks[at(cfg_.block_of[at(send + 1)])].row;
  if (inner == row || (inner >= 0 && row >= 0 && code_.rows[at(inner)].target == code_.rows[at(row)].target)) return true;
  if (inner < 0) return false;
  const int handler = code_.rows[at(inner)].target;
  return op_at(handler) == Op::CLEANUP_THROW;
}

Side::Step Side::delegated(State& state, int send, bool yielded, Event& event) {
  const int value = pop(state), iterator = pop(state);
  const Term& term = terms_[iterator];
  event.op = Op::YIELD_FROM;
  event.number = yielded ? 1 : 0;
  event.operands = {iterator, value};
  event.results = 1;
  if (send >= 0) {
    event.then = code_.instructions[at(send)].target;
    if (code_.version >= 312) event.after = Event::kKeepIterator;
  }
  if (term.kind == TermKind::kDelegate) {
    event.operands = term.parts;
    event.number = term.number;
  } else if (term.kind == TermKind::kGiven) {
    event.op = Op::YIELD_VALUE;
    event.number = 0;
    event.operands = term.parts;
  }
  return Step::kEvent;
}

Side::Step Side::suspension_step(State& state, const Instruction& in, Event& event) {
  switch (in.op) {
    case Op::GET_AWAITABLE:
    case Op::GET_YIELD_FROM_ITER: {
      const TermKind kind = terms_.kind(peek(state, 1));
      if (kind == TermKind::kDelegate || kind == TermKind::kGiven) return Step::kDone;
      event.number = 0;
      event.operands = {pop(state)};
      event.results = 1;
      return Step::kEvent;
    }
    case Op::GET_AITER:
      event.operands = {pop(state)};
      event.results = 1;
      return Step::kEvent;
    case Op::GET_ANEXT:
      event.results = 1;
      if (phase_ == 0) {
        event.operands = {peek(state, 1)};
        event.then = event.index;
        event.phase = 1;
      } else {
        event.op = Op::GET_AWAITABLE;
        event.operands = {pop(state)};
      }
      return Step::kEvent;
    case Op::ASYNC_GEN_WRAP:
      push(state, terms_.of(TermKind::kWrapped, {pop(state)}));
      return Step::kDone;
    case Op::SEND:
      if (in_send_loop(event.index)) return delegated(state, event.index, false, event);
      if (phase_ == 0) {
        const int value = pop(state);
        event.operands = {peek(state, 1), value};
        event.results = 2;
        event.truth = true;  // whether the iterator has ended
        event.then = event.index;
        event.phase = 1;
        return Step::kEvent;
      }
      if (phase_ == 1) {
        const int value = pop(state), ended = pop(state);
        push(state, value);
        event.phase = 2;
        return fork(state, ended, event.index, event.index + 1, event);
      }
      if (code_.version < 312) {
        const int value = pop(state);
        peek(state, 1) = value;
      }
      state.pc = in.target;
      return Step::kDone;
    case Op::YIELD_FROM:
      return delegated(state, -1, false, event);
    case Op::YIELD_VALUE:
      if (code_.version >= 311 && in_send_loop(event.index - 1)) return delegated(state, event.index - 1, true, event);
      event.number = 0;
      event.operands = {pop(state)};
      event.results = 1;
      return Step::kEvent;
    case Op::CLEANUP_THROW:
      throw NotProven{"CLEANUP_THROW outside of `await`"};
    default:
      return Step::kOther;
  }
}

}  // namespace pellucid::decompile::block
