// Decompositions and solvers: LAPACK's column-major results.
#include "torch_bridge/rules/like.h"

#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/linalg_lu_solve_meta_dispatch.h>

namespace pellucid::bridge::rules {

namespace {

constexpr LikeRule kColumnMajor[] = {
    {"cholesky_inverse", "", {{"self", Layout::kColumns}}},
    {"_cholesky_solve_helper", "", {{"self", Layout::kColumns}}},
};

void check_square(const Tensor& x, const char* name) { at::native::squareCheckInputs(x, name); }

ScalarType complex_type(const Tensor& x) { return x.is_complex() ? x.scalar_type() : c10::toComplexType(x.scalar_type()); }

Tensor cholesky(const Tensor& x, bool /*upper*/) {
  if (x.numel() == 0) return make(x.sizes(), x.scalar_type());
  check_square(x, "cholesky");
  return make_columns(x.sizes(), x.scalar_type());
}

Tensor matrix_exp(const Tensor& x) {
  check_square(x, "linalg.matrix_exp");
  at::native::checkFloatingOrComplex(x, "linalg.matrix_exp");
  return make(x.sizes(), x.scalar_type());
}

std::tuple<Tensor, Tensor> eig(const Tensor& x) {
  check_square(x, "linalg.eig");
  const ScalarType dtype = complex_type(x);
  const Tensor values = make(without_last(x.sizes()), dtype);
  return {values, device().is_cpu() ? make_columns(x.sizes(), dtype) : make(x.sizes(), dtype)};
}

Tensor eigenvalues(const Tensor& x) {
  check_square(x, "linalg.eigvals");
  return make(without_last(x.sizes()), complex_type(x));
}

Sizes reflector_sizes(const Tensor& x) {
  Sizes sizes(x.sizes().begin(), x.sizes().end() - 2);
  sizes.push_back(std::min(x.size(-2), x.size(-1)));
  return sizes;
}

std::tuple<Tensor, Tensor> geqrf(const Tensor& x) {
  TORCH_CHECK(x.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  return {make_columns(x.sizes(), x.scalar_type()), make(reflector_sizes(x), x.scalar_type())};
}

void check_reflectors(const Tensor& x, const Tensor& tau, const char* name) {
  TORCH_CHECK(x.dim() - tau.dim() == 1, name, ": Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
              " and input.ndim is equal to ", x.dim());
  TORCH_CHECK(without_last(x.sizes(), 2) == without_last(tau.sizes()), name,
              ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", without_last(tau.sizes()));
  TORCH_CHECK(tau.scalar_type() == x.scalar_type(), name, ": tau dtype ", tau.scalar_type(), " does not match input dtype ",
              x.scalar_type());
}

Tensor householder_product(const Tensor& x, const Tensor& tau) {
  const char* name = "torch.linalg.householder_product";
  TORCH_CHECK(x.dim() >= 2, name, ": input must have at least 2 dimensions.");
  TORCH_CHECK(x.size(-2) >= x.size(-1), name, ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  TORCH_CHECK(x.size(-1) >= tau.size(-1), name, ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  check_reflectors(x, tau, name);
  return make_columns(x.sizes(), x.scalar_type());
}

Tensor ormqr(const Tensor& x, const Tensor& tau, const Tensor& other, bool left, bool /*transpose*/) {
  const char* name = "torch.ormqr";
  TORCH_CHECK(x.dim() >= 2, name, ": input must have at least 2 dimensions.");
  TORCH_CHECK(other.dim() >= 2, name, ": other must have at least 2 dimensions.");
  const int64_t side = left ? -2 : -1;
  TORCH_CHECK(other.size(side) >= tau.size(-1), name, ": other.shape[", side, "] must be greater than or equal to tau.shape[-1]");
  TORCH_CHECK(other.size(side) == x.size(-2), name, ": other.shape[", side, "] must be equal to input.shape[-2]");
  TORCH_CHECK(tau.size(-1) == std::min(other.size(side), x.size(-1)), name, ": tau.shape[-1] must be equal to min(other.shape[", side,
              "], input.shape[-1])");
  check_reflectors(x, tau, name);
  TORCH_CHECK(x.dim() == other.dim(), name, ": Expected other to have the same number of dimensions as input, but got other.ndim equal to ",
              other.dim(), " and input.ndim is equal to ", x.dim());
  TORCH_CHECK(without_last(x.sizes(), 2) == without_last(other.sizes(), 2), name,
              ": Expected batch dimensions of other to be equal to input.shape[:-2], but got ", without_last(other.sizes(), 2));
  TORCH_CHECK(other.scalar_type() == x.scalar_type(), name, ": Expected input and other to have the same dtype, but input has dtype ",
              x.scalar_type(), " and other has dtype ", other.scalar_type());
  return make_columns(other.sizes(), other.scalar_type());
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool /*upper*/, bool left, bool /*unitriangular*/) {
  at::native::checkInputsSolver(a, b, left, "linalg.solve_triangular");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "linalg.solve_triangular: Expected A and B to have the same dtype, but found A of type ",
              a.scalar_type(), " and B of type ", b.scalar_type(), " instead");
  const auto batch = at::infer_size_dimvector(without_last(a.sizes(), 2), without_last(b.sizes(), 2));
  Sizes sizes(batch.begin(), batch.end());
  sizes.append(b.sizes().end() - 2, b.sizes().end());
  // A transposed and conjugated A is solved for from the other side, which gives row-major results.
  return a.mT().is_contiguous() && a.is_conj() ? make(sizes, b.scalar_type()) : make_columns(sizes, b.scalar_type());
}

Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  Tensor x = at::meta::linalg_lu_solve(lu, pivots, b, left, adjoint);
  // From the right side the adjoint system is solved, and its result is conjugated by the bit.
  if (!left && x.is_complex() && x.numel() != 0) x.unsafeGetTensorImpl()->_set_conj(true);
  return x;
}

}  // namespace

void add_linear_algebra(Table& table) {
  add_all(table, kColumnMajor);
  table.add("cholesky", "", TORCH_FN(cholesky));
  table.add("linalg_matrix_exp", "", TORCH_FN(matrix_exp));
  table.add("linalg_eig", "", TORCH_FN(eig));
  table.add("_linalg_eigvals", "", TORCH_FN(eigenvalues));
  table.add("linalg_lu_solve", "", TORCH_FN(lu_solve));
  table.add("geqrf", "", TORCH_FN(geqrf));
  table.add("linalg_householder_product", "", TORCH_FN(householder_product));
  table.add("ormqr", "", TORCH_FN(ormqr));
  table.add("linalg_solve_triangular", "", TORCH_FN(solve_triangular));
}

}  // namespace pellucid::bridge::rules
