// Blocks, regions and dominators, made of the instructions that normalize.cpp and merge_copies.cpp prepared.
#include "decompile/flow.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "bytecode/effects.h"
#include "decompile/ast.h"
#include "decompile/old_handlers.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

bool ends_flow(Op op) {
  return op == Op::JUMP_ABSOLUTE || op == Op::RETURN_VALUE || op == Op::RETURN_CONST || op == Op::RAISE_VARARGS || op == Op::RERAISE ||
         op == Op::INTERPRETER_EXIT || op == Op::END_FINALLY;
}

class Builder {
 public:
  Builder(const bytecode::Code& code, Flow& flow, const CodeChoices& choices) : code_(code), flow_(flow), choices_(choices) {}

  void build() {
    if (code_.instructions.empty()) no_form("no instructions");
    depths_ = depths_of(code_);
    normalize(code_, flow_, &leaders_, &row_of_);
    if (code_.version != 310) join_returned_comparisons(flow_);
    if (code_.version == 310) merge_old_exits(code_, flow_, row_of_, depths_, leaders_, choices_);
    merge_ends(code_, flow_, row_of_, choices_);
    if (flow_.end >= 0) leaders_[at(flow_.end)] = 1;
    find_regions();
    for (int i = 0; i < size(); ++i) {
      if (in(i).op == Op::POP_EXCEPT) leaders_[at(end_of_handler(i))] = 1;
    }
    split_behind_withs();
    merge_before_end(flow_, row_of_, depths_);
    if (code_.version >= 312) merge_small_exits(flow_, row_of_, depths_);
    if (code_.version >= 311) {
      const bool lambda = PyUnicode_CompareWithASCIIString(code_.name.get(), "<lambda>") == 0;
      if (!lambda) merge_placeless_returns(flow_, row_of_, depths_);
      merge_exits(flow_, row_of_, depths_, leaders_, lambda);
      merge_handler_ends(code_, flow_, row_of_, depths_);
    }
    if (code_.version >= 311) merge_reraises();
    merge_loop_tests(flow_, row_of_);
    find_matches(code_, flow_, depths_);
    replace_patterns();
    name_regions();
    place_nops();
    if (code_.version >= 310) split_breaks();
    make_blocks();
    reach();
    dominate();
  }

 private:
  const Instruction& in(int i) const { return flow_.ins[at(i)]; }
  int size() const { return static_cast<int>(flow_.ins.size()); }

  int skip_nops(int i) const {
    while (i < size() && in(i).op == Op::NOP) ++i;
    return i;
  }

  // One region per handler. Rows that differ in depth only by what stands on the stack do not occur in what compilers emit.
  void find_regions() {
    region_of_target_.assign(at(size()), -1);
    for (const bytecode::ExceptionRow& row : code_.rows) {
      const Instruction& first = code_.instructions[at(row.target)];
      // Not from any statement: the end of an async for, what a generator adds around everything.
      if (first.op == Op::END_ASYNC_FOR || first.op == Op::CLEANUP_THROW || (first.op == Op::CALL_INTRINSIC_1 && first.arg == 3)) continue;
      int& region = region_of_target_[at(row.target)];
      if (region < 0) {
        region = static_cast<int>(flow_.regions.size());
        Region made;
        made.handler = row.target;  // an instruction until blocks are made
        made.depth = row.depth;
        made.lasti = row.lasti;
        made.shared = code_.version == 308;
        made.idle = code_.version >= 311;
        flow_.regions.push_back(made);
      } else if (flow_.regions[at(region)].depth != row.depth) {
        no_form("a handler with two stack depths");
      }
      flow_.regions[at(region)].idle &= std::all_of(code_.instructions.begin() + row.start, code_.instructions.begin() + row.end,
                                                    [](const Instruction& one) { return one.op == Op::NOP; });
    }
    for (Region& region : flow_.regions) classify(region);
  }

