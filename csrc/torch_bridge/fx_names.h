// Names of torch.fx nodes, by the rules of torch.fx.graph._Namespace, without its regular expressions. Knows torch.fx's rules and
// nothing about graphs or nodes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "py/ref.h"

namespace pellucid::bridge {

// What fx calls a node of this target before the name is made unique: `__name__` (or the method's name without its dunders) in
// snake case. `name` is ASCII.
std::string candidate_from_name(std::string_view name, bool is_method);

class FxNames {
 public:
  // `illegal_names`: torch.fx.graph._illegal_names, borrowed and outliving this.
  explicit FxNames(PyObject* illegal_names) : illegal_names_(illegal_names) {}

  // The unique name for `candidate`. Nullopt with no Python error set when it has to be left to torch.fx (not ASCII, a suffix beyond
  // 18 digits); nullopt with one when Python failed.
  std::optional<std::string> create(std::string_view candidate);

  // Fills _Namespace._base_count of a fresh namespace, so that nodes added later by fx's own rules do not clash. False with a Python
  // exception set.
  bool export_counts(PyObject* base_count) const;

 private:
  struct Base {
    int64_t count = 0;
    int is_illegal = -1;  // of the base itself as a name; -1: not asked yet
  };
  int is_illegal(const std::string& name) const;  // 0, 1, or -1 with a Python exception set

  PyObject* illegal_names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, Base> bases_;
};

}  // namespace pellucid::bridge
