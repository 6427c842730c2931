// What each kind of expression computes. Integers are Python's: // and % round down, shifts and bit operations are those of two's
// complement without end.
#include "symbolic/evaluate.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#include "base/check.h"

namespace pellucid::symbolic {

namespace {

Value integer_or_undefined(bool good, Int value) { return good ? Value::of(value) : Value::undefined(); }

Value power(Int base, Int exponent) {
  if (exponent < 0) return Value::undefined();
  Int result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && !checked_mul(result, base, &result)) return Value::undefined();
    exponent >>= 1;
    if (exponent > 0 && !checked_mul(base, base, &base)) return Value::undefined();
  }
  return Value::of(result);
}

Value shift_left(Int value, Int count) {
  if (count < 0) return Value::undefined();
  if (value == 0) return Value::of(0);
  if (count >= 127) return Value::undefined();
  Int result = 0;
  return integer_or_undefined(checked_mul(value, static_cast<Int>(1) << static_cast<int>(count), &result), result);
}

Value shift_right(Int value, Int count) {
  if (count < 0) return Value::undefined();
  if (count >= 127) return Value::of(value < 0 ? -1 : 0);
  return Value::of(floor_div(value, static_cast<Int>(1) << static_cast<int>(count)));
}

Value to_integer(double value) {
  if (!(std::fabs(value) < 0x1p126)) return Value::undefined();
  return Value::of(static_cast<Int>(value));
}

double float_mod(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return rest == 0 ? std::copysign(0.0, b) : rest;
}

Value float_power(double base, double exponent) {
  if (base == 0 && exponent < 0) return Value::undefined();  // ZeroDivisionError
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && exponent != std::floor(exponent)) return Value::undefined();  // complex
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) return Value::undefined();  // OverflowError
  return Value::of_real(result);
}

Value math(Kind kind, double x) {
  double result = 0;
  switch (kind) {
    case Kind::kSqrt:
      result = std::sqrt(x);
      break;
    case Kind::kCos:
      result = std::cos(x);
      break;
    case Kind::kCosh:
      result = std::cosh(x);
      break;
    case Kind::kSin:
      result = std::sin(x);
      break;
    case Kind::kSinh:
      result = std::sinh(x);
      break;
    case Kind::kTan:
      result = std::tan(x);
      break;
    case Kind::kTanh:
      result = std::tanh(x);
      break;
    case Kind::kAsin:
      result = std::asin(x);
      break;
    case Kind::kAcos:
      result = std::acos(x);
      break;
    case Kind::kAtan:
      result = std::atan(x);
      break;
    default:
      if (x == 0) return Value::undefined();
      result = std::log2(x);
  }
  if (std::isnan(result) && !std::isnan(x)) return Value::undefined();  // ValueError: math domain error
  if (std::isinf(result) && !std::isinf(x)) return Value::undefined();  // OverflowError
  return Value::of_real(result);
}

}  // namespace

Value float_floor_div(double a, double b) {
  if (b == 0) return Value::undefined();
  // As CPython does it: from the remainder, so that floor(a / b) is not off by one where a / b rounds up.
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return Value::of_real(std::copysign(0.0, a / b));
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1;
  return Value::of_real(floored);
}

Value round_digits(double value, int digits) {
  if (!std::isfinite(value)) return Value::of_real(value);
  if (digits > 323) return Value::of_real(value);
  if (digits < -308) return Value::of_real(0.0 * value);
  if (digits >= 0) {
    char text[700];
    std::snprintf(text, sizeof text, "%.*f", digits, value);  // exact decimal digits, rounded half to even on the exact value
    return Value::of_real(std::strtod(text, nullptr));
  }
  // Whole digits to the left of the point: through the exact decimal expansion too.
  char text[400];
  std::snprintf(text, sizeof text, "%.0f", std::trunc(value));
  const double power_of_ten = std::strtod(("1e" + std::to_string(-digits)).c_str(), nullptr);
  const double quotient = value / power_of_ten;
  double rounded = std::round(quotient);
  if (std::fabs(quotient - rounded) == 0.5) rounded = 2.0 * std::round(quotient / 2.0);
  const double result = rounded * power_of_ten;
  return std::isinf(result) ? Value::undefined() : Value::of_real(result);
}

