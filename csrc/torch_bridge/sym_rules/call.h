// One operator call with symbolic sizes, as a rule sees it: arguments as expressions, and what the operator gave at the hints. Header of
// sym_rules/ and the path that runs them.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <string_view>
#include <vector>

#include "torch_bridge/sym_node.h"

namespace pellucid::bridge::sym_rules {

using symbolic::Builder;
using symbolic::Expr;
using Exprs = c10::SmallVector<Expr, 6>;

// Where a result lies. Without strides it is dense, in the order that the result at the hints has.
struct Geometry {
  Exprs sizes;
  std::optional<Exprs> strides;
  Expr offset = nullptr;  // null: 0
};

class Call {
 public:
  // `results`: those of the same operator on tensors of the hint sizes. `arguments` outlives the call.
  // `views`: which of them lie in an argument's storage.
  Call(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments, std::vector<at::Tensor> results, std::vector<bool> views,
       symbolic::ShapeEnv& env)
      : op_(op), arguments_(arguments), results_(std::move(results)), views_(std::move(views)), env_(env), build_(env.build()) {}

  symbolic::ShapeEnv& env() { return env_; }
  Builder& build() { return build_; }
  const c10::OperatorHandle& op() const { return op_; }

  // Arguments, by place or by the name that the schema gives them.
  int find(std::string_view name) const;
  size_t count() const { return arguments_.size(); }
  const c10::IValue& argument(size_t i) const { return arguments_[i]; }
  const at::Tensor& tensor(size_t i) const { return arguments_[i].toTensor(); }
  bool has_tensor(size_t i) const { return i < count() && arguments_[i].isTensor() && arguments_[i].toTensor().defined(); }
  bool given(int i) const { return i >= 0 && !arguments_[static_cast<size_t>(i)].isNone(); }
  Exprs sizes(const at::Tensor& tensor);
  Exprs strides(const at::Tensor& tensor);
  Expr offset(const at::Tensor& tensor);
  Exprs sizes(size_t i) { return sizes(tensor(i)); }
  Expr integer(size_t i) { return integer(arguments_[i]); }
  Expr integer(const c10::IValue& value);
  Exprs integers(size_t i);
  int64_t number(size_t i) const { return arguments_[i].toInt(); }  // one that no operator takes as a SymInt
  bool flag(size_t i) const { return arguments_[i].toBool(); }
  size_t dim(size_t i, size_t rank) const { return wrap(number(i), rank); }
  static size_t wrap(int64_t dim, size_t rank) {
    return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank == 0 ? 1 : rank) : dim);
  }

  // What the operator gave at the hints. Lists of tensors are results one after the other.
  const std::vector<at::Tensor>& results() const { return results_; }
  const at::Tensor& result(size_t i) const { return results_[i]; }
  bool is_view(size_t i) const { return views_[i]; }

  // Questions, with guards where it takes them.
  bool ask(Expr condition) { return env_.evaluate(condition, user_site()); }
  bool equal(Expr a, Expr b) { return a == b || ask(build_.eq(a, b)); }
  bool is(Expr a, int64_t value) { return equal(a, constant(value)); }
  Expr constant(int64_t value) { return build_.constant(value); }
  Expr product(c10::ArrayRef<Expr> sizes);
  // The sizes of operands that are expanded to each other.
  Exprs broadcast(const Exprs& a, const Exprs& b);
  Exprs contiguous_strides(const Exprs& sizes);

  // A result's geometry from its sizes alone, and for operators that give one.
  std::vector<Geometry> one(Exprs sizes) { return {Geometry{std::move(sizes), std::nullopt, nullptr}}; }
  std::vector<Geometry> one(Exprs sizes, Exprs strides, Expr offset) { return {Geometry{std::move(sizes), std::move(strides), offset}}; }

 private:
  const c10::OperatorHandle& op_;
  c10::ArrayRef<c10::IValue> arguments_;
  std::vector<at::Tensor> results_;
  std::vector<bool> views_;
  symbolic::ShapeEnv& env_;
  Builder& build_;
};

// One geometry for each result; empty: this rule has nothing to say of these arguments.
using Rule = std::vector<Geometry> (*)(Call&);

}  // namespace pellucid::bridge::sym_rules
