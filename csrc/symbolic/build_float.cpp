// Floats. What is known is folded by the rules of IEEE doubles; nothing is rearranged, because that would change results.
#include <cmath>

#include "symbolic/builder.h"
#include "symbolic/evaluate.h"
#include "symbolic/print.h"
#include "symbolic/real_range.h"

namespace pellucid::symbolic {

namespace {

constexpr Int kExact = static_cast<Int>(1) << 53;  // doubles hold every integer up to here

bool exact(const Range& range) { return range.lo >= -kExact && range.hi <= kExact; }

}  // namespace

Expr Builder::to_float(Expr a) {
  if (a->type == Type::kFloat) return a;
  if (a->type == Type::kBool) a = where(a, arena_.constant(1), arena_.constant(0));
  if (a->is_const()) return arena_.real(static_cast<double>(a->value));
  return node(Kind::kToFloat, Type::kFloat, {a});
}

Expr Builder::int_true_div(Expr a, Expr b) {
  if (oracle_ == nullptr && (b->is_const(0) || (b->hint.known() && b->hint.integer == 0))) {
    throw Error(ErrorKind::kZeroDivision, "division by zero: " + to_text(a) + " / " + to_text(b));
  }
  if (a->is_const() && b->is_const() && b->value != 0) return arena_.real(true_quotient(a->value, b->value));
  if (b->is_const(1)) return to_float(a);
  return node(Kind::kIntTrueDiv, Type::kFloat, {a, b});
}

Expr Builder::float_binary(Kind kind, Expr a, Expr b) {
  const bool comparison = kind == Kind::kFloatEq || kind == Kind::kFloatLt || kind == Kind::kFloatLe;
  const bool division = kind == Kind::kFloatDiv || kind == Kind::kFloatMod || kind == Kind::kFloatFloorDiv;
  if (oracle_ == nullptr && division && b->hint.known() && b->hint.real == 0) {
    throw Error(ErrorKind::kZeroDivision, "float division by zero: " + to_text(a) + " / " + to_text(b));
  }
  if (a->is(Kind::kReal) && b->is(Kind::kReal)) {
    const Value args[] = {a->hint, b->hint};
    const Value result = apply(kind, comparison ? Type::kBool : Type::kFloat, args, 2, 0, 0);
    if (result.known()) return comparison ? arena_.truth(result.integer != 0) : arena_.real(result.real);
  }
  if (b->is(Kind::kReal) && b->real() == 1.0 && (kind == Kind::kFloatMul || kind == Kind::kFloatDiv || kind == Kind::kFloatPow)) return a;
  if (a->is(Kind::kReal) && a->real() == 1.0 && kind == Kind::kFloatMul) return b;
  if (comparison) {
    const auto range_of = [this](Expr integer) { return range(integer); };
    const std::optional<RealRange> x = real_range(a, range_of);
    const std::optional<RealRange> y = x ? real_range(b, range_of) : std::nullopt;
    if (y) {
      if (const std::optional<bool> answer = compare_ranges(kind, *x, *y)) return arena_.truth(*answer);
    }
  }
  const bool commutes = kind == Kind::kFloatAdd || kind == Kind::kFloatMul || kind == Kind::kFloatEq;  // exactly, even rounded
  if (commutes && a->id > b->id) std::swap(a, b);
  return node(kind, comparison ? Type::kBool : Type::kFloat, {a, b});
}

Expr Builder::float_unary(Kind kind, Expr a) {
  if (a->is(Kind::kReal)) {
    const Value result = apply(kind, Type::kFloat, &a->hint, 1, 0, 0);
    if (result.known()) return arena_.real(result.real);
    if (oracle_ == nullptr) throw Error(ErrorKind::kValue, "math domain error: " + std::string(kind_text(kind)) + "(" + to_text(a) + ")");
  }
  if (kind == Kind::kFloatNeg && a->is(kind)) return a->arg(0);
  if (kind == Kind::kFloatAbs && a->is(kind)) return a;
  return node(kind, Type::kFloat, {a});
}

Expr Builder::round_digits(Expr a, int digits) {
  if (digits < -128 || digits > 127) throw Error(ErrorKind::kValue, "round: a symbolic float takes -128 to 127 digits");
  if (a->is(Kind::kReal)) {
    const Value result = symbolic::round_digits(a->real(), digits);
    if (result.known()) return arena_.real(result.real);
  }
  return arena_.intern(Kind::kRoundDigits, Type::kFloat, &a, nullptr, 1, 0, digits);
}

Expr Builder::to_int(Kind rounding, Expr a) {
  if (a->is(Kind::kReal)) {
    const Value result = apply(rounding, Type::kInt, &a->hint, 1, 0, 0);
    if (!result.known()) throw Error(ErrorKind::kOverflow, "cannot convert " + to_text(a) + " to an integer");
    return arena_.constant(result.integer);
  }
  if (a->is(Kind::kToFloat) && exact(range(a->arg(0)))) return a->arg(0);
  if (a->is(Kind::kIntTrueDiv)) {
    // The quotient is rounded, but by less than its distance to the next integer as long as both are exact doubles.
    const Expr x = a->arg(0);
    const Expr d = a->arg(1);
    const Range values = range(x);
    const Range divisors = range(d);
    if (exact(values) && exact(divisors) && (divisors.lo > 0 || divisors.hi < 0)) {
      const bool positive = (values.lo >= 0 && divisors.lo > 0) || (values.hi <= 0 && divisors.hi < 0);
      if (rounding == Kind::kFloor || (rounding == Kind::kTrunc && positive)) return make_floor_div(x, d);
      if (rounding == Kind::kCeil) return ceil_div(x, d);
    }
    // Whole quotients need no rounding, as long as they are exact doubles themselves.
    const Expr whole = exact_divide(x, d);
    if (whole != nullptr && exact(range(whole)) && (divisors.lo > 0 || divisors.hi < 0)) return whole;
  }
  return node(rounding, Type::kInt, {a});
}

}  // namespace pellucid::symbolic
