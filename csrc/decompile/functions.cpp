// Calls, and what is made of nested code objects: functions, lambdas, class bodies and comprehensions.
#include <algorithm>

#include "bytecode/neutral_code.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

size_t at_block(int index) { return static_cast<size_t>(index); }

bool is_comprehension(const std::string& name) {
  return name == "<listcomp>" || name == "<setcomp>" || name == "<dictcomp>" || name == "<genexpr>";
}

// Whether it can stand as the name of a keyword argument.
bool can_be_keyword(const Expr* key) {
  return key != nullptr && key->kind == ExprKind::kConst && PyUnicode_CheckExact(key->object) && PyUnicode_IsIdentifier(key->object) == 1 &&
         !is_keyword(utf8(key->object));
}

// The items of a display or of a constant tuple.
bool tuple_items(Arena& arena, Expr* tuple, Exprs* out) {
  if (tuple->kind == ExprKind::kTuple) {
    *out = tuple->items;
    return true;
  }
  if (tuple->kind != ExprKind::kConst || !PyTuple_CheckExact(tuple->object)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple->object); ++i) {
    Expr* item = arena.expr(ExprKind::kConst);
    item->object = PyTuple_GET_ITEM(tuple->object, i);
    item->at = tuple->at;
    out->push_back(item);
  }
  return true;
}

}  // namespace

bool are_keywords(const Expr* dict) {
  if (dict->items.empty()) return false;
  for (size_t i = 0; i < dict->items.size(); i += 2) {
    if (!can_be_keyword(dict->items[i])) return false;
  }
  return true;
}

CodeKind kind_of(const bytecode::Code& code) {
  constexpr int kNewLocals = 2;
  const std::string name = utf8(code.name.get());
  if ((code.flags & kNewLocals) == 0) return name == "<module>" ? CodeKind::kModule : CodeKind::kClass;
  if (name == "<lambda>") return CodeKind::kLambda;
  return is_comprehension(name) ? CodeKind::kComprehension : CodeKind::kFunction;
}

void Structurer::set_annotations(Function* function, Expr* annotations) {
  Exprs items;
  if (annotations->kind == ExprKind::kDict) {
    items = annotations->items;
  } else if (!tuple_items(arena_, annotations, &items)) {
    no_form("annotations of an unknown form");
  }
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i] == nullptr || items[i]->kind != ExprKind::kConst) no_form("annotations of an unknown form");
    function->annotations.push_back({text_of(items[i]->object), starred_of(items[i + 1])});
  }
}

// `*x` where it is the whole of an annotation or a default: the single element that unpacking it gives.
Expr* Structurer::starred_of(Expr* value) {
  if (value->kind != ExprKind::kUnpacked || value->at->op != Op::UNPACK_SEQUENCE || value->at->arg != 1) return value;
  Expr* starred = make(ExprKind::kStarred, *value->at);
  starred->items = {value->items[0]->value};
  return starred;
}

bool Structurer::tuple_of(Expr* tuple, Exprs* out) { return tuple_items(arena_, tuple, out); }

void Structurer::keyword_defaults(Function* function, const Expr* values) {
  if (values->kind != ExprKind::kDict) no_form("defaults of an unknown form");
  for (size_t i = 0; i + 1 < values->items.size(); i += 2) {
    const Expr* key = values->items[i];
    if (key == nullptr || key->kind != ExprKind::kConst) no_form("defaults of an unknown form");
    function->kw_defaults.push_back({text_of(key->object), values->items[i + 1]});
  }
}

// A tuple of constants that the compiler folded behind the parser leaves places of its items as instructions without effect, where these
// have lines of their own.
void Structurer::place_folded(Node& node, const Expr* tuple, Exprs& items) {
  if (tuple->kind != ExprKind::kConst || items.empty()) return;
  const Instruction* first = tuple->at;
  while (first != flow_.ins.data() && first[-1].op == Op::NOP && first[-1].position.line >= tuple->at->position.line &&
         first[-1].position.line == first[-1].position.end_line) {
    --first;
  }
  const auto count = static_cast<size_t>(tuple->at - first);
  if (count == 0) return;
  while (!node.stmts.empty() && node.stmts.back()->kind == StmtKind::kNop && node.stmts.back()->at >= first) node.stmts.pop_back();
  for (size_t i = 0; i < items.size(); ++i) {
    Expr* item = make(ExprKind::kConst, first[std::min(i, count - 1)]);
    item->object = items[i]->object;
    items[i] = item;
  }
}

