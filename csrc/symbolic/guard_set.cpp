// Choosing the guards that are needed, writing them out, and holding them against what the user demanded of dimensions.
#include "symbolic/guard_set.h"

#include <algorithm>
#include <cmath>

#include "symbolic/print.h"

namespace pellucid::symbolic {

namespace {

constexpr size_t kExactly = 32;  // so few guards are each tried against all others

void symbols_of(Expr root, std::vector<Expr>* out) {
  std::vector<Expr> pending{root};
  while (!pending.empty()) {
    const Expr expr = pending.back();
    pending.pop_back();
    if (expr->is(Kind::kSymbol) && std::find(out->begin(), out->end(), expr) == out->end()) out->push_back(expr);
    pending.insert(pending.end(), expr->args(), expr->args() + expr->count);
  }
}

// The symbol and range of a condition that bounds one symbol, or null.
Expr as_bound(Expr condition, Range* range) {
  if (!condition->is(Kind::kLe0)) return nullptr;
  const LinearView view(condition->arg(0));
  if (view.count() != 1 || !view.factor(0)->is(Kind::kSymbol) || abs_of(view.coefficient(0)) != 1) return nullptr;
  *range = view.coefficient(0) > 0 ? Range{-kInfinity, -view.constant()} : Range{view.constant(), kInfinity};
  return view.factor(0);
}

struct Bounds {
  Range range;
  Location lo;
  Location hi;
};

class Producer {
 public:
  Producer(ShapeEnv& env, bool skip_static) : env_(env), skip_static_(skip_static) {}

  GuardSet produce() {
    place_symbols();
    check_specializations();
    choose();
    write_inputs();
    write_conditions();
    write_bounds();
    if (!violations_.empty()) {
      std::string message = "Constraints violated:";
      for (const std::string& violation : violations_) message += "\n  - " + violation;
      throw Error(ErrorKind::kConstraint, message);
    }
    return std::move(result_);
  }

 private:
  std::string text_of(Expr expr) const {
    return to_text(expr, [&](Expr symbol) {
      const auto place = places_.find(symbol);
      return place == places_.end() ? env_.arena().symbol_name(symbol) : env_.inputs()[place->second].source;
    });
  }

  uint32_t add_row(std::string text, const Location& location, Expr condition) {
    result_.rows.push_back({std::move(text), location, condition});
    return static_cast<uint32_t>(result_.rows.size() - 1);
  }

