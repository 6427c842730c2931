// A captured graph whose torch.fx.GraphModule is built when somebody asks for it: backend "eager" runs the record and needs none.
#pragma once
#include "py/ref.h"
#include "translate/graph_record.h"

namespace pellucid::bridge {

// An object that stands for the graph. It keeps the record, without the example inputs of placeholders: they would stay alive with it.
// Null with a Python exception set.
py::Ref make_lazy_graph(translate::GraphRecord record);

// The GraphModule that `graph` stands for, the same at every call; `graph` itself if it is no such object. Null with a Python exception
// set.
py::Ref graph_module_of(PyObject* graph);

// What the record of a graph that was not built yet takes; 0 for others.
size_t lazy_graph_bytes(PyObject* graph);

}  // namespace pellucid::bridge
