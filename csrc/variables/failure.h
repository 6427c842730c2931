// Failure: why symbolic execution of an instruction did not give a value. Three kinds that are never mixed: a graph break with its
// reason, an exception of the traced program, and a real Python exception that must leave the capture (KeyboardInterrupt, an error
// of a backend).
#pragma once
#include <string>

#include "base/result.h"

namespace pellucid::variables {

enum class Reason : uint16_t {
#define BREAK_REASON(id, title, explanation, hint) id,
#include "variables/break_reasons.def"
#undef BREAK_REASON
};

struct ReasonText {
  const char* id;
  const char* title;
  const char* explanation;
  const char* hint;
};
const ReasonText& reason_text(Reason reason);

struct Variable;

}  // namespace pellucid::variables

namespace pellucid::base {

struct Failure {
  enum class Kind : uint8_t {
    kBreak,    // graph break: reason, detail
    kRaise,    // the traced program raised `exception`
    kFatal,    // a Python exception is set and leaves the capture
    kRestart,  // translate again with one more forced break (recorded in the tracer)
    kSkip,     // this frame must run as written (reason, detail)
  };
  Kind kind = Kind::kBreak;
  variables::Reason reason{};
  std::string detail;
  variables::Variable* exception = nullptr;
};

}  // namespace pellucid::base

namespace pellucid::variables {
using base::Failed;
using base::Failure;
using base::Result;
using base::Status;
using base::Unit;
}  // namespace pellucid::variables