  void classify(Region& region) {
    int i = skip_nops(region.handler);
    const auto is = [&](int k, Op op) { return k < size() && in(k).op == op; };
    if (is(i, Op::COPY) && is(i + 1, Op::POP_EXCEPT) && is(i + 2, Op::RERAISE)) {
      region.kind = RegionKind::kCleanup;
    } else if (is(i, Op::LOAD_CONST) && code_.consts[in(i).arg].get() == Py_None && i + 3 < size() && is_store(in(i + 1).op) &&
               is_delete(in(i + 2).op) && in(i + 1).arg == in(i + 2).arg && is(i + 3, Op::RERAISE)) {
      region.kind = RegionKind::kNameCleanup;
    } else if (is(i, Op::LIST_APPEND) || (is(i, Op::LOAD_CONST) && i + 3 < size() && is_store(in(i + 1).op) && is_delete(in(i + 2).op) &&
                                          is(i + 3, Op::LIST_APPEND))) {
      region.kind = RegionKind::kStarClause;
    } else if (is(i, Op::PUSH_EXC_INFO) && is(i + 1, Op::WITH_EXCEPT_START)) {
      region.kind = RegionKind::kWith;
      region.is_async = is(i + 2, Op::GET_AWAITABLE);
      int k = i + 2;
      while (k < size() && in(k).op != Op::POP_JUMP_IF_TRUE && in(k).op != Op::POP_JUMP_IF_FALSE) ++k;
      if (k >= size()) no_form("a with statement without end");
      int swallowed = in(k).op == Op::POP_JUMP_IF_TRUE ? in(k).target : k + 1;
      for (Op op : {Op::POP_TOP, Op::POP_EXCEPT, Op::POP_TOP, Op::POP_TOP}) {
        swallowed = skip_nops(swallowed);
        if (!is(swallowed, op)) no_form("an unknown end of a with statement");
        ++swallowed;
      }
      if (swallowed >= size()) no_form("a with statement without end");
      leaders_[at(swallowed)] = 1;
      region.after_with = swallowed;
    } else if (is(i, Op::PUSH_EXC_INFO)) {
      region.kind = RegionKind::kFinally;
      if (in(i).arg != 0) return;  // up to 3.10 known from what set it up
      if (is(skip_nops(i + 1), Op::POP_TOP)) {
        region.kind = RegionKind::kExcept;
        return;
      }
      // The type of the first clause is an expression: CHECK_EXC_MATCH comes before anything is stored, returned or left.
      int depth = 1;
      for (int k = i + 1; k < size() && depth > 0; ++k) {
        const Op op = in(k).op;
        if (op == Op::CHECK_EXC_MATCH || op == Op::CHECK_EG_MATCH) {
          // A try statement nested in a finally block matches its own exception, behind a PUSH_EXC_INFO of its own.
          region.kind = RegionKind::kExcept;
          region.is_star = op == Op::CHECK_EG_MATCH;
          return;
        }
        if (op == Op::PUSH_EXC_INFO || op == Op::RERAISE || op == Op::POP_TOP || op == Op::RETURN_VALUE || op == Op::POP_EXCEPT ||
            op == Op::RAISE_VARARGS || op == Op::FOR_ITER || (is_store(op) && in(k - 1).op != Op::COPY && !region_star_setup(i, k))) {
          return;
        }
      }
    } else if (is(i, Op::SWAP)) {
      region.kind = RegionKind::kComprehension;
    } else {
      no_form(std::string("a handler that begins with ") + bytecode::op_name(in(i).op));
    }
  }

  // except*: the exception is copied and a list for what is raised again is made before the first clause.
  bool region_star_setup(int handler, int k) const { return k - handler <= 4; }

  static bool is_store(Op op) { return op == Op::STORE_FAST || op == Op::STORE_NAME || op == Op::STORE_GLOBAL || op == Op::STORE_DEREF; }
  static bool is_delete(Op op) {
    return op == Op::DELETE_FAST || op == Op::DELETE_NAME || op == Op::DELETE_GLOBAL || op == Op::DELETE_DEREF;
  }

  int region_at(int i) const {
    const int row = row_of_[at(i)];
    return row < 0 ? -1 : region_of_target_[at(code_.rows[at(row)].target)];
  }

  // One conditional jump stands for all the code of a pattern.
  void replace_patterns() {
    for (size_t k = 0; k < flow_.cases.size(); ++k) {
      const CodeCase& one = flow_.cases[k];
      if (one.bare) continue;
      Instruction& test = flow_.ins[at(one.start)];
      test.op = Op::MATCH_CLASS;
      test.arg = static_cast<uint32_t>(k);
      test.target = one.fail;
      for (int i : {one.start, one.start + 1, one.next}) leaders_[at(i)] = 1;
    }
  }

