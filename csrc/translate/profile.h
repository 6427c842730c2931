// Profile: where the time of one capture went, and how much of everything it made. Times are exclusive: a phase that is entered stops
// the clock of the one around it, so they add up to the time of the capture. Knows no Python and nothing of what the phases do.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pellucid::translate {

enum class Phase : uint8_t {
  kDecode,     // bytecode to instructions, of code that was not met before
  kTranslate,  // symbolic execution, and whatever no other phase is
  kFake,       // operators on fake tensors
  kGuards,     // guards to a guard program
  kCodegen,    // the transformed code
  kFx,         // the graph for the backend: torch.fx nodes, or the replayed record
  kBackend,    // the backend
};
constexpr size_t kPhases = 7;
constexpr std::array<const char*, kPhases> kPhaseNames = {"decode", "translate", "fake", "guards", "codegen", "fx", "backend"};

struct Counts {
  uint64_t attempts = 0;       // runs of the translator: one more for each break that was found too late
  uint64_t instructions = 0;   // interpreted, of all attempts
  uint64_t inlined_calls = 0;  // Python functions entered, of all attempts
  uint64_t operators = 0;
  uint64_t fake_calls = 0;  // kernels for fake tensors that PyTorch's dispatcher called, of all attempts
  uint64_t inputs = 0;
  uint64_t variables = 0;
  uint64_t sources = 0;
  uint64_t guards = 0;
  uint64_t comparisons = 0;  // of sources and of guards, to find those that are there already
  uint64_t guard_rows = 0;   // of the guard program: what a call checks
  uint64_t code_units = 0;   // instructions of the transformed code
};

class Profile {
 public:
  // The phase of what runs while this lives.
  class Scope {
   public:
    Scope(Profile& profile, Phase phase) : profile_(profile), outer_(profile.enter(phase)) {}
    ~Scope() { profile_.enter(outer_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Profile& profile_;
    Phase outer_;
  };

  // Seconds of each phase up to now.
  std::array<double, kPhases> seconds() {
    enter(current_);
    std::array<double, kPhases> result;
    for (size_t i = 0; i < kPhases; i++) result[i] = std::chrono::duration<double>(spent_[i]).count();
    return result;
  }

  Counts counts;

 private:
  using Clock = std::chrono::steady_clock;

  Phase enter(Phase phase) {
    const Clock::time_point now = Clock::now();
    spent_[static_cast<size_t>(current_)] += now - last_;
    last_ = now;
    return std::exchange(current_, phase);
  }

  Phase current_ = Phase::kTranslate;
  Clock::time_point last_ = Clock::now();
  std::array<Clock::duration, kPhases> spent_ = {};
};

}  // namespace pellucid::translate
