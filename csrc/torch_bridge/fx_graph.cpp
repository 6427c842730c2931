// Builds torch.fx objects the way torch/fx/graph.py does, without its Python: the C base type of Node (torch._C._NodeBase) makes the
// node, converts the arguments and keeps the use-def maps; names, metadata and the graph's side tables are filled here.
#include "torch_bridge/fx_graph.h"

#include <string>
#include <unordered_map>

#include "base/check.h"
#include "py/collector.h"
#include "torch_bridge/fx_meta.h"
#include "torch_bridge/fx_names.h"
#include "torch_bridge/interned.h"

namespace pellucid::bridge {
namespace {

using py::Ref;
using translate::Arg;
using translate::GraphNode;
using translate::GraphRecord;
using translate::NodeOp;

Ref attribute(const Ref& object, const char* name) { return Ref::steal(PyObject_GetAttrString(object.get(), name)); }
Ref import(const char* name) { return Ref::steal(PyImport_ImportModule(name)); }

// The parts of torch.fx that are used, looked up once. They live as long as the process.
struct Fx {
  Ref graph_type, make_module, node_type;
  // Of the native way; `native` is false when torch.fx is not as it expects.
  bool native = false;
  Ref update_args_kwargs, prepend, illegal_names, empty_kwargs;
  initproc init_base = nullptr;

  static const Fx* get();

 private:
  bool load();
  bool load_native();
};

bool Fx::load() {
  Ref graph = import("torch.fx.graph"), module = import("pellucid.graph_module");
  if (!graph || !module) return false;
  graph_type = attribute(graph, "Graph");
  node_type = attribute(graph, "Node");
  Ref module_type = attribute(module, "GraphModule");
  if (!graph_type || !node_type || !module_type) return false;
  make_module = attribute(module_type, "of_graph");
  if (!make_module) return false;
  native = load_native();
  if (!native && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_ImportError)) return false;
    PyErr_Clear();  // an internal that is gone: the public way does the same
  }
  return true;
}

bool Fx::load_native() {
  Ref graph_module = import("torch.fx.graph"), c = import("torch._C"), immutable = import("torch.fx.immutable_collections");
  if (!graph_module || !c || !immutable) return false;
  illegal_names = attribute(graph_module, "_illegal_names");
  Ref base = attribute(c, "_NodeBase"), immutable_dict = attribute(immutable, "immutable_dict");
  if (!illegal_names || !base || !immutable_dict) return false;
  update_args_kwargs = attribute(base, "_update_args_kwargs");
  prepend = attribute(base, "_prepend");
  empty_kwargs = Ref::steal(PyObject_CallNoArgs(immutable_dict.get()));
  if (!update_args_kwargs || !prepend || !empty_kwargs) return false;
  if (!PyType_Check(base.get()) || !PyType_Check(node_type.get()) || !PyDict_Check(illegal_names.get())) return false;
  auto* base_type = reinterpret_cast<PyTypeObject*>(base.get());
  auto* type = reinterpret_cast<PyTypeObject*>(node_type.get());
  init_base = base_type->tp_init;
  if (init_base == nullptr || type->tp_base != base_type || type->tp_new != base_type->tp_new) return false;
  // The initializer takes (graph, name, op, target, type) and leaves meta and users as dicts.
  Ref init_args = Ref::steal(Py_BuildValue("(OsssO)", Py_None, "", "root", "", Py_None));
  Ref none = Ref::steal(PyTuple_New(0));
  if (!init_args || !none) return false;
  Ref probe = Ref::steal(type->tp_new(type, none.get(), nullptr));
  if (!probe) return false;
  if (init_base(probe.get(), init_args.get(), nullptr) < 0) {
    if (PyErr_ExceptionMatches(PyExc_TypeError)) PyErr_Clear();
    return false;
  }
  for (const char* name : {"meta", "users", "_input_nodes"}) {
    Ref value = attribute(probe, name);
    if (!value || !PyDict_Check(value.get())) return false;
  }
  return true;
}

const Fx* Fx::get() {
  static Fx* fx = nullptr;
  if (fx == nullptr) {
    auto* loading = new Fx;
    if (!loading->load()) {
      delete loading;
      return nullptr;
    }
    fx = loading;
  }
  return fx;
}

constexpr size_t kOutput = 4;  // beside the values of NodeOp
constexpr size_t kOps = 5;