  static constexpr uint8_t kBehindBreak = 2;  // a leader of that kind

  // Where a loop drops its iterator before anything is evaluated there stood a `break`: what follows is a copy of what follows the loop.
  // A `return` evaluates its value first, unless it is a constant.
  void split_breaks() {
    for (int loop = 0; loop < size(); ++loop) {
      if (in(loop).op != Op::FOR_ITER) continue;
      for (int i = loop + 1; i < in(loop).target; ++i) {
        if (in(i).op != Op::POP_TOP || depths_[at(i)] != depths_[at(loop)] || i + 2 >= size() || depths_[at(i) + 1] < 0) continue;
        const int next = skip_nops(i + 1);
        const Op op = in(next).op;
        const bool returns = op == Op::RETURN_VALUE || op == Op::RETURN_CONST || op == Op::POP_TOP || op == Op::POP_EXCEPT ||
                             op == Op::SWAP || op == Op::ROT_TWO || (op == Op::LOAD_CONST && in(next + 1).op == Op::RETURN_VALUE);
        if (!returns && ends_exit(next)) leaders_[at(next)] = kBehindBreak;
      }
    }
  }

  // Whether straight-line code from `i` on ends in a return.
  bool ends_exit(int i) const {
    for (; i < size() && in(i).target < 0 && row_of_[at(i)] < 0; ++i) {
      if (in(i).op == Op::RETURN_VALUE || in(i).op == Op::RETURN_CONST) return true;
      if (!bytecode::falls_through(in(i).op)) return false;
    }
    return false;
  }

  void make_blocks() {
    const int n = size();
    leaders_[0] = 1;
    for (int i = 0; i < n; ++i) {
      if (in(i).target >= 0) {
        leaders_[at(in(i).target)] = 1;
        leaders_[at(i + 1)] = 1;
      } else if (ends_flow(in(i).op) || in(i).op == Op::BEFORE_WITH || in(i).op == Op::BEFORE_ASYNC_WITH) {
        leaders_[at(i + 1)] = 1;
      }
      if ((i > 0 && region_of_[at(i)] != region_of_[at(i - 1)]) || in(i).op == Op::BEGIN_FINALLY) leaders_[at(i)] = 1;
    }
    for (const Region& region : flow_.regions) leaders_[at(region.handler)] = 1;
    flow_.block_of.assign(at(n), -1);
    for (int i = 0; i < n; ++i) {
      if (leaders_[at(i)]) {
        Block& made = flow_.blocks.emplace_back();
        made.start = i;
        made.region = region_of_[at(i)];
        made.behind_break = leaders_[at(i)] == kBehindBreak;
      }
      flow_.blocks.back().end = i + 1;
      flow_.block_of[at(i)] = static_cast<int>(flow_.blocks.size()) - 1;
    }
    for (size_t b = 0; b < flow_.blocks.size(); ++b) {
      Block& block = flow_.blocks[b];
      const Instruction& last = in(block.end - 1);
      if (!ends_flow(last.op) && b + 1 < flow_.blocks.size()) block.fall = static_cast<int>(b) + 1;
      if (last.target >= 0) (last.op == Op::JUMP_ABSOLUTE ? block.fall : block.jump) = flow_.block_of[at(last.target)];
      if (const int one = flow_.case_of[at(block.end - 1)]; one >= 0 && !flow_.cases[at(one)].bare)
        block.fall = flow_.block_of[at(flow_.cases[at(one)].next)];
      block.depth = depths_[at(block.start)];
    }
    for (int i = 0; i < n; ++i) {
      if (in(i).op == Op::BEGIN_FINALLY && region_of_target_[in(i).arg] >= 0) {
        flow_.regions[at(region_of_target_[in(i).arg])].end = flow_.block_of[at(i)];
      }
    }
    for (Region& region : flow_.regions) {
      region.handler = flow_.block_of[at(region.handler)];
      flow_.blocks[at(region.handler)].handler = true;
      if (region.after_with >= 0) region.after_with = flow_.block_of[at(region.after_with)];
    }
  }

