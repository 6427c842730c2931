// Questions, guards, constraints, unbacked symbols, and the decision log.
#include "symbolic/env.h"

namespace pellucid::symbolic {
namespace {

TEST(ShapeEnvTest, ProvenQuestionsAddNothing) {
  Env e;
  const Expr s0 = e.size(7);
  EXPECT_TRUE(e.ask(e.b().gt(s0, e.c(1))));
  EXPECT_TRUE(e.ask(e.b().gt(s0, e.c(4))));
  EXPECT_TRUE(e.ask(e.b().gt(s0, e.c(3))));
  EXPECT_FALSE(e.ask(e.b().eq(s0, e.c(4))));
  EXPECT_TRUE(e.ask(e.b().lt(s0, e.c(10))));
  EXPECT_EQ(e.env->guards().size(), 2u);
  EXPECT_EQ(e.guards(), Texts({"5 <= x0 <= 9"}));
}

TEST(ShapeEnvTest, EqualitiesReplace) {
  Env e;
  const Expr s0 = e.size(8), s1 = e.size(8), s2 = e.size(64);
  EXPECT_TRUE(e.ask(e.b().eq(s0, s1)));
  EXPECT_TRUE(e.ask(e.b().eq(e.b().mul(s0, e.c(8)), s2)));
  EXPECT_EQ(e.env->simplify(s1), s0);
  EXPECT_EQ(e.env->simplify(s2), e.b().mul(e.c(8), s0));
  EXPECT_TRUE(e.ask(e.b().eq(s2, e.b().mul(s1, e.c(8)))));
  EXPECT_EQ(e.env->guards().size(), 2u);
  EXPECT_TRUE(e.ask(e.b().eq(s0, e.c(8))));
  EXPECT_EQ(e.env->simplify(s2), e.c(64));
}

TEST(ShapeEnvTest, RelationsFollowFromOthers) {
  Env e;
  std::vector<Expr> s;
  for (int i = 0; i < 6; ++i) s.push_back(e.size(10 + i));
  for (int i = 0; i + 1 < 6; ++i) EXPECT_TRUE(e.ask(e.b().lt(s[i], s[i + 1])));
  EXPECT_TRUE(e.ask(e.b().le(s[5], e.c(20))));
  const size_t before = e.env->guards().size();
  EXPECT_TRUE(e.ask(e.b().lt(s[0], s[3])));
  EXPECT_TRUE(e.ask(e.b().lt(s[2], e.c(18))));
  EXPECT_FALSE(e.ask(e.b().eq(s[1], s[4])));
  EXPECT_EQ(e.env->guards().size(), before);
}

TEST(ShapeEnvTest, Divisibility) {
  Env e;
  const Expr s0 = e.size(24);
  EXPECT_TRUE(e.ask(e.b().eq(e.b().mod(s0, e.c(4)), e.c(0))));
  EXPECT_TRUE(e.ask(e.b().eq(e.b().mod(s0, e.c(6)), e.c(0))));
  EXPECT_TRUE(e.ask(e.b().eq(e.b().mod(s0, e.c(12)), e.c(0))));
  EXPECT_TRUE(e.ask(e.b().eq(e.b().mul(e.b().floor_div(s0, e.c(3)), e.c(3)), s0)));
  EXPECT_FALSE(e.ask(e.b().eq(e.b().mod(s0, e.c(8)), e.c(3))));
  EXPECT_EQ(e.env->guards().size(), 2u);
}

TEST(ShapeEnvTest, DuckSizesAndZeroOne) {
  Env e;
  const DimSpec duck;
  const Expr a = e.size(5, duck), b = e.size(5, duck), one = e.size(1, duck);
  EXPECT_EQ(a, b);
  EXPECT_TRUE(one->is_const(1));
  EXPECT_EQ(e.guards(false), Texts({"x1 == x0", "x2 == 1", "2 <= x0"}));
  Env apart(ShapeEnv::Options{.specialize_zero_one = false, .duck_shapes = false});
  const Expr zero = apart.size(0, duck);
  EXPECT_NE(apart.size(5, duck), apart.size(5, duck));
  EXPECT_FALSE(apart.ask(apart.b().ge(zero, apart.c(1))));
}

TEST(ShapeEnvTest, StrictConstraintNamesTheGuard) {
  Env e;
  const Location declared{"model.py", 3};
  DimSpec spec{DimPolicy::kDynamic, {Constraint::Kind::kStrict, {2, 100}}, {}};
  const Expr x = e.env->create_size(10, "L['x'].size()[0]", spec, at(declared));
  EXPECT_TRUE(e.ask(e.b().lt(x, e.c(50)), 12));
  try {
    e.guards();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "Constraints violated:\n  - Not all values of L['x'].size()[0] in [2, 100] (declared at model.py:3) satisfy the guard "
                 "L['x'].size()[0] <= 49, which was made at user.py:12. Suggested fix: declare L['x'].size()[0] with the range [2, 49]");
  }
}

TEST(ShapeEnvTest, UnbackedQuestions) {
  Env e;
  const Expr u0 = e.unbacked();
  EXPECT_THROW(e.ask(e.b().gt(u0, e.c(3))), Error);
  EXPECT_FALSE(e.env->guard_or(e.b().gt(u0, e.c(3)), false, {}));
  EXPECT_TRUE(e.env->expect_true(e.b().gt(u0, e.c(3)), "must be large", {}));
  EXPECT_TRUE(e.ask(e.b().gt(u0, e.c(2))));
  ASSERT_EQ(e.env->runtime_asserts().size(), 1u);
  EXPECT_EQ(e.env->runtime_asserts()[0].symbol, u0);
  e.env->constrain_range(u0, {0, 100}, {});
  EXPECT_TRUE(e.ask(e.b().lt(u0, e.c(101))));
  EXPECT_THROW(e.env->constrain_range(u0, {200, 300}, {}), Error);
}

TEST(ShapeEnvTest, SizeObliviousQuestions) {
  Env e;
  const Expr u0 = e.unbacked();
  e.env->use_as_size(u0, {});
  EXPECT_FALSE(e.env->evaluate_size_oblivious(e.b().eq(u0, e.c(1)), {}));
  EXPECT_FALSE(e.env->evaluate_size_oblivious(e.b().eq(u0, e.c(0)), {}));
  EXPECT_THROW(e.ask(e.b().eq(u0, e.c(1))), Error);
  EXPECT_TRUE(e.ask(e.b().ge(u0, e.c(0))));
}

TEST(ShapeEnvTest, LogReplays) {
  Env e;
  const Expr s0 = e.size(8), s1 = e.size(8);
  const Expr u0 = e.unbacked();
  e.ask(e.b().gt(s0, e.c(2)), 12);
  e.ask(e.b().eq(s0, s1), 13);
  e.env->expect_true(e.b().eq(u0, s0), "same", {});
  EXPECT_THROW(e.ask(e.b().gt(e.unbacked(), e.c(2)), 14), Error);
  const std::vector<Event>& log = e.env->log();
  EXPECT_EQ(to_text(log[3]), "eval s0 > 2 [guard added] at user.py:12");
  EXPECT_EQ(to_text(log[5]), "replace s1 by s0 at user.py:13");
  Env again;
  again.env->replay(*e.env);
  ASSERT_EQ(again.env->log().size(), log.size());
  for (size_t i = 0; i < log.size(); ++i) EXPECT_EQ(to_text(again.env->log()[i]), to_text(log[i]));
  EXPECT_EQ(again.guards(), e.guards());
}

TEST(ShapeEnvTest, SuppressedAndFrozen) {
  Env e;
  const Expr s0 = e.size(8);
  e.env->suppress_guards();
  EXPECT_TRUE(e.ask(e.b().gt(s0, e.c(5))));
  e.env->unsuppress_guards();
  EXPECT_TRUE(e.env->guards().empty());
  EXPECT_TRUE(e.ask(e.b().gt(s0, e.c(5))));
  EXPECT_EQ(e.env->guards().size(), 1u);
  e.env->freeze(false);
  EXPECT_FALSE(e.ask(e.b().gt(s0, e.c(9))));
  EXPECT_EQ(e.env->guards().size(), 1u);
  e.env->freeze(true);
  EXPECT_THROW(e.ask(e.b().gt(s0, e.c(7))), Error);
}

TEST(GuardProgramTest, AnswersAsTheTextsDo) {
  Env e;
  const Expr s0 = e.size(24), s1 = e.size(4);
  e.ask(e.b().eq(e.b().mod(s0, s1), e.c(0)));
  e.ask(e.b().lt(e.b().mul(s1, s1), s0));
  const GuardSet set = produce_guards(*e.env, true);
  const auto run = [&](int64_t x, int64_t y) {
    const int64_t inputs[] = {x, y};
    return set.program.run(inputs);
  };
  EXPECT_TRUE(run(24, 4));
  EXPECT_TRUE(run(20, 4));
  EXPECT_FALSE(run(22, 4));
  EXPECT_FALSE(run(16, 4));
  EXPECT_FALSE(run(24, 1));
  EXPECT_FALSE(run(INT64_MAX, INT64_MAX));
}

TEST(ShapeEnvTest, WorkIsLinear) {
  const auto work = [](int n) {
    Env e;
    std::vector<Expr> s;
    for (int i = 0; i < n; ++i) s.push_back(e.size(10 + i));
    for (int i = 0; i + 1 < n; ++i) {
      e.ask(e.b().lt(e.b().add(s[i], e.c(i)), e.b().mul(e.c(3), s[i + 1])));
      e.ask(e.b().eq(e.b().add(s[i], e.c(1)), s[i + 1]));
    }
    e.ask(e.b().lt(e.b().sum(s), e.c(INT32_MAX)));
    e.guards();
    return static_cast<double>(e.env->arena().work()) / n;
  };
  const double small = work(100);
  EXPECT_LT(work(1000), 1.3 * small);
  EXPECT_LT(work(10000), 1.3 * small);
}

}  // namespace
}  // namespace pellucid::symbolic
