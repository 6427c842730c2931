// Writing expressions with the precedence of Python's operators. Comparisons are written without negative signs where that can be:
// s0 - s1 + 1 <= 0 is "s0 < s1".
#include "symbolic/print.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "symbolic/arena.h"

namespace pellucid::symbolic {

namespace {

enum Precedence {
  kLowest,
  kTernary,
  kOrLevel,
  kAndLevel,
  kNotLevel,
  kCompare,
  kBitOrLevel,
  kBitXorLevel,
  kBitAndLevel,
  kShift,
  kSumLevel,
  kTermLevel,
  kUnary,
  kPower,
  kAtom
};

constexpr int kDeepest = 400;  // further down an expression prints as "..."

size_t degree(Expr term) { return term->is(Kind::kProduct) ? term->count : 1; }

// The order of terms, factors and arguments in text: by structure, not by id.
int compare(Expr a, Expr b, int depth) {
  if (a == b) return 0;
  if (degree(a) != degree(b)) return degree(a) > degree(b) ? -1 : 1;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->count != b->count) return a->count < b->count ? -1 : 1;
  if (depth < kDeepest) {
    for (uint32_t i = 0; i < a->count; ++i) {
      if (const int order = compare(a->arg(i), b->arg(i), depth + 1)) return order;
    }
  }
  if (a->is_sum()) {
    for (uint32_t i = 0; i < a->count; ++i) {
      if (a->coefficients()[i] != b->coefficients()[i]) return a->coefficients()[i] < b->coefficients()[i] ? -1 : 1;
    }
  }
  if (a->value != b->value) return a->value < b->value ? -1 : 1;
  return a->id < b->id ? -1 : 1;
}

template <class T, class Get>
void sort_by_structure(std::vector<T>& items, Get get) {
  std::sort(items.begin(), items.end(), [&](const T& a, const T& b) { return compare(get(a), get(b), 0) < 0; });
}

class Printer {
 public:
  explicit Printer(const SymbolText& symbol) : symbol_(symbol) {}

  std::string text(Expr expr, int outer) {
    if (depth_ > kDeepest) return "...";
    ++depth_;
    int own = kAtom;
    std::string result = write(expr, &own);
    --depth_;
    return own < outer ? "(" + result + ")" : result;
  }

 private:
  // The arguments as they are written: where the order does not matter, by structure.
  static std::pair<Expr, Expr> sides(Expr expr) {
    switch (expr->kind) {
      case Kind::kBitAnd:
      case Kind::kBitOr:
      case Kind::kBitXor:
      case Kind::kFloatAdd:
      case Kind::kFloatMul:
      case Kind::kFloatEq:
        if (compare(expr->arg(1), expr->arg(0), 0) < 0) return {expr->arg(1), expr->arg(0)};
        [[fallthrough]];
      default:
        return {expr->arg(0), expr->arg(1)};
    }
  }

  std::string binary(Expr expr, const char* op, int level, int* own) {
    *own = level;
    const auto [left, right] = sides(expr);
    return text(left, level) + " " + op + " " + text(right, level + 1);
  }

  std::string tight(Expr expr, const char* op, int* own) {  // as sums are written: s0//2
    *own = kTermLevel;
    const auto [left, right] = sides(expr);
    return text(left, kTermLevel) + op + text(right, kTermLevel + 1);
  }

  std::string call(Expr expr, bool sorted) {
    std::vector<Expr> args(expr->args(), expr->args() + expr->count);
    if (sorted) sort_by_structure(args, [](Expr arg) { return arg; });
    std::string result = std::string(kind_text(expr->kind)) + "(";
    for (size_t i = 0; i < args.size(); ++i) result += (i == 0 ? "" : ", ") + text(args[i], kTernary);
    return result + ")";
  }

  std::string joined(Expr expr, const char* op, int level, int* own) {
    *own = level;
    std::vector<Expr> args(expr->args(), expr->args() + expr->count);
    sort_by_structure(args, [](Expr arg) { return arg; });
    std::string result;
    for (size_t i = 0; i < args.size(); ++i) result += (i == 0 ? "" : " " + std::string(op) + " ") + text(args[i], level + 1);
    return result;
  }

  // Its first factor may be a division, which is done first, if nothing is in front of it.
  std::string product(Expr expr, int first) {
    std::vector<Expr> factors(expr->args(), expr->args() + expr->count);
    sort_by_structure(factors, [](Expr factor) { return factor; });
    std::string result;
    for (size_t i = 0; i < factors.size();) {
      size_t j = i;
      while (j < factors.size() && factors[j] == factors[i]) ++j;
      if (i != 0) result += "*";
      if (j - i == 1) {
        result += text(factors[i], i == 0 ? first : kUnary);
      } else {
        result += text(factors[i], kAtom) + "**" + std::to_string(j - i);
      }
      i = j;
    }
    return result;
  }

  std::string sum(std::vector<Term> terms, Int constant, int* own) {
    sort_by_structure(terms, [](const Term& term) { return term.factor; });
    std::string result;
    for (const Term& term : terms) {
      const Int size = abs_of(term.coefficient);
      const bool negative = term.coefficient < 0;
      if (result.empty()) {
        result += negative ? "-" : "";
      } else {
        result += negative ? " - " : " + ";
      }
      if (size == 1) {
        result += text(term.factor, negative && terms.size() == 1 && constant == 0 ? kUnary : kTermLevel + (negative ? 1 : 0));
      } else {
        // 2*(s0//3), not 2*s0//3.
        result += to_text(size) + "*" + (term.factor->is(Kind::kProduct) ? product(term.factor, kUnary) : text(term.factor, kUnary));
      }
    }
    if (constant != 0 || result.empty()) {
      if (result.empty()) {
        result = to_text(constant);
      } else {
        result += (constant < 0 ? " - " : " + ") + to_text(abs_of(constant));
      }
    }
    *own = kSumLevel;
    if (terms.size() == 1 && constant == 0) *own = terms[0].coefficient > 0 ? kTermLevel : kSumLevel;
    return result;
  }

