// Reductions and scans that have no structured Meta kernel: results are contiguous, as make_reduction lays them out.
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

void check_floating(const Tensor& x, const char* name) {
  TORCH_CHECK(at::isFloatingType(x.scalar_type()) || x.is_complex(), name, " only support floating point and complex dtypes");
}

Tensor variance(const Tensor& x, at::OptionalIntArrayRef dims, const std::optional<Scalar>& /*correction*/, bool keepdim) {
  check_floating(x, "std and var");
  return make(reduced_sizes(x, dims, keepdim), c10::toRealValueType(x.scalar_type()));
}

std::tuple<Tensor, Tensor> variance_and_mean(const Tensor& x, at::OptionalIntArrayRef dims, const std::optional<Scalar>& /*correction*/,
                                             bool keepdim) {
  check_floating(x, "std_mean and var_mean");
  const Sizes sizes = reduced_sizes(x, dims, keepdim);
  return {make(sizes, c10::toRealValueType(x.scalar_type())), make(sizes, x.scalar_type())};
}

Sizes reduced_along(const Tensor& x, int64_t dim, bool keepdim) {
  dim = at::maybe_wrap_dim(dim, x.dim());
  TORCH_CHECK_INDEX(x.dim() == 0 || x.size(dim) != 0, "Expected reduction dim ", dim, " to have non-zero size.");
  return reduced_sizes(x, IntArrayRef(dim), keepdim);
}

ScalarType sum_type(const Tensor& x, std::optional<ScalarType> dtype) {
  if (dtype) return *dtype;
  return c10::isIntegralType(x.scalar_type(), true) ? at::kLong : x.scalar_type();
}

Tensor prod(const Tensor& x, std::optional<ScalarType> dtype) { return make({}, sum_type(x, dtype)); }

Tensor nansum(const Tensor& x, at::OptionalIntArrayRef dims, bool keepdim, std::optional<ScalarType> dtype) {
  TORCH_CHECK(!x.is_complex(), "nansum does not support complex inputs");
  return make(reduced_sizes(x, dims, keepdim), sum_type(x, dtype));
}

Tensor whole(const Tensor& x) { return make({}, x.scalar_type()); }

Tensor extremum(const Tensor& x) {
  TORCH_CHECK(x.numel() > 0,
              "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
  return whole(x);
}

std::tuple<Tensor&, Tensor&> along_dim_out(const Tensor& x, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
  const Sizes sizes = reduced_along(x, dim, keepdim);
  set_output(values, sizes);
  set_output(indices, sizes);
  return {values, indices};
}

std::tuple<Tensor, Tensor> along_dim(const Tensor& x, int64_t dim, bool keepdim) {
  const Sizes sizes = reduced_along(x, dim, keepdim);
  return {make(sizes, x.scalar_type()), make(sizes, at::kLong)};
}

std::tuple<Tensor&, Tensor&> kth_along_dim_out(const Tensor& x, int64_t k, int64_t dim, bool keepdim, Tensor& values, Tensor& indices) {
  const int64_t size = x.dim() > 0 ? x.size(dim) : 1;
  TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ", at::maybe_wrap_dim(dim, x.dim()));
  return along_dim_out(x, dim, keepdim, values, indices);
}

Tensor histc(const Tensor& x, int64_t bins, const Scalar& /*min*/, const Scalar& /*max*/) {
  TORCH_CHECK(bins > 0, "bins must be > 0, but got ", bins, " for dimension 0");
  return make({bins}, x.scalar_type());
}

Tensor count_nonzero(const Tensor& x, IntArrayRef dims) { return make(reduced_sizes(x, dims, false), at::kLong); }

Tensor trace(const Tensor& x) {
  TORCH_CHECK(x.dim() == 2, "trace: expected a matrix, but got tensor with dim ", x.dim());
  return make({}, sum_type(x, std::nullopt));
}

void check_dot(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ", b.dim(), "D tensors");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dot : expected both vectors to have same dtype, but found ", a.scalar_type(), " and ",
              b.scalar_type());
  TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(), "] and src [", b.numel(),
              "] to have the same number of elements, but got ", a.numel(), " and ", b.numel(), " elements respectively");
}

Tensor dot(const Tensor& a, const Tensor& b) {
  check_dot(a, b);
  Tensor result = make({}, a.scalar_type());
  // Of two conjugated vectors the result is the conjugate of the product of the two as they lie in memory.
  if (a.is_complex() && a.is_conj() && b.is_conj()) result.unsafeGetTensorImpl()->_set_conj(true);
  return result;
}

