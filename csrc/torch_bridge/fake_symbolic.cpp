// Stand-ins of the hint sizes for the arguments, the operator on them, its results in symbols. Knows no operator by name.
#include "torch_bridge/fake_symbolic.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <numeric>

#include "symbolic/print.h"
#include "torch_bridge/fake_errors.h"
#include "torch_bridge/fake_twin.h"
#include "torch_bridge/sym_errors.h"
#include "torch_bridge/sym_rules/rules.h"
#include "torch_bridge/sym_tensor.h"

namespace pellucid::bridge {

namespace {

using sym_rules::Exprs;
using sym_rules::Geometry;
using symbolic::Expr;
using Stack = torch::jit::Stack;

bool is_symbolic(const at::Tensor& tensor) { return tensor.defined() && tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides(); }

// The first symbolic number among the arguments, of whatever ShapeEnv.
class FirstSymbol {
 public:
  void add(const c10::SymInt& number) {
    if (node_.get() == nullptr && number.is_heap_allocated()) node_ = number.toSymNode();
  }
  void add(c10::SymIntArrayRef numbers) {
    for (const c10::SymInt& number : numbers) add(number);
  }
  void add(const at::Tensor& tensor) {
    if (!is_symbolic(tensor)) return;
    add(tensor.sym_sizes());
    add(tensor.sym_strides());
    add(tensor.sym_storage_offset());
  }
  void add(const c10::IValue& value) {
    if (value.isTensor()) {
      add(value.toTensor());
    } else if (value.isSymInt()) {
      add(value.toSymInt());
    } else if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) add(item);
    }
  }
  Expr expr() const { return node_.get() == nullptr ? nullptr : expr_of(node_); }

 private:
  c10::SymNode node_;
};

// A number at the hints. False: it has none.
bool hint_of(const c10::SymInt& number, int64_t* hint) {
  if (const auto value = number.maybe_as_int()) {
    *hint = *value;
    return true;
  }
  const Expr expr = expr_of(number.toSymNode());
  if (expr == nullptr) return false;
  const std::optional<int64_t> value = symbolic::ShapeEnv::hint_int(expr);
  if (value) *hint = *value;
  return value.has_value();
}

bool hints_of(c10::SymIntArrayRef numbers, c10::SmallVector<int64_t, 6>* hints) {
  for (const c10::SymInt& number : numbers) {
    int64_t hint = 0;
    if (!hint_of(number, &hint)) return false;
    hints->push_back(hint);
  }
  return true;
}

// The arguments at the hints: each tensor once, however often it is passed.
class AtHints {
 public:
  bool replace(c10::IValue& value) {
    if (value.isTensor()) {
      at::Tensor tensor = value.toTensor();
      if (!replace(tensor)) return false;
      value = std::move(tensor);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (at::Tensor tensor : value.toTensorVector()) {
        if (!replace(tensor)) return false;
        list.push_back(std::move(tensor));
      }
      value = std::move(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& item : value.toListRef()) {
        if (item.isNone()) {
          list.push_back(std::nullopt);
          continue;
        }
        at::Tensor tensor = item.toTensor();
        if (!replace(tensor)) return false;
        list.push_back(std::move(tensor));
      }
      value = std::move(list);
    } else if (value.isSymInt()) {
      int64_t hint = 0;
      if (!hint_of(value.toSymInt(), &hint)) return false;
      value = hint;
    } else if (value.isSymIntList()) {
      c10::SmallVector<int64_t, 6> hints;
      const std::vector<c10::SymInt> numbers = value.toSymIntVector();
      if (!hints_of(numbers, &hints)) return false;
      value = std::vector<int64_t>(hints.begin(), hints.end());
    } else if (value.isSymFloat() || value.isSymBool()) {
      return false;  // only the value would do
    }
    return true;
  }

