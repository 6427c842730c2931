// Matrix products without a structured Meta kernel: results of another dtype, 8-bit and packed weights.
#include "torch_bridge/rules/common.h"

namespace pellucid::bridge::rules {

namespace {

void check_matrices(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 2, "self must be a matrix");
  TORCH_CHECK(b.dim() == 2, "mat2 must be a matrix");
  TORCH_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1), " and ", b.size(0), "x",
              b.size(1), ")");
}

void check_batches(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(b.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(a.size(0) == b.size(0), "batch1 and batch2 must have same number of batches, got ", a.size(0), " and ", b.size(0));
  TORCH_CHECK(a.size(2) == b.size(1), "Incompatible matrix sizes for bmm (", a.size(1), "x", a.size(2), " and ", b.size(1), "x", b.size(2),
              ")");
}

void check_out_type(const Tensor& x, ScalarType out) {
  const bool widened = out == at::kFloat && (x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16);
  TORCH_CHECK(out == x.scalar_type() || widened, "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
}

void check_expandable(const Tensor& x, IntArrayRef sizes) {
  TORCH_CHECK(at::is_expandable_to(x.sizes(), sizes), "The expanded size of the tensor (", sizes, ") must match the existing size (",
              x.sizes(), ")");
}

Tensor mm_to(const Tensor& a, const Tensor& b, ScalarType out) {
  check_matrices(a, b);
  check_out_type(a, out);
  return make({a.size(0), b.size(1)}, out);
}

Tensor bmm_to(const Tensor& a, const Tensor& b, ScalarType out) {
  check_batches(a, b);
  check_out_type(a, out);
  return make({a.size(0), a.size(1), b.size(2)}, out);
}

Tensor addmm_to(const Tensor& x, const Tensor& a, const Tensor& b, ScalarType out, const Scalar& /*beta*/, const Scalar& /*alpha*/) {
  const Tensor product = mm_to(a, b, out);
  check_expandable(x, product.sizes());
  return product;
}

Tensor baddbmm_to(const Tensor& x, const Tensor& a, const Tensor& b, ScalarType out, const Scalar& /*beta*/, const Scalar& /*alpha*/) {
  const Tensor product = bmm_to(a, b, out);
  check_expandable(x, product.sizes());
  return product;
}

Tensor addbmm(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& /*beta*/, const Scalar& /*alpha*/) {
  check_batches(a, b);
  const Sizes sizes{a.size(1), b.size(2)};
  check_expandable(x, sizes);
  return make(sizes, x.scalar_type());
}

Tensor int_mm(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 2, "Expected self to be of dimension 2 but got ", a.dim());
  TORCH_CHECK(b.dim() == 2, "Expected mat2 to be of dimension 2 but got ", b.dim());
  TORCH_CHECK(a.size(1) == b.size(0), "self.size(1) needs to match mat2.size(0) but got ", a.size(1), " and ", b.size(0));
  TORCH_CHECK(a.scalar_type() == at::kChar || (device().is_cpu() && a.scalar_type() == at::kByte),
              "Expected self dtype to be of type int8 but got ", a.scalar_type());
  TORCH_CHECK(b.scalar_type() == at::kChar, "Expected mat2 dtype to be of type int8 but got ", b.scalar_type());
  return make({a.size(0), b.size(1)}, at::kInt);
}

Tensor scaled_product(const Tensor& a, const Tensor& b, const OptionalTensor& bias, std::optional<ScalarType> out) {
  check_matrices(a, b);
  TORCH_CHECK(!given(bias) || bias->numel() == b.size(1), "Bias must be size ", b.size(1), " but got ", given(bias) ? bias->numel() : 0);
  if (!device().is_cpu()) {
    TORCH_CHECK(a.size(1) % 16 == 0, "Expected trailing dimension of mat1 to be divisible by 16 but got mat1 shape: ", a.sizes(), ".");
    TORCH_CHECK(b.size(0) % 16 == 0 && b.size(1) % 16 == 0, "mat2 shape (", b.size(0), "x", b.size(1), ") must be divisible by 16");
  }
  return make({a.size(0), b.size(1)}, out.value_or(a.scalar_type()));
}

Tensor scaled_mm(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b, const OptionalTensor& bias,
                 const OptionalTensor& /*scale_result*/, std::optional<ScalarType> out, bool /*fast*/) {
  TORCH_CHECK(!device().is_cpu() || (scale_a.numel() == 1 && scale_b.numel() == 1),
              "Now _scaled_mm only supports per-tensor scaling for CPU backend.");
  return scaled_product(a, b, bias, out);
}

Tensor scaled_mm_v2(const Tensor& a, const Tensor& b, at::TensorList /*scale_a*/, IntArrayRef /*recipe_a*/, IntArrayRef /*swizzle_a*/,
                    at::TensorList /*scale_b*/, IntArrayRef /*recipe_b*/, IntArrayRef /*swizzle_b*/, const OptionalTensor& bias,
                    std::optional<ScalarType> out, IntArrayRef /*contraction*/, bool /*fast*/) {
  return scaled_product(a, b, bias, out);
}

void check_floating(const Tensor& x) {
  const ScalarType dtype = x.scalar_type();
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous(), "expected a contiguous matrix, got sizes ", x.sizes());
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kHalf || dtype == at::kBFloat16, "expected self to be float32, float16 or bfloat16, got ",
              dtype);
}

