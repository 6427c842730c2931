// Intervals of doubles, by the corners of each operation.
#include "symbolic/real_range.h"

#include <algorithm>
#include <cmath>

#include "symbolic/evaluate.h"

namespace pellucid::symbolic {

namespace {

constexpr int kDeepest = 32;

std::optional<RealRange> checked(double lo, double hi) {
  if (!std::isfinite(lo) || !std::isfinite(hi)) return std::nullopt;
  return RealRange{lo, hi};
}

template <class Function>
std::optional<RealRange> corners(const RealRange& a, const RealRange& b, Function function) {
  const double values[] = {function(a.lo, b.lo), function(a.lo, b.hi), function(a.hi, b.lo), function(a.hi, b.hi)};
  return checked(*std::min_element(values, values + 4), *std::max_element(values, values + 4));
}

Int finite(Int bound) { return std::clamp(bound, -kInfinity, kInfinity); }  // no integer is further out than 128 bits

std::optional<RealRange> quotient(const Range& a, const Range& b) {
  if (b.contains(0)) return std::nullopt;
  constexpr Int kLargest = static_cast<Int>(1) << 62;
  if (a.lo < -kLargest * 2 || a.hi > kLargest * 2 || b.lo < -kLargest * 2 || b.hi > kLargest * 2) return std::nullopt;
  const double values[] = {true_quotient(a.lo, b.lo), true_quotient(a.lo, b.hi), true_quotient(a.hi, b.lo), true_quotient(a.hi, b.hi)};
  return checked(*std::min_element(values, values + 4), *std::max_element(values, values + 4));
}

}  // namespace

std::optional<RealRange> real_range(Expr real, const std::function<Range(Expr)>& range_of, int depth) {
  if (depth > kDeepest) return std::nullopt;
  if (real->is(Kind::kReal)) return checked(real->real(), real->real());
  if (real->is(Kind::kToFloat)) {
    const Range range = range_of(real->arg(0));
    return RealRange{static_cast<double>(finite(range.lo)), static_cast<double>(finite(range.hi))};
  }
  if (real->is(Kind::kIntTrueDiv)) return quotient(range_of(real->arg(0)), range_of(real->arg(1)));
  if (real->type != Type::kFloat || real->count == 0 || real->count > 2) return std::nullopt;
  const std::optional<RealRange> a = real_range(real->arg(0), range_of, depth + 1);
  if (!a) return std::nullopt;
  const std::optional<RealRange> b = real->count == 2 ? real_range(real->arg(1), range_of, depth + 1) : a;
  if (!b) return std::nullopt;
  switch (real->kind) {
    case Kind::kFloatAdd:
      return checked(a->lo + b->lo, a->hi + b->hi);
    case Kind::kFloatSub:
      return checked(a->lo - b->hi, a->hi - b->lo);
    case Kind::kFloatMul:
      return corners(*a, *b, [](double x, double y) { return x * y; });
    case Kind::kFloatDiv:
      if (b->lo <= 0 && b->hi >= 0) return std::nullopt;
      return corners(*a, *b, [](double x, double y) { return x / y; });
    case Kind::kFloatMin:
      return RealRange{std::min(a->lo, b->lo), std::min(a->hi, b->hi)};
    case Kind::kFloatMax:
      return RealRange{std::max(a->lo, b->lo), std::max(a->hi, b->hi)};
    case Kind::kFloatNeg:
      return RealRange{-a->hi, -a->lo};
    case Kind::kFloatAbs:
      if (a->lo >= 0) return a;
      if (a->hi <= 0) return RealRange{-a->hi, -a->lo};
      return RealRange{0, std::max(-a->lo, a->hi)};
    case Kind::kSqrt:  // correctly rounded, so monotone; the other functions need not be
      if (a->lo < 0) return std::nullopt;
      return RealRange{std::sqrt(a->lo), std::sqrt(a->hi)};
    default:
      return std::nullopt;
  }
}

Range rounded_range(Kind rounding, const RealRange& range) {
  const auto whole = [&](double value, Int unknown) {
    const Value of_end = Value::of_real(value);
    const Value result = apply(rounding, Type::kInt, &of_end, 1, 0, 0);
    return result.known() && abs_of(result.integer) <= kMaxFinite ? result.integer : unknown;
  };
  return {whole(range.lo, -kInfinity), whole(range.hi, kInfinity)};
}

std::optional<bool> compare_ranges(Kind comparison, const RealRange& a, const RealRange& b) {
  switch (comparison) {
    case Kind::kFloatLt:
      if (a.hi < b.lo) return true;
      if (a.lo >= b.hi) return false;
      return std::nullopt;
    case Kind::kFloatLe:
      if (a.hi <= b.lo) return true;
      if (a.lo > b.hi) return false;
      return std::nullopt;
    case Kind::kFloatEq:
      if (a.hi < b.lo || b.hi < a.lo) return false;
      if (a.lo == a.hi && b.lo == b.hi && a.lo == b.lo) return true;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace pellucid::symbolic
