// Texts of numbers, and the correctly rounded quotient of two integers. Knows nothing of expressions.
#include "symbolic/number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace pellucid::symbolic {

std::string to_text(Int value) {
  if (value >= kInt64Min && value <= kInt64Max) return std::to_string(static_cast<int64_t>(value));
  const bool negative = value < 0;
  UnsignedInt rest = negative ? -static_cast<UnsignedInt>(value) : static_cast<UnsignedInt>(value);
  std::string digits;
  for (; rest != 0; rest /= 10) digits.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
  if (negative) digits.push_back('-');
  return {digits.rbegin(), digits.rend()};
}

std::string to_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const double size = std::fabs(value);
  // Python's repr: the shortest digits that read back, plain between 1e-4 and 1e16.
  const auto format = size == 0 || (size >= 1e-4 && size < 1e16) ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

namespace {

int bit_length(UnsignedInt value) {
  const auto high = static_cast<uint64_t>(value >> 64);
  if (high != 0) return 128 - __builtin_clzll(high);
  const auto low = static_cast<uint64_t>(value);
  return low == 0 ? 0 : 64 - __builtin_clzll(low);
}

}  // namespace

double true_quotient(Int a, Int b) {
  if (a == 0) return b < 0 ? -0.0 : 0.0;
  const bool negative = (a < 0) != (b < 0);
  UnsignedInt numerator = a < 0 ? -static_cast<UnsignedInt>(a) : static_cast<UnsignedInt>(a);
  UnsignedInt denominator = b < 0 ? -static_cast<UnsignedInt>(b) : static_cast<UnsignedInt>(b);
  // At least 64 bits of quotient, the last of which says whether anything was cut off: then one rounding, to double, is right.
  int shift = 64 + bit_length(denominator) - bit_length(numerator);
  if (shift > 128 - bit_length(numerator)) {  // a denominator past 64 bits, which no int64 program has
    const long double value = static_cast<long double>(numerator) / static_cast<long double>(denominator);
    return static_cast<double>(negative ? -value : value);
  }
  shift = shift < 0 ? 0 : shift;
  numerator <<= shift;
  UnsignedInt quotient = numerator / denominator;
  if (numerator % denominator != 0) quotient |= 1;
  const double value = std::ldexp(static_cast<double>(quotient), -shift);
  return negative ? -value : value;
}

}  // namespace pellucid::symbolic
