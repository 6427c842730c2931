// Kernels that read an entry of a table: the arguments' places are looked up in the schema once, when the table is made.
#include "torch_bridge/rules/like.h"

#include <ATen/TensorIterator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace pellucid::bridge::rules {

namespace {

using Stack = torch::jit::Stack;

c10::OperatorHandle operator_of(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(Table::key(name, overload).name.c_str(), overload);
}

int place_of(const c10::FunctionSchema& schema, const char* argument) {
  const auto place = schema.argumentIndexWithName(argument);
  TORCH_INTERNAL_ASSERT(place, schema.name(), " has no argument ", argument);
  return *place;
}

// The argument that a result is, for in-place and out= forms, or -1.
int written_place(const c10::FunctionSchema& schema, size_t result) {
  const auto* returned = schema.returns()[result].alias_info();
  if (returned == nullptr || !returned->isWrite()) return -1;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->beforeSets() == returned->beforeSets()) return static_cast<int>(i);
  }
  return -1;
}

void replace_arguments(Stack* stack, size_t count, c10::SmallVector<Tensor, LikeRule::kMost>& results) {
  torch::jit::drop(*stack, count);
  for (Tensor& result : results) stack->emplace_back(std::move(result));
}

class LikeKernel final : public c10::OperatorKernel {
 public:
  explicit LikeKernel(const LikeRule& rule) {
    const auto op = operator_of(rule.name, rule.overload);
    const auto& schema = op.schema();
    count_ = schema.arguments().size();
    if (rule.mask != nullptr) mask_ = place_of(schema, rule.mask);
    TORCH_INTERNAL_ASSERT(schema.returns().size() <= LikeRule::kMost, rule.name, ": too many results");
    for (size_t i = 0; i < schema.returns().size(); ++i) {
      const Like& like = rule.results[i];
      TORCH_INTERNAL_ASSERT(like.argument != nullptr, rule.name, ": too few results");
      results_.push_back({place_of(schema, like.argument), like.dtype_of != nullptr ? place_of(schema, like.dtype_of) : -1,
                          written_place(schema, i), like.layout, like.dtype, like.always});
    }
  }

  void operator()(const c10::OperatorHandle& /*op*/, c10::DispatchKeySet /*keys*/, Stack* stack) {
    const size_t base = stack->size() - count_;
    const auto argument = [&](int place) -> const c10::IValue& { return (*stack)[base + static_cast<size_t>(place)]; };
    c10::SmallVector<Tensor, LikeRule::kMost> made;
    for (size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      const c10::IValue& like = argument(result.like);
      const bool wanted = mask_ < 0 || result.always || argument(mask_).toBoolList()[i];
      if (!wanted || !like.isTensor() || !like.toTensor().defined()) {
        made.emplace_back();
        continue;
      }
      const Tensor& tensor = like.toTensor();
      if (result.written >= 0) {
        Tensor out = argument(result.written).toTensor();
        set_output(out, tensor.sizes());
        made.push_back(std::move(out));
        continue;
      }
      const ScalarType dtype = result.dtype != ScalarType::Undefined ? result.dtype
                               : result.dtype_of >= 0                ? argument(result.dtype_of).toTensor().scalar_type()
                                                                     : tensor.scalar_type();
      made.push_back(make_like(tensor, result.layout, dtype));
    }
    replace_arguments(stack, count_, made);
  }

 private:
  struct Result {
    int like;
    int dtype_of;
    int written;
    Layout layout;
    ScalarType dtype;
    bool always;
  };
  size_t count_ = 0;
  int mask_ = -1;
  c10::SmallVector<Result, LikeRule::kMost> results_;
};

bool accepted(Accepts accepts, ScalarType dtype) {
  switch (accepts) {
    case Accepts::kAll:
      return true;
    case Accepts::kIntegral:
      return c10::isIntegralType(dtype, false);
    case Accepts::kFloating:
      return c10::isFloatingType(dtype);
    case Accepts::kFloatingOrComplex:
      return c10::isFloatingType(dtype) || c10::isComplexType(dtype);
    case Accepts::kNoBool:
      return dtype != at::kBool;
  }
  return true;
}

