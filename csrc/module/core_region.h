// Region as a Python object: what one optimize() call owns, its caches per code object included. Wrappers hold it, the thread state
// names it while it is active. Also the data that is attached to code objects. Knows no frames and no translator.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "cache/cache.h"
#include "cpython/hook.h"
#include "py/python.h"

namespace pellucid::module {

using CacheMap = std::unordered_map<PyObject*, std::shared_ptr<cache::CodeCache>>;  // by code object, which the cache keeps alive

struct RegionObject {
  PyObject_HEAD cache::Region* region;
  CacheMap* caches;
  uint64_t generation;  // moves when caches are dropped: a pointer to one is good as long as it stays
  PyObject* weakrefs;
};

extern PyTypeObject region_type;

// Attached to a code object through the code extra index. Borrows the caches: a region takes its rows out before it drops them.
struct CodeData {
  enum class Kind : uint8_t { kLookAt, kSkip, kTransformed };
  Kind kind = Kind::kLookAt;
  const char* reason = nullptr;  // kSkip
  struct Row {
    RegionObject* region;
    cache::CodeCache* cache;
  };
  std::vector<Row> rows;
};

// Takes the hook's table out of pellucid._bytecode; false with an exception set. Everything else here expects that it succeeded.
bool load_hook_api();
extern const cpython::HookApi* hook_table;
inline const cpython::HookApi& hook() { return *hook_table; }

PyObject* new_region(PyObject* backend, PyObject* backend_name, PyObject* options, bool fullgraph, int dynamic, PyObject* settings);

// The data of a code object, made by the skip rules when it is asked for first. Null with an exception set.
CodeData* data_of(PyObject* code);
bool mark_transformed(PyObject* code);

// The region's cache for a code object, made when there is none. Null with an exception set.
std::shared_ptr<cache::CodeCache> cache_of(RegionObject* region, PyObject* code);

// Drops every cache of a region, or of all of them. Running entries live on until they return.
void reset_region(RegionObject* region);
void reset_all_regions();

// A list of {code, state, reason, entries: [{guards, check_fn, program, code, graph_module, report, hits, calls_python, valid}]}.
PyObject* describe_region(RegionObject* region);
// One of those entries: a dict.
PyObject* describe_entry(const cache::GuardedCode& entry);

bool ready_region_type();

}  // namespace pellucid::module
