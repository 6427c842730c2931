// Symbolic shape rules: by operator name, one file per family, and by what a schema says for the families that PyTorch marks itself. A
// rule says where results lie; dtype, device, order of strides and errors come from the operator at the hints.
#pragma once
#include <ATen/core/operator_name.h>

#include <initializer_list>
#include <unordered_map>

#include "torch_bridge/sym_rules/call.h"

namespace pellucid::bridge::sym_rules {

class Table {
 public:
  // Names without "aten::", with ".overload" where there is one.
  void add(std::initializer_list<const char*> names, Rule rule);
  Rule find(const c10::OperatorName& name) const;

 private:
  std::unordered_map<c10::OperatorName, Rule> rules_;
};

// The rule for an operator, or null.
Rule find(const c10::OperatorHandle& op);

void add_factories(Table& table);
void add_indexing(Table& table);
void add_matrices(Table& table);
void add_networks(Table& table);
void add_transforms(Table& table);
void add_views(Table& table);
void add_windows(Table& table);

// By schema (generic.cpp): pointwise operators, reductions, in-place forms.
Rule generic_rule(const c10::OperatorHandle& op);

// Rules that several families use.
std::vector<Geometry> same_as_first(Call& call);      // one result of the first tensor's sizes
std::vector<Geometry> all_same_as_first(Call& call);  // every result
std::vector<Geometry> pointwise(Call& call);          // every tensor expanded to every other

}  // namespace pellucid::bridge::sym_rules
