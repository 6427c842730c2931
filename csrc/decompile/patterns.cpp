// See patterns.h. The way on which a pattern matches is followed with a symbolic stack whose entries are parts of the subject: each begins
// as a wildcard and becomes what the tests made on it say. An alternative of an or-pattern is known by where it fails: at another copy of
// the same value.
#include "decompile/patterns.h"

#include <algorithm>
#include <map>

#include "decompile/flow.h"

namespace pellucid::decompile {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

constexpr int kMostSteps = 200000;   // that one pattern may take to read
constexpr size_t kMostDepth = 1000;  // of the symbolic stack

enum class EntryKind : uint8_t {
  kPart,     // the subject or a part of it: pattern `part`
  kLoaded,   // `values[0]`
  kLength,   // len() of a part
  kFromEnd,  // that minus `number`
  kKeys,     // of a mapping: `values`
  kParts,    // a tuple of the items of `part`, or None
  kTest,     // the result of `test`
};

enum class Test : uint8_t { kNone, kSequence, kMapping, kEquals, kIs, kLength, kLeastLength, kParts };

struct Entry {
  EntryKind kind = EntryKind::kPart;
  Test test = Test::kNone;
  int part = -1;
  int number = 0;
  std::vector<PatternValue> values = {};
};

enum class Outcome : uint8_t { kFailed, kAgain, kDone };

bool is_store(Op op) { return op == Op::STORE_FAST || op == Op::STORE_NAME || op == Op::STORE_GLOBAL || op == Op::STORE_DEREF; }

}  // namespace

bool is_pattern_load(Op op) {
  switch (op) {
    case Op::LOAD_CONST:
    case Op::LOAD_FAST:
    case Op::LOAD_FAST_CHECK:
    case Op::LOAD_NAME:
    case Op::LOAD_GLOBAL:
    case Op::LOAD_DEREF:
    case Op::LOAD_CLASSDEREF:
    case Op::LOAD_LOCALS:
      return true;
    default:
      return false;
  }
}

bool is_pattern_attribute(Op op) { return op == Op::LOAD_ATTR || op == Op::LOAD_FROM_DICT_OR_DEREF || op == Op::LOAD_FROM_DICT_OR_GLOBALS; }

bool is_pattern_copy(const Instruction& in) { return in.op == Op::DUP_TOP || (in.op == Op::COPY && in.arg == 1); }

class CaseReader {
 public:
  struct Failure {
    int target;
    size_t depth;  // what lies on the stack where it jumps, from the subject on
  };

  CaseReader(const bytecode::Code& code, const Flow& flow, std::vector<CodePattern>& patterns)
      : code_(code), flow_(flow), patterns_(patterns) {}

  // Reads the pattern that begins at `start`, where the subject is on top of the stack.
  bool read(int start, CodeCase* out) {
    or_next_.clear();
    steps_ = 0;
    const size_t before = patterns_.size();
    bool alone = false;  // the first copy is the one for the next case
    for (;;) {
      patterns_.resize(before);
      const Outcome outcome = attempt(start);
      if (outcome == Outcome::kAgain) continue;
      if (outcome == Outcome::kFailed) break;
      const bool copies = !stack_.empty();
      // The first copy may be the first alternative of a last case instead of the copy for the next case.
      if (const int other = failure_at_copy(start); other >= 0 && !alone && or_next_.count(start) == 0) {
        if (!copies || ends_alike(at_, other)) {
          or_next_[start] = other;
        } else {
          alone = true;
        }
        continue;
      }
      out->start = start;
      out->next = at_;
      out->copies = copies;
      out->pattern = static_cast<int>(before);
      out->line = line_;
      if (!common_failure(copies ? 1 : 0, &out->fail)) break;
      return true;
    }
    patterns_.resize(before);
    return false;
  }

  const std::vector<int>& visited() const { return visited_; }

  // Skips what only goes on elsewhere.
  int past_jumps(int i) const {
    const int n = static_cast<int>(flow_.ins.size());
    for (int steps = 0; i < n && steps < n; ++steps) {
      const Instruction& in = flow_.ins[at(i)];
      if (in.op == Op::JUMP_ABSOLUTE) {
        i = in.target;
      } else if (in.op == Op::NOP && flow_.hidden[at(i)] != 0) {
        ++i;
      } else {
        break;
      }
    }
    return i;
  }

