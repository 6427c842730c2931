// Merges the copies that compilers make again, before there are blocks: the test of a while loop below its body, the end of the code and
// short exits in each branch. What is a copy is known by its position in the source. Knows nothing of blocks.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "decompile/ast.h"
#include "decompile/flow.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

// Only one of two copies may find a variable unbound.
bool same_load(Op a, Op b) {
  const auto checked = [](Op op) { return op == Op::LOAD_FAST_CHECK ? Op::LOAD_FAST : op; };
  return checked(a) == checked(b);
}

bool same_step(const Instruction& a, const Instruction& b) {
  return same_load(a.op, b.op) && (a.target >= 0) == (b.target >= 0) && (a.target >= 0 || a.arg == b.arg) && same_position(a, b);
}

int past_jumps(const Flow& flow, int i) {
  const int n = static_cast<int>(flow.ins.size());
  for (int steps = 0; i < n && steps < n; ++steps) {
    if (flow.ins[at(i)].op == Op::JUMP_ABSOLUTE) {
      i = flow.ins[at(i)].target;
    } else if (flow.hidden[at(i)] != 0) {
      ++i;
    } else {
      break;
    }
  }
  return i;
}

// Walks two parts of the code in step, from (a, b) on; true if they do the same until both reach the same instructions.
bool walk_alike(const Flow& flow, int a, int b, int limit) {
  std::set<std::pair<int, int>> seen;
  std::vector<std::pair<int, int>> pending{{a, b}};
  const int n = static_cast<int>(flow.ins.size());
  // Where a jump leads from `i` on, without what is left of another one at its own place.
  const auto led = [&](int i, const Instruction& jump) {
    i = past_jumps(flow, i);
    while (i < n && flow.ins[at(i)].op == Op::NOP && same_position(flow.ins[at(i)], jump)) i = past_jumps(flow, i + 1);
    return i;
  };
  while (!pending.empty()) {
    auto [x, y] = pending.back();
    pending.pop_back();
    for (;;) {
      x = past_jumps(flow, x);
      y = past_jumps(flow, y);
      if (x == y || !seen.insert({x, y}).second) break;
      if (x >= n || y >= n || --limit < 0) return false;
      const Instruction &p = flow.ins[at(x)], &q = flow.ins[at(y)];
      if (!same_position(p, q)) return false;
      if (p.target >= 0) {
        if (p.op == q.op) {
          pending.push_back({led(p.target, p), led(q.target, q)});
        } else if (p.op == opposite(q.op)) {
          pending.push_back({led(p.target, p), led(y + 1, q)});
          ++x;
          y = led(q.target, q);
          continue;
        } else {
          return false;
        }
      } else if (!same_step(p, q) || p.op == Op::RETURN_VALUE || p.op == Op::RAISE_VARARGS || p.op == Op::RERAISE) {
        return false;
      }
      ++x;
      ++y;
    }
  }
  return true;
}

bool is_exit(Op op) { return op == Op::RETURN_VALUE || op == Op::RETURN_CONST || op == Op::RAISE_VARARGS || op == Op::RERAISE; }

}  // namespace

