// Interval arithmetic of integer operations. Where an operation is not defined (a division by 0, a negative shift) the value does not
// matter, and neither does the range.
#include "symbolic/range.h"

#include <algorithm>

namespace pellucid::symbolic {

namespace {

Range normal(Int lo, Int hi) {
  Range range;
  range.lo = lo < -kMaxFinite ? -kInfinity : std::min(lo, kMaxFinite);
  range.hi = hi > kMaxFinite ? kInfinity : std::max(hi, -kMaxFinite);
  return range;
}

bool infinite(Int bound) { return bound >= kInfinity || bound <= -kInfinity; }

Int plus(Int a, Int b) {  // never an infinity and its opposite
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  return a + b;
}

Int times(Int a, Int b) {
  if (a == 0 || b == 0) return 0;
  Int product;
  if (infinite(a) || infinite(b) || !checked_mul(a, b, &product)) return (a < 0) == (b < 0) ? kInfinity : -kInfinity;
  return std::clamp(product, -kInfinity, kInfinity);
}

Int over(Int a, Int b) {  // floor(a / b); b is finite or infinite but not 0
  if (infinite(b)) return (a == 0 || (a < 0) == (b < 0)) ? 0 : (infinite(a) ? -kInfinity : -1);
  if (infinite(a)) return (a < 0) == (b < 0) ? kInfinity : -kInfinity;
  return floor_div(a, b);
}

// The corners of an operation that is monotone in each argument (in one direction or the other, whatever the other argument is).
template <class Function>
Range corners(const Range& a, const Range& b, Function function) {
  const Int values[] = {function(a.lo, b.lo), function(a.lo, b.hi), function(a.hi, b.lo), function(a.hi, b.hi)};
  return normal(*std::min_element(values, values + 4), *std::max_element(values, values + 4));
}

// The smallest 2^k - 1 that is not below the value.
Int mask_above(Int value) {
  Int mask = 0;
  while (mask < value && mask < kMaxFinite) mask = mask * 2 + 1;
  return mask;
}

bool non_negative(const Range& a) { return a.lo >= 0; }

}  // namespace

Range add(const Range& a, const Range& b) { return normal(plus(a.lo, b.lo), plus(a.hi, b.hi)); }

Range negate(const Range& a) { return {-a.hi, -a.lo}; }

Range scale(const Range& a, Int factor) {
  return factor < 0 ? normal(times(a.hi, factor), times(a.lo, factor)) : normal(times(a.lo, factor), times(a.hi, factor));
}

Range multiply(const Range& a, const Range& b) { return corners(a, b, times); }

Range square(const Range& a) {
  const Range size = absolute(a);
  return normal(times(size.lo, size.lo), times(size.hi, size.hi));
}

Range floor_divide(const Range& a, const Range& b) {
  Range result{kInfinity, -kInfinity};
  const Range positive = intersect(b, {1, kInfinity});
  const Range negative = intersect(b, {-kInfinity, -1});
  if (!positive.empty()) result = join(result, corners(a, positive, over));
  if (!negative.empty()) result = join(result, corners(a, negative, over));
  return result.empty() ? Range{} : result;
}

Range modulo(const Range& a, const Range& b) {
  if (a.single() && b.single() && b.lo != 0 && !infinite(a.lo) && !infinite(b.lo)) {
    const Int value = floor_mod(a.lo, b.lo);
    return {value, value};
  }
  Range result{b.lo < 0 ? std::min<Int>(0, plus(b.lo, 1)) : 0, b.hi > 0 ? std::max<Int>(0, plus(b.hi, -1)) : 0};
  if (b.lo > 0 && a.lo >= 0) {
    if (a.hi < b.lo) return a;
    result.hi = std::min(result.hi, a.hi);
  }
  if (b.hi < 0 && a.hi <= 0) {
    if (a.lo > b.hi) return a;
    result.lo = std::max(result.lo, a.lo);
  }
  return normal(result.lo, result.hi);
}

Range power(const Range& base, const Range& exponent) {
  const auto raise = [](Int value, Int times_) {
    Int result = 1;
    if (times_ >= 128) return value == 0 || value == 1 ? value : kInfinity;
    for (Int i = 0; i < times_; ++i) result = times(result, value);
    return result;
  };
  const Range natural = intersect(exponent, {0, kInfinity});
  if (natural.empty()) return {};
  if (base.lo >= 1) return normal(raise(base.lo, natural.lo), raise(base.hi, natural.hi));
  if (base.lo >= 0) return normal(0, std::max<Int>(1, raise(base.hi, natural.hi)));
  const Int largest = raise(absolute(base).hi, natural.hi);
  const bool even = natural.single() && !infinite(natural.lo) && natural.lo % 2 == 0;
  return normal(even ? 0 : -largest, std::max<Int>(1, largest));
}

Range smaller(const Range& a, const Range& b) { return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; }
Range larger(const Range& a, const Range& b) { return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Range absolute(const Range& a) {
  if (a.lo >= 0) return a;
  if (a.hi <= 0) return negate(a);
  return {0, std::max(-a.lo, a.hi)};
}

Range shift_left(const Range& a, const Range& b) {
  const Range count = intersect(b, {0, kInfinity});
  if (count.empty()) return {};
  return multiply(a, power({2, 2}, count));
}

Range shift_right(const Range& a, const Range& b) {
  const Range count = intersect(b, {0, kInfinity});
  if (count.empty()) return {};
  return floor_divide(a, power({2, 2}, count));
}

Range bit_and(const Range& a, const Range& b) {
  if (non_negative(a) && non_negative(b)) return {0, std::min(a.hi, b.hi)};
  if (non_negative(a)) return {0, a.hi};
  if (non_negative(b)) return {0, b.hi};
  return normal(a.bounded_below() && b.bounded_below() ? -mask_above(std::max(-a.lo, -b.lo)) - 1 : -kInfinity, std::max(a.hi, b.hi));
}

Range bit_or(const Range& a, const Range& b) {
  if (non_negative(a) && non_negative(b)) {
    return normal(std::max(a.lo, b.lo), infinite(a.hi) || infinite(b.hi) ? kInfinity : mask_above(std::max(a.hi, b.hi)));
  }
  const bool bounded = a.bounded_below() && b.bounded_below() && a.bounded_above() && b.bounded_above();
  if (!bounded) return {};
  const Int mask = mask_above(std::max(std::max(abs_of(a.lo), abs_of(a.hi)), std::max(abs_of(b.lo), abs_of(b.hi))));
  return normal(-mask - 1, mask);
}

Range bit_xor(const Range& a, const Range& b) {
  if (non_negative(a) && non_negative(b)) {
    return normal(0, infinite(a.hi) || infinite(b.hi) ? kInfinity : mask_above(std::max(a.hi, b.hi)));
  }
  return bit_or(a, b).bounded_above() ? bit_or(a, b) : Range{};
}

std::string to_text(const Range& range) {
  const std::string lo = range.lo <= kMinValue ? "-int_oo" : to_text(range.lo);
  const std::string hi = range.hi >= kMaxValue ? "int_oo" : to_text(range.hi);
  return "[" + lo + ", " + hi + "]";
}

}  // namespace pellucid::symbolic
