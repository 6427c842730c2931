// Symbolic execution of one instruction: operators, names, stores. What needs more room is in operations.cpp and functions.cpp.
#include <algorithm>

#include "bytecode/effects.h"
#include "bytecode/tables.h"
#include "decompile/canonical.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

int binary_of(Op op) {
  switch (op) {
    case Op::BINARY_ADD:
    case Op::INPLACE_ADD:
      return kAdd;
    case Op::BINARY_AND:
    case Op::INPLACE_AND:
      return kBitAnd;
    case Op::BINARY_FLOOR_DIVIDE:
    case Op::INPLACE_FLOOR_DIVIDE:
      return kFloorDivide;
    case Op::BINARY_LSHIFT:
    case Op::INPLACE_LSHIFT:
      return kLeftShift;
    case Op::BINARY_MATRIX_MULTIPLY:
    case Op::INPLACE_MATRIX_MULTIPLY:
      return kMatrixMultiply;
    case Op::BINARY_MULTIPLY:
    case Op::INPLACE_MULTIPLY:
      return kMultiply;
    case Op::BINARY_MODULO:
    case Op::INPLACE_MODULO:
      return kModulo;
    case Op::BINARY_OR:
    case Op::INPLACE_OR:
      return kBitOr;
    case Op::BINARY_POWER:
    case Op::INPLACE_POWER:
      return kPower;
    case Op::BINARY_RSHIFT:
    case Op::INPLACE_RSHIFT:
      return kRightShift;
    case Op::BINARY_SUBTRACT:
    case Op::INPLACE_SUBTRACT:
      return kSubtract;
    case Op::BINARY_TRUE_DIVIDE:
    case Op::INPLACE_TRUE_DIVIDE:
      return kDivide;
    case Op::BINARY_XOR:
    case Op::INPLACE_XOR:
      return kBitXor;
    default:
      return -1;
  }
}

bool is_inplace(Op op) { return op >= Op::INPLACE_ADD && op <= Op::INPLACE_XOR; }

}  // namespace

std::string utf8(PyObject* text) {
  const py::Ref bytes = py::Ref::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
  if (!bytes) {
    PyErr_Clear();
    no_form("a name that is no text");
  }
  return {PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))};
}

std::string Structurer::text_of(PyObject* object) const {
  if (!PyUnicode_Check(object)) no_form("a name that is no text");
  return utf8(object);
}

std::string Structurer::name_at(uint32_t index) const {
  if (index >= code_.names.size()) no_form("a name out of range");
  return text_of(code_.names[index].get());
}

std::string Structurer::local_at(uint32_t index) const {
  if (index >= code_.localsplus_names.size()) no_form("a variable out of range");
  return text_of(code_.localsplus_names[index].get());
}

// What stays on the stack through statements: iterators, contexts, exceptions.
bool Structurer::is_frame(const Expr* expr) {
  switch (expr->kind) {
    case ExprKind::kIterator:
    case ExprKind::kWithExit:
    case ExprKind::kException:
    case ExprKind::kMatchValue:
      return true;
    case ExprKind::kOther:
      return expr->text == "accumulator" || expr->text == "saved";
    default:
      return false;
  }
}

Expr* Structurer::name(const std::string& text, const Instruction& in) {
  Expr* made = make(ExprKind::kName, in);
  made->text = text;
  made->first = made->last = ++clock_;
  return made;
}

Expr* Structurer::constant(PyObject* object, const Instruction& in) {
  Expr* made = make(ExprKind::kConst, in);
  made->object = object;
  return made;
}

// An operator evaluates its operands from left to right, before itself.
void Structurer::order_items(Expr* made) {
  int32_t last = -1;
  for (const Expr* item : made->items) {
    if (item == nullptr || item->last < 0) continue;
    if (item->first <= last) no_form("operands evaluated in another order than they stand");
    if (made->first == INT32_MAX) made->first = item->first;
    last = item->last;
  }
  made->last = ++clock_;
  if (made->first == INT32_MAX) made->first = made->last;
}

