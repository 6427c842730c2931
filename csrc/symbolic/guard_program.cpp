// Building and running guard programs.
#include "symbolic/guard_program.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "symbolic/evaluate.h"

namespace pellucid::symbolic {

uint32_t GuardProgram::constant(Int value) {
  // The last few are enough to find 0, 1 and the ends of ranges again.
  const size_t first = constants_.size() > 16 ? constants_.size() - 16 : 0;
  for (size_t i = first; i < constants_.size(); ++i) {
    if (constants_[i] == value) return static_cast<uint32_t>(i);
  }
  constants_.push_back(value);
  return static_cast<uint32_t>(constants_.size() - 1);
}

void GuardProgram::emit(Expr root, const Places& places) {
  // What is used more than once is computed once and kept in a local.
  std::unordered_map<Expr, uint32_t> uses;
  std::vector<Expr> pending{root};
  while (!pending.empty()) {
    const Expr expr = pending.back();
    pending.pop_back();
    if (uses[expr]++ != 0) continue;
    pending.insert(pending.end(), expr->args(), expr->args() + expr->count);
  }
  std::unordered_map<Expr, uint32_t> kept;
  uint32_t depth = 0;
  const auto pushed = [&](uint32_t by) {
    depth += by;
    deepest_ = std::max(deepest_, depth);
  };
  struct Step {
    Expr expr;
    uint32_t next;
  };
  std::vector<Step> steps{{root, 0}};
  while (!steps.empty()) {
    const Expr expr = steps.back().expr;
    const uint32_t next = steps.back().next;
    if (next == 0) {
      if (const auto local = kept.find(expr); local != kept.end()) {
        code_.push_back({.code = Code::kLoad, .a = local->second});
        pushed(1);
        steps.pop_back();
        continue;
      }
      if (expr->is(Kind::kSymbol)) {
        const auto place = places.find(expr);
        CHECK(place != places.end()) << "a guard on a symbol that no input holds";
        code_.push_back({.code = Code::kInput, .real = expr->type == Type::kFloat, .a = place->second});
        use(place->second);
        pushed(1);
        steps.pop_back();
        continue;
      }
      if (expr->is_literal()) {
        code_.push_back({.code = Code::kConstant, .real = expr->type == Type::kFloat, .a = constant(expr->value)});
        pushed(1);
        steps.pop_back();
        continue;
      }
      if (expr->is_sum()) {
        code_.push_back({.code = Code::kConstant, .a = constant(expr->value)});
        pushed(1);
      }
    } else if (expr->is_sum()) {
      code_.push_back({.code = Code::kScaleAdd, .a = constant(expr->coefficients()[next - 1])});
      --depth;
    }
    if (next < expr->count) {
      ++steps.back().next;
      steps.push_back({expr->arg(next), 0});
      continue;
    }
    if (!expr->is_sum()) {
      code_.push_back({.code = Code::kApply, .kind = expr->kind, .type = expr->type, .digits = expr->digits, .a = expr->count});
      depth -= expr->count - 1;
    }
    if (uses[expr] > 1) {
      kept[expr] = locals_;
      code_.push_back({.code = Code::kStore, .a = locals_++});
    }
    steps.pop_back();
  }
}

void GuardProgram::add_condition(Expr condition, const Places& places, uint32_t row) {
  emit(condition, places);
  code_.push_back({.code = Code::kCheck, .row = row});
}

void GuardProgram::add_range(uint32_t input, const Range& range, uint32_t row) {
  use(input);
  constants_.push_back(range.lo);  // side by side
  constants_.push_back(range.hi);
  code_.push_back({.code = Code::kRange, .a = input, .b = static_cast<uint32_t>(constants_.size() - 2), .row = row});
}

void GuardProgram::add_same(uint32_t input, uint32_t other, uint32_t row) {
  use(input);
  use(other);
  code_.push_back({.code = Code::kSame, .a = input, .b = other, .row = row});
}

void GuardProgram::add_not_nan(uint32_t input, uint32_t row) {
  use(input);
  code_.push_back({.code = Code::kNotNan, .a = input, .row = row});
}

void GuardProgram::add_same_real(uint32_t input, double value, uint32_t row) {
  use(input);
  code_.push_back({.code = Code::kSameReal, .a = input, .b = constant(std::bit_cast<int64_t>(value)), .row = row});
}

int64_t GuardProgram::first_failed(std::span<const int64_t> inputs) const {
  CHECK(inputs.size() >= inputs_needed_) << inputs.size() << " inputs for a guard program that reads " << inputs_needed_;
  constexpr size_t kLocal = 32;
  Value local[kLocal];
  std::vector<Value> more;
  Value* stack = local;
  if (deepest_ + locals_ > kLocal) {
    more.resize(deepest_ + locals_);
    stack = more.data();
  }
  Value* const locals = stack + deepest_;
  Value* top = stack;  // one past the last
  for (const Row& row : code_) {
    switch (row.code) {
      case Code::kInput:
        *top++ = row.real ? Value::of_real(std::bit_cast<double>(inputs[row.a])) : Value::of(inputs[row.a]);
        break;
      case Code::kConstant:
        *top++ = row.real ? Value::of_real(std::bit_cast<double>(static_cast<int64_t>(constants_[row.a]))) : Value::of(constants_[row.a]);
        break;
      case Code::kScaleAdd: {
        --top;
        Int product;
        if (!top->known() || !top[-1].known() || !checked_mul(top->integer, constants_[row.a], &product) ||
            !checked_add(top[-1].integer, product, &top[-1].integer)) {
          top[-1] = Value::undefined();
        }
        break;
      }
      case Code::kApply:
        top -= row.a;
        if (row.a == 1 && row.type == Type::kBool && top->known() && row.kind != Kind::kNot) {
          const Int value = top->integer;
          *top = Value::of(row.kind == Kind::kLe0 ? value <= 0 : (value == 0) == (row.kind == Kind::kEq0));
        } else {
          *top = apply(row.kind, row.type, top, row.a, 0, row.digits - 128);
        }
        ++top;
        break;
      case Code::kLoad:
        *top++ = locals[row.a];
        break;
      case Code::kStore:
        locals[row.a] = top[-1];
        break;
      case Code::kCheck:
        --top;
        if (!top->known() || top->integer == 0) return row.row;
        break;
      case Code::kRange:
        if (Int{inputs[row.a]} < constants_[row.b] || Int{inputs[row.a]} > constants_[row.b + 1]) return row.row;
        break;
      case Code::kSame:
        if (inputs[row.a] != inputs[row.b]) return row.row;
        break;
      case Code::kNotNan:
        if (std::isnan(std::bit_cast<double>(inputs[row.a]))) return row.row;
        break;
      case Code::kSameReal: {
        const double have = std::bit_cast<double>(inputs[row.a]);
        const double want = std::bit_cast<double>(static_cast<int64_t>(constants_[row.b]));
        if (!(have == want || (std::isnan(have) && std::isnan(want)))) return row.row;
        break;
      }
    }
  }
  return -1;
}

std::string GuardProgram::disassemble() const {
  static const char* const names[] = {"input", "constant", "scale_add", "apply",   "load",     "store",
                                      "check", "range",    "same",      "not_nan", "same_real"};
  std::string text;
  for (const Row& row : code_) {
    text += names[static_cast<size_t>(row.code)];
    switch (row.code) {
      case Code::kConstant:
      case Code::kScaleAdd:
        text += " " + to_text(constants_[row.a]);
        break;
      case Code::kApply:
        text += std::string(" ") + kind_name(row.kind) + " " + std::to_string(row.a);
        break;
      case Code::kCheck:
        text += " -> " + std::to_string(row.row);
        break;
      case Code::kRange:
        text += " " + std::to_string(row.a) + " " + to_text(constants_[row.b]) + " " + to_text(constants_[row.b + 1]) + " -> " +
                std::to_string(row.row);
        break;
      case Code::kSame:
        text += " " + std::to_string(row.a) + " " + std::to_string(row.b) + " -> " + std::to_string(row.row);
        break;
      default:
        text += " " + std::to_string(row.a);
    }
    text += "\n";
  }
  return text;
}

}  // namespace pellucid::symbolic
