// Views: results that lie in their argument's storage, with strides that follow from its own.
#include <algorithm>

#include "torch_bridge/sym_rules/rules.h"

namespace pellucid::bridge::sym_rules {

namespace {

// Ends of slices that are infinities. Python's own are cut to half of int64 by the time they arrive.
constexpr int64_t kEnd = std::numeric_limits<int64_t>::max() / 2;

struct Viewed {  // what is viewed
  Exprs sizes;
  Exprs strides;
  Expr offset;
};

Viewed viewed(Call& call, size_t i = 0) { return {call.sizes(i), call.strides(call.tensor(i)), call.offset(call.tensor(i))}; }
std::vector<Geometry> as_result(Call& call, Viewed view) { return call.one(std::move(view.sizes), std::move(view.strides), view.offset); }

std::vector<Geometry> alias(Call& call) { return as_result(call, viewed(call)); }

std::vector<Geometry> transpose(Call& call) {
  Viewed view = viewed(call);
  if (view.sizes.empty()) return as_result(call, view);
  const size_t a = call.dim(1, view.sizes.size());
  const size_t b = call.dim(2, view.sizes.size());
  std::swap(view.sizes[a], view.sizes[b]);
  std::swap(view.strides[a], view.strides[b]);
  return as_result(call, view);
}

std::vector<Geometry> matrix_transpose(Call& call) {
  Viewed view = viewed(call);
  std::reverse(view.sizes.begin(), view.sizes.end());
  std::reverse(view.strides.begin(), view.strides.end());
  return as_result(call, view);
}

std::vector<Geometry> permute(Call& call) {
  const Viewed view = viewed(call);
  Viewed result{{}, {}, view.offset};
  for (const Expr dim : call.integers(1)) {
    const size_t from = Call::wrap(static_cast<int64_t>(dim->value), view.sizes.size());
    result.sizes.push_back(view.sizes[from]);
    result.strides.push_back(view.strides[from]);
  }
  return as_result(call, result);
}

std::vector<Geometry> unsqueeze(Call& call) {
  Viewed view = viewed(call);
  const size_t dim = Call::wrap(call.number(1), view.sizes.size() + 1);
  const Expr stride = dim < view.sizes.size() ? call.build().mul(view.sizes[dim], view.strides[dim]) : call.constant(1);
  view.sizes.insert(view.sizes.begin() + static_cast<std::ptrdiff_t>(dim), call.constant(1));
  view.strides.insert(view.strides.begin() + static_cast<std::ptrdiff_t>(dim), stride);
  return as_result(call, view);
}

std::vector<Geometry> squeeze(Call& call) {
  const Viewed view = viewed(call);
  std::vector<bool> asked(view.sizes.size(), call.count() < 2);
  if (call.count() >= 2) {
    for (const Expr dim : call.integers(1)) {
      if (!view.sizes.empty()) asked[Call::wrap(static_cast<int64_t>(dim->value), view.sizes.size())] = true;
    }
  }
  Viewed result{{}, {}, view.offset};
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (asked[i] && call.is(view.sizes[i], 1)) continue;
    result.sizes.push_back(view.sizes[i]);
    result.strides.push_back(view.strides[i]);
  }
  return as_result(call, result);
}

std::vector<Geometry> select(Call& call) {
  Viewed view = viewed(call);
  const size_t dim = call.dim(1, view.sizes.size());
  Expr index = call.integer(2);
  if (call.ask(call.build().lt(index, call.constant(0)))) index = call.build().add(index, view.sizes[dim]);
  view.offset = call.build().add(view.offset, call.build().mul(index, view.strides[dim]));
  view.sizes.erase(view.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(dim));
  return as_result(call, view);
}

// An end of a slice: counted from the back when negative, and brought into 0 to size.
Expr slice_end(Call& call, Expr end, Expr least, Expr size) {
  Builder& build = call.build();
  if (end->is_const() && end->value >= kEnd) return size;
  if (end->is_const() && end->value <= -kEnd) return least;
  if (call.ask(build.lt(end, call.constant(0)))) {
    end = build.add(end, size);
    if (call.ask(build.lt(end, least))) return least;
  }
  if (!call.ask(build.le(end, size))) return size;
  return call.ask(build.lt(end, least)) ? least : end;
}

std::vector<Geometry> slice(Call& call) {
  Builder& build = call.build();
  Viewed view = viewed(call);
  const size_t dim = call.dim(1, view.sizes.size());
  const Expr size = view.sizes[dim];
  const Expr start = slice_end(call, call.given(2) ? call.integer(2) : call.constant(0), call.constant(0), size);
  const Expr end = slice_end(call, call.given(3) ? call.integer(3) : call.constant(kEnd), start, size);
  const Expr step = call.integer(4);
  view.sizes[dim] = build.ceil_div(build.sub(end, start), step);
  view.offset = build.add(view.offset, build.mul(start, view.strides[dim]));
  view.strides[dim] = build.mul(view.strides[dim], step);
  return as_result(call, view);
}

std::vector<Geometry> expand(Call& call) {
  Viewed view = viewed(call);
  Exprs sizes = call.integers(1);
  const size_t added = sizes.size() - view.sizes.size();
  Exprs strides(sizes.size(), call.constant(0));
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    Expr& size = sizes[added + i];
    if (size->is_const(-1) || call.equal(size, view.sizes[i])) {
      size = view.sizes[i];
      strides[added + i] = view.strides[i];
    }
  }
  // New dimensions of size 1 keep strides that go on, as inferExpandGeometry of ATen/ExpandUtils.cpp has it; of a 0-d tensor none does.
  for (size_t i = view.sizes.empty() ? 0 : added; i-- > 0;) {
    if (call.is(sizes[i], 1)) strides[i] = call.build().mul(sizes[i + 1], strides[i + 1]);
  }
  return call.one(std::move(sizes), std::move(strides), view.offset);
}

