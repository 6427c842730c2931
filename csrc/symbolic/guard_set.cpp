// Choosing the guards that are needed, writing them out, and holding them against what the user demanded of dimensions.
#include "symbolic/guard_set.h"

#include <algorithm>
#include <cmath>
#include <optional>

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
      // 0 and 1 are compiled for by themselves anyway.
      if (constraint.kind == Constraint::Kind::kRelaxed && input.expr->is_const() && (now->value == 0 || now->value == 1)) continue;
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
    if (violations_.empty()) check_ranges();
  }

  // Guards that each leave a strictly constrained input all its values may leave it fewer together.
  void check_ranges() {
    std::optional<Facts> declared;
    for (const auto& [symbol, place] : places_) {
      const Input& input = env_.inputs()[place];
      if (input.spec.constraint.kind != Constraint::Kind::kStrict || symbol->unbacked || env_.simplify(symbol)->is_const()) continue;
      const Range all = intersect(input.spec.constraint.range, symbol->range);
      if (all.within(env_.range(symbol))) continue;
      if (!declared) {
        declared.emplace(env_.arena());
        for (const Guard& guard : env_.guards()) {
          if (guard.declared) declared->add(guard.condition);
        }
      }
      const Range possible = env_.range(symbol);
      if (declared->range(symbol).within(possible)) continue;  // that is what the user said
      const Guard* last = nullptr;
      for (const Guard& guard : chosen_) {
        std::vector<Expr> symbols;
        symbols_of(guard.condition, &symbols);
        if (!guard.declared && std::find(symbols.begin(), symbols.end(), symbol) != symbols.end()) last = &guard;
      }
      std::string text = "Not all values of " + declared_text({symbol, &input, all}) + " satisfy the guards";
      if (last != nullptr) text += ", of which the last is " + text_of(last->condition);
      if (last != nullptr && last->location.known()) text += ", which was made at " + to_text(last->location);
      violations_.push_back(text + ". Suggested fix: declare " + input.source + " with the range " + to_text(possible));
    }
    std::sort(violations_.begin(), violations_.end());  // places are in no order
  }

  struct Strict {
    Expr symbol;
    const Input* input;
    Range declared;
  };

  std::string declared_text(const Strict& strict) const {
    std::string text = strict.input->source + " in " + to_text(strict.declared);
    if (strict.input->location.known()) text += " (declared at " + to_text(strict.input->location) + ")";
    return text;
  }

  // A guard must hold for each value of a strictly constrained input. One that relates several inputs does where every value of this one
  // has a partner; where all of them are declared so, it must hold for all their values.
  void check_strict(const Guard& guard) {
    if (guard.declared) return;
    std::vector<Expr> symbols;
    symbols_of(guard.condition, &symbols);
    std::vector<Strict> stricts;
    for (const Expr symbol : symbols) {
      const auto place = places_.find(symbol);
      if (place == places_.end()) continue;
      const Input& input = env_.inputs()[place->second];
      if (input.spec.constraint.kind != Constraint::Kind::kStrict || env_.simplify(symbol)->is_const()) continue;
      stricts.push_back({symbol, &input, intersect(input.spec.constraint.range, symbol->range)});
    }
    if (stricts.empty()) return;
    std::sort(stricts.begin(), stricts.end(), [](const Strict& a, const Strict& b) { return a.input < b.input; });
    Facts declared(env_.arena());
    for (const Strict& strict : stricts) declared.bound(strict.symbol, strict.declared);
    if (declared.prove(guard.condition) == true) return;
    Facts narrowed(env_.arena());
    for (const Strict& strict : stricts) narrowed.bound(strict.symbol, strict.declared);
    narrowed.add(guard.condition);
    const bool equality = guard.condition->is(Kind::kEq0);
    const auto narrower = [&](const Strict& strict) { return narrowed.range(strict.symbol) != strict.declared; };
    const bool any_narrower = std::any_of(stricts.begin(), stricts.end(), narrower);
    if (symbols.size() > stricts.size() && !equality && !any_narrower) return;  // the others make up for it
    std::string text = "Not all values of ";
    for (size_t i = 0; i < stricts.size(); ++i) text += (i == 0 ? "" : " and ") + declared_text(stricts[i]);
    text += " satisfy the guard " + text_of(guard.condition);
    if (guard.location.known()) text += ", which was made at " + to_text(guard.location);
    text += ". Suggested fix: ";
    if (symbols.size() == 1) {
      text += any_narrower ? "declare " + stricts[0].input->source + " with the range " + to_text(narrowed.range(stricts[0].symbol))
                           : "declare only that " + stricts[0].input->source + " is dynamic, without a range in which every value must do";
    } else if (const std::string equal = as_equal_inputs(guard.condition); !equal.empty()) {
      text += "declare the dimensions equal (declare_equal(" + equal + ")), or change the program there";
    } else if (equality) {
      text += "declare only that they are dynamic, without ranges in which every value must do, or change the program there";
    } else {
      text += any_narrower ? "declare" : "declare only that they are dynamic";
      for (const Strict& strict : stricts) {
        if (narrower(strict)) text += " " + strict.input->source + " with the range " + to_text(narrowed.range(strict.symbol)) + ",";
      }
      text +=
          any_narrower ? " if the relation is to hold of all that remain, or change the program there" : ", or change the program there";
    }
    violations_.push_back(text);
  }

  // The two inputs that an equality says are the same, as arguments; empty for any other condition.
  std::string as_equal_inputs(Expr condition) const {
    if (!condition->is(Kind::kEq0)) return {};
    const LinearView view(condition->arg(0));
    if (view.count() != 2 || view.constant() != 0 || view.coefficient(0) != -view.coefficient(1)) return {};
    if (!view.factor(0)->is(Kind::kSymbol) || !view.factor(1)->is(Kind::kSymbol)) return {};
    return text_of(view.factor(0)) + ", " + text_of(view.factor(1));
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
