// GraphRecord: the captured tensor work as the translator records it, before any torch.fx object exists. Built once into a
// torch.fx.GraphModule (torch_bridge/fx_graph) or replayed directly (torch_bridge/replay). Knows no torch.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "py/ref.h"

namespace pellucid::translate {

enum class NodeOp : uint8_t { kPlaceholder, kCallFunction, kCallMethod, kGetAttr };

struct Arg {  // an argument of a node: another node's value, a constant, or a container of arguments
  enum class Kind : uint8_t { kNode, kConst, kTuple, kList, kDict, kSlice };
  Kind kind = Kind::kConst;
  uint32_t node = 0;          // kNode: index into GraphRecord::nodes
  py::Ref constant;           // kConst
  std::vector<Arg> items;     // kTuple, kList, kSlice (start, stop, step), kDict (values)
  std::vector<py::Ref> keys;  // kDict
};

struct StackEntry {  // the user's call stack at a node, innermost first through `parent`; shared between nodes
  int32_t parent = -1;
  py::Ref code;  // code object: filename and qualname
  int line = 0, end_line = 0, column = -1, end_column = -1;
};

struct ModuleEntry {  // nn_module_stack, innermost first through `parent`
  int32_t parent = -1;
  std::string key;   // unique per module object, e.g. "L__self___layers_0"
  std::string path;  // "L['self'].layers[0]"
  py::Ref type;      // the module's class
};

struct GraphNode {
  NodeOp op = NodeOp::kCallFunction;
  py::Ref target;    // kCallFunction: the callable; kCallMethod, kGetAttr, kPlaceholder: str
  std::string name;  // placeholders: made from the source, "l_x_"; others: empty, named by fx from the target
  std::vector<Arg> args;
  std::vector<std::pair<py::Ref, Arg>> kwargs;
  py::Ref example_value;  // a fake tensor, tuple of them, number ...
  int32_t stack = -1;     // index into GraphRecord::stacks
  int32_t module = -1;    // index into GraphRecord::modules
  bool dead = false;      // left out: removed by dead-code elimination
  // placeholders only
  std::string source_name;  // "L['x']"
  py::Ref real_input;       // the example input given to the backend
  bool parameter = false;   // an nn.Parameter or buffer read from a module: static for backends
};

struct GraphRecord {
  std::vector<GraphNode> nodes;  // placeholders first
  std::vector<Arg> outputs;      // the output node's tuple
  std::vector<StackEntry> stacks;
  std::vector<ModuleEntry> modules;
  size_t placeholders() const {
    size_t n = 0;
    while (n < nodes.size() && nodes[n].op == NodeOp::kPlaceholder) n++;
    return n;
  }
};

}  // namespace pellucid::translate