Expr* Structurer::combine(ExprKind kind, const Instruction& in, Exprs items) {
  Expr* made = make(kind, in);
  made->items = std::move(items);
  order_items(made);
  return made;
}

Expr* Structurer::pop_raw(Node& node) {
  if (node.stack.empty()) no_form("the stack is empty");
  Expr* value = another(node.stack.back());
  node.stack.pop_back();
  return value;
}

Exprs Structurer::pop_many(Node& node, size_t count) {
  if (node.stack.size() < count) no_form("the stack is empty");
  Exprs values(node.stack.end() - static_cast<std::ptrdiff_t>(count), node.stack.end());
  node.stack.resize(node.stack.size() - count);
  for (Expr*& value : values) value = value_of(another(value));
  return values;
}

Expr* Structurer::peek(Node& node, size_t depth) {
  if (depth == 0 || node.stack.size() < depth) no_form("the stack is empty");
  return node.stack[node.stack.size() - depth];
}

// A value that was stored while it stayed on the stack, used as an operand: an assignment expression.
Expr* Structurer::value_of(Expr* expr) {
  if (expr->kind == ExprKind::kChain) {
    Expr* value = expr->value;
    for (Expr* target : expr->items) {
      if (target->kind != ExprKind::kName) no_form("a value stored and used");
      Expr* named = make(ExprKind::kNamed, *target->at);
      named->items = {target, value};
      named->first = expr->first;
      named->last = expr->last;
      value = named;
    }
    return value;
  }
  return expr;
}

void Structurer::emit(Node& node, Stmt* stmt, const Instruction& in) {
  if (naming_) name_stack(node, in);
  stmt->at = &in;
  stmt->order = ++clock_;
  node.stmts.push_back(stmt);
}

// Whether from instruction `index` on the values above the frame are all stored, one after the other: `a, b = b, a` without a tuple.
bool Structurer::drains(const Node& node, int index) const {
  int pending = 0;
  for (size_t i = node.stack.size(); i-- > 0 && !is_frame(node.stack[i]);) ++pending;
  const bytecode::Tables* tables = bytecode::tables(code_.version);
  int depth = pending;
  for (const int end = flow_.blocks[at(node.last)].end; index < end && depth > 0; ++index) {
    const Instruction& in = code_.instructions[at(index)];
    if (in.op == Op::STORE_FAST || in.op == Op::STORE_NAME || in.op == Op::STORE_GLOBAL || in.op == Op::STORE_DEREF) {
      --depth;
      continue;
    }
    if (in.target >= 0 || in.op == Op::POP_TOP || in.op == Op::RETURN_VALUE || in.op == Op::POP_EXCEPT || in.op == Op::RERAISE ||
        in.op == Op::RAISE_VARARGS || in.op == Op::YIELD_VALUE) {
      return false;
    }
    depth += bytecode::stack_effect(*tables, in.op, in.arg, false);
  }
  return depth == 0 && pending > 0;
}

void Structurer::close_group(Node& node, const Instruction& in) {
  std::vector<std::pair<Expr*, Expr*>> group = std::move(node.group);
  node.group.clear();
  node.group_size = 0;
  std::stable_sort(group.begin(), group.end(), [](const auto& a, const auto& b) { return a.second->at < b.second->at; });
  Stmt* made = arena_.stmt(StmtKind::kAssign);
  Expr* targets = make(ExprKind::kTuple, in);
  Expr* values = make(ExprKind::kTuple, in);
  for (const auto& [target, value] : group) {
    targets->items.push_back(target);
    values->items.push_back(value_of(value));
  }
  order_items(values);
  made->targets = {targets};
  made->value = values;
  emit(node, made, in);
}

void Structurer::store(Node& node, Expr* target, const Instruction& in) { store_value(node, target, pop_raw(node), in); }

