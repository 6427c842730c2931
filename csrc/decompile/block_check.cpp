// The walk over both sides. Places where the block form's loops begin are where paths meet: there every value that the original holds gets
// a name by where it lies, and what was walked from such a pair of states before need not be walked again.
#include "decompile/block_check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "bytecode/neutral_code.h"
#include "decompile/block_parts.h"
#include "decompile/block_side.h"
#include "decompile/constants.h"

namespace pellucid::decompile {
namespace block {
namespace {

using bytecode::Code;
using bytecode::LocalKind;
using bytecode::Op;

constexpr int kSameFlags = 0x01 | 0x04 | 0x08 | 0x20 | 0x80 | 0x200;  // optimized, *args, **kwargs, generator, coroutine, async generator
constexpr int kMaxNesting = 100;
constexpr int kMaxLevels = 5;  // of the block form's loops

PyObject* docstring(const Code& code) {
  if ((code.flags & 1) == 0 || code.consts.empty() || !PyUnicode_CheckExact(code.consts[0].get())) return Py_None;
  // Code that compilers of others make need not keep the first constant for it.
  const bool used = std::any_of(code.instructions.begin(), code.instructions.end(),
                                [](const auto& in) { return (in.op == Op::LOAD_CONST || in.op == Op::RETURN_CONST) && in.arg == 0; });
  return used || utf8(code.name.get()).rfind('<', 0) == 0 ? Py_None : code.consts[0].get();
}

class Checker {
 public:
  Checker(PyObject* original, PyObject* bindings) : shared_(original) { naming_ = {shared_.temporary(""), bindings}; }

  // `left_free`, `right_free`: by name, what the free variables are in the scope around.
  void check(PyObject* original, PyObject* again, std::map<std::string, std::string> left_free,
             std::map<std::string, std::string> right_free, int depth);

  Terms& terms() { return terms_; }
  const Naming& naming() const { return naming_; }
  void check_function(const Event& left, const Event& right, int depth);

 private:
  std::map<std::string, std::string> cells_of(PyObject* code, int closure);

  Shared shared_;
  Naming naming_;
  Terms terms_;
  std::set<std::string> checked_;
};

class Walk {
 public:
  Walk(Checker& checker, Side& left, Side& right, int depth)
      : checker_(checker), terms_(checker.terms()), left_(left), right_(right), depth_(depth) {}

  void run() {
    most_ = 3000 * (left_.code().instructions.size() + right_.code().instructions.size()) + 100'000;
    add(left_.start(), right_.start());
    while (!work_.empty()) {
      auto [left, right] = std::move(work_.back());
      work_.pop_back();
      follow(std::move(left), std::move(right));
    }
  }

 private:
  using Key = std::vector<int>;

  void add(State left, State right) { work_.emplace_back(std::move(left), std::move(right)); }

  // Goes on with a pair of states until both end or are known.
  void follow(State left, State right) {
    std::vector<Key> passed;  // since the last event
    left_.seek(&left);
    for (;;) {
      if (++steps_ > most_) throw NotProven{"too many paths"};
      const Event b = right_.next(&right);
      if (b.kind == Event::kMeeting) {
        Key key = meet(&left, &right);
        if (std::find(passed.begin(), passed.end(), key) != passed.end()) {  // nothing ever happens on this side
          if (left_.next(&left).kind != Event::kForever) throw NotProven{"a loop that does nothing"};
          return;
        }
        if (!seen_.insert(key).second) return;
        passed.push_back(std::move(key));
        continue;
      }
      passed.clear();
      const bool deep = levels(right) >= kMaxLevels;  // where the block form has no loop for one more
      const int current = left.current;
      const Event a = left_.next(&left);
      match(a, b, current, right.current, deep);
      if (a.kind == Event::kReturn || a.kind == Event::kLeave || a.kind == Event::kForever) return;
      if (a.kind == Event::kBranch) {
        State other_left = left, other_right = right;
        turn(&left, a, true);
        turn(&right, b, true);
        turn(&other_left, a, false);
        turn(&other_right, b, false);
        add(std::move(other_left), std::move(other_right));
      } else {
        if (a.raises || b.raises) raise(left, a, right, b);
        if (!a.returns) return;
        give(&left, a, &right, b);
      }
      left_.seek(&left);
    }
  }

  static void turn(State* state, const Event& event, bool outcome) {
    state->pc = outcome ? event.if_true : event.if_false;
    state->phase = state->pc == event.index ? event.phase : 0;
  }

  void raise(const State& left, const Event& a, const State& right, const Event& b) {
    if (!left_.is_handled(a.index) && !right_.is_handled(b.index)) return;
    const int error = terms_.fresh();
    State other_left = left, other_right = right;
    left_.raise(&other_left, a.index, error);
    right_.raise(&other_right, b.index, error);
    add(std::move(other_left), std::move(other_right));
  }

