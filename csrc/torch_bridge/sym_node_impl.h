// The two classes behind sym_node.h. Private to the files that make or bind them.
#pragma once
#include <torch/csrc/utils/python_symnode.h>

#include <optional>
#include <string>
#include <vector>

#include "torch_bridge/sym_node.h"
#include "torch_bridge/sym_operators.h"

namespace pellucid::bridge {

// What every virtual function does, whatever the class: with the GIL held, which is what serialises the users of a ShapeEnv.
c10::SymNode unary(const HeldExpr& self, operators::Unary operation);
c10::SymNode binary(const HeldExpr& self, const c10::SymNode& other, operators::Binary operation);
c10::SymNode choose(const HeldExpr& self, const c10::SymNode& then_value, const c10::SymNode& else_value);
c10::SymNode layout(const HeldExpr& self, c10::ArrayRef<c10::SymNode> sizes, c10::ArrayRef<c10::SymNode> strides,
                    operators::Layout question);
c10::SymNode literal(const HeldExpr& self, int64_t value);
c10::SymNode literal(const HeldExpr& self, double value);
c10::SymNode literal(const HeldExpr& self, bool value);
int64_t ask_int(const HeldExpr& self);
double ask_float(const HeldExpr& self);
bool ask_bool(const HeldExpr& self);
bool ask_oblivious(const HeldExpr& self);
bool ask_or(const HeldExpr& self, bool fallback);
bool known_true(const HeldExpr& self);
bool state_true(const HeldExpr& self, const std::string& message);
std::string text_of(const HeldExpr& self);

template <class Base>
class NodeOf final : public Base, public HeldExpr {
 public:
  template <class... BaseArguments>
  explicit NodeOf(symbolic::Expr expr, BaseArguments&&... arguments) : Base(std::forward<BaseArguments>(arguments)...), HeldExpr(expr) {}

  bool is_int() override { return expr()->type == symbolic::Type::kInt; }
  bool is_float() override { return expr()->type == symbolic::Type::kFloat; }
  bool is_bool() override { return expr()->type == symbolic::Type::kBool; }
  bool is_nested_int() const override { return false; }
  std::optional<int64_t> nested_int() override { return std::nullopt; }
  std::optional<int64_t> nested_int_coeff() override { return std::nullopt; }
  // Not of floats: PyTorch's operators read a constant's value only as an int or bool.
  bool is_constant() override { return expr()->is_const() || expr()->is_truth(); }
  bool is_symbolic() override { return true; }
  bool has_hint() override { return expr()->hint.known(); }
  std::optional<int64_t> maybe_as_int() override { return constant_int(); }
  std::optional<int64_t> constant_int() override {
    if (!expr()->is_const() || !symbolic::fits_int64(expr()->value)) return std::nullopt;
    return static_cast<int64_t>(expr()->value);
  }
  std::optional<bool> constant_bool() override {
    if (!expr()->is_truth()) return std::nullopt;
    return expr()->value != 0;
  }

#define PELLUCID_UNARY(name) \
  c10::SymNode name() override { return unary(*this, operators::name); }
#define PELLUCID_BINARY(name) \
  c10::SymNode name(const c10::SymNode& other) override { return binary(*this, other, operators::name); }
#define PELLUCID_LAYOUT(name)                                                                          \
  c10::SymNode name(c10::ArrayRef<c10::SymNode> sizes, c10::ArrayRef<c10::SymNode> strides) override { \
    return layout(*this, sizes, strides, operators::name);                                             \
  }
#include "torch_bridge/sym_node_virtuals.def"
#undef PELLUCID_UNARY
#undef PELLUCID_BINARY
#undef PELLUCID_LAYOUT

  c10::SymNode sym_ite(const c10::SymNode& then_value, const c10::SymNode& else_value) override {
    return choose(*this, then_value, else_value);
  }
  c10::SymNode clone() override { return make_sym_node(expr()); }
  c10::SymNode wrap_int(int64_t value) override { return literal(*this, value); }
  c10::SymNode wrap_float(double value) override { return literal(*this, value); }
  c10::SymNode wrap_bool(bool value) override { return literal(*this, value); }

  int64_t guard_int(const char* /*file*/, int64_t /*line*/) override { return ask_int(*this); }
  double guard_float(const char* /*file*/, int64_t /*line*/) override { return ask_float(*this); }
  bool guard_bool(const char* /*file*/, int64_t /*line*/) override { return ask_bool(*this); }
  bool guard_size_oblivious(const char* /*file*/, int64_t /*line*/) override { return ask_oblivious(*this); }
  bool guard_or_false(const char* /*file*/, int64_t /*line*/) override { return ask_or(*this, false); }
  bool guard_or_true(const char* /*file*/, int64_t /*line*/) override { return ask_or(*this, true); }
  bool statically_known_true(const char* /*file*/, int64_t /*line*/) override { return known_true(*this); }
  bool expect_true(const char* file, int64_t line) override {
    return state_true(*this, std::string("checked at ") + (file != nullptr ? file : "?") + ":" + std::to_string(line));
  }
  int64_t int_() override { return ask_int(*this); }
  bool bool_() override { return ask_bool(*this); }
  std::string str() override { return text_of(*this); }
  std::string _graph_repr() override { return text_of(*this); }
};

using PlainNode = NodeOf<c10::SymNodeImpl>;
// Carries a Python object that holds a PlainNode of the same expression: what PyTorch's casters for SymFloat and SymBool insist on.
using CastableNode = NodeOf<torch::impl::PythonSymNodeImpl>;
using PlainNodePtr = c10::intrusive_ptr<PlainNode>;

}  // namespace pellucid::bridge
