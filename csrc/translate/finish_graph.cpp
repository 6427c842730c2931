// Renumbering of the record, and the backend.
#include "translate/finish_graph.h"

#include "base/check.h"
#include "torch_bridge/fx_graph.h"
#include "torch_bridge/lazy_graph.h"
#include "torch_bridge/replay.h"
#include "translate/report.h"

namespace pellucid::translate {

using namespace variables;

namespace {

template <class F>
void each_node(Arg& argument, F&& f) {
  if (argument.kind == Arg::Kind::kNode) f(argument.node);
  for (Arg& item : argument.items) each_node(item, f);
}

// Read through objects that are known by identity, all the way: the guard program verifies such a tensor without walking there.
bool anchored(const source::Source* source, const guard::GuardSet& guards) {
  using SourceKind = source::Kind;
  bool first = true;
  for (; source; source = source->base, first = false) {
    switch (source->kind) {
      case SourceKind::kGlobal:
      case SourceKind::kConst:
        return true;
      case SourceKind::kLocal:
        return guards.has(guard::Kind::kId, source);
      case SourceKind::kCellContents:
        if (source->base->kind == SourceKind::kFreeCell) return first || guards.has(guard::Kind::kId, source);
        return false;
      case SourceKind::kDictItem:
        break;
      case SourceKind::kInstanceItem:
        // an instance's own dict of submodules or parameters needs no guard of its own: it is part of the object's layout
        break;
      default:
        return false;
    }
  }
  return false;
}

}  // namespace

FinishedGraph finish_graph(InstructionTranslator& t, const std::vector<TensorVariable*>& outputs) {
  constexpr uint32_t kInputBit = InstructionTranslator::kInputBit;
  Profile::Scope building(t.profile, Phase::kFx);
  FinishedGraph result;
  GraphRecord& graph = t.graph();
  auto& inputs = t.input_nodes();
  std::vector<bool> used(inputs.size(), false);
  std::vector<Arg> output_arguments;
  for (TensorVariable* tensor : outputs) {
    Arg argument;
    argument.kind = Arg::Kind::kNode;
    argument.node = tensor->node;
    output_arguments.push_back(std::move(argument));
  }
  auto mark = [&](uint32_t& id) {
    if (id & kInputBit) used[id & ~kInputBit] = true;
  };
  for (GraphNode& node : graph.nodes) {
    for (Arg& argument : node.args) each_node(argument, mark);
    for (auto& [name, argument] : node.kwargs) each_node(argument, mark);
  }
  for (Arg& argument : output_arguments) each_node(argument, mark);

  std::vector<uint32_t> position(inputs.size(), 0);
  for (bool in_block : {false, true}) {
    for (size_t i = 0; i < inputs.size(); i++) {
      TensorVariable* variable = t.inputs()[i];
      const bool belongs = inputs[i].parameter && anchored(variable->source, t.guard_set());
      if (!used[i] || belongs != in_block) continue;
      position[i] = static_cast<uint32_t>(result.record.nodes.size());
      if (in_block)
        result.block.push_back(variable->source);
      else
        result.arguments.push_back(variable);
      result.record.nodes.push_back(inputs[i]);
    }
  }
  const auto shift = static_cast<uint32_t>(result.record.nodes.size());
  auto renumber = [&](uint32_t& id) { id = id & kInputBit ? position[id & ~kInputBit] : id + shift; };
  for (GraphNode& node : graph.nodes) {
    for (Arg& argument : node.args) each_node(argument, renumber);
    for (auto& [name, argument] : node.kwargs) each_node(argument, renumber);
    result.record.nodes.push_back(std::move(node));
  }
  for (Arg& argument : output_arguments) each_node(argument, renumber);
  result.record.outputs = std::move(output_arguments);
  result.record.stacks = std::move(graph.stacks);
  result.record.modules = std::move(graph.modules);
  return result;
}

bool compile_graph(FinishedGraph finished, cache::Region& region, py::PauseCollector& pause, Profile& profile, cache::GuardedCode& entry,
                   py::Ref& callable) {
  Profile::Scope building(profile, Phase::kFx);
  const GraphRecord& record = finished.record;
  py::Ref replays = py::Ref::steal(PyObject_GetAttrString(region.backend.get(), "replays_record"));
  if (!replays) PyErr_Clear();
  if (replays.get() == Py_True) {
    callable = bridge::make_replay(record);
    if (callable) entry.graph = bridge::make_lazy_graph(std::move(finished.record));
    return callable && entry.graph;
  }
  py::Ref module = bridge::build_graph_module(record);
  if (!module) return false;
  entry.graph = module;
  py::Ref examples = py::Ref::steal(PyList_New(0));
  for (size_t i = 0; i < record.placeholders(); i++)
    if (!examples || PyList_Append(examples.get(), record.nodes[i].real_input.get()) < 0) return false;
  py::Ref helper = capture_helper("compile_graph");
  if (!helper) return false;
  PyObject* arguments[] = {region.backend.get(), region.backend_name.get(), module.get(), examples.get()};
  Profile::Scope compiling(profile, Phase::kBackend);
  py::ResumeCollector as_outside(pause);
  callable = py::Ref::steal(PyObject_Vectorcall(helper.get(), arguments, 4, nullptr));
  if (!callable) return false;
  if (callable.get() == Py_None) callable = py::Ref();
  return true;
}

}  // namespace pellucid::translate
