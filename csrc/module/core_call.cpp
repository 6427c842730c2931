// The call path: guard check, run, trampoline, and the frame hook's callback. The cold side (capture) is core_capture.cpp.
#include "module/core_call.h"

#include <algorithm>
#include <vector>

#include "cache/lookup.h"
#include "module/core_capture.h"
#include "module/core_direct.h"
#include "py/ref.h"
#include "torch_bridge/graph_call.h"

namespace pellucid::module {

namespace {

using cpython::Frame;
using cpython::ThreadState;

enum class Target : uint8_t { kFunction, kCode };  // what a caller runs: a function object, or code in the frame that is there

// A trace function (debuggers, coverage) is to see the lines of the program, so frames run as written while there is one; and its own
// frames, like those of a profile function, are none of the program.
inline bool is_traced(PyThreadState* thread) { return thread->c_tracefunc != nullptr || thread->tracing != 0; }

// The entry was dropped while it ran. Freeing it may run Python code; an exception on its way out must survive that.
void free_retired(cache::GuardedCode& entry) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  std::shared_ptr<cache::GuardedCode> last = std::move(entry.retired);
  last.reset();
  PyErr_Restore(type, value, traceback);
}

inline void end_run(cache::GuardedCode& entry) {
  if (--entry.running == 0 && entry.retired != nullptr) [[unlikely]]
    free_retired(entry);
}

inline PyObject* run_hit(cache::GuardedCode& entry, const guard::FrameView& frame) {
  entry.hits++;
  entry.running++;
  PyObject* result = run_directly(entry, frame);
  end_run(entry);
  return result;
}

// What to do with a call. With kRun the entry is running until the plan is gone.
class Plan {
 public:
  Plan() = default;
  explicit Plan(Next next) : next(next) {}
  // Of an entry whose guards have just been checked. From here on it may be dropped, and what it guards may change. `direct`: it runs
  // before anything else does.
  explicit Plan(cache::GuardedCode& entry, bool direct = false)
      : next(Next::kRun), direct(direct), calls_python(entry.calls_python), entry_(&entry) {
    entry.running++;
    if (!direct && entry.guards->block_size() != 0) pinned_ = std::make_unique<bridge::PinnedBlock>(*entry.guards);
  }
  Plan(Plan&& other) noexcept
      : next(other.next),
        direct(other.direct),
        target(std::move(other.target)),
        calls_python(other.calls_python),
        entry_(std::exchange(other.entry_, nullptr)),
        pinned_(std::move(other.pinned_)) {}
  Plan& operator=(Plan&& other) noexcept {
    std::swap(next, other.next);
    std::swap(direct, other.direct);
    std::swap(target, other.target);
    std::swap(calls_python, other.calls_python);
    std::swap(entry_, other.entry_);
    std::swap(pinned_, other.pinned_);
    return *this;
  }
  ~Plan() {
    pinned_.reset();
    if (entry_ != nullptr) end_run(*entry_);
  }

  // With `direct`: what the entry's code would return.
  PyObject* run(const guard::FrameView& frame) { return run_directly(*entry_, frame); }

  Next next = Next::kAsWritten;
  bool direct = false;        // kRun: without the entry's code, so there is no target
  py::Ref target;             // kRun: a function object or code, as asked for
  bool calls_python = false;  // kRun: it may start frames that are to be looked at

