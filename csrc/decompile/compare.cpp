// The two grades: instruction by instruction, and by walking pairs of flow nodes that must do the same and lead to such pairs.
// Knows nothing of source text.
#include "decompile/compare.h"

#include <deque>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bytecode/code.h"
#include "bytecode/effects.h"
#include "bytecode/neutral_code.h"
#include "bytecode/tables.h"
#include "decompile/canonical.h"
#include "decompile/constants.h"
#include "decompile/value_flow.h"

namespace pellucid::decompile {
namespace {

using bytecode::Code;
using bytecode::Instruction;
using bytecode::LocalKind;
using bytecode::Op;

constexpr int kOptimized = 0x01, kNested = 0x10, kNoFree = 0x40;  // CO_...
constexpr int kMaxNesting = 200;
constexpr char kAround[] = "around.<locals>.";  // where _recompile.py puts what has free variables

std::string utf8(PyObject* text) {
  const char* bytes = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
  if (bytes != nullptr) return bytes;
  PyErr_Clear();
  return "?";
}

std::string show(PyObject* object) {
  if (object == nullptr) return "nothing";
  const py::Ref repr = py::Ref::steal(PyObject_Repr(object));
  if (!repr) {
    PyErr_Clear();
    return Py_TYPE(object)->tp_name;
  }
  std::string text = utf8(repr.get());
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

bool equal_objects(PyObject* a, PyObject* b) {
  const int answer = PyObject_RichCompareBool(a, b, Py_EQ);
  if (answer < 0) PyErr_Clear();
  return answer == 1;
}

bool ends_behind_dot(const std::string& whole, const std::string& tail) {
  return whole.size() > tail.size() && whole.compare(whole.size() - tail.size(), tail.size(), tail) == 0 &&
         whole[whole.size() - tail.size() - 1] == '.';
}

std::vector<std::string> names_of(const Code& code, bool (*wanted)(LocalKind)) {
  std::vector<std::string> names;
  for (size_t i = 0; i < code.localsplus_names.size(); ++i) {
    if (wanted(code.localsplus_kinds[i])) names.push_back(utf8(code.localsplus_names[i].get()));
  }
  return names;
}

bool is_local(LocalKind kind) { return kind == LocalKind::kLocal || kind == LocalKind::kLocalCell; }
bool is_cell(LocalKind kind) { return kind == LocalKind::kCell || kind == LocalKind::kLocalCell; }
bool is_free(LocalKind kind) { return kind == LocalKind::kFree; }

class Comparer {
 public:
  explicit Comparer(const CompareOptions& options) : options_(options) {}

  // False with an exception set where a code object cannot be decoded.
  bool run(PyObject* original, PyObject* again, int depth, Grade* grade) {
    const auto key = std::make_pair(original, again);
    if (const auto known = known_.find(key); known != known_.end()) {
      *grade = known->second;
      return true;
    }
    if (depth > kMaxNesting) {
      PyErr_SetString(PyExc_ValueError, "code objects nested too deeply to compare");
      return false;
    }
    Code a, b;
    if (!bytecode::decode(original, a) || !bytecode::decode(again, b)) return false;
    *grade = Grade::kDiffers;
    const std::string qualname = utf8(a.qualname.get());
    std::string problem = different_heads(a, b);
    if (!problem.empty()) {
      note(&flow_difference_, qualname, problem);
    } else {
      if (!same_instructions(a, b, depth, &problem)) return false;
      if (problem.empty()) {
        *grade = Grade::kIdentical;
      } else {
        note(&identity_difference_, qualname, problem);
        if (!same_flow(a, b, depth, &problem)) return false;
        if (!problem.empty() && !same_values(a, b, depth, &problem)) return false;
        if (problem.empty()) {
          *grade = Grade::kEqualFlow;
        } else {
          note(&flow_difference_, qualname, problem);
        }
      }
    }
    known_[key] = *grade;
    return true;
  }

  const std::string& difference(Grade grade) const { return grade == Grade::kDiffers ? flow_difference_ : identity_difference_; }

 private:
  static void note(std::string* where, const std::string& qualname, const std::string& problem) {
    if (where->empty()) *where = qualname + ": " + problem;
  }

  std::string different_heads(const Code& a, const Code& b) const {
    if (a.version != b.version) return "versions " + std::to_string(a.version) + " and " + std::to_string(b.version);
    if (a.argcount != b.argcount || a.posonly != b.posonly || a.kwonly != b.kwonly) return "numbers of arguments";
    int ignored = kNoFree;
    if (options_.standalone) ignored |= kNested;  // whether a function stands around the unit is not the unit's
    if (((a.flags ^ b.flags) & ~ignored) != 0) return "flags " + std::to_string(a.flags) + " and " + std::to_string(b.flags);
    if (!equal_objects(a.name.get(), b.name.get())) return "names " + show(a.name.get()) + " and " + show(b.name.get());
    for (int i = 0; i < a.n_arguments(); ++i) {
      const auto slot = static_cast<size_t>(i);
      if (slot >= a.localsplus_names.size() || slot >= b.localsplus_names.size()) return "arguments without a name";
      if (!equal_objects(a.localsplus_names[slot].get(), b.localsplus_names[slot].get())) {
        return "arguments " + show(a.localsplus_names[slot].get()) + " and " + show(b.localsplus_names[slot].get());
      }
    }
    const auto set_of = [](const std::vector<std::string>& names) { return std::set<std::string>(names.begin(), names.end()); };
    if (set_of(names_of(a, is_cell)) != set_of(names_of(b, is_cell))) return "cell variables";
    if (set_of(names_of(a, is_free)) != set_of(names_of(b, is_free))) return "free variables";
    if (!same_constant(docstring(a), docstring(b))) return "docstrings " + show(docstring(a)) + " and " + show(docstring(b));
    return "";
  }

  // What the function takes as its __doc__, null for none.
  static PyObject* docstring(const Code& code) {
    if ((code.flags & kOptimized) == 0 || code.consts.empty() || !PyUnicode_Check(code.consts[0].get())) return nullptr;
    if (utf8(code.name.get()).rfind('<', 0) == 0) return nullptr;
    return code.consts[0].get();
  }

  // The name that the next instruction stores under, empty for none.
  static std::string stored_next(const Code& code, size_t index) {
    if (index + 1 >= code.instructions.size()) return "";
    const Instruction& next = code.instructions[index + 1];
    return next.op == Op::STORE_NAME && next.arg < code.names.size() ? utf8(code.names[next.arg].get()) : "";
  }

  bool is_qualname(const Code& code, size_t index) const {
    if (stored_next(code, index) == "__qualname__") return true;
    return code.version < 311 && index + 1 < code.instructions.size() && code.instructions[index + 1].op == Op::MAKE_FUNCTION;
  }

  // Whether two constants loaded at these instructions count as the same; `good` is the worst grade that will do for code objects.
  bool same_loaded(const Code& a, size_t i, PyObject* left, const Code& b, size_t j, PyObject* right, Grade good, int depth, bool* same) {
    *same = true;
    if (left == nullptr || right == nullptr) {
      *same = left == right;
      return true;
    }
    if (bytecode::is_code(left) && bytecode::is_code(right)) {
      Grade grade;
      if (!run(left, right, depth + 1, &grade)) return false;
      *same = grade >= good;
      return true;
    }
    if (same_constant(left, right)) return true;
    const std::string stored = stored_next(a, i);
    if (a.version >= 313 && (stored == "__firstlineno__" || stored == "__static_attributes__") && stored == stored_next(b, j)) return true;
    if (options_.standalone && PyUnicode_Check(left) && PyUnicode_Check(right) && is_qualname(a, i) && is_qualname(b, j)) {
      const std::string x = utf8(left);
      std::string y = utf8(right);
      if (y.rfind(kAround, 0) == 0) y = y.substr(sizeof kAround - 1);
      if (x == y || ends_behind_dot(x, y) || ends_behind_dot(y, x)) return true;
    }
    *same = false;
    return true;
  }

  static std::string shown(const Code& code, size_t index) {
    if (index >= code.instructions.size()) return "the end";
    const Instruction& in = code.instructions[index];
    const bytecode::Tables& tables = *bytecode::tables(code.version);
    std::string text = std::to_string(index) + " " + bytecode::op_name(in.op);
    const int flags = tables.info(in.op).flags;
    if ((flags & bytecode::kHasConst) != 0 && in.arg < code.consts.size()) return text + " " + show(code.consts[in.arg].get());
    if (in.target >= 0) return text + " to " + std::to_string(in.target);
    if ((flags & bytecode::kHasArg) == 0) return text;
    const auto of = [&](const std::vector<py::Ref>& names, uint32_t at) { return at < names.size() ? utf8(names[at].get()) : "?"; };
    if ((flags & bytecode::kHasName) != 0) return text + " " + of(code.names, name_index(code, in));
    if ((flags & (bytecode::kHasLocal | bytecode::kHasFree)) != 0) return text + " " + of(code.localsplus_names, in.arg);
    return text + " " + std::to_string(in.arg);
  }

  bool same_instructions(const Code& a, const Code& b, int depth, std::string* problem) {
    const bytecode::Tables& tables = *bytecode::tables(a.version);
    for (size_t i = 0; i < a.instructions.size() || i < b.instructions.size(); ++i) {
      const std::string both = shown(a, i) + " / " + shown(b, i);
      *problem = both;
      if (i >= a.instructions.size() || i >= b.instructions.size()) return true;
      const Instruction &x = a.instructions[i], &y = b.instructions[i];
      if (x.op != y.op || x.target != y.target) return true;
      const int flags = tables.info(x.op).flags;
      if ((flags & bytecode::kHasConst) != 0) {
        bool same;
        PyObject* left = x.arg < a.consts.size() ? a.consts[x.arg].get() : nullptr;
        PyObject* right = y.arg < b.consts.size() ? b.consts[y.arg].get() : nullptr;
        if (!same_loaded(a, i, left, b, i, right, Grade::kIdentical, depth, &same)) return false;
        if (!same) return true;
      } else if (x.target < 0 && x.arg != y.arg) {  // names and variables are compared as wholes below
        return true;
      }
    }
    *problem = rows_differ(a, b);
    if (problem->empty() && !same_names(a.names, b.names)) *problem = "co_names differ";
    if (problem->empty() && names_of(a, is_local) != names_of(b, is_local)) *problem = "co_varnames differ";
    if (problem->empty() && (names_of(a, is_cell) != names_of(b, is_cell) || names_of(a, is_free) != names_of(b, is_free))) {
      *problem = "the order of cell or free variables";
    }
    if (problem->empty() && !options_.standalone && !equal_objects(a.qualname.get(), b.qualname.get())) *problem = "qualified names";
    return true;
  }

  static bool same_names(const std::vector<py::Ref>& a, const std::vector<py::Ref>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!equal_objects(a[i].get(), b[i].get())) return false;
    }
    return true;
  }

