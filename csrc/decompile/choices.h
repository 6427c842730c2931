// Decisions that bytecode leaves open: more than one source compiles to nearly the same instructions, and only compiling tells which one
// compiles to the very same. Each is made the likely way unless the caller turns it around. Knows nothing of what is decided.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace pellucid::decompile {

enum class ChoiceKind : uint8_t {
  kJoin,        // conditions one behind the other are one condition
  kElse,        // what follows a branch that does not go on is its else clause
  kContinue,    // a jump back to the loop around stands in the source
  kBehind,      // a branch that leads back to the loop around jumps over nothing, but to a `continue` behind it
  kReturn,      // a return of None stands in the source
  kJump,        // a jump stands in the source
  kTested,      // what a loop begins with is its test
  kInside,      // code that a loop leads to and that does not come back stands inside of it
  kPass,        // an instruction without effect is a `pass`
  kEmptyElse,   // `else: pass`
  kTryElse,     // what follows the body of a try statement is its else clause
  kCopy,        // an exit is a copy of another one
  kEndsInside,  // what follows a guarded body is part of it
  kUnreached,   // behind a statement that leaves stands code that nothing reaches
  kUnreachedElse,
  kUnreachedEnd,
  // Where they are turned, for instruction 0: what the code object holds is printed with the original's lines, or without them, whatever
  // holds for what is around it.
  kWithLines,
  kWithoutLines,
  kUnreachedIf,  // what is left of a condition that was a false constant
};

struct Choice {
  std::string code;  // name and first line of the code object
  ChoiceKind kind = ChoiceKind::kJoin;
  int instruction = 0;

  bool operator<(const Choice& other) const {
    return std::tie(instruction, kind, code) < std::tie(other.instruction, other.kind, other.code);
  }
};

class Choices {
 public:
  Choices() = default;
  explicit Choices(std::set<Choice> turned) : turned_(std::move(turned)) {}

  // How to decide, given what is likely.
  bool decide(const std::string& code, ChoiceKind kind, int instruction, bool likely) {
    const Choice& choice = log_.emplace_back(Choice{code, kind, instruction});
    return !turned_.empty() && turned_.count(choice) != 0 ? !likely : likely;
  }

  std::set<Choice> made() const { return {log_.begin(), log_.end()}; }

  // A reading that failed takes back what was decided since a point in time; what another one decided may be added again.
  size_t now() const { return log_.size(); }
  std::vector<Choice> since(size_t then) const { return {log_.begin() + static_cast<std::ptrdiff_t>(then), log_.end()}; }
  void back_to(size_t then) { log_.erase(log_.begin() + static_cast<std::ptrdiff_t>(then), log_.end()); }
  void add(const std::vector<Choice>& others) { log_.insert(log_.end(), others.begin(), others.end()); }

 private:
  std::set<Choice> turned_;
  std::vector<Choice> log_;
};

class CodeChoices {  // those of one code object
 public:
  CodeChoices(Choices& all, std::string code) : all_(&all), code_(std::move(code)) {}
  bool decide(ChoiceKind kind, int instruction, bool likely) const { return all_->decide(code_, kind, instruction, likely); }

 private:
  Choices* all_;
  std::string code_;
};

}  // namespace pellucid::decompile
