// Windows that slide over space, padding and resampling.
#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

// The i-th of a list that may have one element for all dimensions; `otherwise` where the list is empty.
Expr at(const Exprs& list, size_t i, Expr otherwise) { return list.empty() ? otherwise : list[list.size() == 1 ? 0 : i]; }

struct Window {
  Expr size, stride, padding, dilation;
};

// How many places a window has: (size + 2 padding - dilation (window - 1) - 1) / stride + 1.
Expr places(Call& call, Expr size, const Window& window, bool round_up) {
  Builder& build = call.build();
  const Expr one = call.constant(1);
  const Expr reach = build.mul(window.dilation, build.sub(window.size, one));
  Expr span = build.sub(build.sub(build.add(size, build.scale(window.padding, 2)), reach), one);
  if (!round_up) return build.add(build.floor_div(span, window.stride), one);
  const Expr number = build.add(build.ceil_div(span, window.stride), one);
  // The last window must start inside the input or its left padding.
  const Expr last = build.mul(build.sub(number, one), window.stride);
  return call.ask(build.ge(last, build.add(size, window.padding))) ? build.sub(number, one) : number;
}

// input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
std::vector<Geometry> convolution(Call& call) {
  Builder& build = call.build();
  const Exprs input = call.sizes(0);
  const Exprs weight = call.sizes(1);
  const Exprs strides = call.integers(3);
  const Exprs paddings = call.integers(4);
  const Exprs dilations = call.integers(5);
  const bool transposed = call.flag(6);
  const Exprs output_paddings = call.integers(7);
  const Expr groups = call.integer(8);
  const Expr one = call.constant(1);
  const Expr zero = call.constant(0);
  Exprs sizes{input[0], transposed ? build.mul(weight[1], groups) : weight[0]};
  if (transposed) {
    call.equal(input[1], weight[0]);
  } else {
    call.equal(input[1], build.mul(weight[1], groups));
  }
  for (size_t i = 2; i < input.size(); ++i) {
    const Window window{weight[i], at(strides, i - 2, one), at(paddings, i - 2, zero), at(dilations, i - 2, one)};
    if (!transposed) {
      sizes.push_back(places(call, input[i], window, false));
      continue;
    }
    const Expr spread = build.mul(build.sub(input[i], one), window.stride);
    const Expr reach = build.mul(window.dilation, build.sub(window.size, one));
    const Expr padded = build.sub(build.add(spread, reach), build.scale(window.padding, 2));
    sizes.push_back(build.add(build.add(padded, at(output_paddings, i - 2, zero)), one));
  }
  return call.one(std::move(sizes));
}

// `rank` spatial dimensions at the end; arguments kernel_size, stride (as the kernel where empty), padding and maybe dilation.
template <size_t rank, bool has_dilation>
Exprs pooled(Call& call) {
  Exprs sizes = call.sizes(0);
  const Exprs kernels = call.integers(1);
  const Exprs strides = call.integers(2);
  const Exprs paddings = call.integers(3);
  const Exprs dilations = has_dilation ? call.integers(4) : Exprs{};
  const bool round_up = call.flag(has_dilation ? 5 : 4);
  for (size_t i = 0; i < rank; ++i) {
    Expr& size = sizes[sizes.size() - rank + i];
    const Expr kernel = at(kernels, i, nullptr);
    size = places(call, size, {kernel, at(strides, i, kernel), at(paddings, i, call.constant(0)), at(dilations, i, call.constant(1))},
                  round_up);
  }
  return sizes;
}

template <size_t rank, bool has_dilation>
std::vector<Geometry> pool(Call& call) {
  return std::vector<Geometry>(call.results().size(), Geometry{pooled<rank, has_dilation>(call), std::nullopt, nullptr});
}

// Pooling and resampling to sizes that are given.
std::vector<Geometry> to_given_sizes(Call& call) {
  Exprs sizes = call.sizes(0);
  const Exprs given = call.integers(1);
  for (size_t i = 0; i < given.size(); ++i) sizes[sizes.size() - given.size() + i] = given[i];
  return std::vector<Geometry>(call.results().size(), Geometry{sizes, std::nullopt, nullptr});
}

// Pooling the other way, and with sizes that are given behind the kernel's.
template <size_t at>
std::vector<Geometry> to_sizes_at(Call& call) {
  Exprs sizes = call.sizes(0);
  const Exprs given = call.integers(at);
  for (size_t i = 0; i < given.size(); ++i) sizes[sizes.size() - given.size() + i] = given[i];
  return std::vector<Geometry>(call.results().size(), Geometry{sizes, std::nullopt, nullptr});
}