  static std::string rows_differ(const Code& a, const Code& b) {
    for (size_t r = 0; r < a.rows.size() || r < b.rows.size(); ++r) {
      if (r < a.rows.size() && r < b.rows.size()) {
        const bytecode::ExceptionRow &x = a.rows[r], &y = b.rows[r];
        if (x.start == y.start && x.end == y.end && x.target == y.target && x.depth == y.depth && x.lasti == y.lasti) continue;
      }
      return "exception row " + std::to_string(r);
    }
    return "";
  }

  static bool can_raise(const CanonicalNode& node) {
    switch (node.op) {
      case Op::LOAD_CONST:
      case Op::STORE_FAST:
      case Op::POP_TOP:
      case Op::COPY:
      case Op::SWAP:
      case Op::DUP_TOP:
      case Op::ROT_TWO:
      case Op::ROT_THREE:
      case Op::RETURN_VALUE:
      case Op::RESUME:
      case Op::PUSH_EXC_INFO:
      case Op::POP_EXCEPT:
        return false;
      default:
        return node.kind != CanonicalKind::kForever;
    }
  }

  // A constant, and the global that stands for it.
  bool is_bound(const CanonicalNode& m, const CanonicalNode& n) const {
    if (options_.bindings == nullptr || m.op != Op::LOAD_CONST || n.op != Op::LOAD_GLOBAL || n.object == nullptr) return false;
    return m.object != nullptr && PyDict_GetItemWithError(options_.bindings, n.object) == m.object;
  }

