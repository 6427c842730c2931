// The outputs are put together as the transformed code would, and an exception gets the traceback entry that its frame would have left.
#include "module/core_direct.h"

#include <frameobject.h>

#include "torch_bridge/graph_call.h"

namespace pellucid::module {

namespace {

using Returns = cache::DirectCall::Returns;

// A frame that never runs stands for the function in the traceback. Where none can be made the exception stays as it is.
void add_traceback(PyObject* code, PyObject* function) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyFrameObject* frame = PyFrame_New(PyThreadState_Get(), reinterpret_cast<PyCodeObject*>(code), PyFunction_GET_GLOBALS(function), nullptr);
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  if (frame == nullptr) return;
  PyTraceBack_Here(frame);
  Py_DECREF(frame);
}

// BINARY_SUBSCR of anything that a backend may return.
py::Ref item_of(PyObject* outputs, size_t index) {
  if (PyTuple_CheckExact(outputs) && static_cast<Py_ssize_t>(index) < PyTuple_GET_SIZE(outputs)) [[likely]]
    return py::Ref::share(PyTuple_GET_ITEM(outputs, static_cast<Py_ssize_t>(index)));
  py::Ref number = py::Ref::steal(PyLong_FromSize_t(index));
  return number ? py::Ref::steal(PyObject_GetItem(outputs, number.get())) : py::Ref();
}

PyObject* put_together(const cache::DirectCall& direct, py::Ref outputs) {
  if (direct.returns == Returns::kItem) return item_of(outputs.get(), direct.index).release();
  const bool tuple = direct.returns == Returns::kTuple;
  const auto count = static_cast<Py_ssize_t>(direct.count);
  // Nobody else has it, or nobody can tell: a tuple with the same items.
  if (tuple && PyTuple_CheckExact(outputs.get()) && PyTuple_GET_SIZE(outputs.get()) == count) return outputs.release();
  if (!tuple && PyTuple_CheckExact(outputs.get()) && PyTuple_GET_SIZE(outputs.get()) == count) return PySequence_List(outputs.get());
  py::Ref made = py::Ref::steal(tuple ? PyTuple_New(count) : PyList_New(count));
  for (Py_ssize_t i = 0; made && i < count; i++) {
    py::Ref item = item_of(outputs.get(), static_cast<size_t>(i));
    if (!item) return nullptr;
    if (tuple)
      PyTuple_SET_ITEM(made.get(), i, item.release());
    else
      PyList_SET_ITEM(made.get(), i, item.release());
  }
  return made.release();
}

}  // namespace

PyObject* run_directly(cache::GuardedCode& entry, const guard::FrameView& frame) {
  py::Ref outputs = py::Ref::steal(bridge::call_graph_on_frame(entry.direct.graph.get(), frame));
  PyObject* result = outputs ? put_together(entry.direct, std::move(outputs)) : nullptr;
  if (result == nullptr) [[unlikely]]
    add_traceback(entry.code.get(), frame.func);
  return result;
}

}  // namespace pellucid::module
