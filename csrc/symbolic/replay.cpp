// Replaying a decision log: every question again, in order, on a ShapeEnv that has seen none.
#include "base/check.h"
#include "symbolic/shape_env.h"
#include "symbolic/translate.h"

namespace pellucid::symbolic {

Expr Translator::operator()(Expr root) {
  std::vector<Expr> pending{root};
  std::vector<Expr> args;
  while (!pending.empty()) {
    const Expr expr = pending.back();
    if (done_.count(expr) != 0) {
      pending.pop_back();
      continue;
    }
    const size_t before = pending.size();
    for (uint32_t i = 0; i < expr->count; ++i) {
      if (done_.count(expr->arg(i)) == 0) pending.push_back(expr->arg(i));
    }
    if (pending.size() != before) continue;
    pending.pop_back();
    Expr& made = done_[expr];
    switch (expr->kind) {
      case Kind::kConst:
        made = into_.constant(expr->value);
        break;
      case Kind::kTruth:
        made = into_.truth(expr->value != 0);
        break;
      case Kind::kReal:
        made = into_.real(expr->real());
        break;
      case Kind::kSymbol:
        if (static_cast<size_t>(expr->value) >= into_.arena().symbol_count()) {
          throw Error(ErrorKind::kValue, "the log uses a symbol before it was made");
        }
        made = into_.arena().symbol(static_cast<size_t>(expr->value));
        break;
      default:
        args.clear();
        for (uint32_t i = 0; i < expr->count; ++i) args.push_back(done_.at(expr->arg(i)));
        done_[expr] = into_.rebuild(expr, args.data());
    }
  }
  return done_.at(root);
}

void ShapeEnv::replay(const std::vector<Event>& events, const std::vector<Input>& inputs) {
  if (arena_.symbol_count() != 0 || !log_.empty()) throw Error(ErrorKind::kValue, "a log is replayed on a fresh ShapeEnv");
  Translator translate(build_);
  for (const Event& event : events) {
    const Site site = at(event.location);
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
