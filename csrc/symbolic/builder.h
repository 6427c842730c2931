// Builder: makes expressions in their canonical form. Every rule holds for all int64 values of the symbols within what is known of
// them: without an oracle, the ranges that they were born with; with one, the facts it knows. What two canonical forms share (order,
// signs, common divisors, which terms leave a quotient) is decided here and nowhere else.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "symbolic/arena.h"
#include "symbolic/error.h"

namespace pellucid::symbolic {

// What is known beyond births.
class Oracle {
 public:
  virtual Range range(Expr integer) = 0;
  // r with integer = r (mod modulus) for a constant modulus > 0, where that is known.
  virtual std::optional<Int> residue(Expr integer, Int modulus) = 0;
  // Whether dividend % divisor == 0 was learned, for any divisor.
  virtual bool divides(Expr dividend, Expr divisor) = 0;
  // A comparison that is known to be true, or false.
  virtual std::optional<bool> settled(Expr comparison) = 0;

 protected:
  ~Oracle() = default;
};

class Builder {
 public:
  explicit Builder(Arena& arena, Oracle* oracle = nullptr) : arena_(arena), oracle_(oracle) {}
  Arena& arena() const { return arena_; }

  Expr constant(Int value) const { return arena_.constant(value); }
  Expr truth(bool value) const { return arena_.truth(value); }
  Expr real(double value) const { return arena_.real(value); }

  // Integers. Division by a constant 0 and negative constant shifts and exponents are errors without an oracle.
  Expr add(Expr a, Expr b);
  Expr sub(Expr a, Expr b);
  Expr neg(Expr a);
  Expr mul(Expr a, Expr b);
  Expr scale(Expr a, Int factor);
  Expr sum(std::span<const Expr> terms);  // in the number of terms, where adding one by one is quadratic
  Expr floor_div(Expr a, Expr b);
  Expr mod(Expr a, Expr b);
  Expr ceil_div(Expr a, Expr b);
  Expr pow(Expr base, Expr exponent);  // the exponent is natural
  Expr min(Expr a, Expr b);
  Expr max(Expr a, Expr b);
  Expr abs(Expr a);
  Expr shift_left(Expr a, Expr b);
  Expr shift_right(Expr a, Expr b);
  Expr bit_and(Expr a, Expr b);
  Expr bit_or(Expr a, Expr b);
  Expr bit_xor(Expr a, Expr b);
  Expr to_int(Kind rounding, Expr real);  // kFloor, kCeil, kTrunc, kRound

  // Floats: IEEE doubles, nothing is rearranged.
  Expr to_float(Expr a);  // ints, and floats as they are
  Expr int_true_div(Expr a, Expr b);
  Expr float_binary(Kind kind, Expr a, Expr b);
  Expr float_unary(Kind kind, Expr a);
  Expr round_digits(Expr a, int digits);

  // Any type.
  Expr where(Expr condition, Expr a, Expr b);

  // Comparisons; eq and ne of booleans too. Mixed numbers are compared as Python does where that can be said in integers.
  Expr eq(Expr a, Expr b);
  Expr ne(Expr a, Expr b) { return logical_not(eq(a, b)); }
  Expr lt(Expr a, Expr b);
  Expr le(Expr a, Expr b);
  Expr gt(Expr a, Expr b) { return lt(b, a); }
  Expr ge(Expr a, Expr b) { return le(b, a); }
  Expr eq0(Expr difference);
  Expr le0(Expr difference);

  Expr logical_and(Expr a, Expr b) { return connect(Kind::kAnd, a, b); }
  Expr logical_or(Expr a, Expr b) { return connect(Kind::kOr, a, b); }
  Expr logical_not(Expr a);

  // sum(terms) + constant, terms in any order and repeated.
  Expr linear(std::vector<Term>& terms, Int constant);
  // a / d where the division leaves no rest for any value of the symbols, else null.
  Expr exact_divide(Expr a, Expr d);
  // The expression anew with other arguments, by the rules of its kind.
  Expr rebuild(Expr expr, const Expr* args);

  Range range(Expr integer) const { return oracle_ != nullptr ? oracle_->range(integer) : integer->range; }