// The -1 among sizes, if there is one.
void infer_size(Call& call, Exprs* sizes, const Exprs& from) {
  Builder& build = call.build();
  Expr rest = call.constant(1);
  Expr* inferred = nullptr;
  for (Expr& size : *sizes) {
    if (size->is_const(-1)) {
      inferred = &size;
    } else {
      rest = build.mul(rest, size);
    }
  }
  const Expr all = call.product(from);
  if (inferred != nullptr) {
    call.equal(build.mod(all, rest), call.constant(0));
    *inferred = build.floor_div(all, rest);
  } else {
    call.equal(all, rest);
  }
}

// Strides for other sizes over the same memory; empty: it can't be viewed so. Walks from the back through chunks of dimensions that lie
// without gaps, as computeStride of ATen/TensorUtils.cpp does.
std::optional<Exprs> view_strides(Call& call, const Viewed& from, const Exprs& sizes) {
  Builder& build = call.build();
  if (from.sizes.empty()) return Exprs(sizes.size(), call.constant(1));
  if (call.product(from.sizes)->is_const(0)) return from.sizes == sizes ? from.strides : call.contiguous_strides(sizes);
  if (from.strides == call.contiguous_strides(from.sizes)) return call.contiguous_strides(sizes);
  Exprs strides(sizes.size(), call.constant(1));
  size_t left = sizes.size();
  Expr base = from.strides.back();
  Expr old_count = call.constant(1);
  Expr new_count = call.constant(1);
  for (size_t i = from.sizes.size(); i-- > 0;) {
    old_count = build.mul(old_count, from.sizes[i]);
    const bool chunk_ends = i == 0 || (!call.is(from.sizes[i - 1], 1) && !call.equal(from.strides[i - 1], build.mul(old_count, base)));
    if (!chunk_ends) continue;
    while (left > 0 && (call.is(sizes[left - 1], 1) || call.ask(build.lt(new_count, old_count)))) {
      strides[left - 1] = build.mul(new_count, base);
      new_count = build.mul(new_count, sizes[left - 1]);
      --left;
    }
    if (!call.equal(new_count, old_count)) return std::nullopt;
    if (i > 0) {
      base = from.strides[i - 1];
      old_count = call.constant(1);
      new_count = call.constant(1);
    }
  }
  if (left > 0) return std::nullopt;
  return strides;
}

std::vector<Geometry> view(Call& call) {
  const Viewed from = viewed(call);
  Exprs sizes = call.integers(1);
  infer_size(call, &sizes, from.sizes);
  std::optional<Exprs> strides = view_strides(call, from, sizes);
  if (!strides) return {};
  return call.one(std::move(sizes), std::move(*strides), from.offset);
}