// As much for annotations: what is left of those on the line of the `def` itself is gone, of all others the place stays.
void Structurer::place_annotations(Node& node, const Expr* tuple, Function* function) {
  if (tuple->kind != ExprKind::kConst || code_.version < 311) return;
  const bytecode::Position& whole = tuple->at->position;
  std::vector<const Instruction*> places;
  const Instruction* first = tuple->at;
  while (first != flow_.ins.data() && first[-1].op == Op::NOP) {
    const bytecode::Position& p = first[-1].position;
    if (p.line < whole.line || p.end_line > whole.end_line) break;
    --first;
    if (p.line != whole.line || p.end_line != whole.end_line) places.push_back(first);
  }
  const size_t count = std::min(places.size(), function->annotations.size());
  if (count == 0) return;
  while (!node.stmts.empty() && node.stmts.back()->kind == StmtKind::kNop && node.stmts.back()->at >= first) node.stmts.pop_back();
  for (size_t i = 0; i < count; ++i) {
    Expr*& value = function->annotations[function->annotations.size() - 1 - i].second;
    Expr* item = make(ExprKind::kConst, *places[i]);
    item->object = value->object;
    value = item;
  }
}

void Structurer::make_function(Node& node, const Instruction& in) {
  if (code_.version < 311) pop_raw(node);  // the qualified name
  Expr* code = pop_raw(node);
  if (code->kind != ExprKind::kConst || !bytecode::is_code(code->object)) no_form("a function made of what is no constant");
  Expr* made = make(ExprKind::kFunction, in);
  Function* function = arena_.function();
  made->function = function;
  Expr *closure = nullptr, *annotations = nullptr, *keyword_values = nullptr, *defaults = nullptr;
  const uint32_t flags = code_.version >= 313 ? 0 : in.arg;
  if ((flags & 8) != 0) closure = pop_raw(node);
  if ((flags & 4) != 0) annotations = pop(node);
  if ((flags & 2) != 0) keyword_values = pop(node);
  if ((flags & 1) != 0) defaults = pop(node);
  (void)closure;
  for (Expr* part : {defaults, keyword_values, annotations}) {
    if (part != nullptr) made->items.push_back(part);
  }
  order_items(made);
  made->items.clear();
  if (!bytecode::decode(code->object, function->code)) {
    PyErr_Clear();
    no_form("a nested code object that cannot be decoded");
  }
  // In a scope of type parameters defaults are its own arguments.
  const auto handed_in = [](const Expr* value) { return value->kind == ExprKind::kName && value->text[0] == '.'; };
  if (defaults != nullptr && !handed_in(defaults)) {
    if (!tuple_items(arena_, defaults, &function->defaults)) no_form("defaults of an unknown form");
    place_folded(node, defaults, function->defaults);
  }
  if (keyword_values != nullptr && !handed_in(keyword_values)) keyword_defaults(function, keyword_values);
  if (annotations != nullptr) {
    set_annotations(function, annotations);
    place_annotations(node, annotations, function);
  }
  decompile_function(session_, *function, kind_of(function->code));
  if (kind_of(function->code) == CodeKind::kComprehension) take_declarations(*function);
  add_to_signature(*function);
  push(node, made);
}

