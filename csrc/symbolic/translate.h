// Translator: the expressions of one arena in another, made in the same order, so that whatever depends on the order comes out alike.
#pragma once
#include <vector>

#include "symbolic/arena.h"

namespace pellucid::symbolic {

class Translator {
 public:
  Translator(const Arena& from, Arena& into) : from_(from), into_(into) {}
  // Makes the first `count` expressions, up to the first symbol that is still to be made.
  void advance(size_t count);
  Expr operator()(Expr expr);

 private:
  const Arena& from_;
  Arena& into_;
  std::vector<Expr> done_;  // by id in from_
};

}  // namespace pellucid::symbolic
