// Floor division and modulus, as Python's. Canonical: what divides without rest is outside, common divisors are gone, constants in the
// dividend lie between 0 and the divisor, the first sign is positive, nests of positive divisors are one division.
#include <algorithm>

#include "symbolic/builder.h"
#include "symbolic/print.h"

namespace pellucid::symbolic {

Expr Builder::floor_div(Expr a, Expr b) {
  if (const Expr known = recall(Op::kFloorDiv, a, b)) return known;
  if (oracle_ == nullptr && (b->is_const(0) || (b->hint.known() && b->hint.integer == 0))) {
    throw Error(ErrorKind::kZeroDivision, "division by zero: " + to_text(a) + " // " + to_text(b));
  }
  return remember(Op::kFloorDiv, a, b, make_floor_div(a, b));
}

Expr Builder::mod(Expr a, Expr b) {
  if (const Expr known = recall(Op::kMod, a, b)) return known;
  if (oracle_ == nullptr && (b->is_const(0) || (b->hint.known() && b->hint.integer == 0))) {
    throw Error(ErrorKind::kZeroDivision, "modulo by zero: " + to_text(a) + " % " + to_text(b));
  }
  return remember(Op::kMod, a, b, make_mod(a, b));
}

Expr Builder::ceil_div(Expr a, Expr b) {
  if (b->is_const() && b->value > 0) return floor_div(add(a, arena_.constant(b->value - 1)), b);
  return neg(floor_div(neg(a), b));
}

// Takes the largest common divisor of both away, numbers and factors; `common` becomes it. The divisor is one term.
bool Builder::cancel(Expr* a, Expr* b, Expr* common) {
  const LinearView divisor(*b);
  if (divisor.count() != 1 || divisor.constant() != 0) return false;
  const LinearView dividend(*a);
  if (dividend.count() == 0) return false;
  Int number = gcd_of(gcd_of(dividend.divisor(), dividend.constant()), divisor.coefficient(0));
  Expr factors = arena_.constant(number);
  if (dividend.constant() == 0) {
    Expr last = nullptr;
    for (const Expr factor : factors_of(divisor.factor(0))) {
      if (factor == last) continue;  // powers: once for each distinct factor, then again from the caller
      last = factor;
      bool in_all = true;
      for (uint32_t i = 0; i < dividend.count() && in_all; ++i) {
        in_all = factors_of(dividend.factor(i)).has(factor);
      }
      if (in_all) factors = make_mul(factors, factor);
    }
  }
  if (factors->is_const(1)) return false;
  const Expr less_a = exact_divide(*a, factors);
  const Expr less_b = exact_divide(*b, factors);
  if (less_a == nullptr || less_b == nullptr) return false;
  *a = less_a;
  *b = less_b;
  *common = factors;
  return true;
}

Expr Builder::make_floor_div(Expr a, Expr b) {
  arena_.count_work(1);
  const Range divisor_range = range(b);
  if (divisor_range.single() && !b->is_const() && divisor_range.lo != 0) b = arena_.constant(divisor_range.lo);
  if (b->is_const(0)) return node(Kind::kFloorDiv, Type::kInt, {a, b});  // only what facts made 0; never reached when it runs
  if (b->is_const()) return divide_by_constant(a, b->value);
  if (a->is_const(0)) return a;
  if (const Expr quotient = exact_divide(a, b)) return quotient;
  const Range quotients = floor_divide(range(a), divisor_range);
  if (quotients.single() && (divisor_range.lo > 0 || divisor_range.hi < 0)) return arena_.constant(quotients.lo);
  Expr common;
  if (cancel(&a, &b, &common)) return make_floor_div(a, b);
  // Terms that the divisor divides are whole.
  const LinearView view(a);
  const LinearView divisor(b);
  if (divisor.count() == 1 && divisor.constant() == 0) {
    std::vector<Term> whole;
    std::vector<Term> rest;
    Int whole_constant = 0;
    for (uint32_t i = 0; i < view.count(); ++i) {
      const Expr quotient =
          view.coefficient(i) % divisor.coefficient(0) == 0 ? divide_monomial(view.factor(i), divisor.factor(0)) : nullptr;
      if (quotient == nullptr) {
        rest.push_back({view.factor(i), view.coefficient(i)});
      } else if (quotient->is_const()) {
        whole_constant += view.coefficient(i) / divisor.coefficient(0);
      } else {
        whole.push_back({quotient, view.coefficient(i) / divisor.coefficient(0)});
      }
    }
    if (!whole.empty() || whole_constant != 0) {
      return combine(linear(whole, whole_constant), 1, make_floor_div(make_sum(rest, view.constant()), b), 1);
    }
  }
  // x // p // q is x // (p * q) for q > 0.
  if (a->is(Kind::kFloorDiv) && divisor_range.lo > 0 && !a->arg(1)->is_const(0)) {
    return make_floor_div(a->arg(0), make_mul(a->arg(1), b));
  }
  return node(Kind::kFloorDiv, Type::kInt, {a, b});
}

Expr Builder::divide_by_constant(Expr a, Int divisor) {
  if (divisor == 1) return a;
  if (divisor < 0) return divide_by_constant(combine(a, -1, arena_.constant(0), 1), -divisor);
  const LinearView view(a);
  std::vector<Term> whole;
  std::vector<Term> rest;
  for (uint32_t i = 0; i < view.count(); ++i) {
    if (view.coefficient(i) % divisor == 0) {
      whole.push_back({view.factor(i), view.coefficient(i) / divisor});
    } else {
      rest.push_back({view.factor(i), view.coefficient(i)});
    }
  }
  Int constant = symbolic::floor_mod(view.constant(), divisor);
  Expr outside = make_sum(whole, symbolic::floor_div(view.constant(), divisor));
  if (rest.empty()) return outside;
  if (rest[0].coefficient < 0) {  // -x // d is -((x + d - 1) // d)
    for (Term& term : rest) term.coefficient = -term.coefficient;
    constant = divisor - 1 - constant;
    const Expr positive = divide_by_constant(make_sum(rest, constant), divisor);
    return combine(outside, 1, positive, -1);
  }
  Int common = divisor;
  for (const Term& term : rest) common = gcd_of(common, term.coefficient);
  if (common != 1) {
    for (Term& term : rest) term.coefficient /= common;
    divisor /= common;
    constant = symbolic::floor_div(constant, common);
    return combine(outside, 1, divide_by_constant(make_sum(rest, constant), divisor), 1);
  }
  if (rest.size() == 1 && rest[0].coefficient == 1) {
    const Expr inner = rest[0].factor;
    if (inner->is(Kind::kFloorDiv) && !inner->arg(1)->is_const(0)) {  // (x // p + c) // d is (x + c * p) // (p * d)
      const Expr p = inner->arg(1);
      Int product;
      if (p->is_const() && checked_mul(p->value, divisor, &product) && product <= kInt64Max) {
        const Expr numerator = combine(inner->arg(0), 1, arena_.constant(constant), p->value);
        return combine(outside, 1, divide_by_constant(numerator, product), 1);
      }
      if (!p->is_const() && constant == 0) {
        return combine(outside, 1, make_floor_div(inner->arg(0), make_mul(p, arena_.constant(divisor))), 1);
      }
    }
    if (inner->is(Kind::kMod) && constant == 0 && inner->arg(1)->is_const() && inner->arg(1)->value > 0 &&
        inner->arg(1)->value <= divisor) {
      return outside;
    }
  }
  const Expr numerator = make_sum(rest, constant);
  const Range quotients = floor_divide(range(numerator), {divisor, divisor});
  if (quotients.single()) return combine(outside, 1, arena_.constant(quotients.lo), 1);
  if (oracle_ != nullptr) {  // a constant part that is known to be the whole rest: (x + r) // d with x divisible is x // d
    const std::optional<Int> rest_of = oracle_->residue(numerator, divisor);
    if (rest_of && *rest_of == constant && constant != 0) {
      const Expr less = divide_by_constant(make_sum(rest, 0), divisor);
      return combine(outside, 1, less, 1);
    }
  }
  const Expr quotient = node(Kind::kFloorDiv, Type::kInt, {numerator, arena_.constant(divisor)});
  return combine(outside, 1, quotient, 1);
}

Expr Builder::make_mod(Expr a, Expr b) {
  arena_.count_work(1);
  const Range divisor_range = range(b);
  if (divisor_range.single() && !b->is_const() && divisor_range.lo != 0) b = arena_.constant(divisor_range.lo);
  if (b->is_const(0)) return node(Kind::kMod, Type::kInt, {a, b});
  if (b->is_const()) {
    if (b->value > 0) return mod_by_constant(a, b->value);
    // a % -d is -(-a % d).
    return combine(mod_by_constant(combine(a, -1, arena_.constant(0), 1), -b->value), -1, arena_.constant(0), 1);
  }
  if (a->is_const(0)) return a;
  if (exact_divide(a, b) != nullptr) return arena_.constant(0);
  if (oracle_ != nullptr && oracle_->divides(a, b)) return arena_.constant(0);
  const Range dividend = range(a);
  if (dividend.lo >= 0 && dividend.hi < divisor_range.lo) return a;
  if (dividend.hi <= 0 && dividend.lo > divisor_range.hi) return a;
  Expr common;
  if (cancel(&a, &b, &common)) return make_mul(common, make_mod(a, b));
  const LinearView view(a);
  const LinearView divisor(b);
  if (divisor.count() == 1 && divisor.constant() == 0) {
    std::vector<Term> rest;
    for (uint32_t i = 0; i < view.count(); ++i) {
      const bool whole = view.coefficient(i) % divisor.coefficient(0) == 0 && divide_monomial(view.factor(i), divisor.factor(0)) != nullptr;
      if (!whole) rest.push_back({view.factor(i), view.coefficient(i)});
    }
    if (rest.size() != view.count()) return make_mod(make_sum(rest, view.constant()), b);
  }
  if (a->is(Kind::kMod) && exact_divide(a->arg(1), b) != nullptr) return make_mod(a->arg(0), b);
  if (oracle_ != nullptr && dividend.lo >= 0 && divisor_range.lo > 0) {  // a < b from relations between them
    const Expr less = le0(combine(combine(a, 1, b, -1), 1, arena_.constant(1), 1));
    if (less->is_truth() ? less->value != 0 : oracle_->settled(less) == true) return a;
  }
  return node(Kind::kMod, Type::kInt, {a, b});
}

Expr Builder::mod_by_constant(Expr a, Int modulus) {
  if (modulus == 1) return arena_.constant(0);
  const LinearView view(a);
  std::vector<Term> rest;
  bool inner_mods = false;
  for (uint32_t i = 0; i < view.count(); ++i) {
    const Int coefficient = symbolic::floor_mod(view.coefficient(i), modulus);
    if (coefficient == 0) continue;
    rest.push_back({view.factor(i), coefficient});
    const Expr factor = view.factor(i);
    inner_mods |= factor->is(Kind::kMod) && exact_divide(factor->arg(1), arena_.constant(modulus)) != nullptr;
  }
  const Int constant = symbolic::floor_mod(view.constant(), modulus);
  if (rest.empty()) return arena_.constant(constant);
  if (inner_mods) {  // (x % (k * m) + ...) % m is (x + ...) % m
    Expr open = arena_.constant(constant);
    for (const Term& term : rest) {
      const bool inner = term.factor->is(Kind::kMod) && exact_divide(term.factor->arg(1), arena_.constant(modulus)) != nullptr;
      open = combine(open, 1, inner ? term.factor->arg(0) : term.factor, term.coefficient);
    }
    return mod_by_constant(open, modulus);
  }
  const Expr dividend = make_sum(rest, constant);
  const Range values = range(dividend);
  if (values.lo >= 0 && values.hi < modulus) return dividend;
  if (values.bounded_below() && values.bounded_above() &&
      symbolic::floor_div(values.lo, modulus) == symbolic::floor_div(values.hi, modulus)) {
    return combine(dividend, 1, arena_.constant(symbolic::floor_div(values.lo, modulus)), -modulus);
  }
  if (oracle_ != nullptr) {
    if (const std::optional<Int> known = oracle_->residue(dividend, modulus)) return arena_.constant(*known);
  }
  Int common = modulus;
  for (const Term& term : rest) common = gcd_of(common, term.coefficient);
  if (common != 1) {  // (g * x + c) % (g * m) is g * ((x + c // g) % m) + c % g
    for (Term& term : rest) term.coefficient /= common;
    const Expr inner = mod_by_constant(make_sum(rest, symbolic::floor_div(constant, common)), modulus / common);
    return combine(inner, common, arena_.constant(symbolic::floor_mod(constant, common)), 1);
  }
  return node(Kind::kMod, Type::kInt, {dividend, arena_.constant(modulus)});
}

}  // namespace pellucid::symbolic