void merge_loop_tests(Flow& flow, const std::vector<int>& row_of) {
  const int n = static_cast<int>(flow.ins.size());
  using Key = std::tuple<int, int, int, int>;
  std::map<Key, std::vector<int>> jumps;
  const auto key = [&](int i) {
    const bytecode::Position& p = flow.ins[at(i)].position;
    return Key{p.line, p.column, p.end_line, p.end_column};
  };
  const auto hidden = [&](int i) { return flow.ins[at(i)].op == Op::NOP && flow.hidden[at(i)] != 0; };
  for (int i = 0; i < n; ++i) {
    const Op op = flow.ins[at(i)].op;
    if (!is_conditional(op) || flow.ins[at(i)].position.line < 0) continue;
    std::vector<int>& same = jumps[key(i)];
    const int target = flow.ins[at(i)].target;
    if (target <= i) {
      for (size_t k = same.size(); k-- > 0;) {
        const int first = same[k];
        if (flow.ins[at(first)].op != opposite(op) || flow.ins[at(first)].op == op || first >= target) continue;
        int a = first, b = i;
        while (a > 0 && b - 1 > first) {
          const Instruction &p = flow.ins[at(a - 1)], &q = flow.ins[at(b - 1)];
          if (hidden(b - 1) || hidden(a - 1)) {  // also a jump back that was joined with what jumps over it
            hidden(b - 1) ? --b : --a;
            continue;
          }
          const bool same_jump = p.op == Op::JUMP_ABSOLUTE && q.op == Op::JUMP_ABSOLUTE;
          if (row_of[at(a - 1)] != row_of[at(b - 1)]) break;
          if (!same_jump && !(same_position(p, q) && (same_load(p.op, q.op) || (p.target >= 0 && p.op == opposite(q.op))) &&
                              (p.target >= 0 || p.arg == q.arg) && (p.op != Op::NOP || flow.hidden[at(a - 1)] != 0))) {
            break;
          }
          --a;
          --b;
        }
        // A test begins with no jump.
        while (a < first && (hidden(a) || flow.ins[at(a)].op == Op::JUMP_ABSOLUTE)) ++a;
        while (b < i && (hidden(b) || flow.ins[at(b)].op == Op::JUMP_ABSOLUTE)) ++b;
        if (!walk_alike(flow, a, b, 100000)) continue;
        flow.ins[at(b)].op = Op::JUMP_ABSOLUTE;
        flow.ins[at(b)].target = a;
        flow.ins[at(b)].arg = 0;
        flow.ins[at(b)].position = {};
        flow.tested_below[at(a)] = 1;
        break;
      }
    }
    same.push_back(i);
  }
}

using Place = std::tuple<int, int, int>;

Place place_of(const Instruction& in) { return {in.position.line, in.position.column, in.position.end_column}; }

// Whether what ends a handler has the place of a `pass` in it, which is as wide as `None`: with `return ` in front, that would stand
// further to the right.
bool at_pass(const Flow& flow, int start) {
  if (start < 1 || flow.ins[at(start - 1)].op != Op::POP_EXCEPT) return false;
  const bytecode::Position& p = flow.ins[at(start - 1)].position;
  for (int i = start - 2; i >= 0; --i) {
    const Instruction& in = flow.ins[at(i)];
    if (in.op != Op::CHECK_EXC_MATCH && in.op != Op::POP_TOP && in.op != Op::STORE_FAST) continue;
    const bytecode::Position& clause = in.position;
    if (clause.line < clause.end_line && clause.line < p.line && clause.end_line >= p.line) return p.column - 7 <= clause.column;
  }
  return false;
}

// Whether a statement stands behind the test of its branch, on one line with it.
bool behind_colon(const Flow& flow, int start) {
  constexpr int kColon = 2;  // `: `
  const bytecode::Position& p = flow.ins[at(start)].position;
  for (int i = start - 1; i >= 0 && flow.ins[at(i)].position.line == p.line; --i) {
    const Instruction& in = flow.ins[at(i)];
    if (is_conditional(in.op) && in.position.end_line == p.line && in.position.end_column + kColon == p.column) return true;
  }
  return false;
}