Tensor int8_packed_mm(const Tensor& x, const Tensor& weight, const Tensor& scales) {
  check_floating(x);
  TORCH_CHECK(weight.scalar_type() == at::kChar && weight.dim() == 2 && weight.is_contiguous() && weight.size(1) == x.size(1),
              "expected an int8 weight of ", x.size(1), " columns, got ", weight.sizes(), " of ", weight.scalar_type());
  TORCH_CHECK(scales.dim() == 1 && scales.size(0) == weight.size(0), "expected ", weight.size(0), " scales, got ", scales.sizes());
  return make({x.size(0), weight.size(0)}, x.scalar_type());
}

Tensor int4_pack(const Tensor& weight, int64_t /*inner_k_tiles*/) {
  TORCH_CHECK(weight.dim() == 2 && weight.scalar_type() == at::kInt, "expected a weight matrix of int32");
  TORCH_CHECK(weight.size(1) % 2 == 0, "expected an even number of columns, got ", weight.size(1));
  return make({weight.size(0), weight.size(1) / 2}, at::kByte);
}

Tensor int4_packed_mm(const Tensor& x, const Tensor& weight, int64_t /*group*/, const Tensor& /*scales_and_zeros*/) {
  check_floating(x);
  TORCH_CHECK(weight.dim() == 2 && weight.scalar_type() == at::kByte, "expected a packed weight of uint8");
  return make({x.size(0), weight.size(0)}, x.scalar_type());
}

Tensor dynamic_4bit_pack(const Tensor& weight, const Tensor& scales_zeros, const OptionalTensor& bias, int64_t /*block*/, int64_t /*in*/,
                         int64_t /*out*/) {
  TORCH_CHECK(weight.scalar_type() == at::kByte, "expected a weight of uint8, got ", weight.scalar_type());
  return make({weight.numel() + scales_zeros.numel() + (given(bias) ? bias->numel() : 0)}, at::kFloat);
}

Tensor dynamic_4bit_mm(const Tensor& x, const Tensor& /*weight*/, int64_t /*block*/, int64_t /*in*/, int64_t out) {
  TORCH_CHECK(x.dim() == 2, "expected a matrix, got ", x.sizes());
  return make({x.size(0), out}, x.scalar_type());
}

}  // namespace

void add_matrices(Table& table) {
  table.add("mm", "dtype", TORCH_FN(mm_to));
  table.add("bmm", "dtype", TORCH_FN(bmm_to));
  table.add("addmm", "dtype", TORCH_FN(addmm_to));
  table.add("baddbmm", "dtype", TORCH_FN(baddbmm_to));
  table.add("addbmm", "", TORCH_FN(addbmm));
  table.add("_int_mm", "", TORCH_FN(int_mm));
  table.add("_scaled_mm", "", TORCH_FN(scaled_mm));
  table.add("_scaled_mm_v2", "", TORCH_FN(scaled_mm_v2));
  table.add("_weight_int8pack_mm", "", TORCH_FN(int8_packed_mm));
  table.add("_convert_weight_to_int4pack_for_cpu", "", TORCH_FN(int4_pack));
  table.add("_weight_int4pack_mm_for_cpu", "", TORCH_FN(int4_packed_mm));
#ifndef __aarch64__  // there the packed form is that of another library
  table.add("_dyn_quant_pack_4bit_weight", "", TORCH_FN(dynamic_4bit_pack));
#endif
  table.add("_dyn_quant_matmul_4bit", "", TORCH_FN(dynamic_4bit_mm));
}

}  // namespace pellucid::bridge::rules
