// Where match statements begin, and which cases belong together: where a pattern does not match the next case is looked at, with the
// subject still on the stack unless it is the last one. A chain of comparisons never keeps its operand. What a pattern is, patterns.cpp
// knows.
#include <algorithm>

#include "bytecode/effects.h"
#include "bytecode/tables.h"
#include "decompile/flow.h"
#include "decompile/patterns.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

class MatchFinder {
 public:
  MatchFinder(const bytecode::Code& code, Flow& flow, const std::vector<int>& depths)
      : code_(code), flow_(flow), depths_(depths), reader_(code, flow) {}

  void run() {
    flow_.case_of.assign(flow_.ins.size(), -1);
    if (code_.version < 310) return;
    taken_.assign(flow_.ins.size(), 0);
    tests_to_.resize(flow_.ins.size() + 1);
    for (size_t i = 0; i < flow_.ins.size(); ++i) {
      const Instruction& in = flow_.ins[i];
      if (is_conditional(in.op) && in.target >= 0) tests_to_[at(reader_.next_real(in.target))].push_back(static_cast<int>(i));
    }
    for (int i = 0; i < static_cast<int>(flow_.ins.size()); ++i) {
      if (taken_[at(i)] != 0 || depths_[at(i)] < 1) continue;
      const Instruction& now = flow_.ins[at(i)];
      switch (now.op) {
        case Op::COPY:
        case Op::DUP_TOP:
          if (is_pattern_copy(now)) statement(i);
          break;
        case Op::MATCH_SEQUENCE:
        case Op::MATCH_MAPPING:
          statement(i);
          break;
        case Op::MATCH_CLASS:
          statement(value_before(i - 1));
          break;
        case Op::COMPARE_OP:
        case Op::IS_OP: {
          const int first = value_before(i);
          if (first >= 0 && has_own_place(i, first)) statement(first);
          break;
        }
        case Op::POP_JUMP_IF_NOT_NONE:
          if (has_own_place(i, i)) statement(i);
          break;
        case Op::POP_TOP:
        case Op::STORE_FAST:
        case Op::STORE_NAME:
        case Op::STORE_GLOBAL:
        case Op::STORE_DEREF:
          if (binds_in_place(i)) {
            statement(i, 1);
          } else if (code_.version >= 312 && now.op != Op::POP_TOP && !tests_to_[at(i)].empty()) {
            statement(i, 2);
          }
          break;
        default:
          break;
      }
    }
  }

 private:
  // Where the evaluation of a name with attributes, or of a constant, that ends before `i` begins.
  int value_before(int i) const {
    do {
      --i;
    } while (i > 0 && (is_pattern_attribute(flow_.ins[at(i)].op) || flow_.ins[at(i)].op == Op::NOP));
    return i > 0 && is_pattern_load(flow_.ins[at(i)].op) ? i : -1;
  }

  // A test of a pattern stands behind the subject, where a comparison begins with its left operand.
  bool has_own_place(int test, int first) const {
    int before = first - 1;
    while (before > 0 && flow_.ins[at(before)].op == Op::NOP) --before;
    if (before < 0 || flow_.ins[at(first)].offset == flow_.ins[at(first - 1)].offset) return false;  // the second of a pair has no place
    const bytecode::Position &subject = flow_.ins[at(before)].position, &value = flow_.ins[at(first)].position,
                             &tested = flow_.ins[at(test)].position;
    if (code_.version == 310) return subject.line > 0 && subject.line < value.line && tested.line >= value.line;
    if (tested.line <= 0 || tested.column < 0) return false;
    if (test == first) {  // just `None`
      return subject.line < tested.line && tested.line == tested.end_line && tested.end_column - tested.column == 4;
    }
    return tested.line == value.line && tested.column == value.column;
  }

  // Whether an instruction is the last one of an expression that is no conditional one.
  bool ends_value(const Instruction& in) const {
    switch (in.op) {
      case Op::LOAD_ATTR:
      case Op::CALL:
      case Op::CALL_KW:
      case Op::CALL_FUNCTION_KW:
      case Op::CALL_FUNCTION_EX:
      case Op::CALL_METHOD:
      case Op::BINARY_OP:
      case Op::BINARY_SUBSCR:
      case Op::BINARY_SLICE:
      case Op::UNARY_NEGATIVE:
      case Op::UNARY_NOT:
      case Op::COMPARE_OP:
      case Op::CONTAINS_OP:
      case Op::IS_OP:
      case Op::BUILD_TUPLE:
      case Op::BUILD_LIST:
      case Op::BUILD_MAP:
      case Op::LIST_TO_TUPLE:
        return in.target < 0;
      case Op::CALL_FUNCTION:
        return in.arg != 1;  // not a decorator
      default:
        return is_pattern_load(in.op);
    }
  }