  // A finally block that was entered by an exception raises it again, at each of its ends.
  void merge_reraises() {
    std::vector<std::vector<int>> ends(code_.rows.size());  // by row
    for (int i = 0; i < size(); ++i) {
      if (in(i).op == Op::RERAISE && in(i).arg == 0 && row_of_[at(i)] >= 0) ends[at(row_of_[at(i)])].push_back(i);
    }
    for (const Region& region : flow_.regions) {
      const int row = row_of_[at(region.handler)];
      if (region.kind != RegionKind::kFinally || row < 0) continue;
      int last = -1;
      for (size_t k = ends[at(row)].size(); k-- > 0 && ends[at(row)][k] > region.handler;) {
        const int i = ends[at(row)][k];
        Instruction& end = flow_.ins[at(i)];
        if (end.op != Op::RERAISE) continue;
        if (last < 0 || depths_[at(i)] != depths_[at(last)]) {
          last = i;
          continue;
        }
        end.op = Op::JUMP_ABSOLUTE;
        end.target = last;
        end.arg = 0;
        end.position = {};
      }
    }
  }

  // Where `break` leaves a with statement, what follows the loop begins behind the call that ends it.
  void split_behind_withs() {
    if (code_.version < 312) return;
    std::set<std::tuple<int, int, int>> withs;
    const auto place = [&](int i) {
      const bytecode::Position& p = in(i).position;
      return std::tuple{p.line, p.column, p.end_column};
    };
    for (int i = 0; i < size(); ++i) {
      if (in(i).op == Op::BEFORE_WITH) withs.insert(place(i));
    }
    for (int i = 5; i + 1 < size() && !withs.empty(); ++i) {
      const bool call = in(i - 1).op == Op::CALL && in(i - 1).arg == 2 && in(i).op == Op::POP_TOP;
      if (!call || withs.count(place(i)) == 0 || place(i) != place(i - 1)) continue;
      const Instruction& left = in(i - 5);
      const bytecode::Position& p = left.position;
      if (left.op == Op::NOP && p.line == p.end_line && p.end_column - p.column == 5) leaders_[at(i) + 1] = 1;
    }
  }

  // Behind POP_EXCEPT, and behind the three instructions that unbind the name of `except ... as name`.
  int end_of_handler(int i) const {
    ++i;
    if (i + 2 < size() && in(i).op == Op::LOAD_CONST && code_.consts[in(i).arg].get() == Py_None && is_store(in(i + 1).op) &&
        is_delete(in(i + 2).op) && in(i + 1).arg == in(i + 2).arg) {
      return i + 3;
    }
    return i;
  }

  // A handler's own code is guarded by what restores the exception state; what guards that is around the whole statement.
  void name_regions() {
    for (Region& region : flow_.regions) {
      int parent = region_at(region.handler);
      const bool own_cleanup =
          region.kind == RegionKind::kExcept || region.kind == RegionKind::kFinally || region.kind == RegionKind::kWith;
      if (own_cleanup && parent >= 0 && flow_.regions[at(parent)].kind == RegionKind::kCleanup) {
        parent = region_at(flow_.regions[at(parent)].handler);
      }
      region.parent = parent;
    }
    for (Region& region : flow_.regions) {
      int level = 0;
      for (int up = region.parent; up >= 0; up = flow_.regions[at(up)].parent) {
        if (++level > static_cast<int>(flow_.regions.size())) no_form("handlers that guard each other");
      }
      region.level = level + 1;
    }
  }