  // The original that a result is, or lies in; undefined if it is new.
  at::Tensor original_of(const at::Tensor& result) const {
    for (const auto& [stand_in, original] : pairs_) {
      if (stand_in.is_same(result)) return original;
    }
    return at::Tensor();
  }
  at::Tensor storage_original_of(const at::Tensor& result) const {
    if (!result.has_storage()) return at::Tensor();
    for (const auto& [stand_in, original] : pairs_) {
      if (stand_in.storage().unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl()) return original;
    }
    return at::Tensor();
  }

 private:
  struct Pair {
    at::Tensor stand_in;
    at::Tensor original;
  };

  bool replace(at::Tensor& tensor) {
    if (!is_symbolic(tensor)) return true;
    for (const auto& [stand_in, original] : pairs_) {
      if (original.is_same(tensor)) {
        tensor = stand_in;
        return true;
      }
    }
    c10::SmallVector<int64_t, 6> sizes, strides;
    int64_t offset = 0;
    if (!hints_of(tensor.sym_sizes(), &sizes) || !hints_of(tensor.sym_strides(), &strides) ||
        !hint_of(tensor.sym_storage_offset(), &offset)) {
      return false;
    }
    // Keys of autograd and views too, or views of it would be inference tensors.
    c10::DispatchKeySet keys(c10::DispatchKey::Meta);
    if (!tensor.is_inference()) {
      keys = keys | c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView) | c10::DispatchKeySet(c10::DispatchKey::AutogradMeta);
    }
    at::Tensor base = at::detail::empty_strided_meta(sizes, strides, tensor.scalar_type());
    if (offset != 0)
      base.storage().unsafeGetStorageImpl()->set_nbytes(base.storage().nbytes() + static_cast<size_t>(offset) * tensor.itemsize());
    at::Tensor stand_in = at::detail::make_tensor<at::TensorImpl>(at::TensorImpl::VIEW, c10::Storage(base.storage()), keys, tensor.dtype());
    auto* impl = stand_in.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(sizes, strides, offset);
    if (tensor.is_conj()) impl->_set_conj(true);
    if (tensor.is_neg()) impl->_set_neg(true);
    const c10::Device device = tensor.device();
    if (!device.is_meta()) make_fake(impl, device, true);
    pairs_.push_back({stand_in, tensor});
    tensor = std::move(stand_in);
    return true;
  }

  c10::SmallVector<Pair, 4> pairs_;
};

// Strides of a dense result: the order of those at the hints, multiplied out in symbols. Empty: it isn't dense.
Exprs dense_strides(symbolic::Builder& build, const Exprs& sizes, const at::Tensor& at_hints) {
  const size_t rank = sizes.size();
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  const at::IntArrayRef concrete = at_hints.strides();
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return concrete[a] > concrete[b]; });
  Exprs strides(rank, build.constant(1));
  Exprs products{build.constant(1)};
  for (size_t k = rank; k-- > 0;) {
    strides[order[k]] = products.back();
    products.push_back(build.mul(products.back(), build.max(sizes[order[k]], build.constant(1))));
  }
  for (size_t i = 0; i < rank; ++i) {
    const auto is_concrete = [&](Expr stride) { return stride->hint.known() && stride->hint.integer == concrete[i]; };
    if (is_concrete(strides[i])) continue;
    // A size of 1 stands in any place of the order.
    if (at_hints.size(static_cast<int64_t>(i)) != 1) return {};
    const auto other = std::find_if(products.begin(), products.end(), is_concrete);
    strides[i] = other == products.end() ? build.constant(concrete[i]) : *other;
  }
  return strides;
}

void check_at_hints(const c10::OperatorHandle& op, const Exprs& said, at::IntArrayRef concrete, const char* what) {
  bool good = said.size() == concrete.size();
  for (size_t i = 0; good && i < said.size(); ++i) good = said[i]->hint.known() && said[i]->hint.integer == concrete[i];
  if (good) return;
  std::string text;
  for (const Expr expr : said) text += (text.empty() ? "" : ", ") + symbolic::to_text(expr);
  TORCH_CHECK(false, "the symbolic shape rule of ", op.operator_name(), " gives ", what, " [", text, "], which are not ", concrete,
              " at the hints");
}

