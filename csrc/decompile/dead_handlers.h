// Handlers of bodies without effect, which no exception row leads to.
#pragma once
#include "bytecode/code.h"

namespace pellucid::decompile {

// Gives each such handler of 3.11 and later a row. An instruction may be inserted for what it guards. `before`: what the code was.
// False, and nothing changed: there is no such handler.
bool revive_handlers(bytecode::Code& code, bytecode::Code* before);

}  // namespace pellucid::decompile