  bool same_flow(const Code& a, const Code& b, int depth, std::string* problem) {
    const CanonicalFlow left = canonical_flow(a), right = canonical_flow(b);
    const size_t most = 50 * (left.nodes.size() + right.nodes.size());
    std::unordered_set<uint64_t> seen;
    std::deque<std::pair<int32_t, int32_t>> work;
    const auto pair_up = [&](int32_t x, int32_t y) {
      if (seen.insert(static_cast<uint64_t>(static_cast<uint32_t>(x)) << 32 | static_cast<uint32_t>(y)).second) work.emplace_back(x, y);
    };
    problem->clear();
    pair_up(left.entry, right.entry);
    while (!work.empty()) {
      const auto [x, y] = work.front();
      work.pop_front();
      if (x < 0 && y < 0) continue;
      if (x < 0 || y < 0 || seen.size() > most) {
        *problem = "execution ends in one only";
        return true;
      }
      const CanonicalNode &m = left.nodes[static_cast<size_t>(x)], &n = right.nodes[static_cast<size_t>(y)];
      const bool bound = is_bound(m, n);
      bool same = bound || (m.kind == n.kind && m.op == n.op && m.number == n.number && m.named == n.named);
      if (same && m.named) {
        same = m.object != nullptr && n.object != nullptr && equal_objects(m.object, n.object);
      } else if (same && !bound &&
                 !same_loaded(a, static_cast<size_t>(m.instruction), m.object, b, static_cast<size_t>(n.instruction), n.object,
                              Grade::kEqualFlow, depth, &same)) {
        return false;
      }
      if (same && can_raise(m) && ((m.handler < 0) != (n.handler < 0) || m.lasti != n.lasti)) {
        *problem = "what handles exceptions of ";
        same = false;
      }
      if (!same) {
        *problem += shown(a, static_cast<size_t>(m.instruction)) + " / " + shown(b, static_cast<size_t>(n.instruction));
        return true;
      }
      if (m.handler >= 0 && n.handler >= 0 && can_raise(m)) pair_up(m.handler, n.handler);
      if (m.kind == CanonicalKind::kEnd || m.kind == CanonicalKind::kForever) continue;
      pair_up(m.next, n.next);
      if (m.other >= 0 || n.other >= 0) pair_up(m.other, n.other);
    }
    return true;
  }

