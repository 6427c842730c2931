// The end of a graph: which inputs and outputs it has, in which order, and the call of the backend.
#pragma once
#include "py/collector.h"
#include "translate/instruction_translator.h"

namespace pellucid::translate {

struct FinishedGraph {
  GraphRecord record;                                 // placeholders first: `arguments`, then `block`
  std::vector<variables::TensorVariable*> arguments;  // inputs that the transformed function loads
  std::vector<const source::Source*> block;           // inputs that the guard program keeps (parameters and buffers of modules)
};

FinishedGraph finish_graph(InstructionTranslator& t, const std::vector<variables::TensorVariable*>& outputs);

// Gives the graph to the region's backend, which runs outside of `pause`. False: a Python exception is set. `callable` stays null when the
// backend failed and config.backend_errors says that the frame runs as written then.
bool compile_graph(FinishedGraph finished, cache::Region& region, py::PauseCollector& pause, Profile& profile, cache::GuardedCode& entry,
                   py::Ref& callable);

}  // namespace pellucid::translate
