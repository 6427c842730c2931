// The value of one operation on known values, by the rules of Python's int, float and bool: what hints, constants and guard programs
// are computed with. The one place that says what the kinds of expressions mean.
#pragma once
#include <functional>

#include "symbolic/expr.h"

namespace pellucid::symbolic {

// Of any kind but Symbol and Sum. Undefined where Python raises or the result does not fit 128 bits.
Value apply(Kind kind, Type type, const Value* args, uint32_t count, Int constant, int digits);

// The value of an expression where every symbol has the value that `symbol` gives; unknown where it gives none that is needed.
Value evaluate(Expr expr, const std::function<Value(Expr)>& symbol);

Value round_digits(double value, int digits);
Value float_floor_div(double a, double b);

}  // namespace pellucid::symbolic
