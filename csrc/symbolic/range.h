// Range: the integers from lo to hi, and arithmetic that gives a range holding every possible result. Bounds past 2^125 are infinite
// or cut towards 0, whichever keeps the range a superset. Knows nothing of expressions.
#pragma once
#include <string>

#include "symbolic/number.h"

namespace pellucid::symbolic {

constexpr Int kInfinity = static_cast<Int>(1) << 126;
constexpr Int kMaxFinite = static_cast<Int>(1) << 125;

struct Range {
  Int lo = -kInfinity;
  Int hi = kInfinity;

  bool empty() const { return lo > hi; }
  bool single() const { return lo == hi; }
  bool contains(Int value) const { return lo <= value && value <= hi; }
  bool bounded_below() const { return lo > -kInfinity; }
  bool bounded_above() const { return hi < kInfinity; }
  bool within(const Range& other) const { return other.lo <= lo && hi <= other.hi; }
  bool operator==(const Range& other) const = default;
};

constexpr Range kBoolRange{0, 1};

inline Range intersect(const Range& a, const Range& b) { return {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi}; }
inline Range join(const Range& a, const Range& b) { return {a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi}; }

Range add(const Range& a, const Range& b);
Range scale(const Range& a, Int factor);
Range negate(const Range& a);
Range multiply(const Range& a, const Range& b);
Range square(const Range& a);  // of x * x, which is never negative
Range floor_divide(const Range& a, const Range& b);
Range modulo(const Range& a, const Range& b);
Range power(const Range& base, const Range& exponent);
Range smaller(const Range& a, const Range& b);
Range larger(const Range& a, const Range& b);
Range absolute(const Range& a);
Range shift_left(const Range& a, const Range& b);
Range shift_right(const Range& a, const Range& b);
Range bit_and(const Range& a, const Range& b);
Range bit_or(const Range& a, const Range& b);
Range bit_xor(const Range& a, const Range& b);

std::string to_text(const Range& range);  // "[2, int_oo]"

}  // namespace pellucid::symbolic
