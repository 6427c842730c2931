// Type parameters of functions, classes and aliases (3.12 and later): a scope of its own makes them, then what they belong to. Its code
// is executed like a function's; what it returns takes its place. Knows what the intrinsics make, not how it is printed.
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

constexpr char kParameter[] = "type parameter";
constexpr char kAlias[] = "type alias";

bool is_other(const Expr* expr, const char* what) { return expr->kind == ExprKind::kOther && expr->text == what; }

// What the small function returns that evaluates a bound, a default or an alias.
Expr* evaluated(const Expr* function) {
  if (function->kind != ExprKind::kFunction) no_form("a type that no function evaluates");
  for (const Stmt* stmt : function->function->body) {
    if (stmt->kind == StmtKind::kReturn && stmt->value != nullptr && function->function->body.size() == 1) return stmt->value;
  }
  no_form("a type that no expression evaluates");
}

}  // namespace

bool is_type_scope(const std::string& name) { return name.rfind("<generic parameters of ", 0) == 0; }

void Structurer::type_parameters(const Expr* tuple, std::vector<TypeParameter>* out) {
  if (tuple->kind != ExprKind::kTuple) no_form("type parameters of an unknown form");
  for (const Expr* item : tuple->items) {
    if (item->kind == ExprKind::kNamed) item = item->items[1];
    if (!is_other(item, kParameter)) no_form("type parameters of an unknown form");
    TypeParameter made;
    made.name = text_of(item->object);
    made.stars = static_cast<uint8_t>(item->number);
    made.bound = item->items[0];
    made.default_value = item->items[1];
    out->push_back(made);
  }
}

bool Structurer::execute_types(Node& node, const Instruction& in) {
  const auto parameter = [&](int stars, Expr* bound) {
    Expr* name = pop(node);
    if (name->kind != ExprKind::kConst) no_form("a type parameter without a name");
    Expr* made = make(ExprKind::kOther, in);
    made->text = kParameter;
    made->object = name->object;
    made->number = stars;
    made->items = {bound, nullptr};
    push(node, made);
  };
  if (in.op == Op::CALL_INTRINSIC_1) {
    switch (in.arg) {
      case 7:
        parameter(0, nullptr);
        return true;
      case 8:
        parameter(2, nullptr);
        return true;
      case 9:
        parameter(1, nullptr);
        return true;
      case 10: {
        Expr* made = make(ExprKind::kOther, in);
        made->text = "generic base";
        pop(node);
        push(node, made);
        return true;
      }
      case 11: {
        Expr* parts = pop(node);
        if (parts->kind != ExprKind::kTuple || parts->items.size() != 3) no_form("a type alias of an unknown form");
        Expr* made = make(ExprKind::kOther, in);
        made->text = kAlias;
        made->function = parts->items[2]->function;
        made->value = evaluated(parts->items[2]);
        if (parts->items[1]->kind != ExprKind::kConst) type_parameters(parts->items[1], &made->function->type_parameters);
        push(node, made);
        return true;
      }
      default:
        return false;
    }
  }
  if (in.op != Op::CALL_INTRINSIC_2) return false;
  switch (in.arg) {
    case 2:
    case 3: {
      Expr* bound = evaluated(pop(node));
      parameter(0, bound);
      return true;
    }
    case 4: {
      Expr* parameters = pop(node);
      Expr* function = peek(node, 1);
      if (function->kind != ExprKind::kFunction) no_form("type parameters of what is no function");
      type_parameters(parameters, &function->function->type_parameters);
      return true;
    }
    case 5: {
      Expr* value = evaluated(pop(node));
      Expr* made = peek(node, 1);
      if (!is_other(made, kParameter)) no_form("a default of what is no type parameter");
      made->items[1] = starred_of(value);
      return true;
    }
    default:
      return false;
  }
}

// The call of a scope of type parameters stands for what the scope returns. Defaults are evaluated outside and handed in.
Expr* Structurer::call_type_scope(const Expr* scope, const Exprs& args, const Instruction& in) {
  const Function& f = *scope->function;
  Exprs generic;
  Expr* made = nullptr;
  const Expr* parameters = nullptr;
  for (const Stmt* stmt : f.body) {
    if (stmt->kind == StmtKind::kReturn) {
      made = stmt->value;
    } else if (stmt->kind == StmtKind::kAssign && stmt->targets.size() == 1 && stmt->targets[0]->kind == ExprKind::kName &&
               stmt->targets[0]->text[0] == '.') {
      if (stmt->targets[0]->text == ".type_params") parameters = stmt->value;
    } else {
      no_form("a scope of type parameters with statements");
    }
  }
  if (made == nullptr || args.size() != f.positional.size()) no_form("a scope of type parameters of an unknown form");
  if (made->kind == ExprKind::kClass) {
    if (parameters == nullptr) no_form("a generic class without type parameters");
    type_parameters(parameters, &made->function->type_parameters);
    Exprs bases;
    for (Expr* base : made->items) {
      if (base->kind != ExprKind::kName || base->text != ".generic_base") bases.push_back(base);
    }
    made->items = std::move(bases);
  } else if (made->kind == ExprKind::kFunction) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (f.positional[i].name == ".defaults") {
        if (!tuple_of(args[i], &made->function->defaults)) no_form("defaults of an unknown form");
      } else {
        keyword_defaults(made->function, args[i]);
      }
    }
    add_to_signature(*made->function);
  } else if (!is_other(made, kAlias)) {
    no_form("a scope of type parameters of an unknown form");
  }
  made->at = &in;
  made->first = INT32_MAX;
  made->last = ++clock_;
  made->first = made->last;
  return made;
}

bool Structurer::store_type_alias(Node& node, Expr* target, Expr* value, const Instruction& in) {
  if (!is_other(value, kAlias)) return false;
  if (target->kind != ExprKind::kName) no_form("a type alias stored elsewhere");
  Stmt* made = arena_.stmt(StmtKind::kTypeAlias);
  made->targets = {target};
  made->value = value->value;
  made->function = value->function;
  emit(node, made, in);
  return true;
}

}  // namespace pellucid::decompile
