// Stack effects: the generated constants, and by hand those that depend on the argument. A test holds every one against each
// interpreter's dis.stack_effect.
#include "bytecode/effects.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace pellucid::bytecode {
namespace {

int varying_effect(const Tables& tables, Op op, int arg) {
  const int version = tables.version;
  const int flag_bits = std::popcount(static_cast<unsigned>(arg) & 15u);
  switch (op) {
    case Op::UNPACK_SEQUENCE:
      return arg - 1;
    case Op::UNPACK_EX:
      return (arg & 0xff) + (arg >> 8);
    case Op::BUILD_TUPLE:
    case Op::BUILD_LIST:
    case Op::BUILD_SET:
    case Op::BUILD_STRING:
    case Op::BUILD_LIST_UNPACK:
    case Op::BUILD_TUPLE_UNPACK:
    case Op::BUILD_SET_UNPACK:
    case Op::BUILD_MAP_UNPACK:
    case Op::BUILD_TUPLE_UNPACK_WITH_CALL:
    case Op::BUILD_MAP_UNPACK_WITH_CALL:
      return 1 - arg;
    case Op::BUILD_MAP:
      return 1 - 2 * arg;
    case Op::BUILD_CONST_KEY_MAP:
      return -arg;
    case Op::BUILD_SLICE:
      return arg == 3 ? -2 : -1;
    case Op::RAISE_VARARGS:
      return -arg;
    case Op::CALL_FUNCTION:
      return -arg;
    case Op::CALL_FUNCTION_KW:
    case Op::CALL_METHOD:
      return -arg - 1;
    case Op::CALL_FUNCTION_EX:
      return (version >= 311 ? -2 : -1) - (arg & 1);
    case Op::MAKE_FUNCTION:
      return (version >= 311 ? 0 : -1) - flag_bits;
    case Op::FORMAT_VALUE:
      return (arg & 4) != 0 ? -1 : 0;
    case Op::LOAD_GLOBAL:
      return 1 + (arg & 1);
    case Op::LOAD_ATTR:
      return arg & 1;
    case Op::LOAD_SUPER_ATTR:
      return (arg & 1) - 2;
    case Op::CALL:
      return -arg - 1;
    case Op::CALL_KW:
      return -arg - 2;
    default:
      break;
  }
  CHECK(false) << "no stack effect is written down for " << op_name(op) << " of " << version;
  return 0;
}

}  // namespace

int stack_effect(const Tables& tables, Op op, uint32_t arg, bool jump) {
  if (tables.version == 311) {
    // 3.11's compiler lets PRECALL take the arguments off; the interpreter leaves that to CALL.
    if (op == Op::PRECALL) return 0;
    if (op == Op::CALL) return -static_cast<int>(arg) - 1;
  }
  // The value first sent into a generator lies on its stack when it goes on. 3.11 and 3.12 count it in at the function's entry.
  if (op == Op::RETURN_GENERATOR) return 1;
  // 3.10 takes off here what was sent into the generator, which lies on the stack before its first instruction; we do not count it.
  if (op == Op::GEN_START) return 0;
  const OpInfo& info = tables.info(op);
  const int effect = jump ? info.jump_effect : info.effect;
  return effect == kVaries ? varying_effect(tables, op, static_cast<int>(arg)) : effect;
}