 private:
  cache::GuardedCode* entry_ = nullptr;
  std::unique_ptr<bridge::PinnedBlock> pinned_;
};

// PyObject_Vectorcall for what is known to be a Python function.
inline PyObject* call_function(PyObject* function, PyObject* const* locals, Py_ssize_t count) {
  return reinterpret_cast<PyFunctionObject*>(function)->vectorcall(function, locals, static_cast<size_t>(count), nullptr);
}

PyObject* function_over(PyObject* code, PyObject* original) {
  py::Ref made = py::Ref::steal(PyFunction_New(code, PyFunction_GET_GLOBALS(original)));
  PyObject* closure = PyFunction_GET_CLOSURE(original);
  if (!made || (closure != nullptr && PyFunction_SetClosure(made.get(), closure) < 0)) return nullptr;
  return made.release();
}

inline bool goes_with(PyObject* transformed, PyObject* original) {
  return transformed != nullptr && PyFunction_GET_GLOBALS(transformed) == PyFunction_GET_GLOBALS(original) &&
         PyFunction_GET_CLOSURE(transformed) == PyFunction_GET_CLOSURE(original);
}

// The function object over an entry's code that goes with `original`'s globals and closure: the last one, or a new one.
PyObject* function_for(cache::GuardedCode& entry, PyObject* original) {
  if (goes_with(entry.function.get(), original)) [[likely]]
    return entry.function.new_ref();
  py::Ref made = py::Ref::steal(function_over(entry.code.get(), original));
  if (!made) return nullptr;
  py::Ref old = entry.function;  // freed when nothing of the entry is being touched
  entry.function = made;
  return made.release();
}

Plan run_entry(cache::GuardedCode& entry, PyObject* function, Target target) {
  if (runs_directly(entry)) return Plan(entry, true);
  Plan made(entry);
  made.target = target == Target::kCode ? entry.code : py::Ref::steal(function_for(entry, function));
  if (!made.target) made.next = Next::kRaise;
  return made;
}

// What follows from a look-up.
Plan plan_found(guard::Verdict verdict, cache::GuardedCode* entry, RegionObject* region, cache::CodeCache* cache, PyObject* function,
                PyObject* const* locals, Py_ssize_t count, Target target) {
  switch (verdict) {
    case guard::Verdict::kHit:
      entry->hits++;
      return run_entry(*entry, function, target);
    case guard::Verdict::kError:
      return Plan(Next::kRaise);
    case guard::Verdict::kMiss:
      break;
  }
  if (cache->state != cache::State::kCapture) return Plan(Next::kAsWritten);
  Miss miss = capture_miss(region, function, locals, count);
  if (miss.next != Next::kRun) return Plan(miss.next);
  Plan made = run_entry(*miss.entry, function, target);
  cache::retire(miss.entry);  // a reset during the capture may have left it to us alone
  return made;
}

Plan plan(RegionObject* region, cache::CodeCache* cache, PyObject* function, PyObject* const* locals, Py_ssize_t count, Target target) {
  cache::GuardedCode* entry = nullptr;
  guard::Verdict verdict = cache::find(*cache, {function, locals}, entry);
  return plan_found(verdict, entry, region, cache, function, locals, count, target);
}

// The arguments of a tail call live on in the frame of its callee alone: objects that the callee drops must die there.
class Handover {
 public:
  Handover(ThreadState& thread, PyObject* callee, TailCall* pending) : thread_(thread) {
    if (Py_REFCNT(pending) != 1) return;  // a profiler or tracer saw it and kept it
    thread_.handover = pending->arguments;
    thread_.handover_count = Py_SIZE(pending);
    thread_.handover_function = callee;
  }
  ~Handover() { thread_.handover = nullptr; }
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

 private:
  ThreadState& thread_;
};

// All parameters are positional and as many as there are arguments: fast locals as they come.
bool takes_exactly(PyObject* callable, Py_ssize_t count) {
  if (!PyFunction_Check(callable)) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callable));
  constexpr int kOther = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  return code->co_argcount == count && code->co_kwonlyargcount == 0 && !(code->co_flags & kOther);
}

// Makes the calls that transformed code ends with, each after the frame before it is gone. Takes over `result`.
PyObject* run_tail_calls(RegionObject* region, ThreadState& thread, PyObject* result) {
  while (is_tail_call(result)) {
    py::Ref holder = py::Ref::steal(result);
    auto* pending = reinterpret_cast<TailCall*>(result);
    PyObject* function = pending->function;
    Py_ssize_t count = Py_SIZE(pending);
    Plan next;
    bool simple = takes_exactly(function, count);
    if (simple && !is_traced(PyThreadState_Get())) {
      std::shared_ptr<cache::CodeCache> cache = cache_of(region, PyFunction_GET_CODE(function));
      if (cache == nullptr) return nullptr;
      next = plan(region, cache.get(), function, pending->arguments, count, Target::kFunction);
    }
    if (next.next == Next::kRaise) return nullptr;
    if (next.direct) return next.run({function, pending->arguments});
    PyObject* callee = next.target ? next.target.get() : function;
    thread.region = next.target && !next.calls_python ? nullptr : region;
    // A call that is not simple arrives at the hook and takes the path of any nested call.
    thread.as_written = simple && !next.target ? function : nullptr;
    Handover handover(thread, callee, pending);
    result = PyObject_Vectorcall(callee, pending->arguments, static_cast<size_t>(count), nullptr);
    thread.as_written = nullptr;
  }
  return result;
}

// Runs transformed code for a frame that has not begun, in its place where that is possible.
PyObject* run_in_frame(Frame& frame, PyObject* code, Py_ssize_t count) {
  if (hook().swap_code(frame, code)) return hook().evaluate(frame);
  py::Ref function = py::Ref::steal(function_over(code, frame.function));
  return function ? PyObject_Vectorcall(function.get(), frame.locals, static_cast<size_t>(count), nullptr) : nullptr;
}

