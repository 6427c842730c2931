// The decision log of a ShapeEnv: what was asked of it and what came of it, in order. Events that were calls can be replayed on
// another ShapeEnv; the others (replacements) are their consequences.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "symbolic/expr.h"
#include "symbolic/location.h"

namespace pellucid::symbolic {

enum class EventKind : uint8_t {
  kInput,              // a dimension or number from outside: `input` is its place among the inputs
  kUnbacked,           // a symbol without a hint
  kEvaluate,           // a boolean was asked
  kEvaluateInt,        // an int was asked
  kEvaluateFloat,      //
  kGuardOr,            // a boolean was asked with an answer for when it can't be known
  kObliviousEvaluate,  // a boolean was asked, no size being 0 or 1
  kExpectTrue,         // a boolean was stated
  kConstrainRange,     //
  kSize,               // used as a size
  kEqualInputs,        // two inputs were declared equal
  kSuppress,           // guards are not recorded from here
  kUnsuppress,         //
  kFreeze,             //
  kReplacement,        // a consequence: `expr` is now `other`
};

enum class Outcome : uint8_t {
  kNone,
  kKnown,            // followed from what was known
  kGuardAdded,       //
  kGuardSuppressed,  //
  kGuardIgnored,     // frozen
  kAsserted,         // deferred to run time
  kAssumed,          // the answer for when it can't be known
  kFailed,           // an error was raised
};

struct Event {
  EventKind kind = EventKind::kEvaluate;
  Outcome outcome = Outcome::kNone;
  bool flag = false;  // the fallback of kGuardOr; whether kFreeze makes new guards errors
  Expr expr = nullptr;
  Expr other = nullptr;
  Value answer;
  Type type = Type::kBool;
  Range range;
  uint32_t input = 0;
  uint32_t second_input = 0;
  std::string text;  // the source of an input, the message of an assertion
  Location location;
  uint32_t nodes = 0;  // expressions there were
};

std::string to_text(const Event& event);  // "eval s0 > 2 [guard added] at user.py:12"

}  // namespace pellucid::symbolic
