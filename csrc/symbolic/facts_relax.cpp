// Facts: bounds of quotients, remainders, minima and the like by what they are made of. d * (x // d) lies between x - d + 1 and x, x % m is
// at most x, min(a, b) at most a: with such a term replaced, a sum is bounded by a simpler one, in which things cancel. So x // 2 <= x is
// known, and x <= y gives x // d <= y // d.
#include <algorithm>

#include "symbolic/facts.h"

namespace pellucid::symbolic {

namespace {

constexpr uint32_t kMostTerms = 8;
constexpr int kMostSteps = 4;  // replacements inside of replacements
constexpr Int kLarge = static_cast<Int>(1) << 64;
constexpr Int kFewBits = static_cast<Int>(1) << 30;

// The quotient x // d of d * (x // d), or null.
Expr multiplied_back(Expr term) {
  if (!term->is(Kind::kProduct) || term->count != 2) return nullptr;
  for (uint32_t i = 0; i < 2; ++i) {
    if (term->arg(i)->is(Kind::kFloorDiv) && term->arg(i)->arg(1) == term->arg(1 - i)) return term->arg(i);
  }
  return nullptr;
}

}  // namespace

bool Facts::can_relax(Expr term) {
  switch (term->kind) {
    case Kind::kFloorDiv:
    case Kind::kMod:
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kAbs:
      return true;
    case Kind::kWhere:
      return term->type == Type::kInt;
    default:
      return multiplied_back(term) != nullptr;
  }
}

// The sums that bound sign * sum from above once its term `place` is replaced: by each of them alone if `any`, else by the largest; times
// `factor`.
bool Facts::relax(Expr sum, Int sign, uint32_t place, Relaxed* out) {
  const Expr term = sum->arg(place);
  const Int coefficient = sum->coefficients()[place] * sign;
  Builder plain(arena_);
  // sign * factor * (sum without the term) + coefficient * by
  const auto with = [&](Expr by, Int more, Int factor) {
    std::vector<Term> terms;
    for (uint32_t i = 0; i < sum->count; ++i) {
      if (i != place) terms.push_back({sum->arg(i), sum->coefficients()[i] * sign * factor});
    }
    const LinearView view(by);
    for (uint32_t i = 0; i < view.count(); ++i) terms.push_back({view.factor(i), view.coefficient(i) * coefficient});
    out->sums.push_back(plain.linear(terms, sum->value * sign * factor + view.constant() * coefficient + more));
  };
  out->factor = 1;
  out->any = true;
  switch (term->kind) {
    case Kind::kFloorDiv: {
      const Expr x = term->arg(0);
      const Expr d = term->arg(1);
      if (d->is_const()) {
        if (d->value <= 0) return false;
        out->factor = d->value;
        with(x, coefficient > 0 ? 0 : -coefficient * (d->value - 1), d->value);
        return true;
      }
      if (coefficient < 0 || range(d).lo < 1 || range(x).lo < 0) return false;
      with(x, 0, 1);
      return true;
    }
    case Kind::kMod:
      if (coefficient < 0 || range(term->arg(1)).lo < 1) return false;
      if (range(term->arg(0)).lo >= 0) with(term->arg(0), 0, 1);
      if (!term->arg(1)->is_const()) with(term->arg(1), -coefficient, 1);
      return !out->sums.empty();
    case Kind::kMin:
    case Kind::kMax:
      out->any = term->is(Kind::kMin) == (coefficient > 0);
      for (uint32_t i = 0; i < term->count; ++i) with(term->arg(i), 0, 1);
      return true;
    case Kind::kAbs:
      out->any = coefficient < 0;
      with(term->arg(0), 0, 1);
      with(plain.neg(term->arg(0)), 0, 1);
      return true;
    case Kind::kWhere:
      out->any = false;
      with(term->arg(1), 0, 1);
      with(term->arg(2), 0, 1);
      return true;
    default: {
      const Expr quotient = multiplied_back(term);
      if (quotient == nullptr || range(quotient->arg(1)).lo < 1) return false;
      if (coefficient > 0) {
        with(quotient->arg(0), 0, 1);
      } else {
        with(plain.add(plain.sub(quotient->arg(0), quotient->arg(1)), plain.constant(1)), 0, 1);
      }
      return true;
    }
  }
}

// Whether numbers of such size stay far from 128 bits when they are multiplied.
bool Facts::is_small(Expr sum) {
  if (sum->count > kMostTerms || abs_of(sum->value) > kLarge) return false;
  for (uint32_t i = 0; i < sum->count; ++i) {
    const Expr term = sum->arg(i);
    if (abs_of(sum->coefficients()[i]) > kFewBits) return false;
    if (term->is(Kind::kFloorDiv) && term->arg(1)->is_const() && term->arg(1)->value > kFewBits) return false;
    for (uint32_t j = 0; can_relax(term) && j < term->count; ++j) {
      if (term->arg(j)->is_sum() && (term->arg(j)->count > kMostTerms || abs_of(term->arg(j)->value) > kLarge)) return false;
      if (!term->arg(j)->is_sum()) continue;
      for (uint32_t k = 0; k < term->arg(j)->count; ++k) {
        if (abs_of(term->arg(j)->coefficients()[k]) > kFewBits) return false;
      }
    }
  }
  return true;
}

Range Facts::relaxed(Expr sum) {
  Range values;
  if (relaxing_ >= kMostSteps) return values;
  bool possible = false;
  for (uint32_t i = 0; i < sum->count && sum->count <= kMostTerms; ++i) possible |= can_relax(sum->arg(i));
  if (!possible || !is_small(sum)) return values;
  ++relaxing_;
  for (uint32_t i = 0; i < sum->count; ++i) {
    if (!can_relax(sum->arg(i))) continue;
    for (const Int sign : {Int{1}, Int{-1}}) {
      arena_.count_work(sum->count);
      Relaxed relaxed;
      if (!relax(sum, sign, i, &relaxed)) continue;
      Int most = relaxed.any ? kInfinity : -kInfinity;
      for (const Expr bound : relaxed.sums) {
        const Int hi = range(bound).hi;
        most = relaxed.any ? std::min(most, hi) : std::max(most, hi);
      }
      if (most >= kInfinity) continue;
      if (most > -kInfinity) most = symbolic::floor_div(most, relaxed.factor);
      values = intersect(values, sign > 0 ? Range{-kInfinity, most} : Range{-most, kInfinity});
    }
  }
  --relaxing_;
  return values;
}

}  // namespace pellucid::symbolic