bool all_constant(const Exprs& exprs) {
  return std::all_of(exprs.begin(), exprs.end(), [](Expr expr) { return expr->is_const(); });
}

c10::SmallVector<c10::SymInt, 6> to_sym_ints(const Exprs& exprs) {
  c10::SmallVector<c10::SymInt, 6> result;
  for (const Expr expr : exprs) result.push_back(to_sym_int(expr));
  return result;
}

// A result at the hints in symbols, in its original's storage if it lies in one.
at::Tensor in_symbols(const at::Tensor& at_hints, const Exprs& sizes, const Exprs& strides, Expr offset, const at::Tensor& base) {
  const auto sym_sizes = to_sym_ints(sizes);
  const auto sym_strides = to_sym_ints(strides);
  at::Tensor result;
  if (base.defined()) {
    result = symbolic_alias(base, sym_sizes, sym_strides, to_sym_int(offset), at_hints.dtype());
  } else {
    result = symbolic_tensor(sym_sizes, sym_strides, at_hints.scalar_type());
  }
  auto* impl = result.unsafeGetTensorImpl();
  if (at_hints.is_conj()) impl->_set_conj(true);
  if (at_hints.is_neg()) impl->_set_neg(true);
  const c10::Device device = at_hints.device();
  if (!device.is_meta()) make_fake(impl, device, !base.defined());
  return result;
}

// An argument that the operator may have given other sizes and strides takes them on, and the room that they need.
void take_geometry(sym_rules::Call& call, const Geometry& geometry, const at::Tensor& at_hints, const at::Tensor& original) {
  const Exprs& strides = *geometry.strides;
  const Expr offset = geometry.offset != nullptr ? geometry.offset : call.offset(original);
  if (geometry.sizes == call.sizes(original) && strides == call.strides(original) && offset == call.offset(original)) return;
  check_at_hints(call.op(), strides, at_hints.strides(), "strides");
  const int64_t concrete_offset = at_hints.storage_offset();
  check_at_hints(call.op(), {offset}, concrete_offset, "a storage offset");
  auto* storage = original.storage().unsafeGetStorageImpl();
  Expr last = offset;
  for (size_t i = 0; i < strides.size(); ++i) {
    last = call.build().add(last, call.build().mul(strides[i], call.build().sub(geometry.sizes[i], call.constant(1))));
  }
  const Expr room = call.build().scale(call.build().add(last, call.constant(1)), static_cast<int64_t>(original.itemsize()));
  const Expr had = to_expr(storage->sym_nbytes(), call.env());
  if (room->hint.known() && had->hint.known() && room->hint.integer > had->hint.integer) storage->set_nbytes(to_sym_int(room));
  original.unsafeGetTensorImpl()->set_sizes_and_strides(to_sym_ints(geometry.sizes), to_sym_ints(strides), to_sym_int(offset));
}

