// CHECK: throws InternalError with place, condition and message, and evaluates its condition once.
#include "base/check.h"

#include <gtest/gtest.h>

#include <string>

namespace pellucid::base {
namespace {

TEST(Check, PassesSilently) {
  int evaluations = 0;
  CHECK(++evaluations == 1) << "never printed";
  EXPECT_EQ(evaluations, 1);
}

TEST(Check, FailureNamesPlaceConditionAndMessage) {
  std::string message;
  try {
    CHECK(1 + 1 == 3) << "sum is " << 2;
  } catch (const InternalError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("check_test.cpp:"), std::string::npos) << message;
  EXPECT_NE(message.find("CHECK(1 + 1 == 3) failed sum is 2"), std::string::npos) << message;
}

}  // namespace
}  // namespace pellucid::base
