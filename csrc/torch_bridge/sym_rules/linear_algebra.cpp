// Factorisations, solvers and determinants of batches of matrices.
#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

// [batch.., rows, columns]
struct Matrices {
  Exprs batch;
  Expr rows;
  Expr columns;
  Expr shorter;

  Matrices(Call& call, size_t i) {
    const Exprs sizes = call.sizes(i);
    batch = Exprs(sizes.begin(), sizes.end() - 2);
    rows = sizes[sizes.size() - 2];
    columns = sizes.back();
    shorter = call.build().min(rows, columns);
  }
  Exprs with(std::initializer_list<Expr> more) const {
    Exprs sizes = batch;
    sizes.append(more.begin(), more.end());
    return sizes;
  }
  Exprs all() const { return with({rows, columns}); }
};

Matrices square_matrices(Call& call, size_t i) {
  Matrices a(call, i);
  call.equal(a.rows, a.columns);
  return a;
}

// The matrices, and one number for each.
std::vector<Geometry> with_info(Call& call) {
  const Matrices a = square_matrices(call, 0);
  return {dense(a.all()), dense(a.batch)};
}

std::vector<Geometry> lu_factor(Call& call) {
  const Matrices a(call, 0);
  return {dense(a.all()), dense(a.with({a.shorter})), dense(a.batch)};
}

std::vector<Geometry> ldl_factor(Call& call) {
  const Matrices a = square_matrices(call, 0);
  return {dense(a.all()), dense(a.with({a.rows})), dense(a.batch)};
}

// P, L and U; without pivots P is empty at the hints.
std::vector<Geometry> lu(Call& call) {
  const Matrices a(call, 0);
  const bool pivoted = call.result(0).dim() >= 2;
  return {dense(pivoted ? a.with({a.rows, a.rows}) : Exprs{call.constant(0)}), dense(a.with({a.rows, a.shorter})),
          dense(a.with({a.shorter, a.columns}))};
}

std::vector<Geometry> lu_unpack(Call& call) {
  const Matrices a(call, 0);
  const auto wanted = [&](size_t i, Exprs sizes) { return dense(call.result(i).dim() >= 2 ? std::move(sizes) : Exprs{call.constant(0)}); };
  return {wanted(0, a.with({a.rows, a.rows})), wanted(1, a.with({a.rows, a.shorter})), wanted(2, a.with({a.shorter, a.columns}))};
}

std::vector<Geometry> det(Call& call) {
  const Matrices a = square_matrices(call, 0);
  return {dense(a.batch), dense(a.all()), dense(a.with({a.rows}))};
}

std::vector<Geometry> slogdet(Call& call) {
  const Matrices a = square_matrices(call, 0);
  return {dense(a.batch), dense(a.batch), dense(a.all()), dense(a.with({a.rows}))};
}

// Whether a result is left out: one of no elements where others have some.
bool left_out(Call& call, size_t i) { return call.result(i).dim() == 1 && call.result(i).numel() == 0; }

std::vector<Geometry> svd(Call& call) {
  const Matrices a(call, 0);
  const bool full = call.flag(1);
  const auto vectors = [&](size_t i, Exprs sizes) { return dense(left_out(call, i) ? Exprs{call.constant(0)} : std::move(sizes)); };
  return {vectors(0, a.with({a.rows, full ? a.rows : a.shorter})), dense(a.with({a.shorter})),
          vectors(2, a.with({full ? a.columns : a.shorter, a.columns}))};
}

std::vector<Geometry> qr(Call& call) {
  const Matrices a(call, 0);
  const bool complete = call.argument(1).toStringView() == "complete";
  const Expr inner = complete ? a.rows : a.shorter;
  return {dense(left_out(call, 0) ? Exprs{call.constant(0)} : a.with({a.rows, inner})), dense(a.with({inner, a.columns}))};
}

std::vector<Geometry> geqrf(Call& call) {
  const Matrices a(call, 0);
  return {dense(a.all()), dense(a.with({a.shorter}))};
}

std::vector<Geometry> eigen(Call& call) {
  const Matrices a = square_matrices(call, 0);
  std::vector<Geometry> result{dense(a.with({a.rows}))};
  if (call.results().size() > 1) result.push_back(dense(left_out(call, 1) ? Exprs{call.constant(0)} : a.all()));
  return result;
}

// Batches of both expanded, the last two sizes of `right`.
template <size_t left, size_t right>
Exprs solved(Call& call) {
  const Matrices a(call, left);
  const Matrices b(call, right);
  Exprs sizes = call.broadcast(a.batch, b.batch);
  sizes.push_back(b.rows);
  sizes.push_back(b.columns);
  return sizes;
}

template <size_t left, size_t right>
std::vector<Geometry> solve(Call& call) {
  return call.one(solved<left, right>(call));
}

// X and the factor, both of the batch.
std::vector<Geometry> triangular_solve(Call& call) { return {dense(solved<1, 0>(call)), dense(solved<0, 1>(call))}; }

// A and B: the right sides may be vectors.
std::vector<Geometry> solve_ex(Call& call) {
  const Matrices a = square_matrices(call, 0);
  const Exprs right = call.sizes(1);
  const at::Tensor& solution = call.result(0);
  const bool vectors = static_cast<size_t>(solution.dim()) < a.batch.size() + 2;
  Exprs sizes;
  if (vectors) {
    sizes = call.broadcast(a.batch, Exprs(right.begin(), right.end() - 1));
    sizes.push_back(right.back());
  } else {
    sizes = call.broadcast(a.batch, Exprs(right.begin(), right.end() - 2));
    sizes.append(right.end() - 2, right.end());
  }
  return {dense(std::move(sizes)), dense(a.all()), dense(a.with({a.rows})), dense(a.batch)};
}

}  // namespace

void add_linear_algebra(Table& table) {
  table.add({"linalg_inv_ex", "linalg_cholesky_ex"}, with_info);
  table.add({"linalg_lu_factor_ex"}, lu_factor);
  table.add({"linalg_ldl_factor_ex"}, ldl_factor);
  table.add({"linalg_lu"}, lu);
  table.add({"lu_unpack"}, lu_unpack);
  table.add({"_linalg_det"}, det);
  table.add({"_linalg_slogdet"}, slogdet);
  table.add({"_linalg_svd"}, svd);
  table.add({"linalg_qr"}, qr);
  table.add({"geqrf"}, geqrf);
  table.add({"_linalg_eigh", "linalg_eig", "_linalg_eigvals"}, eigen);
  table.add({"linalg_solve_triangular"}, solve<0, 1>);
  table.add({"cholesky_solve"}, solve<1, 0>);
  table.add({"linalg_lu_solve", "linalg_ldl_solve"}, solve<0, 2>);
  table.add({"triangular_solve"}, triangular_solve);
  table.add({"_linalg_solve_ex"}, solve_ex);
  table.add({"ormqr"}, like<"input3">);
  table.add({"linalg_householder_product", "linalg_matrix_exp", "cholesky", "cholesky_inverse"}, same_as_first);
}

}  // namespace pellucid::bridge::sym_rules