Value apply(Kind kind, Type type, const Value* args, uint32_t count, Int constant, int digits) {
  if (kind == Kind::kConst || kind == Kind::kTruth) return Value::of(constant);
  if (kind == Kind::kReal) return Value::of_real(std::bit_cast<double>(static_cast<int64_t>(constant)));
  if (kind == Kind::kWhere) {
    if (!args[0].known()) return args[0];
    return args[args[0].integer != 0 ? 1 : 2];
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (args[i].state == Value::State::kUnknown) return Value{};
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (args[i].state == Value::State::kUndefined) return Value::undefined();
  }
  const Int a = count > 0 ? args[0].integer : 0;
  const Int b = count > 1 ? args[1].integer : 0;
  const double x = count > 0 ? args[0].real : 0;
  const double y = count > 1 ? args[1].real : 0;
  switch (kind) {
    case Kind::kProduct: {
      Int product = a;
      for (uint32_t i = 1; i < count; ++i) {
        if (!checked_mul(product, args[i].integer, &product)) return Value::undefined();
      }
      return Value::of(product);
    }
    case Kind::kFloorDiv:
      return b == 0 ? Value::undefined() : Value::of(floor_div(a, b));
    case Kind::kMod:
      return b == 0 ? Value::undefined() : Value::of(floor_mod(a, b));
    case Kind::kPow:
      return power(a, b);
    case Kind::kMin:
    case Kind::kMax: {
      Int best = a;
      for (uint32_t i = 1; i < count; ++i) {
        if ((args[i].integer < best) == (kind == Kind::kMin)) best = args[i].integer;
      }
      return Value::of(best);
    }
    case Kind::kAbs:
      return Value::of(abs_of(a));
    case Kind::kShiftLeft:
      return shift_left(a, b);
    case Kind::kShiftRight:
      return shift_right(a, b);
    case Kind::kBitAnd:
      return Value::of(a & b);
    case Kind::kBitOr:
      return Value::of(a | b);
    case Kind::kBitXor:
      return Value::of(a ^ b);
    case Kind::kFloor:
      return to_integer(std::floor(x));
    case Kind::kCeil:
      return to_integer(std::ceil(x));
    case Kind::kTrunc:
      return to_integer(std::trunc(x));
    case Kind::kRound: {
      double rounded = std::round(x);
      if (std::fabs(x - rounded) == 0.5) rounded = 2.0 * std::round(x / 2.0);
      return to_integer(rounded);
    }
    case Kind::kEq0:
      return Value::of(a == 0);
    case Kind::kNe0:
      return Value::of(a != 0);
    case Kind::kLe0:
      return Value::of(a <= 0);
    case Kind::kAnd:
    case Kind::kOr: {
      bool result = kind == Kind::kAnd;
      for (uint32_t i = 0; i < count; ++i) result = kind == Kind::kAnd ? result && args[i].integer != 0 : result || args[i].integer != 0;
      return Value::of(result);
    }
    case Kind::kNot:
      return Value::of(a == 0);
    case Kind::kFloatEq:
      return Value::of(x == y);
    case Kind::kFloatLt:
      return Value::of(x < y);
    case Kind::kFloatLe:
      return Value::of(x <= y);
    case Kind::kToFloat:
      return Value::of_real(static_cast<double>(a));
    case Kind::kIntTrueDiv:
      return b == 0 ? Value::undefined() : Value::of_real(true_quotient(a, b));
    case Kind::kFloatAdd:
      return Value::of_real(x + y);
    case Kind::kFloatSub:
      return Value::of_real(x - y);
    case Kind::kFloatMul:
      return Value::of_real(x * y);
    case Kind::kFloatDiv:
      return y == 0 ? Value::undefined() : Value::of_real(x / y);
    case Kind::kFloatFloorDiv:
      return float_floor_div(x, y);
    case Kind::kFloatMod:
      return y == 0 ? Value::undefined() : Value::of_real(float_mod(x, y));
    case Kind::kFloatPow:
      return float_power(x, y);
    case Kind::kFloatMin:
      return Value::of_real(y < x ? y : x);
    case Kind::kFloatMax:
      return Value::of_real(y > x ? y : x);
    case Kind::kFloatNeg:
      return Value::of_real(-x);
    case Kind::kFloatAbs:
      return Value::of_real(std::fabs(x));
    case Kind::kRoundDigits:
      return round_digits(x, digits);
    case Kind::kConst:
    case Kind::kTruth:
    case Kind::kReal:
    case Kind::kWhere:
    case Kind::kSymbol:
    case Kind::kSum:
      break;
    default:
      return math(kind, x);
  }
  CHECK(false) << kind_name(kind) << " of type " << static_cast<int>(type) << " is no operation";
  return {};
}

Value evaluate(Expr root, const std::function<Value(Expr)>& symbol) {
  // An explicit stack: expressions may be deeper than C recursion can go.
  std::unordered_map<Expr, Value> values;
  std::vector<Expr> pending{root};
  std::vector<Value> args;
  while (!pending.empty()) {
    const Expr expr = pending.back();
    if (values.count(expr) != 0) {
      pending.pop_back();
      continue;
    }
    const size_t before = pending.size();
    for (uint32_t i = 0; i < expr->count; ++i) {
      if (values.count(expr->arg(i)) == 0) pending.push_back(expr->arg(i));
    }
    if (pending.size() != before) continue;
    pending.pop_back();
    if (expr->is(Kind::kSymbol)) {
      values[expr] = symbol(expr);
      continue;
    }
    args.clear();
    for (uint32_t i = 0; i < expr->count; ++i) args.push_back(values[expr->arg(i)]);
    if (!expr->is_sum()) {
      values[expr] = apply(expr->kind, expr->type, args.data(), expr->count, expr->value, expr->digits - 128);
      continue;
    }
    Value sum = Value::of(expr->value);
    for (uint32_t i = 0; i < expr->count && sum.known(); ++i) {
      Int product;
      if (!args[i].known()) {
        sum = args[i];
      } else if (!checked_mul(args[i].integer, expr->coefficients()[i], &product) || !checked_add(sum.integer, product, &sum.integer)) {
        sum = Value::undefined();
      }
    }
    values[expr] = sum;
  }
  return values[root];
}

}  // namespace pellucid::symbolic
