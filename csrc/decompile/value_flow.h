// Whether two code objects do the same with the same values where one keeps on the stack what the other keeps in variables of its own:
// what a person's names for the values of a compiler's code come to. Stronger than canonical flow in that, weaker in what it reads: paths
// that neither turn back nor are guarded. Knows nothing of source text.
#pragma once
#include <functional>
#include <string>

#include "bytecode/code.h"

namespace pellucid::decompile {

struct ValueQuestions {
  std::function<bool(PyObject* left, PyObject* right)> same_constant;
  std::function<PyObject*(PyObject* name)> bound;  // the object that a global of the second stands for, borrowed; null: none
};

// Empty if on every path both do the same operations with the same values in the same order, and store and delete the variables of the
// first alike; else the first difference, or why it cannot be told. Building lists, tuples and slices is no operation: it cannot be
// noticed.
std::string values_differ(const bytecode::Code& first, const bytecode::Code& second, const ValueQuestions& questions);

}  // namespace pellucid::decompile
