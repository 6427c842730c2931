// A call pattern that repeats (one entry, or a loop over several) is predicted by one number per entry: who was hit after it. Where calls
// come in any order, the argument that tells most entries apart finds the entry by its hash.
#include "cache/lookup.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pellucid::cache {
namespace {

constexpr size_t kMany = 4;  // entries: fewer are as soon tried

void make_index(CodeCache& cache) {
  cache.index = {};
  if (cache.entries.size() < kMany) return;
  std::map<std::pair<uint32_t, guard::Feature::Kind>, std::unordered_map<uint64_t, uint32_t>> by_argument;
  for (uint32_t i = 0; i < cache.entries.size(); i++) {
    for (const guard::Feature& each : cache.entries[i]->guards->features()) by_argument[{each.local, each.kind}].emplace(each.key, i);
  }
  for (auto& [argument, entry_of] : by_argument) {
    if (entry_of.size() < 2 || entry_of.size() <= cache.index.entry_of.size()) continue;
    cache.index.local = argument.first;
    cache.index.kind = argument.second;
    cache.index.entry_of = std::move(entry_of);
  }
}

// The number of the entry that expects what the frame shows; `none` if there is none.
uint32_t indexed(const CodeCache& cache, const guard::FrameView& frame, uint32_t none) noexcept {
  const EntryIndex& index = cache.index;
  if (index.entry_of.empty()) return none;
  const auto found = index.entry_of.find(cache.entries.front()->guards->feature_of(frame, index.local, index.kind));
  return found == index.entry_of.end() ? none : found->second;
}

}  // namespace

guard::Verdict find(CodeCache& cache, const guard::FrameView& frame, GuardedCode*& found) noexcept {
  const auto& entries = cache.entries;
  auto count = static_cast<uint32_t>(entries.size());
  if (count == 0) return guard::Verdict::kMiss;
  uint32_t last = cache.most_recent < count ? cache.most_recent : 0;
  uint32_t predicted = entries[last]->successor < count ? entries[last]->successor : last;
  uint32_t tried[3], n_tried = 0;
  auto verdict = guard::Verdict::kMiss;
  const auto is_new = [&](uint32_t at) { return at < count && std::find(tried, tried + n_tried, at) == tried + n_tried; };
  const auto holds = [&](uint32_t at) {
    verdict = entries[at]->guards->check(frame);
    if (verdict == guard::Verdict::kMiss) return false;
    found = entries[at].get();
    if (verdict == guard::Verdict::kHit) {
      entries[last]->successor = at;
      cache.most_recent = at;
    }
    return true;
  };
  if (holds(predicted)) return verdict;
  tried[n_tried++] = predicted;
  for (uint32_t at : {indexed(cache, frame, count), last}) {
    if (!is_new(at)) continue;
    if (holds(at)) return verdict;
    tried[n_tried++] = at;
  }
  for (uint32_t at = 0; at < count; at++) {
    if (is_new(at) && holds(at)) return verdict;
  }
  return guard::Verdict::kMiss;
}

void add(CodeCache& cache, std::shared_ptr<GuardedCode> entry) {
  auto at = static_cast<uint32_t>(cache.entries.size());
  entry->successor = at;
  cache.added++;
  cache.entries.push_back(std::move(entry));
  cache.most_recent = at;
  make_index(cache);
}

size_t drop_invalid(CodeCache& cache) {
  std::vector<std::shared_ptr<GuardedCode>> dropped;
  auto valid = [](const std::shared_ptr<GuardedCode>& entry) { return entry->guards->valid(); };
  auto first = std::stable_partition(cache.entries.begin(), cache.entries.end(), valid);
  dropped.assign(std::make_move_iterator(first), std::make_move_iterator(cache.entries.end()));
  cache.entries.erase(first, cache.entries.end());
  if (dropped.empty()) return 0;
  for (const auto& entry : dropped) retire(entry);
  cache.most_recent = 0;
  for (uint32_t i = 0; i < cache.entries.size(); i++) cache.entries[i]->successor = i;
  make_index(cache);
  return dropped.size();
}

}  // namespace pellucid::cache
