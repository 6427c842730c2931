// Sums and products: linear forms over monomials, expanded, sorted, merged. Exact polynomial division.
#include <algorithm>
#include <array>

#include "symbolic/builder.h"
#include "symbolic/print.h"

namespace pellucid::symbolic {

namespace {

constexpr size_t kExpandedTerms = 4096;               // products of sums that would have more stay products
constexpr size_t kShort = 24;                         // sums of so many terms are merged without allocation
constexpr Int kLargest = static_cast<Int>(1) << 126;  // of coefficients and constants: a sign or a step more never wraps

bool in_bounds(Int value) { return value <= kLargest && value >= -kLargest; }

bool by_id(const Term& a, const Term& b) { return a.factor->id < b.factor->id; }

// Graded lexicographic order of monomials: what polynomial division needs.
bool greater_monomial(Expr a, Expr b) {
  const auto x = factors_of(a);
  const auto y = factors_of(b);
  if (x.size() != y.size()) return x.size() > y.size();
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] != y[i]) return x[i]->id < y[i]->id;
  }
  return false;
}

}  // namespace

void Builder::overflow(Expr a, Expr b) const {
  throw Error(ErrorKind::kOverflow, "an operation on " + to_text(a) + " and " + to_text(b) + " does not fit 128 bits");
}

// factor_a * a + factor_b * b.
Expr Builder::combine(Expr a, Int factor_a, Expr b, Int factor_b) {
  const LinearView x(a);
  const LinearView y(b);
  const size_t room = static_cast<size_t>(x.count()) + y.count();
  std::array<Expr, kShort> short_factors;
  std::array<Int, kShort> short_coefficients;
  std::vector<Expr> long_factors;
  std::vector<Int> long_coefficients;
  Expr* factors = short_factors.data();
  Int* coefficients = short_coefficients.data();
  if (room > kShort) {
    long_factors.resize(room);
    long_coefficients.resize(room);
    factors = long_factors.data();
    coefficients = long_coefficients.data();
  }
  arena_.count_work(room);
  bool good = true;
  uint32_t n = 0;
  bool divisions = false;
  const auto put = [&](Expr factor, Int coefficient) {
    if (coefficient == 0) return;
    good &= in_bounds(coefficient);
    factors[n] = factor;
    coefficients[n++] = coefficient;
    divisions |= factor->is(Kind::kMod) || factor->is(Kind::kFloorDiv) || (oracle_ != nullptr && factor->is(Kind::kProduct));
  };
  for (uint32_t i = 0, j = 0; i < x.count() || j < y.count();) {
    Int left = 0;
    Int right = 0;
    if (j == y.count() || (i < x.count() && x.factor(i)->id < y.factor(j)->id)) {
      good &= checked_mul(x.coefficient(i), factor_a, &left);
      put(x.factor(i++), left);
    } else if (i == x.count() || y.factor(j)->id < x.factor(i)->id) {
      good &= checked_mul(y.coefficient(j), factor_b, &right);
      put(y.factor(j++), right);
    } else {
      good &= checked_mul(x.coefficient(i), factor_a, &left) && checked_mul(y.coefficient(j), factor_b, &right) &&
              checked_add(left, right, &left);
      put(x.factor(i), left);
      ++i;
      ++j;
    }
  }
  Int constant;
  Int other;
  good &= checked_mul(x.constant(), factor_a, &constant) && checked_mul(y.constant(), factor_b, &other) &&
          checked_add(constant, other, &constant) && in_bounds(constant);
  if (!good) overflow(a, b);
  if (n == 0) return arena_.constant(constant);
  if (divisions && (n > 1 || oracle_ != nullptr)) {
    std::vector<Term> terms;
    for (uint32_t i = 0; i < n; ++i) terms.push_back({factors[i], coefficients[i]});
    if (rejoin(terms, &constant)) return linear(terms, constant);
  }
  if (n == 1 && coefficients[0] == 1 && constant == 0) return factors[0];
  return arena_.intern(Kind::kSum, Type::kInt, factors, coefficients, n, constant);
}