PyObject* op_name(size_t op) {
  static const char* const kNames[kOps] = {"placeholder", "call_function", "call_method", "get_attr", "output"};
  static PyObject* names[kOps] = {};
  CHECK(op < kOps) << "node op " << op;
  if (names[op] == nullptr) names[op] = PyUnicode_InternFromString(kNames[op]);
  return names[op];
}

// Arguments as plain tuples, lists and dicts of fx nodes: fx turns them into its immutable ones and finds the uses.
class ArgBuilder {
 public:
  explicit ArgBuilder(const std::vector<Ref>& nodes) : nodes_(nodes) {}

  Ref value(const Arg& arg) const {
    switch (arg.kind) {
      case Arg::Kind::kNode:
        CHECK(arg.node < nodes_.size() && nodes_[arg.node]) << "node " << arg.node << " is used before it is made, or is dead";
        return nodes_[arg.node];
      case Arg::Kind::kConst:
        return arg.constant;
      case Arg::Kind::kTuple:
        return tuple(arg.items);
      case Arg::Kind::kList: {
        Ref list = Ref::steal(PyList_New(static_cast<Py_ssize_t>(arg.items.size())));
        for (size_t i = 0; list && i < arg.items.size(); i++) {
          Ref item = value(arg.items[i]);
          if (!item) return Ref();
          PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item.release());
        }
        return list;
      }
      case Arg::Kind::kDict: {
        CHECK(arg.keys.size() == arg.items.size());
        Ref dict = Ref::steal(PyDict_New());
        for (size_t i = 0; dict && i < arg.items.size(); i++) {
          Ref item = value(arg.items[i]);
          if (!item || PyDict_SetItem(dict.get(), arg.keys[i].get(), item.get()) < 0) return Ref();
        }
        return dict;
      }
      case Arg::Kind::kSlice: {
        CHECK(arg.items.size() == 3);
        Ref start = value(arg.items[0]), stop = value(arg.items[1]), step = value(arg.items[2]);
        if (!start || !stop || !step) return Ref();
        return Ref::steal(PySlice_New(start.get(), stop.get(), step.get()));
      }
    }
    CHECK(false) << "argument kind " << static_cast<int>(arg.kind);
  }

  Ref tuple(const std::vector<Arg>& items) const {
    Ref out = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    for (size_t i = 0; out && i < items.size(); i++) {
      Ref item = value(items[i]);
      if (!item) return Ref();
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item.release());
    }
    return out;
  }

  Ref kwargs(const std::vector<std::pair<Ref, Arg>>& items) const {
    Ref dict = Ref::steal(PyDict_New());
    for (const auto& [key, arg] : items) {
      if (!dict) return dict;
      Ref item = value(arg);
      if (!item || PyDict_SetItem(dict.get(), key.get(), item.get()) < 0) return Ref();
    }
    return dict;
  }

 private:
  const std::vector<Ref>& nodes_;
};

enum class Built { kDone, kNotNative, kError };

class NativeBuilder {
 public:
  NativeBuilder(const Fx& fx, const GraphRecord& record)
      : fx_(fx), record_(record), names_(fx.illegal_names.get()), meta_(record), nodes_(record.nodes.size()), args_(nodes_) {}

  // kNotNative: nothing is wrong, but torch.fx has to do it itself.
  Built build(PyObject* graph);

 private:
  struct Target {
    std::string candidate;
    Ref nodes;  // the lookup table's dict of the nodes with this key
  };

  bool open(PyObject* graph);
  // `name`: what the node should be called, or null to name it after its target.
  Built add(size_t op, PyObject* target, const std::string* name, const Ref& args, const Ref& kwargs, Ref* out);
  Built target_of(size_t op, PyObject* target, Target** out);
  bool close();

  const Fx& fx_;
  const GraphRecord& record_;
  FxNames names_;
  FxMeta meta_;
  std::vector<Ref> nodes_;
  ArgBuilder args_;
  std::unordered_map<PyObject*, Target> targets_[kOps];
  Ref graph_, root_, table_, used_names_, base_count_, obj_to_name_, no_args_;
  Py_ssize_t count_ = 0;
};

