// What PyTorch's symbolic numbers mean by their operators, in expressions of the shape engine: promotion of booleans and floats,
// division, powers, and the questions about sizes and strides. Knows no SymNode.
#pragma once
#include <span>

#include "symbolic/shape_env.h"

namespace pellucid::bridge::operators {

using symbolic::Builder;
using symbolic::Expr;
using Sizes = std::span<const Expr>;

using Unary = Expr (*)(Builder&, Expr);
using Binary = Expr (*)(Builder&, Expr, Expr);
using Layout = Expr (*)(symbolic::ShapeEnv&, Sizes sizes, Sizes strides);

#define PELLUCID_UNARY(name) Expr name(Builder& build, Expr a);
#define PELLUCID_BINARY(name) Expr name(Builder& build, Expr a, Expr b);
#define PELLUCID_LAYOUT(name) Expr name(symbolic::ShapeEnv& env, Sizes sizes, Sizes strides);
#include "torch_bridge/sym_node_methods.def"
#include "torch_bridge/sym_node_virtuals.def"
#undef PELLUCID_UNARY
#undef PELLUCID_BINARY
#undef PELLUCID_LAYOUT

// `a` as a boolean.
Expr truth(Builder& build, Expr a);
Expr round_to(Builder& build, Expr a, const int* digits);  // null: to an integer

}  // namespace pellucid::bridge::operators