  void place_symbols() {
    const std::vector<Input>& inputs = env_.inputs();
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].expr->is(Kind::kSymbol)) places_.try_emplace(inputs[i].expr, i);
    }
  }

  // Inputs that were demanded to be dynamic and are one value now.
  void check_specializations() {
    for (const Input& input : env_.inputs()) {
      const Constraint& constraint = input.spec.constraint;
      if (constraint.kind == Constraint::Kind::kNone || constraint.range.single()) continue;
      const Expr now = env_.simplify(input.expr);
      if (!now->is_const()) continue;
      const std::string source = input.source;
      const std::string value = to_text(now->value);
      std::string text = source + " was declared dynamic" + (input.location.known() ? " (at " + to_text(input.location) + ")" : "");
      if (input.expr->is_const()) {
        text +=
            ", but sizes 0 and 1 are specialized, and it is " + value + ". Suggested fix: trace with a larger size, or declare it static";
      } else {
        const Location* location = env_.specialized_at(input.expr);
        text += ", but the program specialized it to " + value;
        if (location != nullptr && location->known()) text += " at " + to_text(*location);
        text += ". Suggested fix: change the program there so that it does not depend on the exact value, or declare " + source +
                " static (" + source + " = " + value + ")";
      }
      violations_.push_back(text);
    }
  }

  void choose() {
    std::vector<Expr> conditions;
    for (const Guard& guard : env_.guards()) conditions.push_back(guard.condition);
    for (const size_t index : minimal(env_.arena(), conditions)) chosen_.push_back(env_.guards()[index]);
    // Of symbols that are equal one is written, so that bounds of both come together.
    Facts equalities(env_.arena());
    for (const Guard& guard : chosen_) {
      if (guard.condition->is(Kind::kEq0)) equalities.add(guard.condition);
    }
    if (!equalities.replaced().empty()) {
      for (Guard& guard : chosen_) {
        if (!guard.condition->is(Kind::kEq0)) guard.condition = equalities.simplify(guard.condition);
      }
    }
    for (const Guard& guard : chosen_) check_strict(guard);
  }

  // A guard on one strictly constrained input must hold for each of its values.
  void check_strict(const Guard& guard) {
    if (guard.declared) return;
    std::vector<Expr> symbols;
    symbols_of(guard.condition, &symbols);
    for (const Expr symbol : symbols) {
      const auto place = places_.find(symbol);
      if (place == places_.end()) continue;
      const Input& input = env_.inputs()[place->second];
      if (input.spec.constraint.kind != Constraint::Kind::kStrict || env_.simplify(symbol)->is_const()) continue;
      if (symbols.size() > 1 && !guard.condition->is(Kind::kEq0)) continue;  // a relation to others may hold for all values of this one
      const Range declared = intersect(input.spec.constraint.range, symbol->range);
      Facts facts(env_.arena());
      facts.bound(symbol, declared);
      if (facts.prove(guard.condition) == true) continue;
      std::string text = "Not all values of " + input.source + " in " + to_text(declared);
      if (input.location.known()) text += " (declared at " + to_text(input.location) + ")";
      text += " satisfy the guard " + text_of(guard.condition);
      if (guard.location.known()) text += ", which was made at " + to_text(guard.location);
      text += ". Suggested fix: ";
      Facts narrowed(env_.arena());
      narrowed.bound(symbol, declared);
      narrowed.add(guard.condition);
      const Range possible = narrowed.range(symbol);
      if (symbols.size() == 1 && possible != declared) {
        text += "declare " + input.source + " with the range " + to_text(possible);
      } else if (symbols.size() == 1) {
        text += "declare only that " + input.source + " is dynamic, without a range in which every value must do";
      } else {
        text += "declare the dimensions equal, or change the program there";
      }
      violations_.push_back(text);
      return;
    }
  }

  void write_inputs() {
    const std::vector<Input>& inputs = env_.inputs();
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      const Input& input = inputs[i];
      if (!input.expr->is(Kind::kSymbol)) {
        if (skip_static_) continue;
        if (input.type == Type::kFloat) {
          const double value = input.expr->real();
          const std::string text = std::isnan(value) ? "math.isnan(" + input.source + ")" : input.source + " == " + to_text(value);
          result_.program.add_same_real(i, value, add_row(text, input.location, nullptr));
        } else {
          const uint32_t row = add_row(input.source + " == " + to_text(input.expr->value), input.location, nullptr);
          result_.program.add_range(i, {input.expr->value, input.expr->value}, row);
        }
        continue;
      }
      const uint32_t first = places_.at(input.expr);
      if (first != i) {
        result_.program.add_same(i, first, add_row(input.source + " == " + inputs[first].source, input.location, nullptr));
      } else if (input.type == Type::kFloat) {
        result_.program.add_not_nan(i, add_row("not math.isnan(" + input.source + ")", input.location, nullptr));
      }
    }
  }

  void write_conditions() {
    for (const Guard& guard : chosen_) {
      if (guard.condition->is_truth()) continue;  // follows from the equalities
      Range range;
      if (const Expr symbol = as_bound(guard.condition, &range)) {
        Bounds& bounds = bounds_.try_emplace(symbol, Bounds{symbol->range, {}, {}}).first->second;
        if (range.lo > bounds.range.lo) bounds.lo = guard.location;
        if (range.hi < bounds.range.hi) bounds.hi = guard.location;
        bounds.range = intersect(bounds.range, range);
        continue;
      }
      const uint32_t row = add_row(text_of(guard.condition), guard.location, guard.condition);
      result_.program.add_condition(guard.condition, places_, row);
    }
  }

  // What symbols were born with, and what guards say of one symbol alone.
  void write_bounds() {
    const std::vector<Input>& inputs = env_.inputs();
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      const Expr symbol = inputs[i].expr;
      if (!symbol->is(Kind::kSymbol) || symbol->type != Type::kInt || places_.at(symbol) != i) continue;
      const auto found = bounds_.find(symbol);
      const Range range = found == bounds_.end() ? symbol->range : found->second.range;
      // The least and most that any value of this kind has. 0 and above goes without saying for sizes.
      const Int least = inputs[i].size ? 0 : kMinValue;
      Location location = inputs[i].location;
      if (found != bounds_.end()) location = found->second.hi.known() ? found->second.hi : found->second.lo;
      if (found == bounds_.end() && follows_from_replacement(symbol)) continue;
      const bool low = range.lo > least;
      const bool high = range.hi < kMaxValue;
      std::string text;
      if (range.single()) {
        text = inputs[i].source + " == " + to_text(range.lo);
      } else if (low && high) {
        text = to_text(range.lo) + " <= " + inputs[i].source + " <= " + to_text(range.hi);
      } else if (low) {
        text = to_text(range.lo) + " <= " + inputs[i].source;
      } else if (high) {
        text = inputs[i].source + " <= " + to_text(range.hi);
      }
      // The ends of int64 are refused without a word.
      const uint32_t row = text.empty() ? UINT32_MAX : add_row(text, location, nullptr);
      result_.program.add_range(i, range, row);
    }
  }

  // Whether a symbol lies in the range it was born with because what it equals does, whatever guards say.
  bool follows_from_replacement(Expr symbol) {
    if (!equalities_known_) {
      equalities_known_ = true;
      for (const Guard& guard : chosen_) {
        if (!guard.condition->is(Kind::kEq0)) continue;
        const LinearView view(guard.condition->arg(0));
        for (uint32_t i = 0; i < view.count(); ++i) equalities_[view.factor(i)].push_back({guard.condition->arg(0), view.coefficient(i)});
      }
    }
    const auto found = equalities_.find(symbol);
    if (found == equalities_.end() || env_.simplify(symbol) == symbol) return false;
    for (const Term& equality : found->second) {  // a form that is 0, and the symbol's coefficient in it
      if (abs_of(equality.coefficient) != 1) continue;
      Builder build(env_.arena());
      const Expr by = build.sub(symbol, build.scale(equality.factor, equality.coefficient));
      if (by->range.within(symbol->range)) return true;
    }
    return false;
  }

  ShapeEnv& env_;
  const bool skip_static_;
  GuardProgram::Places places_;
  std::vector<Guard> chosen_;
  std::unordered_map<Expr, Bounds> bounds_;
  std::unordered_map<Expr, std::vector<Term>> equalities_;
  bool equalities_known_ = false;
  std::vector<std::string> violations_;
  GuardSet result_;
};

}  // namespace

