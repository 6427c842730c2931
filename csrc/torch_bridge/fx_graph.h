// GraphRecord -> torch.fx.GraphModule. Uses the Python C API and torch's Python objects, no torch header; knows nothing of capture.
#pragma once
#include "py/ref.h"
#include "translate/graph_record.h"

namespace pellucid::bridge {

// A pellucid.graph_module.GraphModule (a torch.fx.GraphModule) with the record's live nodes, an output node holding a tuple, use-def
// maps, fx's own names, and metadata: example_value, stack_trace, nn_module_stack; on placeholders also source_name, and tensor_dict for
// parameters. A get_attr node's value is its `real_input`. Nothing is printed or compiled before forward or code is asked for.
// Null with a Python exception set.
py::Ref build_graph_module(const translate::GraphRecord& record);

// The same through torch.fx's public API alone: what build_graph_module falls back to when torch.fx is not as it expects.
py::Ref build_graph_module_public(const translate::GraphRecord& record);

}  // namespace pellucid::bridge