 private:
  Expr recall(Op op, Expr a, Expr b) const { return oracle_ == nullptr ? arena_.recall(op, a, b) : nullptr; }
  Expr remember(Op op, Expr a, Expr b, Expr result) const {
    if (oracle_ == nullptr) arena_.remember(op, a, b, result);
    return result;
  }
  Expr node(Kind kind, Type type, std::initializer_list<Expr> args) const {
    return arena_.intern(kind, type, args.begin(), nullptr, static_cast<uint32_t>(args.size()), 0);
  }

  Expr combine(Expr a, Int factor_a, Expr b, Int factor_b);
  Expr make_sum(const std::vector<Term>& terms, Int constant);
  bool rejoin(std::vector<Term>& terms, Int* constant);
  Expr make_mul(Expr a, Expr b);
  Expr monomial(Expr a, Expr b);
  Expr make_floor_div(Expr a, Expr b);
  Expr divide_by_constant(Expr a, Int divisor);
  Expr make_mod(Expr a, Expr b);
  Expr mod_by_constant(Expr a, Int modulus);
  bool cancel(Expr* a, Expr* b, Expr* common);
  Expr divide_monomial(Expr monomial_, Expr d);
  Expr extremum(Kind kind, Expr a, Expr b);
  bool at_most(Expr a, Expr b);
  Expr make_pow(Expr base, Expr exponent);
  Expr make_bits(Kind kind, Expr a, Expr b);
  Expr connect(Kind kind, Expr a, Expr b);
  Expr make_eq(Expr a, Expr b);
  Expr make_compare(bool strict, Expr a, Expr b);
  static Expr comparable(Expr a, Expr number);
  Expr compare_with_real(bool strict, Expr a, Expr b);
  Expr strip_factors(Expr difference, bool equality);
  [[noreturn]] void overflow(Expr a, Expr b) const;

  Arena& arena_;
  Oracle* oracle_;
  int depth_ = 0;
};

// An integer as a linear form: a sum is what it says, a constant has no terms, anything else is one term.
class LinearView {
 public:
  explicit LinearView(Expr expr) {
    if (expr->is_sum()) {
      factors_ = expr->args();
      coefficients_ = expr->coefficients();
      count_ = expr->count;
      constant_ = expr->value;
    } else if (expr->is_const()) {
      constant_ = expr->value;
    } else {
      self_ = expr;
      factors_ = &self_;
      coefficients_ = &one_;
      count_ = 1;
    }
  }
  LinearView(const LinearView&) = delete;
  LinearView& operator=(const LinearView&) = delete;
  uint32_t count() const { return count_; }
  Expr factor(uint32_t i) const { return factors_[i]; }
  Int coefficient(uint32_t i) const { return coefficients_[i]; }
  Int constant() const { return constant_; }
  std::vector<Term> terms() const {
    std::vector<Term> result;
    result.reserve(count_);
    for (uint32_t i = 0; i < count_; ++i) result.push_back({factors_[i], coefficients_[i]});
    return result;
  }
  Int divisor() const {  // of all coefficients
    Int result = 0;
    for (uint32_t i = 0; i < count_ && result != 1; ++i) result = gcd_of(result, coefficients_[i]);
    return result;
  }

 private:
  Expr self_ = nullptr;
  const Int one_ = 1;
  const Expr* factors_ = nullptr;
  const Int* coefficients_ = nullptr;
  uint32_t count_ = 0;
  Int constant_ = 0;
};

// The factors of a term, sorted by id.
class Factors {
 public:
  explicit Factors(Expr term) : self_(term), product_(term->is(Kind::kProduct)) {}
  const Expr* begin() const { return product_ ? self_->args() : &self_; }
  const Expr* end() const { return begin() + size(); }
  size_t size() const { return product_ ? self_->count : 1; }
  Expr operator[](size_t i) const { return begin()[i]; }
  bool has(Expr factor) const {
    for (const Expr other : *this) {
      if (other == factor) return true;
    }
    return false;
  }

 private:
  Expr self_;
  bool product_;
};

inline Factors factors_of(Expr term) { return Factors(term); }

}  // namespace pellucid::symbolic
