// A side of the check: its variables, moves between the stack and temporaries, and where exceptions go. None of that is an event.
#include "decompile/block_side.h"

#include <algorithm>
#include <utility>

#include "bytecode/effects.h"
#include "bytecode/neutral_code.h"
#include "decompile/block_parts.h"
#include "decompile/flow.h"

namespace pellucid::decompile::block {

using bytecode::LocalKind;

namespace {

size_t at(int64_t index) { return static_cast<size_t>(index); }

bool is_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Side::Side(Terms& terms, const Naming& naming, bytecode::Code code, std::map<std::string, std::string> free, const Side* original)
    : terms_(terms),
      naming_(naming),
      free_(std::move(free)),
      code_(std::move(code)),
      original_(original),
      tables_(*bytecode::tables(code_.version)) {
  // A function's name ends in a number, and the next one is in its own names.
  const std::string name = utf8(code_.name.get());
  unit_ = name.rfind(naming_.prefix, 0) == 0 ? name.substr(name.rfind('f') + 1) : "";
  unit_ = is_digits(unit_) ? std::to_string(std::stoul(unit_) + 1) : "0";
  split_pairs(code_);
  cfg_ = bytecode::build_cfg(code_);
  name_slots();
  meeting_.assign(code_.instructions.size(), false);
  if (original_ == nullptr) return;
  for (size_t i = 0; i < code_.instructions.size(); ++i) {
    const int target = code_.instructions[i].target;
    if (target < 0 || target > static_cast<int>(i)) continue;
    // The loop of `await` is one event, and what is thrown into it goes back behind it.
    meeting_[at(target)] = op_at(target) != Op::SEND && op_at(target) != Op::END_SEND;
  }
}

// A variable's key: of the original the slot's number, or for a free variable what it is in the scope around.
void Side::name_slots() {
  const size_t count = code_.localsplus_names.size();
  keys_.assign(count, "");
  std::set<std::string> taken;
  for (size_t slot = 0; slot < count; ++slot) {
    const std::string own = slot_name(static_cast<uint32_t>(slot));
    const bool is_free = code_.localsplus_kinds[slot] == LocalKind::kFree;
    // A class' variables may belong to the function around.
    if (is_free && key_of_name(own).empty()) {
      const auto known = free_.find(own);
      keys_[slot] = known == free_.end() ? "?" + own : "^" + known->second;
    } else if (original_ == nullptr) {
      keys_[slot] = std::to_string(slot);
    } else if (role(own) == Role::kVariable) {
      std::string key = key_of_name(own);
      if (key.empty()) {
        const bytecode::Code& other = original_->code();
        for (size_t i = 0; i < other.localsplus_names.size() && key.empty(); ++i) {
          if (other.localsplus_kinds[i] != LocalKind::kFree && utf8(other.localsplus_names[i].get()) == own) key = std::to_string(i);
        }
        if (key.empty()) key = "?" + own;
      }
      keys_[slot] = key;
      if (!taken.insert(key).second) throw NotProven{"two variables for one of the original"};
    }
  }
  if (original_ != nullptr) {
    argument_of_ = original_->argument_of_;
    return;
  }
  for (int i = 0; i < code_.n_arguments(); ++i) {
    if (code_.localsplus_kinds[at(i)] == LocalKind::kLocal) argument_of_[keys_[at(i)]] = terms_.of(TermKind::kArgument, {}, i);
  }
  for (const Instruction& in : code_.instructions) {
    if (in.op == Op::STORE_FAST || in.op == Op::DELETE_FAST || in.op == Op::LOAD_FAST_AND_CLEAR) argument_of_.erase(key_of(in.arg));
  }
}

// Of a name of ours that stands for a variable of the original: prefix, unit, underscore, `v` or what ShadowPrefix gives, slot.
std::string Side::key_of_name(const std::string& name) const {
  const std::string beginning = naming_.prefix + unit_ + "_";
  if (original_ == nullptr || name.rfind(beginning, 0) != 0) return "";
  const std::string stem = name.substr(beginning.size());
  if (stem.empty()) return "";
  if (stem[0] == 'v') return is_digits(stem.substr(1)) ? stem.substr(1) : "";
  const size_t digits = stem.find_first_not_of(stem[0]);
  return (stem[0] == 'x' || stem[0] == 'p') && digits != std::string::npos && is_digits(stem.substr(digits)) ? stem : "";
}

// Whether a variable of the original is kept in one that holds its cell as a value.
bool Side::holds_cell(const std::string& key) const {
  const bool shadow = key[0] == 'x';
  const std::string digits = key.substr(std::min(key.find_first_not_of('x'), key.size()));
  if (!is_digits(digits)) return false;
  const auto slot = static_cast<uint32_t>(std::stoul(digits));
  const auto& kinds = original_->code().localsplus_kinds;
  return slot < kinds.size() && (shadow ? kinds[slot] != LocalKind::kLocal : original_->keeps_cell(slot));
}

Side::Role Side::role(const std::string& name) const {
  if (original_ == nullptr || name.rfind(naming_.prefix, 0) != 0) return Role::kVariable;
  const std::string stem = name.substr(naming_.prefix.size());
  if (stem == "helpers") return Role::kSupport;
  if (!key_of_name(name).empty()) return Role::kVariable;
  const auto outer = free_.find(name);  // a variable of a scope around?
  return outer != free_.end() && outer->second.rfind("temporary", 0) != 0 ? Role::kVariable : Role::kTemporary;
}

State Side::start() {
  State state;
  state.current = terms_.of(TermKind::kNothing);
  if (original_ != nullptr) {
    const int wanted = code_.n_arguments();
    for (int i = 0; i < wanted; ++i) {
      if (at(i) >= keys_.size() || keys_[at(i)] != std::to_string(i)) throw NotProven{"arguments that are others"};
    }
    if (!is_optimized() && utf8(code_.name.get()) != "<module>") skip_beginning_of_class(&state);
  }
  return state;
}

// The class statement of the block form stores names that the original's body, printed in full, stores again.
void Side::skip_beginning_of_class(State* state) const {
  const auto beginning = [](const Side& side) {
    const auto& all = side.code_.instructions;
    size_t i = 0;
    while (i + 3 < all.size() && all[i].op != Op::LOAD_NAME) ++i;
    const auto is = [&](size_t k, Op op, const char* name) { return all[k].op == op && side.name(all[k].arg) == name; };
    if (i + 3 >= all.size() || !is(i, Op::LOAD_NAME, "__name__") || !is(i + 1, Op::STORE_NAME, "__module__") ||
        !is(i + 3, Op::STORE_NAME, "__qualname__")) {
      throw NotProven{"a class body that does not begin as one"};
    }
    return static_cast<int>(i);
  };
  beginning(*original_);
  state->pc = beginning(*this) + 4;
  const Op store = op_at(state->pc + 1);
  if (op_at(state->pc) != Op::LOAD_CONST || (store != Op::STORE_DEREF && store != Op::STORE_GLOBAL)) return;
  const uint32_t arg = code_.instructions[at(state->pc) + 1].arg;
  if ((store == Op::STORE_DEREF ? slot_name(arg) : name(arg)) == "__firstlineno__") state->pc += 2;  // a variable of another scope
}

std::string Side::shown(int index) const {
  return at(index) < code_.instructions.size() ? std::to_string(index) + " " + bytecode::op_name(code_.instructions[at(index)].op)
                                               : "the end";
}

bool Side::is_within_block(const std::string& name) const {
  const std::string beginning = naming_.prefix + unit_ + "_t";
  return name.rfind(beginning, 0) == 0;  // t0, t1, ..., test
}

bool Side::keeps_cell(uint32_t slot) const {
  if (is_optimized() || slot >= code_.localsplus_kinds.size()) return false;
  if (code_.localsplus_kinds[slot] == LocalKind::kLocal || code_.localsplus_kinds[slot] == LocalKind::kFree) return false;
  return slot_name(slot) != "__class__" || utf8(code_.name.get()) == "<module>";
}

std::string Side::shadow_prefix(const State& state, uint32_t slot) const {
  ShadowPrefix prefix(slot);
  for (const int term : state.stack) {
    if (terms_.kind(term) == TermKind::kShadow) prefix.add(terms_[term].number);
  }
  return prefix.text();
}

// The stack, names and constants.

int Side::pop(State& state) {
  if (state.stack.empty()) throw NotProven{"an empty stack"};
  const int top = state.stack.back();
  state.stack.pop_back();
  return top;
}

std::vector<int> Side::pop_many(State& state, size_t count) {
  if (state.stack.size() < count) throw NotProven{"an empty stack"};
  std::vector<int> taken(state.stack.end() - static_cast<std::ptrdiff_t>(count), state.stack.end());
  state.stack.resize(state.stack.size() - count);
  return taken;
}

int& Side::peek(State& state, size_t depth) {
  if (depth == 0 || state.stack.size() < depth) throw NotProven{"an empty stack"};
  return state.stack[state.stack.size() - depth];
}

int Side::constant(uint32_t index) {
  if (index >= code_.consts.size()) throw NotProven{"a constant out of range"};
  return terms_.constant(code_.consts[index].get());
}

std::string Side::name(uint32_t index) const {
  if (index >= code_.names.size()) throw NotProven{"a name out of range"};
  return utf8(code_.names[index].get());
}

std::string Side::slot_name(uint32_t slot) const {
  if (slot >= code_.localsplus_names.size()) throw NotProven{"a variable out of range"};
  return utf8(code_.localsplus_names[slot].get());
}

Side::Op Side::op_at(int index) const {
  return index >= 0 && at(index) < code_.instructions.size() ? code_.instructions[at(index)].op : Op::CACHE;
}

bool Side::text_of(int term, std::string* text) const {
  const Term& value = terms_[term];
  if (value.kind != TermKind::kConst || !PyUnicode_CheckExact(value.object)) return false;
  *text = utf8(value.object);
  return true;
}

// Going on.

void Side::seek(State* state) {
  const size_t most = 4 * code_.instructions.size() + 100;
  const State first = *state;
  for (size_t steps = 0; steps < most; ++steps) {
    if (state->leaving >= 0) return;
    State before = *state;
    if (at(state->pc) >= code_.instructions.size()) throw NotProven{"the end of the code"};
    Event event;
    if (step(*state, code_.instructions[at(state->pc)], event) == Step::kEvent) {
      *state = std::move(before);
      return;
    }
  }
  *state = first;
}

Event Side::next(State* state) {
  const size_t most = original_ == nullptr ? 4 * code_.instructions.size() + 100 : 100 * code_.instructions.size() + 10'000;
  for (size_t steps = 0; steps < most; ++steps) {
    Event event;
    if (state->leaving >= 0) {
      event.kind = Event::kLeave;
      event.operands = {state->leaving};
      return event;
    }
    if (at(state->pc) >= code_.instructions.size()) throw NotProven{"the end of the code"};
    if (meeting_[at(state->pc)] && !state->met) {
      state->met = true;
      event.kind = Event::kMeeting;
      return event;
    }
    state->met = false;
    if (step(*state, code_.instructions[at(state->pc)], event) == Step::kEvent) return event;
  }
  Event event;
  event.kind = Event::kForever;
  return event;
}

void Side::finish(State* state, const Event& event, const std::vector<int>& results) {
  state->pc = event.then >= 0 ? event.then : event.index + 1;
  state->phase = event.phase;
  switch (event.after) {
    case Event::kPush:
      state->stack.insert(state->stack.end(), results.begin(), results.end());
      break;
    case Event::kTuple:
      push(*state, terms_.tuple(results));
      break;
    case Event::kWithNull: {
      const int null = terms_.of(TermKind::kNull);
      if (code_.version < 313) push(*state, null);
      push(*state, results[0]);
      if (code_.version >= 313) push(*state, null);
      break;
    }
    case Event::kNot:
      push(*state, terms_.negated(results[0]));
      break;
    case Event::kReversed:
      state->stack.insert(state->stack.end(), results.rbegin(), results.rend());
      break;
    case Event::kUnder: {  // under the top
      const int top = pop(*state);
      push(*state, results[0]);
      push(*state, top);
      break;
    }
    case Event::kKeepIterator:
      push(*state, event.operands[0]);
      push(*state, results[0]);
      break;
    case Event::kNone:
      push(*state, terms_.constant(Py_None));
      break;
    case Event::kFound:
      push(*state, results[0]);
      push(*state, terms_.negated(terms_.is(results[0], terms_.constant(Py_None))));
      break;
  }
}

void Side::raise(State* state, int index, int error) const {
  const int row_index = cfg_.blocks[at(cfg_.block_of[at(index)])].row;
  state->keywords = -1;
  state->phase = 0;
  state->met = false;
  if (row_index < 0) {
    state->leaving = error;
    state->stack.clear();
    return;
  }
  const bytecode::ExceptionRow& row = code_.rows[at(row_index)];
  const auto known = state->depths.find(row.target);
  const size_t depth = at(known == state->depths.end() ? row.depth : known->second);
  if (known != state->depths.end()) state->depths.erase(known);
  if (state->stack.size() < depth) throw NotProven{"an exception row that keeps more than there is"};
  if (code_.version < 311) {
    // The handlers entered inside of the block are left.
    for (size_t i = state->stack.size(); i-- > depth;) {
      if (terms_.kind(state->stack[i]) == TermKind::kSaved) state->current = terms_[state->stack[i]].parts[0];
    }
  }
  state->stack.resize(depth);
  if (code_.version < 311) {
    for (int i = 0; i < 3; ++i) state->stack.push_back(terms_.of(TermKind::kSaved, {state->current}));
    state->stack.push_back(terms_.of(TermKind::kTraceback, {error}));
    state->stack.push_back(error);
    state->stack.push_back(terms_.of(TermKind::kTypeOf, {error}));
    state->current = error;
  } else {
    if (row.lasti) state->stack.push_back(terms_.of(TermKind::kOffset));
    state->stack.push_back(error);
  }
  state->pc = row.target;
}

Side::Step Side::raise_now(State& state, int index, int error) {
  switch (terms_.kind(error)) {
    case TermKind::kFresh:
    case TermKind::kMet:
    case TermKind::kStopped:
    case TermKind::kArgument:
    case TermKind::kDead:  // of no use to the original any more, which goes on where it is caught
      break;
    default:
      throw NotProven{"what is raised again is no exception"};
  }
  raise(&state, index, error);
  return Step::kDone;
}

Side::Step Side::step(State& state, const Instruction& in, Event& event) {
  event.op = in.op;
  event.index = state.pc;
  phase_ = state.phase;
  state.phase = 0;
  ++state.pc;
  using Part = Step (Side::*)(State&, const Instruction&, Event&);
  for (const Part part : {&Side::variable_step, &Side::named_step, &Side::jump_step, &Side::exception_step, &Side::finally_step,
                          &Side::display_step, &Side::operator_step, &Side::call_step, &Side::suspension_step, &Side::pattern_step}) {
    const Step done = (this->*part)(state, in, event);
    if (done != Step::kOther) return done;
  }
  const Step done = stack_step(state, in);
  return done != Step::kOther ? done : plain_step(state, in, event);
}

Side::Step Side::stack_step(State& state, const Instruction& in) {
  const auto rotate = [&](size_t count) {
    if (count > state.stack.size()) throw NotProven{"an empty stack"};
    if (count > 1) std::rotate(state.stack.end() - static_cast<std::ptrdiff_t>(count), state.stack.end() - 1, state.stack.end());
  };
  switch (in.op) {
    case Op::NOP:
    case Op::RESUME:
    case Op::PRECALL:
    case Op::CACHE:
    case Op::EXTENDED_ARG:
    case Op::COPY_FREE_VARS:
    case Op::GEN_START:
    case Op::POP_BLOCK:
      return Step::kDone;
    case Op::SETUP_FINALLY:
    case Op::SETUP_ASYNC_WITH:
      note_depth(code_, state.pc - 1, state.stack.size() - (in.op == Op::SETUP_ASYNC_WITH ? 1 : 0), &state.depths);
      return Step::kDone;
    case Op::RETURN_GENERATOR:
      push(state, terms_.constant(Py_None));
      return Step::kDone;
    case Op::PUSH_NULL:
      push(state, terms_.of(TermKind::kNull));
      return Step::kDone;
    case Op::POP_TOP:
      pop(state);
      return Step::kDone;
    case Op::END_FOR:
      pop_many(state, code_.version == 312 ? 2 : 1);
      return Step::kDone;
    case Op::END_SEND: {
      const int top = pop(state);
      peek(state, 1) = top;
      return Step::kDone;
    }
    case Op::COPY:
      push(state, peek(state, in.arg));
      return Step::kDone;
    case Op::SWAP:
      std::swap(peek(state, in.arg), peek(state, 1));
      return Step::kDone;
    case Op::DUP_TOP:
      push(state, peek(state, 1));
      return Step::kDone;
    case Op::DUP_TOP_TWO:
      push(state, peek(state, 2));
      push(state, peek(state, 2));
      return Step::kDone;
    case Op::ROT_TWO:
      rotate(2);
      return Step::kDone;
    case Op::ROT_THREE:
      rotate(3);
      return Step::kDone;
    case Op::ROT_FOUR:
      rotate(4);
      return Step::kDone;
    case Op::ROT_N:
      rotate(in.arg);
      return Step::kDone;
    case Op::LOAD_CONST:
      push(state, constant(in.arg));
      return Step::kDone;
    default:
      return Step::kOther;
  }
}

// Variables.

void Side::store_own(State& state, const std::string& name, int value) {
  const std::string at_name = "_at";
  const bool label = name.size() > at_name.size() && name.compare(name.size() - at_name.size(), at_name.size(), at_name) == 0;
  const Term& term = terms_[value];
  if (label && term.kind == TermKind::kConst && PyLong_CheckExact(term.object)) {
    value = terms_.of(TermKind::kLabel, {}, PyLong_AsLong(term.object));
  }
  state.own[name] = value;
}

bool Side::load_own(State& state, const std::string& name) {
  const Role what = role(name);
  if (what == Role::kSupport) {
    push(state, terms_.of(TermKind::kSupport));
    return true;
  }
  if (what != Role::kTemporary) return false;
  const auto known = state.own.find(name);
  if (known == state.own.end()) throw NotProven{"a temporary that holds nothing"};
  push(state, known->second);
  return true;
}

// `cell`: the variable holds its cell as a value.
Side::Step Side::load(State& state, const std::string& key, bool cell, Event& event) {
  if (const auto argument = argument_of_.find(key); argument != argument_of_.end()) {
    push(state, argument->second);
    return Step::kDone;
  }
  if (cell) {
    push(state, terms_.named(TermKind::kCell, key));
    return Step::kDone;
  }
  event.op = Op::LOAD_FAST;
  event.text = key;
  event.results = 1;
  return Step::kEvent;
}

Side::Step Side::load_slot(State& state, uint32_t slot, bool through_cell, Event& event) {
  const std::string own = slot_name(slot);
  const bool is_cell = code_.localsplus_kinds[slot] != LocalKind::kLocal;
  if (original_ != nullptr) {
    if (role(own) != Role::kVariable) {
      if (code_.version >= 311 && is_cell && !through_cell) {
        push(state, terms_.named(TermKind::kCell, role(own) == Role::kSupport ? "helpers" : "temporary " + own));
        return Step::kDone;
      }
      load_own(state, own);
      return Step::kDone;
    }
    const std::string& key = keys_[slot];
    const bool cell = code_.version >= 311 && is_cell && !through_cell;
    return load(state, key, cell || holds_cell(key), event);
  }
  const std::string prefix = shadow_prefix(state, slot);
  const std::string key = prefix + keys_[slot];
  const bool explicit_cell = keeps_cell(slot) || (prefix[0] == 'x' && is_cell);
  if (is_cell && !through_cell && code_.version >= 311 && prefix[0] != 'p') return load(state, key, true, event);
  return load(state, explicit_cell ? key + "." : key, false, event);
}

Side::Step Side::store_slot(State& state, uint32_t slot, Event& event) {
  const std::string own = slot_name(slot);
  const int value = pop(state);
  event.op = Op::STORE_FAST;
  event.operands = {value};
  event.raises = false;
  if (original_ != nullptr) {
    if (role(own) == Role::kSupport) {
      if (terms_.kind(value) != TermKind::kSupport) throw NotProven{"block_support is something else"};
      return Step::kDone;
    }
    if (role(own) == Role::kTemporary) {
      store_own(state, own, value);
      return Step::kDone;
    }
    event.text = keys_[slot];
    return Step::kEvent;
  }
  if (terms_.kind(value) == TermKind::kShadow) return Step::kDone;
  const std::string prefix = shadow_prefix(state, slot);
  event.text = prefix + keys_[slot];
  if (keeps_cell(slot) || (prefix[0] == 'x' && code_.localsplus_kinds[slot] != LocalKind::kLocal)) event.text += ".";
  return Step::kEvent;
}

Side::Step Side::variable_step(State& state, const Instruction& in, Event& event) {
  switch (in.op) {
    case Op::LOAD_FAST:
    case Op::LOAD_FAST_CHECK:
      return load_slot(state, in.arg, false, event);
    case Op::LOAD_DEREF:
      return load_slot(state, in.arg, true, event);
    case Op::LOAD_CLOSURE: {
      const std::string own = slot_name(in.arg);
      std::string key = keys_[in.arg];
      if (role(own) == Role::kSupport) key = "helpers";
      if (role(own) == Role::kTemporary) key = "temporary " + own;
      if (original_ == nullptr) key = shadow_prefix(state, in.arg) + key;
      push(state, terms_.named(TermKind::kCell, key));
      return Step::kDone;
    }
    case Op::LOAD_CLASSDEREF: {
      const std::string own = slot_name(in.arg);
      if (load_own(state, own)) return Step::kDone;
      if (const std::string key = key_of_name(own); !key.empty()) return load(state, key, holds_cell(key), event);
      event.text = keys_[in.arg] + " " + own;
      event.results = 1;
      return Step::kEvent;
    }
    case Op::LOAD_FROM_DICT_OR_DEREF: {
      const std::string own = slot_name(in.arg);
      const int space = pop(state);
      if (load_own(state, own)) return Step::kDone;
      if (const std::string key = key_of_name(own); !key.empty()) return load(state, key, holds_cell(key), event);
      event.text = keys_[in.arg] + " " + own;
      event.results = 1;
      if (terms_.kind(space) == TermKind::kLocals) {
        event.op = Op::LOAD_CLASSDEREF;
      } else {
        event.operands = {space};
      }
      return Step::kEvent;
    }
    case Op::STORE_FAST:
    case Op::STORE_DEREF:
      return store_slot(state, in.arg, event);
    case Op::DELETE_FAST:
    case Op::DELETE_DEREF: {
      const std::string own = slot_name(in.arg);
      event.op = Op::DELETE_FAST;
      if (role(own) != Role::kVariable) {
        state.own.erase(own);
        return Step::kDone;
      }
      event.text = keys_[in.arg];
      if (original_ == nullptr) {
        const std::string prefix = shadow_prefix(state, in.arg);
        event.text = prefix + event.text;
        if (keeps_cell(in.arg) || (prefix[0] == 'x' && code_.localsplus_kinds[in.arg] != LocalKind::kLocal)) event.text += ".";
      }
      return Step::kEvent;
    }
    case Op::LOAD_FAST_AND_CLEAR: {
      const int shadow = terms_.of(TermKind::kShadow, {}, shadow_number(code_, event.index));
      if (phase_ < 2 && may_be_empty(code_, in.arg)) {
        event.op = phase_ == 0 ? Op::STORE_FAST : Op::DELETE_FAST;
        State inside = state;
        push(inside, shadow);
        event.text = shadow_prefix(inside, in.arg) + keys_[in.arg];
        if (phase_ == 0) event.operands = {terms_.constant(Py_None)};
        event.raises = phase_ != 0;
        event.then = event.index;
        event.phase = phase_ + 1;
        return Step::kEvent;
      }
      push(state, shadow);
      return Step::kDone;
    }
    case Op::MAKE_CELL: {
      if (original_ != nullptr) return Step::kDone;
      const std::string prefix = shadow_prefix(state, in.arg);
      if (!keeps_cell(in.arg) && prefix.empty()) return Step::kDone;
      const std::string key = prefix + keys_[in.arg];
      if (phase_ == 0) {
        for (const int term : state.stack) {
          if (terms_.kind(term) == TermKind::kCell && terms_[term].text == key) throw NotProven{"a cell that another one replaces"};
        }
        event.results = 1;
        event.raises = false;
        event.then = event.index;
        event.phase = 1;
        return Step::kEvent;
      }
      event.op = Op::STORE_FAST;
      event.text = key;
      event.operands = {pop(state)};
      event.raises = false;
      return Step::kEvent;
    }
    default:
      return Step::kOther;
  }
}

}  // namespace pellucid::decompile::block
