// pellucid._core.SymNode: nodes of the shape engine inside torch.SymInt, SymFloat and SymBool.
#include "module/bindings.h"
#include "torch_bridge/sym_binding.h"

namespace pellucid::module {

bool bind_symbolic_nodes(PyObject* module) { return bridge::bind_sym_nodes(module); }

}  // namespace pellucid::module
