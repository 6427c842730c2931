// The cache: what one `optimize` call (Region) keeps per code object: its entries, and what is known about code that is not
// captured. Entries are reference counted, so that one which is running survives a reset.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "guard/guard.h"
#include "py/ref.h"

namespace pellucid::cache {

// One optimize()/compile() call: entries belong to it.
struct Region {
  py::Ref backend;       // callable(gm, example_inputs) -> callable
  py::Ref backend_name;  // str
  py::Ref options;       // dict or None
  py::Ref settings;      // what optimize() was called with, for Python
  bool fullgraph = false;
  int dynamic = -1;  // -1 None, 0 False, 1 True
  bool disabled = false;
  uint64_t id = 0;
};

// What the transformed code comes to where it only calls the graph and returns what that gave: such calls need no frame of its own.
struct DirectCall {
  enum class Returns : uint8_t { kItem, kTuple, kList };  // one of the graph's outputs, or all of them in order
  py::Ref graph;                                          // bridge::GraphCall; null: there are other things to do
  Returns returns = Returns::kItem;
  uint32_t index = 0;  // kItem
  uint32_t count = 0;  // kTuple, kList
};

struct GuardedCode {
  std::unique_ptr<guard::GuardProgram> guards;
  py::Ref code;              // the transformed code object; parameters are the original's localsplus arguments, all positional
  py::Ref function;          // function object over `code` for the last seen (globals, closure); remade when the closure differs
  bool calls_python = true;  // it may run Python code that must be looked at by the hook (graph breaks); false: whole graph
  py::Ref graph;             // a GraphModule, or what stands for one that was not built yet (torch_bridge/lazy_graph); or null
  DirectCall direct;
  py::Ref report;  // dict for cache_entries(): graph, backend, code text, breaks ...
  uint64_t hits = 0;
  uint32_t successor = 0;
  // Calls that are running the entry now. One that is dropped meanwhile keeps itself alive until the last of them is over, so that what
  // its code reads through raw pointers (the guards' block) stays.
  uint32_t running = 0;
  std::shared_ptr<GuardedCode> retired;
};

// To be called with every entry that leaves a cache.
inline void retire(const std::shared_ptr<GuardedCode>& entry) {
  if (entry->running > 0) entry->retired = entry;
}

enum class State : uint8_t { kCapture, kSkip, kLimit };  // kSkip: never looked at again; kLimit: hits go on, no new captures

// Which entry to try for what an argument shows: the argument whose feature tells most entries apart. Made when entries come or go.
struct EntryIndex {
  uint32_t local = 0;
  guard::Feature::Kind kind = guard::Feature::kInt;
  std::unordered_map<uint64_t, uint32_t> entry_of;  // empty: there is none
};

struct CodeCache {  // of one (region, code object)
  Region* region = nullptr;
  py::Ref code;
  State state = State::kCapture;
  std::string skip_reason;
  std::vector<std::shared_ptr<GuardedCode>> entries;
  uint32_t most_recent = 0;
  EntryIndex index;
  uint64_t added = 0;      // entries so far
  uint32_t capturing = 0;  // threads that are making an entry now
};

}  // namespace pellucid::cache
