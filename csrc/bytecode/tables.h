// The opcode tables of every CPython version, as tools/gen_opcodes.py took them from each interpreter: opcode numbers, inline
// caches, what the argument means, fixed stack effects. Knows neither Python's headers nor which version is running.
#pragma once
#include <array>
#include <cstdint>

#include "bytecode/op.h"

namespace pellucid::bytecode {

enum OpFlag : uint16_t {
  kHasArg = 1 << 0,
  kJumpRelative = 1 << 1,
  kJumpAbsolute = 1 << 2,
  kHasConst = 1 << 3,
  kHasName = 1 << 4,
  kHasLocal = 1 << 5,
  kHasFree = 1 << 6,
  kHasCompare = 1 << 7,
  kBackward = 1 << 8,  // a relative jump that counts backwards
};

inline constexpr int8_t kVaries = 127;  // the stack effect depends on the argument: see stack_effect() in bytecode/effects.h
inline constexpr uint8_t kNoNumber = 0xff;

struct OpInfo {
  Op op = Op::NOP;
  bool known = false;
  uint8_t caches = 0;
  uint16_t flags = 0;
  int8_t effect = 0;       // when execution goes on with the next instruction
  int8_t jump_effect = 0;  // when it jumps
};

struct Tables {
  int version = 0;  // 308 to 313
  int have_argument = 0;
  std::array<OpInfo, 256> by_number{};
  std::array<uint8_t, kOpCount> number{};  // kNoNumber: not in this version (no version uses 255 for an opcode of co_code)

  const OpInfo& info(Op op) const { return by_number[number[static_cast<int>(op)]]; }
  bool has(Op op) const { return number[static_cast<int>(op)] != kNoNumber; }
};

// The tables of one version (308 to 313), null for any other.
const Tables* tables(int version);

// Looks an opcode up by its name, for people and tests. Returns false if no version has one of that name.
bool op_from_name(const char* name, Op* op);

}  // namespace pellucid::bytecode
