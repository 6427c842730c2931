// Dictionaries of CPython 3.11 take their version tags from one counter of the process. Where it stands tells whether any dictionary at
// all was made or changed since it was read last: if none was, nothing that tags verify has to be looked at again.
#pragma once
#include <cstdint>

namespace pellucid::guard {

// Creations and changes of dictionaries so far that are not this function's own. kUnknown where the counter cannot be read.
constexpr uint64_t kUnknownDictEvents = ~uint64_t{0};
uint64_t dict_events() noexcept;

}  // namespace pellucid::guard
