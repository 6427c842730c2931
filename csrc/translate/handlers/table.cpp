// Dispatch from opcode to handler. Every opcode of the compiled version has a row, or this file does not compile.
#include "translate/handlers/handlers.h"

#include <array>

namespace pellucid::translate {

#define HANDLER(name)
#define UNSUPPORTED(name, why) \
  OPCODE(name) { return t.fail(variables::Reason::unsupported_opcode, #name ": " why); }
#include "translate/handlers/handlers.def"
#undef HANDLER
#undef UNSUPPORTED

namespace {

Status op_of_another_version(InstructionTranslator& t, Frame&, const Instruction& instruction) {
  return t.fail(variables::Reason::unsupported_opcode,
                std::string(bytecode::op_name(instruction.op)) + " does not exist in this version of Python");
}

constexpr std::array<Handler, bytecode::kOpCount> make_table() {
  std::array<Handler, bytecode::kOpCount> table{};
  for (auto& handler : table) handler = op_of_another_version;
#define HANDLER(name) table[static_cast<size_t>(Op::name)] = op_##name;
#define UNSUPPORTED(name, why) HANDLER(name)
#include "translate/handlers/handlers.def"
#undef HANDLER
#undef UNSUPPORTED
  return table;
}

constexpr std::array<Handler, bytecode::kOpCount> kTable = make_table();

// Both lists of 3.11's opcodes: what the interpreter has, and what stands in handlers.def.
constexpr bool every_opcode_has_a_row() {
  std::array<int, bytecode::kOpCount> rows{};
#define HANDLER(name) rows[static_cast<size_t>(Op::name)]++;
#define UNSUPPORTED(name, why) HANDLER(name)
#include "translate/handlers/handlers.def"
#undef HANDLER
#undef UNSUPPORTED
#define HAVE_ARGUMENT_FROM(number)
#define OPCODE_311(number, name, ...) rows[static_cast<size_t>(Op::name)] -= 1;
#pragma push_macro("OPCODE")
#undef OPCODE
#define OPCODE OPCODE_311
#include "bytecode/generated/opcodes_311.def"
#undef OPCODE
#pragma pop_macro("OPCODE")
#undef OPCODE_311
#undef HAVE_ARGUMENT_FROM
  for (int row : rows)
    if (row != 0) return false;
  return true;
}
static_assert(every_opcode_has_a_row(), "an opcode of CPython 3.11 has no row in handlers.def, or a row is there twice");

}  // namespace

Handler handler_of(Op op) { return kTable[static_cast<size_t>(op)]; }

}  // namespace pellucid::translate
