// The C object that calls a compiled graph. Its hot path copies pointers and makes one vectorcall.
#include "torch_bridge/graph_call.h"

#include <cstddef>
#include <cstring>

#include "torch_bridge/state_scope.h"

namespace pellucid::bridge {

namespace {

struct GraphCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* callable;
  vectorcallfunc target;  // of `callable`; null: through PyObject_Call
  const guard::GuardProgram* program;
  bool changes_state;  // the graph has nodes that change grad mode or autocast
};

constexpr size_t kOnStack = 1024;

PyObject* call_graph(GraphCall* graph, PyObject* const* arguments, size_t nargsf, PyObject* names) {
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  const size_t extra = graph->program->block_size();
  if (extra == 0) {
    return graph->target ? graph->target(graph->callable, arguments, nargsf, names)
                         : PyObject_Vectorcall(graph->callable, arguments, nargsf, names);
  }
  const size_t total = n + extra + 1;
  const bool on_stack = total <= kOnStack;
  auto** joined = static_cast<PyObject**>(on_stack ? alloca(total * sizeof(PyObject*)) : PyMem_Malloc(total * sizeof(PyObject*)));
  if (!joined) return PyErr_NoMemory();
  std::memcpy(joined + 1, arguments, n * sizeof(PyObject*));
  PinnedBlock* pinned = PinnedBlock::find(graph->program);
  std::memcpy(joined + 1 + n, pinned ? pinned->objects() : graph->program->block(), extra * sizeof(PyObject*));
  PyObject* result = PyObject_Vectorcall(graph->callable, joined + 1, (n + extra) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (pinned) pinned->release();
  if (!on_stack) PyMem_Free(joined);
  return result;
}

const cpython::HookApi* hook = nullptr;

// What a backend returned is no part of the program: the frames it starts are not looked at.
class Unseen {
 public:
  explicit Unseen(cpython::ThreadState& thread) : thread_(thread), region_(thread.region), as_written_(thread.as_written) {
    thread.region = nullptr;
    thread.as_written = nullptr;
  }
  ~Unseen() {
    thread_.region = region_;
    thread_.as_written = as_written_;
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

 private:
  cpython::ThreadState& thread_;
  void* region_;
  PyObject* as_written_;
};

PyObject* call_unseen(GraphCall* graph, PyObject* const* arguments, size_t nargsf, PyObject* names) {
  if (*hook->busy == 0) [[likely]]
    return call_graph(graph, arguments, nargsf, names);
  const Unseen unseen(*hook->thread());
  return call_graph(graph, arguments, nargsf, names);
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t nargsf, PyObject* names) {
  auto* graph = reinterpret_cast<GraphCall*>(self);
  if (!graph->changes_state) [[likely]]
    return call_unseen(graph, arguments, nargsf, names);
  const StateScope before;  // an exception in the middle of a no_grad or autocast block must not leave it on
  PyObject* result = call_unseen(graph, arguments, nargsf, names);
  if (!result) before.restore();
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

namespace {
thread_local PinnedBlock* innermost = nullptr;
}

PinnedBlock::PinnedBlock(const guard::GuardProgram& program)
    : program_(&program), objects_(program.block(), program.block() + program.block_size()), outer_(innermost) {
  for (PyObject* object : objects_) Py_INCREF(object);
  innermost = this;
}

PinnedBlock::~PinnedBlock() {
  innermost = outer_;
  release();
}

PinnedBlock* PinnedBlock::find(const guard::GuardProgram* program) {
  for (PinnedBlock* at = innermost; at != nullptr; at = at->outer_) {
    if (at->program_ == program && !at->objects_.empty()) return at;
  }
  return nullptr;
}

void PinnedBlock::release() {
  std::vector<PyObject*> objects;
  objects.swap(objects_);  // destructors may run any code
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);  // an exception on its way out must survive that
  for (PyObject* object : objects) Py_DECREF(object);
  PyErr_Restore(type, value, traceback);
}

void set_graph_call_hook(const cpython::HookApi* api) { hook = api; }

py::Ref make_graph_call(PyObject* callable, const guard::GuardProgram* program, bool changes_state) {
  PyTypeObject* type = graph_call_type();
  if (!type) return {};
  auto* made = PyObject_GC_New(GraphCall, type);
  if (!made) return {};
  made->vectorcall = call;
  made->callable = Py_NewRef(callable);
  made->target = PyVectorcall_Function(callable);
  made->program = program;
  made->changes_state = changes_state;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return py::Ref::steal(reinterpret_cast<PyObject*>(made));
}

}  // namespace pellucid::bridge