bool NativeBuilder::open(PyObject* graph) {
  graph_ = Ref::share(graph);
  root_ = attribute(graph_, "_root");
  Ref names = attribute(graph_, "_graph_namespace"), lookup = attribute(graph_, "_find_nodes_lookup_table");
  if (!root_ || !names || !lookup) return false;
  table_ = attribute(lookup, "table");
  used_names_ = attribute(names, "_used_names");
  base_count_ = attribute(names, "_base_count");
  obj_to_name_ = attribute(names, "_obj_to_name");
  no_args_ = Ref::steal(PyTuple_New(0));
  return table_ && used_names_ && base_count_ && obj_to_name_ && no_args_;
}

Built NativeBuilder::target_of(size_t op, PyObject* target, Target** out) {
  auto found = targets_[op].find(target);
  if (found != targets_[op].end()) {
    *out = &found->second;
    return Built::kDone;
  }
  const bool is_function = op == static_cast<size_t>(NodeOp::kCallFunction);
  Ref text = is_function ? Ref::steal(PyObject_GetAttr(target, INTERNED("__name__"))) : Ref::share(target);
  if (!text) return Built::kError;
  if (!PyUnicode_Check(text.get()) || !PyUnicode_IS_ASCII(text.get())) return Built::kNotNative;
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text.get(), &size);
  if (utf8 == nullptr) return Built::kError;
  Ref key = Ref::steal(PyTuple_Pack(2, op_name(op), is_function ? target : Py_None));
  if (!key) return Built::kError;
  Ref entry = Ref::steal(PyObject_GetItem(table_.get(), key.get()));  // a defaultdict: makes the entry
  if (!entry) return Built::kError;
  Target& made = targets_[op][target];
  made = {candidate_from_name({utf8, static_cast<size_t>(size)}, !is_function), std::move(entry)};
  *out = &made;
  return Built::kDone;
}

Built NativeBuilder::add(size_t op, PyObject* target, const std::string* name, const Ref& args, const Ref& kwargs, Ref* out) {
  Target* known = nullptr;
  if (Built found = target_of(op, target, &known); found != Built::kDone) return found;
  std::optional<std::string> unique = names_.create(name != nullptr ? *name : known->candidate);
  if (!unique) return PyErr_Occurred() ? Built::kError : Built::kNotNative;
  Ref node_name = Ref::steal(PyUnicode_FromStringAndSize(unique->data(), static_cast<Py_ssize_t>(unique->size())));
  if (!node_name) return Built::kError;

  auto* type = reinterpret_cast<PyTypeObject*>(fx_.node_type.get());
  Ref node = Ref::steal(type->tp_new(type, no_args_.get(), nullptr));
  if (!node) return Built::kError;
  Ref init_args = Ref::steal(PyTuple_Pack(5, graph_.get(), node_name.get(), op_name(op), target, Py_None));
  if (!init_args || fx_.init_base(node.get(), init_args.get(), nullptr) < 0) return Built::kError;
  PyObject* update[] = {node.get(), args.get(), kwargs.get()};
  Ref updated = Ref::steal(PyObject_Vectorcall(fx_.update_args_kwargs.get(), update, 3, nullptr));
  if (!updated) return Built::kError;
  PyObject* place[] = {root_.get(), node.get()};  // before the root of the ring: at the end
  Ref placed = Ref::steal(PyObject_Vectorcall(fx_.prepend.get(), place, 2, nullptr));
  if (!placed) return Built::kError;
  if (PyDict_SetItem(known->nodes.get(), node.get(), Py_None) < 0) return Built::kError;
  if (PySet_Add(used_names_.get(), node_name.get()) < 0) return Built::kError;
  if (PyDict_SetItem(obj_to_name_.get(), node.get(), node_name.get()) < 0) return Built::kError;
  count_++;
  *out = std::move(node);
  return Built::kDone;
}

bool NativeBuilder::close() {
  Ref count = Ref::steal(PyLong_FromSsize_t(count_));
  return count && PyObject_SetAttr(graph_.get(), INTERNED("_len"), count.get()) == 0 && names_.export_counts(base_count_.get());
}