// Where `return` leaves a with statement, a finally block or a handler its own place is kept by an instruction before the copy of what ends
// these: one without effect, or the end of the handler. `taken`: places of other instructions.
bool behind_return(const Flow& flow, int start, const Places& taken) {
  const auto calls_exit = [&](int i) {
    return i + 1 < static_cast<int>(flow.ins.size()) && flow.ins[at(i)].op == Op::CALL && flow.ins[at(i)].arg == 2 &&
           flow.ins[at(i + 1)].op == Op::POP_TOP;
  };
  bool copied = false;  // what ends a with statement, here and elsewhere
  for (int i = start - 1; i >= 0; --i) {
    const Instruction& in = flow.ins[at(i)];
    if (i > 0 && in.op == Op::STORE_FAST && flow.ins[at(i + 1)].op == Op::DELETE_FAST && flow.ins[at(i + 1)].arg == in.arg &&
        flow.ins[at(i - 1)].op == Op::LOAD_CONST) {
      --i;  // `as name` is unbound
      continue;
    }
    if (in.target >= 0 || in.op == Op::RETURN_VALUE || in.op == Op::RETURN_CONST || in.op == Op::RAISE_VARARGS || in.op == Op::RERAISE ||
        in.op == Op::STORE_FAST) {
      return false;
    }
    if (calls_exit(i)) {
      for (int k = 0; k < static_cast<int>(flow.ins.size()) && !copied; ++k) {
        copied = k != i && calls_exit(k) && place_of(flow.ins[at(k)]) == place_of(in);
      }
    }
    if ((in.op != Op::NOP || flow.hidden[at(i)] != 0) && in.op != Op::POP_EXCEPT) continue;
    const bytecode::Position& p = in.position;
    const int width = p.line == p.end_line && p.column >= 0 ? p.end_column - p.column : -1;
    if (taken.has(in)) continue;
    if (width == 4 && in.op == Op::NOP && p.column % 4 == 3) return true;  // the None of a `return None` that is indented as usual
    if (width == 6 || width == 11 || (width == 4 && copied && in.op == Op::POP_EXCEPT && !at_pass(flow, i + 1))) return true;
  }
  return false;
}

// Where what compilers add to the end of a class body begins, given its return: `__static_attributes__` and the cell of `__class__`.
int added_to_class(const bytecode::Code& code, const Flow& flow, int last) {
  const auto stores = [&](int i, const char* name) {
    if (i < 1 || flow.ins[at(i)].op != Op::STORE_NAME || flow.ins[at(i)].arg >= code.names.size()) return false;
    return PyUnicode_CompareWithASCIIString(code.names[flow.ins[at(i)].arg].get(), name) == 0;
  };
  int start = last;
  if (flow.ins[at(last)].op == Op::RETURN_VALUE) {
    if (stores(last - 1, "__classcell__") && last >= 3) {
      start = last - 3;
    } else if (last >= 1 && flow.ins[at(last - 1)].op == Op::LOAD_CONST) {
      start = last - 1;
    }
  }
  if (code.version >= 313 && stores(start - 1, "__static_attributes__") && flow.ins[at(start - 2)].op == Op::LOAD_CONST) start -= 2;
  return start;
}

// One of the two instructions behind the None that unbind the name of `except ... as name`.
bool unbinds(const Flow& flow, int i) {
  const auto pair = [&](int store) {
    if (store < 1 || at(store) + 1 >= flow.ins.size() || flow.ins[at(store)].arg != flow.ins[at(store + 1)].arg) return false;
    switch (flow.ins[at(store)].op) {
      case Op::STORE_FAST:
        return flow.ins[at(store + 1)].op == Op::DELETE_FAST;
      case Op::STORE_DEREF:
        return flow.ins[at(store + 1)].op == Op::DELETE_DEREF;
      case Op::STORE_NAME:
        return flow.ins[at(store + 1)].op == Op::DELETE_NAME;
      case Op::STORE_GLOBAL:
        return flow.ins[at(store + 1)].op == Op::DELETE_GLOBAL;
      default:
        return false;
    }
  };
  return pair(i) || pair(i - 1);
}

// Whether an except* statement whose clauses took all exceptions ends in front of an instruction; its own ones have no place.
bool behind_star(const Flow& flow, int start) {
  return start > 2 && flow.ins[at(start - 1)].op == Op::POP_EXCEPT && flow.ins[at(start - 2)].op == Op::POP_TOP &&
         flow.ins[at(start - 3)].op == Op::POP_JUMP_IF_NOT_NONE && flow.ins[at(start - 1)].position.column < 0;
}

