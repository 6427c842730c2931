// A ShapeEnv as bytes: its expressions in the order they were made, its inputs and its log. Loading asks the same again.
#pragma once
#include <string>
#include <string_view>

#include "symbolic/shape_env.h"

namespace pellucid::symbolic {

std::string save(ShapeEnv& env);

// Damaged bytes are an error.
Handle<ShapeEnv> load(std::string_view bytes);

}  // namespace pellucid::symbolic
