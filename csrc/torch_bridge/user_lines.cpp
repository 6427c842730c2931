// Nothing is looked at before an exception comes out: a call costs one more C call.
#include "torch_bridge/user_lines.h"

#include <structmember.h>

#include "torch_bridge/interned.h"

namespace pellucid::bridge {
namespace {

using py::Ref;

struct ForwardObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* module;
  PyObject* compiled;
};

void add_lines(PyObject* module) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Ref helper = Ref::steal(PyImport_ImportModule("pellucid.graph_module"));
  Ref done = helper ? Ref::steal(PyObject_CallMethodObjArgs(helper.get(), INTERNED("add_user_lines"), module, value, nullptr)) : Ref();
  if (!done) PyErr_WriteUnraisable(module);  // the operator's exception is what counts
  Py_XDECREF(traceback);
  PyErr_Restore(type, value, PyException_GetTraceback(value));
}

PyObject* forward_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  auto* forward = reinterpret_cast<ForwardObject*>(self);
  PyObject* result = PyObject_Vectorcall(forward->compiled, args, nargsf, kwnames);
  if (result == nullptr) add_lines(forward->module);
  return result;
}

int forward_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* forward = reinterpret_cast<ForwardObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(forward->module);
  Py_VISIT(forward->compiled);
  return 0;
}

void forward_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(reinterpret_cast<ForwardObject*>(self)->module);
  Py_XDECREF(reinterpret_cast<ForwardObject*>(self)->compiled);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* forward_type() {
  static PyTypeObject* type = nullptr;
  if (type != nullptr) return type;
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(ForwardObject, vectorcall), READONLY, nullptr},
      {"__wrapped__", T_OBJECT, offsetof(ForwardObject, compiled), READONLY, "What the backend returned."},
      {nullptr, 0, 0, 0, nullptr},
  };
  // No tp_clear: a cycle through one passes through the module's dictionary, which the collector clears.
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A graph run as generated Python, whose exceptions show the user's lines.")},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_dealloc, reinterpret_cast<void*>(forward_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(forward_traverse)},
      {Py_tp_members, members},
      {0, nullptr},
  };
  static PyType_Spec spec = {"pellucid._core.Forward", sizeof(ForwardObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

// The module whose forward `compiled` is, borrowed, or null.
PyObject* module_of(PyObject* compiled, PyObject* module_type) {
  if (!PyMethod_Check(compiled)) return nullptr;
  PyObject* self = PyMethod_GET_SELF(compiled);
  if (!PyObject_TypeCheck(self, reinterpret_cast<PyTypeObject*>(module_type))) return nullptr;
  Ref forward = Ref::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(self)), INTERNED("forward")));
  if (!forward) PyErr_Clear();  // a class without forward: not ours to complete
  return forward.get() == PyMethod_GET_FUNCTION(compiled) ? self : nullptr;
}

}  // namespace

Ref with_user_lines(PyObject* compiled) {
  Ref helper = Ref::steal(PyImport_ImportModule("pellucid.graph_module"));
  Ref module_type = helper ? Ref::steal(PyObject_GetAttr(helper.get(), INTERNED("GraphModule"))) : Ref();
  if (!module_type) return Ref();
  PyObject* module = module_of(compiled, module_type.get());
  if (module == nullptr) return Ref::share(compiled);
  PyTypeObject* type = forward_type();
  if (type == nullptr) return Ref();
  auto* forward = reinterpret_cast<ForwardObject*>(type->tp_alloc(type, 0));
  if (forward == nullptr) return Ref();
  forward->vectorcall = forward_call;
  forward->module = Ref::share(module).release();
  forward->compiled = Ref::share(compiled).release();
  return Ref::steal(reinterpret_cast<PyObject*>(forward));
}

}  // namespace pellucid::bridge