void Structurer::store_value(Node& node, Expr* target, Expr* value, const Instruction& in) {
  if (value->kind == ExprKind::kOther && value->text == "saved") return;  // restores what a comprehension saved
  if (value->kind == ExprKind::kUnpacked) {
    Expr* whole = value->items[0];
    whole->items[at(value->number)] = target;
    if (--whole->op > 0) return;
    Expr* targets = make(ExprKind::kTuple, in);
    targets->items = whole->items;
    if (whole->number >= 0) {
      Expr*& starred = targets->items[at(whole->number)];
      Expr* star = make(ExprKind::kStarred, in);
      star->items = {starred};
      starred = star;
    }
    store_value(node, targets, whole->value, in);
    return;
  }
  if (node.group_size > 0) {
    node.group.push_back({target, value});
    if (node.group.size() == node.group_size) close_group(node, in);
    return;
  }
  if (!node.stack.empty() && node.stack.back() == value && !is_frame(value)) {  // it was copied: more is stored, or an expression uses it
    if (value->kind == ExprKind::kChain) {
      value->items.push_back(target);
      value->last = ++clock_;
      return;
    }
    Expr* chain = make(ExprKind::kChain, in);
    chain->value = value;
    chain->items = {target};
    chain->first = value->first;
    chain->last = ++clock_;
    if (chain->first == INT32_MAX) chain->first = chain->last;
    node.stack.back() = chain;
    return;
  }
  if (!naming_ && !node.stack.empty() && !is_frame(node.stack.back()) && node.stack.back()->kind != ExprKind::kImport &&
      node.stack.back()->kind != ExprKind::kUnpacked && value->kind != ExprKind::kNext && value->kind != ExprKind::kImportFrom) {
    const int index = static_cast<int>(&in - flow_.ins.data());
    if (drains(node, index + 1)) {
      size_t pending = 1;
      for (size_t i = node.stack.size(); i-- > 0 && !is_frame(node.stack[i]);) ++pending;
      node.group_size = pending;
      node.group = {{target, value}};
      return;
    }
  }
  if (store_special(node, target, value, in)) return;
  Stmt* made = arena_.stmt(StmtKind::kAssign);
  if (value->kind == ExprKind::kChain) {
    made->targets = value->items;
    made->targets.push_back(target);
    made->value = value->value;
  } else {
    made->targets = {target};
    made->value = value;
  }
  emit(node, made, in);
}

void Structurer::unpack(Node& node, size_t count, int star, const Instruction& in) {
  Expr* value = pop_raw(node);
  if (count == 0) {
    Expr* targets = make(ExprKind::kTuple, in);
    store_value(node, targets, value, in);
    return;
  }
  if (count > 255) no_form("an unpacking of more than 255 values");
  Expr* whole = make(ExprKind::kUnpack, in);
  whole->value = value;
  whole->number = star;
  whole->items.assign(count, nullptr);
  whole->op = static_cast<uint8_t>(count);
  for (size_t i = count; i-- > 0;) {
    Expr* element = make(ExprKind::kUnpacked, in);
    element->items = {whole};
    element->number = static_cast<int32_t>(i);
    push(node, element);
  }
}