// An assignment expression in a comprehension binds a variable of the function around, which declares it.
void Structurer::take_declarations(const Function& comprehension) {
  for (const Stmt* declared : comprehension.declarations) {
    for (const Alias& one : declared->names) {
      if (declared->kind == StmtKind::kGlobal) {
        globals_.push_back(one.name);
        continue;
      }
      for (size_t i = 0; i < code_.localsplus_names.size(); ++i) {
        if (code_.localsplus_kinds[i] == bytecode::LocalKind::kFree && local_at(static_cast<uint32_t>(i)) == one.name) {
          nonlocals_.push_back(one.name);
        }
      }
    }
  }
}

// Its code alone: the comprehension over an iterable whose name nobody knows.
Expr* lone_comprehension(Session& session, Function& function) {
  Function holder;
  Reading reading;
  Structurer structurer(session, holder, CodeKind::kFunction, false, &reading);
  return structurer.comprehension(&function);
}

Expr* Structurer::comprehension(Function* function) {
  static const Instruction kNowhere;  // without an offset, so no line of the output points at it
  Expr* iterable = make(ExprKind::kName, kNowhere);
  iterable->text = "iterable";
  return comprehension_of(function, iterable, kNowhere);
}

// The clauses of a comprehension stand as loops and conditions in its code.
Expr* Structurer::comprehension_of(Function* function, Expr* iterable, const Instruction& in) {
  const CompKind kind = function->name == "<listcomp>"   ? CompKind::kList
                        : function->name == "<setcomp>"  ? CompKind::kSet
                        : function->name == "<dictcomp>" ? CompKind::kDict
                                                         : CompKind::kGenerator;
  Expr* made = comprehension_from(&function->body, kind, iterable, in);
  made->function = function;
  return made;
}

// 3.12 and later: the loop stands in the code itself, between saving and restoring the variables of the comprehension.
bool Structurer::inlined_comprehension(Node& node) {
  const Block& head = flow_.blocks[at_block(node.to)];
  const Op op = flow_.ins[at_block(head.start)].op;
  const size_t size = node.stack.size();
  if ((op != Op::FOR_ITER && op != Op::GET_ANEXT) || size < 2 || node.stack[size - 1]->kind != ExprKind::kIterable) return false;
  const Expr *whole = node.stack[size - 2], *saved = size > 2 ? node.stack[size - 3] : nullptr;
  if (!whole->items.empty()) return false;
  // One without variables of its own saves none; its value lies below the iterator all the same, which no other loop has.
  const bool saves = saved != nullptr && saved->kind == ExprKind::kOther && saved->text == "saved";
  const Instruction* before = head.start > 0 ? &flow_.ins[at_block(head.start) - 1] : nullptr;
  if (!saves && (code_.version < 312 || before == nullptr || before->op != Op::SWAP || before->arg != 2)) return false;
  const CompKind kind = whole->kind == ExprKind::kList ? CompKind::kList : whole->kind == ExprKind::kSet ? CompKind::kSet : CompKind::kDict;
  if (kind == CompKind::kDict && whole->kind != ExprKind::kDict) return false;
  DepthGuard guard(session_);
  Stmts loop;
  bool falls = false;
  ++inlining_;
  const int follow = make_loop(node.to, &node.stack, &loop, -1, &falls);
  --inlining_;
  if (follow < 0) no_form("a comprehension without an end");
  tidy(loop, false, 0);
  node.stack.back() = comprehension_from(&loop, kind, nullptr, *whole->at);
  node.last = node.to;
  node.blocks.push_back(node.to);
  node.to = follow;
  node.taken = false;
  node.jump_at = nullptr;
  return true;
}

