// Canonical forms: equal expressions are one node, whatever they were made from, and print alike.
#include "symbolic/env.h"

namespace pellucid::symbolic {
namespace {

struct BuilderTest : testing::Test, Env {
  Expr s0 = size(7);
  Expr s1 = size(9);
  Expr s2 = size(11);
};

TEST_F(BuilderTest, LinearFormsAreOneNode) {
  EXPECT_EQ(b().add(b().add(s0, s1), c(3)), b().add(c(3), b().add(s1, s0)));
  EXPECT_EQ(b().sub(b().add(s0, s1), s1), s0);
  EXPECT_EQ(b().add(s0, s0), b().mul(c(2), s0));
  EXPECT_EQ(b().mul(b().add(s0, c(1)), b().sub(s0, c(1))), b().sub(b().mul(s0, s0), c(1)));
  EXPECT_EQ(to_text(b().sub(b().mul(s1, s0), b().mul(c(2), s2))), "s0*s1 - 2*s2");
  const Expr parts[] = {s0, s1, s0, c(4), b().neg(s1)};
  EXPECT_EQ(b().sum(parts), b().add(b().mul(c(2), s0), c(4)));
}

TEST_F(BuilderTest, RepeatedOperationsMakeNothing) {
  b().floor_div(b().add(b().mul(s0, s1), c(1)), c(3));
  const size_t before = env->arena().size();
  for (int i = 0; i < 100; ++i) b().floor_div(b().add(b().mul(s0, s1), c(1)), c(3));
  EXPECT_EQ(env->arena().size(), before);
}

TEST_F(BuilderTest, Division) {
  EXPECT_EQ(b().floor_div(b().mul(c(8), s0), c(8)), s0);
  EXPECT_EQ(b().mod(b().mul(s0, s1), s1), c(0));
  EXPECT_EQ(b().floor_div(b().mul(s0, s1), s1), s0);
  EXPECT_EQ(b().floor_div(b().add(b().mul(s0, s1), s0), b().add(s1, c(1))), s0);
  EXPECT_EQ(b().floor_div(b().floor_div(s0, c(2)), c(3)), b().floor_div(s0, c(6)));
  EXPECT_EQ(b().mod(s0, b().mul(s0, s1)), s0);
  EXPECT_EQ(b().add(b().mul(c(3), b().floor_div(s0, c(3))), b().mod(s0, c(3))), s0);
  // Two strided convolutions after each other.
  const auto conv = [&](Expr x) { return b().add(b().floor_div(b().sub(x, c(1)), c(2)), c(1)); };
  EXPECT_EQ(to_text(conv(s0)), "(s0 + 1)//2");
  EXPECT_EQ(to_text(conv(conv(s0))), "(s0 + 3)//4");
  EXPECT_THROW(b().floor_div(s0, c(0)), Error);
}

TEST_F(BuilderTest, ChoicesByRange) {
  EXPECT_EQ(b().max(s0, c(1)), s0);
  EXPECT_EQ(b().min(s0, b().add(s0, s1)), s0);
  EXPECT_EQ(b().abs(b().neg(s0)), s0);
  EXPECT_EQ(b().max(c(3), b().max(s0, c(5))), b().max(s0, c(5)));
  EXPECT_EQ(b().where(b().gt(s0, c(1)), s1, s2), s1);
}

TEST_F(BuilderTest, RelationsAreOneNode) {
  EXPECT_EQ(b().lt(s0, c(5)), b().le(s0, c(4)));
  EXPECT_EQ(b().lt(s0, c(5)), b().logical_not(b().ge(s0, c(5))));
  EXPECT_EQ(b().eq(b().mul(c(2), s0), b().mul(c(2), s1)), b().eq(s1, s0));
  EXPECT_EQ(b().eq(b().mul(c(2), s0), c(7)), b().truth(false));
  EXPECT_EQ(b().lt(b().mul(c(2), s0), c(9)), b().le(s0, c(4)));
  EXPECT_EQ(b().eq(b().mul(s0, s1), s0), b().truth(false));
  EXPECT_EQ(b().lt(b().sub(s2, b().mul(s1, s2)), c(0)), b().truth(true));
  EXPECT_EQ(b().lt(s0, b().real(2.5)), b().le(s0, c(2)));
  EXPECT_EQ(to_text(b().gt(s0, c(2))), "s0 > 2");
  EXPECT_EQ(to_text(b().lt(s0, s1)), "s0 < s1");
  EXPECT_EQ(to_text(b().logical_and(b().lt(s0, s1), b().ne(s0, s2))), "s0 != s2 and s0 < s1");
}

TEST_F(BuilderTest, NothingWraps) {
  const Expr far = b().add(s0, c(kInt64Min));
  EXPECT_EQ(b().lt(far, c(0)), b().truth(true));
  EXPECT_EQ(b().sub(far, c(kInt64Min)), s0);
  EXPECT_EQ(b().min(s0, c(kInt64Max)), s0);
  const Expr huge = b().mul(b().add(s0, c(kInt64Max)), c(kInt64Max));
  try {
    ShapeEnv::hint_int(huge);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOverflow);
    EXPECT_NE(std::string(error.what()).find("s0"), std::string::npos) << error.what();
  }
}

TEST_F(BuilderTest, ExpressionsKeepTheirEnvironment) {
  Handle<RefCounted> owner(&s0->arena->owner());
  const Expr sum = b().add(s0, s1);
  env = {};
  EXPECT_EQ(to_text(sum), "s0 + s1");
}

}  // namespace
}  // namespace pellucid::symbolic
