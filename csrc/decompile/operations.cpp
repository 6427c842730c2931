// Symbolic execution, second part: displays, f-strings, unpacking, imports, returns, and what a stored value turns into.
#include <algorithm>

#include "bytecode/tables.h"
#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

bool is_const_tuple(const Expr* expr) { return expr->kind == ExprKind::kConst && PyTuple_CheckExact(expr->object); }
bool is_const_set(const Expr* expr) { return expr->kind == ExprKind::kConst && PyFrozenSet_CheckExact(expr->object); }

// Code that programs make has none, and is not folded as compilers do.
bool has_place(const Instruction& in) { return in.position.line > 0 && in.position.column >= 0; }

std::string first_component(const std::string& dotted) { return dotted.substr(0, dotted.find('.')); }

}  // namespace

void Structurer::pop_top(Node& node, const Instruction& in) {
  Expr* value = pop_raw(node);
  Stmt* made = nullptr;
  switch (value->kind) {
    case ExprKind::kIterator:
      made = arena_.stmt(StmtKind::kDropIterator);
      made->number = value->number;
      emit(node, made, in);
      return;
    case ExprKind::kException:
    case ExprKind::kExceptionMatch:
    case ExprKind::kNull:
    case ExprKind::kWithExit:
    case ExprKind::kMatchValue:
      return;
    case ExprKind::kWithEnter:
      return;
    case ExprKind::kUnpacked: {
      // Of two stores to the same variable, one right behind the other, compilers make one.
      size_t next = static_cast<size_t>(&in - flow_.ins.data()) + 1;
      while (next < flow_.ins.size() && flow_.ins[next].op == Op::POP_TOP) ++next;
      if (next >= flow_.ins.size() || flow_.ins[next].op != Op::STORE_FAST) break;
      store_value(node, name(local_at(flow_.ins[next].arg), in), value, in);
      return;
    }
    case ExprKind::kOther:
      if (value->text == "left") {
        made = arena_.stmt(StmtKind::kLeave);
        made->text = "with";
        made->number = value->number;
        emit(node, made, in);
        return;
      }
      if (value->text == "generator" || value->text == "locals") return;
      break;
    case ExprKind::kImport:
      if (value->op == 2) return;  // `import a.b as c`, stored already
      if (!value->items.empty() || value->op == 1) {
        made = arena_.stmt(StmtKind::kImportFrom);
        made->text = value->text;
        made->number = value->number;
        for (size_t i = 0; i + 1 < value->items.size(); i += 2) {
          made->names.push_back({value->items[i]->text, value->items[i + 1]->text});
          if (made->names.back().as == made->names.back().name) made->names.back().as.clear();
        }
        emit(node, made, in);
        return;
      }
      if (!node.stack.empty() && node.stack.back()->kind == ExprKind::kImportFrom) return;  // `import a.b as c`
      if (value->object == Py_None || !PyTuple_Check(value->object) || PyTuple_GET_SIZE(value->object) != 1)
        no_form("an import whose value is dropped");
      made = arena_.stmt(StmtKind::kImportFrom);  // `from a import *`
      made->text = value->text;
      made->number = value->number;
      made->names = {{"*", ""}};
      emit(node, made, in);
      return;
    case ExprKind::kConst:
      // A text that is a statement is dropped by compilers, but not an f-string.
      if (PyUnicode_Check(value->object)) value = combine(ExprKind::kJoined, *value->at, {value});
      break;
    case ExprKind::kImportFrom:
      if (value->items[0]->op == 2) return;
      if (!node.stack.empty() && node.stack.back()->kind == ExprKind::kImportFrom) return;
      break;
    default:
      break;
  }
  // A value is dropped that something else on the stack still holds: a copy.
  if (!node.stack.empty() && node.stack.back() == value) return;
  made = arena_.stmt(StmtKind::kExpression);
  made->value = value_of(value);
  emit(node, made, in);
}

