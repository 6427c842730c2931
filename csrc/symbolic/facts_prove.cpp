// Facts: what follows. Ranges of nodes from those of their parts, from common factors and from learned relations; congruences; and a
// bounded search that adds learned relations up.
#include <algorithm>
#include <map>

#include "symbolic/facts.h"
#include "symbolic/range_rules.h"

namespace pellucid::symbolic {

namespace {

constexpr int kSearchDepth = 4;        // relations added up
constexpr int kSearchBudget = 40;      // relations tried
constexpr int kDeepest = 1500;         // nested conditions looked into
constexpr int kQuickBudget = 8;        // while simplifying
constexpr size_t kRelationsTried = 8;  // of one factor, the newest
constexpr uint32_t kSearchedTerms = 4;
constexpr Int kFarOut = static_cast<Int>(1) << 110;  // polynomials with larger numbers are not looked into
constexpr uint32_t kFactoredTerms = 12;

}  // namespace

const Range* Facts::known_range(Expr atom) const {
  const auto known = relations_.find(atom);
  return known == relations_.end() ? nullptr : &known->second;
}

Range Facts::range_uncached(Expr integer) {
  if (integer->is(Kind::kSymbol)) {
    Range values = of(integer).range;
    if (mode_ == 1 && of(integer).size_like && values.hi >= 2) values.lo = std::max<Int>(values.lo, 2);
    if (const Expr by = of(integer).replacement) values = intersect(values, range(by));
    return values;
  }
  Range values = intersect(integer->range, range_by_rule(*integer, [&](Expr arg) { return range(arg); }));
  if (!integer->is_sum()) {
    if (const Range* known = known_range(integer)) values = intersect(values, *known);
    return values;
  }
  arena_.count_work(integer->count);
  values = intersect(values, factored(integer));
  values = intersect(values, shifted(integer));
  values = intersect(values, relaxed(integer));
  if (!relations_.empty() && integer->count <= 64) {
    Int factor;
    if (const Range* known = relation(integer->args(), integer->coefficients(), integer->count, &factor)) {
      values = intersect(values, symbolic::add(scale(*known, factor), {integer->value, integer->value}));
    }
  }
  return values;
}

// The learned range of a sum without its constant, divided by `factor`.
const Range* Facts::relation(const Expr* factors, const Int* coefficients, uint32_t count, Int* factor) {
  if (count == 0) return nullptr;
  Int divisor = 0;
  for (uint32_t i = 0; i < count && divisor != 1; ++i) divisor = gcd_of(divisor, coefficients[i]);
  if (coefficients[0] < 0) divisor = -divisor;
  *factor = divisor;
  if (count == 1) return known_range(factors[0]);
  Expr key;
  if (divisor == 1) {
    key = arena_.find(Kind::kSum, Type::kInt, factors, coefficients, count, 0);
  } else {
    std::array<Int, 64> divided;
    if (count > divided.size()) return nullptr;
    for (uint32_t i = 0; i < count; ++i) divided[i] = coefficients[i] / divisor;
    key = arena_.find(Kind::kSum, Type::kInt, factors, divided.data(), count, 0);
  }
  return key == nullptr ? nullptr : known_range(key);
}

// s2 - s1*s2 is s2*(1 - s1): with a factor that terms share taken out, the range is often much smaller.
Range Facts::factored(Expr sum) {
  Range best;
  if (sum->count > kFactoredTerms) return best;
  bool products = false;
  for (uint32_t i = 0; i < sum->count; ++i) products |= sum->arg(i)->is(Kind::kProduct);
  if (!products) return best;
  std::vector<Expr> tried;
  for (uint32_t i = 0; i < sum->count; ++i) {
    for (const Expr factor : factors_of(sum->args()[i])) {
      if (std::find(tried.begin(), tried.end(), factor) != tried.end()) continue;
      tried.push_back(factor);
      std::vector<Term> inside;
      std::vector<Term> outside;
      Int inside_constant = 0;
      for (uint32_t j = 0; j < sum->count; ++j) {
        const Term term{sum->arg(j), sum->coefficients()[j]};
        if (!factors_of(term.factor).has(factor)) {
          outside.push_back(term);
          continue;
        }
        const Expr rest = build_.exact_divide(term.factor, factor);
        if (rest->is_const()) {
          inside_constant += term.coefficient;
        } else {
          inside.push_back({rest, term.coefficient});
        }
      }
      if (inside.size() + (inside_constant != 0 ? 1 : 0) < 2) continue;
      arena_.count_work(sum->count);
      Builder plain(arena_);
      const Expr quotient = plain.linear(inside, inside_constant);
      const Expr rest = plain.linear(outside, sum->value);
      best = intersect(best, symbolic::add(multiply(range(factor), range(quotient)), range(rest)));
    }
  }
  return best;
}

// a*b - a - b with a, b >= 2 is (x + 2)*(y + 2) - x - y - 4 = x*y + x + y with x, y >= 0: measured from the least values of its factors, a
// polynomial often has no negative term left.
Range Facts::shifted(Expr sum) {
  if (sum->count > kFactoredTerms) return {};
  bool products = false;
  for (uint32_t i = 0; i < sum->count; ++i) {
    products |= sum->arg(i)->is(Kind::kProduct);
    if (factors_of(sum->arg(i)).size() > 4) return {};
  }
  if (!products) return {};
  std::map<std::vector<Expr>, Int> polynomial{{{}, sum->value}};
  for (uint32_t i = 0; i < sum->count; ++i) {
    std::map<std::vector<Expr>, Int> term{{{}, sum->coefficients()[i]}};
    for (const Expr factor : factors_of(sum->arg(i))) {
      const Int least = range(factor).lo;
      if (abs_of(least) > kInt64Max) return {};
      std::map<std::vector<Expr>, Int> product;
      for (const auto& [monomial, coefficient] : term) {
        arena_.count_work(1);
        Int moved;
        if (abs_of(coefficient) > kFarOut || !checked_mul(coefficient, least, &moved) || abs_of(moved) > kFarOut) return {};
        product[monomial] += moved;
        std::vector<Expr> longer = monomial;
        longer.push_back(factor);  // factors come sorted
        product[longer] += coefficient;
      }
      term = std::move(product);
    }
    for (const auto& [monomial, coefficient] : term) {
      if (!checked_add(polynomial[monomial], coefficient, &polynomial[monomial])) return {};
    }
  }
  Range values{0, 0};
  for (const auto& [monomial, coefficient] : polynomial) {
    Range product{1, 1};
    for (const Expr factor : monomial) {
      const Range of_factor = range(factor);
      product = multiply(product, symbolic::add(of_factor, {-of_factor.lo, -of_factor.lo}));
    }
    values = symbolic::add(values, scale(product, coefficient));
  }
  return values;
}

Range Facts::range_of_form(const Form& form) {
  arena_.count_work(form.count);
  Range values{form.constant, form.constant};
  std::array<Expr, Form::kMost> factors;
  std::array<Int, Form::kMost> coefficients;
  for (uint32_t i = 0; i < form.count; ++i) {
    factors[i] = form.terms[i].factor;
    coefficients[i] = form.terms[i].coefficient;
    values = symbolic::add(values, scale(range(factors[i]), coefficients[i]));
  }
  Int factor;
  if (const Range* known = relation(factors.data(), coefficients.data(), form.count, &factor)) {
    values = intersect(values, symbolic::add(scale(*known, factor), {form.constant, form.constant}));
  }
  if (std::any_of(factors.begin(), factors.begin() + form.count, can_relax)) {
    std::vector<Term> terms(form.terms.begin(), form.terms.begin() + form.count);
    values = intersect(values, range(Builder(arena_).linear(terms, form.constant)));
  }
  return values;
}

// Whether form <= 0, looking for learned relations that add up to it.
bool Facts::at_most_0(const Form& form, int depth, int* budget) {
  if (range_of_form(form).hi <= 0) return true;
  if (depth == 0) return false;
  for (uint32_t t = 0; t < form.count; ++t) {
    const Term& term = form.terms[t];
    const auto found = by_factor_.find(term.factor);
    if (found == by_factor_.end()) continue;
    const std::vector<Expr>& keys = found->second;
    for (size_t back = 0; back < keys.size() && back < kRelationsTried; ++back) {
      if (--*budget < 0) return false;
      const Expr key = keys[keys.size() - 1 - back];
      if (key->count > kSearchedTerms) continue;
      Int in_key = 0;
      for (uint32_t i = 0; i < key->count; ++i) {
        if (key->arg(i) == term.factor) in_key = key->coefficients()[i];
      }
      if (in_key == 0 || term.coefficient % in_key != 0) continue;
      const Int times = term.coefficient / in_key;
      // form = (form - times * key) + times * key, and times * key <= most.
      const Range& limits = relations_.at(key);
      const Int limit = times > 0 ? limits.hi : limits.lo;
      if (limit >= kInfinity || limit <= -kInfinity) continue;
      Form rest;
      Int product;
      if (!checked_mul(limit, times, &product) || !checked_add(form.constant, product, &rest.constant)) continue;
      bool good = true;
      for (uint32_t i = 0, j = 0; (i < form.count || j < key->count) && good;) {
        Term merged;
        if (j == key->count || (i < form.count && form.terms[i].factor->id < key->arg(j)->id)) {
          merged = form.terms[i++];
        } else {
          Int minus;
          good &= checked_mul(key->coefficients()[j], -times, &minus);
          merged = {key->arg(j), minus};
          if (i < form.count && form.terms[i].factor == merged.factor) {
            good &= checked_add(merged.coefficient, form.terms[i++].coefficient, &merged.coefficient);
          }
          ++j;
        }
        if (merged.coefficient == 0) continue;
        good &= rest.count < Form::kMost;
        if (good) rest.terms[rest.count++] = merged;
      }
      if (!good || rest.count > form.count + 1) continue;
      if (at_most_0(rest, depth - 1, budget)) return true;
    }
  }
  return false;
}

Facts::Congruence Facts::congruence(Expr integer, int depth) {
  constexpr Int kLargest = static_cast<Int>(1) << 60;
  if (integer->is_const()) return {0, integer->value};
  if (depth > 8) return {};
  if (integer->is(Kind::kSymbol)) return {of(integer).modulus, of(integer).residue};
  const auto small = [](Int value) { return abs_of(value) <= kLargest; };
  if (integer->is_sum()) {
    Congruence sum{0, integer->value};
    for (uint32_t i = 0; i < integer->count; ++i) {
      const Int coefficient = integer->coefficients()[i];
      const Congruence part = congruence(integer->arg(i), depth + 1);
      if (!small(coefficient) || !small(part.residue) || !small(part.modulus) || !small(sum.residue)) return {};
      sum.modulus = gcd_of(sum.modulus, part.modulus * coefficient);
      if (sum.modulus == 1) return {};
      sum.residue += part.residue * coefficient;
      if (sum.modulus != 0) sum.residue = symbolic::floor_mod(sum.residue, sum.modulus);
    }
    return sum;
  }
  if (integer->is(Kind::kProduct)) {
    Congruence product{0, 1};
    for (uint32_t i = 0; i < integer->count; ++i) {
      const Congruence part = congruence(integer->arg(i), depth + 1);
      if (!small(part.residue) || !small(part.modulus) || !small(product.residue) || !small(product.modulus)) return {};
      product.modulus = gcd_of(gcd_of(product.modulus * part.modulus, product.modulus * part.residue), part.modulus * product.residue);
      product.residue *= part.residue;
      if (product.modulus == 1) return {};
      if (product.modulus != 0) product.residue = symbolic::floor_mod(product.residue, product.modulus);
    }
    return product;
  }
  if (integer->is(Kind::kMod) && integer->arg(1)->is_const() && integer->arg(1)->value > 0) {
    const Congruence inner = congruence(integer->arg(0), depth + 1);
    const Int common = gcd_of(inner.modulus, integer->arg(1)->value);
    if (inner.modulus > 0 && common > 1) return {common, symbolic::floor_mod(inner.residue, common)};
  }
  if (integer->is(Kind::kFloorDiv) && integer->arg(1)->is_const() && integer->arg(1)->value > 0) {
    const Int divisor = integer->arg(1)->value;
    const Congruence inner = congruence(integer->arg(0), depth + 1);
    if (inner.modulus > 0 && inner.modulus % divisor == 0) return {inner.modulus / divisor, symbolic::floor_div(inner.residue, divisor)};
  }
  return {};
}

std::optional<Int> Facts::residue(Expr integer, Int modulus) {
  arena_.count_work(1);
  const Congruence known = congruence(integer, 0);
  if (known.modulus == 0) return symbolic::floor_mod(known.residue, modulus);
  if (known.modulus % modulus == 0) return symbolic::floor_mod(known.residue, modulus);
  // Learned of the modulus as a whole.
  const Expr args[] = {integer, arena_.constant(modulus)};
  const Expr node = arena_.find(Kind::kMod, Type::kInt, args, nullptr, 2, 0);
  const Range* values = node == nullptr ? nullptr : known_range(node);
  if (values != nullptr && values->single()) return values->lo;
  return std::nullopt;
}

bool Facts::divides(Expr dividend, Expr divisor) {
  if (divisor->is_const()) return divisor->value != 0 && residue(dividend, abs_of(divisor->value)) == Int{0};
  const Expr args[] = {dividend, divisor};
  const Expr node = arena_.find(Kind::kMod, Type::kInt, args, nullptr, 2, 0);
  const Range* values = node == nullptr ? nullptr : known_range(node);
  return values != nullptr && values->single() && values->lo == 0;
}

std::optional<bool> Facts::settled(Expr comparison) { return decide(comparison, 0); }

std::optional<bool> Facts::prove(Expr condition) { return decide(simplify(condition), 1); }

std::optional<bool> Facts::decide(Expr condition, int effort) {
  arena_.count_work(1);
  if (condition->is_truth()) return condition->value != 0;
  const auto known = known_.find(condition);
  if (known != known_.end()) return known->second;
  const int depth = effort > 0 ? kSearchDepth : 2;
  const int limit = effort > 0 ? kSearchBudget : kQuickBudget;
  // sign * integer + more <= 0, by adding relations up.
  const auto at_most = [&](Expr integer, Int sign, Int more) {
    const LinearView view(integer);
    if (view.count() > kSearchedTerms || by_factor_.empty()) return false;
    // Facts hold at the hints: what does not hold there can't be proven.
    if (integer->hint.known() && abs_of(integer->hint.integer) < kInfinity && integer->hint.integer * sign + more > 0) return false;
    Form form;
    for (; form.count < view.count(); ++form.count) {
      form.terms[form.count] = {view.factor(form.count), view.coefficient(form.count) * sign};
    }
    form.constant = view.constant() * sign + more;
    int budget = limit;
    return at_most_0(form, depth, &budget);
  };
  switch (condition->kind) {
    case Kind::kLe0: {
      const Expr difference = condition->arg(0);
      const Range values = range(difference);
      if (values.hi <= 0) return true;
      if (values.lo > 0) return false;
      if (at_most(difference, 1, 0)) return true;
      if (at_most(difference, -1, 1)) return false;  // -difference + 1 <= 0
      return std::nullopt;
    }
    case Kind::kEq0:
    case Kind::kNe0: {
      const bool equal = condition->is(Kind::kEq0);
      const Expr difference = condition->arg(0);
      const Range values = range(difference);
      if (!values.contains(0)) return !equal;
      if (values.single()) return equal;
      const Congruence congruent = congruence(difference, 0);
      if (congruent.modulus > 1 && symbolic::floor_mod(congruent.residue, congruent.modulus) != 0) return !equal;
      if (at_most(difference, 1, 1) || at_most(difference, -1, 1)) return !equal;
      if (effort > 0 && at_most(difference, 1, 0) && at_most(difference, -1, 0)) return equal;
      return std::nullopt;
    }
    case Kind::kAnd:
    case Kind::kOr: {
      const bool deciding = condition->is(Kind::kOr);
      bool all = depth_ < kDeepest;
      ++depth_;
      std::optional<bool> answer;
      for (uint32_t i = 0; i < condition->count && depth_ <= kDeepest && !answer; ++i) {
        const std::optional<bool> part = decide(condition->arg(i), effort);
        if (part == deciding) answer = deciding;
        all &= part.has_value();
      }
      --depth_;
      if (all && !answer) answer = !deciding;
      return answer;
    }
    case Kind::kNot: {
      const std::optional<bool> inner = decide(condition->arg(0), effort);
      if (inner) return !*inner;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace pellucid::symbolic
