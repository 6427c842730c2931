// Symbolic shape rules: by operator name, one file per family, and by what a schema says for the families that PyTorch marks itself. A
// rule says where results lie; dtype, device, order of strides and errors come from the operator at the hints.
#pragma once
#include <ATen/core/operator_name.h>

#include <algorithm>
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

void add_backward(Table& table);
void add_factories(Table& table);
void add_indexing(Table& table);
void add_linear_algebra(Table& table);
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
std::vector<Geometry> reduction(Call& call);          // by the arguments `dim` and `keepdim`, where there are any

inline Geometry dense(Exprs sizes) { return {std::move(sizes), std::nullopt, nullptr}; }

template <size_t length>
struct Name {
  char text[length];
  consteval Name(const char (&name)[length]) { std::copy_n(name, length, text); }  // NOLINT: a literal becomes one
};

// Each result has the sizes of the argument of this name; one without a tensor there is not made.
template <Name... names>
std::vector<Geometry> like(Call& call) {
  const auto sizes = [&](const char* name) {
    const int at = call.find(name);
    const bool given = at >= 0 && call.has_tensor(static_cast<size_t>(at));
    return dense(given ? call.sizes(static_cast<size_t>(at)) : Exprs{});
  };
  return {sizes(names.text)...};
}

// Of a view's rule: a new tensor of those sizes.
template <Rule view>
std::vector<Geometry> copied(Call& call) {
  std::vector<Geometry> result = view(call);
  for (Geometry& geometry : result) geometry = dense(geometry.sizes);
  return result;
}

}  // namespace pellucid::bridge::sym_rules