Tensor wrapped(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor();
  const Scalar number = value.toScalar();
  Tensor tensor = make({}, number.type());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

class IteratedKernel final : public c10::OperatorKernel {
 public:
  explicit IteratedKernel(const IteratedRule& rule)
      : name_(rule.name), promotion_(rule.promotion), dtype_(rule.dtype), accepts_(rule.accepts) {
    const auto op = operator_of(rule.name, rule.overload);
    const auto& schema = op.schema();
    count_ = schema.arguments().size();
    TORCH_INTERNAL_ASSERT(schema.returns().size() == 1, rule.name, ": one result");
    written_ = written_place(schema, 0);
    for (const char* input : rule.inputs) {
      if (input != nullptr) inputs_.push_back(place_of(schema, input));
    }
  }

  void operator()(const c10::OperatorHandle& /*op*/, c10::DispatchKeySet /*keys*/, Stack* stack) {
    const size_t base = stack->size() - count_;
    at::TensorIteratorConfig config;
    config.allow_cpu_scalars(true);
    config.add_owned_output(written_ >= 0 ? (*stack)[base + static_cast<size_t>(written_)].toTensor() : Tensor());
    for (const int place : inputs_) config.add_owned_const_input(wrapped((*stack)[base + static_cast<size_t>(place)]));
    switch (promotion_) {
      case Promotion::kSame:
        break;
      case Promotion::kPromote:
      case Promotion::kFloat:
        config.promote_inputs_to_common_dtype(true).cast_common_dtype_to_outputs(true).enforce_safe_casting_to_output(true);
        config.promote_integer_inputs_to_float(promotion_ == Promotion::kFloat);
        break;
      case Promotion::kAny:
        config.check_all_same_dtype(false);
        break;
    }
    if (dtype_ != ScalarType::Undefined && written_ < 0) {
      config.check_all_same_dtype(false).cast_common_dtype_to_outputs(false).enforce_safe_casting_to_output(false);
      config.declare_static_dtype(dtype_);
    }
    at::TensorIterator iterator = config.build();
    if (accepts_ != Accepts::kAll) {
      const ScalarType dtype = iterator.input_dtype();
      TORCH_CHECK_NOT_IMPLEMENTED(accepted(accepts_, promotion_ == Promotion::kSame ? dtype : iterator.common_dtype()), "\"", name_,
                                  "\" not implemented for '", toString(dtype), "'");
    }
    Tensor result = iterator.output();
    torch::jit::drop(*stack, count_);
    stack->emplace_back(std::move(result));
  }

 private:
  const char* name_;
  Promotion promotion_;
  ScalarType dtype_;
  Accepts accepts_;
  size_t count_ = 0;
  int written_ = -1;
  c10::SmallVector<int, 3> inputs_;
};

class WritingKernel final : public c10::OperatorKernel {
 public:
  WritingKernel(c10::KernelFunction functional, size_t count) : functional_(std::move(functional)), count_(count) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    c10::SmallVector<Tensor, 4> outs;
    for (size_t i = stack->size() - count_; i < stack->size(); ++i) outs.push_back((*stack)[i].toTensor());
    torch::jit::drop(*stack, count_);
    functional_.callBoxed(op, keys, stack);
    for (size_t i = 0; i < count_; ++i) {
      c10::IValue& result = (*stack)[stack->size() - count_ + i];
      const Tensor& made = result.toTensor();
      if (made.defined()) {
        TORCH_CHECK(c10::canCast(made.scalar_type(), outs[i].scalar_type()), "Expected out tensor to have dtype ", made.scalar_type(),
                    ", but got ", outs[i].scalar_type(), " instead");
        set_output(outs[i], made.sizes());
      }
      result = outs[i];
    }
  }

 private:
  const c10::KernelFunction functional_;
  const size_t count_;
};

}  // namespace

c10::KernelFunction writing_to_out(const c10::KernelFunction& functional, size_t count) {
  return c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<WritingKernel>(functional, count));
}

Tensor make_like(const Tensor& tensor, Layout layout, ScalarType dtype) {
  switch (layout) {
    case Layout::kContiguous:
      return make(tensor.sizes(), dtype);
    case Layout::kPreserved:
      return make_like(tensor, dtype);
    case Layout::kSuggested:
      return make(tensor.sizes(), dtype, tensor.suggest_memory_format());
    case Layout::kColumns:
      return make_columns(tensor.sizes(), dtype);
    case Layout::kHeads: {
      const int64_t heads = tensor.size(1);
      const int64_t length = tensor.size(2);
      const int64_t size = tensor.size(3);
      return make_strided(tensor.sizes(), {heads * length * size, size, heads * size, 1}, dtype);
    }
  }
  return {};
}

void add(Table& table, const LikeRule& rule) {
  table.add(rule.name, rule.overload, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<LikeKernel>(rule)));
}

void add(Table& table, const IteratedRule& rule) {
  table.add(rule.name, rule.overload, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<IteratedKernel>(rule)));
}

}  // namespace pellucid::bridge::rules
