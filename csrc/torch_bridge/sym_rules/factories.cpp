// Operators whose sizes are arguments, and copies.
#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

template <size_t at>
std::vector<Geometry> sizes_at(Call& call) {
  return call.one(call.integers(at));
}

template <size_t at>
std::vector<Geometry> sizes_and_strides_at(Call& call) {
  return call.one(call.integers(at), call.integers(at + 1), nullptr);
}

template <size_t at>
std::vector<Geometry> vector_at(Call& call) {
  return call.one({call.integer(at)});
}

std::vector<Geometry> square(Call& call) { return call.one({call.integer(0), call.integer(0)}); }
std::vector<Geometry> rectangle(Call& call) { return call.one({call.integer(0), call.integer(1)}); }

bool whole(const c10::IValue& value) { return value.isInt() || value.isSymInt(); }

// By floats the number of elements is not arithmetic of integers: what the hints gave is guarded.
template <int start_at, int end_at, int step_at>
std::vector<Geometry> arange(Call& call) {
  Builder& build = call.build();
  const auto value = [&](int at, int64_t otherwise) { return at < 0 ? c10::IValue(otherwise) : call.argument(static_cast<size_t>(at)); };
  const c10::IValue start = value(start_at, 0);
  const c10::IValue end = value(end_at, 0);
  const c10::IValue step = value(step_at, 1);
  if (!whole(start) || !whole(end) || !whole(step)) return {};
  return call.one({build.ceil_div(build.sub(call.integer(end), call.integer(start)), call.integer(step))});
}

std::vector<Geometry> repeat(Call& call) {
  const Exprs from = call.sizes(0);
  Exprs sizes = call.integers(1);
  const size_t added = sizes.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) sizes[added + i] = call.build().mul(from[i], sizes[added + i]);
  return call.one(std::move(sizes));
}

}  // namespace

void add_factories(Table& table) {
  table.add({"empty.memory_format", "zeros", "ones", "full", "rand", "rand.generator", "randn", "randn.generator", "empty_permuted"},
            sizes_at<0>);
  table.add({"empty_strided"}, sizes_and_strides_at<0>);
  table.add({"new_empty", "new_zeros", "new_ones", "new_full"}, sizes_at<1>);
  table.add({"new_empty_strided"}, sizes_and_strides_at<1>);
  table.add({"randint"}, sizes_at<1>);
  table.add({"randint.low"}, sizes_at<2>);
  table.add({"randperm"}, vector_at<0>);
  table.add({"linspace", "logspace"}, vector_at<2>);
  table.add({"eye"}, square);
  table.add({"eye.m"}, rectangle);
  table.add({"arange"}, arange<-1, 0, -1>);
  table.add({"arange.start"}, arange<0, 1, -1>);
  table.add({"arange.start_step"}, arange<0, 1, 2>);
  table.add({"repeat"}, repeat);
  table.add({"empty_like",
             "zeros_like",
             "ones_like",
             "full_like",
             "rand_like",
             "randn_like",
             "randint_like",
             "randint_like.low_dtype",
             "clone",
             "_to_copy",
             "to.dtype",
             "to.device",
             "to.dtype_layout",
             "to.other",
             "contiguous",
             "lift_fresh_copy",
             "copy",
             "bernoulli",
             "bernoulli.p",
             "normal.Tensor_float"},
            same_as_first);
}

}  // namespace pellucid::bridge::sym_rules