Tensor vdot(const Tensor& a, const Tensor& b) {
  check_dot(a, b);
  Tensor result = make({}, a.scalar_type());
  if (a.is_complex() && b.is_conj() && !a.is_conj()) result.unsafeGetTensorImpl()->_set_conj(true);
  return result;
}

std::tuple<Tensor, Tensor> aminmax(const Tensor& x) {
  TORCH_CHECK(x.numel() > 0, "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  return {whole(x), whole(x)};
}

std::tuple<Tensor, Tensor> aminmax_along(const Tensor& x, int64_t dim, bool keepdim) {
  const Sizes sizes = reduced_along(x, dim, keepdim);
  return {make(sizes, x.scalar_type()), make(sizes, x.scalar_type())};
}

Tensor linear_combination(const Tensor& x, const Tensor& coefficients) {
  TORCH_CHECK(x.dim() > 0 && coefficients.dim() == 2 && coefficients.size(1) == x.size(0), "expected coefficients of ", x.sizes(), ", got ",
              coefficients.sizes());
  Sizes sizes = sizes_of(x);
  sizes[0] = coefficients.size(0);
  return make(sizes, x.scalar_type());
}

Tensor segment_reduce(const Tensor& x, std::string_view /*reduce*/, const OptionalTensor& lengths, const OptionalTensor& indices,
                      const OptionalTensor& offsets, int64_t axis, bool /*unsafe*/, const std::optional<Scalar>& /*initial*/) {
  TORCH_CHECK(x.numel() >= 0 && x.dim() > 0, "segment_reduce(): Expected data to have at least one dimension");
  TORCH_CHECK_NOT_IMPLEMENTED(!given(indices), "segment_reduce(): indices based reduction is not supported yet.");
  TORCH_CHECK(given(lengths) || given(offsets), "segment_reduce(): Either lengths or offsets must be defined.");
  axis = at::maybe_wrap_dim(axis, x.dim());
  const Tensor& segments = given(lengths) ? *lengths : *offsets;
  TORCH_CHECK(segments.dim() == axis + 1, "segment_reduce(): Expected axis to be the last dimension of lengths or offsets but got ", axis);
  Sizes sizes = sizes_of(x);
  sizes[static_cast<size_t>(axis)] = segments.size(axis) - (given(lengths) ? 0 : 1);
  return make(sizes, x.scalar_type());
}

void scan_helper(const Tensor& x, Tensor& values, Tensor& indices, int64_t dim) {
  at::maybe_wrap_dim(dim, x.dim());
  TORCH_CHECK(values.sizes() == x.sizes() && indices.sizes() == x.sizes(), "cummax and cummin: results of other sizes than the input");
}

Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  at::maybe_wrap_dim(dim, x.dim());
  return make(x.sizes(), x.scalar_type());
}

}  // namespace

void add_reductions(Table& table) {
  table.add("var", "correction", TORCH_FN(variance));
  table.add("std", "correction", TORCH_FN(variance));
  table.add("var_mean", "correction", TORCH_FN(variance_and_mean));
  table.add("std_mean", "correction", TORCH_FN(variance_and_mean));
  table.add("prod", "", TORCH_FN(prod));
  table.add("nansum", "", TORCH_FN(nansum));
  table.add("max", "", TORCH_FN(extremum));
  table.add("min", "", TORCH_FN(extremum));
  table.add("median", "", TORCH_FN(whole));
  table.add("nanmedian", "", TORCH_FN(whole));
  table.add("median", "dim_values", TORCH_FN(along_dim_out));
  table.add("nanmedian", "dim_values", TORCH_FN(along_dim_out));
  table.add("kthvalue", "values", TORCH_FN(kth_along_dim_out));
  table.add("mode", "", TORCH_FN(along_dim));
  table.add("histc", "", TORCH_FN(histc));
  table.add("count_nonzero", "dim_IntList", TORCH_FN(count_nonzero));
  table.add("trace", "", TORCH_FN(trace));
  table.add("dot", "", TORCH_FN(dot));
  table.add("vdot", "", TORCH_FN(vdot));
  table.add("_aminmax", "", TORCH_FN(aminmax));
  table.add("_aminmax", "dim", TORCH_FN(aminmax_along));
  table.add("_compute_linear_combination", "", TORCH_FN(linear_combination));
  table.add("segment_reduce", "", TORCH_FN(segment_reduce));
  table.add("_cummax_helper", "", TORCH_FN(scan_helper));
  table.add("_cummin_helper", "", TORCH_FN(scan_helper));
  table.add("_logcumsumexp", "", TORCH_FN(logcumsumexp));
}

}  // namespace pellucid::bridge::rules