// Replaces a result at the hints. `is_argument`: it is one that had no symbols, and was written to as it is. False: the rule does not say
// enough about it.
bool replace_result(sym_rules::Call& call, const Geometry& geometry, const AtHints& at_hints, bool is_argument, at::Tensor& result) {
  if (!result.defined()) return true;
  check_at_hints(call.op(), geometry.sizes, result.sizes(), "sizes");
  if (at::Tensor original = at_hints.original_of(result); original.defined()) {
    if (geometry.strides) take_geometry(call, geometry, result, original);
    result = std::move(original);
    return true;
  }
  if (is_argument) {  // it can't take on symbols: what it was given becomes constant, by guards
    for (const c10::SymInt& size : to_sym_ints(geometry.sizes)) size.guard_int(__FILE__, __LINE__);
    for (const c10::SymInt& stride : to_sym_ints(geometry.strides.value_or(Exprs{}))) stride.guard_int(__FILE__, __LINE__);
    if (geometry.offset != nullptr) to_sym_int(geometry.offset).guard_int(__FILE__, __LINE__);
    return true;
  }
  const at::Tensor base = at_hints.storage_original_of(result);
  if (base.defined() && !geometry.strides) return false;
  if (!base.defined() && all_constant(geometry.sizes)) return true;
  const Exprs strides = geometry.strides ? *geometry.strides : dense_strides(call.build(), geometry.sizes, result);
  if (strides.size() != geometry.sizes.size()) return false;
  check_at_hints(call.op(), strides, result.strides(), "strides");
  const Expr offset = geometry.offset != nullptr && base.defined() ? geometry.offset : call.constant(0);
  const int64_t concrete_offset = result.storage_offset();
  check_at_hints(call.op(), {offset}, concrete_offset, "a storage offset");
  result = in_symbols(result, geometry.sizes, strides, offset, base);
  return true;
}

}  // namespace

bool run_at_hints(const c10::OperatorHandle& op, Stack* stack, size_t base) {
  const pybind11::gil_scoped_acquire gil;
  const sym_rules::Rule rule = sym_rules::find(op);
  FirstSymbol first;
  for (size_t i = base; i < stack->size(); ++i) first.add((*stack)[i]);
  const Expr symbol = first.expr();
  if (symbol == nullptr) return false;  // PyTorch's own symbols, or plain numbers in their clothes
  symbolic::ShapeEnv& env = symbolic::ShapeEnv::of(symbol);
  const HeldExpr held(symbol);

  const std::vector<c10::IValue> arguments(stack->begin() + static_cast<std::ptrdiff_t>(base), stack->end());
  AtHints at_hints;
  Stack concrete(arguments);
  for (c10::IValue& value : concrete) {
    if (!at_hints.replace(value)) return false;
  }
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    op.callBoxed(&concrete);
  }
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : concrete) {
    if (value.isTensor()) {
      results.push_back(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) results.push_back(tensor);
    }
  }
  const auto is_scalar = [&](const at::Tensor& tensor) {
    return !tensor.defined() || (tensor.dim() == 0 && !at_hints.storage_original_of(tensor).defined());
  };
  if (!std::all_of(results.begin(), results.end(), is_scalar)) {
    if (rule == nullptr) return false;
    std::vector<bool> views;
    for (const at::Tensor& tensor : results) views.push_back(tensor.defined() && at_hints.storage_original_of(tensor).defined());
    sym_rules::Call call(op, arguments, results, std::move(views), env);
    const std::vector<Geometry> geometries = raising([&] { return rule(call); });
    if (geometries.empty()) return false;
    TORCH_CHECK(geometries.size() == results.size(), "the symbolic shape rule of ", op.operator_name(), " gives ", geometries.size(),
                " results, not ", results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const auto is_result = [&](const c10::IValue& value) { return value.isTensor() && value.toTensor().is_same(results[i]); };
      const bool is_argument = results[i].defined() && std::any_of(arguments.begin(), arguments.end(), is_result);
      if (!raising([&] { return replace_result(call, geometries[i], at_hints, is_argument, results[i]); })) return false;
    }
  }
  stack->resize(base);
  size_t next = 0;
  for (c10::IValue& value : concrete) {
    if (value.isTensor()) {
      value = results[next++];
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (size_t i = value.toListRef().size(); i > 0; --i) list.push_back(results[next++]);
      value = std::move(list);
    }
    stack->push_back(std::move(value));
  }
  return true;
}

at::Tensor symbolic_fake(const at::Tensor& real, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  at::Tensor fake = symbolic_tensor(sizes, strides, real.scalar_type());
  make_fake(fake.unsafeGetTensorImpl(), real.device(), true);
  return fake;
}

}  // namespace pellucid::bridge
