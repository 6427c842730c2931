// Builds the opcode tables from the generated rows at compile time. Knows neither Python's headers nor which version is running.
#include "bytecode/tables.h"

#include <cstring>

namespace pellucid::bytecode {
namespace {

constexpr const char* kNames[] = {
#define OP(name) #name,
#include "bytecode/generated/ops.def"
#undef OP
};
static_assert(sizeof(kNames) / sizeof(kNames[0]) == kOpCount);

constexpr Tables empty(int version) {
  Tables result;
  result.version = version;
  for (auto& number : result.number) number = kNoNumber;
  return result;
}

constexpr void add(Tables& to, int number, Op op, int caches, int flags, int effect, int jump_effect) {
  to.by_number[number] = OpInfo{
      op, true, static_cast<uint8_t>(caches), static_cast<uint16_t>(flags), static_cast<int8_t>(effect), static_cast<int8_t>(jump_effect)};
  to.number[static_cast<int>(op)] = static_cast<uint8_t>(number);
}

#define OPCODE(number, name, caches, flags, effect, jump_effect) add(result, number, Op::name, caches, flags, effect, jump_effect);
#define HAVE_ARGUMENT_FROM(number) result.have_argument = number;

constexpr Tables make_308() {
  Tables result = empty(308);
#include "bytecode/generated/opcodes_308.def"
  return result;
}

constexpr Tables make_309() {
  Tables result = empty(309);
#include "bytecode/generated/opcodes_309.def"
  return result;
}

constexpr Tables make_310() {
  Tables result = empty(310);
#include "bytecode/generated/opcodes_310.def"
  return result;
}

constexpr Tables make_311() {
  Tables result = empty(311);
#include "bytecode/generated/opcodes_311.def"
  return result;
}

constexpr Tables make_312() {
  Tables result = empty(312);
#include "bytecode/generated/opcodes_312.def"
  return result;
}

constexpr Tables make_313() {
  Tables result = empty(313);
#include "bytecode/generated/opcodes_313.def"
  return result;
}

#undef HAVE_ARGUMENT_FROM
#undef OPCODE

constexpr Tables kTables[] = {make_308(), make_309(), make_310(), make_311(), make_312(), make_313()};

}  // namespace

const char* op_name(Op op) { return kNames[static_cast<int>(op)]; }

bool op_from_name(const char* name, Op* op) {
  for (int i = 0; i < kOpCount; ++i) {
    if (std::strcmp(kNames[i], name) == 0) {
      *op = static_cast<Op>(i);
      return true;
    }
  }
  return false;
}

const Tables* tables(int version) {
  for (const Tables& candidate : kTables) {
    if (candidate.version == version) return &candidate;
  }
  return nullptr;
}

}  // namespace pellucid::bytecode
