// Facts: congruences, relations that add up, bounds pushed into what they bound, and the choice of minimal guards.
#include "symbolic/env.h"

namespace pellucid::symbolic {
namespace {

struct FactsTest : testing::Test, Env {
  FactsTest() : facts(env->arena()) {
    for (const int64_t hint : {10, 11, 30, 40}) s.push_back(size(hint));
  }
  std::vector<Expr> s;
  Facts facts;
};

TEST_F(FactsTest, CongruencesAddUp) {
  EXPECT_TRUE(facts.add(b().eq(b().mod(s[0], c(4)), c(3))));
  EXPECT_TRUE(facts.add(b().eq(b().mod(s[0], c(9)), c(2))));
  EXPECT_EQ(facts.residue(s[0], 36), Int{11});
  EXPECT_EQ(facts.range(s[0]).lo, 11);
  EXPECT_EQ(facts.residue(b().add(b().mul(c(2), s[0]), b().mul(c(8), s[1])), 8), Int{6});
  EXPECT_FALSE(facts.add(b().eq(b().mod(s[0], c(6)), c(1))));
}

TEST_F(FactsTest, EqualityOfMultiplesIsACongruence) {
  EXPECT_TRUE(facts.add(b().eq(b().mul(c(2), s[0]), b().mul(c(3), s[1]))));
  EXPECT_EQ(facts.residue(s[0], 3), Int{0});
  EXPECT_EQ(facts.residue(s[1], 2), Int{0});
}

TEST_F(FactsTest, BoundsReachIntoWhatTheyBound) {
  EXPECT_TRUE(facts.bound(b().floor_div(s[0], c(3)), {4, 5}));
  EXPECT_EQ(facts.range(s[0]), (Range{12, 17}));
  EXPECT_TRUE(facts.bound(b().mul(s[1], s[2]), {0, 20}));
  EXPECT_EQ(facts.range(s[1]), (Range{2, 10}));
  EXPECT_TRUE(facts.bound(b().min(s[1], s[3]), {5, 100}));
  EXPECT_EQ(facts.range(s[3]).lo, 5);
}

TEST_F(FactsTest, RelationsAddUp) {
  EXPECT_TRUE(facts.add(b().le(b().add(s[0], s[1]), s[2])));
  EXPECT_TRUE(facts.add(b().lt(s[2], s[3])));
  EXPECT_EQ(facts.prove(b().lt(b().add(s[0], s[1]), s[3])), true);
  EXPECT_EQ(facts.prove(b().le(s[3], s[0])), false);
  EXPECT_EQ(facts.prove(b().lt(s[0], s[1])), std::nullopt);
}

TEST_F(FactsTest, WhatWasKnownOfASymbolIsKnownOfItsReplacement) {
  EXPECT_TRUE(facts.add(b().lt(s[3], b().add(s[2], s[1]))));
  EXPECT_TRUE(facts.bound(s[3], {5, 50}));
  EXPECT_TRUE(facts.add(b().eq(s[3], b().add(s[0], c(1)))));
  EXPECT_EQ(facts.replacement(s[3]), b().add(s[0], c(1)));
  EXPECT_EQ(facts.range(s[0]), (Range{4, 49}));
  EXPECT_EQ(facts.prove(b().lt(b().add(s[0], c(1)), b().add(s[2], s[1]))), true);
}

TEST_F(FactsTest, ReplacementsFollowEachOther) {
  EXPECT_TRUE(facts.add(b().eq(s[3], b().mul(s[2], c(2)))));
  EXPECT_EQ(facts.simplify(s[3]), b().mul(s[2], c(2)));
  EXPECT_TRUE(facts.add(b().eq(s[2], b().add(s[1], c(3)))));
  EXPECT_TRUE(facts.add(b().eq(s[1], c(4))));
  EXPECT_EQ(facts.simplify(s[3]), c(14));
}

TEST_F(FactsTest, MinimalNeverDropsTwoForEachOther) {
  const std::vector<Expr> equal = {b().eq(s[0], s[1]), b().le(s[0], s[1]), b().le(s[1], s[0]), b().lt(s[0], b().add(s[1], c(1)))};
  EXPECT_EQ(minimal(env->arena(), equal), (std::vector<size_t>{0}));
  const std::vector<Expr> both = {b().lt(s[0], s[1]), b().lt(s[0], s[1])};
  EXPECT_EQ(minimal(env->arena(), both).size(), 1u);
  const std::vector<Expr> chain = {b().lt(s[0], s[2]), b().lt(s[0], s[1]), b().lt(s[1], s[2])};
  EXPECT_EQ(minimal(env->arena(), chain), (std::vector<size_t>{1, 2}));
}

}  // namespace
}  // namespace pellucid::symbolic
