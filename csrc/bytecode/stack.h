// Stack depths by abstract execution over the control-flow graph, with the first disagreement found. Knows nothing of locals.
#pragma once
#include <string>
#include <vector>

#include "bytecode/cfg.h"
#include "bytecode/code.h"

namespace pellucid::bytecode {

struct StackDepths {
  std::vector<int> before;  // by instruction, -1: unreachable
  int max = 0;
  std::string problem;  // empty, or where depths disagree at a merge or the stack holds too little
};

StackDepths compute_stack_depths(const Code& code, const Cfg& cfg);

}  // namespace pellucid::bytecode