Expr* Structurer::comprehension_from(Stmts* body, CompKind kind, Expr* iterable, const Instruction& in) {
  Expr* made = make(ExprKind::kComprehension, in);
  made->op = static_cast<uint8_t>(kind);
  bool first = true;
  for (size_t at = 0;;) {
    if (!first && std::all_of(body->begin(), body->end(), [](const Stmt* one) { return one->kind == StmtKind::kContinue; })) {
      // From 3.10 on nothing is left of an element behind a false constant.
      made->clauses.back().conditions.push_back(constant(Py_False, in));
      const Expr* target = made->clauses.back().target;
      for (int part = kind == CompKind::kDict ? 2 : 1; part-- > 0;) {
        made->items.push_back(target->kind == ExprKind::kName ? name(target->text, in) : constant(Py_None, in));
      }
      break;
    }
    if (at + 1 > body->size()) no_form("a comprehension with statements");
    Stmt* stmt = (*body)[at];
    if (stmt->kind == StmtKind::kAssign && !first && stmt->targets.size() == 1) {  // for target in [value]
      Clause clause;
      clause.target = stmt->targets[0];
      clause.iterable = arena_.expr(ExprKind::kList);
      clause.iterable->items = {stmt->value};
      made->clauses.push_back(clause);
      ++at;
      continue;
    }
    if (at + 1 != body->size()) no_form("a comprehension with statements");
    at = 0;
    if (stmt->kind == StmtKind::kFor && stmt->orelse.empty()) {
      Clause clause;
      clause.target = stmt->targets[0];
      clause.iterable = stmt->value;
      clause.is_async = stmt->is_async;
      if (first && iterable != nullptr) {
        if (stmt->value->kind != ExprKind::kName || stmt->value->text != ".0") no_form("a comprehension over what is not its argument");
        clause.iterable = iterable;
      }
      first = false;
      made->clauses.push_back(clause);
      body = &stmt->body;
    } else if (stmt->kind == StmtKind::kIf && stmt->orelse.empty() && !first) {
      made->clauses.back().conditions.push_back(stmt->value);
      body = &stmt->body;
    } else if (stmt->kind == StmtKind::kExpression && !first) {
      if (stmt->value->kind == ExprKind::kOther && stmt->value->text == "append") {
        made->items = stmt->value->items;
      } else if (stmt->value->kind == ExprKind::kYield) {
        made->items = stmt->value->items;
      } else {
        no_form("a comprehension with statements");
      }
      break;
    } else {
      no_form("a comprehension with statements");
    }
  }
  if (iterable == nullptr) iterable = made->clauses[0].iterable;
  made->first = iterable->first;
  made->last = ++clock_;
  if (made->first == INT32_MAX) made->first = made->last;
  return made;
}

Expr* Structurer::finish_call(Expr* made, const Instruction& in) {
  Expr* callable = made->items[0];
  if (callable->kind == ExprKind::kWithExit) {
    Expr* left = make(ExprKind::kOther, in);
    left->text = "left";
    left->number = callable->number;
    return left;
  }
  if (callable->kind == ExprKind::kBuildClass) {
    if (made->items.size() < 3 || made->items[1]->kind != ExprKind::kFunction) no_form("a class without a body");
    Expr* cls = make(ExprKind::kClass, in);
    cls->function = made->items[1]->function;
    cls->items.assign(made->items.begin() + 3, made->items.end());
    cls->first = made->first;
    cls->last = made->last;
    return cls;
  }
  if (callable->kind == ExprKind::kFunction && is_comprehension(callable->function->name)) {
    if (made->items.size() != 2) no_form("a comprehension called with other than its iterable");
    Expr* iterable = made->items[1];
    if (iterable->kind == ExprKind::kIterable) iterable = iterable->items[0];
    return comprehension_of(callable->function, iterable, in);
  }
  return made;
}