// The region's cache of a frame's code. Null with an exception set.
cache::CodeCache* cache_for_frame(RegionObject* region, const CodeData& data, PyObject* code) {
  for (const CodeData::Row& row : data.rows) {
    if (row.region == region) return row.cache;
  }
  return cache_of(region, code).get();  // the region keeps it
}

// An import in the middle of the program: what a module does to get ready is not the program's work.
bool is_module_body(PyObject* code_object) {
  auto* code = reinterpret_cast<PyCodeObject*>(code_object);
  if ((code->co_flags & CO_OPTIMIZED) || PyUnicode_CompareWithASCIIString(code->co_name, "<module>") != 0) return false;
  return PyUnicode_GET_LENGTH(code->co_filename) > 0 &&
         PyUnicode_READ_CHAR(code->co_filename, 0) != 0x3c;  // not <string>: exec() is the program
}

PyObject* on_frame(ThreadState& thread, Frame& frame) {
  if (frame.function == thread.as_written) {
    thread.as_written = nullptr;
    return hook().evaluate(frame);
  }
  if (is_traced(frame.thread)) [[unlikely]]
    return hook().evaluate(frame);
  auto* data = static_cast<CodeData*>(frame.data);
  if (data == nullptr && (data = data_of(frame.code)) == nullptr) return nullptr;
  if (data->kind != CodeData::Kind::kLookAt) {
    if (data->kind == CodeData::Kind::kSkip && (takes_over(frame.function) || is_module_body(frame.code))) [[unlikely]] {
      ActiveRegion nothing(nullptr);
      return hook().evaluate(frame);
    }
    return hook().evaluate(frame);
  }
  if (has_disable_mark(frame.function)) [[unlikely]]
    return hook().evaluate(frame);

  auto* region = static_cast<RegionObject*>(thread.region);
  cache::CodeCache* cache = cache_for_frame(region, *data, frame.code);
  if (cache == nullptr) return nullptr;
  Py_ssize_t count = parameter_count(reinterpret_cast<PyCodeObject*>(frame.code));
  Plan next = plan(region, cache, frame.function, frame.locals, count, Target::kCode);
  if (next.next == Next::kRaise) return nullptr;
  if (next.next == Next::kAsWritten) return hook().evaluate(frame);
  if (next.direct) return next.run({frame.function, frame.locals});
  // Whoever made `region` active holds it, and the hook, until the frame is over.
  if (!next.calls_python) thread.region = nullptr;
  PyObject* result = run_in_frame(frame, next.target.get(), count);
  if (is_tail_call(result)) {
    hook().drop_locals(frame);
    result = run_tail_calls(region, thread, result);
  }
  thread.region = region;
  return result;
}

void tail_call_dealloc(PyObject* self) {
  auto* pending = reinterpret_cast<TailCall*>(self);
  Py_XDECREF(pending->function);
  for (Py_ssize_t i = 0; i < Py_SIZE(pending); i++) Py_XDECREF(pending->arguments[i]);
  PyObject_Free(self);
}

}  // namespace

PyTypeObject tail_call_type = {PyVarObject_HEAD_INIT(nullptr, 0) "pellucid._core.TailCall"};

bool ready_call_types() {
  tail_call_type.tp_basicsize = offsetof(TailCall, arguments);
  tail_call_type.tp_itemsize = sizeof(PyObject*);
  tail_call_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  tail_call_type.tp_doc = "A call to be made when the frame that returns this is gone. Never reaches a user's code.";
  tail_call_type.tp_dealloc = tail_call_dealloc;
  return PyType_Ready(&tail_call_type) == 0;
}

PyObject* tail_call(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "tail_call needs a function");
    return nullptr;
  }
  auto* pending = PyObject_NewVar(TailCall, &tail_call_type, count - 1);
  if (pending == nullptr) return nullptr;
  Py_INCREF(arguments[0]);
  pending->function = arguments[0];
  for (Py_ssize_t i = 1; i < count; i++) {
    Py_INCREF(arguments[i]);
    pending->arguments[i - 1] = arguments[i];
  }
  return reinterpret_cast<PyObject*>(pending);
}

