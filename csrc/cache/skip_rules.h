// Which code is never captured as a frame of its own, by what kind of code it is and which file it comes from: one table. It decides
// only about frames that the hook meets; what a user wraps explicitly is captured whatever its file. Knows no frames and no torch.
#pragma once
#include <string>

#include "py/python.h"

namespace pellucid::cache {

// Directories that rules refer to, with a trailing separator. An empty one matches nothing.
struct SkipRoots {
  std::string torch;    // .../torch/
  std::string own;      // .../pellucid/
  std::string library;  // the standard library
  std::string site;     // site-packages, often inside `library`
};

void set_skip_roots(SkipRoots roots);

// Null: look at frames of this code. Otherwise the reason for which they run as written, a string that lives for ever.
const char* skip_reason(PyObject* code);

}  // namespace pellucid::cache
