// What a capture tells people: exceptions of fullgraph=True, the report of an entry, log records.
#pragma once
#include <chrono>

#include "translate/instruction_translator.h"

namespace pellucid::translate {

void raise_unsupported(InstructionTranslator& t, const Failure& failure);  // sets pellucid.exc.Unsupported

// Where the time of a capture went, for the log artifact "perf".
class Phases {
 public:
  void done(const char* phase) {
    Clock::time_point now = Clock::now();
    rows_.emplace_back(phase, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }
  const std::vector<std::pair<const char*, double>>& rows() const { return rows_; }  // name, seconds

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  std::vector<std::pair<const char*, double>> rows_;
};

// The dict that cache_entries() shows; also writes the log records that are wanted. Null with a Python exception set.
py::Ref make_report(InstructionTranslator& t, const Failure* broke, const cache::GuardedCode& entry, const Phases& phases);

}  // namespace pellucid::translate
