// Pointwise operators: sizes, strides and dtype come from TensorIterator, which is what the kernels themselves ask.
#include "torch_bridge/rules/like.h"

#include <ATen/TensorIterator.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/gelu_meta_dispatch.h>

namespace pellucid::bridge::rules {

namespace {

constexpr IteratedRule kIterated[] = {
    {"isnan", "", {"self"}, Promotion::kAny, ScalarType::Bool},
    {"hardswish", "", {"self"}, Promotion::kSame, ScalarType::Undefined, Accepts::kFloating},
    {"logit", "", {"self"}, Promotion::kFloat, ScalarType::Undefined, Accepts::kFloating},
    {"_prelu_kernel", "", {"self", "weight"}},
    {"floor_divide", "", {"self", "other"}, Promotion::kPromote},
    {"remainder", "Scalar_Tensor", {"self", "other"}, Promotion::kPromote},
    {"_add_relu", "Tensor", {"self", "other"}, Promotion::kPromote, ScalarType::Undefined, Accepts::kNoBool},
    {"_add_relu", "Scalar", {"self", "other"}, Promotion::kPromote, ScalarType::Undefined, Accepts::kNoBool},
    {"__lshift__", "Tensor", {"self", "other"}, Promotion::kPromote, ScalarType::Undefined, Accepts::kIntegral},
    {"__lshift__", "Scalar", {"self", "other"}, Promotion::kPromote, ScalarType::Undefined, Accepts::kIntegral},
    {"__rshift__", "Tensor", {"self", "other"}, Promotion::kPromote, ScalarType::Undefined, Accepts::kIntegral},
    {"__rshift__", "Scalar", {"self", "other"}, Promotion::kPromote, ScalarType::Undefined, Accepts::kIntegral},
    {"logical_not", "out", {"self"}, Promotion::kAny},
    {"logical_and", "out", {"self", "other"}, Promotion::kAny},
    {"logical_or", "out", {"self", "other"}, Promotion::kAny},
    {"logical_xor", "out", {"self", "other"}, Promotion::kAny},
    {"conj_physical", "out", {"self"}, Promotion::kAny},
};

constexpr LikeRule kLikeAnArgument[] = {
    {"glu_jvp", "", {{"glu", Layout::kPreserved}}},
};

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
Tensor hardtanh(const Tensor& x, const Scalar& /*min*/, const Scalar& /*max*/) {
  TORCH_CHECK(x.scalar_type() != at::kBool, "Bool inputs not supported for hardtanh");
  return unary(x);
}
Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& /*alpha*/) {
  TORCH_CHECK(a.scalar_type() != at::kBool && b.scalar_type() != at::kBool,
              "Subtraction, the `-` operator, with a bool tensor is not supported.");
  return binary(b, a);
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

Tensor gelu(const Tensor& x, std::string_view approximate) {
  TORCH_CHECK(approximate == "none" || approximate == "tanh", "approximate argument must be either none or tanh.");
  return at::meta::gelu(x, approximate);
}

void check_mask(const Tensor& mask, const char* name) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, name, " only supports boolean masks, but got mask with dtype ", mask.dtype());
}

void check_expandable(const Tensor& mask, const Tensor& self) {
  TORCH_CHECK(at::is_expandable_to(mask.sizes(), self.sizes()), "The size of tensor a (", self.sizes(),
              ") must match the size of tensor b (", mask.sizes(), ")");
}

Tensor& masked_fill(Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask(mask, "masked_fill_");
  check_expandable(mask, self);
  TORCH_CHECK(!value.isComplex() || self.is_complex(), "value cannot be converted to type ", self.dtype(), " without overflow");
  return self;
}

Tensor& masked_fill_with_tensor(Tensor& self, const Tensor& mask, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
              " dimension(s).");
  check_mask(mask, "masked_fill_");
  check_expandable(mask, self);
  TORCH_CHECK(!value.is_complex() || self.is_complex(), "value cannot be converted to type ", self.dtype(), " without overflow");
  return self;
}

Tensor& masked_scatter(Tensor& self, const Tensor& mask, const Tensor& source) {
  check_mask(mask, "masked_scatter_");
  check_expandable(mask, self);
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), "masked_scatter_: expected self and source to have same dtypes but got",
              self.scalar_type(), " and ", source.scalar_type());
  return self;
}

std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& x) {
  if (device().is_cpu()) return {make(x.sizes(), x.scalar_type()), make(x.sizes(), x.scalar_type())};
  return {make_like(x), make({0}, x.scalar_type())};
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
  TORCH_CHECK(out.scalar_type() == c10::toComplexType(real.scalar_type()), "Expected object of scalar type ",
              c10::toComplexType(real.scalar_type()), " but got scalar type ", out.scalar_type(), " for argument 'out'");
  at::TensorIteratorConfig().add_output(out).add_const_input(real).add_const_input(imaginary).check_all_same_dtype(false).build();
  return out;
}

std::tuple<Tensor&, Tensor&> frexp_out(const Tensor& x, Tensor& mantissa, Tensor& exponent) {
  TORCH_CHECK(at::isFloatingType(x.scalar_type()), "torch.frexp() only supports floating-point dtypes");
  TORCH_CHECK(mantissa.scalar_type() == x.scalar_type(), "torch.frexp() expects mantissa to have dtype ", x.scalar_type(), " but got ",
              mantissa.scalar_type());
  TORCH_CHECK(exponent.scalar_type() == at::kInt, "torch.frexp() expects exponent to have int dtype but got ", exponent.scalar_type());
  at::TensorIteratorConfig()
      .add_output(mantissa)
      .add_output(exponent)
      .add_const_input(x)
      .check_all_same_dtype(false)
      .set_check_mem_overlap(true)
      .build();
  return {mantissa, exponent};
}

}  // namespace

void add_pointwise(Table& table) {
  add_all(table, kIterated);
  add_all(table, kLikeAnArgument);
  table.add("relu", "", TORCH_FN(relu));
  table.add("abs", "", TORCH_FN(abs));
  table.add("angle", "", TORCH_FN(angle));
  table.add("hardtanh", "", TORCH_FN(hardtanh));
  table.add("rsub", "Tensor", TORCH_FN(rsub));
  table.add("where", "self", TORCH_FN(where));
  table.add("log_sigmoid_forward", "", TORCH_FN(log_sigmoid_forward));
  table.add("nan_to_num", "out", TORCH_FN(nan_to_num_out));
  table.add("gelu", "", TORCH_FN(gelu));
  table.add("masked_fill_", "Scalar", TORCH_FN(masked_fill));
  table.add("masked_fill_", "Tensor", TORCH_FN(masked_fill_with_tensor));
  table.add("masked_scatter_", "", TORCH_FN(masked_scatter));
  table.add("frexp", "Tensor_out", TORCH_FN(frexp_out));
  table.add("complex", "out", TORCH_FN(complex_out));
  table.add("polar", "out", TORCH_FN(complex_out));
}

}  // namespace pellucid::bridge::rules
