// Replaying a decision log: every question again, in order, on a ShapeEnv that has seen none.
#include "symbolic/shape_env.h"
#include "symbolic/translate.h"

namespace pellucid::symbolic {

void Translator::advance(size_t count) {
  std::vector<Expr> args;
  while (done_.size() < count) {
    const Expr expr = from_.node(done_.size());
    if (expr->is(Kind::kSymbol)) {
      const auto index = static_cast<size_t>(expr->value);
      if (index >= into_.symbol_count()) return;
      done_.push_back(into_.symbol(index));
      continue;
    }
    args.clear();
    for (uint32_t i = 0; i < expr->count; ++i) args.push_back(done_[expr->arg(i)->id]);
    const Int* coefficients = expr->is_sum() ? expr->coefficients() : nullptr;
    done_.push_back(into_.intern(expr->kind, expr->type, args.data(), coefficients, expr->count, expr->value, expr->digits - 128));
  }
}

Expr Translator::operator()(Expr expr) {
  advance(expr->id + 1);
  if (expr->id >= done_.size()) throw Error(ErrorKind::kValue, "the log uses a symbol before it was made");
  return done_[expr->id];
}

void ShapeEnv::replay(const ShapeEnv& other) {
  if (arena_.symbol_count() != 0 || !log_.empty()) throw Error(ErrorKind::kValue, "a log is replayed on a fresh ShapeEnv");
  Translator translate(other.arena_, arena_);
  const std::vector<Input>& inputs = other.inputs_;
  for (const Event& event : other.log_) {
    const Site site = at(event.location);
    translate.advance(event.nodes);
    try {
      switch (event.kind) {
        case EventKind::kInput: {
          const Input& input = inputs[event.input];
          if (input.type == Type::kFloat) {
            create_float(input.hint.real, input.source, site);
          } else if (input.size) {
            create_size(static_cast<int64_t>(input.hint.integer), input.source, input.spec, site);
          } else {
            create_int(static_cast<int64_t>(input.hint.integer), input.source, input.spec.constraint, site);
          }
          break;
        }
        case EventKind::kUnbacked:
          if (event.type == Type::kInt) create_unbacked_int(site, event.text);
          if (event.type == Type::kFloat) create_unbacked_float(site);
          if (event.type == Type::kBool) create_unbacked_bool(site);
          break;
        case EventKind::kEvaluate:
          evaluate(translate(event.expr), site);
          break;
        case EventKind::kEvaluateInt:
          evaluate_int(translate(event.expr), site);
          break;
        case EventKind::kEvaluateFloat:
          evaluate_float(translate(event.expr), site);
          break;
        case EventKind::kGuardOr:
          guard_or(translate(event.expr), event.flag, site);
          break;
        case EventKind::kObliviousEvaluate:
          evaluate_size_oblivious(translate(event.expr), site);
          break;
        case EventKind::kExpectTrue:
          expect_true(translate(event.expr), event.text, site);
          break;
        case EventKind::kConstrainRange:
          constrain_range(translate(event.expr), event.range, site);
          break;
        case EventKind::kSize:
          use_as_size(translate(event.expr), site);
          break;
        case EventKind::kEqualInputs:
          declare_equal(inputs[event.input].source, inputs[event.second_input].source, site);
          break;
        case EventKind::kSuppress:
          suppress_guards();
          break;
        case EventKind::kUnsuppress:
          unsuppress_guards();
          break;
        case EventKind::kFreeze:
          freeze(event.flag);
          break;
        case EventKind::kReplacement:
          break;  // comes by itself
      }
    } catch (const Error&) {
      if (event.outcome != Outcome::kFailed) throw;  // it failed then too
    }
  }
}

}  // namespace pellucid::symbolic
