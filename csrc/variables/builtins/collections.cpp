// collections: what its Python code calls in C. Its containers are in conversion.cpp, namedtuple classes are ordinary classes.
#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

// A dict subclass with C code of its own, or a container that is not modelled.
Answer call_unmodelled(Tracer& t, PyObject* callable, Arguments& arguments) { return unsupported(t, callable, arguments); }

}  // namespace

void add_collections(Table& table) {
  table.add("collections", {"deque", "namedtuple"}, call_unmodelled);
  table.polyfill("collections", {"_count_elements"}, "collections");
}

}  // namespace pellucid::variables::builtins