// A view where it can be one, else a copy.
std::vector<Geometry> reshape(Call& call) {
  if (call.is_view(0)) return view(call);
  Exprs sizes = call.integers(1);
  infer_size(call, &sizes, call.sizes(0));
  return call.one(std::move(sizes));
}

std::vector<Geometry> last_two_swapped(Call& call) {
  Viewed view = viewed(call);
  const size_t rank = view.sizes.size();
  if (rank < 2) return as_result(call, view);
  std::swap(view.sizes[rank - 1], view.sizes[rank - 2]);
  std::swap(view.strides[rank - 1], view.strides[rank - 2]);
  return as_result(call, view);
}

std::vector<Geometry> narrow(Call& call) {
  Builder& build = call.build();
  Viewed view = viewed(call);
  const size_t dim = call.dim(1, view.sizes.size());
  Expr start = call.integer(2);
  const Expr length = call.integer(3);
  if (call.ask(build.lt(start, call.constant(0)))) start = build.add(start, view.sizes[dim]);
  call.ask(build.le(build.add(start, length), view.sizes[dim]));
  view.sizes[dim] = length;
  view.offset = build.add(view.offset, build.mul(start, view.strides[dim]));
  return as_result(call, view);
}

std::vector<Geometry> reshape_alias(Call& call) { return call.one(call.integers(1), call.integers(2), call.offset(call.tensor(0))); }

std::vector<Geometry> as_strided(Call& call) {
  return call.one(call.integers(1), call.integers(2), call.given(3) ? call.integer(3) : call.offset(call.tensor(0)));
}

// Pieces of a dimension, one behind the other.
std::vector<Geometry> pieces(Call& call, const Viewed& view, size_t dim, const Exprs& lengths) {
  std::vector<Geometry> result;
  Expr offset = view.offset;
  for (const Expr length : lengths) {
    Geometry piece{view.sizes, view.strides, offset};
    piece.sizes[dim] = length;
    result.push_back(std::move(piece));
    offset = call.build().add(offset, call.build().mul(length, view.strides[dim]));
  }
  return result;
}

// Pieces of one length, the last of which may be shorter: their number is what the hints say, and guarded.
std::vector<Geometry> split(Call& call) {
  Builder& build = call.build();
  const Viewed view = viewed(call);
  const size_t dim = call.dim(2, view.sizes.size());
  const Expr length = call.integer(1);
  const auto number = static_cast<int64_t>(call.results().size());
  if (number == 1) {
    call.ask(build.le(view.sizes[dim], length));
    return as_result(call, view);
  }
  call.equal(build.ceil_div(view.sizes[dim], length), call.constant(number));
  Exprs lengths(static_cast<size_t>(number), length);
  lengths.back() = build.sub(view.sizes[dim], build.mul(length, call.constant(number - 1)));
  return pieces(call, view, dim, lengths);
}

std::vector<Geometry> split_with_sizes(Call& call) {
  const Viewed view = viewed(call);
  const Exprs lengths = call.integers(1);
  Expr total = call.constant(0);
  for (const Expr length : lengths) total = call.build().add(total, length);
  const size_t dim = call.dim(2, view.sizes.size());
  call.equal(total, view.sizes[dim]);
  return pieces(call, view, dim, lengths);
}

