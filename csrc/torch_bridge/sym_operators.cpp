// Promotion as PyTorch's sym_node.py has it: booleans count as integers, integers beside floats as floats.
#include "torch_bridge/sym_operators.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace pellucid::bridge::operators {

using symbolic::Kind;
using symbolic::ShapeEnv;
using symbolic::Type;

namespace {

bool is_float(Expr a) { return a->type == Type::kFloat; }

// Booleans count as 0 and 1.
Expr number(Builder& build, Expr a) { return a->type == Type::kBool ? build.where(a, build.constant(1), build.constant(0)) : a; }

Expr floats(Builder& build, Kind kind, Expr a, Expr b) { return build.float_binary(kind, build.to_float(a), build.to_float(b)); }

// By integers where both are, by floats otherwise.
template <class OnIntegers>
Expr arithmetic(Builder& build, Kind on_floats, Expr a, Expr b, OnIntegers on_integers) {
  if (is_float(a) || is_float(b)) return floats(build, on_floats, a, b);
  return on_integers(number(build, a), number(build, b));
}

Expr comparable(Builder& build, Expr a, Expr other) { return a->type == Type::kBool && other->type != Type::kBool ? number(build, a) : a; }

Expr rounded(Builder& build, Kind kind, Expr a) { return is_float(a) ? build.to_int(kind, a) : number(build, a); }

// All sizes are 1 or the strides are those of a dense tensor laid out in this order, innermost dimension first; or it is empty.
Expr dense_in_order(Builder& build, Sizes sizes, Sizes strides, std::span<const int> order) {
  Expr expected = build.constant(1);
  Expr result = build.truth(true);
  for (const int dim : order) {
    const Expr size = sizes[static_cast<size_t>(dim)];
    const Expr fits = build.logical_or(build.eq(size, build.constant(1)), build.eq(strides[static_cast<size_t>(dim)], expected));
    result = build.logical_and(result, fits);
    expected = build.mul(expected, size);
  }
  for (const Expr size : sizes) result = build.logical_or(result, build.eq(size, build.constant(0)));
  return result;
}

Expr channels_last_dense(ShapeEnv& env, Sizes sizes, Sizes strides, std::span<const int> order) {
  if (sizes.size() != order.size()) return env.build().truth(false);
  return dense_in_order(env.build(), sizes, strides, order);
}

// As is_channels_last_strides_2d_s4 of c10/core/MemoryFormat.h, which says why each condition is there.
Expr channels_last_strides(ShapeEnv& env, Sizes sizes, Sizes strides, std::span<const int> order) {
  Builder& build = env.build();
  if (sizes.size() != order.size()) return build.truth(false);
  const Expr zero = build.constant(0);
  Expr least = zero;
  Expr result = build.ne(strides[1], zero);
  for (const int dim : order) {
    const Expr size = sizes[static_cast<size_t>(dim)];
    const Expr stride = strides[static_cast<size_t>(dim)];
    result = build.logical_and(result, build.logical_and(build.ne(size, zero), build.ge(stride, least)));
    if (dim == 0) result = build.logical_and(result, build.ne(least, strides[1]));
    least = build.mul(stride, build.max(size, build.constant(1)));
  }
  return result;
}

constexpr int kChannelsLast2d[] = {1, 3, 2, 0};
constexpr int kChannelsLast3d[] = {1, 4, 3, 2, 0};

}  // namespace

Expr truth(Builder& build, Expr a) {
  if (a->type == Type::kBool) return a;
  return a->type == Type::kInt ? build.ne(a, build.constant(0)) : build.ne(a, build.real(0));
}

Expr add(Builder& build, Expr a, Expr b) {
  return arithmetic(build, Kind::kFloatAdd, a, b, [&](Expr x, Expr y) { return build.add(x, y); });
}
Expr sub(Builder& build, Expr a, Expr b) {
  return arithmetic(build, Kind::kFloatSub, a, b, [&](Expr x, Expr y) { return build.sub(x, y); });
}
Expr mul(Builder& build, Expr a, Expr b) {
  return arithmetic(build, Kind::kFloatMul, a, b, [&](Expr x, Expr y) { return build.mul(x, y); });
}
Expr mod(Builder& build, Expr a, Expr b) {
  return arithmetic(build, Kind::kFloatMod, a, b, [&](Expr x, Expr y) { return build.mod(x, y); });
}
Expr int_floordiv(Builder& build, Expr a, Expr b) {
  return arithmetic(build, Kind::kFloatFloorDiv, a, b, [&](Expr x, Expr y) { return build.floor_div(x, y); });
}
Expr floordiv(Builder& build, Expr a, Expr b) { return int_floordiv(build, a, b); }
Expr int_truediv(Builder& build, Expr a, Expr b) {
  return arithmetic(build, Kind::kFloatDiv, a, b, [&](Expr x, Expr y) { return build.int_true_div(x, y); });
}
Expr truediv(Builder& build, Expr a, Expr b) { return int_truediv(build, a, b); }
Expr float_truediv(Builder& build, Expr a, Expr b) { return floats(build, Kind::kFloatDiv, a, b); }
Expr float_pow(Builder& build, Expr a, Expr b) { return floats(build, Kind::kFloatPow, a, b); }
Expr pow_by_natural(Builder& build, Expr a, Expr b) { return build.pow(number(build, a), number(build, b)); }
Expr pow(Builder& build, Expr a, Expr b) { return is_float(a) || is_float(b) ? float_pow(build, a, b) : pow_by_natural(build, a, b); }
Expr sym_min(Builder& build, Expr a, Expr b) {
  return arithmetic(build, Kind::kFloatMin, a, b, [&](Expr x, Expr y) { return build.min(x, y); });
}
Expr sym_max(Builder& build, Expr a, Expr b) {
  return arithmetic(build, Kind::kFloatMax, a, b, [&](Expr x, Expr y) { return build.max(x, y); });
}