  // Whether the second has names for values that the first keeps on the stack, and is the same otherwise.
  bool same_values(const Code& a, const Code& b, int depth, std::string* problem) {
    bool fine = true;
    ValueQuestions questions;
    questions.bound = [&](PyObject* name) {
      return options_.bindings == nullptr ? nullptr : PyDict_GetItemWithError(options_.bindings, name);
    };
    questions.same_constant = [&](PyObject* left, PyObject* right) {
      if (!fine) return false;
      if (!bytecode::is_code(left) || !bytecode::is_code(right)) return same_constant(left, right);
      Grade grade;
      fine = run(left, right, depth + 1, &grade);
      return fine && grade >= Grade::kEqualFlow;
    };
    const std::string found = values_differ(a, b, questions);
    if (found.empty()) {
      problem->clear();
    } else {
      *problem += "; with names for values: " + found;
    }
    return fine;
  }

  const CompareOptions& options_;
  std::map<std::pair<PyObject*, PyObject*>, Grade> known_;
  std::string identity_difference_, flow_difference_;
};

}  // namespace

bool compare(PyObject* original, PyObject* again, const CompareOptions& options, Comparison* out) {
  Comparer comparer(options);
  if (!comparer.run(original, again, 0, &out->grade)) return false;
  out->difference = out->grade == Grade::kIdentical ? "" : comparer.difference(out->grade);
  return true;
}

}  // namespace pellucid::decompile
