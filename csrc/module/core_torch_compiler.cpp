// torch._dynamo keeps a callback per thread, and a strategy per code object: both are set through the C module it consists of.
#include "module/core_torch_compiler.h"

#include "py/ref.h"

namespace pellucid::module {

namespace {

PyObject* set_eval_frame = nullptr;
PyObject* set_code_exec_strategy = nullptr;
PyObject* skip_all = nullptr;

PyObject* call_set_eval_frame(PyObject* callback) { return PyObject_CallOneArg(set_eval_frame, callback); }

}  // namespace

bool ready_torch_compiler() {
  py::Ref bindings = py::Ref::steal(PyImport_ImportModule("torch._C._dynamo.eval_frame"));
  if (!bindings) return false;
  py::Ref actions = py::Ref::steal(PyObject_GetAttrString(bindings.get(), "_FrameAction"));
  py::Ref skip = py::Ref::steal(actions ? PyObject_GetAttrString(actions.get(), "SKIP") : nullptr);
  set_eval_frame = PyObject_GetAttrString(bindings.get(), "set_eval_frame");
  set_code_exec_strategy = PyObject_GetAttrString(bindings.get(), "set_code_exec_strategy");
  if (!skip || set_eval_frame == nullptr || set_code_exec_strategy == nullptr) return false;
  skip_all = PyObject_CallMethod(bindings.get(), "_FrameExecStrategy", "OO", skip.get(), skip.get());
  return skip_all != nullptr;
}

bool keep_from_torch_compiler(PyObject* code) {
  return bool(py::Ref::steal(PyObject_CallFunctionObjArgs(set_code_exec_strategy, code, skip_all, nullptr)));
}

TorchCompilerPause::TorchCompilerPause() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  prior_ = call_set_eval_frame(Py_None);
  if (prior_ == nullptr) PyErr_WriteUnraisable(set_eval_frame);
  if (prior_ == Py_None) Py_CLEAR(prior_);
  PyErr_Restore(type, value, traceback);
}

TorchCompilerPause::~TorchCompilerPause() {
  if (prior_ == nullptr) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  py::Ref none = py::Ref::steal(call_set_eval_frame(prior_));
  if (!none) PyErr_WriteUnraisable(set_eval_frame);
  Py_DECREF(prior_);
  PyErr_Restore(type, value, traceback);
}

}  // namespace pellucid::module
