// min and max, where, abs, shifts and bit operations, and rebuilding a node with other arguments.
#include <algorithm>
#include <array>

#include "symbolic/builder.h"
#include "symbolic/evaluate.h"
#include "symbolic/print.h"

namespace pellucid::symbolic {

namespace {

constexpr int kDeepest = 1000;  // nested conditions; further down a negation stays in front
constexpr uint32_t kFlat = 8;   // so many arguments of min, max, and, or lie side by side; more are nested

}  // namespace

Expr Builder::min(Expr a, Expr b) {
  if (a->id > b->id) std::swap(a, b);
  if (const Expr known = recall(Op::kMin, a, b)) return known;
  return remember(Op::kMin, a, b, extremum(Kind::kMin, a, b));
}

Expr Builder::max(Expr a, Expr b) {
  if (a->id > b->id) std::swap(a, b);
  if (const Expr known = recall(Op::kMax, a, b)) return known;
  return remember(Op::kMax, a, b, extremum(Kind::kMax, a, b));
}

// Whether a <= b always.
bool Builder::at_most(Expr a, Expr b) {
  if (a == b) return true;
  arena_.count_work(1);
  const Range x = range(a);
  const Range y = range(b);
  if (x.hi <= y.lo && x.bounded_above() && y.bounded_below()) return true;
  if (oracle_ == nullptr && (a->symbols & b->symbols) == 0) return false;
  const Expr difference = combine(a, 1, b, -1);
  if (range(difference).hi <= 0) return true;
  if (oracle_ == nullptr) return false;
  const Expr relation = le0(difference);
  return relation->is_truth() ? relation->value != 0 : oracle_->settled(relation) == true;
}

Expr Builder::extremum(Kind kind, Expr a, Expr b) {
  std::vector<Expr> args;
  const auto gather = [&](Expr expr) {
    if (expr->is(kind) && expr->count + args.size() < kFlat) {
      args.insert(args.end(), expr->args(), expr->args() + expr->count);
    } else {
      args.push_back(expr);
    }
  };
  gather(a);
  gather(b);
  std::vector<Expr> kept;
  for (const Expr arg : args) {
    bool needed = true;
    for (size_t i = 0; i < kept.size() && needed;) {
      const bool kept_wins = kind == Kind::kMin ? at_most(kept[i], arg) : at_most(arg, kept[i]);
      const bool arg_wins = kind == Kind::kMin ? at_most(arg, kept[i]) : at_most(kept[i], arg);
      if (kept_wins) {
        needed = false;
      } else if (arg_wins) {
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (needed) kept.push_back(arg);
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(), [](Expr x, Expr y) { return x->id < y->id; });
  return arena_.intern(kind, Type::kInt, kept.data(), nullptr, static_cast<uint32_t>(kept.size()), 0);
}

Expr Builder::abs(Expr a) {
  if (const Expr known = recall(Op::kAbs, a, a)) return known;
  const Range values = range(a);
  Expr result;
  if (values.lo >= 0) {
    result = a;
  } else if (values.hi <= 0) {
    result = combine(a, -1, arena_.constant(0), 1);
  } else {
    const LinearView view(a);
    result = node(Kind::kAbs, Type::kInt, {view.coefficient(0) < 0 ? combine(a, -1, arena_.constant(0), 1) : a});
  }
  return remember(Op::kAbs, a, a, result);
}

Expr Builder::where(Expr condition, Expr a, Expr b) {
  if (condition->is_truth()) return condition->value != 0 ? a : b;
  if (a == b) return a;
  if (oracle_ != nullptr) {
    if (const std::optional<bool> known = oracle_->settled(condition)) return *known ? a : b;
  }
  if (a->type == Type::kBool) return logical_or(logical_and(condition, a), logical_and(logical_not(condition), b));
  if (condition->is(Kind::kNot) || condition->is(Kind::kNe0)) return where(logical_not(condition), b, a);
  return arena_.intern(Kind::kWhere, a->type, std::array<Expr, 3>{condition, a, b}.data(), nullptr, 3, 0);
}

Expr Builder::shift_left(Expr a, Expr b) {
  if (oracle_ == nullptr && b->hint.known() && b->hint.integer < 0) {
    throw Error(ErrorKind::kValue, "negative shift count: " + to_text(a) + " << " + to_text(b));
  }
  if (const Expr known = recall(Op::kShiftLeft, a, b)) return known;
  Expr result;
  if (a->is_const(0)) {
    result = a;
  } else if (b->is_const() && b->value >= 0 && b->value < 126) {
    result = make_mul(a, arena_.constant(static_cast<Int>(1) << static_cast<int>(b->value)));
  } else {
    result = node(Kind::kShiftLeft, Type::kInt, {a, b});
  }
  return remember(Op::kShiftLeft, a, b, result);
}

Expr Builder::shift_right(Expr a, Expr b) {
  if (oracle_ == nullptr && b->hint.known() && b->hint.integer < 0) {
    throw Error(ErrorKind::kValue, "negative shift count: " + to_text(a) + " >> " + to_text(b));
  }
  if (const Expr known = recall(Op::kShiftRight, a, b)) return known;
  Expr result;
  if (a->is_const(0)) {
    result = a;
  } else if (b->is_const() && b->value >= 0 && b->value < 126) {
    result = divide_by_constant(a, static_cast<Int>(1) << static_cast<int>(b->value));
  } else {
    result = node(Kind::kShiftRight, Type::kInt, {a, b});
  }
  return remember(Op::kShiftRight, a, b, result);
}

Expr Builder::make_bits(Kind kind, Expr a, Expr b) {
  if (a->is_const() && b->is_const()) {
    const Value args[] = {a->hint, b->hint};
    return arena_.constant(apply(kind, Type::kInt, args, 2, 0, 0).integer);
  }
  if (a == b) return kind == Kind::kBitXor ? arena_.constant(0) : a;
  if (b->is_const()) std::swap(a, b);
  if (a->is_const(0)) return kind == Kind::kBitAnd ? a : b;
  if (a->is_const(-1)) {
    if (kind == Kind::kBitAnd) return b;
    if (kind == Kind::kBitOr) return a;
    return combine(b, -1, arena_.constant(-1), 1);
  }
  if (kind == Kind::kBitAnd && a->is_const() && a->value > 0 && (a->value & (a->value + 1)) == 0) {
    return mod_by_constant(b, a->value + 1);  // the lowest bits
  }
  if (a->id > b->id) std::swap(a, b);
  return node(kind, Type::kInt, {a, b});
}

Expr Builder::bit_and(Expr a, Expr b) {
  if (a->type == Type::kBool) return logical_and(a, b);
  if (const Expr known = recall(Op::kBitAnd, a, b)) return known;
  return remember(Op::kBitAnd, a, b, make_bits(Kind::kBitAnd, a, b));
}

Expr Builder::bit_or(Expr a, Expr b) {
  if (a->type == Type::kBool) return logical_or(a, b);
  if (const Expr known = recall(Op::kBitOr, a, b)) return known;
  return remember(Op::kBitOr, a, b, make_bits(Kind::kBitOr, a, b));
}

Expr Builder::bit_xor(Expr a, Expr b) {
  if (a->type == Type::kBool) return ne(a, b);
  if (const Expr known = recall(Op::kBitXor, a, b)) return known;
  return remember(Op::kBitXor, a, b, make_bits(Kind::kBitXor, a, b));
}

// Kind::kAnd or kOr: flat, sorted, without repetition; a condition beside its negation decides.
Expr Builder::connect(Kind kind, Expr a, Expr b) {
  const Op op = kind == Kind::kAnd ? Op::kAnd : Op::kOr;
  if (a->id > b->id) std::swap(a, b);
  if (const Expr known = recall(op, a, b)) return known;
  const bool deciding = kind == Kind::kOr;
  std::vector<Expr> args;
  const auto gather = [&](Expr expr) {
    if (expr->is(kind) && expr->count + args.size() < kFlat) {
      args.insert(args.end(), expr->args(), expr->args() + expr->count);
    } else {
      args.push_back(expr);
    }
  };
  gather(a);
  gather(b);
  std::sort(args.begin(), args.end(), [](Expr x, Expr y) { return x->id < y->id; });
  args.erase(std::unique(args.begin(), args.end()), args.end());
  std::vector<Expr> kept;
  Expr result = nullptr;
  for (const Expr arg : args) {
    if (arg->is_truth()) {
      if ((arg->value != 0) == deciding) result = arg;
      continue;
    }
    kept.push_back(arg);
  }
  for (size_t i = 0; i < kept.size() && result == nullptr; ++i) {
    if (kept[i]->is(Kind::kAnd) || kept[i]->is(Kind::kOr)) continue;  // negating those is work, and they are rarely beside each other
    if (std::find(kept.begin(), kept.end(), logical_not(kept[i])) != kept.end()) result = arena_.truth(deciding);
  }
  if (result == nullptr) {
    if (kept.empty()) {
      result = arena_.truth(!deciding);
    } else if (kept.size() == 1) {
      result = kept[0];
    } else {
      result = arena_.intern(kind, Type::kBool, kept.data(), nullptr, static_cast<uint32_t>(kept.size()), 0);
    }
  }
  return remember(op, a, b, result);
}

Expr Builder::logical_not(Expr a) {
  if (const Expr known = recall(Op::kNot, a, a)) return known;
  Expr result;
  switch (a->kind) {
    case Kind::kTruth:
      result = arena_.truth(a->value == 0);
      break;
    case Kind::kNot:
      result = a->arg(0);
      break;
    case Kind::kEq0:
      result = node(Kind::kNe0, Type::kBool, {a->arg(0)});
      break;
    case Kind::kNe0:
      result = node(Kind::kEq0, Type::kBool, {a->arg(0)});
      break;
    case Kind::kLe0:
      result = le0(combine(a->arg(0), -1, arena_.constant(1), 1));
      break;  // not x <= 0: 1 - x <= 0
    case Kind::kAnd:
    case Kind::kOr: {
      if (depth_ > kDeepest) {
        result = node(Kind::kNot, Type::kBool, {a});
        break;
      }
      ++depth_;
      result = logical_not(a->arg(0));
      for (uint32_t i = 1; i < a->count; ++i) result = connect(a->is(Kind::kAnd) ? Kind::kOr : Kind::kAnd, result, logical_not(a->arg(i)));
      --depth_;
      break;
    }
    default:
      result = node(Kind::kNot, Type::kBool, {a});
  }
  if (result->is(Kind::kAnd) || result->is(Kind::kOr)) remember(Op::kNot, result, result, a);  // though it might be nested otherwise
  return remember(Op::kNot, a, a, result);
}

Expr Builder::rebuild(Expr expr, const Expr* args) {
  switch (expr->kind) {
    case Kind::kSum: {
      std::vector<Term> terms;
      Int constant = expr->value;
      for (uint32_t i = 0; i < expr->count; ++i) {
        const LinearView view(args[i]);
        Int product;
        for (uint32_t j = 0; j < view.count(); ++j) {
          if (!checked_mul(view.coefficient(j), expr->coefficients()[i], &product)) overflow(expr, args[i]);
          terms.push_back({view.factor(j), product});
        }
        if (!checked_mul(view.constant(), expr->coefficients()[i], &product) || !checked_add(constant, product, &constant)) {
          overflow(expr, args[i]);
        }
      }
      return linear(terms, constant);
    }
    case Kind::kProduct: {
      Expr product = args[0];
      for (uint32_t i = 1; i < expr->count; ++i) product = make_mul(product, args[i]);
      return product;
    }
    case Kind::kFloorDiv:
      return make_floor_div(args[0], args[1]);
    case Kind::kMod:
      return make_mod(args[0], args[1]);
    case Kind::kPow:
      return make_pow(args[0], args[1]);
    case Kind::kMin:
    case Kind::kMax: {
      Expr result = args[0];
      for (uint32_t i = 1; i < expr->count; ++i) result = extremum(expr->kind, result, args[i]);
      return result;
    }
    case Kind::kAbs:
      return abs(args[0]);
    case Kind::kShiftLeft:
      return shift_left(args[0], args[1]);
    case Kind::kShiftRight:
      return shift_right(args[0], args[1]);
    case Kind::kBitAnd:
    case Kind::kBitOr:
    case Kind::kBitXor:
      return make_bits(expr->kind, args[0], args[1]);
    case Kind::kFloor:
    case Kind::kCeil:
    case Kind::kTrunc:
    case Kind::kRound:
      return to_int(expr->kind, args[0]);
    case Kind::kWhere:
      return where(args[0], args[1], args[2]);
    case Kind::kEq0:
      return eq0(args[0]);
    case Kind::kNe0:
      return logical_not(eq0(args[0]));
    case Kind::kLe0:
      return le0(args[0]);
    case Kind::kAnd:
    case Kind::kOr: {
      Expr result = args[0];
      for (uint32_t i = 1; i < expr->count; ++i) result = connect(expr->kind, result, args[i]);
      return result;
    }
    case Kind::kNot:
      return logical_not(args[0]);
    case Kind::kToFloat:
      return to_float(args[0]);
    case Kind::kIntTrueDiv:
      return int_true_div(args[0], args[1]);
    case Kind::kRoundDigits:
      return round_digits(args[0], expr->digits - 128);
    case Kind::kConst:
    case Kind::kSymbol:
    case Kind::kTruth:
    case Kind::kReal:
      return expr;
    default:
      return expr->count == 2 ? float_binary(expr->kind, args[0], args[1]) : float_unary(expr->kind, args[0]);
  }
}

}  // namespace pellucid::symbolic
