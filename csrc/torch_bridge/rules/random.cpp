// Random numbers, dropout, and gradients of distributions.
#include "torch_bridge/rules/like.h"

namespace pellucid::bridge::rules {

namespace {

constexpr LikeRule kLikeAnArgument[] = {
    {"_standard_gamma", "", {{"self"}}},
    {"_standard_gamma_grad", "", {{"self"}}},
    {"_sample_dirichlet", "", {{"self"}}},
    {"_dirichlet_grad", "", {{"x"}}},
    {"poisson", "", {{"self"}}},
    {"binomial", "", {{"count"}}},
    {"bernoulli", "out", {{"self"}}},
    {"_masked_scale", "", {{"self", Layout::kSuggested}}},
    {"_fused_dropout", "", {{"self", Layout::kPreserved}, {.argument = "self", .layout = Layout::kPreserved, .dtype = ScalarType::Byte}}},
};

std::tuple<Tensor, Tensor> native_dropout(const Tensor& x, double /*p*/, std::optional<bool> /*train*/) {
  if (x.numel() == 0 && device().is_cpu()) return {x, make_like(x)};
  return {make_like(x), make_like(x, at::kBool)};
}

Tensor rrelu_with_noise(const Tensor& x, Tensor& noise, const Scalar& lower, const Scalar& upper, bool /*training*/,
                        const std::optional<at::Generator>& /*generator*/) {
  TORCH_CHECK(lower.to<double>() <= upper.to<double>(), "Lower bound should be less than or equal to the upper bound");
  TORCH_CHECK(x.sizes() == noise.sizes(), "noise tensor shape must match self tensor shape. Got self.shape = ", x.sizes(),
              " noise.shape = ", noise.sizes());
  return device().is_cpu() ? make(x.sizes(), x.scalar_type()) : make_like(x);
}

using OptionalGenerator = std::optional<at::Generator>;

Tensor& cauchy(Tensor& self, double /*median*/, double sigma, const OptionalGenerator& /*generator*/) {
  TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "Cauchy distribution is a continuous probability distribution. dtype must be a floating"
              " point but you specified ",
              self.dtype());
  return self;
}

Tensor& exponential(Tensor& self, double lambda, const OptionalGenerator& /*generator*/) {
  TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "Exponential distribution is a continuous probability distribution. dtype must be a"
              " floating point but you specified ",
              self.dtype());
  return self;
}

Tensor& geometric(Tensor& self, double p, const OptionalGenerator& /*generator*/) {
  TORCH_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return self;
}

Tensor& log_normal(Tensor& self, double /*mean*/, double deviation, const OptionalGenerator& /*generator*/) {
  TORCH_CHECK(deviation > 0, "log_normal_ expects std > 0.0, but found std=", deviation);
  return self;
}

}  // namespace

void add_random(Table& table) {
  add_all(table, kLikeAnArgument);
  table.add("native_dropout", "", TORCH_FN(native_dropout));
  table.add("cauchy_", "", TORCH_FN(cauchy));
  table.add("exponential_", "", TORCH_FN(exponential));
  table.add("geometric_", "", TORCH_FN(geometric));
  table.add("log_normal_", "", TORCH_FN(log_normal));
  table.add("rrelu_with_noise", "", TORCH_FN(rrelu_with_noise));
}

}  // namespace pellucid::bridge::rules