  int real(int i) const {
    i = past_jumps(i);
    while (!ends(i) && in(i).op == Op::NOP) i = past_jumps(i + 1);
    return i;
  }

  // Whether the same goes on at both: copies that the compiler made of short ends.
  bool alike(int a, int b) const {
    const int n = static_cast<int>(flow_.ins.size());
    for (int steps = 0; steps < 12; ++steps) {
      a = past_jumps(a);
      b = past_jumps(b);
      if (a == b) return true;
      if (a >= n || b >= n) return false;
      const Instruction &p = flow_.ins[at(a)], &q = flow_.ins[at(b)];
      if (p.op != q.op || p.arg != q.arg || p.target >= 0 || q.target >= 0 || p.position.line != q.position.line ||
          p.position.column != q.position.column || p.position.end_column != q.position.end_column) {
        return false;
      }
      if (p.op == Op::RETURN_VALUE || p.op == Op::RETURN_CONST || p.op == Op::RAISE_VARARGS) return true;
      ++a;
      ++b;
    }
    return false;
  }

 private:
  const Instruction& in(int i) const { return flow_.ins[at(i)]; }
  bool ends(int i) const { return i < 0 || at(i) >= flow_.ins.size(); }

  int new_part() {
    patterns_.emplace_back();
    return static_cast<int>(patterns_.size()) - 1;
  }
  CodePattern& part(int index) { return patterns_[at(index)]; }

  Outcome attempt(int start) {
    stack_.clear();
    failures_.clear();
    copies_.clear();
    visited_.clear();
    line_ = -1;
    at_ = start;
    start_ = start;
    stack_.push_back({EntryKind::kPart, Test::kNone, new_part()});
    return follow(0);
  }

  bool is_constant(const PatternValue& value, PyObject* object) const {
    return value.loads.size() == 1 && in(value.loads[0]).op == Op::LOAD_CONST && value.item < 0 && constant(value) == object;
  }
  PyObject* constant(const PatternValue& value) const {
    if (value.loads.size() != 1 || in(value.loads[0]).op != Op::LOAD_CONST || in(value.loads[0]).arg >= code_.consts.size()) return nullptr;
    return code_.consts[in(value.loads[0]).arg].get();
  }
  bool number_of(const Entry& entry, int* out) const {
    if (entry.kind != EntryKind::kLoaded) return false;
    PyObject* object = constant(entry.values[0]);
    if (object == nullptr || !PyLong_CheckExact(object)) return false;
    const long value = PyLong_AsLong(object);
    if (value < 0 || value > 1000000) {
      PyErr_Clear();
      return false;
    }
    *out = static_cast<int>(value);
    return true;
  }

  // Follows the code until all is done (floor 0), or something below `floor` entries of the stack is needed: the end of an alternative.
  Outcome follow(size_t floor) {
    for (;;) {
      if (++steps_ > kMostSteps || stack_.size() > kMostDepth || ends(at_)) return Outcome::kFailed;
      if (floor == 0 && stack_.empty()) return Outcome::kDone;
      const Instruction& now = in(at_);
      if (floor == 0 && at_ != start_ && stack_.size() == 1 && is_pattern_copy(in(start_)) && or_next_.count(start_) == 0 &&
          stack_[0].kind == EntryKind::kPart && now.op != Op::JUMP_ABSOLUTE && now.op != Op::NOP && !is_store(now.op)) {
        return Outcome::kDone;  // what is left is the subject for the next case
      }
      if (now.op == Op::JUMP_ABSOLUTE) {
        at_ = now.target;
        continue;
      }
      if (now.op == Op::NOP) {
        ++at_;
        continue;
      }
      if (floor > 0 && (is_store(now.op) || stack_.size() < floor + needs(now))) return Outcome::kDone;
      if (stack_.size() < needs(now)) return Outcome::kFailed;
      visited_.push_back(at_);
      line_ = std::max(line_, now.position.line);
      if (is_pattern_copy(now)) {
        if (or_next_.count(at_) != 0) {
          if (const Outcome outcome = alternatives(); outcome != Outcome::kDone) return outcome;
          continue;
        }
        copies_.push_back({at_, stack_.size()});
        if (stack_.back().kind == EntryKind::kPart && !ends(at_ + 1) && in(at_ + 1).op == Op::POP_TOP)
          part(stack_.back().part).explicit_any = true;
      }
      if (const Outcome outcome = step(now); outcome != Outcome::kDone) return outcome;
      ++at_;
    }
  }

