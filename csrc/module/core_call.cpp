// The call path: guard check, run, trampoline, and the frame hook's callback. The cold side (capture) is core_capture.cpp.
#include "module/core_call.h"

#include "module/core_capture.h"
#include "py/ref.h"

namespace pellucid::module {

namespace {

using cpython::Frame;
using cpython::ThreadState;

// The function object over an entry's code that goes with `original`'s globals and closure: the last one, or a new one.
PyObject* function_for(cache::GuardedCode& entry, PyObject* original) {
  PyObject* have = entry.function.get();
  if (have != nullptr && PyFunction_GET_GLOBALS(have) == PyFunction_GET_GLOBALS(original) &&
      PyFunction_GET_CLOSURE(have) == PyFunction_GET_CLOSURE(original)) [[likely]] {
    Py_INCREF(have);
    return have;
  }
  py::Ref made = py::Ref::steal(PyFunction_New(entry.code.get(), PyFunction_GET_GLOBALS(original)));
  if (!made) return nullptr;
  PyObject* closure = PyFunction_GET_CLOSURE(original);
  if (closure != nullptr && PyFunction_SetClosure(made.get(), closure) < 0) return nullptr;
  py::Ref old = entry.function;  // freed when nothing of the entry is being touched
  entry.function = made;
  return made.release();
}

Plan run_entry(cache::GuardedCode& entry, PyObject* function) {
  entry.hits++;
  bool calls_python = entry.calls_python;
  PyObject* transformed = function_for(entry, function);
  if (transformed == nullptr) return {Plan::Next::kRaise};
  return {Plan::Next::kRun, transformed, calls_python};
}

// The newest hit first, then the others.
guard::Verdict find(cache::CodeCache& cache, const guard::FrameView& frame, cache::GuardedCode*& found) {
  size_t count = cache.entries.size();
  if (count == 0) return guard::Verdict::kMiss;
  uint32_t first = cache.most_recent < count ? cache.most_recent : 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t at = i == 0 ? first : static_cast<uint32_t>(i <= first ? i - 1 : i);
    cache::GuardedCode* entry = cache.entries[at].get();
    if (!entry->guards->valid()) continue;
    guard::Verdict verdict = entry->guards->check(frame);
    if (verdict == guard::Verdict::kMiss) continue;
    if (verdict == guard::Verdict::kHit) cache.most_recent = at;
    found = entry;
    return verdict;
  }
  return guard::Verdict::kMiss;
}

Plan plan(RegionObject* region, cache::CodeCache* cache, PyObject* function, PyObject* const* locals, Py_ssize_t count) {
  cache::GuardedCode* entry = nullptr;
  switch (find(*cache, {function, locals}, entry)) {
    case guard::Verdict::kHit:
      return run_entry(*entry, function);
    case guard::Verdict::kError:
      return {Plan::Next::kRaise};
    case guard::Verdict::kMiss:
      break;
  }
  if (cache->state != cache::State::kCapture) return {Plan::Next::kAsWritten};
  return plan_miss(region, function, locals, count);
}

// Makes the calls that transformed code ends with, each after the frame before it is gone. Takes over `result`.
PyObject* run_tail_calls(RegionObject* region, ThreadState& thread, PyObject* result) {
  while (is_tail_call(result)) {
    py::Ref holder = py::Ref::steal(result);
    auto* pending = reinterpret_cast<TailCall*>(result);
    PyObject* function = pending->function;
    Py_ssize_t count = Py_SIZE(pending);
    Plan next{Plan::Next::kAsWritten};
    bool simple = false;
    if (PyFunction_Check(function)) {
      auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
      simple =
          code->co_argcount == count && code->co_kwonlyargcount == 0 && !(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR));
    }
    if (simple) {
      std::shared_ptr<cache::CodeCache> cache = cache_of(region, PyFunction_GET_CODE(function));
      if (cache == nullptr) return nullptr;
      next = plan(region, cache.get(), function, pending->arguments, count);
    }
    switch (next.next) {
      case Plan::Next::kRaise:
        return nullptr;
      case Plan::Next::kRun: {
        py::Ref transformed = py::Ref::steal(next.function);
        thread.region = next.calls_python ? region : nullptr;
        result = PyObject_Vectorcall(transformed.get(), pending->arguments, count, nullptr);
        break;
      }
      case Plan::Next::kAsWritten:
        thread.region = region;
        // Otherwise (not simple) the frame arrives at the hook and takes the path of any nested call.
        thread.as_written = simple ? function : nullptr;
        result = PyObject_Vectorcall(function, pending->arguments, count, nullptr);
        thread.as_written = nullptr;
        break;
    }
  }
  return result;
}

