// Joining, reading at indices, writing at indices, ordering, and what goes along a dimension.
#include <algorithm>

#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

std::vector<Geometry> cat(Call& call) {
  const std::vector<at::Tensor> tensors = call.argument(0).toTensorVector();
  Exprs result;
  bool first = true;
  size_t dim = 0;
  for (const at::Tensor& tensor : tensors) {
    const Exprs sizes = call.sizes(tensor);
    // An empty vector is skipped, whatever the others' rank.
    if (sizes.size() == 1 && call.is(sizes[0], 0)) continue;
    if (first) {
      result = sizes;
      dim = call.dim(1, sizes.size());
      first = false;
      continue;
    }
    if (sizes.size() != result.size()) return {};
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (i != dim) call.equal(result[i], sizes[i]);
    }
  }
  if (first) return call.one({call.constant(0)});
  std::vector<Expr> lengths;
  for (const at::Tensor& tensor : tensors) {
    const Exprs sizes = call.sizes(tensor);
    if (sizes.size() == result.size()) lengths.push_back(sizes[dim]);
  }
  result[dim] = call.build().sum(lengths);
  return call.one(std::move(result));
}

std::vector<Geometry> stack(Call& call) {
  const std::vector<at::Tensor> tensors = call.argument(0).toTensorVector();
  Exprs sizes = call.sizes(tensors[0]);
  for (const at::Tensor& tensor : tensors) {
    const Exprs other = call.sizes(tensor);
    for (size_t i = 0; i < sizes.size(); ++i) call.equal(sizes[i], other[i]);
  }
  const size_t dim = Call::wrap(call.number(1), sizes.size() + 1);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), call.constant(static_cast<int64_t>(tensors.size())));
  return call.one(std::move(sizes));
}

std::vector<Geometry> index_select(Call& call) {
  Exprs sizes = call.sizes(0);
  const Exprs index = call.sizes(2);
  if (!sizes.empty()) sizes[call.dim(1, sizes.size())] = index.empty() ? call.constant(1) : index[0];
  return call.one(std::move(sizes));
}

std::vector<Geometry> gather(Call& call) { return call.one(call.sizes(2)); }

std::vector<Geometry> take(Call& call) { return call.one(call.sizes(1)); }

std::vector<Geometry> embedding(Call& call) {
  Exprs sizes = call.sizes(1);
  sizes.push_back(call.sizes(0)[1]);
  return call.one(std::move(sizes));
}

// Indices together make one block of dimensions, which stands where they stood, or in front if they were apart.
std::vector<Geometry> index(Call& call) {
  const Exprs self = call.sizes(0);
  Exprs block;
  std::vector<bool> indexed(self.size(), false);
  size_t at = 0;
  for (const c10::IValue& item : call.argument(1).toListRef()) {
    if (item.isTensor() && item.toTensor().defined()) {
      const at::Tensor& tensor = item.toTensor();
      if (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte) return {};  // how many are true is a matter of values
      block = call.broadcast(block, call.sizes(tensor));
      indexed[at] = true;
    }
    ++at;
  }
  const auto begin = std::find(indexed.begin(), indexed.end(), true);
  const auto end = std::find(indexed.rbegin(), indexed.rend(), true).base();
  const bool together = std::find(begin, end, false) == end;
  Exprs result;
  if (!together) result.append(block.begin(), block.end());
  for (size_t i = 0; i < self.size(); ++i) {
    if (together && i == static_cast<size_t>(begin - indexed.begin())) result.append(block.begin(), block.end());
    if (!indexed[i]) result.push_back(self[i]);
  }
  return call.one(std::move(result));
}

std::vector<Geometry> topk(Call& call) {
  Exprs sizes = call.sizes(0);
  const Expr k = call.integer(1);
  if (!sizes.empty()) {
    const size_t dim = call.dim(2, sizes.size());
    call.ask(call.build().le(k, sizes[dim]));
    sizes[dim] = k;
  }
  return {Geometry{sizes, std::nullopt, nullptr}, Geometry{sizes, std::nullopt, nullptr}};
}

