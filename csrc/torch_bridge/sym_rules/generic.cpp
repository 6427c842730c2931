// Families that schemas tell: pointwise operators by their tag, reductions by their arguments `dim` and `keepdim`, in-place forms by
// their alias annotation.
#include <ATen/core/enum_tag.h>

#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

std::vector<Geometry> in_place(Call& call) {
  const Exprs self = call.sizes(0);
  if (call.op().hasTag(at::Tag::pointwise)) {
    for (size_t i = 1; i < call.count(); ++i) {
      if (call.has_tensor(i)) call.broadcast(self, call.sizes(i));
    }
  }
  return {Geometry{self, call.strides(call.tensor(0)), call.offset(call.tensor(0))}};
}

bool is_written(const c10::Argument& argument) { return argument.alias_info() != nullptr && argument.alias_info()->isWrite(); }

}  // namespace

std::vector<Geometry> pointwise(Call& call) {
  Exprs sizes;
  for (size_t i = 0; i < call.count(); ++i) {
    if (call.has_tensor(i)) sizes = call.broadcast(sizes, call.sizes(i));
  }
  return std::vector<Geometry>(call.results().size(), Geometry{sizes, std::nullopt, nullptr});
}

std::vector<Geometry> reduction(Call& call) {
  const Exprs sizes = call.sizes(0);
  const int dim_at = call.find("dim");
  const int keep_at = call.find("keepdim");
  const bool keep = keep_at >= 0 && call.flag(static_cast<size_t>(keep_at));
  std::vector<bool> reduced(sizes.size(), true);
  if (call.given(dim_at)) {
    const Exprs dims = call.integers(static_cast<size_t>(dim_at));
    if (!dims.empty()) {
      reduced.assign(sizes.size(), false);
      for (const Expr dim : dims) {
        if (sizes.empty()) continue;  // dim 0 or -1 of a 0-d tensor
        reduced[Call::wrap(static_cast<int64_t>(dim->value), sizes.size())] = true;
      }
    }
  }
  Exprs result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!reduced[i]) {
      result.push_back(sizes[i]);
    } else if (keep) {
      result.push_back(call.constant(1));
    }
  }
  return std::vector<Geometry>(call.results().size(), Geometry{result, std::nullopt, nullptr});
}

std::vector<Geometry> same_as_first(Call& call) { return call.one(call.sizes(0)); }

std::vector<Geometry> all_same_as_first(Call& call) {
  return std::vector<Geometry>(call.results().size(), Geometry{call.sizes(0), std::nullopt, nullptr});
}

Rule generic_rule(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  if (schema.arguments().empty() || schema.arguments()[0].type()->kind() != c10::TypeKind::TensorType) return nullptr;
  if (is_written(schema.arguments()[0])) {
    // resize_ and its kind change what they are given.
    static constexpr const char* kOther[] = {"resize",     "set_", "as_strided_", "squeeze_", "unsqueeze_",
                                             "transpose_", "t_",   "swapaxes_",   "swapdims_"};
    for (const char* name : kOther) {
      if (op.operator_name().name.find(std::string("aten::") + name) == 0) return nullptr;
    }
    return schema.returns().size() == 1 ? in_place : nullptr;
  }
  for (const auto& argument : schema.arguments()) {
    if (is_written(argument)) return nullptr;  // out=
  }
  for (const auto& returned : schema.returns()) {
    if (returned.type()->kind() != c10::TypeKind::TensorType || returned.alias_info() != nullptr) return nullptr;
  }
  if (op.hasTag(at::Tag::pointwise)) return pointwise;
  bool has_dim = false;
  bool has_keepdim = false;
  for (const auto& argument : schema.arguments()) {
    has_dim |= argument.name() == "dim";
    has_keepdim |= argument.name() == "keepdim";
  }
  return has_dim && has_keepdim ? reduction : nullptr;
}

}  // namespace pellucid::bridge::sym_rules
