// A side of the check: calls, functions that are made, and what calls of block_support stand for.
#include <algorithm>

#include "bytecode/effects.h"
#include "bytecode/neutral_code.h"
#include "decompile/block_parts.h"
#include "decompile/block_side.h"

namespace pellucid::decompile::block {

namespace {

using bytecode::LocalKind;
using bytecode::Op;

// A helper whose arguments are the operands of an instruction.
struct Support {
  const char* name;
  Op op;
  int results;
  bool truth;
};

constexpr Support kSupports[] = {
    {"append", Op::LIST_APPEND, 0, false},
    {"add", Op::SET_ADD, 0, false},
    {"set_update", Op::SET_UPDATE, 0, false},
    {"map_add", Op::MAP_ADD, 0, false},
    {"extend", Op::LIST_EXTEND, 0, false},
    {"update", Op::DICT_UPDATE, 0, false},
    {"merge", Op::DICT_MERGE, 0, false},
    {"merged", Op::BUILD_MAP_UNPACK_WITH_CALL, 1, false},
    {"tuple", Op::LIST_TO_TUPLE, 1, false},
    {"set", Op::BUILD_SET, 1, false},
    {"iter", Op::GET_ITER, 1, false},
    {"format", Op::FORMAT_VALUE, 1, false},
    {"slice", Op::BUILD_SLICE, 1, false},
    {"with_keys", Op::BUILD_CONST_KEY_MAP, 1, false},
    {"matches", Op::CHECK_EXC_MATCH, 1, true},
    {"group_matches", Op::CHECK_EG_MATCH, 2, false},
    {"reraise_star", Op::PREP_RERAISE_STAR, 1, false},
    {"leave", Op::WITH_EXCEPT_START, 1, false},
    {"enter", Op::BEFORE_WITH, 2, false},
    {"enter_async", Op::BEFORE_ASYNC_WITH, 2, false},
    {"stop_async", Op::END_ASYNC_FOR, 0, false},
    {"show", Op::PRINT_EXPR, 0, false},
    {"len", Op::GET_LEN, 1, false},
    {"is_sequence", Op::MATCH_SEQUENCE, 1, true},
    {"is_mapping", Op::MATCH_MAPPING, 1, true},
    {"match_keys", Op::MATCH_KEYS, 1, false},
    {"without_keys", Op::COPY_DICT_WITHOUT_KEYS, 1, false},
    {"aiter", Op::GET_AITER, 1, false},
    {"anext", Op::GET_ANEXT, 1, false},
    {"awaited", Op::GET_AWAITABLE, 1, false},
    {"yielded_from", Op::GET_YIELD_FROM_ITER, 1, false},
    {"CellType", Op::MAKE_CELL, 1, false},
    {"send", Op::SEND, 2, true},
};

enum FunctionFlag : uint32_t { kDefaults = 1, kKeywordDefaults = 2, kAnnotations = 4, kClosureFlag = 8 };

size_t at(int64_t index) { return static_cast<size_t>(index); }

size_t free_count(PyObject* code) {
  bytecode::Code decoded;
  if (!bytecode::decode(code, decoded)) throw PythonError();
  return static_cast<size_t>(std::count(decoded.localsplus_kinds.begin(), decoded.localsplus_kinds.end(), LocalKind::kFree));
}

}  // namespace

Side::Step Side::call_step(State& state, const Instruction& in, Event& event) {
  const uint32_t arg = in.arg;
  // With two places for the function: itself or nothing, and the first argument or the function.
  const auto call_with_null = [&](int names) {
    std::vector<int> arguments = pop_many(state, arg);
    const int above = pop(state), below = pop(state);
    if (terms_.kind(above) == TermKind::kNull) return call(state, below, std::move(arguments), names, event);
    if (terms_.kind(below) == TermKind::kNull) return call(state, above, std::move(arguments), names, event);
    arguments.insert(arguments.begin(), above);
    return call(state, below, std::move(arguments), names, event);
  };
  switch (in.op) {
    case Op::KW_NAMES:
      state.keywords = constant(arg);
      return Step::kDone;
    case Op::CALL:
    case Op::CALL_METHOD: {
      const int names = state.keywords;
      state.keywords = -1;
      return call_with_null(names);
    }
    case Op::CALL_KW:
      return call_with_null(pop(state));
    case Op::CALL_FUNCTION:
    case Op::CALL_FUNCTION_KW: {
      const int names = in.op == Op::CALL_FUNCTION_KW ? pop(state) : -1;
      std::vector<int> arguments = pop_many(state, arg);
      const int callee = pop(state);
      return call(state, callee, std::move(arguments), names, event);
    }
    case Op::CALL_FUNCTION_EX: {
      std::vector<int> given = pop_many(state, (arg & 1) != 0 ? 2 : 1);
      if (code_.version >= 313) pop(state);
      const int callee = pop(state);
      if (code_.version >= 311 && code_.version < 313) pop(state);
      std::vector<int> parts;
      if ((arg & 1) == 0 && terms_.parts_of(given[0], &parts)) return call(state, callee, std::move(parts), -1, event);
      event.number = arg & 1;
      event.operands = {callee};
      event.operands.insert(event.operands.end(), given.begin(), given.end());
      event.results = 1;
      return Step::kEvent;
    }
    case Op::MAKE_FUNCTION:
      return make_function(state, arg, event);
    case Op::CALL_INTRINSIC_1: {
      const int value = pop(state);
      event.operands = {value};
      event.results = 1;
      switch (arg) {
        case 1:
          event.op = Op::PRINT_EXPR;
          event.results = 0;
          event.after = Event::kNone;
          return Step::kEvent;
        case 2:
          event.op = Op::IMPORT_STAR;
          event.results = 0;
          event.after = Event::kNone;
          return Step::kEvent;
        case 3:
          push(state, terms_.kind(value) == TermKind::kStopped ? value : terms_.of(TermKind::kStopped, {value}));
          return Step::kDone;
        case 4:
          push(state, terms_.of(TermKind::kWrapped, {value}));
          return Step::kDone;
        case 5:
          event.op = Op::UNARY_POSITIVE;
          return fold(state, event);
        case 6: {
          std::vector<int> parts;
          if (original_ != nullptr && terms_.parts_of(value, &parts)) {
            push(state, value);
            return Step::kDone;
          }
          event.op = Op::LIST_TO_TUPLE;
          return Step::kEvent;
        }
        default:
          event.number = arg;
          return Step::kEvent;
      }
    }
    case Op::CALL_INTRINSIC_2: {
      event.operands = pop_many(state, 2);
      event.results = 1;
      event.number = arg == 3 ? 2 : arg;  // a type variable with a bound or with constraints
      if (arg == 1) {
        event.op = Op::PREP_RERAISE_STAR;
        event.number = 0;
      }
      return Step::kEvent;
    }
    default:
      return Step::kOther;
  }
}

Side::Step Side::call(State& state, int callee, std::vector<int> arguments, int names, Event& event) {
  const Term function = terms_[callee];
  if (original_ != nullptr && function.kind == TermKind::kHelper && names < 0) {
    const Step done = call_support(state, function.text, arguments, event);
    if (done != Step::kOther) return done;
  }
  if (function.kind == TermKind::kJoin && arguments.size() == 1 && names < 0) {
    std::vector<int> parts;
    if (terms_.parts_of(arguments[0], &parts)) {
      event.op = Op::BUILD_STRING;
      event.operands = std::move(parts);
      event.results = 1;
      return Step::kEvent;
    }
  }
  event.op = Op::CALL;
  event.operands = {callee};
  event.operands.insert(event.operands.end(), arguments.begin(), arguments.end());
  event.number = static_cast<int64_t>(event.operands.size());
  if (names >= 0 && terms_.truth(names) != 0) event.operands.push_back(names);
  event.results = 1;
  return Step::kEvent;
}

// MAKE_FUNCTION of the original; of the block form it gives something for a helper to make a function of.
Side::Step Side::make_function(State& state, uint32_t flags, Event& event) {
  const int none = terms_.constant(Py_None);
  const int qualname = code_.version < 311 ? pop(state) : none;
  const int code = pop(state);
  int defaults = none, keyword_defaults = none, annotations = none, closure = none;
  const auto take = [&](uint32_t flag) {
    int& where = flag == kClosureFlag ? closure : flag == kAnnotations ? annotations : flag == kDefaults ? defaults : keyword_defaults;
    where = pop(state);
  };
  int next = event.index + 1;
  if (code_.version >= 313) {
    for (; op_at(next) == Op::SET_FUNCTION_ATTRIBUTE; ++next) take(code_.instructions[at(next)].arg);
  } else {
    for (const uint32_t flag : {kClosureFlag, kAnnotations, kKeywordDefaults, kDefaults}) {
      if ((flags & flag) != 0) take(flag);
    }
  }
  const Term term = terms_[code];
  const bool known = term.kind == TermKind::kConst && bytecode::is_code(term.object);
  if (original_ != nullptr) {
    if (!known || defaults != none || keyword_defaults != none || annotations != none) throw NotProven{"a function of another form"};
    push(state, terms_.add({TermKind::kRaw, 0, false, term.object, {}, {closure}}));
    state.pc = next;
    return Step::kDone;
  }
  event.results = 1;
  event.then = next;
  const size_t cells = closure == none ? 0 : terms_.is_cells(closure) ? terms_[closure].parts.size() : ~size_t{0};
  if (known && cells == free_count(term.object)) {
    event.code = term.object;
    event.closure = closure;
    event.operands = {qualname, defaults, keyword_defaults, annotations};
  } else {
    event.number = 1;
    event.operands = {code, qualname, defaults, keyword_defaults, annotations, closure};
  }
  return Step::kEvent;
}

// made(), made_inside(): function, name, qualified name, defaults, keyword defaults, annotations, and free variables with their cells.
Side::Step Side::made_by_support(const std::string& helper, const std::vector<int>& arguments, Event& event) {
  if (arguments.size() < 6 || terms_.kind(arguments[0]) != TermKind::kRaw) throw NotProven{helper + "() of something else"};
  const Term raw = terms_[arguments[0]];
  event.op = Op::MAKE_FUNCTION;
  event.results = 1;
  event.code = raw.object;
  event.closure = raw.parts[0];
  event.inside = helper == "made_inside";
  event.name = arguments[1];
  event.qualname = arguments[2];
  event.operands = {code_.version < 311 ? arguments[2] : terms_.constant(Py_None), arguments[3], arguments[4], arguments[5]};
  for (size_t i = 6; i + 1 < arguments.size(); i += 2) {
    std::string free;
    if (!text_of(arguments[i], &free) || terms_.kind(arguments[i + 1]) != TermKind::kCell) throw NotProven{"a cell that is none"};
    event.shadows.emplace_back(free, terms_[arguments[i + 1]].text);
  }
  return Step::kEvent;
}

Side::Step Side::call_support(State& state, const std::string& helper, const std::vector<int>& arguments, Event& event) {
  const auto count = arguments.size();
  const auto need = [&](size_t wanted) {
    if (count < wanted) throw NotProven{helper + "() with other arguments"};
  };
  const auto text_at = [&](size_t i) {
    std::string text;
    if (i >= count || !text_of(arguments[i], &text)) throw NotProven{helper + "() with other arguments"};
    return text;
  };
  const auto is = [&](size_t i, TermKind kind) { return i < count && terms_.kind(arguments[i]) == kind; };
  const auto result = [&](Op op, std::vector<int> operands, int results = 1) {
    event.op = op;
    event.operands = std::move(operands);
    event.results = results;
    if (results == 0) event.after = Event::kNone;
    if (results == 2) event.after = Event::kTuple;
    return Step::kEvent;
  };
  const auto done = [&](int term) {
    push(state, term);
    return Step::kDone;
  };
  for (const Support& support : kSupports) {
    if (helper != support.name) continue;
    event.truth = support.truth;
    if (support.op == Op::BUILD_SET) need(0);
    return result(support.op, arguments, support.results);
  }
  if (helper == "globals" || helper == "locals") return done(terms_.of(helper == "globals" ? TermKind::kGlobals : TermKind::kLocals));
  if (helper == "reraise") {
    need(1);
    return raise_now(state, event.index, arguments[0]);
  }
  if (helper == "next") {
    need(2);
    if (terms_.kind(arguments[1]) != TermKind::kHelper || terms_[arguments[1]].text != "NULL") throw NotProven{"next() with another end"};
    return result(Op::FOR_ITER, {arguments[0]});
  }
  if (helper == "convert") {
    need(2);
    const Term how = terms_[arguments[1]];
    if (how.kind != TermKind::kConst || !PyLong_CheckExact(how.object)) throw NotProven{"a conversion that is not known"};
    event.number = PyLong_AsLong(how.object);
    return result(Op::CONVERT_VALUE, {arguments[0]});
  }
  if (helper == "match_class") {
    need(4);
    const Term how = terms_[arguments[2]];
    if (how.kind != TermKind::kConst || !PyLong_CheckExact(how.object)) throw NotProven{"a number of patterns that is not known"};
    event.number = PyLong_AsLong(how.object);
    return result(Op::MATCH_CLASS, {arguments[0], arguments[1], arguments[3]});
  }
  if (helper == "made" || helper == "made_inside") return made_by_support(helper, arguments, event);
  if (helper == "function") {
    need(7);
    if (!is(0, TermKind::kGlobals)) throw NotProven{"a function with other globals"};
    event.number = 1;
    return result(Op::MAKE_FUNCTION, {arguments.begin() + 1, arguments.end()});
  }
  if (helper == "import_from") {
    event.text = text_at(1);
    return result(Op::IMPORT_FROM, {arguments[0]});
  }
  if (helper == "import_star" && is(1, TermKind::kLocals)) return result(Op::IMPORT_STAR, {arguments[0]}, 0);
  if (helper == "setup_annotations" && is(0, TermKind::kLocals)) return result(Op::SETUP_ANNOTATIONS, {}, 0);
  if (helper == "builtins.__import__") {
    need(5);
    event.text = text_at(0);
    const bool fine = is(1, TermKind::kGlobals) && (is_optimized() ? arguments[2] == terms_.constant(Py_None) : is(2, TermKind::kLocals));
    if (!fine) throw NotProven{"an import with another scope"};
    return result(Op::IMPORT_NAME, {arguments[4], arguments[3]});
  }
  if (helper == "getattr" || helper == "delattr") {
    event.text = text_at(1);
    return result(helper == "getattr" ? Op::LOAD_ATTR : Op::DELETE_ATTR, {arguments[0]}, helper == "getattr" ? 1 : 0);
  }
  if (helper == "setattr") {
    need(3);
    event.text = text_at(1);
    return result(Op::STORE_ATTR, {arguments[0], arguments[2]}, 0);
  }
  if (helper == "load_global" && is(0, TermKind::kGlobals)) {
    event.text = text_at(1);
    return result(Op::LOAD_GLOBAL, {});
  }
  if (helper == "load_name" && is(0, TermKind::kLocals) && is(1, TermKind::kGlobals)) {
    event.text = text_at(2);
    return result(Op::LOAD_NAME, {});
  }
  if (helper == "delete_name" && (is(0, TermKind::kLocals) || is(0, TermKind::kGlobals))) {
    event.text = text_at(1);
    return result(is(0, TermKind::kGlobals) ? Op::DELETE_GLOBAL : Op::DELETE_NAME, {}, 0);
  }
  if (helper == "list_of" || helper == "set_of" || helper == "map_of") {
    need(1);
    std::vector<int> parts;
    if (!terms_.parts_of(arguments[0], &parts)) throw NotProven{"a display of something else"};
    if (helper == "list_of") event.number = static_cast<int64_t>(parts.size());
    if (helper == "set_of") sort_constants(&parts);
    return result(helper == "list_of" ? Op::BUILD_LIST : helper == "set_of" ? Op::BUILD_SET : Op::BUILD_MAP, std::move(parts));
  }
  if (helper == "load_from") {
    need(3);
    return loads_from(arguments, text_at(1), event);
  }
  if (helper == "call") {
    need(2);
    std::vector<int> operands = {arguments[0]};
    operands.insert(operands.end(), arguments.begin() + 2, arguments.end());
    event.number = static_cast<int64_t>(operands.size());
    operands.push_back(arguments[1]);
    return result(Op::CALL, std::move(operands));
  }
  if (helper == "delegate") {
    need(3);
    return done(terms_.of(TermKind::kDelegate, {arguments[1], arguments[2]}, text_at(0) == "yield" ? 1 : 0));
  }
  if (helper == "given") {
    need(1);
    return done(terms_.of(TermKind::kGiven, {arguments[0]}));
  }
  if (helper == "type_variable") {
    need(2);
    const std::string kind = text_at(0);
    if (count == 3 && kind == "TypeVar") {
      event.number = 2;
      return result(Op::CALL_INTRINSIC_2, {arguments[1], arguments[2]});
    }
    event.number = kind == "TypeVar" ? 7 : kind == "ParamSpec" ? 8 : 9;
    return result(Op::CALL_INTRINSIC_1, {arguments[1]});
  }
  if (helper == "generic" || helper == "type_alias") {
    event.number = helper == "generic" ? 10 : 11;
    return result(Op::CALL_INTRINSIC_1, arguments);
  }
  if (helper == "with_type_parameters") {
    event.number = 4;
    return result(Op::CALL_INTRINSIC_2, arguments);
  }
  if (helper == "forget" && is(0, TermKind::kGlobals)) return done(terms_.constant(Py_None));
  // Constants without a literal.
  PyObject* maker = helper == "complex"     ? reinterpret_cast<PyObject*>(&PyComplex_Type)
                    : helper == "frozenset" ? reinterpret_cast<PyObject*>(&PyFrozenSet_Type)
                                            : nullptr;
  if (maker == nullptr) return Step::kOther;
  const Term given = terms_[terms_.tuple(arguments)];
  if (given.kind != TermKind::kConst) throw NotProven{helper + "() of no constant"};
  py::Ref made = py::Ref::steal(PyObject_CallObject(maker, given.object));
  if (!made) throw PythonError();
  return done(terms_.own_constant(std::move(made)));
}

// load_from(space, name, lambda: variable)
Side::Step Side::loads_from(const std::vector<int>& arguments, const std::string& name, Event& event) {
  const Term otherwise = terms_[arguments[2]];
  if (otherwise.kind != TermKind::kRaw) throw NotProven{"load_from() with something else"};
  bytecode::Code code;
  if (!bytecode::decode(otherwise.object, code)) throw PythonError();
  std::vector<int> cells;
  if (otherwise.parts[0] != terms_.constant(Py_None)) cells = terms_[otherwise.parts[0]].parts;
  event.operands = {arguments[0]};
  event.results = 1;
  for (const Instruction& in : code.instructions) {
    if (in.op == Op::LOAD_GLOBAL) {
      event.op = Op::LOAD_FROM_DICT_OR_GLOBALS;
      const uint32_t index = in.arg >> 1;
      if (index >= code.names.size()) throw NotProven{"a name out of range"};
      const std::string global = utf8(code.names[index].get());
      // Where the name alone would be something else, it is looked up by block_support.
      const bool by_support =
          role(global) == Role::kSupport && std::any_of(code.consts.begin(), code.consts.end(), [&](const py::Ref& each) {
            return PyUnicode_CheckExact(each.get()) && utf8(each.get()) == name;
          });
      if (global != name && !by_support) throw NotProven{"another global"};
      event.text = name;
      if (terms_.kind(arguments[0]) == TermKind::kLocals) {
        event.op = Op::LOAD_NAME;
        event.operands.clear();
      }
      return Step::kEvent;
    }
    if (in.op == Op::LOAD_DEREF && cells.size() == 1 && terms_.kind(cells[0]) == TermKind::kCell) {
      event.op = Op::LOAD_FROM_DICT_OR_DEREF;
      event.text = terms_[cells[0]].text + " " + name;
      if (terms_.kind(arguments[0]) == TermKind::kLocals) {
        event.op = Op::LOAD_CLASSDEREF;
        event.operands.clear();
      }
      return Step::kEvent;
    }
  }
  throw NotProven{"load_from() with another function"};
}

}  // namespace pellucid::decompile::block
