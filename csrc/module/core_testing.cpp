// For tests of the call path: cache entries and captures made by hand, with transformed code and guards that the test supplies; for
// benchmarks: a compiled graph that costs nothing. Not used by the program itself.
#include <cstddef>
#include <string_view>

#include "base/check.h"
#include "cache/lookup.h"
#include "module/bindings.h"
#include "module/core_call.h"
#include "module/core_capture.h"
#include "py/ref.h"
#include "torch_bridge/graph_call.h"

namespace pellucid::module {

namespace {

// Guards that ask a Python callable about the arguments, or hold always.
class HandMadeGuards final : public guard::GuardProgram {
 public:
  HandMadeGuards(PyObject* check, Py_ssize_t count) : check_(py::Ref::share(check)), count_(count) {}
  guard::Verdict check(const guard::FrameView& frame) noexcept override {
    if (check_.get() == Py_None) return guard::Verdict::kHit;
    ActiveRegion nothing(nullptr);  // real guards start no frames
    py::Ref answer = py::Ref::steal(PyObject_Vectorcall(check_.get(), frame.locals, static_cast<size_t>(count_), nullptr));
    int truth = answer ? PyObject_IsTrue(answer.get()) : -1;
    return truth < 0 ? guard::Verdict::kError : truth ? guard::Verdict::kHit : guard::Verdict::kMiss;
  }
  bool valid() const override { return true; }
  PyObject* const* block() const override { return nullptr; }
  size_t block_size() const override { return 0; }
  std::vector<std::string> failures(const guard::FrameView&) override { return {"the test's guard does not hold"}; }
  std::string check_fn_text() const override { return "def check(L, G): ...\n"; }
  std::string program_text() const override { return "TEST\n"; }
  PyObject* describe() const override { return PyList_New(0); }

 private:
  py::Ref check_;
  Py_ssize_t count_;
};

std::shared_ptr<cache::GuardedCode> make_entry(PyObject* code, PyObject* check, bool calls_python) {
  auto entry = std::make_shared<cache::GuardedCode>();
  entry->guards = std::make_unique<HandMadeGuards>(check, reinterpret_cast<PyCodeObject*>(code)->co_argcount);
  entry->code = py::Ref::share(code);
  entry->calls_python = calls_python;
  return entry;
}

PyObject* testing_add_entry(PyObject*, PyObject* args) {
  PyObject *region, *original, *code, *check;
  int calls_python;
  if (!PyArg_ParseTuple(args, "O!O!O!Op:testing_add_entry", &region_type, &region, &PyCode_Type, &original, &PyCode_Type, &code, &check,
                        &calls_python))
    return nullptr;
  if (reinterpret_cast<PyCodeObject*>(original)->co_nfreevars != reinterpret_cast<PyCodeObject*>(code)->co_nfreevars) {
    PyErr_SetString(PyExc_ValueError, "the two code objects have different free variables");
    return nullptr;
  }
  std::shared_ptr<cache::CodeCache> cache = cache_of(reinterpret_cast<RegionObject*>(region), original);
  if (cache == nullptr || !mark_transformed(code)) return nullptr;
  cache::add(*cache, make_entry(code, check, calls_python != 0));
  Py_RETURN_NONE;
}

py::Ref& translate_callable() {
  static auto* callable = new py::Ref;  // never destroyed: the interpreter is gone before static objects are
  return *callable;
}

// Asks the test: translate(function, code, arguments) gives ("captured", code, check, calls_python), ("skip", reason),
// ("as is", reason) or ("fault", what), or raises.
translate::Result hand_made_translate(const guard::FrameView& frame, PyObject* code, cache::Region&) {
  auto* layout = reinterpret_cast<PyCodeObject*>(code);
  py::Ref locals = py::Ref::steal(PyList_New(0));
  for (int i = 0; locals && i < layout->co_nlocalsplus; i++) {
    if (frame.locals[i] != nullptr && PyList_Append(locals.get(), frame.locals[i]) < 0) locals = {};
  }
  translate::Result result;
  result.outcome = translate::Outcome::kError;
  if (!locals) return result;
  py::Ref answer = py::Ref::steal(PyObject_CallFunctionObjArgs(translate_callable().get(), frame.func, code, locals.get(), nullptr));
  if (!answer) return result;
  const char* outcome;
  PyObject *value, *check = Py_None;
  int calls_python = 1;
  if (!PyArg_ParseTuple(answer.get(), "sO|Op", &outcome, &value, &check, &calls_python)) return result;
  std::string_view kind = outcome;
  if (kind == "captured") {
    result.outcome = translate::Outcome::kCaptured;
    result.entry = make_entry(value, check, calls_python != 0);
    return result;
  }
  const char* reason = PyUnicode_AsUTF8(value);
  if (reason == nullptr) return result;
  CHECK(kind != "fault") << reason;
  result.outcome = kind == "skip" ? translate::Outcome::kSkip : translate::Outcome::kRunAsIs;
  result.reason = reason;
  return result;
}

PyObject* testing_set_translate(PyObject*, PyObject* callable) {
  translate_callable() = callable == Py_None ? py::Ref() : py::Ref::share(callable);
  set_translator(callable == Py_None ? nullptr : hand_made_translate);
  Py_RETURN_NONE;
}

py::Ref& replace_callable() {
  static auto* callable = new py::Ref;  // as above
  return *callable;
}

// The translator, with its transformed code replaced by what the test makes of it: replace(function, code) -> code.
translate::Result replacing_translate(const guard::FrameView& frame, PyObject* code, cache::Region& region) {
  translate::Result result = translate::translate(frame, code, region);
  if (result.outcome != translate::Outcome::kCaptured) return result;
  py::Ref other = py::Ref::steal(PyObject_CallFunctionObjArgs(replace_callable().get(), frame.func, result.entry->code.get(), nullptr));
  if (!other || !PyCode_Check(other.get())) {
    result.outcome = translate::Outcome::kError;
    return result;
  }
  result.entry->code = std::move(other);
  result.entry->direct = {};
  return result;
}

PyObject* testing_replace_code(PyObject*, PyObject* callable) {
  replace_callable() = callable == Py_None ? py::Ref() : py::Ref::share(callable);
  set_translator(callable == Py_None ? nullptr : replacing_translate);
  Py_RETURN_NONE;
}

// A compiled graph that ignores its inputs: calls of it cost as little as a callable can, so what is left of a call is overhead.
struct PreparedOutputs {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* outputs;
};

PyObject* prepared_call(PyObject* self, PyObject* const*, size_t, PyObject*) {
  return Py_NewRef(reinterpret_cast<PreparedOutputs*>(self)->outputs);
}

int prepared_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<PreparedOutputs*>(self)->outputs);
  return 0;
}

