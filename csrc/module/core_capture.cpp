// Capture from the call path's side: one attempt per miss, its outcome kept in the code's cache. Owns the capture flag of the thread;
// the translator behind translate() knows nothing of it.
#include "module/core_capture.h"

#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <mutex>
#include <string>
#include <vector>

#include "base/check.h"
#include "cache/lookup.h"
#include "module/core_torch_compiler.h"
#include "py/ref.h"
#include "torch_bridge/global_state.h"

namespace pellucid::module {

namespace {

// What a capture may need of the C stack: imports, torch.fx, the backend's own recursion.
constexpr size_t kCaptureStack = size_t{512} << 10;

Translator translator = translate::translate;
PyObject* disable_name = nullptr;
PyObject* original_callable_name = nullptr;
PyObject* capture_observer = nullptr;  // null: nobody looks

// While a frame is captured no frame is looked at, by PyTorch's compiler neither, and wrappers run as written, however the capture ends.
class CaptureScope {
 public:
  CaptureScope() : thread_(*hook().thread()), region_(thread_.region), as_written_(thread_.as_written) {
    thread_.region = nullptr;
    thread_.as_written = nullptr;
    hook().begin_capture();
  }
  ~CaptureScope() {
    hook().end_capture();
    thread_.region = region_;
    thread_.as_written = as_written_;
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  cpython::ThreadState& thread_;
  void* region_;
  PyObject* as_written_;
  TorchCompilerPause pause_;
};

// Captures that ended, and what waits for one to end.
std::mutex ends_mutex;
std::condition_variable ends_changed;
uint64_t ends = 0;

// This thread makes an entry for a code.
class Making {
 public:
  explicit Making(std::shared_ptr<cache::CodeCache> cache) : cache_(std::move(cache)) { cache_->capturing++; }
  ~Making() {
    cache_->capturing--;
    const std::lock_guard<std::mutex> lock(ends_mutex);
    ends++;
    ends_changed.notify_all();
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  std::shared_ptr<cache::CodeCache> cache_;
};

// Another thread makes an entry for the code, most likely the one that is wanted here: waits for it, without the GIL. Not for long: that
// thread may be waiting for this one, in a backend or for an import. False: a signal handler raised.
bool wait_for_others(const cache::CodeCache& cache) {
  constexpr auto kPatience = std::chrono::seconds(2);
  constexpr auto kSignals = std::chrono::milliseconds(50);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (cache.capturing != 0 && std::chrono::steady_clock::now() < until) {
    PyThreadState* thread = PyEval_SaveThread();
    {
      std::unique_lock<std::mutex> lock(ends_mutex);
      const uint64_t seen = ends;
      ends_changed.wait_for(lock, kSignals, [&] { return ends != seen; });
    }
    PyEval_RestoreThread(thread);
    if (PyErr_CheckSignals() < 0) return false;
  }
  return true;
}

// The entry that fits the frame by now. kMiss: there is none.
guard::Verdict look_again(cache::CodeCache& cache, const guard::FrameView& frame, std::shared_ptr<cache::GuardedCode>& found) {
  cache::GuardedCode* entry = nullptr;
  const guard::Verdict verdict = cache::find(cache, frame, entry);
  if (verdict != guard::Verdict::kHit) return verdict;
  for (const auto& one : cache.entries)
    if (one.get() == entry) found = one;
  found->hits++;
  return verdict;
}

// Calls pellucid._events.NAME. Null with an exception set: of the user's logging handlers, or KeyboardInterrupt.
py::Ref event(const char* name, const char* format, ...) {
  CaptureScope unseen;  // what runs here is Pellucid's own, imports included
  py::Ref module = py::Ref::steal(PyImport_ImportModule("pellucid._events"));
  if (!module) return {};
  py::Ref callable = py::Ref::steal(PyObject_GetAttrString(module.get(), name));
  if (!callable) return {};
  va_list values;
  va_start(values, format);
  py::Ref arguments = py::Ref::steal(Py_VaBuildValue(format, values));
  va_end(values);
  return arguments ? py::Ref::steal(PyObject_CallObject(callable.get(), arguments.get())) : py::Ref();
}

py::Ref strings(const std::vector<std::string>& texts) {
  py::Ref list = py::Ref::steal(PyList_New(0));
  for (const std::string& text : texts) {
    py::Ref item = py::Ref::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    if (!list || !item || PyList_Append(list.get(), item.get()) < 0) return {};
  }
  return list;
}

// For each entry, why it does not fit this frame: a list of lists of text.
py::Ref failures(const cache::CodeCache& cache, const guard::FrameView& frame) {
  CaptureScope unseen;  // showing values runs their __repr__
  py::Ref list = py::Ref::steal(PyList_New(0));
  if (!list) return {};
  auto entries = cache.entries;
  for (const auto& entry : entries) {
    std::vector<std::string> reasons =
        entry->guards->valid() ? entry->guards->failures(frame) : std::vector<std::string>{"a guarded object was freed"};
    py::Ref texts = strings(reasons);
    if (!texts || PyList_Append(list.get(), texts.get()) < 0) return {};
  }
  return list;
}

// 0: below the limit; 1: at it; -1: an exception is set.
int at_limit(const cache::CodeCache& cache) {
  py::Ref limit = event("cache_size_limit", "()");
  if (!limit) return -1;
  long number = PyLong_AsLong(limit.get());
  if (number == -1 && PyErr_Occurred()) return -1;
  return static_cast<long>(cache.entries.size()) >= number;
}

Miss as_written_if(const py::Ref& told) { return {told ? Next::kAsWritten : Next::kRaise, nullptr}; }

Miss internal_fault(cache::CodeCache& cache, const std::string& what) {
  cache.state = cache::State::kSkip;  // it would fail the same way at every call
  cache.skip_reason = "internal error: " + what;
  return as_written_if(event("internal_fault", "(Os#)", cache.code.get(), what.data(), static_cast<Py_ssize_t>(what.size())));
}

// The transformed code runs with the function's closure, whose length CPython never checks again.
bool same_free_variables(PyObject* a, PyObject* b) {
  return reinterpret_cast<PyCodeObject*>(a)->co_nfreevars == reinterpret_cast<PyCodeObject*>(b)->co_nfreevars;
}

Miss keep(RegionObject* region, PyObject* function, const guard::FrameView& frame, std::shared_ptr<cache::GuardedCode> entry,
          uint64_t added_before) {
  std::shared_ptr<cache::CodeCache> cache = cache_of(region, PyFunction_GET_CODE(function));  // capture may have reset the region
  if (cache == nullptr || !mark_transformed(entry->code.get()) || !keep_from_torch_compiler(entry->code.get()))
    return {Next::kRaise, nullptr};
  if (!same_free_variables(entry->code.get(), PyFunction_GET_CODE(function)))
    return internal_fault(*cache, "the transformed code has other free variables than the function");
  if (cache->added != added_before) {  // another thread has made one meanwhile: two that fit the same calls are one too many
    std::shared_ptr<cache::GuardedCode> other;
    const guard::Verdict verdict = look_again(*cache, frame, other);
    if (verdict != guard::Verdict::kMiss) return {verdict == guard::Verdict::kHit ? Next::kRun : Next::kRaise, std::move(other)};
  }
  // This also leaves the verified inputs where the entry's graph call reads them.
  switch (entry->guards->check(frame)) {
    case guard::Verdict::kHit:
      break;
    case guard::Verdict::kError:
      return {Next::kRaise, nullptr};
    case guard::Verdict::kMiss: {
      std::string what = "guards do not hold for the frame that they were made from:";
      for (const std::string& reason : entry->guards->failures(frame)) what += " " + reason + ";";
      return internal_fault(*cache, what);
    }
  }
  cache::add(*cache, entry);
  return {Next::kRun, std::move(entry)};
}

// The entry as observers see it. Null with an exception set.
py::Ref described(const cache::GuardedCode& entry, const guard::FrameView& frame) {
  py::Ref row = py::Ref::steal(describe_entry(entry));
  py::Ref values = row ? py::Ref::steal(entry.guards->text_values(frame)) : py::Ref();
  if (!values || PyDict_SetItemString(row.get(), "values", values.get()) < 0) return {};
  return row;
}

// An observer that fails is its own trouble, not the program's.
void tell_observer(const guard::FrameView& frame, const cache::GuardedCode* entry, const std::string& reason) {
  if (capture_observer == nullptr) return;
  CaptureScope unseen;
  py::Ref observer = py::Ref::share(capture_observer);
  py::Ref row = entry == nullptr ? py::Ref::share(Py_None) : described(*entry, frame);
  py::Ref text = py::Ref::steal(PyUnicode_DecodeUTF8(reason.data(), static_cast<Py_ssize_t>(reason.size()), "backslashreplace"));
  py::Ref told =
      row && text ? py::Ref::steal(PyObject_CallFunctionObjArgs(observer.get(), frame.func, row.get(), text.get(), nullptr)) : py::Ref();
  if (!told) PyErr_WriteUnraisable(observer.get());
}

bool marked(PyObject* function, PyObject* name) {
  PyObject* dict = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  if (dict == nullptr) return false;
  PyObject* value = PyDict_GetItemWithError(dict, name);
  if (value == nullptr) PyErr_Clear();  // only a dict key whose __eq__ raises: not ours, so not marked
  return value != nullptr && value != Py_False;
}

}  // namespace

void set_translator(Translator other) { translator = other == nullptr ? translate::translate : other; }

void set_capture_observer(PyObject* observer) {
  PyObject* before = capture_observer;
  capture_observer = observer == Py_None ? nullptr : Py_NewRef(observer);
  Py_XDECREF(before);
}

bool ready_capture() {
  disable_name = PyUnicode_InternFromString("_torchdynamo_disable");
  original_callable_name = PyUnicode_InternFromString("_torchdynamo_orig_callable");
  return disable_name != nullptr && original_callable_name != nullptr;
}

bool has_disable_mark(PyObject* function) { return marked(function, disable_name); }

bool takes_over(PyObject* function) { return marked(function, original_callable_name); }

Miss capture_miss(RegionObject* region, PyObject* function, PyObject* const* locals, Py_ssize_t count) {
  if (bridge::tracer_is_watching()) return {};  // which is to see the program's own operators
  PyObject* code = PyFunction_GET_CODE(function);
  std::shared_ptr<cache::CodeCache> cache = cache_of(region, code);
  if (cache == nullptr) return {Next::kRaise, nullptr};
  if (hook().stack_left() < kCaptureStack) return {Next::kAsWritten, nullptr};
  // Whoever captures may look at every fast local; callers only have the arguments.
  std::vector<PyObject*> slots(static_cast<size_t>(reinterpret_cast<PyCodeObject*>(code)->co_nlocalsplus), nullptr);
  std::copy(locals, locals + count, slots.begin());
  guard::FrameView frame{function, slots.data()};

  if (cache->capturing != 0) {
    if (!wait_for_others(*cache)) return {Next::kRaise, nullptr};
    cache = cache_of(region, code);  // there may have been a reset
    if (cache == nullptr) return {Next::kRaise, nullptr};
    std::shared_ptr<cache::GuardedCode> made;
    const guard::Verdict verdict = look_again(*cache, frame, made);
    if (verdict != guard::Verdict::kMiss) return {verdict == guard::Verdict::kHit ? Next::kRun : Next::kRaise, std::move(made)};
    if (cache->state != cache::State::kCapture) return {};
  }
  const Making making(cache);
  const uint64_t added_before = cache->added;  // since the guards were checked no other thread has run
  cache::drop_invalid(*cache);
  if (!cache->entries.empty()) {
    int full = at_limit(*cache);
    if (full < 0) return {Next::kRaise, nullptr};
    if (full) {
      cache->state = cache::State::kLimit;
      py::Ref reasons = failures(*cache, frame);
      if (!reasons) return {Next::kRaise, nullptr};
      return as_written_if(event("limit_reached", "(OO)", code, reasons.get()));
    }
    py::Ref wanted = event("recompiles_wanted", "()");
    if (!wanted) return {Next::kRaise, nullptr};
    if (wanted.get() == Py_True) {
      py::Ref reasons = failures(*cache, frame);
      if (!reasons || !event("recompiling", "(OO)", code, reasons.get())) return {Next::kRaise, nullptr};
    }
  }

  translate::Result result;
  try {
    CaptureScope capturing;
    result = translator(frame, code, *region->region);
  } catch (const base::InternalError& error) {
    PyErr_Clear();
    return internal_fault(*cache, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return {Next::kRaise, nullptr};
  }
  if (result.outcome == translate::Outcome::kSkip || result.outcome == translate::Outcome::kRunAsIs)
    tell_observer(frame, nullptr, result.reason);
  switch (result.outcome) {
    case translate::Outcome::kCaptured: {
      Miss kept = keep(region, function, frame, std::move(result.entry), added_before);
      if (kept.next == Next::kRun) tell_observer(frame, kept.entry.get(), "");
      return kept;
    }
    case translate::Outcome::kSkip:
      cache->state = cache::State::kSkip;
      cache->skip_reason = result.reason;
      return as_written_if(event("skipped", "(Os#)", code, result.reason.data(), static_cast<Py_ssize_t>(result.reason.size())));
    case translate::Outcome::kRunAsIs:
      return as_written_if(event("run_as_is", "(Os#)", code, result.reason.data(), static_cast<Py_ssize_t>(result.reason.size())));
    case translate::Outcome::kError:
      break;
  }
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "capture failed without an exception");
  return {Next::kRaise, nullptr};
}

}  // namespace pellucid::module
