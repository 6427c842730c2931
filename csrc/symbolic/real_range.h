// RealRange: what a float that is computed from integers can be. Rounding to nearest is monotone, so the ends of an operation's exact
// range, rounded, hold every rounded result. Floats from outside have none.
#pragma once
#include <functional>
#include <optional>

#include "symbolic/expr.h"

namespace pellucid::symbolic {

struct RealRange {  // both finite, so that no infinity or nan can come of it
  double lo = 0;
  double hi = 0;
};

// `range_of` gives the range of an integer.
std::optional<RealRange> real_range(Expr real, const std::function<Range(Expr)>& range_of, int depth = 0);

// Of floor, ceil, trunc and round.
Range rounded_range(Kind rounding, const RealRange& range);

// What a comparison of floats answers wherever its arguments lie, if it is one answer.
std::optional<bool> compare_ranges(Kind comparison, const RealRange& a, const RealRange& b);

}  // namespace pellucid::symbolic