// A call after this gives None: never a null pointer.
int prepared_clear(PyObject* self) {
  Py_SETREF(reinterpret_cast<PreparedOutputs*>(self)->outputs, Py_NewRef(Py_None));
  return 0;
}

void prepared_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_DECREF(reinterpret_cast<PreparedOutputs*>(self)->outputs);
  PyObject_GC_Del(self);
}

PyTypeObject prepared_type = {PyVarObject_HEAD_INIT(nullptr, 0) "pellucid._core.PreparedOutputs"};

PyObject* prepared_outputs(PyObject*, PyObject* outputs) {
  if (!PyTuple_Check(outputs)) {
    PyErr_Format(PyExc_TypeError, "a graph's outputs are a tuple, not a %s", Py_TYPE(outputs)->tp_name);
    return nullptr;
  }
  auto* made = PyObject_GC_New(PreparedOutputs, &prepared_type);
  if (made == nullptr) return nullptr;
  made->vectorcall = prepared_call;
  made->outputs = Py_NewRef(outputs);
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return reinterpret_cast<PyObject*>(made);
}

bool ready_prepared_type() {
  prepared_type.tp_basicsize = sizeof(PreparedOutputs);
  prepared_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  prepared_type.tp_vectorcall_offset = offsetof(PreparedOutputs, vectorcall);
  prepared_type.tp_call = PyVectorcall_Call;
  prepared_type.tp_dealloc = prepared_dealloc;
  prepared_type.tp_traverse = prepared_traverse;
  prepared_type.tp_clear = prepared_clear;
  prepared_type.tp_doc = "Returns the same outputs for any arguments.";
  return PyType_Ready(&prepared_type) == 0 && PyDict_SetItemString(prepared_type.tp_dict, bridge::kBorrowsInputs, Py_True) == 0;
}

PyMethodDef methods[] = {
    {"prepared_outputs", prepared_outputs, METH_O,
     "prepared_outputs(outputs): a callable that returns this tuple for any arguments, in place of a compiled graph."},
    {"testing_add_entry", testing_add_entry, METH_VARARGS,
     "testing_add_entry(region, original code, transformed code, check or None, calls_python): an entry made by hand."},
    {"testing_replace_code", testing_replace_code, METH_O,
     "From now on transformed code is what this callable(function, code) returns; None: as it is again."},
    {"testing_set_translate", testing_set_translate, METH_O,
     "Capture by this callable(function, code, arguments) in place of the translator; None: the translator again."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_testing(PyObject* module) { return ready_prepared_type() && PyModule_AddFunctions(module, methods) == 0; }

}  // namespace pellucid::module
