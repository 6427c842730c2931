// The table-driven part of the rules: operators whose results look like their arguments, and operators that go through a TensorIterator.
// An entry names arguments of the schema and is data only, so that it can be read for symbolic sizes as well as for known ones. Entries
// stand in the family files; this knows none of them.
#pragma once
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

enum class Layout : uint8_t {
  kContiguous,
  kPreserved,  // at::empty_like
  kSuggested,  // channels_last where the argument is
  kColumns,    // column-major matrices, as LAPACK wants them
  kHeads,      // [batch, heads, length, size] as a view of [batch, length, heads, size]
};

// What one result looks like.
struct Like {
  const char* argument = nullptr;  // whose sizes it has; no result where it is None
  Layout layout = Layout::kContiguous;
  const char* dtype_of = nullptr;  // the argument whose dtype it has, unless `argument`
  ScalarType dtype = ScalarType::Undefined;
  bool always = false;  // made also where the mask doesn't ask for it
};

struct LikeRule {
  static constexpr size_t kMost = 7;

  const char* name;
  const char* overload;
  Like results[kMost] = {};    // as many as the schema returns; none for operators that only write to their arguments
  const char* mask = nullptr;  // a bool list: which results are wanted
};

enum class Promotion : uint8_t {
  kSame,     // all of one dtype
  kPromote,  // to the common dtype
  kFloat,    // to the common dtype, integers to the default float
  kAny,      // inputs of any dtypes; with `dtype`, or for a given output
};

enum class Accepts : uint8_t { kAll, kIntegral, kFloating, kFloatingOrComplex, kNoBool };

struct IteratedRule {
  const char* name;
  const char* overload;
  const char* inputs[3];  // tensors, or numbers, which are wrapped
  Promotion promotion = Promotion::kSame;
  ScalarType dtype = ScalarType::Undefined;  // of the result, where it is fixed
  Accepts accepts = Accepts::kAll;           // of the common dtype
};

// A plain meta tensor laid out like `tensor`.
Tensor make_like(const Tensor& tensor, Layout layout, ScalarType dtype);

void add(Table& table, const LikeRule& rule);
void add(Table& table, const IteratedRule& rule);

template <class Rule, size_t count>
void add_all(Table& table, const Rule (&rules)[count]) {
  for (const Rule& rule : rules) add(table, rule);
}

}  // namespace pellucid::bridge::rules