  // Instructions without effect are in no row; they belong to the outer one of what stands before and behind them.
  void place_nops() {
    region_of_.resize(at(size()));
    for (int i = 0; i < size(); ++i) region_of_[at(i)] = region_at(i);
    if (code_.version < 311) return;  // where the rows were made of blocks every instruction is where it belongs
    std::map<std::tuple<int, int, int>, int> copies;
    std::vector<std::vector<int>> sources(at(size()));  // of jumps, by target
    const auto key = [&](int i) {
      const bytecode::Position& p = in(i).position;
      return std::tuple{p.line, p.column, p.end_column};
    };
    for (int i = 0; i < size(); ++i) {
      if (code_.instructions[at(i)].op == Op::NOP) ++copies[key(i)];
      if (in(i).target >= 0) sources[at(in(i).target)].push_back(i);
    }
    for (int& region : region_of_) {  // inlined comprehensions are expressions
      while (region >= 0 && flow_.regions[at(region)].kind == RegionKind::kComprehension) region = flow_.regions[at(region)].parent;
    }
    const auto level = [&](int region) { return region < 0 ? 0 : flow_.regions[at(region)].level; };
    const auto common = [&](int outer, int inner) {  // what is around both
      while (!flow_.within(inner, outer)) outer = flow_.regions[at(outer)].parent;
      return outer;
    };
    std::vector<int> begins(flow_.regions.size(), size());  // the first instruction that a region guards
    for (int i = size(); i-- > 0;) {
      for (int region = region_of_[at(i)]; region >= 0; region = flow_.regions[at(region)].parent) begins[at(region)] = i;
    }
    for (int i = 0; i < size(); ++i) {
      if (code_.instructions[at(i)].op != Op::NOP || region_of_[at(i)] >= 0) continue;
      int end = i;
      while (end < size() && code_.instructions[at(end)].op == Op::NOP && region_of_[at(end)] < 0) ++end;
      const bool before = i > 0 && !ends_flow(in(i - 1).op);
      int chosen = end < size() ? region_of_[at(end)] : -1;
      if (before && (end >= size() || level(region_of_[at(i - 1)]) < level(chosen))) chosen = common(region_of_[at(i - 1)], chosen);
      // A `pass` at the end of what is guarded, unless it begins a finally block, of which there are copies.
      const int inner = before ? region_of_[at(i - 1)] : -1;
      if (before && level(inner) > level(chosen) && !(inner >= 0 && flow_.regions[at(inner)].idle)) {
        const auto entered = [&](int k) {
          return std::any_of(sources[at(k)].begin(), sources[at(k)].end(),
                             [&](int from) { return !flow_.within(region_of_[at(from)], inner); });
        };
        for (; i < end && in(i).position.line == in(i).position.end_line && copies[key(i)] == 1 && !entered(i); ++i)
          region_of_[at(i)] = inner;
      }
      const int first = i;
      for (; i < end; ++i) region_of_[at(i)] = chosen;
      // What is left of `try:` stands outside of what it begins to guard.
      for (int k = end; k-- > first && chosen >= 0 && end < size() && begins[at(chosen)] == end;) {
        const bytecode::Position &p = in(k).position, &q = in(end).position;
        if (p.line >= p.end_line || q.line < p.line || q.line > p.end_line) break;
        chosen = flow_.regions[at(chosen)].parent;
        for (int outer = first; outer <= k; ++outer) region_of_[at(outer)] = chosen;
      }
    }
  }

  void successors(int b, std::vector<int>* out) const {
    const Block& block = flow_.blocks[at(b)];
    out->clear();
    if (block.fall >= 0) out->push_back(block.fall);
    if (block.jump >= 0) out->push_back(block.jump);
    if (block.region >= 0) out->push_back(flow_.regions[at(block.region)].handler);
  }