bool Structurer::execute_names(Node& node, const Instruction& in) {
  const bool indexed = code_.version >= 311;
  switch (in.op) {
    case Op::LOAD_FAST:
    case Op::LOAD_FAST_CHECK:
    case Op::LOAD_DEREF:
    case Op::LOAD_CLASSDEREF:
      push(node, name(local_at(in.arg), in));
      return true;
    case Op::LOAD_FAST_AND_CLEAR: {
      Expr* made = make(ExprKind::kOther, in);
      made->text = "saved";
      push(node, made);
      return true;
    }
    case Op::LOAD_FROM_DICT_OR_DEREF:
      pop_raw(node);
      push(node, name(local_at(in.arg), in));
      return true;
    case Op::LOAD_FROM_DICT_OR_GLOBALS:
      pop_raw(node);
      push(node, name(name_at(in.arg), in));
      return true;
    case Op::LOAD_LOCALS: {
      Expr* made = make(ExprKind::kOther, in);
      made->text = "locals";
      push(node, made);
      return true;
    }
    case Op::LOAD_FAST_LOAD_FAST:
      push(node, name(local_at(in.arg >> 4), in));
      push(node, name(local_at(in.arg & 15), in));
      return true;
    case Op::STORE_FAST_LOAD_FAST:
      store(node, name(local_at(in.arg >> 4), in), in);
      push(node, name(local_at(in.arg & 15), in));
      return true;
    case Op::STORE_FAST_STORE_FAST:
      store(node, name(local_at(in.arg >> 4), in), in);
      store(node, name(local_at(in.arg & 15), in), in);
      return true;
    case Op::LOAD_NAME:
      push(node, name(name_at(in.arg), in));
      return true;
    case Op::LOAD_GLOBAL: {
      if (indexed && (in.arg & 1) != 0 && code_.version < 313) push(node, make(ExprKind::kNull, in));
      const std::string text = name_at(indexed ? in.arg >> 1 : in.arg);
      // A comprehension that stands in a class body (3.12) passes by the class's names.
      if (inlining_ == 0 && (kind_ == CodeKind::kClass || kind_ == CodeKind::kModule)) globals_.push_back(text);
      push(node, name(text, in));
      if (indexed && (in.arg & 1) != 0 && code_.version >= 313) push(node, make(ExprKind::kNull, in));
      return true;
    }
    case Op::STORE_FAST:
      store(node, name(local_at(in.arg), in), in);
      return true;
    case Op::STORE_DEREF:
      if (code_.localsplus_kinds.at(in.arg) == bytecode::LocalKind::kFree) nonlocals_.push_back(local_at(in.arg));
      store(node, name(local_at(in.arg), in), in);
      return true;
    case Op::STORE_NAME:
      store(node, name(name_at(in.arg), in), in);
      return true;
    case Op::STORE_GLOBAL:
      globals_.push_back(name_at(in.arg));
      store(node, name(name_at(in.arg), in), in);
      return true;
    case Op::DELETE_FAST:
    case Op::DELETE_DEREF:
    case Op::DELETE_NAME:
    case Op::DELETE_GLOBAL: {
      const bool local = in.op == Op::DELETE_FAST || in.op == Op::DELETE_DEREF;
      const std::string text = local ? local_at(in.arg) : name_at(in.arg);
      if (in.op == Op::DELETE_GLOBAL) globals_.push_back(text);
      if (in.op == Op::DELETE_DEREF && code_.localsplus_kinds.at(in.arg) == bytecode::LocalKind::kFree) nonlocals_.push_back(text);
      Stmt* made = arena_.stmt(StmtKind::kDelete);
      made->targets = {name(text, in)};
      emit(node, made, in);
      return true;
    }
    case Op::LOAD_ATTR:
    case Op::LOAD_METHOD: {
      const bool method = in.op == Op::LOAD_METHOD || (code_.version >= 312 && (in.arg & 1) != 0);
      Expr* made = combine(ExprKind::kAttribute, in, {pop(node)});
      made->text = name_at(code_.version >= 312 ? in.arg >> 1 : in.arg);
      push(node, made);
      if (method) push(node, make(ExprKind::kNull, in));
      return true;
    }
    case Op::LOAD_SUPER_ATTR: {
      Exprs parts = pop_many(node, 3);  // super, class, self
      Expr* super = (in.arg & 2) != 0 ? combine(ExprKind::kCall, in, parts) : combine(ExprKind::kCall, in, {parts[0]});
      Expr* made = combine(ExprKind::kAttribute, in, {super});
      made->text = name_at(in.arg >> 2);
      push(node, made);
      if ((in.arg & 1) != 0) push(node, make(ExprKind::kNull, in));
      return true;
    }
    case Op::STORE_ATTR: {
      Expr* object = pop(node);
      Expr* target = make(ExprKind::kAttribute, in);
      target->items = {object};
      target->text = name_at(in.arg);
      store(node, target, in);
      return true;
    }
    case Op::DELETE_ATTR: {
      Stmt* made = arena_.stmt(StmtKind::kDelete);
      Expr* target = make(ExprKind::kAttribute, in);
      target->items = {pop(node)};
      target->text = name_at(in.arg);
      made->targets = {target};
      emit(node, made, in);
      return true;
    }
    case Op::STORE_SUBSCR: {
      Expr* target = make(ExprKind::kSubscript, in);
      target->items = pop_many(node, 2);
      store(node, target, in);
      return true;
    }
    case Op::DELETE_SUBSCR: {
      Stmt* made = arena_.stmt(StmtKind::kDelete);
      Expr* target = make(ExprKind::kSubscript, in);
      target->items = pop_many(node, 2);
      made->targets = {target};
      emit(node, made, in);
      return true;
    }
    case Op::STORE_SLICE: {
      Exprs parts = pop_many(node, 3);
      Expr* slice = make(ExprKind::kSlice, in);
      slice->items = {parts[1], parts[2], nullptr};
      for (Expr*& bound : slice->items) {
        if (bound != nullptr && bound->kind == ExprKind::kConst && bound->object == Py_None) bound = nullptr;
      }
      Expr* target = make(ExprKind::kSubscript, in);
      target->items = {parts[0], slice};
      store(node, target, in);
      return true;
    }
    default:
      return false;
  }
}