namespace {

// The regions that are active on this thread, by a number each. As a rule the last one ends first; greenlets end in any order, and then
// what one of them wants to put back may be gone.
struct Activation {
  uint64_t number;
  RegionObject* region;
};
thread_local std::vector<Activation> activations;
uint64_t next_activation = 1;

void end_activation(uint64_t number) {
  auto found = std::find_if(activations.rbegin(), activations.rend(), [number](const Activation& one) { return one.number == number; });
  if (found != activations.rend()) activations.erase(std::next(found).base());
}

void* if_still_active(void* region) {
  bool active = std::any_of(activations.rbegin(), activations.rend(), [region](const Activation& one) { return one.region == region; });
  return active ? region : nullptr;
}

}  // namespace

ActiveRegion::ActiveRegion(RegionObject* region)
    : thread_(*hook().thread()), saved_region_(thread_.region), saved_as_written_(thread_.as_written), region_(region) {
  if (region_ != nullptr) {
    // Before ours goes in: pausing may take the other hook out.
    if (hook().has_neighbour()) [[unlikely]]
      pause_.emplace();
    if (!hook().acquire()) {
      ok_ = false;
      region_ = nullptr;
      return;
    }
    Py_INCREF(region_);
    number_ = next_activation++;
    activations.push_back({number_, region_});
  }
  thread_.region = region_;
  thread_.as_written = nullptr;
}

ActiveRegion::~ActiveRegion() {
  if (region_ != nullptr) end_activation(number_);
  thread_.region = saved_region_ == nullptr ? nullptr : if_still_active(saved_region_);
  thread_.as_written = saved_as_written_;
  if (region_ == nullptr) return;
  hook().release();
  // Freeing the region runs Python code; an exception on its way out must survive that.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Py_DECREF(region_);
  PyErr_Restore(type, value, traceback);
}

PyObject* call_as_written(RegionObject* region, const OriginalCall& original) {
  ActiveRegion active(region);
  if (!active.ok()) return nullptr;
  active.thread().as_written = original.function;
  return PyObject_Vectorcall(original.function, original.arguments, original.nargsf, original.keywords);
}

bool call_directly(cache::CodeCache* cache, PyObject* function, PyObject* const* locals, PyObject*& result) {
  if (is_traced(PyThreadState_Get())) [[unlikely]]
    return false;
  cache::GuardedCode* entry = nullptr;
  guard::Verdict verdict = cache::find(*cache, {function, locals}, entry);
  result = nullptr;
  if (verdict == guard::Verdict::kError) return true;
  if (verdict == guard::Verdict::kMiss || !runs_directly(*entry)) return false;
  result = run_hit(*entry, {function, locals});
  return true;
}

PyObject* call_bound(RegionObject* region, cache::CodeCache* cache, PyObject* function, PyObject* const* locals, Py_ssize_t count,
                     const OriginalCall& original) {
  if (*hook().busy != 0 && hook().thread()->in_capture) [[unlikely]]
    return PyObject_Vectorcall(original.function, original.arguments, original.nargsf, original.keywords);
  if (is_traced(PyThreadState_Get())) [[unlikely]]
    return call_as_written(region, original);
  cache::GuardedCode* entry = nullptr;
  guard::Verdict verdict = cache::find(*cache, {function, locals}, entry);
  if (verdict == guard::Verdict::kHit && runs_directly(*entry)) [[likely]]
    return run_hit(*entry, {function, locals});
  // Nobody has the hook, so no thread has a region: a whole graph is run and nothing else is touched.
  if (verdict == guard::Verdict::kHit && *hook().busy == 0 && !entry->calls_python && goes_with(entry->function.get(), function))
      [[likely]] {
    entry->hits++;
    entry->running++;
    PyObject* result;
    if (entry->guards->block_size() == 0) {
      result = call_function(entry->function.get(), locals, count);  // its frame takes a reference
    } else {
      const bridge::PinnedBlock pinned(*entry->guards);
      result = call_function(entry->function.get(), locals, count);
    }
    end_run(*entry);
    return result;
  }
  Plan next = plan_found(verdict, entry, region, cache, function, locals, count, Target::kFunction);
  if (next.next == Next::kAsWritten) return call_as_written(region, original);
  if (next.next == Next::kRaise) return nullptr;
  if (next.direct) return next.run({function, locals});
  if (!next.calls_python && *hook().busy == 0) return call_function(next.target.get(), locals, count);
  ActiveRegion active(next.calls_python ? region : nullptr);
  if (!active.ok()) return nullptr;
  PyObject* result = PyObject_Vectorcall(next.target.get(), locals, static_cast<size_t>(count), nullptr);
  return is_tail_call(result) ? run_tail_calls(region, active.thread(), result) : result;
}

void install_frame_callback() {
  hook().set_callback(on_frame, [](void* data) { delete static_cast<CodeData*>(data); });
}

}  // namespace pellucid::module
