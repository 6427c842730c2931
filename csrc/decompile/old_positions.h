// Columns for code of 3.8 to 3.10, whose line tables have none. What stands in the source as `return`, `continue` or `break` shows in lines
// and in code that nothing reaches; those instructions get columns as wide as the statement, as later versions have them. Knows nothing
// of blocks and expressions.
#pragma once
#include "bytecode/code.h"
#include "decompile/choices.h"

namespace pellucid::decompile {

// For code whose handlers are rewritten already.
void place_old_statements(bytecode::Code& code, const CodeChoices& choices);

}  // namespace pellucid::decompile