bool Structurer::store_special(Node& node, Expr* target, Expr* value, const Instruction& in) {
  if (store_type_alias(node, target, value, in)) return true;
  switch (value->kind) {
    case ExprKind::kAugmented: {
      Expr* old = value->items[0];
      bool same = old->kind == target->kind;
      if (same && old->kind == ExprKind::kName) same = old->text == target->text;
      if (same && old->kind == ExprKind::kAttribute) same = old->text == target->text && old->items[0] == target->items[0];
      if (same && old->kind == ExprKind::kSubscript) {
        same = old->items[0] == target->items[0] &&
               (old->items[1] == target->items[1] || (old->items[1]->kind == ExprKind::kSlice && equal(old->items[1], target->items[1])));
      }
      if (!same) no_form("an in-place operation whose result is stored elsewhere");
      Stmt* made = arena_.stmt(StmtKind::kAugmented);
      made->op = value->op;
      made->targets = {old};
      made->value = value->items[1];
      emit(node, made, in);
      return true;
    }
    case ExprKind::kFunction:
    case ExprKind::kClass:
    case ExprKind::kDecorated: {
      if (target->kind != ExprKind::kName) return false;
      Exprs decorators;
      Expr* inner = value;
      while (inner->kind == ExprKind::kDecorated) {
        decorators.push_back(inner->items[0]);
        inner = inner->items[1];
      }
      if (inner->function->name == "<lambda>") return false;
      const std::string& own = inner->function->name;
      const bool mangled = own.size() > 2 && own[0] == '_' && own[1] == '_' && target->text.size() > own.size() &&
                           target->text.compare(target->text.size() - own.size(), own.size(), own) == 0;
      if (own != target->text && !mangled) no_form("a definition stored under another name");
      Stmt* made = arena_.stmt(inner->kind == ExprKind::kClass ? StmtKind::kClass : StmtKind::kFunction);
      made->function = inner->function;
      made->decorators = std::move(decorators);
      if (inner->kind == ExprKind::kClass) made->targets = inner->items;
      made->is_async = inner->function->is_async;
      emit(node, made, in);
      made->at = inner->at;
      return true;
    }
    case ExprKind::kImport: {
      if (target->kind != ExprKind::kName) no_form("an import stored elsewhere");
      Stmt* made = arena_.stmt(StmtKind::kImport);
      Alias alias{value->text, ""};
      if (target->text != first_component(value->text)) alias.as = target->text;
      if (value->number != 0 || value->object != Py_None || (!alias.as.empty() && value->text.find('.') != std::string::npos)) {
        no_form("an import that binds what no import statement binds");
      }
      made->names = {alias};
      emit(node, made, in);
      return true;
    }
    case ExprKind::kImportFrom: {
      if (target->kind != ExprKind::kName) no_form("an import stored elsewhere");
      Expr* import = value->items[0];
      if (import->object == Py_None) {
        Stmt* made = arena_.stmt(StmtKind::kImport);
        made->names = {{import->text, target->text}};
        import->op = 2;
        emit(node, made, in);
        return true;
      }
      Expr* from = make(ExprKind::kName, in);
      from->text = value->text;
      import->items.push_back(from);
      import->items.push_back(target);
      return true;
    }
    default:
      break;
  }
  // name: annotation = value
  if (target->kind == ExprKind::kSubscript && target->items[0]->kind == ExprKind::kName && target->items[0]->text == "__annotations__" &&
      target->items[1]->kind == ExprKind::kConst && PyUnicode_Check(target->items[1]->object) && value->kind != ExprKind::kChain &&
      (kind_ == CodeKind::kClass || kind_ == CodeKind::kModule)) {
    Expr* annotated = name(text_of(target->items[1]->object), in);
    Stmt* made = arena_.stmt(StmtKind::kAnnotated);
    made->targets = {annotated};
    made->annotation = value;
    if (!node.stmts.empty()) {
      Stmt* before = node.stmts.back();
      if (before->kind == StmtKind::kAssign && before->targets.size() == 1 && before->targets[0]->kind == ExprKind::kName &&
          (before->targets[0]->text == annotated->text ||
           (before->targets[0]->text.size() > annotated->text.size() && before->targets[0]->text.ends_with(annotated->text) &&
            annotated->text.starts_with("__"))) &&
          before->at->position.line <= in.position.line && in.position.line <= std::max(before->at->position.end_line, in.position.line)) {
        made->value = before->value;
        node.stmts.pop_back();
      }
    }
    emit(node, made, in);
    return true;
  }
  return false;
}

