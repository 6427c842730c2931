// A call pattern that repeats (one entry, or a loop over several) is predicted by one number per entry: who was hit after it.
#include "cache/lookup.h"

#include <algorithm>

namespace pellucid::cache {

guard::Verdict find(CodeCache& cache, const guard::FrameView& frame, GuardedCode*& found) noexcept {
  const auto& entries = cache.entries;
  auto count = static_cast<uint32_t>(entries.size());
  if (count == 0) return guard::Verdict::kMiss;
  uint32_t last = cache.most_recent < count ? cache.most_recent : 0;
  uint32_t predicted = entries[last]->successor < count ? entries[last]->successor : last;
  for (uint32_t step = 0; step < count + 2; step++) {
    uint32_t at = step == 0 ? predicted : step == 1 ? last : step - 2;
    if (step != 0 && at == predicted) continue;
    if (step > 1 && at == last) continue;
    guard::Verdict verdict = entries[at]->guards->check(frame);
    if (verdict == guard::Verdict::kMiss) continue;
    found = entries[at].get();
    if (verdict == guard::Verdict::kHit) {
      entries[last]->successor = at;
      cache.most_recent = at;
    }
    return verdict;
  }
  return guard::Verdict::kMiss;
}

void add(CodeCache& cache, std::shared_ptr<GuardedCode> entry) {
  auto at = static_cast<uint32_t>(cache.entries.size());
  entry->successor = at;
  cache.added++;
  cache.entries.push_back(std::move(entry));
  cache.most_recent = at;
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
  return dropped.size();
}

}  // namespace pellucid::cache
