// The decision log as text, one line an event.
#include "symbolic/log.h"

#include "symbolic/print.h"

namespace pellucid::symbolic {

namespace {

const char* outcome_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::kNone:
      return "";
    case Outcome::kKnown:
      return " [statically known]";
    case Outcome::kGuardAdded:
      return " [guard added]";
    case Outcome::kGuardSuppressed:
      return " [guard suppressed]";
    case Outcome::kGuardIgnored:
      return " [guard ignored: frozen]";
    case Outcome::kAsserted:
      return " [runtime assertion]";
    case Outcome::kAssumed:
      return " [data-dependent, assumed]";
    case Outcome::kFailed:
      return " [error]";
  }
  return "";
}

std::string answer_text(const Event& event) {
  if (!event.answer.known()) return "";
  switch (event.type) {
    case Type::kBool:
      return event.answer.integer != 0 ? "True" : "False";
    case Type::kInt:
      return to_text(event.answer.integer);
    case Type::kFloat:
      return to_text(event.answer.real);
  }
  return "";
}

}  // namespace

std::string to_text(const Event& event) {
  std::string line;
  const std::string expr = event.expr == nullptr ? "" : to_text(event.expr);
  switch (event.kind) {
    case EventKind::kInput:
      line = "input " + event.text + " = " + answer_text(event);
      line += event.expr->is(Kind::kSymbol) ? " as " + expr + " " + to_text(event.expr->range) : " [static]";
      break;
    case EventKind::kUnbacked:
      line = "unbacked " + expr;
      break;
    case EventKind::kEvaluate:
    case EventKind::kObliviousEvaluate: {
      // A guard is written as it holds: `not (s0 > 2)` is `s0 <= 2`.
      line = event.kind == EventKind::kEvaluate ? "eval " : "eval size-oblivious ";
      const bool guard = event.outcome == Outcome::kGuardAdded || event.outcome == Outcome::kGuardSuppressed;
      line += guard && event.other != nullptr ? to_text(event.other) : expr + (event.answer.known() ? " == " + answer_text(event) : "");
      break;
    }
    case EventKind::kEvaluateInt:
      line = "int " + expr + (event.answer.known() ? " == " + answer_text(event) : "");
      break;
    case EventKind::kEvaluateFloat:
      line = "float " + expr + (event.answer.known() ? " == " + answer_text(event) : "");
      break;
    case EventKind::kGuardOr:
      line =
          std::string(event.flag ? "guard_or_true " : "guard_or_false ") + expr + (event.answer.known() ? " == " + answer_text(event) : "");
      break;
    case EventKind::kExpectTrue:
      line = "check " + expr;
      break;
    case EventKind::kConstrainRange:
      line = "constrain " + expr + " " + to_text(event.range);
      break;
    case EventKind::kSize:
      line = "size " + expr;
      break;
    case EventKind::kEqualInputs:
      line = "equal inputs " + event.text;
      break;
    case EventKind::kSuppress:
      line = "suppress guards";
      break;
    case EventKind::kUnsuppress:
      line = "record guards again";
      break;
    case EventKind::kFreeze:
      line = event.flag ? "freeze, new guards are errors" : "freeze";
      break;
    case EventKind::kReplacement:
      line = "replace " + expr + " by " + to_text(event.other);
      break;
  }
  line += outcome_text(event.outcome);
  if (event.location.known()) line += " at " + to_text(event.location);
  return line;
}

}  // namespace pellucid::symbolic
