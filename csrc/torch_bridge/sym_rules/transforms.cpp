// Fourier transforms and sampling at points.
#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

// The last transformed dimension keeps half of the frequencies, and one, where only one side is wanted.
std::vector<Geometry> real_to_complex(Call& call) {
  Exprs sizes = call.sizes(0);
  if (call.flag(3)) {
    const Exprs dims = call.integers(1);
    Expr& last = sizes[Call::wrap(static_cast<int64_t>(dims.back()->value), sizes.size())];
    last = call.build().add(call.build().floor_div(last, call.constant(2)), call.constant(1));
  }
  return call.one(std::move(sizes));
}

std::vector<Geometry> complex_to_real(Call& call) {
  Exprs sizes = call.sizes(0);
  const Exprs dims = call.integers(1);
  sizes[Call::wrap(static_cast<int64_t>(dims.back()->value), sizes.size())] = call.integer(3);
  return call.one(std::move(sizes));
}

// Batch and channels of the input, space of the grid.
std::vector<Geometry> grid_sampler(Call& call) {
  Exprs sizes = call.sizes(0);
  const Exprs grid = call.sizes(1);
  call.equal(sizes[0], grid[0]);
  for (size_t i = 2; i < sizes.size(); ++i) sizes[i] = grid[i - 1];
  return call.one(std::move(sizes));
}

}  // namespace

void add_transforms(Table& table) {
  table.add({"_fft_c2c"}, same_as_first);
  table.add({"_fft_r2c"}, real_to_complex);
  table.add({"_fft_c2r"}, complex_to_real);
  table.add({"grid_sampler_2d", "grid_sampler_3d"}, grid_sampler);
}

}  // namespace pellucid::bridge::sym_rules
