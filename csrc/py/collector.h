// PauseCollector: no garbage collection for a while. A collection in the middle of a capture would walk all of torch's objects (100 ms)
// and find nothing: what a capture makes is reachable until it ends. Knows nothing of captures. CPython 3.10 and later.
#pragma once
#include "py/python.h"

namespace pellucid::py {

class PauseCollector {
 public:
  PauseCollector() : was_enabled_(PyGC_Disable()) {}
  ~PauseCollector() {
    if (was_enabled_) PyGC_Enable();
  }
  PauseCollector(const PauseCollector&) = delete;
  PauseCollector& operator=(const PauseCollector&) = delete;

 private:
  friend class ResumeCollector;
  int was_enabled_;
};

// Within a pause, where somebody else's code runs: it finds the collector as it was, and may leave it otherwise.
class ResumeCollector {
 public:
  explicit ResumeCollector(PauseCollector& pause) : pause_(pause) {
    if (pause_.was_enabled_) PyGC_Enable();
  }
  ~ResumeCollector() { pause_.was_enabled_ = PyGC_Disable(); }
  ResumeCollector(const ResumeCollector&) = delete;
  ResumeCollector& operator=(const ResumeCollector&) = delete;

 private:
  PauseCollector& pause_;
};

}  // namespace pellucid::py