  static size_t needs(const Instruction& now) {
    switch (now.op) {
      case Op::COPY:
      case Op::SWAP:
      case Op::ROT_N:
      case Op::BUILD_TUPLE:
        return now.arg;
      case Op::ROT_TWO:
      case Op::MATCH_KEYS:
      case Op::COMPARE_OP:
      case Op::IS_OP:
      case Op::BINARY_SUBSCR:
      case Op::BINARY_SUBTRACT:
      case Op::BINARY_OP:
      case Op::DELETE_SUBSCR:
      case Op::COPY_DICT_WITHOUT_KEYS:
        return 2;
      case Op::ROT_THREE:
      case Op::MATCH_CLASS:
      case Op::DICT_UPDATE:
        return 3;
      case Op::ROT_FOUR:
        return 4;
      case Op::BUILD_MAP:
        return 0;
      default:
        return is_pattern_load(now.op) ? 0 : 1;
    }
  }

  // An or-pattern whose first alternative begins at the copy at hand.
  Outcome alternatives() {
    const size_t depth = stack_.size();
    const Entry whole = stack_.back();
    if (whole.kind != EntryKind::kPart || part(whole.part).tested) return Outcome::kFailed;
    const std::vector<Entry> below = stack_;
    std::vector<std::vector<Entry>> captured;
    std::vector<int> roots;
    int end = -1;
    for (int start = at_;;) {
      stack_ = below;
      const int root = new_part();
      roots.push_back(root);
      stack_.push_back({EntryKind::kPart, Test::kNone, root});
      visited_.push_back(start);
      copies_.push_back({start, depth});
      at_ = start + 1;
      if (const Outcome outcome = follow(depth); outcome != Outcome::kDone) return outcome;
      captured.emplace_back(stack_.begin() + static_cast<std::ptrdiff_t>(depth), stack_.end());
      const auto is_part = [](const Entry& entry) { return entry.kind == EntryKind::kPart; };
      if (captured.back().size() != captured[0].size() || !std::all_of(captured.back().begin(), captured.back().end(), is_part))
        return Outcome::kFailed;
      if (end < 0) {
        end = at_;
      } else if (!alike(end, at_)) {
        return Outcome::kFailed;
      }
      const auto next = or_next_.find(start);
      if (next == or_next_.end()) break;
      start = next->second;
    }
    stack_ = below;
    part(whole.part).kind = PatternKind::kOr;
    part(whole.part).tested = true;
    part(whole.part).at = part(roots[0]).at;
    part(whole.part).items = roots;
    for (size_t i = 0; i < captured[0].size(); ++i) {
      const int name = new_part();
      part(name).alternative = true;
      for (const std::vector<Entry>& one : captured) part(name).items.push_back(one[i].part);
      stack_.push_back({EntryKind::kPart, Test::kNone, name});
    }
    at_ = end;
    return Outcome::kDone;
  }

  bool add_name(int index, int store) {
    if (!part(index).alternative) {
      part(index).names.push_back(store);
      return true;
    }
    const std::vector<int> each = part(index).items;
    return std::all_of(each.begin(), each.end(), [&](int one) { return add_name(one, store); });
  }

  Entry pop() {
    Entry top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }

  // Whether a part may get its kind.
  bool refine(const Entry& entry, PatternKind kind) {
    if (entry.kind != EntryKind::kPart || part(entry.part).tested || part(entry.part).alternative) return false;
    part(entry.part).tested = true;
    part(entry.part).kind = kind;
    part(entry.part).at = at_;
    return true;
  }

