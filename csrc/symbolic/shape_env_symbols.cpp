// ShapeEnv: how symbols come to be, and what the user says of them.
#include <cmath>

#include "symbolic/print.h"
#include "symbolic/shape_env.h"

namespace pellucid::symbolic {

namespace {

constexpr Range kAnyInt{kMinValue, kMaxValue};

std::string of_input(const std::string& source, const Location& location) {
  return source + (location.known() ? " (at " + to_text(location) + ")" : "");
}

}  // namespace

Expr ShapeEnv::new_symbol(const char* prefix, Type type, Value hint, Range born, const Location& location) {
  const Expr symbol = arena_.make_symbol(prefix + std::to_string(symbols_named_[prefix]++), type, hint, born);
  created_at_.emplace(symbol, location);
  return symbol;
}

Expr ShapeEnv::create_size(int64_t hint, const std::string& source, const DimSpec& asked, Site site) {
  DimSpec spec = asked;
  const Location location = site.locate();
  if (hint < 0)
    throw Error(ErrorKind::kValue, "a size must not be negative: " + of_input(source, location) + " is " + std::to_string(hint));
  if (Int{hint} > kMaxValue) throw Error(ErrorKind::kValue, "no size: " + of_input(source, location) + " is " + std::to_string(hint));
  if (input_of_.count(source) != 0) throw Error(ErrorKind::kValue, "there is an input " + source + " already");
  if (spec.constraint.kind != Constraint::Kind::kNone) {
    if (spec.constraint.range.empty()) {
      throw Error(ErrorKind::kValue, "contradictory range " + to_text(spec.constraint.range) + " for " + of_input(source, location));
    }
    if (!spec.constraint.range.contains(hint)) {
      throw Error(ErrorKind::kConstraint, of_input(source, location) + " is " + std::to_string(hint) + ", which is not in the range " +
                                              to_text(spec.constraint.range) + " that was declared for it");
    }
    if (spec.constraint.range.single()) {
      spec.policy = DimPolicy::kStatic;
      spec.constraint = {};
    } else if (spec.policy != DimPolicy::kUnbacked && spec.policy != DimPolicy::kObliviousSize) {
      spec.policy = DimPolicy::kDynamic;
    }
  }
  Input input{source, nullptr, Type::kInt, true, spec, Value::of(hint), location};
  const bool small = hint == 0 || hint == 1;
  const bool specialize = spec.specialize_zero_one.value_or(options_.specialize_zero_one);
  const bool duck = spec.policy == DimPolicy::kDuck && options_.duck_shapes;
  Expr& expr = input.expr;
  bool fresh = false;
  if (spec.policy == DimPolicy::kUnbacked) {
    expr = new_symbol("u", Type::kInt, Value{}, {0, kMaxValue}, location);
    fresh = true;
  } else if (spec.policy == DimPolicy::kStatic || (small && specialize && spec.policy != DimPolicy::kObliviousSize)) {
    expr = arena_.constant(hint);
  } else if (const auto shared = ducks_.find(hint); duck && shared != ducks_.end()) {
    expr = shared->second;
  } else {
    const bool large = specialize && spec.policy != DimPolicy::kObliviousSize;
    expr = new_symbol("s", Type::kInt, Value::of(hint), {large ? 2 : 0, kMaxValue}, location);
    if (duck) ducks_.emplace(hint, expr);
    fresh = true;
  }
  add_input(input);
  Event& event = record(EventKind::kInput, expr, at(location));
  event.input = static_cast<uint32_t>(inputs_.size() - 1);
  event.text = source;
  event.answer = Value::of(hint);
  event.type = Type::kInt;
  if (fresh && (spec.policy == DimPolicy::kUnbacked || spec.policy == DimPolicy::kObliviousSize)) facts_->set_size_like(expr);
  if (fresh) apply_constraint(expr, input);
  return expr;
}

Expr ShapeEnv::create_int(int64_t hint, const std::string& source, const Constraint& constraint, Site site) {
  const Location location = site.locate();
  if (input_of_.count(source) != 0) throw Error(ErrorKind::kValue, "there is an input " + source + " already");
  if (!kAnyInt.contains(hint)) throw Error(ErrorKind::kValue, of_input(source, location) + " is an end of int64, which no symbol can be");
  if (constraint.kind != Constraint::Kind::kNone && !constraint.range.contains(hint)) {
    throw Error(constraint.range.empty() ? ErrorKind::kValue : ErrorKind::kConstraint,
                of_input(source, location) + " is " + std::to_string(hint) + ", which is not in the range " + to_text(constraint.range) +
                    " that was declared for it");
  }
  DimSpec spec;
  spec.policy = DimPolicy::kDynamic;
  spec.constraint = constraint;
  Input input{source, new_symbol("s", Type::kInt, Value::of(hint), kAnyInt, location), Type::kInt, false, spec, Value::of(hint), location};
  add_input(input);
  Event& event = record(EventKind::kInput, input.expr, at(location));
  event.input = static_cast<uint32_t>(inputs_.size() - 1);
  event.text = source;
  event.answer = input.hint;
  event.type = Type::kInt;
  apply_constraint(input.expr, input);
  return input.expr;
}

Expr ShapeEnv::create_float(double hint, const std::string& source, Site site) {
  const Location location = site.locate();
  if (input_of_.count(source) != 0) throw Error(ErrorKind::kValue, "there is an input " + source + " already");
  DimSpec spec;
  spec.policy = DimPolicy::kDynamic;
  Input input{source, nullptr, Type::kFloat, false, spec, Value::of_real(hint), location};
  // A symbol is never nan, so that x == x holds of it: a guard sees to that.
  input.expr = std::isnan(hint) ? arena_.real(hint) : new_symbol("zf", Type::kFloat, input.hint, {}, location);
  add_input(input);
  Event& event = record(EventKind::kInput, input.expr, at(location));
  event.input = static_cast<uint32_t>(inputs_.size() - 1);
  event.text = source;
  event.answer = input.hint;
  event.type = Type::kFloat;
  return input.expr;
}

void ShapeEnv::add_input(const Input& input) {
  const auto place = static_cast<uint32_t>(inputs_.size());
  input_of_.emplace(input.source, place);
  if (input.expr->is(Kind::kSymbol)) places_of_[input.expr].push_back(place);
  inputs_.push_back(input);
}

std::vector<uint32_t> ShapeEnv::inputs_of(Expr symbol) const {
  check_own(symbol);
  const auto found = places_of_.find(symbol);
  return found == places_of_.end() ? std::vector<uint32_t>{} : found->second;
}

void ShapeEnv::apply_constraint(Expr symbol, const Input& input) {
  const Constraint& constraint = input.spec.constraint;
  if (constraint.kind == Constraint::Kind::kNone) return;
  const Range limits = intersect(constraint.range, symbol->range);
  const auto state = [&](Expr condition) {
    if (condition->is_truth()) return;
    if (symbol->unbacked) {
      asserts_.push_back({condition, "declared range of " + input.source, input.location, symbol});
    } else {
      guards_.push_back({condition, input.location, true});
    }
    facts_->add(condition);
  };
  if (limits.empty()) {
    throw Error(ErrorKind::kConstraint, "no value of " + of_input(input.source, input.location) + " in " + to_text(constraint.range) +
                                            " is possible: sizes 0 and 1 are specialized");
  }
  state(build_.le(arena_.constant(limits.lo), symbol));
  state(build_.le(symbol, arena_.constant(limits.hi)));
  record_replacements(input.location);
}

Expr ShapeEnv::create_unbacked_int(Site site, const std::string& source) {
  const Expr symbol = new_symbol("u", Type::kInt, Value{}, kAnyInt, site.locate());
  Event& event = record(EventKind::kUnbacked, symbol, site);
  event.type = Type::kInt;
  event.text = source;
  return symbol;
}

Expr ShapeEnv::create_unbacked_float(Site site) {
  const Expr symbol = new_symbol("zuf", Type::kFloat, Value{}, {}, site.locate());
  record(EventKind::kUnbacked, symbol, site).type = Type::kFloat;
  return symbol;
}

Expr ShapeEnv::create_unbacked_bool(Site site) {
  const Expr symbol = new_symbol("u", Type::kInt, Value{}, {0, 1}, site.locate());
  record(EventKind::kUnbacked, symbol, site).type = Type::kBool;
  return build_.eq(symbol, arena_.constant(1));
}

uint32_t ShapeEnv::input_named(const std::string& source) const {
  const auto found = input_of_.find(source);
  if (found == input_of_.end()) throw Error(ErrorKind::kValue, "there is no input " + source);
  return found->second;
}

void ShapeEnv::declare_equal(const std::string& source, const std::string& other, Site site) {
  const Location location = site.locate();
  const uint32_t first = input_named(source);
  const uint32_t second = input_named(other);
  const Input& a = inputs_[first];
  const Input& b = inputs_[second];
  if (a.type != Type::kInt || b.type != Type::kInt) throw Error(ErrorKind::kValue, "only integers are declared equal");
  if (a.hint.integer != b.hint.integer) {
    throw Error(ErrorKind::kConstraint, source + " and " + other + " were declared equal at " + to_text(location) + " but are " +
                                            to_text(a.hint.integer) + " and " + to_text(b.hint.integer));
  }
  const size_t place = log_.size();
  Event& event = record(EventKind::kEqualInputs, nullptr, at(location));
  event.input = first;
  event.second_input = second;
  event.text = source + " == " + other;
  const Expr condition = build_.eq(a.expr, b.expr);
  if (facts_->prove(condition) == true) return;
  if (condition->unbacked) {
    if (!defer(condition, "declared equal: " + source + " == " + other, location)) {
      log_[place].outcome = Outcome::kFailed;
      throw Error(ErrorKind::kConstraint, source + " and " + other + " can't be equal by what is known");
    }
    return;
  }
  guards_.push_back({facts_->simplify(condition), location, true});
  facts_->add(condition);
  record_replacements(location);
}

void ShapeEnv::constrain_range(Expr integer, const Range& limits, Site site) {
  check_own(integer);
  const Location location = site.locate();
  if (limits.empty()) throw Error(ErrorKind::kValue, "contradictory range " + to_text(limits) + " for " + to_text(integer));
  const Expr simple = facts_->simplify(integer);
  const Range known = facts_->range(simple);
  if (intersect(known, limits).empty()) {
    throw Error(ErrorKind::kValue, to_text(integer) + " is in " + to_text(known) + " and can't be in " + to_text(limits));
  }
  if (simple->hint.known() && !limits.contains(simple->hint.integer)) {
    throw Error(ErrorKind::kValue, to_text(integer) + " is " + to_text(simple->hint.integer) + ", which is not in " + to_text(limits));
  }
  const size_t place = log_.size();
  record(EventKind::kConstrainRange, integer, at(location)).range = limits;
  std::vector<Expr> conditions;
  if (limits.bounded_below()) conditions.push_back(build_.le(arena_.constant(limits.lo), simple));
  if (limits.bounded_above()) conditions.push_back(build_.le(simple, arena_.constant(limits.hi)));
  for (const Expr condition : conditions) {
    const std::optional<bool> answer = facts_->prove(condition);
    if (answer == true) continue;
    if (answer != false && !condition->unbacked) {
      guards_.push_back({facts_->simplify(condition), location, true});
      facts_->add(condition);
    } else if (answer == false || !defer(condition, "range of " + to_text(integer), location)) {
      log_[place].outcome = Outcome::kFailed;
      throw Error(ErrorKind::kValue, to_text(integer) + " can't be in " + to_text(limits) + " by what is known");
    }
  }
  record_replacements(location);
}

void ShapeEnv::use_as_size(Expr integer, Site site) {
  check_own(integer);
  const Expr simple = facts_->simplify(integer);
  if (!simple->unbacked) {
    if (!expect_true(build_.le(arena_.constant(0), integer), "a size must not be negative", site)) {
      throw Error(ErrorKind::kValue, "a size must not be negative: " + to_text(integer));
    }
    return;
  }
  const bool known = simple->is(Kind::kSymbol) ? facts_->is_size_like(simple) && facts_->range(simple).lo >= 0 : false;
  if (known) return;
  const Location location = site.locate();
  const size_t place = log_.size();
  record(EventKind::kSize, integer, at(location)).outcome = Outcome::kFailed;
  if (simple->is(Kind::kSymbol)) facts_->set_size_like(simple);
  const Expr condition = build_.le(arena_.constant(0), simple);
  const std::optional<bool> answer = facts_->prove(condition);
  if (answer == false) throw Error(ErrorKind::kValue, "a size must not be negative: " + to_text(integer));
  if (!answer && !defer(condition, "a size must not be negative: " + to_text(integer), location)) {
    throw Error(ErrorKind::kValue, "a size must not be negative: " + to_text(integer));
  }
  log_[place].outcome = Outcome::kNone;
}

}  // namespace pellucid::symbolic
