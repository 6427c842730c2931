// What the nodes' virtual functions do: operands checked, an expression built or the ShapeEnv asked, errors made Python's. Sees no Python
// attribute: those are in sym_node_python.cpp.
#include "torch_bridge/sym_node.h"

#include <typeinfo>

#include "symbolic/print.h"
#include "torch_bridge/sym_errors.h"
#include "torch_bridge/sym_node_impl.h"

namespace pellucid::bridge {
namespace {

namespace py11 = pybind11;
using symbolic::Expr;
using symbolic::ShapeEnv;
using symbolic::Type;

// PyTorch calls nodes with the GIL held and without.
class WithGil {
 public:
  WithGil() : held_(PyGILState_Check() != 0) {
    if (!held_) state_ = PyGILState_Ensure();
  }
  ~WithGil() {
    if (!held_) PyGILState_Release(state_);
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  bool held_;
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

const HeldExpr* held_by(const c10::SymNodeImpl& node) {
  // Both classes are final: comparing types is what a dynamic_cast would do, for less.
  if (typeid(node) == typeid(PlainNode)) return static_cast<const PlainNode*>(&node);
  if (typeid(node) == typeid(CastableNode)) return static_cast<const CastableNode*>(&node);
  return nullptr;
}

// What stands behind a float or boolean that came from Python.
const HeldExpr* held_in_python(const c10::SymNodeImpl& node) {
  const auto* python = dynamic_cast<const torch::impl::PythonSymNodeImpl*>(&node);
  if (python == nullptr) return nullptr;
  const py11::handle object = const_cast<torch::impl::PythonSymNodeImpl*>(python)->getPyObj();
  return py11::isinstance<PlainNode>(object) ? object.cast<PlainNode*>() : nullptr;
}

Expr operand(const c10::SymNode& node, ShapeEnv& env) {
  const HeldExpr* held = held_by(*node);
  if (held == nullptr) held = held_in_python(*node);
  if (held != nullptr) {
    if (&held->env() != &env)
      throw symbolic::Error(symbolic::ErrorKind::kForeign, symbolic::to_text(held->expr()) + " is of another ShapeEnv");
    return held->expr();
  }
  if (const auto value = node->constant_bool()) return env.build().truth(*value);
  if (const auto value = node->constant_int()) return env.build().constant(*value);
  if (const auto value = node->maybe_as_int()) return env.build().constant(*value);
  throw symbolic::Error(symbolic::ErrorKind::kForeign,
                        node->str() + " is a symbolic number of PyTorch's own ShapeEnv: the two can't be mixed");
}

template <class Function>
auto with_env(const HeldExpr& self, Function function) {
  const WithGil gil;
  return raising([&] { return function(self.env()); });
}

std::vector<Expr> operands(c10::ArrayRef<c10::SymNode> nodes, ShapeEnv& env) {
  std::vector<Expr> result;
  result.reserve(nodes.size());
  for (const auto& node : nodes) result.push_back(operand(node, env));
  return result;
}

}  // namespace

c10::SymNode make_sym_node(Expr expr) {
  if (expr->type == Type::kInt) return c10::make_intrusive<PlainNode>(expr);
  const WithGil gil;
  return c10::make_intrusive<CastableNode>(expr, py11::cast(c10::make_intrusive<PlainNode>(expr)));
}

Expr expr_of(const c10::SymNode& node) {
  if (const HeldExpr* held = held_by(*node)) return held->expr();
  const WithGil gil;
  const HeldExpr* held = held_in_python(*node);
  return held == nullptr ? nullptr : held->expr();
}

c10::SymInt to_sym_int(Expr expr) {
  if (expr->is_const() && symbolic::fits_int64(expr->value)) return c10::SymInt(static_cast<int64_t>(expr->value));
  return c10::SymInt(make_sym_node(expr));
}

Expr to_expr(const c10::SymInt& value, ShapeEnv& env) {
  if (const auto number = value.maybe_as_int()) return env.build().constant(*number);
  const WithGil gil;
  return operand(value.toSymNode(), env);
}

c10::SymNode unary(const HeldExpr& self, operators::Unary operation) {
  return with_env(self, [&](ShapeEnv& env) { return make_sym_node(operation(env.build(), self.expr())); });
}

c10::SymNode binary(const HeldExpr& self, const c10::SymNode& other, operators::Binary operation) {
  return with_env(self, [&](ShapeEnv& env) { return make_sym_node(operation(env.build(), self.expr(), operand(other, env))); });
}

c10::SymNode choose(const HeldExpr& self, const c10::SymNode& then_value, const c10::SymNode& else_value) {
  return with_env(self, [&](ShapeEnv& env) {
    return make_sym_node(env.build().where(self.expr(), operand(then_value, env), operand(else_value, env)));
  });
}

c10::SymNode layout(const HeldExpr& self, c10::ArrayRef<c10::SymNode> sizes, c10::ArrayRef<c10::SymNode> strides,
                    operators::Layout question) {
  return with_env(self, [&](ShapeEnv& env) { return make_sym_node(question(env, operands(sizes, env), operands(strides, env))); });
}

c10::SymNode literal(const HeldExpr& self, int64_t value) {
  return with_env(self, [&](ShapeEnv& env) { return make_sym_node(env.build().constant(value)); });
}
c10::SymNode literal(const HeldExpr& self, double value) {
  return with_env(self, [&](ShapeEnv& env) { return make_sym_node(env.build().real(value)); });
}
c10::SymNode literal(const HeldExpr& self, bool value) {
  return with_env(self, [&](ShapeEnv& env) { return make_sym_node(env.build().truth(value)); });
}

int64_t ask_int(const HeldExpr& self) {
  return with_env(self, [&](ShapeEnv& env) { return env.evaluate_int(operators::trunc(env.build(), self.expr()), user_site()); });
}
double ask_float(const HeldExpr& self) {
  return with_env(self, [&](ShapeEnv& env) { return env.evaluate_float(env.build().to_float(self.expr()), user_site()); });
}
bool ask_bool(const HeldExpr& self) {
  return with_env(self, [&](ShapeEnv& env) { return env.evaluate(operators::truth(env.build(), self.expr()), user_site()); });
}
bool ask_oblivious(const HeldExpr& self) {
  return with_env(self, [&](ShapeEnv& env) { return env.evaluate_size_oblivious(self.expr(), user_site()); });
}
bool ask_or(const HeldExpr& self, bool fallback) {
  return with_env(self, [&](ShapeEnv& env) { return env.guard_or(self.expr(), fallback, user_site()); });
}
bool known_true(const HeldExpr& self) {
  return with_env(self, [&](ShapeEnv& env) { return env.statically_known(self.expr()) == true; });
}
bool state_true(const HeldExpr& self, const std::string& message) {
  return with_env(self, [&](ShapeEnv& env) { return env.expect_true(self.expr(), message, user_site()); });
}
std::string text_of(const HeldExpr& self) {
  return with_env(self, [&](ShapeEnv& env) { return symbolic::to_text(env.simplify(self.expr())); });
}

}  // namespace pellucid::bridge
