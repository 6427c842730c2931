// node.meta of torch.fx nodes made from a GraphRecord. Texts and module stacks are built once for each distinct stack of the record and
// shared by its nodes. Knows the keys PyTorch's backends read; knows nothing of how nodes are made.
#pragma once
#include <unordered_map>
#include <vector>

#include "py/ref.h"
#include "translate/graph_record.h"

namespace pellucid::bridge {

class FxMeta {
 public:
  explicit FxMeta(const translate::GraphRecord& record);

  // Adds what the record knows about `node` to the dict `meta`. False with a Python exception set.
  bool fill(const translate::GraphNode& node, PyObject* meta);

 private:
  PyObject* stack_trace(int32_t index);      // borrowed str, or null with an exception set
  PyObject* nn_module_stack(int32_t index);  // borrowed dict
  bool extend_trace(const translate::StackEntry& entry, const py::Ref& outer, py::Ref* out);
  PyObject* lines_of(PyObject* filename);  // borrowed list

  const translate::GraphRecord& record_;
  std::vector<py::Ref> traces_;                   // by index into record.stacks
  std::vector<py::Ref> modules_;                  // by index into record.modules
  std::unordered_map<PyObject*, py::Ref> lines_;  // by the filename object, which the record's code objects keep alive
};

}  // namespace pellucid::bridge