// The end of a function without `return` is copied to wherever it is jumped to; all copies are made one again. A `return` that stands in
// the source has a position of its own.
void merge_ends(const bytecode::Code& code, Flow& flow, const std::vector<int>& row_of, const CodeChoices& choices) {
  constexpr int kNewLocals = 2, kAsyncGenerator = 0x200;
  const bool never_returns = (code.flags & kNewLocals) == 0;       // module and class bodies
  const bool never_a_value = (code.flags & kAsyncGenerator) != 0;  // `return None` is an error
  const int n = static_cast<int>(flow.ins.size());
  int end = -1;
  // Positions that something else has too: there the copy took over the position of what comes before it.
  Places& taken = flow.taken;
  for (int i = 0; i < n; ++i) {
    const Instruction& in = flow.ins[at(i)];
    switch (in.op) {
      case Op::LOAD_CONST:
      case Op::RETURN_VALUE:
      case Op::RETURN_CONST:
      case Op::POP_EXCEPT:
      case Op::POP_TOP:
      case Op::SWAP:
      case Op::NOP:
      case Op::JUMP_ABSOLUTE:
        break;
      default:
        if (!unbinds(flow, i)) taken.add(in);
    }
  }
  for (int i = n; i-- > 0;) {
    const Instruction& in = flow.ins[at(i)];
    int start = i;
    if (in.op != Op::RETURN_VALUE && in.op != Op::RETURN_CONST) continue;
    const int added = never_returns ? added_to_class(code, flow, i) : i;
    if (in.op == Op::RETURN_VALUE) {
      if (--start < 0 || (flow.ins[at(start)].op != Op::LOAD_CONST && added > i - 3)) continue;
    }
    const Instruction& load = flow.ins[at(start)];
    if (load.op == Op::STORE_NAME) {
      if (row_of[at(i)] >= 0 || row_of[at(start)] >= 0) continue;
    } else if (load.arg >= code.consts.size() || code.consts[load.arg].get() != Py_None || row_of[at(i)] >= 0 || row_of[at(start)] >= 0)
      continue;
    if (!never_returns) {
      if (code.version >= 312 && in.op == Op::RETURN_VALUE) continue;  // what is added at the end is one instruction
      const bytecode::Position& p = in.position;
      const int width = p.line == p.end_line && p.column >= 0 ? p.end_column - p.column : -1;
      // `return`, or the None of `return None`. A `pass` is as wide, but stands where statements do.
      const bool one = in.op == Op::RETURN_CONST;
      bool own_place = (width == 6 || (width == 4 && !never_a_value)) && !taken.has(in);
      if (own_place && width == 4) {
        const bool behind_same = start > 0 && same_position(flow.ins[at(start - 1)], in);  // as behind what ends a handler
        const bool indented = (one || behind_same) && p.column % 4 == 0;
        own_place = !indented && !(one && behind_colon(flow, i)) && !at_pass(flow, i);
        if (one) own_place = choices.decide(ChoiceKind::kReturn, i, own_place);
      }
      if (own_place || (p.column < 0 && !behind_star(flow, start)) || behind_return(flow, start, taken)) continue;
    }
    start = std::min(start, added);
    if (end < 0) {
      flow.end = end = start;
      flow.end_last = i;
      continue;
    }
    Instruction& jump = flow.ins[at(start)];
    jump.op = Op::JUMP_ABSOLUTE;
    jump.target = end;
    jump.arg = 0;
    jump.position = {};
    if (start != i) flow.hidden[at(i)] = 1;
  }
}

