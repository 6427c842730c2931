// For tests of the call path: cache entries made by hand, with transformed code and a guard that the test supplies. Not used by the
// program itself.
#include "module/bindings.h"
#include "module/core_region.h"
#include "py/ref.h"

namespace pellucid::module {

namespace {

// Guards that ask a Python callable about the arguments, or hold always.
class HandMadeGuards final : public guard::GuardProgram {
 public:
  HandMadeGuards(PyObject* check, Py_ssize_t count) : check_(py::Ref::share(check)), count_(count) {}
  guard::Verdict check(const guard::FrameView& frame) noexcept override {
    if (check_.get() == Py_None) return guard::Verdict::kHit;
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
  auto entry = std::make_shared<cache::GuardedCode>();
  entry->guards = std::make_unique<HandMadeGuards>(check, reinterpret_cast<PyCodeObject*>(code)->co_argcount);
  entry->code = py::Ref::share(code);
  entry->calls_python = calls_python != 0;
  cache->entries.push_back(std::move(entry));
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"testing_add_entry", testing_add_entry, METH_VARARGS,
     "testing_add_entry(region, original code, transformed code, check or None, calls_python): an entry made by hand."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_testing(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace pellucid::module
