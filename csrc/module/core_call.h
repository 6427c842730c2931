// The life of a call once its arguments are bound: cache, guards, capture, running the transformed code and the calls it ends with.
// Used by the wrapper types and by the frame hook. Knows neither how arguments are bound nor what capture does.
#pragma once
#include <optional>

#include "module/core_region.h"
#include "module/core_torch_compiler.h"

namespace pellucid::module {

// What a wrapper calls when there is nothing to run in its place: the function itself with the caller's own arguments.
struct OriginalCall {
  PyObject* function;
  PyObject* const* arguments;
  size_t nargsf;
  PyObject* keywords;
};

// Runs `function` in `region` with its arguments bound: `locals` has `count` of them, in the order of the code's fast locals.
// `cache` is the region's for the function's code.
PyObject* call_bound(RegionObject* region, cache::CodeCache* cache, PyObject* function, PyObject* const* locals, Py_ssize_t count,
                     const OriginalCall& original);

// Whether the entry hit last calls its graph directly: then call_directly is worth a try.
inline bool last_was_direct(const cache::CodeCache& cache) {
  return cache.most_recent < cache.entries.size() && cache.entries[cache.most_recent]->direct.graph;
}

// As call_bound, but only if an entry hits that calls its graph directly. False: nothing happened, call_bound has to.
bool call_directly(cache::CodeCache* cache, PyObject* function, PyObject* const* locals, PyObject*& result);

// Runs a call as written, with frames that it starts still looked at. For functions (their own frame is not) and other callables.
PyObject* call_as_written(RegionObject* region, const OriginalCall& original);

// Sets what the hook looks at for the time of its life, and puts back what was there. With a region the hook is installed.
class ActiveRegion {
 public:
  explicit ActiveRegion(RegionObject* region);  // null: nothing is looked at
  ~ActiveRegion();
  ActiveRegion(const ActiveRegion&) = delete;
  ActiveRegion& operator=(const ActiveRegion&) = delete;
  cpython::ThreadState& thread() { return thread_; }
  bool ok() const { return ok_; }  // false: an exception is set

 private:
  cpython::ThreadState& thread_;
  void* saved_region_;
  PyObject* saved_as_written_;
  RegionObject* region_;
  uint64_t number_ = 0;
  std::optional<TorchCompilerPause> pause_;  // where another hook is installed
  bool ok_ = true;
};

// True while this thread captures a frame. Cheap where nobody captures or has the hook installed.
inline bool in_capture() { return *hook().busy != 0 && hook().thread()->in_capture; }

// Number of parameters, *args and **kwargs included: they are the first fast locals.
inline Py_ssize_t parameter_count(PyCodeObject* code) {
  return code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0) + ((code->co_flags & CO_VARKEYWORDS) != 0);
}

// What `tail_call(fn, *args)` returns and transformed code returns in turn: whoever ran the code makes the call once the code's frame
// is gone. It carries its own call, so that signal handlers, other threads and nested calls cannot get in between.
struct TailCall {
  PyObject_VAR_HEAD PyObject* function;
  PyObject* arguments[1];
};
extern PyTypeObject tail_call_type;
inline bool is_tail_call(PyObject* result) { return result != nullptr && Py_TYPE(result) == &tail_call_type; }

bool ready_call_types();
void install_frame_callback();

// tail_call(fn, *args), METH_FASTCALL.
PyObject* tail_call(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

}  // namespace pellucid::module