  Outcome step(const Instruction& now) {
    const auto done = [](bool fine) { return fine ? Outcome::kDone : Outcome::kFailed; };
    if (is_pattern_load(now.op)) {
      stack_.push_back({EntryKind::kLoaded, Test::kNone, -1, 0, {PatternValue{{at_}}}});
      return Outcome::kDone;
    }
    if (is_pattern_attribute(now.op)) {
      if (stack_.back().kind != EntryKind::kLoaded) return Outcome::kFailed;
      stack_.back().values[0].loads.push_back(at_);
      return Outcome::kDone;
    }
    if (is_store(now.op)) {
      const Entry top = pop();
      return done(top.kind == EntryKind::kPart && add_name(top.part, at_));
    }
    switch (now.op) {
      case Op::COPY:
      case Op::DUP_TOP:
        stack_.push_back(Entry(stack_[stack_.size() - (now.op == Op::COPY ? now.arg : 1)]));
        return Outcome::kDone;
      case Op::SWAP:
      case Op::ROT_TWO:
        std::swap(stack_.back(), stack_[stack_.size() - (now.op == Op::SWAP ? now.arg : 2)]);
        return Outcome::kDone;
      case Op::ROT_THREE:
      case Op::ROT_FOUR:
      case Op::ROT_N: {
        const auto count = static_cast<std::ptrdiff_t>(needs(now));
        std::rotate(stack_.end() - count, stack_.end() - 1, stack_.end());
        return Outcome::kDone;
      }
      case Op::POP_TOP:
        return done(pop().kind != EntryKind::kTest);
      case Op::MATCH_SEQUENCE:
      case Op::MATCH_MAPPING:
        if (stack_.back().kind != EntryKind::kPart) return Outcome::kFailed;
        stack_.push_back({EntryKind::kTest, now.op == Op::MATCH_SEQUENCE ? Test::kSequence : Test::kMapping, stack_.back().part});
        return Outcome::kDone;
      case Op::GET_LEN:
        if (stack_.back().kind != EntryKind::kPart) return Outcome::kFailed;
        stack_.push_back({EntryKind::kLength, Test::kNone, stack_.back().part});
        return Outcome::kDone;
      case Op::COMPARE_OP:
      case Op::IS_OP:
        return done(compare(now));
      case Op::POP_JUMP_IF_FALSE: {
        const Entry test = pop();
        if (test.kind != EntryKind::kTest || !apply(test)) return Outcome::kFailed;
        return fails(now.target);
      }
      case Op::POP_JUMP_IF_NOT_NONE: {
        const Entry top = pop();
        if (!refine(top, PatternKind::kSingleton)) return Outcome::kFailed;
        return fails(now.target);
      }
      case Op::POP_JUMP_IF_NONE:
        if (pop().kind != EntryKind::kParts) return Outcome::kFailed;
        return fails(now.target);
      case Op::UNPACK_SEQUENCE:
      case Op::UNPACK_EX:
        return done(unpack(now));
      case Op::BINARY_OP:
      case Op::BINARY_SUBTRACT: {
        const Entry right = pop();
        Entry left = pop();
        if (left.kind != EntryKind::kLength || (now.op == Op::BINARY_OP && now.arg != kSubtract)) return Outcome::kFailed;
        left.kind = EntryKind::kFromEnd;
        if (!number_of(right, &left.number)) return Outcome::kFailed;
        stack_.push_back(left);
        return Outcome::kDone;
      }
      case Op::BINARY_SUBSCR:
        return done(subscript());
      case Op::BUILD_TUPLE: {
        Entry keys{EntryKind::kKeys};
        for (size_t i = stack_.size() - now.arg; i < stack_.size(); ++i) {
          if (stack_[i].kind != EntryKind::kLoaded) return Outcome::kFailed;
          keys.values.push_back(stack_[i].values[0]);
        }
        stack_.resize(stack_.size() - now.arg);
        stack_.push_back(keys);
        return Outcome::kDone;
      }
      case Op::MATCH_KEYS:
        return done(match_keys());
      case Op::MATCH_CLASS:
        return done(match_class(now));
      case Op::COPY_DICT_WITHOUT_KEYS: {  // 3.10
        pop();
        const Entry& mapping = stack_.back();
        if (mapping.kind != EntryKind::kPart || part(mapping.part).kind != PatternKind::kMapping) return Outcome::kFailed;
        const int rest = new_part();
        part(mapping.part).rest = rest;
        stack_.push_back({EntryKind::kPart, Test::kNone, rest});
        return Outcome::kDone;
      }
      case Op::BUILD_MAP:  // 3.11 and later make the rest of a mapping step by step
        if (now.arg != 0) return Outcome::kFailed;
        stack_.push_back({EntryKind::kPart, Test::kNone, new_part()});
        return Outcome::kDone;
      case Op::DICT_UPDATE: {
        const Entry mapping = pop();
        const Entry& rest = stack_[stack_.size() - 2];
        if (now.arg != 2 || mapping.kind != EntryKind::kPart || part(mapping.part).kind != PatternKind::kMapping ||
            rest.kind != EntryKind::kPart)
          return Outcome::kFailed;
        part(mapping.part).rest = rest.part;
        return Outcome::kDone;
      }
      case Op::DELETE_SUBSCR:
        pop();
        return done(pop().kind == EntryKind::kPart);
      default:
        return Outcome::kFailed;
    }
  }