int stack_needs(const Tables& tables, Op op, uint32_t arg) {
  const int n = static_cast<int>(arg);
  switch (op) {
    case Op::UNARY_POSITIVE:
    case Op::UNARY_NEGATIVE:
    case Op::UNARY_NOT:
    case Op::UNARY_INVERT:
    case Op::GET_ITER:
    case Op::GET_AITER:
    case Op::GET_ANEXT:
    case Op::GET_AWAITABLE:
    case Op::GET_YIELD_FROM_ITER:
    case Op::GET_LEN:
    case Op::MATCH_MAPPING:
    case Op::MATCH_SEQUENCE:
    case Op::LOAD_ATTR:
    case Op::LOAD_METHOD:
    case Op::IMPORT_FROM:
    case Op::FOR_ITER:
    case Op::FORMAT_SIMPLE:
    case Op::CONVERT_VALUE:
    case Op::TO_BOOL:
    case Op::YIELD_VALUE:
    case Op::LIST_TO_TUPLE:
    case Op::CALL_INTRINSIC_1:
    case Op::UNPACK_SEQUENCE:
    case Op::UNPACK_EX:
    case Op::BEFORE_WITH:
    case Op::BEFORE_ASYNC_WITH:
    case Op::PUSH_EXC_INFO:
    case Op::ASYNC_GEN_WRAP:
    case Op::LOAD_FROM_DICT_OR_DEREF:
    case Op::LOAD_FROM_DICT_OR_GLOBALS:
    case Op::JUMP_IF_FALSE_OR_POP:
    case Op::JUMP_IF_TRUE_OR_POP:
      return 1;
    case Op::BINARY_OP:
    case Op::BINARY_SUBSCR:
    case Op::COMPARE_OP:
    case Op::CONTAINS_OP:
    case Op::IS_OP:
    case Op::IMPORT_NAME:
    case Op::MATCH_KEYS:
    case Op::CHECK_EXC_MATCH:
    case Op::CHECK_EG_MATCH:
    case Op::CALL_INTRINSIC_2:
    case Op::PREP_RERAISE_STAR:
    case Op::END_SEND:
    case Op::FORMAT_WITH_SPEC:
    case Op::SET_FUNCTION_ATTRIBUTE:
    case Op::SEND:
      return 2;
    case Op::MATCH_CLASS:
    case Op::LOAD_SUPER_ATTR:
    case Op::CLEANUP_THROW:
    case Op::BINARY_SLICE:
      return 3;
    case Op::WITH_EXCEPT_START:
      return tables.version >= 311 ? 4 : 7;
    case Op::COPY:
    case Op::SWAP:
    case Op::BUILD_TUPLE:
    case Op::BUILD_LIST:
    case Op::BUILD_SET:
    case Op::BUILD_STRING:
    case Op::RAISE_VARARGS:
      return n;
    case Op::BUILD_SLICE:
      return n == 3 ? 3 : 2;
    case Op::LIST_APPEND:
    case Op::SET_ADD:
    case Op::LIST_EXTEND:
    case Op::SET_UPDATE:
    case Op::DICT_UPDATE:
    case Op::DICT_MERGE:
    case Op::BUILD_CONST_KEY_MAP:
      return n + 1;
    case Op::MAP_ADD:
      return n + 2;
    case Op::BUILD_MAP:
      return 2 * n;
    case Op::FORMAT_VALUE:
      return (n & 4) != 0 ? 2 : 1;
    case Op::CALL:
    case Op::PRECALL:
      return n + 2;
    case Op::CALL_KW:
      return n + 3;
    case Op::RERAISE:
      return n + 1;  // a nonzero argument: where the instruction offset to restore lies
    // What remains pushes nothing that it does not first take off, but for the result of calls.
    case Op::CALL_FUNCTION:
    case Op::CALL_FUNCTION_EX:
    case Op::MAKE_FUNCTION:
      return 1 - stack_effect(tables, op, arg, false);
    default:
      return std::max({0, -stack_effect(tables, op, arg, false), -stack_effect(tables, op, arg, true)});
  }
}

bool falls_through(Op op) {
  switch (op) {
    case Op::RETURN_VALUE:
    case Op::RETURN_CONST:
    case Op::RAISE_VARARGS:
    case Op::RERAISE:
    case Op::INTERPRETER_EXIT:
    case Op::JUMP_FORWARD:
    case Op::JUMP_BACKWARD:
    case Op::JUMP_BACKWARD_NO_INTERRUPT:
    case Op::JUMP_ABSOLUTE:
      return false;
    default:
      return true;
  }
}

}  // namespace pellucid::bytecode