Expr Builder::linear(std::vector<Term>& terms, Int constant) {
  arena_.count_work(terms.size());
  std::sort(terms.begin(), terms.end(), by_id);
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    Term merged = terms[i++];
    for (; i < terms.size() && terms[i].factor == merged.factor; ++i) {
      if (!checked_add(merged.coefficient, terms[i].coefficient, &merged.coefficient)) overflow(merged.factor, merged.factor);
    }
    if (!in_bounds(merged.coefficient)) overflow(merged.factor, merged.factor);
    if (merged.coefficient != 0) terms[kept++] = merged;
  }
  terms.resize(kept);
  if (!in_bounds(constant)) overflow(arena_.constant(0), arena_.constant(constant));
  if (rejoin(terms, &constant)) return linear(terms, constant);
  return make_sum(terms, constant);
}

Expr Builder::make_sum(const std::vector<Term>& terms, Int constant) {
  if (terms.empty()) return arena_.constant(constant);
  if (terms.size() == 1 && terms[0].coefficient == 1 && constant == 0) return terms[0].factor;
  std::vector<Expr> factors;
  std::vector<Int> coefficients;
  for (const Term& term : terms) {
    factors.push_back(term.factor);
    coefficients.push_back(term.coefficient);
  }
  return arena_.intern(Kind::kSum, Type::kInt, factors.data(), coefficients.data(), static_cast<uint32_t>(terms.size()), constant);
}

// d * (x // d) + x % d is x; with facts, d * (x // d) is x where d divides it. Changes `terms` and is true where one was found.
bool Builder::rejoin(std::vector<Term>& terms, Int* constant) {
  const auto replace = [&](size_t at, Expr by, Int factor) {
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(at));
    const LinearView view(by);
    Int product;
    for (uint32_t i = 0; i < view.count(); ++i) {
      if (!checked_mul(view.coefficient(i), factor, &product)) overflow(by, by);
      terms.push_back({view.factor(i), product});
    }
    if (!checked_mul(view.constant(), factor, &product) || !checked_add(*constant, product, constant)) overflow(by, by);
  };
  for (size_t i = 0; i < terms.size(); ++i) {
    const Expr term = terms[i].factor;
    const Int coefficient = terms[i].coefficient;
    if (term->is(Kind::kMod)) {
      const Expr x = term->arg(0);
      const Expr d = term->arg(1);
      const Expr args[] = {x, d};
      const Expr quotient = arena_.find(Kind::kFloorDiv, Type::kInt, args, nullptr, 2, 0);
      if (quotient == nullptr) continue;
      const Expr whole = d->is_const() ? quotient : make_mul(quotient, d);
      Int wanted = coefficient;
      if (d->is_const() && !checked_mul(coefficient, d->value, &wanted)) continue;
      for (size_t j = 0; j < terms.size(); ++j) {
        if (terms[j].factor != whole || terms[j].coefficient != wanted) continue;
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
        replace(j < i ? i - 1 : i, x, coefficient);
        return true;
      }
    } else if (oracle_ != nullptr && term->is(Kind::kFloorDiv) && term->arg(1)->is_const() && coefficient % term->arg(1)->value == 0) {
      if (oracle_->residue(term->arg(0), abs_of(term->arg(1)->value)) != Int{0}) continue;
      replace(i, term->arg(0), coefficient / term->arg(1)->value);
      return true;
    } else if (oracle_ != nullptr && term->is(Kind::kProduct)) {
      for (const Expr factor : factors_of(term)) {
        if (!factor->is(Kind::kFloorDiv) || factor->arg(1)->is_const()) continue;
        if (!oracle_->divides(factor->arg(0), factor->arg(1))) continue;
        const Expr rest = divide_monomial(term, factor);
        const Expr others = rest == nullptr ? nullptr : exact_divide(rest, factor->arg(1));
        if (others == nullptr) continue;
        replace(i, make_mul(factor->arg(0), others), coefficient);
        return true;
      }
    }
  }
  return false;
}

Expr Builder::add(Expr a, Expr b) {
  if (a->id > b->id) std::swap(a, b);
  if (const Expr known = recall(Op::kAdd, a, b)) return known;
  return remember(Op::kAdd, a, b, combine(a, 1, b, 1));
}

