// Facts: taking a new condition in. A relation narrows what is in it, an equality replaces a symbol, a modulus gives a congruence; what
// was known of a replaced symbol is learned anew of what it stands for.
#include <algorithm>

#include "symbolic/facts.h"

namespace pellucid::symbolic {

namespace {

constexpr int kDepth = 4;            // how far a bound is pushed into what it bounds
constexpr uint32_t kManyTerms = 16;  // longer sums narrow nothing
constexpr uint32_t kHeavy = 256;     // conditions of more nodes are not looked up by symbol

void symbols_in(Expr root, std::vector<Expr>* out) {
  std::vector<Expr> pending{root};
  while (!pending.empty()) {
    const Expr expr = pending.back();
    pending.pop_back();
    if (expr->is(Kind::kSymbol)) {
      if (std::find(out->begin(), out->end(), expr) == out->end()) out->push_back(expr);
      continue;
    }
    pending.insert(pending.end(), expr->args(), expr->args() + expr->count);
  }
}

bool mentions(Expr root, Expr symbol) {
  if ((root->symbols & symbol->symbols) == 0) return false;
  std::vector<Expr> found;
  symbols_in(root, &found);
  return std::find(found.begin(), found.end(), symbol) != found.end();
}

// x with a * x = 1 (mod m); a and m share no divisor.
Int inverse(Int a, Int m) {
  Int r0 = m, r1 = floor_mod(a, m), t0 = 0, t1 = 1;
  while (r1 != 0) {
    const Int q = r0 / r1;
    const Int r2 = r0 - q * r1, t2 = t0 - q * t1;
    r0 = r1, r1 = r2, t0 = t1, t1 = t2;
  }
  return floor_mod(t0, m);
}

}  // namespace

bool Facts::add(Expr condition) { return learn(simplify(condition)); }

bool Facts::bound(Expr integer, const Range& limits) {
  bool good = !limits.empty();
  if (limits.bounded_above()) good &= add(build_.le(integer, arena_.constant(limits.hi)));
  if (limits.bounded_below()) good &= add(build_.le(arena_.constant(limits.lo), integer));
  return good;
}

bool Facts::learn(Expr condition) {
  arena_.count_work(1);
  if (condition->is_truth()) return condition->value != 0;
  if (condition->is(Kind::kAnd)) {
    bool good = true;
    for (uint32_t i = 0; i < condition->count; ++i) good &= add(condition->arg(i));
    return good;
  }
  known_[condition] = true;
  known_[build_.logical_not(condition)] = false;
  index(condition);
  touch(condition->symbols);
  switch (condition->kind) {
    case Kind::kLe0:
      return learn_at_most_0(condition->arg(0), kDepth);
    case Kind::kEq0:
      return learn_equal_0(condition->arg(0));
    case Kind::kNe0:
      learn_unequal_0(condition->arg(0));
      return true;
    default:
      return true;
  }
}

void Facts::index(Expr condition) {
  if (condition->weight > kHeavy) return;
  std::vector<Expr> symbols;
  symbols_in(condition, &symbols);
  for (const Expr symbol : symbols) of(symbol).facts.push_back(condition);
}

void Facts::relate(Expr key, const Range& limits) {
  const auto [place, fresh_key] = relations_.try_emplace(key, limits);
  if (!fresh_key) {
    place->second = intersect(place->second, limits);
  } else if (key->is_sum() && key->count <= kManyTerms) {
    for (uint32_t i = 0; i < key->count; ++i) by_factor_[key->arg(i)].push_back(key);
  }
  touch(key->symbols);
}

bool Facts::learn_at_most_0(Expr difference, int depth) {
  const LinearView view(difference);
  if (view.count() == 0) return view.constant() <= 0;
  const std::vector<Term> terms = view.terms();
  const Int constant = view.constant();
  if (terms.size() > 1) {
    const bool positive = terms[0].coefficient > 0;
    std::vector<Term> form = terms;
    Int divisor = 0;
    for (const Term& term : form) divisor = gcd_of(divisor, term.coefficient);
    for (Term& term : form) term.coefficient = (positive ? term.coefficient : -term.coefficient) / divisor;
    const Expr key = build_.linear(form, 0);
    // positive: divisor * key + constant <= 0; else -divisor * key + constant <= 0.
    if (key->is_sum() && key->value == 0) {
      relate(key, positive ? Range{-kInfinity, symbolic::floor_div(-constant, divisor)} : Range{ceil_div(constant, divisor), kInfinity});
    }
  }
  if (terms.size() > kManyTerms) return true;
  bool good = true;
  for (size_t i = 0; i < terms.size(); ++i) {
    Range rest{constant, constant};
    for (size_t j = 0; j < terms.size(); ++j) {
      if (j != i) rest = symbolic::add(rest, scale(range(terms[j].factor), terms[j].coefficient));
    }
    if (!rest.bounded_below()) continue;
    const Int most = -rest.lo;  // coefficient * factor <= most
    const Int coefficient = terms[i].coefficient;
    const Range limits =
        coefficient > 0 ? Range{-kInfinity, symbolic::floor_div(most, coefficient)} : Range{ceil_div(most, coefficient), kInfinity};
    good &= bound_atom(terms[i].factor, limits, depth - 1);
  }
  return good;
}

bool Facts::bound_atom(Expr atom, const Range& limits, int depth) {
  const Range before = range(atom);
  if (before.within(limits)) return true;
  if (atom->is(Kind::kSymbol)) return narrow(atom, limits, depth);
  const Range now = intersect(before, limits);
  relate(atom, now);
  if (now.empty()) return false;
  if (depth <= 0) return true;
  const auto push = [&](Expr inner, const Range& inner_limits) {
    bool good = true;
    if (inner_limits.bounded_above()) {
      good &= learn_at_most_0(build_.sub(inner, arena_.constant(inner_limits.hi)), depth - 1);
    }
    if (inner_limits.bounded_below()) {
      good &= learn_at_most_0(build_.sub(arena_.constant(inner_limits.lo), inner), depth - 1);
    }
    return good;
  };
  switch (atom->kind) {
    case Kind::kFloorDiv: {
      const Expr divisor = atom->arg(1);
      if (!divisor->is_const() || divisor->value <= 0 || divisor->value > kInt64Max) return true;
      Range inner;
      if (now.bounded_below() && abs_of(now.lo) <= kInt64Max) inner.lo = now.lo * divisor->value;
      if (now.bounded_above() && abs_of(now.hi) <= kInt64Max) inner.hi = now.hi * divisor->value + divisor->value - 1;
      return push(atom->arg(0), inner);
    }
    case Kind::kProduct: {
      // f * rest <= hi with rest >= lo > 0: f <= hi // lo (for f >= 0).
      bool good = true;
      for (uint32_t i = 0; i < atom->count && now.bounded_above(); ++i) {
        Range rest{1, 1};
        for (uint32_t j = 0; j < atom->count; ++j) {
          if (j != i) rest = multiply(rest, range(atom->arg(j)));
        }
        if (rest.lo > 0 && now.hi >= 0) good &= bound_atom(atom->arg(i), {-kInfinity, symbolic::floor_div(now.hi, rest.lo)}, depth - 1);
      }
      return good;
    }
    case Kind::kMin:
    case Kind::kMax: {
      bool good = true;
      const Range inner = atom->is(Kind::kMin) ? Range{now.lo, kInfinity} : Range{-kInfinity, now.hi};
      for (uint32_t i = 0; i < atom->count; ++i) good &= push(atom->arg(i), inner);
      return good;
    }
    case Kind::kAbs:
      return now.bounded_above() ? push(atom->arg(0), {-now.hi, now.hi}) : true;
    default:
      return true;
  }
}

bool Facts::narrow(Expr symbol, const Range& limits, int depth) {
  OfSymbol& facts = of(symbol);
  Range now = intersect(facts.range, limits);
  if (facts.modulus > 1) {  // to the nearest that is congruent
    if (now.bounded_below()) now.lo += symbolic::floor_mod(facts.residue - now.lo, facts.modulus);
    if (now.bounded_above()) now.hi -= symbolic::floor_mod(now.hi - facts.residue, facts.modulus);
  }
  if (now == facts.range) return true;
  facts.range = now;
  touch(symbol->symbols);
  if (now.empty()) return false;
  if (facts.replacement != nullptr) {
    const Expr by = simplify(facts.replacement);
    if (depth <= 0 || by->is_const()) return by->is_const() ? now.contains(by->value) : true;
    return bound(by, now);
  }
  if (now.single()) return replace(symbol, arena_.constant(now.lo));
  return true;
}

bool Facts::replace(Expr symbol, Expr by) {
  const Range before = of(symbol).range;
  const Int modulus = of(symbol).modulus;
  const Int residue = of(symbol).residue;
  of(symbol).replacement = by;
  replaced_.push_back(symbol);
  for (uint64_t bits = by->symbols; bits != 0; bits &= bits - 1) dependents_[static_cast<size_t>(__builtin_ctzll(bits))] |= symbol->symbols;
  touch(symbol->symbols);
  bool good = true;
  if (by->is_const()) {
    good = before.contains(by->value) && (modulus == 1 || symbolic::floor_mod(by->value, modulus) == residue);
    of(symbol).range = {by->value, by->value};
  } else {
    good &= bound(by, before);
    if (modulus > 1) good &= learn_residue(by, modulus, residue);
    if (by->is(Kind::kSymbol)) {
      if (of(symbol).size_like) set_size_like(by);
      if (of(by).size_like) of(symbol).size_like = true;
    }
  }
  // What was known of it is now known of what it stands for.
  const std::vector<Expr> facts = std::move(of(symbol).facts);
  of(symbol).facts.clear();
  for (const Expr fact : facts) {
    arena_.count_work(1);
    const Expr anew = simplify_anew(fact);
    if (anew != fact) good &= learn(anew);
  }
  return good;
}

bool Facts::learn_equal_0(Expr difference) {
  bool good = learn_at_most_0(difference, kDepth) && learn_at_most_0(build_.neg(difference), kDepth);
  const LinearView view(difference);
  if (view.count() == 1) {
    const Expr atom = view.factor(0);
    if (view.constant() % view.coefficient(0) != 0) return false;
    const Int value = -view.constant() / view.coefficient(0);
    if (atom->is(Kind::kSymbol)) return of(atom).replacement == nullptr ? replace(atom, arena_.constant(value)) : good;
    relate(atom, {value, value});
    if (atom->is(Kind::kMod) && atom->arg(1)->is_const() && atom->arg(1)->value > 0) {
      good &= learn_residue(atom->arg(0), atom->arg(1)->value, value);
    }
    return good;
  }
  // c * x + rest == 0: c * x is congruent to -constant modulo what divides the rest.
  for (uint32_t i = 0; i < view.count() && view.count() <= kManyTerms; ++i) {
    Int divisor = 0;
    for (uint32_t j = 0; j < view.count(); ++j) {
      if (j != i) divisor = gcd_of(divisor, view.coefficient(j));
    }
    if (divisor > 1) {
      std::vector<Term> one{{view.factor(i), view.coefficient(i)}};
      good &= learn_residue(build_.linear(one, 0), divisor, symbolic::floor_mod(-view.constant(), divisor));
    }
  }
  return eliminate(difference) && good;
}

// Solves for a symbol that is there once, with coefficient 1 or -1: one without a hint if there is any, the newest. What replaces an
// unbacked symbol must be known by the time it is: nothing newer; and a backed one is never replaced by what only the data knows.
bool Facts::eliminate(Expr difference) {
  const Expr now = simplify_anew(difference);  // itself it is 0 already
  if (now != difference) {
    if (now->is_const()) return now->value == 0;
    return learn(build_.eq0(now));
  }
  const LinearView view(now);
  if (view.count() > kManyTerms) return true;
  std::vector<Expr> all;
  symbols_in(now, &all);
  Expr newest_unbacked = nullptr;
  for (const Expr symbol : all) {
    if (symbol->unbacked && (newest_unbacked == nullptr || symbol->value > newest_unbacked->value)) newest_unbacked = symbol;
  }
  Expr chosen = nullptr;
  uint32_t place = 0;
  for (uint32_t i = 0; i < view.count(); ++i) {
    const Expr factor = view.factor(i);
    if (!factor->is(Kind::kSymbol) || abs_of(view.coefficient(i)) != 1) continue;
    if (newest_unbacked != nullptr && factor != newest_unbacked) continue;
    bool once = true;
    for (uint32_t j = 0; j < view.count() && once; ++j) once = j == i || !mentions(view.factor(j), factor);
    if (once && (chosen == nullptr || factor->value > chosen->value)) {
      chosen = factor;
      place = i;
    }
  }
  if (chosen == nullptr) return true;
  std::vector<Term> rest = view.terms();
  const Int sign = rest[place].coefficient;
  rest.erase(rest.begin() + place);
  for (Term& term : rest) term.coefficient *= -sign;
  return replace(chosen, build_.linear(rest, view.constant() * -sign));
}

void Facts::learn_unequal_0(Expr difference) {
  const LinearView view(difference);
  if (view.count() != 1 || view.constant() % view.coefficient(0) != 0) return;
  const Int value = -view.constant() / view.coefficient(0);
  const Range values = range(view.factor(0));
  if (values.lo == value) bound_atom(view.factor(0), {value + 1, kInfinity}, kDepth);
  if (values.hi == value) bound_atom(view.factor(0), {-kInfinity, value - 1}, kDepth);
}

bool Facts::learn_residue(Expr integer, Int modulus, Int residue) {
  constexpr Int kLargest = static_cast<Int>(1) << 60;
  const LinearView view(integer);
  residue = symbolic::floor_mod(residue - view.constant(), modulus);
  if (view.count() == 0) return residue == 0;
  if (view.count() != 1) {
    const Expr node = build_.mod(integer, arena_.constant(modulus));
    if (node->is(Kind::kMod))
      relate(node, {symbolic::floor_mod(residue + view.constant(), modulus), symbolic::floor_mod(residue + view.constant(), modulus)});
    return true;
  }
  const Int divisor = gcd_of(view.coefficient(0), modulus);
  if (residue % divisor != 0) return false;
  modulus /= divisor;
  if (modulus == 1) return true;
  if (modulus > kLargest) return true;
  residue = symbolic::floor_mod(residue / divisor * inverse(view.coefficient(0) / divisor, modulus), modulus);
  const Expr atom = view.factor(0);
  if (!atom->is(Kind::kSymbol)) {
    const Expr node = build_.mod(atom, arena_.constant(modulus));
    if (node->is(Kind::kMod)) relate(node, {residue, residue});
    return true;
  }
  OfSymbol& facts = of(atom);
  // Both congruences at once (the Chinese remainder theorem).
  const Int common = gcd_of(facts.modulus, modulus);
  if (symbolic::floor_mod(facts.residue - residue, common) != 0) return false;
  const Int joint = facts.modulus / common * modulus;
  if (joint > kLargest) return true;
  if (joint == facts.modulus) return true;
  const Int step = modulus / common;
  const Int times = step == 1 ? 0 : symbolic::floor_mod((residue - facts.residue) / common * inverse(facts.modulus / common, step), step);
  facts.residue = symbolic::floor_mod(facts.residue + facts.modulus * times, joint);
  facts.modulus = joint;
  touch(atom->symbols);
  const Expr by = facts.replacement;
  bool good = narrow(atom, {}, kDepth);
  if (by != nullptr) good &= learn_residue(simplify(by), of(atom).modulus, of(atom).residue);
  return good;
}

}  // namespace pellucid::symbolic