  std::string relation(Expr expr, int* own) {
    *own = kCompare;
    const Expr difference = expr->arg(0);
    std::vector<Term> left;
    std::vector<Term> right;
    Int constant = 0;
    if (difference->is_sum()) {
      constant = difference->value;
      for (uint32_t i = 0; i < difference->count; ++i) {
        const Int coefficient = difference->coefficients()[i];
        (coefficient > 0 ? left : right).push_back({difference->arg(i), abs_of(coefficient)});
      }
    } else {
      left.push_back({difference, 1});
    }
    int level = 0;
    const auto side = [&](const std::vector<Term>& terms, Int number) { return sum(terms, number, &level); };
    if (!expr->is(Kind::kLe0)) {
      const std::string op = expr->is(Kind::kEq0) ? " == " : " != ";
      if (left.empty()) return side(right, 0) + op + to_text(constant);
      if (right.empty()) return side(left, 0) + op + to_text(-constant);
      return side(left, constant > 0 ? constant : 0) + op + side(right, constant < 0 ? -constant : 0);
    }
    // left + constant <= right, strict or not: whichever has the smaller number in it.
    if (left.empty()) {
      const bool strict = abs_of(constant - 1) < abs_of(constant);
      return side(right, 0) + (strict ? " > " + to_text(constant - 1) : " >= " + to_text(constant));
    }
    if (right.empty()) {
      const bool strict = abs_of(1 - constant) < abs_of(constant);
      return side(left, 0) + (strict ? " < " + to_text(1 - constant) : " <= " + to_text(-constant));
    }
    if (constant > 0) return side(left, constant - 1) + " < " + side(right, 0);
    return side(left, 0) + " <= " + side(right, -constant);
  }

  std::string write(Expr expr, int* own) {
    switch (expr->kind) {
      case Kind::kConst:
        if (expr->value < 0) *own = kUnary;
        return to_text(expr->value);
      case Kind::kTruth:
        return expr->value != 0 ? "True" : "False";
      case Kind::kReal:
        if (std::signbit(expr->real())) *own = kUnary;
        if (!(expr->real() - expr->real() == 0)) return "float('" + to_text(expr->real()) + "')";
        return to_text(expr->real());
      case Kind::kSymbol:
        return symbol_(expr);
      case Kind::kSum: {
        std::vector<Term> terms;
        for (uint32_t i = 0; i < expr->count; ++i) terms.push_back({expr->arg(i), expr->coefficients()[i]});
        return sum(std::move(terms), expr->value, own);
      }
      case Kind::kProduct:
        *own = kTermLevel;
        return product(expr, kTermLevel);
      case Kind::kMod:
      case Kind::kFloatMod:
        return binary(expr, "%", kTermLevel, own);
      case Kind::kFloorDiv:
      case Kind::kIntTrueDiv:
      case Kind::kFloatDiv:
      case Kind::kFloatFloorDiv:
      case Kind::kFloatMul:
        return tight(expr, kind_text(expr->kind), own);
      case Kind::kPow:
      case Kind::kFloatPow:
        *own = kPower;
        return text(expr->arg(0), kAtom) + "**" + text(expr->arg(1), kUnary);
      case Kind::kShiftLeft:
      case Kind::kShiftRight:
        return binary(expr, kind_text(expr->kind), kShift, own);
      case Kind::kBitAnd:
        return binary(expr, "&", kBitAndLevel, own);
      case Kind::kBitOr:
        return binary(expr, "|", kBitOrLevel, own);
      case Kind::kBitXor:
        return binary(expr, "^", kBitXorLevel, own);
      case Kind::kFloatAdd:
      case Kind::kFloatSub:
        return binary(expr, kind_text(expr->kind), kSumLevel, own);
      case Kind::kWhere:
        *own = kTernary;
        return text(expr->arg(1), kTernary + 1) + " if " + text(expr->arg(0), kTernary + 1) + " else " + text(expr->arg(2), kTernary);
      case Kind::kEq0:
      case Kind::kNe0:
      case Kind::kLe0:
        return relation(expr, own);
      case Kind::kFloatEq:
      case Kind::kFloatLt:
      case Kind::kFloatLe: {
        *own = kCompare;
        const auto [left, right] = sides(expr);
        return text(left, kCompare + 1) + " " + kind_text(expr->kind) + " " + text(right, kCompare + 1);
      }
      case Kind::kAnd:
        return joined(expr, "and", kAndLevel, own);
      case Kind::kOr:
        return joined(expr, "or", kOrLevel, own);
      case Kind::kNot:
        *own = kNotLevel;
        return "not " + text(expr->arg(0), kNotLevel);
      case Kind::kFloatNeg:
        *own = kUnary;
        return "-" + text(expr->arg(0), kUnary);
      case Kind::kRoundDigits:
        return "round(" + text(expr->arg(0), kTernary) + ", " + std::to_string(expr->digits - 128) + ")";
      case Kind::kMin:
      case Kind::kMax:
        return call(expr, true);
      default:
        return call(expr, false);
    }
  }

  const SymbolText& symbol_;
  int depth_ = 0;
};

}  // namespace

std::string to_text(Expr expr, const SymbolText& symbol) { return Printer(symbol).text(expr, kLowest); }

std::string to_text(Expr expr) {
  return to_text(expr, [](Expr symbol) { return symbol->arena->symbol_name(symbol); });
}

}  // namespace pellucid::symbolic
