// How alike two code objects are: what was decompiled, and what compiling the result gave. Live code objects and NeutralCode, of one
// version. Knows nothing of source text.
#pragma once
#include <cstdint>
#include <string>

#include "py/ref.h"

namespace pellucid::decompile {

enum class Grade : uint8_t {
  kDiffers,
  kEqualFlow,  // bisimilar control flow: the same operations on the same values in the same order, on every path
  kIdentical,  // the same instructions with the same arguments, exception rows, flags, variables, names and docstring
};

struct CompareOptions {
  // The second was compiled on its own: nesting flags and prefixes of qualified names do not count.
  bool standalone = false;
  // What globals of the second stand for that are constants without a literal in the first: name -> object; or null. Such a global is as
  // good as the constant for an equal flow.
  PyObject* bindings = nullptr;
};

struct Comparison {
  Grade grade = Grade::kDiffers;
  std::string difference;  // the first one that keeps it from the next better grade; empty when identical
};

// Compares with all nested code objects that are in use. Line tables do not count, nor do the values that 3.13's class bodies store in
// __firstlineno__ and __static_attributes__. False with an exception set where one cannot be decoded.
bool compare(PyObject* original, PyObject* again, const CompareOptions& options, Comparison* out);

}  // namespace pellucid::decompile