void Structurer::call(Node& node, const Instruction& in, size_t n_args, PyObject* keyword_names) {
  Exprs args = pop_many(node, n_args);
  Expr* callable = nullptr;
  bool decorates = false;
  if (in.op == Op::CALL_FUNCTION || in.op == Op::CALL_FUNCTION_KW) {
    callable = pop(node);
    decorates = args.size() == 1 && keyword_names == nullptr;
  } else {
    Expr* top = pop(node);
    Expr* below = pop(node);
    if (below->kind == ExprKind::kNull) {
      callable = top;
    } else if (top->kind == ExprKind::kNull) {
      callable = below;
    } else {
      callable = below;
      args.insert(args.begin(), top);
      decorates = args.size() == 1;
    }
  }
  const size_t n_keywords = keyword_names != nullptr ? static_cast<size_t>(PyTuple_GET_SIZE(keyword_names)) : 0;
  if (n_keywords > args.size()) no_form("more keywords than arguments");
  for (size_t i = 0; i < n_keywords; ++i) {
    Expr*& arg = args[args.size() - n_keywords + i];
    Expr* keyword = make(ExprKind::kKeyword, in);
    keyword->text = text_of(PyTuple_GET_ITEM(keyword_names, static_cast<Py_ssize_t>(i)));
    keyword->items = {arg};
    keyword->first = arg->first;
    keyword->last = arg->last;
    keyword->at = arg->at;
    arg = keyword;
  }
  if (decorates &&
      (args[0]->kind == ExprKind::kClass || args[0]->kind == ExprKind::kDecorated ||
       (args[0]->kind == ExprKind::kFunction && args[0]->function->name != "<lambda>" && !is_comprehension(args[0]->function->name)))) {
    push(node, combine(ExprKind::kDecorated, in, {callable, args[0]}));
    return;
  }
  if (callable->kind == ExprKind::kFunction && is_type_scope(callable->function->name)) {
    push(node, call_type_scope(callable, args, in));
    return;
  }
  args.insert(args.begin(), callable);
  push(node, finish_call(combine(ExprKind::kCall, in, std::move(args)), in));
}

void Structurer::call_ex(Node& node, const Instruction& in, bool has_keywords) {
  Expr* keywords = has_keywords ? pop(node) : nullptr;
  Expr* args = pop(node);
  Expr* callable = pop(node);
  if (code_.version >= 313) {
    callable = pop(node);
  } else if (code_.version >= 311) {
    pop_raw(node);
  }
  Exprs items{callable};
  // Up to 3.9 no arguments are no constant.
  const bool constants =
      args->kind == ExprKind::kConst && PyTuple_CheckExact(args->object) && (code_.version >= 310 || PyTuple_GET_SIZE(args->object) > 0);
  if ((args->kind == ExprKind::kTuple && (args->op == 1 || (has_keywords && args->op == 0))) || (constants && has_keywords)) {
    Exprs positional;
    tuple_items(arena_, args, &positional);
    items.insert(items.end(), positional.begin(), positional.end());
  } else {
    Expr* starred = make(ExprKind::kStarred, in);
    starred->items = {args};
    starred->first = args->first;
    starred->last = args->last;
    items.push_back(starred);
  }
  if (keywords != nullptr) {
    Exprs entries{nullptr, keywords};
    const auto has_star = [](const Expr* item) { return item->kind == ExprKind::kStarred; };
    const bool whole = code_.version == 308 && keywords->kind == ExprKind::kDict && keywords->number == 0 &&
                       (!are_keywords(keywords) || std::none_of(items.begin() + 1, items.end(), has_star));
    if (keywords->kind == ExprKind::kDict && keywords->number != 2 && !whole) entries = keywords->items;
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      Expr* key = entries[i];
      Expr* keyword = make(ExprKind::kKeyword, in);
      keyword->items = {entries[i + 1]};
      keyword->first = entries[i + 1]->first;
      keyword->last = entries[i + 1]->last;
      keyword->at = entries[i + 1]->at;
      if (key != nullptr) {
        if (!can_be_keyword(key)) {
          Expr* dict = make(ExprKind::kDict, in);
          dict->items = {key, entries[i + 1]};
          keyword->items = {dict};
        } else {
          keyword->text = text_of(key->object);
        }
      }
      items.push_back(keyword);
    }
  }
  if (code_.version < 311 && items.size() > 1) {  // without a star or two it would be another kind of call
    const auto has_star = [](const Expr* item) {
      return item->kind == ExprKind::kStarred || (item->kind == ExprKind::kKeyword && item->text.empty());
    };
    if (std::none_of(items.begin() + 1, items.end(), has_star)) {
      Expr* starred = make(ExprKind::kStarred, in);
      starred->items = {args};
      starred->first = args->first;
      starred->last = args->last;
      const auto is_keyword = [](const Expr* item) { return item->kind == ExprKind::kKeyword; };
      const auto first_keyword = std::find_if(items.begin() + 1, items.end(), is_keyword);
      items.erase(items.begin() + 1, first_keyword);
      items.insert(items.begin() + 1, starred);
    }
  }
  push(node, finish_call(combine(ExprKind::kCall, in, std::move(items)), in));
}

