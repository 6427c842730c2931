// The C object that calls a compiled graph. Its hot path copies pointers and makes one vectorcall.
#include "torch_bridge/graph_call.h"

#include <structmember.h>

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
  // Where a hit leaves the inputs; both arrays stay where they are as long as the program.
  const std::vector<guard::InputRun>* runs;
  PyObject* const* block;
  size_t block_size, inputs;  // of the runs
  bool hold_inputs;           // some are not held by the caller, and the callee may outlive them
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

// The inputs as the guard program left them, in one array: those of the frame, those of the block. They are held where only what the
// guards verified does, which others may change while the graph runs, and the callee relies on its caller.
class Gathered {
 public:
  Gathered(const GraphCall& graph, const guard::FrameView& frame, PyObject** into)
      : into_(into), held_(graph.hold_inputs ? graph.inputs + graph.block_size : 0) {
    PyObject** at = into;
    for (const guard::InputRun& run : *graph.runs) {
      std::memcpy(at, (run.local ? frame.locals : graph.block) + run.first, run.count * sizeof(PyObject*));
      at += run.count;
    }
    std::memcpy(at, graph.block, graph.block_size * sizeof(PyObject*));
    for (size_t i = 0; i < held_; i++) Py_INCREF(into_[i]);
  }
  ~Gathered() {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    const bool failed = held_ != 0 && PyErr_Occurred();  // destructors may run any code, which the exception must survive
    if (failed) PyErr_Fetch(&type, &value, &traceback);
    for (size_t i = 0; i < held_; i++) Py_DECREF(into_[i]);
    if (failed) PyErr_Restore(type, value, traceback);
  }
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;

 private:
  PyObject** into_;
  size_t held_;
};

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

template <class Make>
inline PyObject* unseen(Make&& make) {
  if (*hook->busy == 0) [[likely]]
    return make();
  const Unseen scope(*hook->thread());
  return make();
}

template <class Make>
inline PyObject* with_state(const GraphCall& graph, Make&& make) {
  if (!graph.changes_state) [[likely]]
    return unseen(make);
  const StateScope before;  // an exception in the middle of a no_grad or autocast block must not leave it on
  PyObject* result = unseen(make);
  if (!result) before.restore();
  return result;
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t nargsf, PyObject* names) {
  auto* graph = reinterpret_cast<GraphCall*>(self);
  return with_state(*graph, [=] { return call_graph(graph, arguments, nargsf, names); });
}

// What the backend returned, with everything already there.
inline PyObject* call_target(const GraphCall& graph, PyObject* const* arguments, size_t nargsf) {
  return graph.target ? graph.target(graph.callable, arguments, nargsf, nullptr)
                      : PyObject_Vectorcall(graph.callable, arguments, nargsf, nullptr);
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

PyMemberDef members[] = {
    {"added", T_PYSSIZET, offsetof(GraphCall, block_size), READONLY, "How many verified parameters follow its caller's arguments."},
    {nullptr, 0, 0, 0, nullptr},
};

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
    made.tp_members = members;
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

PyObject* call_graph_on_frame(PyObject* graph_call, const guard::FrameView& frame) {
  const GraphCall& graph = *reinterpret_cast<GraphCall*>(graph_call);
  const size_t total = graph.inputs + graph.block_size;
  if (graph.block_size == 0 && graph.runs->size() == 1 && graph.runs->front().local) {  // as they are
    return with_state(graph, [&] { return call_target(graph, frame.locals + graph.runs->front().first, total); });
  }
  const bool on_stack = total < kOnStack;
  auto** arguments =
      static_cast<PyObject**>(on_stack ? alloca((total + 1) * sizeof(PyObject*)) : PyMem_Malloc((total + 1) * sizeof(PyObject*)));
  if (!arguments) return PyErr_NoMemory();
  PyObject* result;
  {
    const Gathered gathered(graph, frame, arguments + 1);
    result = with_state(graph, [&] { return call_target(graph, arguments + 1, total | PY_VECTORCALL_ARGUMENTS_OFFSET); });
  }
  if (!on_stack) PyMem_Free(arguments);
  return result;
}

void set_graph_call_hook(const cpython::HookApi* api) { hook = api; }

namespace {

// A Python function's frame has references of its own before anything else runs. Other callables are taken to rely on their caller's.
// -1 with an exception set.
int takes_own_references(PyObject* callable) {
  PyObject* function = PyMethod_Check(callable) ? PyMethod_GET_FUNCTION(callable) : callable;
  if (PyFunction_Check(function)) return 1;
  py::Ref says = py::Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(callable)), kBorrowsInputs));
  if (says) return says.get() == Py_True;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

}  // namespace

py::Ref make_graph_call(PyObject* callable, const guard::GuardProgram* program, bool changes_state) {
  PyTypeObject* type = graph_call_type();
  if (!type) return {};
  const int self_reliant = takes_own_references(callable);
  if (self_reliant < 0) return {};
  auto* made = PyObject_GC_New(GraphCall, type);
  if (!made) return {};
  made->vectorcall = call;
  made->callable = Py_NewRef(callable);
  made->target = PyVectorcall_Function(callable);
  made->program = program;
  made->changes_state = changes_state;
  made->runs = program->input_runs();
  made->block = program->block();
  made->block_size = program->block_size();
  made->inputs = 0;
  made->hold_inputs = made->block_size != 0;
  for (size_t i = 0; made->runs != nullptr && i < made->runs->size(); i++) {
    const guard::InputRun& run = (*made->runs)[i];
    made->inputs += run.count;
    made->hold_inputs = made->hold_inputs || !run.local;
  }
  made->hold_inputs = made->hold_inputs && !self_reliant;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return py::Ref::steal(reinterpret_cast<PyObject*>(made));
}

}  // namespace pellucid::bridge
