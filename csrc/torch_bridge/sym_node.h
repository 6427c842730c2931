// Nodes of the shape engine as c10::SymNodeImpl, so that PyTorch's own C++ and Python shape code computes on them. Integers cross
// between C++ and Python as what they are; floats and booleans leave C++ as a class that PyTorch's casters accept.
#pragma once
#include <c10/core/SymInt.h>
#include <c10/core/SymNodeImpl.h>

#include "symbolic/shape_env.h"
#include "symbolic_python/user_site.h"

namespace pellucid::bridge {

// An expression that keeps its ShapeEnv alive.
class HeldExpr {
 public:
  explicit HeldExpr(symbolic::Expr expr) : env_(&symbolic::ShapeEnv::of(expr)), expr_(expr) {}
  symbolic::Expr expr() const { return expr_; }
  symbolic::ShapeEnv& env() const { return *env_; }

 private:
  symbolic::Handle<symbolic::ShapeEnv> env_;
  symbolic::Expr expr_;
};

// A node of the type that C++ expects: a plain one for integers.
c10::SymNode make_sym_node(symbolic::Expr expr);

// What a node holds if it is ours, also when it went through Python; else null.
symbolic::Expr expr_of(const c10::SymNode& node);

// A size: a number where the expression is a constant.
c10::SymInt to_sym_int(symbolic::Expr expr);
// The other way round. A node of another ShapeEnv, or of PyTorch's own, is an error.
symbolic::Expr to_expr(const c10::SymInt& value, symbolic::ShapeEnv& env);

using symbolic_python::user_site;

}  // namespace pellucid::bridge
