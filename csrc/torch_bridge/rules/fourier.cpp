// Fourier transforms: the libraries transform a batch of contiguous signals, and the result is a permuted view of that batch.
#include "torch_bridge/rules/common.h"

#include <ATen/Context.h>
#include <c10/util/strides.h>

#include <algorithm>

namespace pellucid::bridge::rules {

namespace {

constexpr size_t kCufftDims = 3;

struct Geometry {
  Sizes sizes;
  Sizes strides;
};

Geometry geometry_of(const Tensor& x) { return {sizes_of(x), Sizes(x.strides().begin(), x.strides().end())}; }

Tensor made(const Geometry& geometry, ScalarType dtype) { return make_strided(geometry.sizes, geometry.strides, dtype); }

void sort_by_stride(const Geometry& x, int64_t* first, int64_t* last) {
  std::sort(first, last, [&](int64_t a, int64_t b) { return x.strides[static_cast<size_t>(a)] > x.strides[static_cast<size_t>(b)]; });
}

Sizes sorted_dims(const Geometry& x, IntArrayRef dims, bool exclude_last = false) {
  Sizes sorted(dims.begin(), dims.end());
  sort_by_stride(x, sorted.begin(), sorted.end() - (exclude_last ? 1 : 0));
  return sorted;
}

// Batch dimensions come first, in the order of their strides, and are collapsed into one; the result is contiguous in that order.
Geometry transformed(const Geometry& x, IntArrayRef out_sizes, IntArrayRef dims) {
  const size_t rank = x.sizes.size();
  Sizes order;
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  const auto is_batch = [&](int64_t dim) { return std::find(dims.begin(), dims.end(), dim) == dims.end(); };
  auto* batch_end = std::stable_partition(order.begin(), order.end(), is_batch);
  sort_by_stride(x, order.begin(), batch_end);
  std::copy(dims.begin(), dims.end(), batch_end);

  const auto size = [&](int64_t dim) { return out_sizes[static_cast<size_t>(dim)]; };
  Geometry out{Sizes(out_sizes.begin(), out_sizes.end()), Sizes(rank)};
  int64_t stride = 1;
  const size_t batches = rank - dims.size();
  for (size_t i = rank; i-- > batches;) {
    out.strides[static_cast<size_t>(order[i])] = stride;
    stride *= std::max<int64_t>(size(order[i]), 1);
  }
  for (size_t i = batches; i-- > 0;) {
    out.strides[static_cast<size_t>(order[i])] = stride;
    stride *= size(order[i]);
  }
  return out;
}

Sizes with_size(IntArrayRef sizes, int64_t dim, int64_t size) {
  Sizes changed(sizes.begin(), sizes.end());
  changed[static_cast<size_t>(dim)] = size;
  return changed;
}

// cuFFT takes three dimensions at a time, those of the smallest strides first.
Geometry staged(Geometry x, IntArrayRef out_sizes, IntArrayRef dims) {
  Sizes rest(dims.begin(), dims.end());
  do {
    sort_by_stride(x, rest.begin(), rest.end());
    const size_t count = std::min(kCufftDims, rest.size());
    const IntArrayRef last = last_of(rest, count);
    x = transformed(x, out_sizes, last);
    rest.resize(rest.size() - count);
  } while (!rest.empty());
  return x;
}

bool is_one_cufft_call(IntArrayRef dims) { return dims.size() <= kCufftDims && !(dims.size() >= 2 && dims[0] == 0 && dims[1] == 1); }

Geometry complex_to_complex(const Geometry& x, IntArrayRef dims) {
  if (!device().is_cpu()) return staged(x, x.sizes, dims);
  return transformed(x, x.sizes, sorted_dims(x, dims));
}

bool writes_contiguous() { return device().is_cpu() && !at::hasMKL(); }

Tensor fft_c2c(const Tensor& x, IntArrayRef dims, int64_t /*normalization*/, bool /*forward*/) {
  TORCH_CHECK(x.is_complex(), "expected a complex tensor");
  if (dims.empty()) return make_like(x);
  if (writes_contiguous()) return make(x.sizes(), x.scalar_type());
  return made(complex_to_complex(geometry_of(x), dims), x.scalar_type());
}

Tensor fft_r2c(const Tensor& x, IntArrayRef dims, int64_t /*normalization*/, bool one_sided) {
  TORCH_CHECK(x.is_floating_point(), "expected a real floating point tensor");
  const ScalarType dtype = c10::toComplexType(x.scalar_type());
  const int64_t last = dims.back();
  const Sizes half = with_size(x.sizes(), last, x.size(last) / 2 + 1);
  const Sizes out_sizes = one_sided ? half : sizes_of(x);
  if (writes_contiguous()) return make(out_sizes, dtype);
  const Geometry input = geometry_of(x);
  if (device().is_cpu()) return made(transformed(input, out_sizes, sorted_dims(input, dims, true)), dtype);
  if (is_one_cufft_call(dims)) return made(transformed(input, out_sizes, dims), dtype);
  Geometry out = transformed(input, dims.size() == 1 ? out_sizes : half, last);
  if (dims.size() > 1) out = staged(out, half, without_last(dims));
  return one_sided || out.sizes == out_sizes ? made(out, dtype) : make(out_sizes, dtype);
}

Tensor fft_c2r(const Tensor& x, IntArrayRef dims, int64_t /*normalization*/, int64_t last_size) {
  TORCH_CHECK(x.is_complex(), "expected a complex tensor");
  const ScalarType dtype = c10::toRealValueType(x.scalar_type());
  const Sizes out_sizes = with_size(x.sizes(), dims.back(), last_size);
  if (writes_contiguous()) return make(out_sizes, dtype);
  Geometry input = geometry_of(x);
  if (!device().is_cpu()) {
    const auto contiguous = c10::contiguous_strides(x.sizes());
    const Geometry copy{input.sizes, Sizes(contiguous.begin(), contiguous.end())};
    if (is_one_cufft_call(dims)) return made(transformed(copy, out_sizes, dims), dtype);
    if (dims.size() == 1) input = copy;
  }
  if (dims.size() > 1) input = complex_to_complex(input, without_last(dims));
  return made(transformed(input, out_sizes, dims.back()), dtype);
}

}  // namespace

void add_fourier(Table& table) {
  table.add("_fft_c2c", "", TORCH_FN(fft_c2c));
  table.add("_fft_r2c", "", TORCH_FN(fft_r2c));
  table.add("_fft_c2r", "", TORCH_FN(fft_c2r));
}

}  // namespace pellucid::bridge::rules