std::vector<Geometry> unbind(Call& call) {
  const Viewed view = viewed(call);
  const size_t dim = call.dim(1, view.sizes.size());
  call.is(view.sizes[dim], static_cast<int64_t>(call.results().size()));
  std::vector<Geometry> result;
  Expr offset = view.offset;
  for (size_t i = 0; i < call.results().size(); ++i) {
    Geometry piece{view.sizes, view.strides, offset};
    piece.sizes.erase(piece.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
    piece.strides->erase(piece.strides->begin() + static_cast<std::ptrdiff_t>(dim));
    result.push_back(std::move(piece));
    offset = call.build().add(offset, view.strides[dim]);
  }
  return result;
}

std::vector<Geometry> diagonal(Call& call) {
  Builder& build = call.build();
  Viewed view = viewed(call);
  const size_t a = call.dim(2, view.sizes.size());
  const size_t b = call.dim(3, view.sizes.size());
  const Expr offset = call.constant(call.number(1));
  const Expr zero = call.constant(0);
  const bool above = call.number(1) >= 0;
  const Expr length = above ? build.max(build.min(view.sizes[a], build.sub(view.sizes[b], offset)), zero)
                            : build.max(build.min(build.add(view.sizes[a], offset), view.sizes[b]), zero);
  // An empty one begins where its base does.
  const Expr moved = build.mul(build.abs(offset), view.strides[above ? b : a]);
  view.offset = build.add(view.offset, build.where(build.eq(length, zero), zero, moved));
  const Expr stride = build.add(view.strides[a], view.strides[b]);
  for (const size_t dim : {std::max(a, b), std::min(a, b)}) {
    view.sizes.erase(view.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
    view.strides.erase(view.strides.begin() + static_cast<std::ptrdiff_t>(dim));
  }
  view.sizes.push_back(length);
  view.strides.push_back(stride);
  return as_result(call, view);
}

std::vector<Geometry> unfold(Call& call) {
  Builder& build = call.build();
  Viewed view = viewed(call);
  const Expr size = call.constant(call.number(2));
  const Expr step = call.constant(call.number(3));
  if (view.sizes.empty()) {
    view.sizes.push_back(size);
    view.strides.push_back(call.constant(1));
    return as_result(call, view);
  }
  const size_t dim = call.dim(1, view.sizes.size());
  const Expr stride = view.strides[dim];
  call.ask(build.le(size, view.sizes[dim]));
  view.sizes[dim] = build.add(build.floor_div(build.sub(view.sizes[dim], size), step), call.constant(1));
  view.strides[dim] = build.mul(stride, step);
  view.sizes.push_back(size);
  view.strides.push_back(stride);
  return as_result(call, view);
}

std::vector<Geometry> movedim(Call& call) {
  const Viewed view = viewed(call);
  const size_t rank = view.sizes.size();
  if (rank == 0) return as_result(call, view);
  std::vector<size_t> from(rank, rank);
  std::vector<bool> taken(rank, false);
  const Exprs sources = call.integers(1);
  const Exprs targets = call.integers(2);
  for (size_t i = 0; i < sources.size(); ++i) {
    const size_t source = Call::wrap(static_cast<int64_t>(sources[i]->value), rank);
    from[Call::wrap(static_cast<int64_t>(targets[i]->value), rank)] = source;
    taken[source] = true;
  }
  size_t next = 0;
  Viewed result{{}, {}, view.offset};
  for (size_t i = 0; i < rank; ++i) {
    while (from[i] == rank && taken[next]) ++next;
    const size_t source = from[i] == rank ? next++ : from[i];
    result.sizes.push_back(view.sizes[source]);
    result.strides.push_back(view.strides[source]);
  }
  return as_result(call, result);
}

// Pieces of lengths that differ by one at most: how many are longer is what the hints say, and guarded.
std::vector<Geometry> tensor_split(Call& call) {
  Builder& build = call.build();
  const Viewed view = viewed(call);
  const size_t dim = call.dim(2, view.sizes.size());
  const Expr number = call.constant(static_cast<int64_t>(call.results().size()));
  call.equal(call.integer(1), number);
  const Expr longer = build.mod(view.sizes[dim], number);
  const Expr length = build.floor_div(view.sizes[dim], number);
  Exprs lengths;
  for (size_t i = 0; i < call.results().size(); ++i) {
    const bool is_longer = call.ask(build.lt(call.constant(static_cast<int64_t>(i)), longer));
    lengths.push_back(is_longer ? build.add(length, call.constant(1)) : length);
  }
  return pieces(call, view, dim, lengths);
}

// A vector becomes a diagonal: two dimensions at dim1 and dim2, the last of self being the diagonal.
std::vector<Geometry> diag_embed(Call& call) {
  Exprs sizes = call.sizes(0);
  const size_t rank = sizes.size() + 1;
  const Expr side = call.build().add(sizes.back(), call.constant(std::abs(call.number(1))));
  sizes.pop_back();
  size_t dims[] = {call.dim(2, rank), call.dim(3, rank)};
  std::sort(std::begin(dims), std::end(dims));
  for (const size_t dim : dims) sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), side);
  return call.one(std::move(sizes));
}