  bool compare(const Instruction& now) {
    const Entry right = pop(), left = pop();
    if (now.op == Op::IS_OP) {
      if (right.kind != EntryKind::kLoaded) return false;
      if (left.kind == EntryKind::kParts) {
        stack_.push_back({EntryKind::kTest, Test::kParts, left.part});
        return now.arg == 1 && is_constant(right.values[0], Py_None);
      }
      stack_.push_back({EntryKind::kTest, Test::kIs, left.part, 0, right.values});
      return now.arg == 0 && left.kind == EntryKind::kPart &&
             (is_constant(right.values[0], Py_None) || is_constant(right.values[0], Py_True) || is_constant(right.values[0], Py_False));
    }
    const uint32_t op = code_.version >= 313 ? now.arg >> 5 : code_.version == 312 ? now.arg >> 4 : now.arg;
    if (left.kind == EntryKind::kLength) {
      Entry made{EntryKind::kTest, op == kEqual ? Test::kLength : Test::kLeastLength, left.part};
      if ((op != kEqual && op != kGreaterEqual) || !number_of(right, &made.number)) return false;
      stack_.push_back(made);
      return true;
    }
    stack_.push_back({EntryKind::kTest, Test::kEquals, left.part, 0, right.values});
    return op == kEqual && left.kind == EntryKind::kPart && right.kind == EntryKind::kLoaded;
  }

  bool apply(const Entry& test) {
    const Entry tested{EntryKind::kPart, Test::kNone, test.part};
    CodePattern& one = part(test.part);
    switch (test.test) {
      case Test::kSequence:
        if (!refine(tested, PatternKind::kSequence)) return false;
        one.open = true;  // until its length is known
        return true;
      case Test::kMapping:
        return refine(tested, PatternKind::kMapping);
      case Test::kEquals:
      case Test::kIs:
        if (!refine(tested, test.test == Test::kIs ? PatternKind::kSingleton : PatternKind::kValue)) return false;
        one.values = test.values;
        one.at = test.values[0].loads[0];
        return true;
      case Test::kLength:
      case Test::kLeastLength:
        if (one.kind == PatternKind::kMapping) return test.test == Test::kLeastLength;
        if (one.kind != PatternKind::kSequence) return false;
        one.open = test.test == Test::kLeastLength;
        one.length = test.number;
        return true;
      case Test::kParts:
        return true;
      case Test::kNone:
        break;
    }
    return false;
  }

