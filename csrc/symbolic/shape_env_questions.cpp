// ShapeEnv: asking. Proven, or answered by the hints with a guard, or an error because only the data knows.
#include <cmath>

#include "base/check.h"
#include "symbolic/print.h"
#include "symbolic/shape_env.h"

namespace pellucid::symbolic {

namespace {

void unbacked_in(Expr root, std::vector<Expr>* out) {
  std::vector<Expr> pending{root};
  while (!pending.empty()) {
    const Expr expr = pending.back();
    pending.pop_back();
    if (!expr->unbacked) continue;
    if (expr->is(Kind::kSymbol)) {
      bool seen = false;
      for (const Expr other : *out) seen |= other == expr;
      if (!seen) out->push_back(expr);
    }
    pending.insert(pending.end(), expr->args(), expr->args() + expr->count);
  }
}

[[noreturn]] void not_defined(Expr expr, const char* what) {
  throw Error(ErrorKind::kOverflow, std::string("the value of ") + to_text(expr) + " " + what);
}

}  // namespace

void ShapeEnv::check_own(Expr expr) const {
  if (expr->arena != &arena_) throw Error(ErrorKind::kForeign, to_text(expr) + " is of another ShapeEnv");
}

Event& ShapeEnv::record(EventKind kind, Expr expr, Site site) {
  Event event;
  event.kind = kind;
  event.expr = expr;
  event.location = site.locate();
  event.nodes = static_cast<uint32_t>(arena_.size());
  log_.push_back(std::move(event));
  return log_.back();
}

void ShapeEnv::record_replacements(const Location& location) {
  for (; replacements_seen_ < facts_->replaced().size(); ++replacements_seen_) {
    const Expr symbol = facts_->replaced()[replacements_seen_];
    const Expr by = facts_->simplify(symbol);
    replaced_at_[symbol] = log_.size();
    record(EventKind::kReplacement, symbol, at(location)).other = by;
  }
}

const Location* ShapeEnv::specialized_at(Expr symbol) const {
  // By way of what it was replaced by: s1 by s0, later s0 by 5.
  for (size_t steps = 0; steps <= replaced_at_.size(); ++steps) {
    const auto place = replaced_at_.find(symbol);
    if (place == replaced_at_.end()) return nullptr;
    const Event& event = log_[place->second];
    if (event.other->is_const()) return &event.location;
    Expr next = event.other;
    while (next->count > 0) next = next->arg(0);
    if (!next->is(Kind::kSymbol)) return nullptr;
    symbol = next;
  }
  return nullptr;
}

void ShapeEnv::settle(Expr condition, bool answer) {
  if (answers_.size() <= condition->id) answers_.resize(arena_.size() + 64);
  answers_[condition->id] = answer ? 1 : 2;
}

std::optional<int64_t> ShapeEnv::hint_int(Expr integer) {
  if (integer->hint.state == Value::State::kUnknown) return std::nullopt;
  if (integer->hint.state == Value::State::kUndefined) not_defined(integer, "is not defined, or does not fit 128 bits");
  if (!fits_int64(integer->hint.integer)) {
    not_defined(integer, ("is " + to_text(integer->hint.integer) + " and does not fit int64").c_str());
  }
  return static_cast<int64_t>(integer->hint.integer);
}

std::optional<double> ShapeEnv::hint_float(Expr real) {
  if (real->hint.state == Value::State::kUnknown) return std::nullopt;
  if (real->hint.state == Value::State::kUndefined) not_defined(real, "is not defined");
  return real->hint.real;
}

std::optional<bool> ShapeEnv::hint_bool(Expr condition) {
  if (condition->hint.state == Value::State::kUnknown) return std::nullopt;
  if (condition->hint.state == Value::State::kUndefined) not_defined(condition, "is not defined: a part of it does not fit 128 bits");
  return condition->hint.integer != 0;
}

Outcome ShapeEnv::add_guard(Expr guard, const Location& location) {
  if (suppressed_ > 0) return Outcome::kGuardSuppressed;
  if (frozen_) {
    if (frozen_hard_) {
      throw Error(ErrorKind::kFrozen,
                  "a new guard, " + to_text(guard) + ", is needed at " + to_text(location) + ", but the guards are frozen");
    }
    return Outcome::kGuardIgnored;
  }
  guards_.push_back({guard, location, false});
  CHECK(facts_->add(guard)) << "the guard " << to_text(guard) << " holds at the hints and contradicts what does too";
  return Outcome::kGuardAdded;
}

bool ShapeEnv::evaluate_new(Expr condition, Site site) {
  check_own(condition);
  if (condition->is_truth()) return condition->value != 0;
  const Expr simple = facts_->simplify(condition);
  if (const std::optional<bool> known = facts_->prove(simple)) {
    Event& event = record(EventKind::kEvaluate, condition, site);
    event.outcome = Outcome::kKnown;
    event.answer = Value::of(*known);
    settle(condition, *known);
    return *known;
  }
  const Location location = site.locate();
  if (simple->unbacked) {
    record(EventKind::kEvaluate, condition, at(location)).outcome = Outcome::kFailed;
    data_dependent(simple, location);
  }
  const bool answer = *hint_bool(simple);
  const Expr guard = answer ? simple : build_.logical_not(simple);
  const size_t place = log_.size();
  record(EventKind::kEvaluate, condition, at(location)).answer = Value::of(answer);
  log_[place].other = guard;
  log_[place].outcome = Outcome::kFailed;
  Outcome outcome = Outcome::kKnown;
  // Each part of a conjunction is a guard of its own, if it does not follow from those before.
  const Expr* parts = guard->is(Kind::kAnd) ? guard->args() : &guard;
  const uint32_t count = guard->is(Kind::kAnd) ? guard->count : 1;
  for (uint32_t i = 0; i < count; ++i) {
    const Expr part = facts_->simplify(parts[i]);
    if (facts_->prove(part) == true) continue;
    outcome = add_guard(part, location);
  }
  log_[place].outcome = outcome;
  if (outcome == Outcome::kGuardAdded) {
    settle(condition, answer);
    record_replacements(location);
  }
  return answer;
}

int64_t ShapeEnv::evaluate_int(Expr integer, Site site) {
  check_own(integer);
  const Expr simple = facts_->simplify(integer);
  if (simple->unbacked) {
    const Location location = site.locate();
    record(EventKind::kEvaluateInt, integer, at(location)).outcome = Outcome::kFailed;
    data_dependent(simple, location);
  }
  const int64_t value = *hint_int(simple);
  if (!simple->is_const()) evaluate(build_.eq(integer, arena_.constant(value)), site);
  return value;
}

double ShapeEnv::evaluate_float(Expr real, Site site) {
  check_own(real);
  const Expr simple = facts_->simplify(real);
  if (simple->unbacked) {
    const Location location = site.locate();
    record(EventKind::kEvaluateFloat, real, at(location)).outcome = Outcome::kFailed;
    data_dependent(simple, location);
  }
  const double value = *hint_float(simple);
  // Of nan nothing can be asserted by ==; a float input that is nan was made a constant.
  if (!simple->is(Kind::kReal) && !std::isnan(value)) evaluate(build_.eq(real, arena_.real(value)), site);
  return value;
}

std::optional<bool> ShapeEnv::statically_known(Expr condition) {
  check_own(condition);
  if (condition->is_truth()) return condition->value != 0;
  if (condition->id < answers_.size() && answers_[condition->id] != 0) return answers_[condition->id] == 1;
  const std::optional<bool> known = facts_->prove(condition);
  if (known) settle(condition, *known);
  return known;
}

bool ShapeEnv::guard_or(Expr condition, bool fallback, Site site) {
  check_own(condition);
  if (const std::optional<bool> known = statically_known(condition)) return *known;
  if (!facts_->simplify(condition)->unbacked) return evaluate(condition, site);
  Event& event = record(EventKind::kGuardOr, condition, site);
  event.flag = fallback;
  event.answer = Value::of(fallback);
  event.outcome = Outcome::kAssumed;
  return fallback;
}

bool ShapeEnv::evaluate_size_oblivious(Expr condition, Site site) {
  check_own(condition);
  if (const std::optional<bool> known = statically_known(condition)) return *known;
  {
    const Facts::Oblivious oblivious(*facts_);
    if (const std::optional<bool> known = facts_->prove(condition)) {
      Event& event = record(EventKind::kObliviousEvaluate, condition, site);
      event.answer = Value::of(*known);
      event.outcome = Outcome::kKnown;
      return *known;
    }
  }
  return evaluate(condition, site);
}

bool ShapeEnv::expect_true(Expr condition, const std::string& message, Site site) {
  check_own(condition);
  if (const std::optional<bool> known = statically_known(condition)) return *known;
  const Expr simple = facts_->simplify(condition);
  if (!simple->unbacked) return evaluate(condition, site);
  const Location location = site.locate();
  const size_t place = log_.size();
  Event& event = record(EventKind::kExpectTrue, condition, at(location));
  event.text = message;
  event.outcome = suppressed_ > 0 ? Outcome::kGuardSuppressed : Outcome::kAsserted;
  if (suppressed_ > 0) return true;
  if (defer(simple, message, location)) return true;
  log_[place].outcome = Outcome::kFailed;
  return false;
}

// States a condition with unbacked symbols, to be checked when the newest of them is known. False: it can't hold.
bool ShapeEnv::defer(Expr condition, const std::string& message, const Location& location) {
  if (condition->is(Kind::kAnd)) {
    for (uint32_t i = 0; i < condition->count; ++i) {
      const Expr part = facts_->simplify(condition->arg(i));
      const std::optional<bool> known = facts_->prove(part);
      if (known == false || (!known && !(part->unbacked ? defer(part, message, location) : evaluate(part, at(location))))) return false;
    }
    return true;
  }
  std::vector<Expr> symbols;
  unbacked_in(condition, &symbols);
  Expr newest = nullptr;
  for (const Expr symbol : symbols) {
    if (newest == nullptr || symbol->value > newest->value) newest = symbol;
  }
  if (!facts_->add(condition)) {
    forget_contradiction();
    return false;
  }
  asserts_.push_back({condition, message, location, newest});
  record_replacements(location);
  return true;
}

// Facts that contradict each other prove anything: what is known is learned anew without the last.
void ShapeEnv::forget_contradiction() {
  std::vector<Expr> size_like;
  for (size_t i = 0; i < arena_.symbol_count(); ++i) {
    if (facts_->is_size_like(arena_.symbol(i))) size_like.push_back(arena_.symbol(i));
  }
  facts_.emplace(arena_);
  for (const Expr symbol : size_like) facts_->set_size_like(symbol);
  for (const Guard& guard : guards_) facts_->add(guard.condition);
  for (const RuntimeAssert& entry : asserts_) facts_->add(entry.condition);
  replacements_seen_ = facts_->replaced().size();
}

void ShapeEnv::data_dependent(Expr condition, const Location& location) {
  std::vector<Expr> symbols;
  unbacked_in(condition, &symbols);
  const std::string text = to_text(condition);
  std::string message;
  if (condition->type == Type::kBool) {
    message = "Could not guard on data-dependent expression " + text + ", asked at " + to_text(location) + ".";
  } else {
    message = "Could not extract one value from data-dependent expression " + text + ", asked at " + to_text(location) + ".";
  }
  for (const Expr symbol : symbols) {
    message += "\n  " + arena_.symbol_name(symbol) + " has no hint: made at " + to_text(created_at_.at(symbol));
    if (symbol->type == Type::kInt) message += ", known to be in " + to_text(facts_->range(symbol));
    if (facts_->is_size_like(symbol)) message += ", used as a size";
  }
  if (condition->type == Type::kBool) {
    message +=
        "\nWhat to write:\n  torch._check(" + text + "), or check() of the ShapeEnv, if it always holds: it is then checked at run time";
    message += "\n  guard_or_false(...) or guard_or_true(...), if the program is right with either answer";
    if (!symbols.empty() && symbols[0]->type == Type::kInt) {
      message += "\n  constrain_range(" + arena_.symbol_name(symbols[0]) + ", min=..., max=...), if its range decides";
    }
    message += "\n  torch.cond(...), if both branches are needed";
  } else if (!symbols.empty()) {
    message += "\nWhat to write:\n  torch._check(" + text + " == VALUE), if it always has one value";
    message += "\n  the symbolic value itself, where int() or an index was asked for";
  }
  throw Error(ErrorKind::kDataDependent, message);
}

void ShapeEnv::suppress_guards() {
  ++suppressed_;
  record(EventKind::kSuppress, nullptr, {});
}

void ShapeEnv::unsuppress_guards() {
  if (suppressed_ == 0) throw Error(ErrorKind::kValue, "guards are not suppressed");
  --suppressed_;
  record(EventKind::kUnsuppress, nullptr, {});
}

void ShapeEnv::freeze(bool new_guards_are_errors) {
  frozen_ = true;
  frozen_hard_ = new_guards_are_errors;
  record(EventKind::kFreeze, nullptr, {}).flag = new_guards_are_errors;
}

}  // namespace pellucid::symbolic
