// Bindings for tests and benchmarks of the graph layer: a GraphRecord written down as Python data, and what is built from it. Capture
// itself never goes through here.
#include <memory>

#include "base/check.h"
#include "module/bindings.h"
#include "torch_bridge/fx_graph.h"
#include "torch_bridge/lazy_graph.h"
#include "torch_bridge/replay.h"
#include "translate/graph_record.h"

namespace pellucid::module {
namespace {

using py::Ref;
using translate::Arg;
using translate::GraphNode;
using translate::GraphRecord;
using translate::ModuleEntry;
using translate::NodeOp;
using translate::StackEntry;

constexpr const char* kCapsule = "pellucid.GraphRecord";

Ref sequence(PyObject* object) { return Ref::steal(PySequence_Fast(object, "a sequence is expected")); }

// ("node", index) | ("const", value) | ("tuple" | "list" | "slice", items) | ("dict", {key: argument})
bool parse_arg(PyObject* spec, Arg* out) {
  const char* kind = nullptr;
  PyObject* payload = nullptr;
  if (!PyTuple_Check(spec)) {
    PyErr_Format(PyExc_TypeError, "an argument is a (kind, payload) tuple, not %R", spec);
    return false;
  }
  if (!PyArg_ParseTuple(spec, "sO", &kind, &payload)) return false;
  const std::string_view name = kind;
  if (name == "node") {
    out->kind = Arg::Kind::kNode;
    const long index = PyLong_AsLong(payload);
    if (index == -1 && PyErr_Occurred()) return false;
    out->node = static_cast<uint32_t>(index);
    return true;
  }
  if (name == "const") {
    out->constant = Ref::share(payload);
    return true;
  }
  if (name == "dict") {
    out->kind = Arg::Kind::kDict;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    if (!PyDict_Check(payload)) {
      PyErr_SetString(PyExc_TypeError, "a dict argument needs a dict");
      return false;
    }
    while (PyDict_Next(payload, &position, &key, &value)) {
      out->keys.push_back(Ref::share(key));
      if (!parse_arg(value, &out->items.emplace_back())) return false;
    }
    return true;
  }
  if (name == "tuple") {
    out->kind = Arg::Kind::kTuple;
  } else if (name == "list") {
    out->kind = Arg::Kind::kList;
  } else if (name == "slice") {
    out->kind = Arg::Kind::kSlice;
  } else {
    PyErr_Format(PyExc_ValueError, "unknown kind of argument: %s", kind);
    return false;
  }
  Ref items = sequence(payload);
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
    if (!parse_arg(PySequence_Fast_GET_ITEM(items.get(), i), &out->items.emplace_back())) return false;
  }
  return true;
}

bool parse_op(const char* text, NodeOp* out) {
  static const std::pair<const char*, NodeOp> kOps[] = {
      {"placeholder", NodeOp::kPlaceholder},
      {"call_function", NodeOp::kCallFunction},
      {"call_method", NodeOp::kCallMethod},
      {"get_attr", NodeOp::kGetAttr},
  };
  for (const auto& [name, op] : kOps) {
    if (std::string_view(text) != name) continue;
    *out = op;
    return true;
  }
  PyErr_Format(PyExc_ValueError, "unknown operation: %s", text);
  return false;
}

bool parse_node(PyObject* spec, GraphNode* out) {
  static const char* const kKeywords[] = {"op",     "target", "name",        "args",       "kwargs",    "example_value", "stack",
                                          "module", "dead",   "source_name", "real_input", "parameter", nullptr};
  const char *op = nullptr, *name = "", *source_name = "";
  PyObject *target = nullptr, *args = nullptr, *kwargs = nullptr, *example_value = nullptr, *real_input = nullptr;
  int dead = 0, parameter = 0;
  Ref none = Ref::steal(PyTuple_New(0));
  if (!none || !PyArg_ParseTupleAndKeywords(none.get(), spec, "|$sOsOO!OiipsOp", const_cast<char**>(kKeywords), &op, &target, &name, &args,
                                            &PyDict_Type, &kwargs, &example_value, &out->stack, &out->module, &dead, &source_name,
                                            &real_input, &parameter)) {
    return false;
  }
  if (op == nullptr || target == nullptr) {
    PyErr_SetString(PyExc_TypeError, "a node needs an op and a target");
    return false;
  }
  if (!parse_op(op, &out->op)) return false;
  out->target = Ref::share(target);
  out->name = name;
  out->source_name = source_name;
  out->example_value = Ref::share(example_value);
  out->real_input = Ref::share(real_input);
  out->dead = dead != 0;
  out->parameter = parameter != 0;
  if (args != nullptr) {
    Ref items = sequence(args);
    if (!items) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
      if (!parse_arg(PySequence_Fast_GET_ITEM(items.get(), i), &out->args.emplace_back())) return false;
    }
  }
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (kwargs != nullptr && PyDict_Next(kwargs, &position, &key, &value)) {
    Arg arg;
    if (!parse_arg(value, &arg)) return false;
    out->kwargs.emplace_back(Ref::share(key), std::move(arg));
  }
  return true;
}