std::vector<size_t> minimal(Arena& arena, const std::vector<Expr>& conditions) {
  // Equalities first: one says more than the two relations that it follows from.
  std::vector<size_t> order;
  for (size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i]->is(Kind::kEq0)) order.push_back(i);
  }
  const auto equalities = static_cast<std::ptrdiff_t>(order.size());
  for (size_t i = 0; i < conditions.size(); ++i) {
    if (!conditions[i]->is(Kind::kEq0)) order.push_back(i);
  }
  const auto needed = [&](const std::vector<size_t>& candidates) {
    Facts facts(arena);
    std::vector<size_t> kept;
    for (const size_t i : candidates) {
      if (facts.prove(conditions[i]) == true) continue;
      facts.add(conditions[i]);
      kept.push_back(i);
    }
    return kept;
  };
  // From the last to the first, then from the first to the last: whatever is dropped follows from what is kept at that moment, and
  // that either stays or follows from what stays.
  std::reverse(order.begin(), order.begin() + equalities);
  std::reverse(order.begin() + equalities, order.end());
  std::vector<size_t> kept = needed(order);
  std::sort(kept.begin(), kept.end(), [&](size_t a, size_t b) {
    const bool equality_a = conditions[a]->is(Kind::kEq0);
    return equality_a != conditions[b]->is(Kind::kEq0) ? equality_a : a < b;
  });
  kept = needed(kept);
  if (kept.size() <= kExactly) {
    for (size_t i = kept.size(); i-- > 0;) {
      Facts facts(arena);
      for (size_t j = 0; j < kept.size(); ++j) {
        if (j != i) facts.add(conditions[kept[j]]);
      }
      if (facts.prove(conditions[kept[i]]) == true) kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

GuardSet produce_guards(ShapeEnv& env, bool skip_static) { return Producer(env, skip_static).produce(); }

}  // namespace pellucid::symbolic