bool Structurer::execute_calls(Node& node, const Instruction& in) {
  switch (in.op) {
    case Op::KW_NAMES:
      keyword_names_ = code_.consts.at(in.arg).get();
      if (!PyTuple_Check(keyword_names_)) no_form("keyword names that are no tuple");
      return true;
    case Op::CALL:
    case Op::CALL_FUNCTION: {
      PyObject* names = keyword_names_;
      keyword_names_ = nullptr;
      call(node, in, in.arg, names);
      return true;
    }
    case Op::CALL_METHOD:
      call(node, in, in.arg, nullptr);
      return true;
    case Op::CALL_KW:
    case Op::CALL_FUNCTION_KW: {
      Expr* names = pop(node);
      if (names->kind != ExprKind::kConst || !PyTuple_Check(names->object)) no_form("keyword names that are no constant");
      call(node, in, in.arg, names->object);
      return true;
    }
    case Op::CALL_FUNCTION_EX:
      call_ex(node, in, (in.arg & 1) != 0);
      return true;
    case Op::MAKE_FUNCTION:
      make_function(node, in);
      return true;
    case Op::SET_FUNCTION_ATTRIBUTE: {
      Expr* function = pop_raw(node);
      Expr* value = pop(node);
      if (function->kind != ExprKind::kFunction) no_form("an attribute of what is no function");
      const bool handed_in = value->kind == ExprKind::kName && value->text[0] == '.';
      if (in.arg == 1 && !handed_in) {
        if (!tuple_items(arena_, value, &function->function->defaults)) no_form("defaults of an unknown form");
        place_folded(node, value, function->function->defaults);
      }
      if (in.arg == 2 && !handed_in) keyword_defaults(function->function, value);
      if (in.arg == 4) {
        set_annotations(function->function, value);
        place_annotations(node, value, function->function);
      }
      add_to_signature(*function->function);
      if (value->first < function->first) function->first = value->first;
      push(node, function);
      return true;
    }
    default:
      return false;
  }
}

void Structurer::signature() {
  constexpr int kVarArgs = 4, kVarKeywords = 8;
  Function& f = function_;
  uint32_t slot = 0;
  const auto next = [&] {
    Parameter parameter;
    parameter.name = local_at(slot++);
    return parameter;
  };
  for (int i = 0; i < code_.argcount; ++i) f.positional.push_back(next());
  for (int i = 0; i < code_.kwonly; ++i) f.keyword_only.push_back(next());
  f.posonly = code_.posonly;
  if ((code_.flags & kVarArgs) != 0) {
    f.has_star = true;
    f.star = next();
  }
  if ((code_.flags & kVarKeywords) != 0) {
    f.has_star_star = true;
    f.star_star = next();
  }
}

// Defaults and annotations, as far as they are known, to the parameters.
void add_to_signature(Function& f) {
  const auto annotate = [&](Parameter& parameter) {
    for (const auto& [name, value] : f.annotations) {
      if (name == parameter.name) parameter.annotation = value;
    }
  };
  for (Parameter& parameter : f.positional) annotate(parameter);
  for (Parameter& parameter : f.keyword_only) annotate(parameter);
  annotate(f.star);
  annotate(f.star_star);
  if (f.defaults.size() > f.positional.size()) no_form("more defaults than parameters");
  for (size_t i = 0; i < f.defaults.size(); ++i) f.positional[f.positional.size() - f.defaults.size() + i].default_value = f.defaults[i];
  for (const auto& [name, value] : f.kw_defaults) {
    for (Parameter& parameter : f.keyword_only) {
      if (parameter.name == name) parameter.default_value = value;
    }
  }
}

}  // namespace pellucid::decompile
