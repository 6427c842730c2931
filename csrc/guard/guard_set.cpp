// GuardSet: the guards a capture collects, each once. Adding one takes the same time however many there are, also on one source: a dict
// of which many keys are read.
#include "guard/guard.h"
#include "source/plain.h"

namespace pellucid::guard {
namespace {

bool same_object_or_value(const py::Ref& left, const py::Ref& right) {
  if (left.get() == right.get()) return true;
  return left && right && source::plain_equal(left.get(), right.get());
}

// A tensor is its own spec and an object its identity: equality of the payload is identity there.
bool same(const Guard& left, const Guard& right) {
  if (left.kind != right.kind || left.source != right.source || left.other != right.other || left.number != right.number ||
      left.group != right.group) {
    return false;
  }
  if (left.kind == Kind::kTensor) return true;  // one tensor per source and capture
  if (left.kind == Kind::kId) return left.payload.get() == right.payload.get();
  return same_object_or_value(left.payload, right.payload) && left.expected.get() == right.expected.get();
}

static_assert(static_cast<unsigned>(Kind::kSubclassOf) < 32, "kinds are bits of a word");
uint32_t bit(Kind kind) { return uint32_t{1} << static_cast<unsigned>(kind); }

size_t combine(size_t hash, size_t value) { return (hash ^ value) * 0x9E3779B97F4A7C15ull; }

// Agrees with same(). Groups are few.
size_t hash_of(const Guard& guard) {
  size_t hash =
      combine(combine(static_cast<size_t>(guard.kind), reinterpret_cast<size_t>(guard.source)), reinterpret_cast<size_t>(guard.other));
  if (guard.payload && guard.kind != Kind::kTensor && guard.kind != Kind::kId)
    hash = combine(hash, source::plain_hash(guard.payload.get()));
  return hash;
}

}  // namespace

void GuardSet::add(Guard guard) {
  const size_t hash = hash_of(guard);
  auto [first, last] = by_guard_.equal_range(hash);
  for (; first != last; ++first) {
    comparisons_++;
    if (same(guards_[first->second], guard)) return;
  }
  by_guard_.emplace(hash, guards_.size());
  kinds_[guard.source] |= bit(guard.kind);
  guards_.push_back(std::move(guard));
}

bool GuardSet::has(Kind kind, const source::Source* source) const {
  auto found = kinds_.find(source);
  return found != kinds_.end() && (found->second & bit(kind)) != 0;
}

}  // namespace pellucid::guard
