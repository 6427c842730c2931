// GraphRecord -> a C callable that runs the recorded operators one after another: what backend "eager" runs. Knows no torch.
#pragma once
#include "py/ref.h"
#include "translate/graph_record.h"

namespace pellucid::bridge {

// A callable (vectorcall) that takes the live placeholders' values by position and returns the tuple of outputs. It keeps what it needs of
// the record. When an operator raises, the lines of the user's program which recorded it are added to the traceback.
// Null with a Python exception set.
py::Ref make_replay(const translate::GraphRecord& record);

}  // namespace pellucid::bridge