Expr Builder::sub(Expr a, Expr b) {
  if (const Expr known = recall(Op::kSub, a, b)) return known;
  return remember(Op::kSub, a, b, combine(a, 1, b, -1));
}

Expr Builder::neg(Expr a) {
  if (const Expr known = recall(Op::kNeg, a, a)) return known;
  return remember(Op::kNeg, a, a, combine(a, -1, arena_.constant(0), 1));
}

Expr Builder::scale(Expr a, Int factor) { return factor == 1 ? a : combine(a, factor, arena_.constant(0), 1); }

Expr Builder::sum(std::span<const Expr> parts) {
  std::vector<Term> terms;
  Int constant = 0;
  for (const Expr part : parts) {
    const LinearView view(part);
    for (uint32_t i = 0; i < view.count(); ++i) terms.push_back({view.factor(i), view.coefficient(i)});
    if (!checked_add(constant, view.constant(), &constant)) overflow(part, part);
  }
  return linear(terms, constant);
}

Expr Builder::mul(Expr a, Expr b) {
  if (a->id > b->id) std::swap(a, b);
  if (const Expr known = recall(Op::kMul, a, b)) return known;
  return remember(Op::kMul, a, b, make_mul(a, b));
}

// The product of two terms, neither of them sums or constants.
Expr Builder::monomial(Expr a, Expr b) {
  const auto x = factors_of(a);
  const auto y = factors_of(b);
  std::array<Expr, kShort> local;
  std::vector<Expr> more;
  const size_t count = x.size() + y.size();
  Expr* factors = local.data();
  if (count > kShort) {
    more.resize(count);
    factors = more.data();
  }
  std::merge(x.begin(), x.end(), y.begin(), y.end(), factors, [](Expr p, Expr q) { return p->id < q->id; });
  return arena_.intern(Kind::kProduct, Type::kInt, factors, nullptr, static_cast<uint32_t>(count), 0);
}

Expr Builder::make_mul(Expr a, Expr b) {
  if (a->is_const()) return a->value == 0 ? a : combine(b, a->value, arena_.constant(0), 1);
  if (b->is_const()) return b->value == 0 ? b : combine(a, b->value, arena_.constant(0), 1);
  const LinearView x(a);
  const LinearView y(b);
  if (x.count() == 1 && y.count() == 1 && x.constant() == 0 && y.constant() == 0) {
    Int coefficient;
    if (!checked_mul(x.coefficient(0), y.coefficient(0), &coefficient)) overflow(a, b);
    const Expr product = monomial(x.factor(0), y.factor(0));
    return coefficient == 1 && oracle_ == nullptr ? product : combine(product, coefficient, arena_.constant(0), 1);
  }
  if (static_cast<size_t>(x.count() + 1) * (y.count() + 1) > kExpandedTerms) return monomial(a, b);
  arena_.count_work(static_cast<uint64_t>(x.count() + 1) * (y.count() + 1));
  std::vector<Term> terms;
  Int constant;
  if (!checked_mul(x.constant(), y.constant(), &constant)) overflow(a, b);
  const auto put = [&](Expr factor, Int p, Int q) {
    Int coefficient;
    if (!checked_mul(p, q, &coefficient)) overflow(a, b);
    if (coefficient != 0) terms.push_back({factor, coefficient});
  };
  for (uint32_t i = 0; i < x.count(); ++i) {
    for (uint32_t j = 0; j < y.count(); ++j) put(monomial(x.factor(i), y.factor(j)), x.coefficient(i), y.coefficient(j));
    put(x.factor(i), x.coefficient(i), y.constant());
  }
  for (uint32_t j = 0; j < y.count(); ++j) put(y.factor(j), y.coefficient(j), x.constant());
  return linear(terms, constant);
}

Expr Builder::pow(Expr base, Expr exponent) {
  if (const Expr known = recall(Op::kPow, base, exponent)) return known;
  return remember(Op::kPow, base, exponent, make_pow(base, exponent));
}