Built NativeBuilder::build(PyObject* graph) {
  if (!open(graph)) return Built::kError;
  for (size_t i = 0; i < record_.nodes.size(); i++) {
    const GraphNode& node = record_.nodes[i];
    if (node.dead) continue;
    Ref args = node.args.empty() ? no_args_ : args_.tuple(node.args);
    Ref kwargs = node.kwargs.empty() ? fx_.empty_kwargs : args_.kwargs(node.kwargs);
    if (!args || !kwargs) return Built::kError;
    const std::string* name = node.name.empty() ? nullptr : &node.name;
    Built added = add(static_cast<size_t>(node.op), node.target.get(), name, args, kwargs, &nodes_[i]);
    if (added != Built::kDone) return added;
    Ref meta = Ref::steal(PyObject_GetAttr(nodes_[i].get(), INTERNED("meta")));
    if (!meta || !meta_.fill(node, meta.get())) return Built::kError;
  }
  Ref outputs = args_.tuple(record_.outputs);
  Ref args = outputs ? Ref::steal(PyTuple_Pack(1, outputs.get())) : Ref();
  if (!args) return Built::kError;
  Ref output;
  Built added = add(kOutput, op_name(kOutput), nullptr, args, fx_.empty_kwargs, &output);
  if (added != Built::kDone) return added;
  return close() ? Built::kDone : Built::kError;
}

bool build_public(const GraphRecord& record, PyObject* graph) {
  std::vector<Ref> nodes(record.nodes.size());
  ArgBuilder builder(nodes);
  FxMeta meta(record);
  auto create = [graph](PyObject* op, PyObject* target, const Ref& args, const Ref& kwargs, const std::string& name) {
    Ref text =
        name.empty() ? Ref::share(Py_None) : Ref::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    if (!args || !kwargs || !text) return Ref();
    PyObject* stack[] = {graph, op, target, args.get(), kwargs.get(), text.get()};
    return Ref::steal(PyObject_VectorcallMethod(INTERNED("create_node"), stack, 6, nullptr));
  };
  for (size_t i = 0; i < nodes.size(); i++) {
    const GraphNode& node = record.nodes[i];
    if (node.dead) continue;
    nodes[i] =
        create(op_name(static_cast<size_t>(node.op)), node.target.get(), builder.tuple(node.args), builder.kwargs(node.kwargs), node.name);
    if (!nodes[i]) return false;
    Ref dict = attribute(nodes[i], "meta");
    if (!dict || !meta.fill(node, dict.get())) return false;
  }
  Ref outputs = builder.tuple(record.outputs);
  Ref args = outputs ? Ref::steal(PyTuple_Pack(1, outputs.get())) : Ref();
  return static_cast<bool>(create(op_name(kOutput), op_name(kOutput), args, Ref::steal(PyDict_New()), ""));
}

// The values of get_attr nodes, by qualified name.
Ref module_root(const GraphRecord& record) {
  Ref root = Ref::steal(PyDict_New());
  for (const GraphNode& node : record.nodes) {
    if (!root) break;
    if (node.op != NodeOp::kGetAttr || node.dead) continue;
    CHECK(node.real_input) << "a get_attr node without a value";
    if (PyDict_SetItem(root.get(), node.target.get(), node.real_input.get()) < 0) return Ref();
  }
  return root;
}

Ref make_module(const Fx& fx, const GraphRecord& record, PyObject* graph) {
  Ref root = module_root(record);
  if (!root) return Ref();
  PyObject* args[] = {root.get(), graph};
  return Ref::steal(PyObject_Vectorcall(fx.make_module.get(), args, 2, nullptr));
}

}  // namespace

Ref build_graph_module(const GraphRecord& record) {
  const Fx* fx = Fx::get();
  if (fx == nullptr) return Ref();
  if (!fx->native) return build_graph_module_public(record);
  Ref graph = Ref::steal(PyObject_CallNoArgs(fx->graph_type.get()));
  if (!graph) return Ref();
  Built built;
  {
    py::PauseCollector pause;
    built = NativeBuilder(*fx, record).build(graph.get());
  }
  switch (built) {
    case Built::kDone:
      return make_module(*fx, record, graph.get());
    case Built::kNotNative:
      return build_graph_module_public(record);
    case Built::kError:
      return Ref();
  }
  CHECK(false);
}

Ref build_graph_module_public(const GraphRecord& record) {
  const Fx* fx = Fx::get();
  if (fx == nullptr) return Ref();
  Ref graph = Ref::steal(PyObject_CallNoArgs(fx->graph_type.get()));
  if (!graph || !build_public(record, graph.get())) return Ref();
  return make_module(*fx, record, graph.get());
}

}  // namespace pellucid::bridge
