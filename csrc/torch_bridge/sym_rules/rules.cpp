// The table of all families. Knows no tensor.
#include "torch_bridge/sym_rules/rules.h"

#include <cstring>
#include <string>

namespace pellucid::bridge::sym_rules {

void Table::add(std::initializer_list<const char*> names, Rule rule) {
  for (const char* name : names) {
    const char* dot = std::strchr(name, '.');
    const std::string stem = "aten::" + (dot == nullptr ? std::string(name) : std::string(name, dot));
    const bool fresh = rules_.emplace(c10::OperatorName(stem, dot == nullptr ? "" : dot + 1), rule).second;
    TORCH_INTERNAL_ASSERT(fresh, "two symbolic rules for ", name);
  }
}

Rule Table::find(const c10::OperatorName& name) const {
  const auto found = rules_.find(name);
  return found == rules_.end() ? nullptr : found->second;
}

Rule find(const c10::OperatorHandle& op) {
  static const Table table = [] {
    Table all;
    add_backward(all);
    add_factories(all);
    add_indexing(all);
    add_linear_algebra(all);
    add_matrices(all);
    add_networks(all);
    add_transforms(all);
    add_views(all);
    add_windows(all);
    return all;
  }();
  if (const Rule rule = table.find(op.operator_name())) return rule;
  return generic_rule(op);
}

}  // namespace pellucid::bridge::sym_rules
