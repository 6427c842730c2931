// The C object that calls a compiled graph. Its hot path copies pointers and makes one vectorcall.
#include "torch_bridge/graph_call.h"

#include <ATen/core/grad_mode.h>

#include <cstddef>
#include <cstring>

namespace pellucid::bridge {

namespace {

struct GraphCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* callable;
  vectorcallfunc target;  // of `callable`; null: through PyObject_Call
  const guard::GuardProgram* program;
};

constexpr size_t kOnStack = 1024;

PyObject* call(PyObject* self, PyObject* const* arguments, size_t nargsf, PyObject* names) {
  auto* graph = reinterpret_cast<GraphCall*>(self);
  const bool grad_enabled = at::GradMode::is_enabled();
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  const size_t extra = graph->program->block_size();
  PyObject* result;
  if (extra == 0) {
    result = graph->target ? graph->target(graph->callable, arguments, nargsf, names)
                           : PyObject_Vectorcall(graph->callable, arguments, nargsf, names);
  } else {
    const size_t total = n + extra + 1;
    PyObject** joined = total <= kOnStack ? static_cast<PyObject**>(alloca(total * sizeof(PyObject*)))
                                          : static_cast<PyObject**>(PyMem_Malloc(total * sizeof(PyObject*)));
    if (!joined) return PyErr_NoMemory();
    std::memcpy(joined + 1, arguments, n * sizeof(PyObject*));
    std::memcpy(joined + 1 + n, graph->program->block(), extra * sizeof(PyObject*));
    result = PyObject_Vectorcall(graph->callable, joined + 1, (n + extra) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (total > kOnStack) PyMem_Free(joined);
  }
  if (!result) at::GradMode::set_enabled(grad_enabled);
  return result;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(reinterpret_cast<GraphCall*>(self)->callable);
  PyObject_GC_Del(self);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<GraphCall*>(self)->callable);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<GraphCall*>(self)->callable);
  return 0;
}

PyTypeObject* graph_call_type() {
  static PyTypeObject type = [] {
    PyTypeObject made = {PyVarObject_HEAD_INIT(nullptr, 0)};
    made.tp_name = "pellucid._core.GraphCall";
    made.tp_basicsize = sizeof(GraphCall);
    made.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    made.tp_vectorcall_offset = offsetof(GraphCall, vectorcall);
    made.tp_call = PyVectorcall_Call;
    made.tp_dealloc = dealloc;
    made.tp_traverse = traverse;
    made.tp_clear = clear;
    made.tp_doc = "Calls a compiled graph with a transformed function's arguments and the entry's verified parameters.";
    return made;
  }();
  if (!type.tp_dict && PyType_Ready(&type) < 0) return nullptr;
  return &type;
}

}  // namespace

py::Ref make_graph_call(PyObject* callable, const guard::GuardProgram* program) {
  PyTypeObject* type = graph_call_type();
  if (!type) return {};
  auto* made = PyObject_GC_New(GraphCall, type);
  if (!made) return {};
  made->vectorcall = call;
  made->callable = Py_NewRef(callable);
  made->target = PyVectorcall_Function(callable);
  made->program = program;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return py::Ref::steal(reinterpret_cast<PyObject*>(made));
}

}  // namespace pellucid::bridge