// (parent, code, line[, end_line, column, end_column])
bool parse_stack(PyObject* spec, StackEntry* out) {
  PyObject* code = nullptr;
  if (!PyArg_ParseTuple(spec, "iO!i|iii", &out->parent, &PyCode_Type, &code, &out->line, &out->end_line, &out->column, &out->end_column)) {
    return false;
  }
  out->code = Ref::share(code);
  return true;
}

// (parent, key, path, class)
bool parse_module(PyObject* spec, ModuleEntry* out) {
  const char *key = nullptr, *path = nullptr;
  PyObject* type = nullptr;
  if (!PyArg_ParseTuple(spec, "issO", &out->parent, &key, &path, &type)) return false;
  out->key = key;
  out->path = path;
  out->type = Ref::share(type);
  return true;
}

template <class T>
bool parse_all(PyObject* specs, std::vector<T>* out, bool (*parse)(PyObject*, T*)) {
  if (specs == nullptr) return true;
  Ref items = sequence(specs);
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!parse(item, &out->emplace_back())) return false;
  }
  return true;
}

void free_record(PyObject* capsule) { delete static_cast<GraphRecord*>(PyCapsule_GetPointer(capsule, kCapsule)); }

PyObject* graph_record(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* const kKeywords[] = {"nodes", "outputs", "stacks", "modules", nullptr};
  PyObject *nodes = nullptr, *outputs = nullptr, *stacks = nullptr, *modules = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO", const_cast<char**>(kKeywords), &nodes, &outputs, &stacks, &modules))
    return nullptr;
  auto record = std::make_unique<GraphRecord>();
  if (!parse_all(nodes, &record->nodes, parse_node) || !parse_all(outputs, &record->outputs, parse_arg) ||
      !parse_all(stacks, &record->stacks, parse_stack) || !parse_all(modules, &record->modules, parse_module)) {
    return nullptr;
  }
  PyObject* capsule = PyCapsule_New(record.get(), kCapsule, free_record);
  if (capsule != nullptr) record.release();
  return capsule;
}

template <Ref (*make)(const GraphRecord&)>
PyObject* from_record(PyObject*, PyObject* capsule) {
  auto* record = static_cast<GraphRecord*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (record == nullptr) return nullptr;
  try {
    return make(*record).release();
  } catch (const base::InternalError& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  return nullptr;
}

Ref make_lazy(const GraphRecord& record) { return bridge::make_lazy_graph(record); }

PyObject* graph_module_of(PyObject*, PyObject* graph) { return bridge::graph_module_of(graph).release(); }

PyMethodDef methods[] = {
    {"graph_record", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(graph_record)), METH_VARARGS | METH_KEYWORDS,
     "graph_record(nodes, outputs, stacks=(), modules=()): a record of captured operators. For tests."},
    {"build_graph_module", from_record<bridge::build_graph_module>, METH_O, "The torch.fx.GraphModule of a record."},
    {"build_graph_module_public", from_record<bridge::build_graph_module_public>, METH_O, "The same through torch.fx's public API."},
    {"make_replay", from_record<bridge::make_replay>, METH_O, "A callable that runs the operators of a record."},
    {"make_lazy_graph", from_record<make_lazy>, METH_O, "What stands for the GraphModule of a record until graph_module_of() builds it."},
    {"graph_module_of", graph_module_of, METH_O, "The GraphModule that an entry's graph stands for."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_graph(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace pellucid::module