  void give(State* left, const Event& a, State* right, const Event& b) {
    std::vector<int> results;
    for (int i = 0; i < a.results; ++i) results.push_back(terms_.fresh(a.truth && i == 0));
    left_.finish(left, a, results);
    right_.finish(right, b, results);
  }

  int levels(const State& state) const {
    const auto count =
        std::count_if(state.stack.begin(), state.stack.end(), [&](int term) { return terms_.kind(term) == TermKind::kSaved; });
    return static_cast<int>(left_.code().version < 311 ? count / 3 : count);
  }

  std::string shown(const Side& side, const Event& event) const {
    switch (event.kind) {
      case Event::kLeave:
        return "an exception leaves";
      case Event::kForever:
        return "a loop";
      default:
        break;
    }
    return side.shown(event.index) + (event.text.empty() ? "" : " " + event.text);
  }

  void match(const Event& a, const Event& b, int left_current, int right_current, bool deep) {
    const auto refuse = [&](const char* what) { throw NotProven{shown(left_, a) + " / " + shown(right_, b) + what}; };
    if (a.kind != b.kind) refuse("");
    if (a.kind == Event::kForever) return;
    if (a.op != b.op && a.kind == Event::kAct) refuse("");
    if (a.text != b.text || a.number != b.number) refuse(" with something else");
    if (a.results != b.results || a.truth != b.truth || a.returns != b.returns) refuse(" with other results");
    if (a.code != nullptr && b.code != nullptr) {
      checker_.check_function(a, b, depth_);
    } else if (a.code != b.code) {
      refuse(" of another code object");
    }
    if (a.operands != b.operands) refuse(" with other values");
    if (a.kind != Event::kAct || !a.raises) return;
    if (left_current != right_current && !(deep && a.op != Op::RAISE_VARARGS)) refuse(" while another exception is handled");
  }

  // Names values by where the original holds them, and lets go of what it holds no more.
  Key meet(State* left, State* right) {
    std::map<int, int> names;
    for (int& term : left->stack) term = named(term, &names);
    left->current = named(left->current, &names);
    if (left->leaving >= 0) left->leaving = named(left->leaving, &names);
    for (int& term : right->stack) term = held(term, names);
    right->current = held(right->current, names);
    if (right->leaving >= 0) right->leaving = held(right->leaving, names);
    Key key = {left->pc, left->phase, left->leaving, left->keywords, left->current, static_cast<int>(left->stack.size())};
    key.insert(key.end(), left->stack.begin(), left->stack.end());
    key.insert(key.end(), {right->pc, right->phase, right->leaving, right->current, static_cast<int>(right->stack.size())});
    key.insert(key.end(), right->stack.begin(), right->stack.end());
    for (const State* state : {left, right}) {
      for (const auto& [handler, depth] : state->depths) key.insert(key.end(), {handler, depth});
      key.push_back(-1);
    }
    for (auto& [name, term] : right->own) {
      term = right_.is_within_block(name) ? terms_.of(TermKind::kDead) : held(term, names);
      key.push_back(terms_.named(TermKind::kDead, name));
      key.push_back(term);
    }
    return key;
  }

  // What operations gave gets a name; of what is made of such values the values do. Constants and arguments stay: one side may have loaded
  // them already while the other still will.
  int named(int term, std::map<int, int>* names) {
    const Term& value = terms_[term];
    if (!value.parts.empty()) return rebuilt(term, [&](int part) { return named(part, names); });
    if (value.kind != TermKind::kFresh && value.kind != TermKind::kMet) return term;
    const auto known = names->find(term);
    if (known != names->end()) return known->second;
    const int name = terms_.add({TermKind::kMet, static_cast<int64_t>(names->size()), terms_.is_bool(term), nullptr, {}, {}});
    names->emplace(term, name);
    return name;
  }
  int held(int term, const std::map<int, int>& names) {
    const Term& value = terms_[term];
    if (!value.parts.empty()) return rebuilt(term, [&](int part) { return held(part, names); });
    if (value.kind != TermKind::kFresh && value.kind != TermKind::kMet) return term;
    const auto known = names.find(term);
    return known == names.end() ? terms_.of(TermKind::kDead) : known->second;
  }
  template <class Change>
  int rebuilt(int term, Change change) {
    Term made = terms_[term];
    for (int& part : made.parts) {
      part = change(part);
      // How many exceptions are being handled shows however little the original still has of them.
      if (terms_.kind(part) == TermKind::kDead && made.kind != TermKind::kSaved) return part;
    }
    return terms_.add(std::move(made));
  }

