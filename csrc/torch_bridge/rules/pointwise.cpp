// Pointwise operators: sizes, strides and dtype come from TensorIterator, which is what the kernels themselves ask.
#include "torch_bridge/rules/common.h"

#include <ATen/TensorIterator.h>
#include <ATen/native/TypeProperties.h>

namespace pellucid::bridge::rules {

namespace {

Tensor output_of(at::TensorIteratorConfig& config) { return config.allow_cpu_scalars(true).build().output(); }

Tensor unary(const Tensor& x) { return output_of(at::TensorIteratorConfig().add_owned_output(Tensor()).add_owned_const_input(x)); }

Tensor unary_to(const Tensor& x, ScalarType dtype) {
  return output_of(
      at::TensorIteratorConfig().check_all_same_dtype(false).add_owned_output(Tensor()).add_owned_const_input(x).declare_static_dtype(
          dtype));
}

Tensor binary(const Tensor& a, const Tensor& b) {
  return output_of(at::TensorIteratorConfig()
                       .promote_inputs_to_common_dtype(true)
                       .cast_common_dtype_to_outputs(true)
                       .enforce_safe_casting_to_output(true)
                       .add_owned_output(Tensor())
                       .add_owned_const_input(a)
                       .add_owned_const_input(b));
}

ScalarType floating(ScalarType dtype) {
  return c10::isIntegralType(dtype, true) ? c10::typeMetaToScalarType(c10::get_default_dtype()) : dtype;
}

Tensor relu(const Tensor& x) {
  TORCH_CHECK(x.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
  return unary(x);
}
Tensor abs(const Tensor& x) { return x.is_complex() ? unary_to(x, c10::toRealValueType(x.scalar_type())) : unary(x); }
Tensor angle(const Tensor& x) {
  return x.is_complex() ? make(x.sizes(), c10::toRealValueType(x.scalar_type())) : unary_to(x, floating(x.scalar_type()));
}
Tensor isnan(const Tensor& x) { return unary_to(x, at::kBool); }
Tensor hardtanh(const Tensor& x, const Scalar& /*min*/, const Scalar& /*max*/) {
  TORCH_CHECK(x.scalar_type() != at::kBool, "Bool inputs not supported for hardtanh");
  return unary(x);
}
Tensor hardswish(const Tensor& x) { return unary(x); }
Tensor logit(const Tensor& x, std::optional<double> /*eps*/) { return unary_to(x, floating(x.scalar_type())); }
Tensor prelu_kernel(const Tensor& x, const Tensor& weight) { return binary(x, weight); }
Tensor floor_divide(const Tensor& a, const Tensor& b) { return binary(a, b); }
Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& /*alpha*/) {
  TORCH_CHECK(a.scalar_type() != at::kBool && b.scalar_type() != at::kBool,
              "Subtraction, the `-` operator, with a bool tensor is not supported.");
  return binary(b, a);
}

Tensor remainder_of_scalar(const Scalar& a, const Tensor& b) {
  Tensor number = make({}, a.isBoolean() ? at::kBool : a.isFloatingPoint() ? at::kDouble : at::kLong);
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return binary(number, b);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  at::native::ResultTypeState state = at::native::update_result_type_state(a, {});
  const ScalarType dtype = at::native::result_type(at::native::update_result_type_state(b, state));
  const auto cast = [&](const Tensor& x) { return x.scalar_type() == dtype ? x : make_like(x, dtype); };
  return output_of(at::TensorIteratorConfig()
                       .check_all_same_dtype(false)
                       .add_owned_output(Tensor())
                       .add_owned_const_input(condition)
                       .add_owned_const_input(cast(a))
                       .add_owned_const_input(cast(b))
                       .declare_static_dtype(dtype));
}

std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& x) {
  if (device().is_cpu()) return {make(x.sizes(), x.scalar_type()), make(x.sizes(), x.scalar_type())};
  return {make_like(x), make({0}, x.scalar_type())};
}

Tensor& unary_out(const Tensor& x, Tensor& out) {
  at::TensorIteratorConfig().check_all_same_dtype(false).add_output(out).add_const_input(x).build();
  return out;
}

Tensor& logical_out(const Tensor& a, const Tensor& b, Tensor& out) {
  at::TensorIteratorConfig()
      .check_all_same_dtype(false)
      .allow_cpu_scalars(true)
      .add_output(out)
      .add_const_input(a)
      .add_const_input(b)
      .build();
  return out;
}

Tensor& nan_to_num_out(const Tensor& x, std::optional<double> /*nan*/, std::optional<double> /*posinf*/, std::optional<double> /*neginf*/,
                       Tensor& out) {
  TORCH_CHECK(x.scalar_type() == out.scalar_type(), "nan_to_num: dtype of out: ", out.scalar_type(),
              " should be same as input: ", x.scalar_type());
  set_output(out, x.sizes());
  return out;
}

Tensor& complex_out(const Tensor& real, const Tensor& imaginary, Tensor& out) {
  TORCH_CHECK(real.scalar_type() == imaginary.scalar_type(), "Expected object of scalar type ", real.scalar_type(), " but got scalar type ",
              imaginary.scalar_type(), " for second argument");
  at::TensorIteratorConfig().add_output(out).add_const_input(real).add_const_input(imaginary).check_all_same_dtype(false).build();
  return out;
}

}  // namespace

void add_pointwise(Table& table) {
  table.add("relu", "", TORCH_FN(relu));
  table.add("abs", "", TORCH_FN(abs));
  table.add("angle", "", TORCH_FN(angle));
  table.add("isnan", "", TORCH_FN(isnan));
  table.add("hardtanh", "", TORCH_FN(hardtanh));
  table.add("hardswish", "", TORCH_FN(hardswish));
  table.add("logit", "", TORCH_FN(logit));
  table.add("_prelu_kernel", "", TORCH_FN(prelu_kernel));
  table.add("floor_divide", "", TORCH_FN(floor_divide));
  table.add("rsub", "Tensor", TORCH_FN(rsub));
  table.add("remainder", "Scalar_Tensor", TORCH_FN(remainder_of_scalar));
  table.add("where", "self", TORCH_FN(where));
  table.add("log_sigmoid_forward", "", TORCH_FN(log_sigmoid_forward));
  table.add("logical_not", "out", TORCH_FN(unary_out));
  table.add("logical_and", "out", TORCH_FN(logical_out));
  table.add("logical_or", "out", TORCH_FN(logical_out));
  table.add("logical_xor", "out", TORCH_FN(logical_out));
  table.add("nan_to_num", "out", TORCH_FN(nan_to_num_out));
  table.add("conj_physical", "out", TORCH_FN(unary_out));
  table.add("complex", "out", TORCH_FN(complex_out));
  table.add("polar", "out", TORCH_FN(complex_out));
}

}  // namespace pellucid::bridge::rules
