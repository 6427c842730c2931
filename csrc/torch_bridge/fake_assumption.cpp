// The assumption is the thread's: composite kernels call their operators on the thread they run on.
#include "torch_bridge/fake_assumption.h"

#include <ATen/core/Tensor.h>

namespace pellucid::bridge {

namespace {

constexpr int8_t kNone = -1;
thread_local int8_t assumed = kNone;

c10::Scalar number_of_type(bool answer, at::ScalarType dtype) {
  if (dtype == at::kBool) return answer;
  if (c10::isIntegralType(dtype, false)) return static_cast<int64_t>(answer);
  if (c10::isComplexType(dtype)) return c10::complex<double>(answer ? 1 : 0);
  return answer ? 1.0 : 0.0;
}

}  // namespace

AssumedAnswer::AssumedAnswer(bool answer) : previous_(assumed), guard_(&silent_) { assumed = answer ? 1 : 0; }
AssumedAnswer::~AssumedAnswer() { assumed = previous_; }

bool answer_by_assumption(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (assumed == kNone) return false;
  const std::string& name = op.operator_name().name;
  if (name == "aten::equal") {
    torch::jit::drop(*stack, 2);
    stack->emplace_back(assumed != 0);
    return true;
  }
  if (name == "aten::_local_scalar_dense") {
    const at::ScalarType dtype = stack->back().toTensor().scalar_type();
    stack->back() = number_of_type(assumed != 0, dtype);
    return true;
  }
  return false;
}

}  // namespace pellucid::bridge
