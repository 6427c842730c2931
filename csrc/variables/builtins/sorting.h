// sorted() and list.sort(): the order CPython's sort gives.
#pragma once
#include <vector>

#include "variables/tracer.h"

namespace pellucid::variables {

// The items in sorted order; `key` null or None: the items themselves. Keys are computed and compared as the traced program would.
Result<std::vector<Variable*>> sort_values(Tracer& t, std::vector<Variable*> items, Variable* key, bool reverse);

}  // namespace pellucid::variables
