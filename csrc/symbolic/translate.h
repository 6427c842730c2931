// Translator: the same expressions in another arena, symbol by symbol in the order they were made.
#pragma once
#include <unordered_map>

#include "symbolic/builder.h"

namespace pellucid::symbolic {

class Translator {
 public:
  explicit Translator(Builder& into) : into_(into) {}
  Expr operator()(Expr expr);

 private:
  Builder& into_;
  std::unordered_map<Expr, Expr> done_;
};

}  // namespace pellucid::symbolic
