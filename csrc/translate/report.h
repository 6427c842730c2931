// What a capture tells people: exceptions of fullgraph=True, the report of an entry, log records.
#pragma once
#include "translate/instruction_translator.h"

namespace pellucid::translate {

void raise_unsupported(InstructionTranslator& t, const Failure& failure);  // sets pellucid.exc.Unsupported

// An attribute of pellucid._capture. Null with a Python exception set.
py::Ref capture_helper(const char* name);

// The dict that cache_entries() shows; also writes the log records that are wanted. Null with a Python exception set.
py::Ref make_report(InstructionTranslator& t, const Failure* broke, const cache::GuardedCode& entry);

}  // namespace pellucid::translate