  Checker& checker_;
  Terms& terms_;
  Side &left_, &right_;
  const int depth_;
  std::vector<std::pair<State, State>> work_;
  std::set<Key> seen_;
  size_t steps_ = 0, most_ = 0;
};

void Checker::check(PyObject* original, PyObject* again, std::map<std::string, std::string> left_free,
                    std::map<std::string, std::string> right_free, int depth) {
  if (depth > kMaxNesting) throw NotProven{"code objects nested too deeply"};
  std::string key = std::to_string(reinterpret_cast<uintptr_t>(original)) + " " + std::to_string(reinterpret_cast<uintptr_t>(again));
  for (const auto* free : {&left_free, &right_free}) {
    for (const auto& [name, what] : *free) key += "\n" + name + "\n" + what;
    key += "\n";
  }
  if (!checked_.insert(key).second) return;
  Code a, b;
  if (!bytecode::decode(original, a) || !bytecode::decode(again, b)) throw PythonError();
  const std::string name = utf8(a.qualname.get());
  try {
    if (a.version != b.version) throw NotProven{"another version"};
    if (a.argcount != b.argcount || a.posonly != b.posonly || a.kwonly != b.kwonly || ((a.flags ^ b.flags) & kSameFlags) != 0) {
      throw NotProven{"another kind of function"};
    }
    if (!same_constant(docstring(a), docstring(b))) throw NotProven{"another docstring"};
    for (int i = 0; i < a.n_arguments(); ++i) {
      const std::string own = utf8(a.localsplus_names[static_cast<size_t>(i)].get());
      if (is_plain_name(own) && utf8(b.localsplus_names[static_cast<size_t>(i)].get()) != own) {
        const bool renamed = utf8(b.localsplus_names[static_cast<size_t>(i)].get()).rfind(naming_.prefix, 0) == 0;
        if (!renamed) throw NotProven{"arguments of other names"};
      }
    }
    Side left(terms_, naming_, std::move(a), std::move(left_free), nullptr);
    Side right(terms_, naming_, std::move(b), std::move(right_free), &left);
    Walk(*this, left, right, depth).run();
  } catch (const NotProven& problem) {
    throw NotProven{depth > 0 && problem.why.find(": ") != std::string::npos ? problem.why : name + ": " + problem.why};
  }
}

// What the free variables of a code object are, by name, from the cells that it is made with.
std::map<std::string, std::string> Checker::cells_of(PyObject* object, int closure) {
  Code code;
  if (!bytecode::decode(object, code)) throw PythonError();
  std::map<std::string, std::string> cells;
  const std::vector<int> parts = terms_.is_cells(closure) ? terms_[closure].parts : std::vector<int>();
  size_t next = 0;
  for (size_t slot = 0; slot < code.localsplus_names.size(); ++slot) {
    if (code.localsplus_kinds[slot] != LocalKind::kFree) continue;
    if (next >= parts.size()) throw NotProven{"a closure of another length"};
    cells[utf8(code.localsplus_names[slot].get())] = terms_[parts[next++]].text;
  }
  if (next != parts.size()) throw NotProven{"a closure of another length"};
  return cells;
}

void Checker::check_function(const Event& left, const Event& right, int depth) {
  std::map<std::string, std::string> around = cells_of(right.code, right.closure);
  for (const auto& [name, cell] : right.shadows) around[name] = cell;
  PyObject* again = right.code;
  Code code;
  if (right.inside) {
    if (!bytecode::decode(again, code)) throw PythonError();
    const auto found =
        std::find_if(code.consts.begin(), code.consts.end(), [](const py::Ref& each) { return bytecode::is_code(each.get()); });
    if (found == code.consts.end()) throw NotProven{"a function that holds none"};
    again = found->get();
  }
  Code original;
  if (!bytecode::decode(left.code, original)) throw PythonError();
  if (terms_.constant(original.name.get()) != right.name) throw NotProven{"a function of another name"};
  if (original.version >= 311 && terms_.constant(original.qualname.get()) != right.qualname) throw NotProven{"a function of another name"};
  check(left.code, again, cells_of(left.code, left.closure), std::move(around), depth + 1);
}

}  // namespace
}  // namespace block

bool check_block_form(PyObject* original, PyObject* again, PyObject* bindings, std::string* reason) {
  reason->clear();
  try {
    block::Checker checker(original, bindings);
    bytecode::Code a, b;
    if (!bytecode::decode(original, a) || !bytecode::decode(again, b)) return false;
    // Of the unit itself names tell which free variables are the same.
    const auto named = [&](const bytecode::Code& code, bool is_original) {
      std::map<std::string, std::string> free;
      for (size_t i = 0; i < code.localsplus_names.size(); ++i) {
        if (code.localsplus_kinds[i] != bytecode::LocalKind::kFree) continue;
        const std::string name = block::utf8(code.localsplus_names[i].get());
        free[name] = is_original && !block::is_plain_name(name) ? checker.naming().prefix + "free" + std::to_string(i) : name;
      }
      return free;
    };
    checker.check(original, again, named(a, true), named(b, false), 0);
  } catch (const block::NotProven& problem) {
    *reason = problem.why;
  } catch (const block::Unsupported& problem) {
    *reason = problem.what();
  } catch (const block::PythonError&) {
    return false;
  }
  return true;
}

}  // namespace pellucid::decompile
