// A record holds Python objects (constants, callables, code), so the object that keeps one shows them to the garbage collector.
#include "torch_bridge/lazy_graph.h"

#include <new>
#include <utility>

#include "base/check.h"
#include "torch_bridge/fx_graph.h"

namespace pellucid::bridge {

namespace {

using py::Ref;
using translate::Arg;
using translate::GraphNode;
using translate::GraphRecord;

struct LazyGraph {
  PyObject_HEAD GraphRecord* record;  // null once the module was built
  PyObject* module;
};

LazyGraph* as_lazy(PyObject* self) { return reinterpret_cast<LazyGraph*>(self); }

int visit_argument(const Arg& argument, visitproc visit, void* arg) {
  Py_VISIT(argument.constant.get());
  for (const Ref& key : argument.keys) Py_VISIT(key.get());
  for (const Arg& item : argument.items) {
    if (int stop = visit_argument(item, visit, arg)) return stop;
  }
  return 0;
}

int visit_node(const GraphNode& node, visitproc visit, void* arg) {
  Py_VISIT(node.target.get());
  Py_VISIT(node.example_value.get());
  Py_VISIT(node.real_input.get());
  for (const Arg& argument : node.args) {
    if (int stop = visit_argument(argument, visit, arg)) return stop;
  }
  for (const auto& [name, argument] : node.kwargs) {
    Py_VISIT(name.get());
    if (int stop = visit_argument(argument, visit, arg)) return stop;
  }
  return 0;
}

int visit_record(const GraphRecord& record, visitproc visit, void* arg) {
  for (const GraphNode& node : record.nodes) {
    if (int stop = visit_node(node, visit, arg)) return stop;
  }
  for (const Arg& argument : record.outputs) {
    if (int stop = visit_argument(argument, visit, arg)) return stop;
  }
  for (const auto& entry : record.stacks) Py_VISIT(entry.code.get());
  for (const auto& entry : record.modules) Py_VISIT(entry.type.get());
  return 0;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_lazy(self)->module);
  return as_lazy(self)->record != nullptr ? visit_record(*as_lazy(self)->record, visit, arg) : 0;
}

int clear(PyObject* self) {
  delete std::exchange(as_lazy(self)->record, nullptr);
  Py_CLEAR(as_lazy(self)->module);
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  PyObject_GC_Del(self);
}

PyTypeObject* lazy_graph_type() {
  static PyTypeObject type = [] {
    PyTypeObject made = {PyVarObject_HEAD_INIT(nullptr, 0)};
    made.tp_name = "pellucid._core.LazyGraph";
    made.tp_basicsize = sizeof(LazyGraph);
    made.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    made.tp_dealloc = dealloc;
    made.tp_traverse = traverse;
    made.tp_clear = clear;
    made.tp_doc = "A captured graph that nobody has asked to see as a GraphModule yet.";
    return made;
  }();
  if (!type.tp_dict && PyType_Ready(&type) < 0) return nullptr;
  return &type;
}

Ref build(const GraphRecord& record) {  // outside of captures nobody else stops C++ exceptions
  try {
    return build_graph_module(record);
  } catch (const base::InternalError& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return {};
}

}  // namespace

Ref make_lazy_graph(GraphRecord record) {
  PyTypeObject* type = lazy_graph_type();
  if (type == nullptr) return {};
  for (GraphNode& node : record.nodes) {
    if (node.op == translate::NodeOp::kPlaceholder) node.real_input = Ref();
  }
  auto* made = PyObject_GC_New(LazyGraph, type);
  if (made == nullptr) return {};
  made->record = new GraphRecord(std::move(record));
  made->module = nullptr;
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return Ref::steal(reinterpret_cast<PyObject*>(made));
}

size_t lazy_graph_bytes(PyObject* graph) {
  if (Py_TYPE(graph) != lazy_graph_type() || as_lazy(graph)->record == nullptr) return 0;
  const GraphRecord& record = *as_lazy(graph)->record;
  size_t total = record.nodes.capacity() * sizeof(GraphNode) + record.outputs.capacity() * sizeof(Arg);
  for (const GraphNode& node : record.nodes)
    total += node.args.capacity() * sizeof(Arg) + node.kwargs.capacity() * sizeof(std::pair<Ref, Arg>);
  return total;
}

Ref graph_module_of(PyObject* graph) {
  if (Py_TYPE(graph) != lazy_graph_type()) return Ref::share(graph);
  LazyGraph* lazy = as_lazy(graph);
  if (lazy->module == nullptr) {
    if (lazy->record == nullptr) {
      PyErr_SetString(PyExc_RuntimeError, "the graph was taken apart by the garbage collector");
      return {};
    }
    Ref module = build(*lazy->record);
    if (!module) return {};
    // Building ran Python code: another thread may have been here meanwhile.
    if (lazy->module == nullptr) lazy->module = module.release();
    delete std::exchange(lazy->record, nullptr);
  }
  return Ref::share(lazy->module);
}

}  // namespace pellucid::bridge
