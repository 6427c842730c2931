// GuardSet: the guards a capture collects, each once. Linear in the number of guards on one source, which is small.
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

}  // namespace

void GuardSet::add(Guard guard) {
  auto [first, last] = by_source_.equal_range(guard.source);
  for (; first != last; ++first) {
    if (same(guards_[first->second], guard)) return;
  }
  by_source_.emplace(guard.source, guards_.size());
  guards_.push_back(std::move(guard));
}

bool GuardSet::has(Kind kind, const source::Source* source) const {
  auto [first, last] = by_source_.equal_range(source);
  for (; first != last; ++first) {
    if (guards_[first->second].kind == kind) return true;
  }
  return false;
}

}  // namespace pellucid::guard