  void reach() {
    // First without handlers, to know what is cold; then all, in postorder without recursion.
    std::vector<int> pending{0};
    std::vector<uint8_t> warm(flow_.blocks.size());
    while (!pending.empty()) {
      const int b = pending.back();
      pending.pop_back();
      if (warm[at(b)]) continue;
      warm[at(b)] = 1;
      for (int s : {flow_.blocks[at(b)].fall, flow_.blocks[at(b)].jump}) {
        if (s >= 0 && !warm[at(s)]) pending.push_back(s);
      }
    }
    std::vector<std::pair<int, size_t>> path;
    std::vector<uint8_t> state(flow_.blocks.size());  // 1: on the path, 2: done
    std::vector<std::vector<int>> next(flow_.blocks.size());
    successors(0, &next[0]);
    path.push_back({0, 0});
    state[0] = 1;
    while (!path.empty()) {
      const int b = path.back().first;
      if (path.back().second < next[at(b)].size()) {
        const int s = next[at(b)][path.back().second++];
        if (state[at(s)] == 1) {
          flow_.blocks[at(s)].header = true;
          flow_.blocks[at(s)].back_edges.push_back(b);
        } else if (state[at(s)] == 0) {
          state[at(s)] = 1;
          successors(s, &next[at(s)]);
          path.push_back({s, 0});
        }
      } else {
        state[at(b)] = 2;
        flow_.blocks[at(b)].reachable = true;
        flow_.blocks[at(b)].cold = !warm[at(b)];
        postorder_.push_back(b);
        path.pop_back();
      }
    }
    for (size_t i = 0; i < postorder_.size(); ++i) {
      flow_.blocks[at(postorder_[i])].order = static_cast<int>(postorder_.size() - 1 - i);
    }
    for (int b : postorder_) {
      const Block& block = flow_.blocks[at(b)];
      for (int s : {block.fall, block.jump}) {
        if (s < 0) continue;
        flow_.blocks[at(s)].preds.push_back(b);
        ++flow_.blocks[at(s)].in_edges;
      }
      const Op last = in(block.end - 1).op;
      (void)last;
    }
    for (size_t b = 0; b < flow_.blocks.size() && code_.version < 310; ++b) {
      const Block& dead = flow_.blocks[b];
      if (dead.reachable || dead.fall < 0 || in(dead.end - 1).op != Op::JUMP_ABSOLUTE || dead.fall > static_cast<int>(b)) continue;
      flow_.blocks[at(dead.fall)].dead_back = static_cast<int>(b);
      if (flow_.blocks[at(dead.fall)].reachable) flow_.blocks[at(dead.fall)].header = true;  // of a loop that never comes to its next round
    }
    for (int b : postorder_) {
      const Op first = in(flow_.blocks[at(b)].start).op;
      if (first == Op::FOR_ITER || first == Op::GET_ANEXT) flow_.blocks[at(b)].header = true;
    }
  }

  void dominate() {
    std::vector<std::vector<int>> preds(flow_.blocks.size());
    std::vector<int> next;
    for (int b : postorder_) {
      successors(b, &next);
      for (int s : next) preds[at(s)].push_back(b);
    }
    std::vector<int>& idom = idom_;
    find_dominators(preds);
    if (!reducible()) iterate_dominators(preds);
    for (size_t i = postorder_.size(); i-- > 0;) {
      const int b = postorder_[i];
      if (b == 0) continue;
      flow_.blocks[at(b)].idom = idom[at(b)];
      flow_.blocks[at(idom[at(b)])].dominated.push_back(b);
    }
    flow_.last_dominated.resize(flow_.blocks.size());
    for (size_t b = 0; b < flow_.blocks.size(); ++b) flow_.last_dominated[b] = static_cast<int>(b);
    for (int b : postorder_) {
      const bool made = in(flow_.blocks[at(b)].start).offset < 0;  // by us: stands nowhere
      if (b == 0 || made) continue;
      int& last = flow_.last_dominated[at(idom[at(b)])];
      last = std::max(last, flow_.last_dominated[at(b)]);
    }
    for (size_t b = 0; b < flow_.blocks.size(); ++b) {
      for (int source : flow_.blocks[b].back_edges) {
        if (!dominates(static_cast<int>(b), source)) no_form("a jump into a loop");
      }
    }
  }

  int order(int b) const { return flow_.blocks[at(b)].order; }

  // Dominators of the graph without the edges that go back, which are those of the whole graph if it is reducible. Nearest common
  // dominators are found by jumps (Myers' skew-binary ancestors), so that many jumps to one place cost no more than few.
  void find_dominators(const std::vector<std::vector<int>>& preds) {
    idom_.assign(flow_.blocks.size(), -1);
    depth_.assign(flow_.blocks.size(), 0);
    std::vector<int> jump(flow_.blocks.size(), 0);
    idom_[0] = 0;
    const auto common = [&](int a, int b) {
      while (depth_[at(a)] > depth_[at(b)]) a = depth_[at(jump[at(a)])] >= depth_[at(b)] ? jump[at(a)] : idom_[at(a)];
      while (depth_[at(b)] > depth_[at(a)]) b = depth_[at(jump[at(b)])] >= depth_[at(a)] ? jump[at(b)] : idom_[at(b)];
      while (a != b) {
        const bool far = jump[at(a)] != jump[at(b)];
        a = far ? jump[at(a)] : idom_[at(a)];
        b = far ? jump[at(b)] : idom_[at(b)];
      }
      return a;
    };
    for (size_t i = postorder_.size(); i-- > 0;) {
      const int b = postorder_[i];
      if (b == 0) continue;
      int best = -1;
      for (int p : preds[at(b)]) {
        if (order(p) >= order(b)) continue;  // back
        best = best < 0 ? p : common(best, p);
      }
      const int j = jump[at(best)];
      idom_[at(b)] = best;
      depth_[at(b)] = depth_[at(best)] + 1;
      jump[at(b)] = depth_[at(best)] - depth_[at(j)] == depth_[at(j)] - depth_[at(jump[at(j)])] ? jump[at(j)] : best;
    }
    number_tree();
    back_edges_.clear();
    for (int b : postorder_) {
      for (int p : preds[at(b)]) {
        if (order(p) >= order(b)) back_edges_.emplace_back(p, b);
      }
    }
  }

