// What a guard program owns: told to the garbage collector, so that cycles through a program are found, and counted for reports.
#include "guard/program.h"

namespace pellucid::guard {

namespace {

template <class T>
size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

size_t bytes_of(const std::vector<Expected>& tables) {
  size_t total = tables.capacity() * sizeof(Expected);
  for (const Expected& table : tables) total += bytes_of(table.entries);
  return total;
}

}  // namespace

int Program::traverse(visitproc visit, void* arg) const {
  if (int stop = holds_.traverse(visit, arg)) return stop;
  for (const GuardInfo& guard : guards_) Py_VISIT(guard.owned_payload.get());
  for (const auto* modes : {&state_.function_modes, &state_.dispatch_modes}) {
    for (const bridge::GlobalState::Mode& mode : *modes) {
      Py_VISIT(mode.weak.get());
      Py_VISIT(mode.device.get());
    }
  }
  // An arena that a capture still uses is held from the C stack too.
  return arena_ != nullptr && arena_.use_count() == 1 ? arena_->traverse(visit, arg) : 0;
}

size_t Program::bytes() const {
  size_t total = sizeof *this + bytes_of(rows_) + bytes_of(slots_) + bytes_of(types_) + bytes_of(objects_) + bytes_of(other_objects_) +
                 bytes_of(dicts_) + bytes_of(stages_) + bytes_of(table_specs_) + bytes_of(table_runs_) + bytes_of(type_expected_) +
                 bytes_of(dict_expected_) + bytes_of(object_dicts_) + bytes_of(other_object_dicts_) + bytes_of(keys_) +
                 bytes_of(pointers_) + bytes_of(row_specs_) + bytes_of(row_guards_) + bytes_of(guards_) + bytes_of(block_sources_);
  for (const Group& group : groups_) total += sizeof group + bytes_of(group.kept) + bytes_of(group.per_call) + bytes_of(group.table);
  constexpr size_t kReference = sizeof(PyWeakReference) + 2 * sizeof(void*);
  return total + holds_.count() * kReference + (arena_ != nullptr ? arena_->bytes() : 0);
}

}  // namespace pellucid::guard
