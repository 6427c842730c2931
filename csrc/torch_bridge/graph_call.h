// GraphCall: what transformed functions call. It adds the parameters that the guard program has just verified to the arguments, and
// puts torch's modes back when a graph that changes them raises in the middle. What the graph runs is not captured.
#pragma once
#include <vector>

#include "cpython/hook.h"
#include "guard/guard.h"
#include "py/ref.h"

namespace pellucid::bridge {

// The block of an entry's program as its guards have just verified it, with references of its own, for the graph call that this thread
// will make: until then other threads may run the same guards, and replace and free parameters. Made and destroyed in the order of a
// stack, by whoever runs the entry's code.
class PinnedBlock {
 public:
  explicit PinnedBlock(const guard::GuardProgram& program);
  ~PinnedBlock();
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;

  static PinnedBlock* find(const guard::GuardProgram* program);  // this thread's innermost; null
  PyObject* const* objects() const { return objects_.data(); }
  void release();  // the graph has run: what the program lets go of from now on is free at once

 private:
  const guard::GuardProgram* program_;
  std::vector<PyObject*> objects_;
  PinnedBlock* outer_;
};

// A callable whose class has this attribute true takes references to the inputs that it needs before it runs Python code or lets go of
// the GIL, if it needs any: the caller then takes none. Looked up once, when the graph is captured.
inline constexpr const char* kBorrowsInputs = "pellucid_borrows_inputs";

// `program` must outlive the result's calls: both belong to one cache entry. Null with a Python exception set.
py::Ref make_graph_call(PyObject* callable, const guard::GuardProgram* program, bool changes_state);

// The graph's result for the frame that `program` has just hit; input_runs() must say where the inputs are.
PyObject* call_graph_on_frame(PyObject* graph_call, const guard::FrameView& frame);

// Before the first call.
void set_graph_call_hook(const cpython::HookApi* api);

}  // namespace pellucid::bridge
