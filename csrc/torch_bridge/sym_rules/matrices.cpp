// Products of matrices and vectors.
#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

// [.., n, k] by [.., k, m], the arguments `a` and `b`.
template <size_t a, size_t b>
std::vector<Geometry> matrices(Call& call) {
  Exprs left = call.sizes(a);
  const Exprs right = call.sizes(b);
  call.equal(left.back(), right[right.size() - 2]);
  for (size_t i = 0; i + 2 < left.size(); ++i) call.equal(left[i], right[i]);
  left.back() = right.back();
  return call.one(std::move(left));
}

template <size_t a, size_t b>
std::vector<Geometry> added_matrices(Call& call) {
  std::vector<Geometry> result = matrices<a, b>(call);
  call.broadcast(result[0].sizes, call.sizes(0));
  return result;
}

// addbmm: the batch is summed over.
std::vector<Geometry> summed_matrices(Call& call) {
  std::vector<Geometry> result = matrices<1, 2>(call);
  result[0].sizes.erase(result[0].sizes.begin());
  return result;
}

template <size_t a, size_t b>
std::vector<Geometry> matrix_by_vector(Call& call) {
  const Exprs left = call.sizes(a);
  call.equal(left[1], call.sizes(b)[0]);
  return call.one({left[0]});
}

std::vector<Geometry> outer(Call& call) { return call.one({call.sizes(1)[0], call.sizes(2)[0]}); }

// Inference mode has it whole.
std::vector<Geometry> linear(Call& call) {
  Exprs sizes = call.sizes(0);
  const Exprs weight = call.sizes(1);
  call.equal(sizes.back(), weight.back());
  sizes.pop_back();
  if (weight.size() == 2) sizes.push_back(weight[0]);
  return call.one(std::move(sizes));
}

std::vector<Geometry> matmul(Call& call) {
  Exprs left = call.sizes(0);
  Exprs right = call.sizes(1);
  const bool row = left.size() == 1;
  const bool column = right.size() == 1;
  if (row) left.insert(left.begin(), call.constant(1));
  if (column) right.push_back(call.constant(1));
  call.equal(left.back(), right[right.size() - 2]);
  Exprs sizes = call.broadcast(Exprs(left.begin(), left.end() - 2), Exprs(right.begin(), right.end() - 2));
  if (!row) sizes.push_back(left[left.size() - 2]);
  if (!column) sizes.push_back(right.back());
  return call.one(std::move(sizes));
}

std::vector<Geometry> cdist(Call& call) {
  const Exprs a = call.sizes(0);
  const Exprs b = call.sizes(1);
  call.equal(a.back(), b.back());
  Exprs sizes = call.broadcast(Exprs(a.begin(), a.end() - 2), Exprs(b.begin(), b.end() - 2));
  sizes.push_back(a[a.size() - 2]);
  sizes.push_back(b[b.size() - 2]);
  return call.one(std::move(sizes));
}

// The distances of each row to each later one.
std::vector<Geometry> pdist(Call& call) {
  Builder& build = call.build();
  const Expr rows = call.sizes(0)[0];
  return call.one({build.floor_div(build.mul(rows, build.sub(rows, call.constant(1))), call.constant(2))});
}

// Blocks along the diagonal; a vector is one row.
std::vector<Geometry> block_diag(Call& call) {
  Builder& build = call.build();
  Expr rows = call.constant(0);
  Expr columns = rows;
  for (const at::Tensor& tensor : call.argument(0).toTensorVector()) {
    const Exprs sizes = call.sizes(tensor);
    rows = build.add(rows, sizes.size() < 2 ? call.constant(1) : sizes[0]);
    columns = build.add(columns, sizes.empty() ? call.constant(1) : sizes.back());
  }
  return call.one({rows, columns});
}

}  // namespace

void add_matrices(Table& table) {
  table.add({"mm", "bmm"}, matrices<0, 1>);
  table.add({"addmm", "baddbmm"}, added_matrices<1, 2>);
  table.add({"addbmm"}, summed_matrices);
  table.add({"mv"}, matrix_by_vector<0, 1>);
  table.add({"addmv"}, matrix_by_vector<1, 2>);
  table.add({"addr"}, outer);
  table.add({"linear"}, linear);
  table.add({"matmul"}, matmul);
  table.add({"_cdist_forward", "_euclidean_dist"}, cdist);
  table.add({"_pdist_forward"}, pdist);
  table.add({"linalg_cross"}, pointwise);
  table.add({"block_diag"}, block_diag);
}

}  // namespace pellucid::bridge::sym_rules
