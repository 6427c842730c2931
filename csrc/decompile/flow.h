// The control-flow graph as the decompiler needs it: copies that the compiler made of loop tests and of short exits merged again, waiting
// loops (SEND) and iteration over async iterators as single steps, exception rows as a tree of regions, dominators. Knows nothing of
// expressions.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "bytecode/code.h"
#include "decompile/choices.h"
#include "decompile/patterns.h"

namespace pellucid::decompile {

using bytecode::Instruction;
using bytecode::Op;

enum class RegionKind : uint8_t {
  kExcept,   // try ... except
  kFinally,  // try ... finally
  kWith,
  kCleanup,        // around a handler: restores the exception state and raises again
  kNameCleanup,    // around the body of `except ... as name`
  kStarClause,     // around the body of an `except*` clause
  kComprehension,  // 3.12: restores the variables of an inlined comprehension
};

struct Region {  // all that one handler guards
  RegionKind kind = RegionKind::kFinally;
  int handler = -1;  // block
  int depth = 0;
  bool lasti = false;
  bool is_async = false;  // with
  bool is_star = false;   // except*
  bool idle = false;      // guards nothing that has an effect: see dead_handlers.h
  int parent = -1;
  int level = 0;        // number of parents
  int after_with = -1;  // kWith: the block where execution goes on when the exception was swallowed
  bool shared = false;  // 3.8: the finally block stands once, not copied to where it is left
  int end = -1;         // 3.8: the block where what is guarded ends normally
};

struct Block {
  int start = 0, end = 0;  // instructions [start, end)
  int fall = -1, jump = -1;
  int region = -1;
  int depth = -1;  // stack depth at its start
  bool reachable = false;
  bool header = false;        // of a loop
  bool handler = false;       // entered by an exception
  bool cold = false;          // reached through handlers only
  bool behind_break = false;  // a copy of what follows a loop, which dropped its iterator right before
  int idom = -1;
  int order = -1;               // in reverse postorder
  int in_edges = 0;             // ordinary edges from reachable blocks
  std::vector<int> preds;       // sources of ordinary edges
  std::vector<int> dominated;   // whose idom this is
  std::vector<int> back_edges;  // header: sources of edges back to it
  int dead_back = -1;           // up to 3.9, header: the last block that would jump back to it and is never reached
};

class Places {  // of instructions: lines, first and last columns
 public:
  void add(const Instruction& in) { places_.push_back(of(in)); }
  // Once one was asked for, none may be added.
  bool has(const Instruction& in) const {
    if (!sorted_) std::sort(places_.begin(), places_.end());
    sorted_ = true;
    return std::binary_search(places_.begin(), places_.end(), of(in));
  }

 private:
  static std::tuple<int, int, int> of(const Instruction& in) { return {in.position.line, in.position.column, in.position.end_column}; }

  mutable std::vector<std::tuple<int, int, int>> places_;
  mutable bool sorted_ = false;
};

struct Flow {
  std::vector<Instruction> ins;
  std::vector<uint8_t> hidden;  // instructions that stand for nothing in the source
  std::vector<Block> blocks;
  std::vector<Region> regions;
  int end = -1, end_last = -1;        // the first and the last instruction of the end of the code without `return`
  Places taken;                       // of instructions that are more than a jump or the end of something
  std::vector<int> block_of;          // by instruction
  std::vector<int> last_dominated;    // by block: the last one it dominates, in the order of the code
  std::vector<uint8_t> tested_below;  // by instruction: the start of a loop test that the compiler repeats at the end of the loop
  std::vector<CodePattern> patterns;
  std::vector<CodeCase> cases;
  std::vector<int> case_of;  // by instruction: the case that begins there, -1: none

  // Whether `outer` is `region` or one of its parents; -1 (no region) is everyone's parent.
  bool within(int region, int outer) const;
  // Follows blocks that do nothing but jump.
  int resolve(int block) const;
  bool only_jumps(int block) const;
};

// Builds the graph. Throws NoForm where the code is not like any compiler's.
Flow build_flow(const bytecode::Code& code, const CodeChoices& choices);

// The first parts of it rewrite `flow.ins` before blocks are made: normalize.cpp,
void normalize(const bytecode::Code& code, Flow& flow, std::vector<uint8_t>* leaders, std::vector<int>* row_of);
void split_pairs(bytecode::Code& code);
bool is_conditional(Op op);
// POP_JUMP_IF_TRUE for POP_JUMP_IF_FALSE and so on; any other operation is its own opposite.
Op opposite(Op op);
bool same_position(const Instruction& a, const Instruction& b);

// merge_copies.cpp,
void merge_loop_tests(Flow& flow, const std::vector<int>& row_of);
void merge_ends(const bytecode::Code& code, Flow& flow, const std::vector<int>& row_of, const CodeChoices& choices);
void merge_before_end(Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths);
void merge_small_exits(Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths);
void merge_handler_ends(const bytecode::Code& code, Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths);
void merge_placeless_returns(Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths);
void merge_exits(Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths, const std::vector<uint8_t>& leaders,
                 bool lambda);

// and old_exits.cpp.
void merge_old_exits(const bytecode::Code& code, Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths,
                     const std::vector<uint8_t>& leaders, const CodeChoices& choices);
void join_returned_comparisons(Flow& flow);

}  // namespace pellucid::decompile