bool Structurer::execute_data(Node& node, const Instruction& in) {
  switch (in.op) {
    case Op::BUILD_TUPLE:
    case Op::BUILD_LIST:
    case Op::BUILD_SET: {
      const ExprKind kind = in.op == Op::BUILD_TUPLE ? ExprKind::kTuple : in.op == Op::BUILD_LIST ? ExprKind::kList : ExprKind::kSet;
      Exprs items = pop_many(node, in.arg);
      if (keeps_constants(in, items)) items[0] = left_over(items[0]);
      push(node, combine(kind, in, std::move(items)));
      return true;
    }
    case Op::LIST_TO_TUPLE: {
      Expr* list = pop(node);
      if (list->kind != ExprKind::kList) no_form("a tuple made of what is no list");
      Expr* made = make(ExprKind::kTuple, in);
      made->items = list->items;
      made->first = list->first;
      made->last = list->last;
      made->op = 1;
      push(node, made);
      return true;
    }
    case Op::LIST_EXTEND:
    case Op::SET_UPDATE: {
      Expr* value = pop(node);
      Expr* whole = peek(node, in.arg);
      if (in.arg != 1 || (whole->kind != ExprKind::kList && whole->kind != ExprKind::kSet)) no_form("a display extended from afar");
      // Compilers keep three constants and more in one; of a set fewer are left where some are equal.
      constexpr Py_ssize_t kLeast = 3;
      const bool list = whole->kind == ExprKind::kList && is_const_tuple(value) && PyTuple_GET_SIZE(value->object) >= kLeast;
      const bool set = whole->kind == ExprKind::kSet && is_const_set(value);
      if (whole->items.empty() && (list || set)) {
        const py::Ref items = py::Ref::steal(PySequence_Tuple(value->object));
        if (!items) {
          PyErr_Clear();
          no_form("a constant that cannot be read");
        }
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i)
          whole->items.push_back(constant(PyTuple_GET_ITEM(items.get(), i), *value->at));
        // Only displays of three or more become constants; some of these were equal.
        while (is_const_set(value) && !whole->items.empty() && whole->items.size() < 3) {
          whole->items.push_back(constant(whole->items.back()->object, *value->at));
        }
        if (!whole->items.empty()) {
          while (whole->items.size() < kLeast) whole->items.push_back(whole->items.back());
          whole->last = ++clock_;
          return true;
        }
      }
      Expr* starred = make(ExprKind::kStarred, in);
      starred->items = {value};
      starred->first = value->first;
      starred->last = value->last;
      whole->items.push_back(starred);
      whole->last = ++clock_;
      return true;
    }
    case Op::LIST_APPEND:
    case Op::SET_ADD: {
      Expr* value = pop(node);
      Expr* whole = peek(node, in.arg);
      if (in.arg == 1 && (whole->kind == ExprKind::kList || whole->kind == ExprKind::kSet)) {
        whole->items.push_back(value);
        whole->last = ++clock_;
        return true;
      }
      Stmt* made = arena_.stmt(StmtKind::kExpression);
      made->value = make(ExprKind::kOther, in);
      made->value->text = "append";
      made->value->items = {value};
      emit(node, made, in);
      return true;
    }
    case Op::MAP_ADD: {
      Exprs pair = pop_many(node, 2);
      Expr* whole = peek(node, in.arg);
      if (in.arg == 1 && whole->kind == ExprKind::kDict) {
        whole->items.insert(whole->items.end(), pair.begin(), pair.end());
        whole->last = ++clock_;
        return true;
      }
      Stmt* made = arena_.stmt(StmtKind::kExpression);
      made->value = make(ExprKind::kOther, in);
      made->value->text = "append";
      made->value->items = pair;
      emit(node, made, in);
      return true;
    }
    case Op::BUILD_MAP:
      push(node, combine(ExprKind::kDict, in, pop_many(node, size_t{in.arg} * 2)));
      return true;
    case Op::BUILD_CONST_KEY_MAP: {
      Expr* keys = pop(node);
      Exprs values = pop_many(node, in.arg);
      if (!is_const_tuple(keys) || PyTuple_GET_SIZE(keys->object) != static_cast<Py_ssize_t>(values.size()))
        no_form("keys that are no constant");
      Exprs items;
      for (size_t i = 0; i < values.size(); ++i) {
        items.push_back(constant(PyTuple_GET_ITEM(keys->object, static_cast<Py_ssize_t>(i)), *keys->at));
        items.push_back(values[i]);
      }
      push(node, combine(ExprKind::kDict, in, std::move(items)));
      return true;
    }
    case Op::DICT_UPDATE:
    case Op::DICT_MERGE: {
      Expr* value = pop(node);
      Expr* whole = peek(node, in.arg);
      if (in.arg != 1 || whole->kind != ExprKind::kDict) no_form("a dict display extended from afar");
      const size_t size = whole->items.size();
      const bool behind_star = size >= 2 && whole->items[size - 2] == nullptr;
      const bool chunk = size >= 30 && whole->number == 0;
      if (value->kind == ExprKind::kDict && !value->items.empty() && (behind_star || chunk)) {
        whole->items.insert(whole->items.end(), value->items.begin(), value->items.end());
      } else {
        whole->items.push_back(nullptr);
        whole->items.push_back(value);
      }
      if (whole->first == INT32_MAX) whole->first = value->first;
      whole->last = ++clock_;
      return true;
    }
    case Op::BUILD_SLICE: {
      Exprs parts = pop_many(node, in.arg);
      Expr* made = combine(ExprKind::kSlice, in, std::move(parts));
      made->items.resize(3, nullptr);
      for (size_t i = 0; i < 2; ++i) {
        if (is_none(made->items[i])) made->items[i] = nullptr;
      }
      push(node, made);
      return true;
    }
    case Op::FORMAT_VALUE: {
      Expr* spec = (in.arg & 4) != 0 ? pop(node) : nullptr;
      Exprs items{pop(node)};
      if (spec != nullptr) items.push_back(spec);
      Expr* made = combine(ExprKind::kFormatted, in, std::move(items));
      made->op = static_cast<uint8_t>(in.arg & 3);
      push(node, made);
      return true;
    }
    case Op::CONVERT_VALUE: {
      Expr* made = combine(ExprKind::kFormatted, in, {pop(node)});
      made->op = static_cast<uint8_t>(in.arg);
      made->number = 1;  // FORMAT_SIMPLE or FORMAT_WITH_SPEC is still to come
      push(node, made);
      return true;
    }
    case Op::FORMAT_SIMPLE:
    case Op::FORMAT_WITH_SPEC: {
      Expr* spec = in.op == Op::FORMAT_WITH_SPEC ? pop(node) : nullptr;
      Expr* value = pop(node);
      uint8_t conversion = 0;
      if (value->kind == ExprKind::kFormatted && value->number == 1) {
        conversion = value->op;
        value = value->items[0];
      }
      Exprs items{value};
      if (spec != nullptr) items.push_back(spec);
      Expr* made = combine(ExprKind::kFormatted, in, std::move(items));
      made->op = conversion;
      push(node, made);
      return true;
    }
    case Op::BUILD_STRING:
      push(node, combine(ExprKind::kJoined, in, pop_many(node, in.arg)));
      return true;
    case Op::UNPACK_SEQUENCE:
      unpack(node, in.arg, -1, in);
      return true;
    case Op::UNPACK_EX:
      unpack(node, (in.arg & 0xff) + 1 + (in.arg >> 8), static_cast<int>(in.arg & 0xff), in);
      return true;
    default:
      return false;
  }
}