// As large as it is told, dense.
std::vector<Geometry> resized(Call& call) {
  Exprs sizes = call.integers(1);
  const Exprs strides = call.contiguous_strides(sizes);
  if (call.given(2) && !call.result(0).is_contiguous()) return {};
  return call.one(std::move(sizes), strides, call.offset(call.tensor(0)));
}

std::vector<Geometry> resized_as(Call& call) {
  Exprs sizes = call.sizes(1);
  const Exprs strides = call.contiguous_strides(sizes);
  if (!call.result(0).is_contiguous()) return {};
  return call.one(std::move(sizes), strides, call.offset(call.tensor(0)));
}

std::vector<Geometry> view_as_real(Call& call) {
  Viewed view = viewed(call);
  for (Expr& stride : view.strides) stride = call.build().scale(stride, 2);
  view.sizes.push_back(call.constant(2));
  view.strides.push_back(call.constant(1));
  view.offset = call.build().scale(view.offset, 2);
  return as_result(call, view);
}

std::vector<Geometry> view_as_complex(Call& call) {
  Viewed view = viewed(call);
  const Expr two = call.constant(2);
  view.sizes.pop_back();
  view.strides.pop_back();
  for (Expr& stride : view.strides) stride = call.build().floor_div(stride, two);
  view.offset = call.build().floor_div(view.offset, two);
  return as_result(call, view);
}

}  // namespace

void add_views(Table& table) {
  table.add({"alias", "detach", "lift_fresh", "_conj", "_neg_view"}, alias);
  table.add({"transpose.int", "transpose_", "swapaxes_", "swapdims_"}, transpose);
  table.add({"t", "t_", "numpy_T"}, matrix_transpose);
  table.add({"permute"}, permute);
  table.add({"movedim.int", "movedim.intlist"}, movedim);
  table.add({"unsqueeze", "unsqueeze_"}, unsqueeze);
  table.add({"squeeze", "squeeze.dim", "squeeze.dims", "squeeze_", "squeeze_.dim", "squeeze_.dims"}, squeeze);
  table.add({"select.int"}, select);
  table.add({"slice.Tensor"}, slice);
  table.add({"expand"}, expand);
  table.add({"view", "_unsafe_view"}, view);
  table.add({"reshape"}, reshape);
  table.add({"mT", "mH", "adjoint"}, last_two_swapped);
  table.add({"narrow"}, narrow);
  table.add({"_reshape_alias"}, reshape_alias);
  table.add({"as_strided", "as_strided_"}, as_strided);
  table.add({"resize_"}, resized);
  table.add({"resize_as_"}, resized_as);
  table.add({"tensor_split.sections"}, tensor_split);
  table.add({"diag_embed"}, diag_embed);
  table.add({"split.Tensor", "unsafe_split.Tensor"}, split);
  table.add({"split_with_sizes", "unsafe_split_with_sizes"}, split_with_sizes);
  table.add({"unbind.int"}, unbind);
  table.add({"diagonal"}, diagonal);
  table.add({"unfold"}, unfold);
  table.add({"view_as_real"}, view_as_real);
  table.add({"view_as_complex"}, view_as_complex);
  table.add({"alias_copy", "detach_copy"}, copied<alias>);
  table.add({"transpose_copy.int"}, copied<transpose>);
  table.add({"t_copy"}, copied<matrix_transpose>);
  table.add({"permute_copy"}, copied<permute>);
  table.add({"unsqueeze_copy"}, copied<unsqueeze>);
  table.add({"squeeze_copy", "squeeze_copy.dim", "squeeze_copy.dims"}, copied<squeeze>);
  table.add({"select_copy.int"}, copied<select>);
  table.add({"slice_copy.Tensor"}, copied<slice>);
  table.add({"expand_copy"}, copied<expand>);
  table.add({"narrow_copy"}, copied<narrow>);
  table.add({"as_strided_copy"}, copied<as_strided>);
  table.add({"split_copy.Tensor"}, copied<split>);
  table.add({"split_with_sizes_copy"}, copied<split_with_sizes>);
  table.add({"unbind_copy.int"}, copied<unbind>);
  table.add({"diagonal_copy"}, copied<diagonal>);
  table.add({"unfold_copy"}, copied<unfold>);
  table.add({"view_copy", "_reshape_copy"}, copied<reshape>);
}

}  // namespace pellucid::bridge::sym_rules
