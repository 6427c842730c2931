// Int: the integers that symbolic arithmetic computes with. 128 bits, so that what int64 inputs give in one step never wraps; where
// even they do not suffice an operation says so. Knows nothing of expressions.
#pragma once
#include <cstdint>
#include <limits>
#include <string>

namespace pellucid::symbolic {

__extension__ typedef __int128 Int;
__extension__ typedef unsigned __int128 UnsignedInt;

constexpr Int kInt64Max = std::numeric_limits<int64_t>::max();
constexpr Int kInt64Min = std::numeric_limits<int64_t>::min();

// What a symbol can be. The ends of int64 are infinities (the start and end of a slice that has none) and no symbol's value; a guard
// program refuses them.
constexpr Int kMaxValue = kInt64Max - 1;
constexpr Int kMinValue = kInt64Min + 1;

inline bool fits_int64(Int value) { return value >= kInt64Min && value <= kInt64Max; }

// False: the result does not fit 128 bits.
inline bool checked_add(Int a, Int b, Int* out) { return !__builtin_add_overflow(a, b, out); }
inline bool checked_mul(Int a, Int b, Int* out) { return !__builtin_mul_overflow(a, b, out); }

// Python's // and %. The divisor is not 0.
inline Int floor_div(Int a, Int b) {
  const Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline Int floor_mod(Int a, Int b) {
  const Int rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline Int ceil_div(Int a, Int b) { return -floor_div(-a, b); }

inline Int abs_of(Int a) { return a < 0 ? -a : a; }

inline Int gcd_of(Int a, Int b) {
  a = abs_of(a);
  b = abs_of(b);
  while (b != 0) {
    const Int rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

std::string to_text(Int value);
std::string to_text(double value);  // as Python's repr

// The double nearest to a / b, as Python's int / int gives it. b is not 0.
double true_quotient(Int a, Int b);

}  // namespace pellucid::symbolic