// From 3.10 on compilers make one constant of a tuple of constants, and of three or more in a list or a set, unless one of them was left
// of something else.
bool Structurer::keeps_constants(const Instruction& in, const Exprs& items) const {
  if (code_.version < 310 || items.empty() || (in.op != Op::BUILD_TUPLE && items.size() < 3)) return false;
  if (std::any_of(items.begin(), items.end(), [](const Expr* item) { return item->kind != ExprKind::kConst; })) return false;
  if (code_.version == 310) return in.position.line > 0;
  if (!has_place(in)) return false;
  if (code_.version < 312) return true;
  const bytecode::Position& p = in.position;
  for (const Instruction* next = &in + 1; next < flow_.ins.data() + flow_.ins.size(); ++next) {
    const bytecode::Position& q = next->position;
    if (q.line < p.line || q.end_line > p.end_line || (q.line == p.line && q.column < p.column) ||
        (q.end_line == p.end_line && q.end_column > p.end_column)) {
      return true;
    }
    // What follows a star is put behind them.
    const bool same = q.line == p.line && q.column == p.column && q.end_line == p.end_line && q.end_column == p.end_column;
    if (same && (next->op == Op::LIST_EXTEND || next->op == Op::LIST_APPEND || next->op == Op::SET_UPDATE || next->op == Op::SET_ADD))
      return false;
  }
  return true;
}

