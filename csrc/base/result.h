// Result<T>: a value or the reason why there is none. "Cannot trace" is a value that travels through return types, never a C++
// exception. TRY(expression) gives the value or returns the failure from the enclosing function.
#pragma once
#include <type_traits>
#include <utility>

namespace pellucid::base {

struct Failure;  // defined by the layer that fails (variables/failure.h); owned by the capture

struct Failed {  // converts to any Result
  const Failure* failure;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Failed failed) : failure_(failed.failure) {}
  bool ok() const { return failure_ == nullptr; }
  const Failure* failure() const { return failure_; }
  T& value() { return value_; }

 private:
  T value_{};
  const Failure* failure_ = nullptr;
};

struct Unit {};
using Status = Result<Unit>;

}  // namespace pellucid::base

#define TRY(expression)                                                            \
  __extension__({                                                                  \
    auto try_result_ = (expression);                                               \
    if (!try_result_.ok()) return ::pellucid::base::Failed{try_result_.failure()}; \
    std::move(try_result_.value());                                                \
  })