PyObject* on_frame(ThreadState& thread, Frame& frame) {
  if (frame.function == thread.as_written) {
    thread.as_written = nullptr;
    return hook().evaluate(frame);
  }
  auto* data = static_cast<CodeData*>(frame.data);
  if (data == nullptr && (data = data_of(frame.code)) == nullptr) return nullptr;
  if (data->kind != CodeData::Kind::kLookAt) {
    if (data->kind == CodeData::Kind::kSkip && takes_over(frame.function)) [[unlikely]] {
      ActiveRegion nothing(nullptr);
      return hook().evaluate(frame);
    }
    return hook().evaluate(frame);
  }
  if (has_disable_mark(frame.function)) [[unlikely]]
    return hook().evaluate(frame);

  auto* region = static_cast<RegionObject*>(thread.region);
  cache::CodeCache* cache = nullptr;
  for (const CodeData::Row& row : data->rows) {
    if (row.region == region) cache = row.cache;
  }
  std::shared_ptr<cache::CodeCache> made;
  if (cache == nullptr) {
    made = cache_of(region, frame.code);
    cache = made.get();
    if (cache == nullptr) return nullptr;
  }
  Py_ssize_t count = parameter_count(reinterpret_cast<PyCodeObject*>(frame.code));
  Plan next = plan(region, cache, frame.function, frame.locals, count);
  switch (next.next) {
    case Plan::Next::kRaise:
      return nullptr;
    case Plan::Next::kAsWritten:
      return hook().evaluate(frame);
    case Plan::Next::kRun:
      break;
  }
  py::Ref transformed = py::Ref::steal(next.function);
  ActiveRegion active(region);
  if (!active.ok()) return nullptr;
  if (!next.calls_python) active.thread().region = nullptr;
  PyObject* result = PyObject_Vectorcall(transformed.get(), frame.locals, count, nullptr);
  if (!is_tail_call(result)) return result;
  hook().drop_arguments(frame, count);  // the rest of the program must not find them alive: their frame has ended
  return run_tail_calls(region, active.thread(), result);
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

ActiveRegion::ActiveRegion(RegionObject* region)
    : thread_(*hook().thread()), saved_region_(thread_.region), saved_as_written_(thread_.as_written), region_(region) {
  if (region_ != nullptr) {
    if (!hook().acquire()) {
      ok_ = false;
      region_ = nullptr;
      return;
    }
    Py_INCREF(region_);
  }
  thread_.region = region_;
  thread_.as_written = nullptr;
}

ActiveRegion::~ActiveRegion() {
  thread_.region = saved_region_;
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

PyObject* call_bound(RegionObject* region, cache::CodeCache* cache, PyObject* function, PyObject* const* locals, Py_ssize_t count,
                     const OriginalCall& original) {
  if (*hook().busy != 0 && hook().thread()->in_capture) [[unlikely]]
    return PyObject_Vectorcall(original.function, original.arguments, original.nargsf, original.keywords);
  Plan next = plan(region, cache, function, locals, count);
  if (next.next == Plan::Next::kAsWritten) return call_as_written(region, original);
  if (next.next == Plan::Next::kRaise) return nullptr;
  PyObject* result;
  if (!next.calls_python && *hook().busy == 0) [[likely]] {  // a whole graph: the hook stays where it is
    result = PyObject_Vectorcall(next.function, locals, count, nullptr);
    Py_DECREF(next.function);
    return result;
  }
  py::Ref transformed = py::Ref::steal(next.function);
  ActiveRegion active(next.calls_python ? region : nullptr);
  if (!active.ok()) return nullptr;
  result = PyObject_Vectorcall(transformed.get(), locals, count, nullptr);
  return is_tail_call(result) ? run_tail_calls(region, active.thread(), result) : result;
}

void install_frame_callback() {
  hook().set_callback(on_frame, [](void* data) { delete static_cast<CodeData*>(data); });
}

}  // namespace pellucid::module
