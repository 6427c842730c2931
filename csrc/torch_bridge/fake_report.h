// What the fake tensors did and could do, as Python objects, for tests and reports.
#pragma once
#include "py/ref.h"

namespace pellucid::bridge {

py::Ref fake_stats();      // {"aten::add.Tensor": ("meta", calls)}
py::Ref symbolic_stats();  // of calls with symbolic sizes: {"aten::add.Tensor": (by a rule, by PyTorch's Python functions)}
void reset_fake_stats();
py::Ref rule_names();                                           // a sorted list of operator names
const char* origin_of(const char* name, const char* overload);  // null when there is no such operator

}  // namespace pellucid::bridge