Expr eq(Builder& build, Expr a, Expr b) { return build.eq(comparable(build, a, b), comparable(build, b, a)); }
Expr ne(Builder& build, Expr a, Expr b) { return build.logical_not(eq(build, a, b)); }
Expr lt(Builder& build, Expr a, Expr b) { return build.lt(number(build, a), number(build, b)); }
Expr le(Builder& build, Expr a, Expr b) { return build.le(number(build, a), number(build, b)); }
Expr gt(Builder& build, Expr a, Expr b) { return lt(build, b, a); }
Expr ge(Builder& build, Expr a, Expr b) { return le(build, b, a); }

Expr sym_or(Builder& build, Expr a, Expr b) { return build.logical_or(truth(build, a), truth(build, b)); }
Expr sym_and(Builder& build, Expr a, Expr b) { return build.logical_and(truth(build, a), truth(build, b)); }
Expr sym_not(Builder& build, Expr a) { return build.logical_not(truth(build, a)); }

Expr ceil(Builder& build, Expr a) { return rounded(build, Kind::kCeil, a); }
Expr floor(Builder& build, Expr a) { return rounded(build, Kind::kFloor, a); }
Expr trunc(Builder& build, Expr a) { return rounded(build, Kind::kTrunc, a); }
Expr neg(Builder& build, Expr a) { return is_float(a) ? build.float_unary(Kind::kFloatNeg, a) : build.neg(number(build, a)); }
Expr abs(Builder& build, Expr a) { return is_float(a) ? build.float_unary(Kind::kFloatAbs, a) : build.abs(number(build, a)); }
Expr pos(Builder& build, Expr a) { return number(build, a); }
Expr sym_float(Builder& build, Expr a) { return build.to_float(a); }
Expr is_integer(Builder& build, Expr a) {
  return is_float(a) ? build.eq(a, build.to_float(build.to_int(Kind::kFloor, a))) : build.truth(true);
}
Expr round_to(Builder& build, Expr a, const int* digits) {
  if (!is_float(a)) return number(build, a);
  return digits == nullptr ? build.to_int(Kind::kRound, a) : build.round_digits(a, *digits);
}

Expr lshift(Builder& build, Expr a, Expr b) { return build.shift_left(number(build, a), number(build, b)); }
Expr rshift(Builder& build, Expr a, Expr b) { return build.shift_right(number(build, a), number(build, b)); }

namespace {

bool booleans(Expr a, Expr b) { return a->type == Type::kBool && b->type == Type::kBool; }

}  // namespace

Expr bitwise_and(Builder& build, Expr a, Expr b) {
  return booleans(a, b) ? build.logical_and(a, b) : build.bit_and(number(build, a), number(build, b));
}
Expr bitwise_or(Builder& build, Expr a, Expr b) {
  return booleans(a, b) ? build.logical_or(a, b) : build.bit_or(number(build, a), number(build, b));
}
Expr bitwise_xor(Builder& build, Expr a, Expr b) {
  return booleans(a, b) ? build.ne(a, b) : build.bit_xor(number(build, a), number(build, b));
}

Expr is_contiguous(ShapeEnv& env, Sizes sizes, Sizes strides) {
  std::vector<int> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return dense_in_order(env.build(), sizes, strides, order);
}
Expr is_channels_last_contiguous_2d(ShapeEnv& env, Sizes sizes, Sizes strides) {
  return channels_last_dense(env, sizes, strides, kChannelsLast2d);
}
Expr is_channels_last_contiguous_3d(ShapeEnv& env, Sizes sizes, Sizes strides) {
  return channels_last_dense(env, sizes, strides, kChannelsLast3d);
}
Expr is_channels_last_strides_2d(ShapeEnv& env, Sizes sizes, Sizes strides) {
  return channels_last_strides(env, sizes, strides, kChannelsLast2d);
}
Expr is_channels_last_strides_3d(ShapeEnv& env, Sizes sizes, Sizes strides) {
  return channels_last_strides(env, sizes, strides, kChannelsLast3d);
}

// Dense in the order of its strides. That order comes from the hints, and what is asked of it are guards where the answer depends on
// it: another order of strides may be dense where this one is not. Without hints only the two common orders are looked at.
Expr is_non_overlapping_and_dense(ShapeEnv& env, Sizes sizes, Sizes strides) {
  Builder& build = env.build();
  const Expr contiguous = is_contiguous(env, sizes, strides);
  const auto known = [](Expr a) { return a->hint.known(); };
  if (!std::all_of(strides.begin(), strides.end(), known) || !std::all_of(sizes.begin(), sizes.end(), known)) {
    if (sizes.size() == 4) return build.logical_or(contiguous, is_channels_last_contiguous_2d(env, sizes, strides));
    if (sizes.size() == 5) return build.logical_or(contiguous, is_channels_last_contiguous_3d(env, sizes, strides));
    return contiguous;
  }
  if (contiguous->hint.known() && contiguous->hint.integer != 0) return contiguous;
  std::vector<int> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), 0);
  const auto dim = [](int i) { return static_cast<size_t>(i); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_pair(strides[dim(a)]->hint.integer, sizes[dim(a)]->hint.integer) <
           std::make_pair(strides[dim(b)]->hint.integer, sizes[dim(b)]->hint.integer);
  });
  const Expr dense = dense_in_order(build, sizes, strides, order);
  if (dense->hint.known() && dense->hint.integer != 0) return dense;
  for (size_t i = 1; i < order.size(); ++i) {
    env.evaluate(build.le(strides[dim(order[i - 1])], strides[dim(order[i])]), {});
  }
  return dense;
}

}  // namespace pellucid::bridge::operators
