// The handlers of the opcodes: one function op_NAME per row of handlers.def, in the file of its family.
#pragma once
#include "translate/instruction_translator.h"

namespace pellucid::translate {

using bytecode::Instruction;
using bytecode::Op;
using Handler = Status (*)(InstructionTranslator&, Frame&, const Instruction&);

#define HANDLER(name) Status op_##name(InstructionTranslator& t, Frame& frame, const Instruction& instruction);
#define UNSUPPORTED(name, why) HANDLER(name)
#include "translate/handlers/handlers.def"
#undef HANDLER
#undef UNSUPPORTED

Handler handler_of(Op op);

// Opens the body of a handler; unused parameters are fine.
#define OPCODE(name)                                                                         \
  Status op_##name([[maybe_unused]] InstructionTranslator& t, [[maybe_unused]] Frame& frame, \
                   [[maybe_unused]] const Instruction& instruction)

}  // namespace pellucid::translate