// `not not x`, which 3.13 has an instruction for.
Expr* Structurer::made_bool(Expr* value, const Instruction& in) {
  for (int i = 0; i < 2; ++i) {
    value = combine(ExprKind::kUnary, in, {value});
    value->op = kNot;
  }
  return value;
}

void Structurer::execute(Node& node, int index) {
  const Instruction& in = flow_.ins[at(index)];
  if (naming_ && execute_moves(node, index)) return;
  switch (in.op) {
    case Op::NOP: {
      if (flow_.hidden[at(index)] || in.position.line < 0) return;
      Stmt* made = arena_.stmt(StmtKind::kNop);
      emit(node, made, in);
      return;
    }
    case Op::CACHE:
    case Op::RESUME:
    case Op::PRECALL:
    case Op::MAKE_CELL:
    case Op::COPY_FREE_VARS:
    case Op::EXTENDED_ARG:
    case Op::GEN_START:
    case Op::JUMP_ABSOLUTE:
    case Op::SETUP_FINALLY:
    case Op::BEGIN_FINALLY:
      return;
    case Op::LOAD_CONST:
      if (in.arg >= code_.consts.size()) no_form("a constant out of range");
      push(node, constant(code_.consts[in.arg].get(), in));
      return;
    case Op::POP_TOP:
    case Op::END_FOR:
      pop_top(node, in);
      return;
    case Op::PUSH_NULL:
      push(node, make(ExprKind::kNull, in));
      return;
    case Op::COPY:
      push(node, peek(node, in.arg));
      return;
    case Op::DUP_TOP:
      push(node, peek(node, 1));
      return;
    case Op::DUP_TOP_TWO: {
      Expr *a = peek(node, 2), *b = peek(node, 1);
      push(node, a);
      push(node, b);
      return;
    }
    case Op::SWAP:
    case Op::ROT_TWO: {
      const size_t depth = in.op == Op::SWAP ? in.arg : 2;
      peek(node, depth);
      std::swap(node.stack.back(), node.stack[node.stack.size() - depth]);
      return;
    }
    case Op::ROT_THREE:
    case Op::ROT_FOUR:
    case Op::ROT_N: {
      const size_t depth = in.op == Op::ROT_THREE ? 3 : in.op == Op::ROT_FOUR ? 4 : in.arg;
      peek(node, depth);
      std::rotate(node.stack.end() - static_cast<std::ptrdiff_t>(depth), node.stack.end() - 1, node.stack.end());
      return;
    }
    case Op::TO_BOOL:
      push(node, made_bool(pop(node), in));
      return;
    case Op::UNARY_POSITIVE:
    case Op::UNARY_NEGATIVE:
    case Op::UNARY_INVERT:
    case Op::UNARY_NOT: {
      Expr* made = combine(ExprKind::kUnary, in, {pop(node)});
      made->op = in.op == Op::UNARY_POSITIVE   ? kPositive
                 : in.op == Op::UNARY_NEGATIVE ? kNegative
                 : in.op == Op::UNARY_INVERT   ? kInvert
                                               : kNot;
      push(node, made);
      return;
    }
    case Op::BINARY_OP: {
      const bool inplace = in.arg >= 13;
      Expr* made = combine(inplace ? ExprKind::kAugmented : ExprKind::kBinary, in, pop_many(node, 2));
      made->op = static_cast<uint8_t>(inplace ? in.arg - 13 : in.arg);
      if (made->op > kBitXor) no_form("an unknown operator");
      push(node, made);
      return;
    }
    case Op::BINARY_SUBSCR:
      push(node, combine(ExprKind::kSubscript, in, pop_many(node, 2)));
      return;
    case Op::BINARY_SLICE: {
      Exprs parts = pop_many(node, 3);
      Expr* slice = make(ExprKind::kSlice, in);
      slice->items = {parts[1], parts[2], nullptr};
      for (Expr*& bound : slice->items) {
        if (bound != nullptr && bound->kind == ExprKind::kConst && bound->object == Py_None) bound = nullptr;
      }
      order_items(slice);
      push(node, combine(ExprKind::kSubscript, in, {parts[0], slice}));
      return;
    }
    case Op::COMPARE_OP:
    case Op::IS_OP:
    case Op::CONTAINS_OP: {
      uint32_t op = in.arg;
      if (in.op == Op::IS_OP) {
        op = in.arg != 0 ? kIsNot : kIs;
      } else if (in.op == Op::CONTAINS_OP) {
        op = in.arg != 0 ? kNotIn : kIn;
      } else if (code_.version >= 313) {
        op >>= 5;
      } else if (code_.version == 312) {
        op >>= 4;
      }
      if (in.op == Op::COMPARE_OP && op == 10) {  // 3.8: exception match
        Expr* type = pop(node);
        pop_raw(node);
        Expr* made = combine(ExprKind::kExceptionMatch, in, {type});
        push(node, made);
        return;
      }
      if (op > kIsNot) no_form("an unknown comparison");
      Expr* made = combine(ExprKind::kCompare, in, pop_many(node, 2));
      made->ops = {static_cast<uint8_t>(op)};
      const bool as_bool = code_.version >= 313 && in.op == Op::COMPARE_OP && (in.arg & 16) != 0 && !only_tested(flow_.ins, at(index));
      push(node, as_bool ? made_bool(made, in) : made);
      return;
    }
    default:
      break;
  }
  if (const int op = binary_of(in.op); op >= 0) {
    Expr* made = combine(is_inplace(in.op) ? ExprKind::kAugmented : ExprKind::kBinary, in, pop_many(node, 2));
    made->op = static_cast<uint8_t>(op);
    push(node, made);
    return;
  }
  if (execute_names(node, in) || execute_data(node, in) || execute_calls(node, in) || execute_control(node, in) ||
      execute_types(node, in) || execute_old(node, in)) {
    return;
  }
  no_form(std::string("no rule for ") + bytecode::op_name(in.op));
}

}  // namespace pellucid::decompile