// Windows as columns: self, kernel_size, dilation, padding, stride.
std::vector<Geometry> im2col(Call& call) {
  Builder& build = call.build();
  Exprs sizes = call.sizes(0);
  const size_t first = sizes.size() - 3;
  Expr columns = call.constant(1);
  for (size_t i = 0; i < 2; ++i) {
    const Window window{call.integers(1)[i], call.integers(4)[i], call.integers(3)[i], call.integers(2)[i]};
    columns = build.mul(columns, places(call, sizes[first + 1 + i], window, false));
    sizes[first] = build.mul(sizes[first], window.size);
  }
  sizes.pop_back();
  sizes.back() = columns;
  return call.one(std::move(sizes));
}

// And back: self, output_size, kernel_size, dilation, padding, stride.
std::vector<Geometry> col2im(Call& call) {
  Builder& build = call.build();
  Exprs sizes = call.sizes(0);
  const Exprs space = call.integers(1);
  const Expr kernel = call.product(call.integers(2));
  Expr columns = call.constant(1);
  for (size_t i = 0; i < 2; ++i) {
    const Window window{call.integers(2)[i], call.integers(5)[i], call.integers(4)[i], call.integers(3)[i]};
    columns = build.mul(columns, places(call, space[i], window, false));
  }
  call.equal(sizes.back(), columns);
  Expr& channels = sizes[sizes.size() - 2];
  call.is(build.mod(channels, kernel), 0);
  channels = build.floor_div(channels, kernel);
  sizes.back() = space[0];
  sizes.push_back(space[1]);
  return call.one(std::move(sizes));
}

std::vector<Geometry> pad(Call& call) {
  Exprs sizes = call.sizes(0);
  const Exprs paddings = call.integers(1);
  for (size_t i = 0; 2 * i + 1 < paddings.size(); ++i) {
    Expr& size = sizes[sizes.size() - 1 - i];
    size = call.build().add(size, call.build().add(paddings[2 * i], paddings[2 * i + 1]));
  }
  return call.one(std::move(sizes));
}

std::vector<Geometry> pixel_shuffle(Call& call) {
  Builder& build = call.build();
  Exprs sizes = call.sizes(0);
  const Expr factor = call.constant(call.number(1));
  Expr* const last = &sizes[sizes.size() - 3];
  last[0] = build.floor_div(last[0], build.mul(factor, factor));
  last[1] = build.mul(last[1], factor);
  last[2] = build.mul(last[2], factor);
  return call.one(std::move(sizes));
}

std::vector<Geometry> pixel_unshuffle(Call& call) {
  Builder& build = call.build();
  Exprs sizes = call.sizes(0);
  const Expr factor = call.constant(call.number(1));
  Expr* const last = &sizes[sizes.size() - 3];
  last[0] = build.mul(last[0], build.mul(factor, factor));
  last[1] = build.floor_div(last[1], factor);
  last[2] = build.floor_div(last[2], factor);
  return call.one(std::move(sizes));
}

}  // namespace

void add_windows(Table& table) {
  table.add({"convolution", "convolution_overrideable", "_convolution"}, convolution);
  table.add({"max_pool2d_with_indices"}, pool<2, true>);
  table.add({"max_pool3d_with_indices"}, pool<3, true>);
  table.add({"max_pool1d"}, pool<1, true>);
  table.add({"avg_pool1d"}, pool<1, false>);
  table.add({"avg_pool2d"}, pool<2, false>);
  table.add({"avg_pool3d"}, pool<3, false>);
  table.add({"_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
             "adaptive_max_pool2d", "adaptive_max_pool3d", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
             "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d",
             "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"},
            to_given_sizes);
  table.add({"constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d",
             "replication_pad3d", "pad"},
            pad);
  table.add({"max_unpool2d", "max_unpool3d", "fractional_max_pool2d", "fractional_max_pool3d"}, to_sizes_at<2>);
  table.add({"im2col"}, im2col);
  table.add({"col2im"}, col2im);
  table.add({"pixel_shuffle"}, pixel_shuffle);
  table.add({"pixel_unshuffle"}, pixel_unshuffle);
}

}  // namespace pellucid::bridge::sym_rules
