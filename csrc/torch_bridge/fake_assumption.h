// Composite operators that look at values only to check them: while one of these lives, the question is answered as a check that holds
// would have it, and the result's shape comes out. The real call makes the check.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/Exception.h>

namespace pellucid::bridge {

class AssumedAnswer {
 public:
  explicit AssumedAnswer(bool answer);
  ~AssumedAnswer();
  AssumedAnswer(const AssumedAnswer&) = delete;
  AssumedAnswer& operator=(const AssumedAnswer&) = delete;

 private:
  // What the operator warns of depends on values that nobody has; the real call warns again.
  struct Silent : c10::WarningHandler {
    void process(const c10::Warning& /*warning*/) override {}
  };

  const int8_t previous_;
  Silent silent_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

// Answers an operator whose result is a value (`item`, `equal`) by the assumption. False without one, or for any other operator.
bool answer_by_assumption(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace pellucid::bridge