  bool unpack(const Instruction& now) {
    const Entry whole = pop();
    if (whole.kind == EntryKind::kKeys || (whole.kind == EntryKind::kLoaded && now.op == Op::UNPACK_SEQUENCE)) {
      if (whole.kind == EntryKind::kKeys && now.arg != whole.values.size()) return false;
      for (uint32_t i = 0; i < now.arg; ++i) stack_.push_back({EntryKind::kLoaded, Test::kNone, -1, 0, {PatternValue{}}});
      return true;
    }
    if (whole.kind == EntryKind::kParts) {
      const std::vector<int> items = part(whole.part).items;
      if (now.op != Op::UNPACK_SEQUENCE || items.size() != now.arg) return false;
      for (size_t i = items.size(); i-- > 0;) stack_.push_back({EntryKind::kPart, Test::kNone, items[i]});
      return true;
    }
    if (whole.kind != EntryKind::kPart || part(whole.part).kind != PatternKind::kSequence || !part(whole.part).front.empty()) return false;
    const bool starred = now.op == Op::UNPACK_EX;
    const int before = static_cast<int>(starred ? now.arg & 0xff : now.arg), after = static_cast<int>(starred ? now.arg >> 8 : 0);
    if (part(whole.part).open != starred || part(whole.part).length != before + after) return false;
    for (int i = after; i > 0; --i) {
      const int item = new_part();
      part(whole.part).back.push_back({after - i + 1, item});
      stack_.push_back({EntryKind::kPart, Test::kNone, item});
    }
    if (starred) {
      const int item = new_part();
      part(whole.part).star = item;
      stack_.push_back({EntryKind::kPart, Test::kNone, item});
    }
    for (int i = before; i-- > 0;) {
      const int item = new_part();
      part(whole.part).front.push_back({i, item});
      stack_.push_back({EntryKind::kPart, Test::kNone, item});
    }
    return true;
  }

  bool subscript() {
    const Entry index = pop(), whole = pop();
    int number = 0;
    if (whole.kind == EntryKind::kParts) {  // 3.10
      const std::vector<int>& items = part(whole.part).items;
      if (!number_of(index, &number) || at(number) >= items.size()) return false;
      stack_.push_back({EntryKind::kPart, Test::kNone, items[at(number)]});
      return true;
    }
    if (whole.kind != EntryKind::kPart || part(whole.part).kind != PatternKind::kSequence) return false;
    const int item = new_part();
    if (index.kind == EntryKind::kFromEnd && index.part == whole.part) {
      part(whole.part).back.push_back({index.number, item});
    } else if (number_of(index, &number)) {
      part(whole.part).front.push_back({number, item});
    } else {
      return false;
    }
    stack_.push_back({EntryKind::kPart, Test::kNone, item});
    return true;
  }

