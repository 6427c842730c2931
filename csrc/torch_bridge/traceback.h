// Traceback entries for lines of the user's program that run inside compiled code, where no Python frame of theirs exists.
#pragma once
#include <cstdint>
#include <vector>

#include "translate/graph_record.h"

namespace pellucid::bridge {

// Adds the entries of stack `index`, innermost first, to the traceback of the exception that is set. Where an entry can't be made the
// exception stays as it is.
void add_user_stack(const std::vector<translate::StackEntry>& stacks, int32_t index);

// A traceback object for a line of which only the text is known, in front of the traceback `next` (or None). Null with an exception set.
py::Ref make_traceback(PyObject* filename, PyObject* name, int line, PyObject* next);

}  // namespace pellucid::bridge
