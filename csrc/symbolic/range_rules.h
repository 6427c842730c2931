// The range of a node from those of its arguments: when it is made from what symbols were born with, later from what was learned.
#pragma once
#include "symbolic/real_range.h"

namespace pellucid::symbolic {

// `range_of` gives the range of an argument.
template <class RangeOf>
Range range_by_rule(const Node& node, RangeOf range_of) {
  const auto a = [&](uint32_t i) { return range_of(node.arg(i)); };
  switch (node.kind) {
    case Kind::kConst:
    case Kind::kTruth:
      return {node.value, node.value};
    case Kind::kSum: {
      Range sum{node.value, node.value};
      for (uint32_t i = 0; i < node.count; ++i) sum = add(sum, scale(a(i), node.coefficients()[i]));
      return sum;
    }
    case Kind::kProduct: {
      Range product{1, 1};
      for (uint32_t i = 0; i < node.count;) {
        if (i + 1 < node.count && node.arg(i) == node.arg(i + 1)) {
          product = multiply(product, square(a(i)));
          i += 2;
        } else {
          product = multiply(product, a(i));
          i += 1;
        }
      }
      return product;
    }
    case Kind::kFloorDiv:
      return floor_divide(a(0), a(1));
    case Kind::kMod:
      return modulo(a(0), a(1));
    case Kind::kPow:
      return power(a(0), a(1));
    case Kind::kMin:
    case Kind::kMax: {
      Range range = a(0);
      for (uint32_t i = 1; i < node.count; ++i) range = node.is(Kind::kMin) ? smaller(range, a(i)) : larger(range, a(i));
      return range;
    }
    case Kind::kAbs:
      return absolute(a(0));
    case Kind::kShiftLeft:
      return shift_left(a(0), a(1));
    case Kind::kShiftRight:
      return shift_right(a(0), a(1));
    case Kind::kBitAnd:
      return bit_and(a(0), a(1));
    case Kind::kBitOr:
      return bit_or(a(0), a(1));
    case Kind::kBitXor:
      return bit_xor(a(0), a(1));
    case Kind::kFloor:
    case Kind::kCeil:
    case Kind::kTrunc:
    case Kind::kRound: {
      const std::optional<RealRange> range = real_range(node.arg(0), range_of);
      return range ? rounded_range(node.kind, *range) : Range{};
    }
    case Kind::kWhere:
      return node.type == Type::kInt ? join(a(1), a(2)) : kBoolRange;
    default:
      return node.type == Type::kBool ? kBoolRange : Range{};
  }
}

}  // namespace pellucid::symbolic