  bool match_keys() {
    Entry& keys = stack_.back();
    const Entry& mapping = stack_[stack_.size() - 2];
    if (mapping.kind != EntryKind::kPart || part(mapping.part).kind != PatternKind::kMapping || !part(mapping.part).values.empty())
      return false;
    if (keys.kind == EntryKind::kLoaded) {
      const PatternValue tuple = keys.values[0];
      PyObject* object = constant(tuple);
      if (object == nullptr || !PyTuple_CheckExact(object)) return false;
      keys.kind = EntryKind::kKeys;
      keys.values.clear();
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) keys.values.push_back({tuple.loads, static_cast<int>(i)});
    }
    if (keys.kind != EntryKind::kKeys) return false;
    const int whole = mapping.part;
    part(whole).values = keys.values;
    for (size_t i = 0; i < part(whole).values.size(); ++i) {
      const int item = new_part();
      part(whole).items.push_back(item);
    }
    push_parts(whole);
    return true;
  }

  bool match_class(const Instruction& now) {
    const Entry names = pop(), type = pop(), whole = pop();
    if (names.kind != EntryKind::kLoaded || type.kind != EntryKind::kLoaded || !refine(whole, PatternKind::kClass)) return false;
    PyObject* keywords = constant(names.values[0]);
    if (keywords == nullptr || !PyTuple_CheckExact(keywords)) return false;
    part(whole.part).values = {type.values[0], names.values[0]};
    part(whole.part).at = type.values[0].loads[0];
    part(whole.part).length = static_cast<int>(now.arg);
    const size_t count = now.arg + static_cast<size_t>(PyTuple_GET_SIZE(keywords));
    for (size_t i = 0; i < count; ++i) {
      const int item = new_part();
      part(whole.part).items.push_back(item);
    }
    push_parts(whole.part);
    return true;
  }

  void push_parts(int whole) {
    stack_.push_back({EntryKind::kParts, Test::kNone, whole});
    if (code_.version == 310) stack_.push_back({EntryKind::kTest, Test::kParts, whole});
  }

  struct Landing {
    int at = -1;
    size_t dropped = 0;
  };

  // Where a failing test leads behind what drops up to `most` values.
  Landing land(int i, size_t most) const {
    Landing landing;
    for (;;) {
      landing.at = i;
      i = past_jumps(i);
      while (!ends(i) && in(i).op == Op::NOP) i = past_jumps(i + 1);
      if (landing.dropped == most || ends(i) || in(i).op != Op::POP_TOP) return landing;
      ++landing.dropped;
      ++i;
    }
  }

  // A test jumps to `target` if it fails.
  Outcome fails(int target) {
    const size_t depth = stack_.size();
    const Landing landing = land(target, depth);
    const int next = real(landing.at);
    const size_t left = depth - landing.dropped;
    if (left > 0 && !ends(next) && is_pattern_copy(in(next))) {
      const auto begins = std::find_if(copies_.rbegin(), copies_.rend(), [&](const auto& copy) { return copy.second == left; });
      if (begins != copies_.rend()) {
        if (const auto known = or_next_.find(begins->first); known != or_next_.end()) {
          if (known->second == next) return Outcome::kDone;  // within the or-pattern
        } else if (begins->first != start_ && begins->first != next) {
          or_next_[begins->first] = next;
          return Outcome::kAgain;
        }
      }
    }
    failures_.push_back({target, depth});
    return Outcome::kDone;
  }

  // Where a test fails at another copy of the whole subject; -1: none does.
  int failure_at_copy(int start) const {
    if (!is_pattern_copy(in(start))) return -1;
    for (const Failure& failure : failures_) {
      const Landing landing = land(failure.target, failure.depth);
      const int next = real(landing.at);
      if (failure.depth - landing.dropped == 1 && !ends(next) && is_pattern_copy(in(next)) && next != start) return next;
    }
    return -1;
  }

  // Whether what begins at `other` ends where a pattern did: they are alternatives, not cases.
  bool ends_alike(int end, int other) {
    const std::map<int, int> known = or_next_;
    Outcome outcome = Outcome::kAgain;
    while (outcome == Outcome::kAgain) outcome = attempt(other);
    or_next_ = known;
    return outcome == Outcome::kDone && !stack_.empty() && alike(end, at_);
  }

  // All failing tests lead to one place, behind what drops all but `left` values.
  bool common_failure(size_t left, int* out) const {
    *out = -1;
    for (const Failure& failure : failures_) {
      if (failure.depth < left) return false;
      const Landing landing = land(failure.target, failure.depth - left);
      if (landing.dropped != failure.depth - left) return false;
      if (*out >= 0 && !alike(*out, landing.at)) return false;
      if (*out < 0 || past_jumps(landing.at) == landing.at) *out = landing.at;
    }
    return true;
  }

  const bytecode::Code& code_;
  const Flow& flow_;
  std::vector<CodePattern>& patterns_;
  std::map<int, int> or_next_;  // by the copy with which an alternative begins: the next one
  std::vector<std::pair<int, size_t>> copies_;
  std::vector<Failure> failures_;
  std::vector<Entry> stack_;
  std::vector<int> visited_;
  int start_ = -1, at_ = -1, line_ = -1;
  int steps_ = 0;
};

PatternReader::PatternReader(const bytecode::Code& code, Flow& flow) : reader_(std::make_unique<CaseReader>(code, flow, flow.patterns)) {}
PatternReader::~PatternReader() = default;
bool PatternReader::read(int start, CodeCase* out) { return reader_->read(start, out); }
const std::vector<int>& PatternReader::visited() const { return reader_->visited(); }
int PatternReader::next_real(int i) const { return reader_->real(i); }

}  // namespace pellucid::decompile
