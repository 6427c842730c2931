// GuardSet: the guards of a ShapeEnv in terms of its inputs, without those that follow from others, as texts and as a program.
#pragma once
#include <string>
#include <vector>

#include "symbolic/guard_program.h"
#include "symbolic/shape_env.h"

namespace pellucid::symbolic {

struct GuardRow {
  std::string text;   // Python: "L['x'].size()[0] == 2*L['y'].size()[0]"
  Location location;  // of the question that made it, or of the input
  Expr condition;     // null: a range, or one about an input itself
};

struct GuardSet {
  std::vector<GuardRow> rows;
  GuardProgram program;  // over the inputs in their order; fails with the number of a row
};

// With `skip_static`, guards that an input has the value it was made a constant of are left to others (tensor guards check all sizes).
// A violated constraint is an error that says where, and what to do.
GuardSet produce_guards(ShapeEnv& env, bool skip_static);

// Of these conditions, in their order, those that the others do not imply.
std::vector<size_t> minimal(Arena& arena, const std::vector<Expr>& conditions);

}  // namespace pellucid::symbolic