Expr Builder::make_pow(Expr base, Expr exponent) {
  constexpr Int kUnrolled = 16;
  if (exponent->is_const()) {
    const Int times = exponent->value;
    if (times < 0 && oracle_ == nullptr) {
      throw Error(ErrorKind::kValue, to_text(base) + " ** " + to_text(exponent) + ": the exponent of an int must not be negative");
    }
    if (times >= 0 && (base->is_const(0) || base->is_const(1))) return times == 0 ? arena_.constant(1) : base;
    if (times >= 0 && (times <= kUnrolled || base->is_const()) && times < 128) {
      Expr result = arena_.constant(1);
      for (Int i = 0; i < times; ++i) result = make_mul(result, base);
      return result;
    }
  } else if (base->is_const(1)) {
    return base;
  }
  return node(Kind::kPow, Type::kInt, {base, exponent});
}

// monomial / d, d a monomial too: null where a factor is missing.
Expr Builder::divide_monomial(Expr term, Expr d) {
  const auto have = factors_of(term);
  const auto want = factors_of(d);
  std::vector<Expr> rest;
  size_t j = 0;
  for (const Expr factor : have) {
    if (j < want.size() && want[j] == factor) {
      ++j;
    } else {
      rest.push_back(factor);
    }
  }
  if (j != want.size()) return nullptr;
  if (rest.empty()) return arena_.constant(1);
  if (rest.size() == 1) return rest[0];
  return arena_.intern(Kind::kProduct, Type::kInt, rest.data(), nullptr, static_cast<uint32_t>(rest.size()), 0);
}

Expr Builder::exact_divide(Expr a, Expr d) {
  if (d->is_const(0)) return nullptr;
  if (a == d) return arena_.constant(1);
  const LinearView x(a);
  const LinearView y(d);
  if (y.count() == 0) {
    if (x.constant() % y.constant() != 0) return nullptr;
    std::vector<Term> terms;
    for (uint32_t i = 0; i < x.count(); ++i) {
      if (x.coefficient(i) % y.constant() != 0) return nullptr;
      terms.push_back({x.factor(i), x.coefficient(i) / y.constant()});
    }
    return make_sum(terms, x.constant() / y.constant());
  }
  if (x.count() == 0) return x.constant() == 0 ? a : nullptr;
  if (y.count() == 1 && y.constant() == 0) {
    if (x.constant() != 0) return nullptr;
    std::vector<Term> terms;
    Int constant = 0;
    for (uint32_t i = 0; i < x.count(); ++i) {
      if (x.coefficient(i) % y.coefficient(0) != 0) return nullptr;
      const Expr quotient = divide_monomial(x.factor(i), y.factor(0));
      if (quotient == nullptr) return nullptr;
      if (quotient->is_const()) {
        constant += x.coefficient(i) / y.coefficient(0);
      } else {
        terms.push_back({quotient, x.coefficient(i) / y.coefficient(0)});
      }
    }
    return linear(terms, constant);
  }
  // Long division of polynomials. Each step takes the leading term away, so it ends; a few steps are enough for what programs have.
  constexpr int kSteps = 32;
  if (x.count() > 64 || y.count() > 16) return nullptr;
  const auto leading = [](const LinearView& view) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < view.count(); ++i) {
      if (greater_monomial(view.factor(i), view.factor(best))) best = i;
    }
    return best;
  };
  const uint32_t lead = leading(y);
  std::vector<Term> quotient;
  Int constant = 0;
  Expr rest = a;
  for (int step = 0; step < kSteps; ++step) {
    if (rest->is_const(0)) return linear(quotient, constant);
    const LinearView view(rest);
    if (view.count() == 0) return nullptr;
    const uint32_t top = leading(view);
    if (view.coefficient(top) % y.coefficient(lead) != 0) return nullptr;
    const Expr factor = divide_monomial(view.factor(top), y.factor(lead));
    if (factor == nullptr) return nullptr;
    const Int coefficient = view.coefficient(top) / y.coefficient(lead);
    if (factor->is_const()) {
      constant += coefficient;
    } else {
      quotient.push_back({factor, coefficient});
    }
    rest = combine(rest, 1, make_mul(factor, d), -coefficient);
  }
  return nullptr;
}

}  // namespace pellucid::symbolic
