// The graph: dominators, loops and regions of small functions.
#include "decompile/flow.h"

#include <algorithm>
#include <stdexcept>

#include "decompile/compiled.h"

namespace pellucid::decompile {
namespace {

struct Graph {
  explicit Graph(const std::string& text) {
    const py::Ref object = function_code(text);
    if (!object || !bytecode::decode(object.get(), code)) throw std::runtime_error("no code");
    split_pairs(code);
    flow = build_flow(code, CodeChoices(choices, "f"));
  }

  // The block where a constant is loaded.
  int at(long constant) const {
    for (size_t i = 0; i < flow.ins.size(); ++i) {
      if (flow.ins[i].op != Op::LOAD_CONST || flow.block_of[i] < 0) continue;
      PyObject* value = code.consts[flow.ins[i].arg].get();
      if (PyLong_CheckExact(value) && PyLong_AsLong(value) == constant && block(flow.block_of[i]).reachable) return flow.block_of[i];
    }
    throw std::runtime_error("no such constant");
  }
  const Block& block(int index) const { return flow.blocks[static_cast<size_t>(index)]; }
  const Region& region(int index) const { return flow.regions[static_cast<size_t>(index)]; }
  RegionKind kind_at(long constant) const { return region(block(at(constant)).region).kind; }

  bool dominates(int outer, int inner) const {
    while (inner >= 0 && inner != outer) inner = block(inner).idom;
    return inner == outer;
  }

  // Whether ordinary edges lead from the entry to `wanted` without passing `avoided`.
  bool reaches(int wanted, int avoided) const {
    std::vector<int> open{0};
    std::vector<bool> seen(flow.blocks.size());
    while (!open.empty()) {
      const int now = open.back();
      open.pop_back();
      if (now == avoided || seen[static_cast<size_t>(now)]) continue;
      if (now == wanted) return true;
      seen[static_cast<size_t>(now)] = true;
      for (size_t next = 0; next < flow.blocks.size(); ++next) {
        const std::vector<int>& from = flow.blocks[next].preds;
        if (std::find(from.begin(), from.end(), now) != from.end()) open.push_back(static_cast<int>(next));
      }
    }
    return false;
  }

  bytecode::Code code;
  Choices choices;
  Flow flow;
};

TEST(Flow, ABranchDominatesItsArmsAndWhereTheyMeet) {
  const Graph graph("def f(a):\n  a(1)\n  if a:\n    a(2)\n  else:\n    a(3)\n  a(4)\n");
  const int top = graph.at(1), left = graph.at(2), right = graph.at(3), meet = graph.at(4);
  EXPECT_EQ(graph.block(left).idom, top);
  EXPECT_EQ(graph.block(right).idom, top);
  EXPECT_EQ(graph.block(meet).idom, top);
  EXPECT_FALSE(graph.dominates(left, meet));
  EXPECT_EQ(graph.block(meet).in_edges, 2);
  EXPECT_TRUE(graph.flow.regions.empty());
}

TEST(Flow, DominatorsAreWhatEveryWayPasses) {
  const Graph graph(
      "def f(a):\n  for i in a(1):\n    while a(2) and a(3):\n      if a(4):\n        continue\n      elif a(5):\n        break\n"
      "      a(6)\n    else:\n      a(7)\n    a(8)\n  return a(9) if a(10) or a(11) else a(12)\n");
  const auto count = static_cast<int>(graph.flow.blocks.size());
  int reachable = 0;
  for (int inner = 0; inner < count; ++inner) {
    if (!graph.block(inner).reachable) continue;
    ++reachable;
    ASSERT_TRUE(graph.reaches(inner, -1)) << inner;
    for (int outer = 0; outer < count; ++outer) {
      if (!graph.block(outer).reachable) continue;
      EXPECT_EQ(graph.dominates(outer, inner), !graph.reaches(inner, outer)) << outer << " and " << inner;
    }
  }
  EXPECT_GE(reachable, 12);
}

TEST(Flow, ALoopHasOneHeader) {
  const Graph graph("def f(a):\n  a(1)\n  while a(2):\n    if a(3):\n      a(4)\n      continue\n    a(5)\n  a(6)\n");
  const auto headers = std::count_if(graph.flow.blocks.begin(), graph.flow.blocks.end(), [](const Block& block) { return block.header; });
  EXPECT_EQ(headers, 1);
  const int header = graph.at(2);
  EXPECT_TRUE(graph.block(header).header);
  ASSERT_FALSE(graph.block(header).back_edges.empty());
  for (const int from : graph.block(header).back_edges) EXPECT_TRUE(graph.dominates(header, from));
  EXPECT_TRUE(graph.dominates(header, graph.at(6)));
  EXPECT_FALSE(graph.dominates(graph.at(3), graph.at(6)));
}

TEST(Flow, WhatAHandlerGuardsIsItsRegion) {
  const Graph graph(
      "def f(a):\n  a(1)\n  try:\n    a(2)\n    try:\n      a(3)\n    except a as e:\n      a(4)\n    a(5)\n  finally:\n    a(6)\n  "
      "a(7)\n");
  EXPECT_EQ(graph.block(graph.at(1)).region, -1);
  EXPECT_EQ(graph.block(graph.at(7)).region, -1);
  const int outer = graph.block(graph.at(2)).region, inner = graph.block(graph.at(3)).region;
  ASSERT_GE(outer, 0);
  ASSERT_GE(inner, 0);
  EXPECT_EQ(graph.region(outer).kind, RegionKind::kFinally);
  EXPECT_EQ(graph.region(inner).kind, RegionKind::kExcept);
  EXPECT_EQ(graph.kind_at(4), RegionKind::kNameCleanup);
  EXPECT_EQ(graph.block(graph.at(5)).region, outer);
  EXPECT_TRUE(graph.flow.within(inner, outer));
  EXPECT_FALSE(graph.flow.within(outer, inner));
  EXPECT_TRUE(graph.flow.within(outer, -1));
  EXPECT_TRUE(graph.block(graph.region(inner).handler).handler);
  EXPECT_TRUE(graph.block(graph.at(4)).cold);
  EXPECT_FALSE(graph.block(graph.at(5)).cold);
}

TEST(Flow, WithKnowsWhereASwallowedExceptionGoesOn) {
  const Graph graph("def f(a):\n  with a:\n    a(1)\n  a(2)\n");
  const Region& region = graph.region(graph.block(graph.at(1)).region);
  EXPECT_EQ(region.kind, RegionKind::kWith);
  EXPECT_FALSE(region.is_async);
  ASSERT_GE(region.after_with, 0);
  EXPECT_EQ(graph.flow.resolve(region.after_with), graph.at(2));
  EXPECT_EQ(graph.block(graph.at(2)).region, -1);
}

}  // namespace
}  // namespace pellucid::decompile
