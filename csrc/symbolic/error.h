// What can go wrong in the shape engine because of what a program does. Faults of the engine itself are CHECKs.
#pragma once
#include <stdexcept>
#include <string>

namespace pellucid::symbolic {

enum class ErrorKind {
  kOverflow,       // a value that is asked for does not fit int64
  kZeroDivision,   // a divisor is 0
  kValue,          // a negative or contradictory range, a negative shift, a dimension that does not exist ...
  kForeign,        // an expression of another ShapeEnv
  kDataDependent,  // a question whose answer only the data knows
  kConstraint,     // what the user demanded of a dimension does not hold
  kFrozen,         // a new guard where none may come any more
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace pellucid::symbolic