  // Where each block's subtree begins and ends in the tree of dominators.
  void number_tree() {
    std::vector<int> size(flow_.blocks.size(), 1);
    for (int b : postorder_) {
      if (b != 0) size[at(idom_[at(b)])] += size[at(b)];
    }
    enter_.assign(flow_.blocks.size(), 0);
    leave_.assign(flow_.blocks.size(), 0);
    std::vector<int> next(flow_.blocks.size(), 1);
    for (size_t i = postorder_.size(); i-- > 0;) {
      const int b = postorder_[i];
      if (b != 0) {
        enter_[at(b)] = next[at(idom_[at(b)])];
        next[at(idom_[at(b)])] += size[at(b)];
      }
      leave_[at(b)] = enter_[at(b)] + size[at(b)];
      next[at(b)] = enter_[at(b)] + 1;
    }
  }

  bool dominates(int above, int below) const { return enter_[at(above)] <= enter_[at(below)] && enter_[at(below)] < leave_[at(above)]; }

  bool reducible() const {
    return std::all_of(back_edges_.begin(), back_edges_.end(), [&](const auto& edge) { return dominates(edge.second, edge.first); });
  }

  void iterate_dominators(const std::vector<std::vector<int>>& preds) {
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t i = postorder_.size(); i-- > 0;) {
        const int b = postorder_[i];
        if (b == 0) continue;
        int best = -1;
        for (int p : preds[at(b)]) {
          int other = p;
          if (best < 0) best = p;
          while (best != other) {
            while (order(best) > order(other)) best = idom_[at(best)];
            while (order(other) > order(best)) other = idom_[at(other)];
          }
        }
        if (idom_[at(b)] != best) {
          idom_[at(b)] = best;
          changed = true;
        }
      }
    }
    number_tree();
  }

  const bytecode::Code& code_;
  Flow& flow_;
  const CodeChoices& choices_;
  std::vector<uint8_t> leaders_;
  std::vector<int> row_of_;
  std::vector<int> depths_;
  std::vector<int> region_of_target_;
  std::vector<int> region_of_;  // by instruction
  std::vector<int> postorder_;
  std::vector<int> idom_;                   // by block
  std::vector<int> depth_, enter_, leave_;  // in the tree of dominators
  std::vector<std::pair<int, int>> back_edges_;
};

}  // namespace

bool Flow::within(int region, int outer) const {
  if (outer < 0) return true;
  while (region >= 0 && regions[at(region)].level > regions[at(outer)].level) region = regions[at(region)].parent;
  return region == outer;
}

bool Flow::only_jumps(int block) const {
  const Block& b = blocks[at(block)];
  if (b.fall < 0 || b.jump >= 0 || b.header || (b.region >= 0 && regions[at(b.region)].idle)) return false;
  for (int i = b.start; i < b.end; ++i) {
    if (ins[at(i)].op != Op::NOP && ins[at(i)].op != Op::JUMP_ABSOLUTE) return false;
  }
  return true;
}

int Flow::resolve(int block) const {
  for (size_t steps = 0; block >= 0 && steps < blocks.size() && only_jumps(block); ++steps) block = blocks[at(block)].fall;
  return block;
}

Flow build_flow(const bytecode::Code& code, const CodeChoices& choices) {
  Flow flow;
  Builder(code, flow, choices).build();
  return flow;
}

}  // namespace pellucid::decompile