// What stood before the end was copied with it, up to four instructions in all.
void merge_before_end(Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths) {
  if (flow.end < 0) return;
  const int n = static_cast<int>(flow.ins.size());
  std::vector<int> tails;  // instructions that only go on to the end
  for (int i = 0; i < n; ++i) {
    if (i == flow.end || (flow.ins[at(i)].op == Op::JUMP_ABSOLUTE && flow.ins[at(i)].target == flow.end)) tails.push_back(i);
  }
  for (int length = 0; length < 2; ++length) {
    using Key = std::tuple<int, int, int, int, int, int, int, int>;
    std::map<Key, int> first;
    std::vector<int> longer;
    for (size_t k = tails.size(); k-- > 0;) {  // the last copy stays
      const int i = tails[k] - 1;
      if (i < 0) continue;
      const Instruction& in = flow.ins[at(i)];
      if (in.target >= 0 || in.position.line < 0 || in.op != Op::POP_EXCEPT) continue;
      const bytecode::Position& p = in.position;
      const auto [found, added] = first.insert(
          {Key{p.line, p.column, p.end_line, p.end_column, static_cast<int>(in.op), static_cast<int>(in.arg), row_of[at(i)], depths[at(i)]},
           i});
      if (added) {
        longer.push_back(i);
        continue;
      }
      Instruction& jump = flow.ins[at(i)];
      jump.op = Op::JUMP_ABSOLUTE;
      jump.target = found->second;
      jump.arg = 0;
      jump.position = {};
    }
    std::sort(longer.begin(), longer.end());
    tails = std::move(longer);
  }
}

// From 3.12 on, where `return None` is one instruction, what stands before the end was copied with it: up to three instructions. More in
// common is no such copy, but what leaves a with statement or a finally block.
void merge_small_exits(Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths) {
  constexpr int kLongest = 3;
  constexpr size_t kMostCompared = 16;  // time must stay linear
  if (flow.end < 0) return;
  std::vector<int> tails;  // instructions that only go on to the end
  for (int i = static_cast<int>(flow.ins.size()); i-- > 0;) {
    if (i == flow.end || (flow.ins[at(i)].op == Op::JUMP_ABSOLUTE && flow.ins[at(i)].target == flow.end)) tails.push_back(i);
  }
  std::set<Place> withs;  // places of with statements, and so of all that ends them
  for (const Instruction& in : flow.ins) {
    if (in.op == Op::BEFORE_WITH || in.op == Op::BEFORE_ASYNC_WITH) withs.insert(place_of(in));
  }
  const auto is_second = [&](int i) {
    return i > 0 && flow.ins[at(i)].offset == flow.ins[at(i - 1)].offset;
  };  // of a pair, without a place
  const auto alike = [&](int p, int q) {
    const Instruction &a = flow.ins[at(p)], &b = flow.ins[at(q)];
    return same_step(a, b) || (a.op == b.op && a.arg == b.arg && (is_second(p) || is_second(q)));
  };
  const auto common = [&](int a, int b) {  // instructions in front that are alike
    int length = 0;
    while (length <= kLongest && a - length > 0 && b - length > 0) {
      const int p = a - length - 1, q = b - length - 1;
      const Instruction& in = flow.ins[at(p)];
      if (withs.count(place_of(in)) != 0) break;
      if (in.target >= 0 || in.position.line < 0 || in.op == Op::NOP || is_exit(in.op) || !alike(p, q) || row_of[at(p)] != row_of[at(q)] ||
          depths[at(p)] != depths[at(q)]) {
        break;
      }
      ++length;
    }
    return length;
  };
  std::map<std::tuple<int, int, int>, std::vector<int>> kept;  // by the place of what stands in front, the last copy first
  for (const int tail : tails) {
    if (tail == 0 || withs.count(place_of(flow.ins[at(tail - 1)])) != 0) continue;
    std::vector<int>& others = kept[place_of(flow.ins[at(tail - 1)])];
    int longest = 0, other = -1;
    for (const int candidate : others) {
      const int length = common(candidate, tail);
      if (length <= kLongest && length > longest) longest = length, other = candidate;
    }
    if (others.size() < kMostCompared) others.push_back(tail);
    if (other < 0) continue;
    Instruction& jump = flow.ins[at(tail - longest)];
    jump.op = Op::JUMP_ABSOLUTE;
    jump.target = other - longest;
    jump.arg = 0;
    jump.position = {};
  }
}