// A constant that stands where the compiler keeps the first one of `constant or x`, or of `constant and x`.
Expr* Structurer::left_over(Expr* value) {
  const int truth = PyObject_IsTrue(value->object);
  if (truth < 0) PyErr_Clear();
  Expr* made = arena_.expr(ExprKind::kBool);
  made->at = value->at;
  made->op = truth != 0 ? kOr : kAnd;
  made->items = {value, value};
  made->first = value->first;
  made->last = value->last;
  return made;
}

bool Structurer::execute_control(Node& node, const Instruction& in) {
  switch (in.op) {
    case Op::RETURN_VALUE:
    case Op::RETURN_CONST: {
      if (in.op == Op::RETURN_CONST) push(node, constant(code_.consts.at(in.arg).get(), in));
      if (!naming_) leave_nothing(node);
      Stmt* made = arena_.stmt(StmtKind::kReturn);
      made->value = pop(node);
      // A constant that stands alone is returned in one instruction.
      const auto index = static_cast<size_t>(&in - flow_.ins.data());
      if (code_.version >= 312 && has_place(in) && in.op == Op::RETURN_VALUE && made->value->kind == ExprKind::kConst && index > 0 &&
          made->value->at == &in - 1 && flow_.block_of[index] == flow_.block_of[index - 1]) {
        made->value = left_over(made->value);
      }
      emit(node, made, in);
      node.end = End::kStop;
      return true;
    }
    case Op::RAISE_VARARGS: {
      Stmt* made = arena_.stmt(StmtKind::kRaise);
      Exprs parts = pop_many(node, in.arg);
      if (!parts.empty()) made->value = parts[0];
      if (parts.size() > 1) {
        made->cause = parts[1];
        if (parts[0]->last >= 0 && parts[1]->last >= 0 && parts[1]->first <= parts[0]->last)
          no_form("a cause evaluated before what is raised");
      }
      emit(node, made, in);
      return true;
    }
    case Op::RERAISE:
    case Op::END_FINALLY:
      node.end = End::kStop;
      return true;
    case Op::YIELD_VALUE:
      push(node, combine(ExprKind::kYield, in, {pop(node)}));
      return true;
    case Op::ASYNC_GEN_WRAP:
    case Op::END_SEND:
      return true;
    case Op::RETURN_GENERATOR: {
      Expr* made = make(ExprKind::kOther, in);
      made->text = "generator";
      push(node, made);
      return true;
    }
    case Op::GET_ITER: {
      push(node, combine(ExprKind::kIterable, in, {pop(node)}));
      return true;
    }
    case Op::GET_AITER: {
      Expr* made = combine(ExprKind::kIterable, in, {pop(node)});
      made->op = 1;
      push(node, made);
      return true;
    }
    case Op::GET_YIELD_FROM_ITER:
      return true;
    case Op::GET_AWAITABLE: {
      Expr* value = pop(node);
      if (value->kind == ExprKind::kWithEnter || (value->kind == ExprKind::kOther && value->text == "left")) {
        push(node, value);
        return true;
      }
      if (value->kind == ExprKind::kComprehension && (value->function->code.flags & 0x80) != 0 && value->number == 0) {
        value->number = 1;  // an asynchronous comprehension is awaited by itself
        push(node, value);
        return true;
      }
      Expr* made = combine(ExprKind::kAwait, in, {value});
      made->op = 1;  // waiting for SEND
      push(node, made);
      return true;
    }
    case Op::GET_ANEXT:
      return true;  // makes the loop variable's value: see make_loop
    case Op::SEND:
    case Op::YIELD_FROM: {
      pop_raw(node);  // None
      Expr* value = pop(node);
      if (value->kind == ExprKind::kAwait && value->op == 1) {
        value->op = 0;
        push(node, value);
      } else if (value->kind == ExprKind::kNext || (value->kind == ExprKind::kComprehension && value->number == 1) ||
                 value->kind == ExprKind::kWithEnter || value->kind == ExprKind::kOther) {
        push(node, value);
      } else {
        push(node, combine(ExprKind::kYieldFrom, in, {value}));
      }
      return true;
    }
    case Op::BEFORE_WITH:
    case Op::BEFORE_ASYNC_WITH: {
      Expr* context = pop(node);
      Expr* exit = make(ExprKind::kWithExit, in);
      exit->number = static_cast<int32_t>(&in - flow_.ins.data());
      Expr* enter = make(ExprKind::kWithEnter, in);
      enter->number = exit->number;
      enter->value = context;
      enter->op = in.op == Op::BEFORE_ASYNC_WITH;
      enter->first = context->first;
      enter->last = ++clock_;
      push(node, exit);
      push(node, enter);
      return true;
    }
    case Op::PUSH_EXC_INFO: {
      Expr* made = make(ExprKind::kException, in);
      push(node, made);
      return true;
    }
    case Op::CHECK_EXC_MATCH: {
      Expr* type = pop(node);
      Expr* made = combine(ExprKind::kExceptionMatch, in, {type});
      push(node, made);
      return true;
    }
    case Op::CHECK_EG_MATCH: {
      Expr* made = combine(ExprKind::kExceptionMatch, in, {pop(node)});
      made->op = 1;
      push(node, made);
      return true;
    }
    case Op::POP_EXCEPT: {
      Expr* popped = pop_raw(node);
      if (popped->kind != ExprKind::kException) no_form("the end of a handler with a value on the stack");
      Stmt* made = arena_.stmt(StmtKind::kLeave);
      made->text = "except";
      emit(node, made, in);
      return true;
    }
    case Op::LOAD_ASSERTION_ERROR:
      push(node, make(ExprKind::kAssertion, in));
      return true;
    case Op::SETUP_ANNOTATIONS:
      return true;
    case Op::LOAD_BUILD_CLASS:
      push(node, make(ExprKind::kBuildClass, in));
      return true;
    case Op::LOAD_CLOSURE: {
      Expr* made = make(ExprKind::kClosure, in);
      made->text = local_at(in.arg);
      push(node, made);
      return true;
    }
    case Op::IMPORT_NAME: {
      Expr* from = pop(node);
      Expr* level = pop(node);
      if (from->kind != ExprKind::kConst || level->kind != ExprKind::kConst || !PyLong_Check(level->object))
        no_form("an import of what is no constant");
      Expr* made = make(ExprKind::kImport, in);
      made->text = name_at(in.arg);
      made->object = from->object;
      const long number = PyLong_AsLong(level->object);
      if (number < 0 || number > 1000) {
        PyErr_Clear();
        no_form("an import of an impossible level");
      }
      made->number = static_cast<int32_t>(number);
      made->first = made->last = ++clock_;
      push(node, made);
      return true;
    }
    case Op::IMPORT_FROM: {
      Expr* import = peek(node, 1);
      Expr* made = make(ExprKind::kImportFrom, in);
      while (import->kind == ExprKind::kImportFrom) import = import->items[0];
      if (import->kind != ExprKind::kImport) no_form("a name imported from what is no module");
      made->items = {import};
      made->text = name_at(in.arg);
      made->first = made->last = ++clock_;
      push(node, made);
      return true;
    }
    case Op::IMPORT_STAR: {
      Expr* import = pop(node);
      if (import->kind != ExprKind::kImport) no_form("import * from what is no module");
      Stmt* made = arena_.stmt(StmtKind::kImportFrom);
      made->text = import->text;
      made->number = import->number;
      made->names = {{"*", ""}};
      emit(node, made, in);
      return true;
    }
    case Op::CALL_INTRINSIC_1:
      switch (in.arg) {
        case 2: {  // import *
          Expr* import = peek(node, 1);
          if (import->kind != ExprKind::kImport) no_form("import * from what is no module");
          return true;  // POP_TOP follows
        }
        case 4:  // wraps what an async generator yields
          return true;
        case 5: {
          Expr* made = combine(ExprKind::kUnary, in, {pop(node)});
          made->op = kPositive;
          push(node, made);
          return true;
        }
        case 6: {
          Expr* list = pop(node);
          if (list->kind != ExprKind::kList) no_form("a tuple made of what is no list");
          Expr* made = make(ExprKind::kTuple, in);
          made->items = list->items;
          made->first = list->first;
          made->last = list->last;
          made->op = 1;
          push(node, made);
          return true;
        }
        default:
          return false;
      }
    default:
      return false;
  }
}

}  // namespace pellucid::decompile
