// CHECK: an internal invariant. A failed one throws InternalError, which the capture boundary catches; the frame then runs as
// written. It must never be used for conditions a user's program can cause. Knows neither Python nor torch.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace pellucid::base {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition) { out_ << file << ":" << line << ": CHECK(" << condition << ") failed "; }
  template <class T>
  CheckFailure& operator<<(const T& value) {
    out_ << value;
    return *this;
  }
  [[noreturn]] ~CheckFailure() noexcept(false) { throw InternalError(out_.str()); }

 private:
  std::ostringstream out_;
};

}  // namespace pellucid::base

#define CHECK(condition) \
  if (__builtin_expect(!(condition), 0)) ::pellucid::base::CheckFailure(__FILE__, __LINE__, #condition)
