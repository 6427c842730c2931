// The order in which entries are tried, and what becomes of dead ones.
#include "cache/lookup.h"

#include <gtest/gtest.h>

namespace pellucid::cache {
namespace {

int g_checks = 0;

// Holds while `*answer` is this entry's number; -1 for "every guard raises".
class Numbered final : public guard::GuardProgram {
 public:
  Numbered(int number, const int* answer) : number_(number), answer_(answer) {}
  guard::Verdict check(const guard::FrameView&) noexcept override {
    g_checks++;
    if (!alive) return guard::Verdict::kMiss;
    return *answer_ == -1 ? guard::Verdict::kError : *answer_ == number_ ? guard::Verdict::kHit : guard::Verdict::kMiss;
  }
  std::vector<guard::Feature> features() const override {
    return {{0, guard::Feature::kType, 7}, {1, guard::Feature::kInt, static_cast<uint64_t>(number_ / same)}};
  }
  uint64_t feature_of(const guard::FrameView&, uint32_t local, guard::Feature::Kind) const noexcept override {
    return local == 1 && *answer_ >= 0 ? static_cast<uint64_t>(*answer_ / same) : 7;
  }
  static inline int same = 1;  // so many in a row expect the same of the argument
  bool valid() const override { return alive; }
  PyObject* const* block() const override { return nullptr; }
  size_t block_size() const override { return 0; }
  std::vector<std::string> failures(const guard::FrameView&) override { return {}; }
  std::string check_fn_text() const override { return ""; }
  std::string program_text() const override { return ""; }
  PyObject* describe() const override { return nullptr; }
  bool alive = true;

 private:
  int number_;
  const int* answer_;
};

class LookupTest : public testing::Test {
 protected:
  void add_entries(int count) {
    for (int i = 0; i < count; i++) {
      auto entry = std::make_shared<GuardedCode>();
      entry->guards = std::make_unique<Numbered>(static_cast<int>(cache.entries.size()), &answer);
      add(cache, std::move(entry));
    }
  }
  // How many programs ran until this entry was found.
  int checks_for(int number) {
    answer = number;
    g_checks = 0;
    GuardedCode* found = nullptr;
    EXPECT_EQ(find(cache, {}, found), guard::Verdict::kHit);
    EXPECT_EQ(found, cache.entries[static_cast<size_t>(number)].get());
    return g_checks;
  }
  Numbered& program(size_t i) { return static_cast<Numbered&>(*cache.entries[i]->guards); }

  int answer = 0;
  CodeCache cache;
};

TEST_F(LookupTest, EmptyCacheMisses) {
  GuardedCode* found = nullptr;
  EXPECT_EQ(find(cache, {}, found), guard::Verdict::kMiss);
}

TEST_F(LookupTest, RepeatedCallsRunOneProgram) {
  add_entries(8);
  EXPECT_EQ(checks_for(7), 1);  // the newest
  checks_for(3);
  checks_for(3);
  EXPECT_EQ(checks_for(3), 1);
}

TEST_F(LookupTest, RoundRobinIsPredicted) {
  add_entries(8);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 8; i++) checks_for(i);
  }
  for (int i = 0; i < 8; i++) EXPECT_EQ(checks_for(i), 1) << i;
}

TEST_F(LookupTest, AnyOrderIsFoundByWhatAnArgumentShows) {
  add_entries(32);
  unsigned number = 1;
  for (int i = 0; i < 200; i++) {
    number = number * 1664525 + 1013904223;
    EXPECT_LE(checks_for(static_cast<int>(number >> 8 & 31)), 2);
  }
  program(9).alive = false;
  EXPECT_EQ(drop_invalid(cache), 1u);
  for (int i : {30, 3, 17, 8, 10}) {
    answer = i;
    g_checks = 0;
    GuardedCode* found = nullptr;
    EXPECT_EQ(find(cache, {}, found), guard::Verdict::kHit);
    EXPECT_LE(g_checks, 2);
  }
}

TEST_F(LookupTest, EntriesThatShowTheSameAreStillFound) {
  Numbered::same = 4;
  add_entries(32);
  for (int i = 0; i < 32; i++) checks_for(i * 13 % 32);
  Numbered::same = 1;
}

TEST_F(LookupTest, FewEntriesHaveNoIndex) {
  add_entries(3);
  EXPECT_TRUE(cache.index.entry_of.empty());
  add_entries(1);
  EXPECT_EQ(cache.index.entry_of.size(), 4u);
  EXPECT_EQ(cache.index.local, 1u);
}

TEST_F(LookupTest, EveryEntryIsTriedOnce) {
  for (int count = 1; count <= 5; count++) {
    cache = CodeCache{};
    add_entries(count);
    for (int first = 0; first < count; first++) {
      for (int second = 0; second < count; second++) {
        checks_for(first);
        checks_for(second);
        answer = 100;
        g_checks = 0;
        GuardedCode* found = nullptr;
        EXPECT_EQ(find(cache, {}, found), guard::Verdict::kMiss);
        EXPECT_EQ(g_checks, count);
        EXPECT_EQ(found, nullptr);
      }
    }
  }
}

TEST_F(LookupTest, AnErrorEndsTheSearchAndNamesItsEntry) {
  add_entries(3);
  answer = -1;
  GuardedCode* found = nullptr;
  EXPECT_EQ(find(cache, {}, found), guard::Verdict::kError);
  EXPECT_NE(found, nullptr);
}

TEST_F(LookupTest, DeadEntriesAreDroppedAndTheRestStillFound) {
  add_entries(5);
  for (int i : {0, 4, 2, 3, 1}) checks_for(i);
  program(1).alive = program(3).alive = false;
  EXPECT_EQ(drop_invalid(cache), 2u);
  EXPECT_EQ(drop_invalid(cache), 0u);
  ASSERT_EQ(cache.entries.size(), 3u);
  for (int number : {4, 0, 2}) {
    answer = number;
    GuardedCode* found = nullptr;
    EXPECT_EQ(find(cache, {}, found), guard::Verdict::kHit) << number;
  }
}

TEST_F(LookupTest, AnEntryThatRunsOutlivesItsPlaceInTheCache) {
  add_entries(1);
  std::weak_ptr<GuardedCode> entry = cache.entries[0];
  entry.lock()->running = 1;
  program(0).alive = false;
  drop_invalid(cache);
  ASSERT_FALSE(entry.expired());
  entry.lock()->retired = nullptr;
  EXPECT_TRUE(entry.expired());
}

}  // namespace
}  // namespace pellucid::cache
