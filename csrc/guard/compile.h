// Compiler: turns guards into rows and tables. A source is one of three things while the program runs:
//   constant   one known object (guarded by identity, or reached from such an object through something that cannot change)
//   tracked    the value under a key of a verified dictionary or class: known while the tag stands, adopted again when it moved
//   derived    fixed by the identity of a tracked object: an item of a tuple, the globals of a function; loaded again when that moved
//   per call   loaded by a row in every check
#pragma once
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "guard/program.h"

namespace pellucid::guard {

enum class Status : uint8_t { kPerCall, kDerived, kTracked, kConstant };

// When a row runs: before the tables; after them if something moved; after them always.
enum class Phase : uint8_t { kEarly, kMoved, kLate };

struct Node {
  const source::Source* source = nullptr;
  Node* base = nullptr;
  py::Ref value;                     // at compile time
  std::vector<size_t> guards;        // indexes into the guard set
  Status edge = Status::kPerCall;    // what the path alone says
  Status status = Status::kPerCall;  // with an identity guard: constant
  PyTypeObject* type = nullptr;      // what its type is whenever the program hits, or null
  int64_t slot = -1;                 // virtual; see Compiler::new_slot
  uint32_t load_slot = 0;
  bool loaded = false, in_block = false, ensured = false;
  Phase phase = Phase::kEarly;  // of its load
  Expected* table = nullptr;    // tracked: where its entry is
  size_t entry = 0;
};

struct DictPlan {
  PyObject* dict = nullptr;
  Expected expected;
  Node* tracked = nullptr;  // found anew when it moves; otherwise a constant
};

class Compiler {
 public:
  Compiler(const GuardSet& guards, const FrameView& frame, Program& program) : set_(guards), frame_(frame), program_(program) {}
  // False with an exception set.
  bool compile(const std::vector<const source::Source*>& block, const std::vector<const source::Source*>& inputs);

 private:
  enum class Region : uint8_t { kBlock, kTensor, kEmpty, kKept, kScratch };
  // compile.cpp: what is known of each source
  bool collect();
  Node* node_of(const source::Source* source);
  Status edge_of(Node& node);
  PyTypeObject* known_type(const Node& node) const;
  bool keep_guard(const Guard& guard);

  // tables.cpp: constants and tracked values
  bool ensure_constant(Node& node);
  bool ensure_tracked(Node& node);
  bool pin_type(Node& node);  // the type of a constant will be verified
  bool add_pinned_types();
  bool pin_pointer(Node& owner, Py_ssize_t offset, PyObject* pointer);
  Expected* plan_dict(Node& node);  // of a constant or tracked dictionary
  Expected* plan_known_dict(PyObject* dict, size_t stage);
  Expected* plan_instance(Node& owner);  // the instance dictionary of a constant
  Expected* plan_type(PyTypeObject* type);
  size_t add_entry(Expected& table, PyObject* key, uint8_t checks);
  Entry& entry_of(Node& node) { return node.table->entries[node.entry]; }

  // lower.cpp: guards to rows and entries
  bool lower(const Guard& guard, size_t index);
  bool lower_id(const Guard& guard, Node& node);
  bool lower_type(const Guard& guard, Node& node);
  bool lower_equals(const Guard& guard, Node& node);
  bool lower_tensor(Node& node);
  bool lower_key(const Guard& guard, Node& node);
  bool lower_class_attr(const Guard& guard, Node& node);
  bool lower_mro(const Guard& guard, Node& node);
  bool lower_empty_dict(Node& node);
  bool lower_pair(Op op, Node& left, Node& right);
  bool lower_group(const std::vector<const source::Source*>& sources, Py_ssize_t watched);
  bool lower_distinct();
  // A slot or local that holds the node's value when a row of a phase not before `phase` runs.
  bool operand(Node& node, Operand& out, Phase& phase);
  bool loaded_operand(Node& node, Operand& out, Phase& phase);
  // `fixed`: what is checked cannot change without the object becoming another one.
  bool check_row(Node& node, Op op, uint64_t value, bool fixed = false);
  bool check_key_row(Node& node, Op op, PyObject* key, uint32_t destination = 0);
  void emit(Row row, Phase phase);
  int64_t new_slot(Region region, PyObject* value);
  uint32_t new_key(PyObject* key);
  void emit_local_tensors();
  bool find_inputs(const std::vector<const source::Source*>& inputs);
  void merge_rows();
  bool finish();
  bool fail(const Guard& guard, const char* why);

  const GuardSet& set_;
  const FrameView& frame_;
  Program& program_;
  std::unordered_map<const source::Source*, Node> nodes_;
  std::vector<std::pair<Row, int32_t>> rows_[3];  // by phase
  std::vector<PyObject*> regions_[5];
  std::deque<DictPlan> dict_plans_;
  std::unordered_map<const void*, DictPlan*> dict_plan_of_;  // by dictionary, or by node if tracked
  std::map<PyTypeObject*, Expected> type_plans_;
  std::unordered_set<PyObject*> object_rows_;
  std::unordered_map<PyObject*, Node*> pinned_types_;  // objects whose class the tables verify
  std::map<std::pair<PyObject*, Py_ssize_t>, size_t> other_rows_;
  std::vector<Node*> dict_nodes_;  // kDictOf of constants
  std::vector<std::pair<uint32_t, const bridge::TensorSpec*>> local_tensors_;
  std::vector<std::pair<int64_t, const bridge::TensorSpec*>> table_tensors_;
  std::vector<std::pair<const source::Source*, const source::Source*>> pairs_;
  std::vector<Operand> inputs_;
  bool needs_globals_ = false;
  int32_t current_guard_ = -1;
};

}  // namespace pellucid::guard
