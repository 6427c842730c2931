// Facts: simplifying with what is known, and the bookkeeping of what changed.
#include "symbolic/facts.h"

#include <algorithm>

namespace pellucid::symbolic {

namespace {

constexpr int kDeepest = 1500;  // of recursion into an expression; below it nothing is simplified, which is always right

}  // namespace

Facts::OfSymbol& Facts::of(Expr symbol) {
  const auto index = static_cast<size_t>(symbol->value);
  while (symbols_.size() <= index) {
    OfSymbol facts;
    facts.range = arena_.symbol(symbols_.size())->range;
    symbols_.push_back(std::move(facts));
  }
  return symbols_[index];
}

void Facts::set_size_like(Expr symbol) {
  if (of(symbol).size_like) return;
  of(symbol).size_like = true;
  touch(symbol->symbols);
}

bool Facts::is_size_like(Expr symbol) const {
  const auto index = static_cast<size_t>(symbol->value);
  return index < symbols_.size() && symbols_[index].size_like;
}

void Facts::touch(uint64_t symbols) {
  ++version_;
  // What a symbol was replaced by changes with what it was replaced by.
  for (uint64_t seen = 0, left = symbols; left != 0; left = symbols & ~seen) {
    seen |= left;
    for (; left != 0; left &= left - 1) symbols |= dependents_[static_cast<size_t>(__builtin_ctzll(left))];
  }
  for (; symbols != 0; symbols &= symbols - 1) changed_[static_cast<size_t>(__builtin_ctzll(symbols))] = version_;
}

uint64_t Facts::changed(uint64_t symbols) const {
  uint64_t last = 0;
  for (; symbols != 0; symbols &= symbols - 1) last = std::max(last, changed_[static_cast<size_t>(__builtin_ctzll(symbols))]);
  return last;
}

Expr Facts::replacement(Expr symbol) {
  const Expr simple = simplify(symbol);
  return simple == symbol ? nullptr : simple;
}

Expr Facts::simplify(Expr expr) {
  if (expr->is_literal()) return expr;
  const auto mode = static_cast<size_t>(mode_);
  if (simplified_[mode].size() <= expr->id) simplified_[mode].resize(std::max<size_t>(arena_.size() + 64, expr->id + 1));
  const Memo<Expr>& memo = simplified_[mode][expr->id];
  if (fresh(memo.version, expr)) return memo.value;
  if (depth_ > kDeepest) return expr;
  arena_.count_work(1);
  ++depth_;
  const uint64_t started = version_;
  Expr result = expr;
  if (expr->is(Kind::kSymbol)) {
    const Expr by = of(expr).replacement;
    if (by != nullptr) result = simplify(by);
  } else {
    Expr local[8];
    std::vector<Expr> more;
    Expr* args = local;
    if (expr->count > std::size(local)) {
      more.resize(expr->count);
      args = more.data();
    }
    bool changed = false;
    bool plain = expr->is_sum();  // a sum of symbols has nothing to gain
    for (uint32_t i = 0; i < expr->count; ++i) {
      args[i] = simplify(expr->arg(i));
      changed |= args[i] != expr->arg(i);
      plain &= args[i]->is(Kind::kSymbol);
    }
    if (changed || !plain) result = build_.rebuild(expr, args);
  }
  if (result->type == Type::kInt && !result->is_const()) {
    const Range values = range(result);
    if (values.single() && !values.empty()) result = arena_.constant(values.lo);
  } else if (result->type == Type::kBool && !result->is_truth()) {
    const auto known = known_.find(result);
    if (known != known_.end()) result = arena_.truth(known->second);
  }
  --depth_;
  // Simplifying never changes facts, so this is what holds now.
  if (simplified_[mode].size() <= std::max(expr->id, result->id)) simplified_[mode].resize(arena_.size() + 64);
  simplified_[mode][expr->id] = {result, started};
  return result;
}

Expr Facts::simplify_anew(Expr condition) {
  std::vector<Expr> args;
  for (uint32_t i = 0; i < condition->count; ++i) args.push_back(simplify(condition->arg(i)));
  return build_.rebuild(condition, args.data());
}

Range Facts::range(Expr integer) {
  if (integer->is_literal()) return integer->range;
  const auto mode = static_cast<size_t>(mode_);
  if (ranges_[mode].size() <= integer->id) ranges_[mode].resize(std::max<size_t>(arena_.size() + 64, integer->id + 1));
  const Memo<Range>& memo = ranges_[mode][integer->id];
  if (fresh(memo.version, integer)) return memo.value;
  if (depth_ > kDeepest) return integer->range;
  arena_.count_work(1);
  ++depth_;
  const Range result = range_uncached(integer);
  --depth_;
  if (ranges_[mode].size() <= integer->id) ranges_[mode].resize(arena_.size() + 64);
  ranges_[mode][integer->id] = {result, version_};
  return result;
}

}  // namespace pellucid::symbolic