std::vector<Geometry> masked_fill(Call& call) { return call.one(call.broadcast(call.sizes(0), call.sizes(1))); }

// Segments of a dimension, as many as there are lengths, or offsets but one.
std::vector<Geometry> segment_reduce(Call& call) {
  const Exprs data = call.sizes(0);
  const size_t axis = call.dim(5, data.size());
  const bool by_lengths = call.has_tensor(2);
  if (!by_lengths && !call.has_tensor(4)) return {};
  Exprs sizes = call.sizes(by_lengths ? 2 : 4);
  if (!by_lengths) sizes.back() = call.build().sub(sizes.back(), call.constant(1));
  sizes.append(data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
  return call.one(std::move(sizes));
}

std::vector<Geometry> multinomial(Call& call) {
  Exprs sizes = call.sizes(0);
  sizes.back() = call.integer(1);
  return call.one(std::move(sizes));
}

std::vector<Geometry> nonzero_static(Call& call) {
  return call.one({call.integer(1), call.constant(static_cast<int64_t>(call.sizes(0).size()))});
}

std::vector<Geometry> bins(Call& call) { return call.one({call.constant(call.number(1))}); }

// As broadcast but for the dimension.
std::vector<Geometry> take_along_dim(Call& call) {
  Exprs self = call.sizes(0);
  Exprs index = call.sizes(1);
  if (!call.given(2)) return call.one({call.product(index)});
  if (self.size() != index.size()) return {};
  const size_t dim = call.dim(2, self.size());
  const Expr length = index[dim];
  index[dim] = self[dim];
  Exprs sizes = call.broadcast(self, index);
  sizes[dim] = length;
  return call.one(std::move(sizes));
}

}  // namespace

void add_indexing(Table& table) {
  table.add({"cat"}, cat);
  table.add({"stack"}, stack);
  table.add({"index_select"}, index_select);
  table.add({"gather"}, gather);
  table.add({"take"}, take);
  table.add({"embedding"}, embedding);
  table.add({"index.Tensor", "_unsafe_index.Tensor"}, index);
  table.add({"topk"}, topk);
  table.add({"masked_fill.Scalar", "masked_fill.Tensor", "masked_scatter"}, masked_fill);
  table.add({"segment_reduce"}, segment_reduce);
  table.add({"searchsorted.Tensor"}, like<"self">);
  table.add({"multinomial"}, multinomial);
  table.add({"nonzero_static"}, nonzero_static);
  table.add({"histc"}, bins);
  table.add({"count_nonzero", "count_nonzero.dim_IntList"}, reduction);
  table.add({"take_along_dim"}, take_along_dim);
  table.add({"scatter.src",
             "scatter.value",
             "scatter.reduce",
             "scatter.value_reduce",
             "scatter_add",
             "scatter_reduce.two",
             "index_put",
             "_unsafe_index_put",
             "index_add",
             "index_copy",
             "index_fill.int_Scalar",
             "index_fill.int_Tensor",
             "slice_scatter",
             "select_scatter",
             "diagonal_scatter",
             "as_strided_scatter",
             "_unsafe_masked_index_put_accumulate",
             "index_reduce",
             "put",
             "cumsum",
             "cumprod",
             "logcumsumexp",
             "flip",
             "roll",
             "tril",
             "triu",
             "rot90",
             "argsort",
             "argsort.stable",
             "renorm"},
            same_as_first);
  table.add({"where.ScalarOther", "where.ScalarSelf", "where.Scalar", "polygamma", "complex", "polar", "rsub.Tensor", "rsub.Scalar",
             "floor_divide", "fill.Scalar", "fill.Tensor", "normal.Tensor_Tensor"},
            pointwise);
  table.add({"isin.Tensor_Tensor", "isin.Tensor_Scalar", "bucketize.Tensor"}, same_as_first);
  table.add({"sort", "sort.stable", "cummax", "cummin"}, all_same_as_first);
}

}  // namespace pellucid::bridge::sym_rules