  // Whether a value is stored or dropped by a pattern that always matches: its place is the name or `_` on a line behind the subject's. The
  // target of an assignment stands in front of the value.
  bool binds_in_place(int i) const {
    if (i < 1) return false;
    const Instruction &now = flow_.ins[at(i)], &before = flow_.ins[at(i - 1)];
    const bytecode::Position& p = now.position;
    if (before.offset == now.offset || before.position.line <= 0 || before.position.line >= p.line || !ends_value(before)) return false;
    // 3.10 has no columns. A constant as a statement leaves nothing; of other statements nothing is to be told.
    if (code_.version == 310) return now.op != Op::POP_TOP || before.op == Op::LOAD_CONST;
    const int width = p.end_column - p.column;
    if (p.line != p.end_line || now.op == Op::POP_TOP) return p.line == p.end_line && width == 1;
    const bool local = now.op == Op::STORE_FAST || now.op == Op::STORE_DEREF;
    const std::vector<py::Ref>& names = local ? code_.localsplus_names : code_.names;
    return now.arg < names.size() && PyUnicode_Check(names[now.arg].get()) && width == PyUnicode_GET_LENGTH(names[now.arg].get());
  }

  int needs(int i) const {
    return bytecode::stack_needs(*bytecode::tables(code_.version), code_.instructions[at(i)].op, code_.instructions[at(i)].arg);
  }

  // `least`: how many cases there must be for a pattern that always matches to be one.
  void statement(int start, size_t least = 0) {
    if (start < 1 || taken_[at(start)] != 0) return;
    const size_t patterns = flow_.patterns.size();
    std::vector<CodeCase> cases;
    bool found = read_cases(start, least > 0, &cases);
    if (found && code_.version >= 312) add_bare_before(&cases);
    found = found && cases.size() >= least;
    if (!found) {
      flow_.patterns.resize(patterns);
      return;
    }
    for (int i : visited_) taken_[at(i)] = 1;
    for (const CodeCase& one : cases) {
      flow_.case_of[at(one.start)] = static_cast<int>(flow_.cases.size());
      flow_.cases.push_back(one);
    }
  }

  bool read_cases(int start, bool always, std::vector<CodeCase>* cases) {
    visited_.clear();
    for (int next = start;;) {
      const auto again = [&](const CodeCase& one) { return one.start == next; };
      if (next < 0 || next >= static_cast<int>(flow_.ins.size()) || taken_[at(next)] != 0 ||
          std::any_of(cases->begin(), cases->end(), again)) {
        return false;
      }
      CodeCase made;
      int fail = -1;
      if (reader_.read(next, &made)) {
        visited_.insert(visited_.end(), reader_.visited().begin(), reader_.visited().end());
        fail = made.fail;
      } else if (code_.version >= 312 && !cases->empty()) {
        made = bare_case(next);
      } else {
        return false;
      }
      if (made.copies && fail < 0) fail = behind_guard(made.next);
      cases->push_back(made);
      if (!made.copies) {
        return always || cases->size() > 1 || flow_.patterns[at(made.pattern)].tested;
      }
      if (fail < 0) return false;
      next = reader_.next_real(fail);
    }
  }

  CodeCase bare_case(int start) {
    CodeCase made;
    made.start = made.next = start;
    made.bare = made.copies = true;
    made.line = flow_.ins[at(start)].position.line;
    made.pattern = static_cast<int>(flow_.patterns.size());
    flow_.patterns.emplace_back();
    return made;
  }

  // `case _ if ...:` at the beginning: from 3.12 on nothing is left of it but the guard, over the subject.
  void add_bare_before(std::vector<CodeCase>* cases) {
    for (;;) {
      const int first = (*cases)[0].start, depth = depths_[at(first)];
      int guard = -1;
      for (int i : tests_to_[at(first)]) {
        const Instruction& in = flow_.ins[at(i)];
        if (i >= first || taken_[at(i)] != 0 || guard >= 0) continue;
        // Behind the last instruction that takes something from below the subject or makes it.
        guard = i;
        while (guard > 0 && depths_[at(guard - 1)] - needs(guard - 1) >= depth) --guard;
        if (guard >= i || taken_[at(guard)] != 0 || behind_guard(guard) != in.target) return;
      }
      if (guard < 1) return;
      cases->insert(cases->begin(), bare_case(guard));
    }
  }

  // Where the guard of a pattern that always matches leads if it fails: where it holds, the subject is dropped.
  int behind_guard(int first) const {
    const int depth = depths_[at(first)];
    int end = first;
    const int n = static_cast<int>(flow_.ins.size());
    while (end < n && depths_[at(end)] >= depth && !(depths_[at(end)] == depth && flow_.ins[at(end)].op == Op::POP_TOP)) ++end;
    if (end >= n || depths_[at(end)] != depth) return -1;
    int target = -1;
    for (int i = first; i < end; ++i) {
      const Instruction& in = flow_.ins[at(i)];
      if (is_conditional(in.op) && in.target > end && depths_[at(in.target)] == depth) target = in.target;
    }
    return target;
  }

  const bytecode::Code& code_;
  Flow& flow_;
  const std::vector<int>& depths_;
  PatternReader reader_;
  std::vector<int> visited_;                // by the cases that were read last
  std::vector<std::vector<int>> tests_to_;  // by instruction: conditional jumps to it
  std::vector<uint8_t> taken_;
};

}  // namespace

void find_matches(const bytecode::Code& code, Flow& flow, const std::vector<int>& depths) { MatchFinder(code, flow, depths).run(); }

}  // namespace pellucid::decompile
