// What tests of the shape engine share: an environment with some symbols, and short names.
#pragma once
#include <gtest/gtest.h>

#include "symbolic/guard_set.h"
#include "symbolic/print.h"
#include "symbolic/shape_env.h"

namespace pellucid::symbolic {

struct Env {
  explicit Env(ShapeEnv::Options options = {}) : env(new ShapeEnv(options)) {}

  Expr size(int64_t hint, DimSpec spec = {DimPolicy::kDynamic, {}, {}}) {
    return env->create_size(hint, "x" + std::to_string(count++), spec, {});
  }
  Expr unbacked() { return env->create_unbacked_int({}); }
  Expr c(Int value) { return env->build().constant(value); }
  Builder& b() { return env->build(); }
  bool ask(Expr condition, int line = 1) {
    const Location location{"user.py", line};
    return env->evaluate(condition, at(location));
  }
  std::vector<std::string> guards(bool skip_static = true) {
    std::vector<std::string> texts;
    for (const GuardRow& row : produce_guards(*env, skip_static).rows) texts.push_back(row.text);
    return texts;
  }

  Handle<ShapeEnv> env;
  int count = 0;
};

using Texts = std::vector<std::string>;

}  // namespace pellucid::symbolic
