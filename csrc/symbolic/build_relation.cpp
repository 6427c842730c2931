// Comparisons: of integers as x == 0 and x <= 0, x a linear form whose numbers share no divisor; common factors of known sign are gone.
#include <cmath>

#include "symbolic/builder.h"

namespace pellucid::symbolic {

Expr Builder::eq(Expr a, Expr b) {
  if (a == b && a->type != Type::kFloat) return arena_.truth(true);
  if (a->id > b->id) std::swap(a, b);
  if (const Expr known = recall(Op::kEq, a, b)) return known;
  return remember(Op::kEq, a, b, make_eq(a, b));
}

Expr Builder::lt(Expr a, Expr b) {
  if (const Expr known = recall(Op::kLt, a, b)) return known;
  return remember(Op::kLt, a, b, make_compare(true, a, b));
}

Expr Builder::le(Expr a, Expr b) {
  if (const Expr known = recall(Op::kLe, a, b)) return known;
  return remember(Op::kLe, a, b, make_compare(false, a, b));
}

// The integer under a conversion that a comparison with this number can do without: the conversion is monotone, and exact as far out as
// the number is.
Expr Builder::comparable(Expr a, Expr number) {
  const bool near = number->is(Kind::kReal) && std::fabs(number->real()) < 0x1p53;
  return near && a->is(Kind::kToFloat) ? a->arg(0) : a;
}

Expr Builder::make_eq(Expr a, Expr b) {
  const Expr left = a;
  a = comparable(a, b);
  b = comparable(b, left);
  if (a->type == Type::kBool && b->type == Type::kBool) {
    return logical_or(logical_and(a, b), logical_and(logical_not(a), logical_not(b)));
  }
  if (a->type == Type::kInt && b->type == Type::kInt) return eq0(combine(a, 1, b, -1));
  if (a->type == Type::kInt && b->is(Kind::kReal)) std::swap(a, b);
  if (b->type == Type::kInt && a->is(Kind::kReal)) {  // an integer equals a whole number only
    const double number = a->real();
    if (!(std::fabs(number) < 0x1p100) || number != std::floor(number)) return arena_.truth(false);
    return eq0(combine(b, 1, arena_.constant(static_cast<Int>(number)), -1));
  }
  return float_binary(Kind::kFloatEq, to_float(a), to_float(b));
}

Expr Builder::make_compare(bool strict, Expr a, Expr b) {
  const Expr left = a;
  a = comparable(a, b);
  b = comparable(b, left);
  if (a->type != Type::kFloat && b->type != Type::kFloat) {
    return le0(combine(combine(a, 1, b, -1), 1, arena_.constant(strict ? 1 : 0), 1));
  }
  if (a->type == Type::kInt && b->is(Kind::kReal)) return compare_with_real(strict, a, b);
  if (b->type == Type::kInt && a->is(Kind::kReal)) {  // r < x is not x <= r
    if (std::isnan(a->real())) return arena_.truth(false);
    return logical_not(compare_with_real(!strict, b, a));
  }
  return float_binary(strict ? Kind::kFloatLt : Kind::kFloatLe, to_float(a), to_float(b));
}

// An integer against a number: x < 2.5 is x <= 2.
Expr Builder::compare_with_real(bool strict, Expr a, Expr b) {
  const double number = b->real();
  if (std::isnan(number)) return arena_.truth(false);
  if (!(std::fabs(number) < 0x1p100)) return arena_.truth(number > 0);
  Int last = static_cast<Int>(std::floor(number));
  if (strict && std::floor(number) == number) last -= 1;
  return le0(combine(a, 1, arena_.constant(last), -1));
}

// f * x == 0 is x == 0 where f can't be 0; f * x <= 0 and f * x < 0 are those of x where f > 0.
Expr Builder::strip_factors(Expr difference, bool equality) {
  const LinearView view(difference);
  if (view.count() == 0 || (view.constant() != 0 && (equality || view.constant() != 1))) return difference;
  const auto first = factors_of(view.factor(0));
  for (const Expr factor : first) {
    const Range values = range(factor);
    const bool usable = equality ? !values.contains(0) : values.lo > 0;
    if (!usable) continue;
    bool in_all = true;
    for (uint32_t i = 1; i < view.count() && in_all; ++i) {
      in_all = factors_of(view.factor(i)).has(factor);
    }
    if (!in_all) continue;
    const Expr body = combine(difference, 1, arena_.constant(view.constant()), -1);
    const Expr quotient = exact_divide(body, factor);
    if (quotient == nullptr) continue;
    return strip_factors(combine(quotient, 1, arena_.constant(view.constant()), 1), equality);
  }
  return difference;
}

Expr Builder::eq0(Expr difference) {
  arena_.count_work(1);
  if (difference->is_const()) return arena_.truth(difference->value == 0);
  if (!range(difference).contains(0)) return arena_.truth(false);
  if (range(difference).single()) return arena_.truth(true);
  difference = strip_factors(difference, true);
  if (difference->is_const()) return arena_.truth(difference->value == 0);
  const LinearView view(difference);
  const Int divisor = view.divisor();
  if (view.constant() % divisor != 0) return arena_.truth(false);
  const Int factor = view.coefficient(0) < 0 ? -divisor : divisor;
  if (factor != 1) difference = exact_divide(difference, arena_.constant(factor));
  if (!range(difference).contains(0)) return arena_.truth(false);
  if (range(difference).single()) return arena_.truth(true);
  return node(Kind::kEq0, Type::kBool, {difference});
}

Expr Builder::le0(Expr difference) {
  arena_.count_work(1);
  if (difference->is_const()) return arena_.truth(difference->value <= 0);
  const auto decided = [&](const Range& values) -> std::optional<bool> {
    if (values.hi <= 0) return true;
    if (values.lo > 0) return false;
    return std::nullopt;
  };
  if (const auto answer = decided(range(difference))) return arena_.truth(*answer);
  difference = strip_factors(difference, false);
  if (difference->is_const()) return arena_.truth(difference->value <= 0);
  const LinearView view(difference);
  const Int divisor = view.divisor();
  if (divisor != 1) {  // d * x + c <= 0 is x + ceil(c / d) <= 0
    std::vector<Term> terms = view.terms();
    for (Term& term : terms) term.coefficient /= divisor;
    difference = make_sum(terms, symbolic::ceil_div(view.constant(), divisor));
  }
  if (const auto answer = decided(range(difference))) return arena_.truth(*answer);
  return node(Kind::kLe0, Type::kBool, {difference});
}

}  // namespace pellucid::symbolic
