// Expressions as Python text. The order of terms and factors is by structure (degree, then symbols as they were made), not by when a
// node was made, so that equal expressions print alike in every ShapeEnv.
#pragma once
#include <functional>
#include <string>

#include "symbolic/expr.h"

namespace pellucid::symbolic {

using SymbolText = std::function<std::string(Expr)>;

std::string to_text(Expr expr);  // with the symbols' own names
std::string to_text(Expr expr, const SymbolText& symbol);

}  // namespace pellucid::symbolic
