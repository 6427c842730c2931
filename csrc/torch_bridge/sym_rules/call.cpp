// Reading arguments as expressions, and expanding sizes to each other. Knows no operator by name.
#include "torch_bridge/sym_rules/call.h"

#include <algorithm>

namespace pellucid::bridge::sym_rules {

int Call::find(std::string_view name) const {
  const auto& arguments = op_.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == name) return static_cast<int>(i);
  }
  return -1;
}

Exprs Call::sizes(const at::Tensor& tensor) {
  Exprs result;
  for (const c10::SymInt& size : tensor.sym_sizes()) result.push_back(to_expr(size, env_));
  return result;
}

Exprs Call::strides(const at::Tensor& tensor) {
  Exprs result;
  for (const c10::SymInt& stride : tensor.sym_strides()) result.push_back(to_expr(stride, env_));
  return result;
}

Expr Call::offset(const at::Tensor& tensor) { return to_expr(tensor.sym_storage_offset(), env_); }

Expr Call::integer(const c10::IValue& value) { return value.isSymInt() ? to_expr(value.toSymInt(), env_) : constant(value.toInt()); }

Exprs Call::integers(size_t i) {
  Exprs result;
  const c10::IValue& value = arguments_[i];
  if (value.isInt() || value.isSymInt()) {
    result.push_back(integer(value));
  } else if (value.isIntList()) {
    for (const int64_t number : value.toIntVector()) result.push_back(constant(number));
  } else if (value.isSymIntList()) {
    for (const c10::SymInt& number : value.toSymIntVector()) result.push_back(to_expr(number, env_));
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) result.push_back(integer(item));
  }
  return result;
}

Expr Call::product(c10::ArrayRef<Expr> sizes) {
  Expr result = constant(1);
  for (const Expr size : sizes) result = build_.mul(result, size);
  return result;
}

Exprs Call::broadcast(const Exprs& a, const Exprs& b) {
  const Exprs& longer = a.size() >= b.size() ? a : b;
  const Exprs& shorter = a.size() >= b.size() ? b : a;
  Exprs result = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    Expr& size = result[longer.size() - 1 - i];
    const Expr other = shorter[shorter.size() - 1 - i];
    if (size == other || other->is_const(1)) continue;
    if (size->is_const(1) || is(size, 1)) {
      size = other;
    } else if (!is(other, 1)) {
      // Unequal at the hints it would have raised there.
      equal(size, other);
      if (other->is_const()) size = other;
    }
  }
  return result;
}

Exprs Call::contiguous_strides(const Exprs& sizes) {
  Exprs result(sizes.size(), constant(1));
  Expr stride = constant(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    result[i] = stride;
    // As CPU tensors are laid out: a size of 0 counts as 1.
    stride = build_.mul(stride, build_.max(sizes[i], constant(1)));
  }
  return result;
}

}  // namespace pellucid::bridge::sym_rules