// From 3.12 on what leaves a handler is copied to each way that leads to it, as it has no place of its own; in 3.11 where the end follows.
// Copies belong to one except clause: between them no other one of the same statement begins.
void merge_handler_ends(const bytecode::Code& code, Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths) {
  if (code.version == 311 && flow.end < 0) return;
  const int n = static_cast<int>(flow.ins.size());
  std::map<int, std::set<int>> clauses;  // by the depth that POP_EXCEPT finds: where except clauses begin
  std::vector<std::vector<int>> sources(at(n));
  for (int i = 0; i < n; ++i) {
    const Instruction& in = flow.ins[at(i)];
    if (in.target >= 0) sources[at(in.target)].push_back(i);
    if (in.op == Op::PUSH_EXC_INFO) clauses[depths[at(i)]].insert(i);
    if (in.op != Op::CHECK_EXC_MATCH) continue;
    clauses[depths[at(i)] - 2].insert(i);
    if (i + 1 < n && flow.ins[at(i + 1)].target >= 0) clauses[depths[at(i)] - 2].insert(flow.ins[at(i + 1)].target);
  }
  const auto placeless = [&](int i) {
    if (i > 0 && same_position(flow.ins[at(i - 1)], flow.ins[at(i)])) return true;
    return std::any_of(sources[at(i)].begin(), sources[at(i)].end(),
                       [&](int from) { return same_position(flow.ins[at(from)], flow.ins[at(i)]); });
  };
  using Key = std::tuple<int, int, int, int>;
  std::map<Key, std::vector<int>> kept;
  for (int i = n; i-- > 0;) {
    if (flow.ins[at(i)].op != Op::POP_EXCEPT || depths[at(i)] < 0 || !placeless(i)) continue;
    int next = i + 1, name = -1;
    if (next + 2 < n && flow.ins[at(next)].op == Op::LOAD_CONST && flow.ins[at(next + 2)].op == Op::DELETE_FAST &&
        flow.ins[at(next + 1)].op == Op::STORE_FAST && flow.ins[at(next + 1)].arg == flow.ins[at(next + 2)].arg) {
      name = static_cast<int>(flow.ins[at(next + 1)].arg);
      next += 3;
    }
    if (next >= n || row_of[at(next - 1)] != row_of[at(i)]) continue;
    if (code.version == 311 && past_jumps(flow, next) != flow.end) continue;
    const int depth = depths[at(i)];
    std::vector<int>& copies = kept[Key{row_of[at(i)], depth, name, past_jumps(flow, next)}];
    const std::set<int>& begins = clauses[depth];
    const auto same_clause = [&](int other) { return begins.upper_bound(i) == begins.upper_bound(other); };
    const auto found = std::find_if(copies.begin(), copies.end(), same_clause);
    if (found == copies.end()) {
      copies.push_back(i);
      continue;
    }
    // The first copy stays.
    Instruction& jump = flow.ins[at(*found)];
    jump.op = Op::JUMP_ABSOLUTE;
    jump.target = i;
    jump.arg = 0;
    jump.position = {};
    *found = i;
  }
}

