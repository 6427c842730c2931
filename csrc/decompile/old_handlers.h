// Handlers of 3.8 to 3.10 written as 3.11 writes them, so that what makes statements of regions serves all versions: one value for an
// exception instead of three, the code of a handler guarded by what restores the exception state, with statements left by calls. Knows the
// block stack of the old interpreters, nothing of expressions.
#pragma once
#include <vector>

#include "bytecode/code.h"

namespace pellucid::decompile {

// Rewrites the instructions and rows of code of 3.8 to 3.10. PUSH_EXC_INFO has the argument 0 where except clauses follow. Throws NoForm
// where the code is not like any compiler's.
//
// What stays of the old form: SETUP_FINALLY stands for a guarded body without an instruction of its own; in 3.8, where a finally block
// stands once, BEGIN_FINALLY (whose argument is the handler's index) stands where the guarded body ends normally, and END_FINALLY ends
// what has no way to go on.
void raise_old_handlers(bytecode::Code& code);

// Stack depth before each instruction (-1: unreachable), of rewritten code or that of later versions.
std::vector<int> depths_of(const bytecode::Code& code);

}  // namespace pellucid::decompile
