// The generated tables, and that every opcode of every version has a stack effect and consistent needs.
#include "bytecode/tables.h"

#include <gtest/gtest.h>

#include "bytecode/effects.h"

namespace pellucid::bytecode {
namespace {

constexpr int kVersions[] = {308, 309, 310, 311, 312, 313};

TEST(Tables, ExistForTheSupportedVersionsOnly) {
  for (int version : kVersions) {
    const Tables* found = tables(version);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->version, version);
  }
  EXPECT_EQ(tables(307), nullptr);
  EXPECT_EQ(tables(314), nullptr);
}

TEST(Tables, NumbersAndNamesLeadBackToEachOther) {
  for (int version : kVersions) {
    const Tables& table = *tables(version);
    int known = 0;
    for (int number = 0; number < 256; ++number) {
      const OpInfo& info = table.by_number[static_cast<size_t>(number)];
      if (!info.known) continue;
      ++known;
      EXPECT_TRUE(table.has(info.op));
      EXPECT_EQ(&table.info(info.op), &info);
    }
    EXPECT_GT(known, 100) << version;
  }
  for (int i = 0; i < kOpCount; ++i) {
    Op op;
    ASSERT_TRUE(op_from_name(op_name(static_cast<Op>(i)), &op));
    EXPECT_EQ(static_cast<int>(op), i);
  }
  Op op;
  EXPECT_FALSE(op_from_name("NO_SUCH_OPCODE", &op));
}

TEST(Tables, AnOpcodeOfAnotherVersionIsUnknown) {
  EXPECT_TRUE(tables(311)->has(Op::PRECALL));
  EXPECT_FALSE(tables(312)->has(Op::PRECALL));
  EXPECT_FALSE(tables(312)->info(Op::PRECALL).known);
}

TEST(Effects, EveryOpcodeHasOne) {
  for (int version : kVersions) {
    const Tables& table = *tables(version);
    for (const OpInfo& info : table.by_number) {
      if (!info.known) continue;
      for (uint32_t arg : {0u, 1u, 2u, 5u}) {
        for (bool jump : {false, true}) {
          const int effect = stack_effect(table, info.op, arg, jump);
          if (version >= 311) {
            EXPECT_GE(stack_needs(table, info.op, arg), -effect) << op_name(info.op) << " " << arg << " of " << version;
          }
        }
      }
    }
  }
}

TEST(Effects, CallsOf311TakeTheirArgumentsAtCall) {
  const Tables& table = *tables(311);
  EXPECT_EQ(stack_effect(table, Op::PRECALL, 3, false), 0);
  EXPECT_EQ(stack_effect(table, Op::CALL, 3, false), -4);  // NULL or method, callable or self, three arguments; one result
  EXPECT_EQ(stack_needs(table, Op::CALL, 3), 5);
}

}  // namespace
}  // namespace pellucid::bytecode