// A `return` behind the copy of a finally block has no place of its own; where that block ends in several ways it was copied to each of
// them, one behind the other.
void merge_placeless_returns(Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths) {
  const int n = static_cast<int>(flow.ins.size());
  std::vector<std::vector<int>> sources(at(n));
  for (int i = 0; i < n; ++i) {
    if (flow.ins[at(i)].target >= 0) sources[at(flow.ins[at(i)].target)].push_back(i);
  }
  const auto placeless = [&](int i) {
    const Instruction& in = flow.ins[at(i)];
    if ((in.op != Op::RETURN_VALUE && in.op != Op::RERAISE) || in.position.line < 0) return false;
    const bool alone = i > 0 && flow.ins[at(i - 1)].op == in.op;
    if (i == 0 || (!alone && !same_position(flow.ins[at(i - 1)], in))) return false;
    return std::any_of(sources[at(i)].begin(), sources[at(i)].end(), [&](int from) { return same_position(flow.ins[at(from)], in); }) ||
           !alone;
  };
  for (int i = 0; i + 1 < n; ++i) {
    if (!placeless(i)) continue;
    int last = i;
    while (last + 1 < n && flow.ins[at(last + 1)].op == flow.ins[at(i)].op && placeless(last + 1) &&
           row_of[at(last + 1)] == row_of[at(i)] && depths[at(last + 1)] == depths[at(i)])
      ++last;
    for (int k = i + 1; k <= last; ++k) {
      Instruction& jump = flow.ins[at(k)];
      jump.op = Op::JUMP_ABSOLUTE;
      jump.target = i;
      jump.arg = 0;
      jump.position = {};
    }
    i = last;
  }
}

void merge_exits(Flow& flow, const std::vector<int>& row_of, const std::vector<int>& depths, const std::vector<uint8_t>& leaders,
                 bool lambda) {
  const int n = static_cast<int>(flow.ins.size());
  using Key = std::tuple<int, int, int, int, int>;
  std::map<Key, int> first_exit;
  for (int i = 0; i < n; ++i) {
    const Instruction& in = flow.ins[at(i)];
    if ((in.op != Op::RETURN_VALUE && in.op != Op::RAISE_VARARGS && in.op != Op::RETURN_CONST) || in.position.line < 0) continue;
    if (flow.end >= 0 && i >= flow.end && i <= flow.end_last) continue;
    // Behind the copy of a finally block or the call that ends a with statement the position is not the one of the `return`.
    const bool constant =
        in.op == Op::RETURN_VALUE && i > 0 && flow.ins[at(i - 1)].op == Op::LOAD_CONST && same_position(flow.ins[at(i - 1)], in);
    const int before = constant ? i - 2 : i - 1;
    if (in.op != Op::RAISE_VARARGS && !lambda && before >= 0 && same_position(flow.ins[at(before)], in)) {
      int k = before;  // in a loop what the loop has on the stack goes first, at the place of the `return`
      while (k >= 0 && flow.ins[at(k)].op == Op::POP_TOP && same_position(flow.ins[at(k)], in)) --k;
      if (k == before || k < 0 || same_position(flow.ins[at(k)], in)) continue;
    }
    const Key key{in.position.line, in.position.column, in.position.end_line, in.position.end_column, static_cast<int>(in.op)};
    const auto [found, added] = first_exit.insert({key, i});
    if (added) continue;
    const int other = found->second;
    int length = 0;
    while (length < 4 && other - length >= 0 && i - length > other) {
      const int a = other - length, b = i - length;
      const Instruction &p = flow.ins[at(a)], &q = flow.ins[at(b)];
      if (!same_step(p, q) || p.target >= 0 || row_of[at(a)] != row_of[at(b)] || depths[at(a)] != depths[at(b)]) break;
      ++length;
      if (leaders[at(a)] != 0 || leaders[at(b)] != 0) break;
    }
    // A shared end begins where nothing is on the stack but what both branches left there.
    if (length < (constant ? 2 : 1)) continue;
    const int a = other - length + 1, b = i - length + 1;
    flow.ins[at(b)].op = Op::JUMP_ABSOLUTE;
    flow.ins[at(b)].target = a;
    flow.ins[at(b)].arg = 0;
    flow.ins[at(b)].position = {};
  }
}

}  // namespace pellucid::decompile
