// The compiled form of a set of guards: rows that read the frame, and tables of objects whose state is verified by version tags.
// Built by the compiler (compile.cpp), run by run.cpp, explained by explain.cpp and text.cpp.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpython/objects.h"
#include "guard/dict_clock.h"
#include "guard/guard.h"
#include "guard/hold.h"
#include "torch_bridge/global_state.h"
#include "torch_bridge/tensor_guard.h"

namespace pellucid::guard {

enum class Op : uint8_t {
  // Loads: slots[dst] = a step from the operand.
  kLoadFreeCell,
  kLoadInstanceItem,
  kLoadAttr,
  kLoadClassAttr,
  kLoadItem,
  kLoadItems,  // `count` of them from `argument` on, into slots side by side
  kLoadDictItem,
  kLoadCellContents,
  kLoadTypeOf,
  kLoadDictOf,
  kLoadDefault,
  kLoadKwDefault,
  kLoadClosureCell,
  kLoadBoundSelf,
  kLoadBoundFunc,
  kLoadReferent,
  kLoadFunctionField,
  // Checks of the operand.
  kIs,
  kType,
  kInt,
  kStr,
  kEquals,
  kLength,
  kDictKeys,
  kDictHas,
  kDictLacks,
  kInstanceLacks,
  kClassAttrIs,
  kTensors,
  kSame,
  kNotSame,
  kDistinct,
  kCode,
  kCodes,  // of `count` slots side by side, by the pointers from `argument` on
  kNoDefaults,
  kNoKwDefaults,
  kCellEmpty,
  kEmptyDict,
  kSubclassOf,
  // Checks of what is not an operand.
  kGlobals,  // the function's globals (and builtins) are those of the capture
  kState,
  kPrecision,
  kTables,
  kSkipUnlessMoved,  // the next `argument` rows only look at objects behind version tags: needed when one was adopted anew
  kSettled,          // ... and they all hold
  kEnd,
};

struct Operand {
  uint32_t index = 0;
  bool local = false;  // a fast local of the frame; otherwise a slot of the program
};

struct Row {  // 16 bytes
  Op op;
  uint8_t local;  // the operand is a fast local; bit 1: so is the second operand
  uint16_t count = 0;
  uint32_t source = 0;
  union {
    uint64_t value;  // an int, or a pointer
    struct {
      uint32_t destination, argument;
    };
  };
};
static_assert(sizeof(Row) == 16);

// What is expected below one key of a verified dictionary or class.
struct Entry {
  enum Check : uint8_t { kAny = 0, kId = 1, kEqual = 2, kOfType = 4, kAbsent = 8, kIsDict = 16, kUnwrap = 32 };
  cpython::Key key;
  uint8_t checks = kAny;
  int32_t slot = -1;      // where the current value is kept, if rows or tables need it
  int32_t dict_row = -1;  // the value is a dictionary that is verified in its turn, in this row of dicts_
  PyObject* identical = nullptr;
  PyObject* equal = nullptr;
  PyTypeObject* type = nullptr;
};

struct Expected {  // the cold side of a dictionary or class: compared only when its tag moved
  std::vector<Entry> entries;
  Py_ssize_t length = -1;
  PyObject* keys = nullptr;    // tuple of all keys, in order
  std::vector<PyObject*> mro;  // of a class; empty: any
  size_t stage = 0;            // dictionaries: how many others it is found through
  bool of_class = false;
};

struct ObjectRow {  // of the common layout: the dictionary pointer lies before the object
  PyObject* object;
  PyTypeObject* type;
  PyObject* dict;
};

struct OtherObjectRow {  // any pointer at any offset, for instance a module's dictionary; or only the type
  PyObject* object;
  PyTypeObject* type;
  PyObject* pointer;
  Py_ssize_t offset;
};

struct OwnedDict {             // the cold side of an object row: what follows when the object was given another __dict__
  size_t dict = SIZE_MAX;      // its row in dicts_; SIZE_MAX: the pointer is not a dictionary
  std::vector<int32_t> slots;  // which hold the dictionary itself
  bool pinned = false;         // a guard wants this very dictionary
};

struct DictRow {
  PyObject* dict;
  uint64_t version;
};

struct TypeRow {
  PyTypeObject* type;
  uint64_t version;  // never matches if the class cannot have a version
};

struct Group {                 // none of the watched objects is any other of the group; they come first
  std::vector<uint32_t> kept;  // slots that only change when a tag moves
  std::vector<Operand> per_call;
  size_t watched_kept = 0, watched_per_call = 0;
  std::vector<InputRun> runs;    // where those of the call lie
  std::vector<PyObject*> table;  // the watched ones that are kept, hashed, then those of the call
  std::vector<PyObject*> last;   // of the call in which this held last: only compared
  bool remembers = false;        // `last` is set, and nothing that is kept moved since
  bool stale = true;
};

struct GuardInfo {  // a guard as it is kept for reports: objects known by identity are not owned
  Kind kind;
  const source::Source* source = nullptr;
  const source::Source* other = nullptr;
  std::vector<const source::Source*> group;
  PyObject* payload = nullptr;
  PyObject* expected = nullptr;
  PyTypeObject* type = nullptr;  // kId of a container that nothing here keeps alive: its type, and `payload` may dangle
  py::Ref owned_payload;
  const bridge::TensorSpec* spec = nullptr;
  Py_ssize_t number = -1;
  UserLocation where;
  std::vector<PyObject*> classes = {};  // kMro
};

struct TextValue {  // an object that texts name as V[i]
  PyObject* object;
  PyTypeObject* type;           // set: the object may be gone,
  const source::Source* place;  // and is alive only if it is still found here (null: as the function's globals)
};
using TextValues = std::vector<TextValue>;

class Program final : public GuardProgram {
 public:
  Verdict check(const FrameView& frame) noexcept override;
  std::vector<Feature> features() const override;
  uint64_t feature_of(const FrameView& frame, uint32_t local, Feature::Kind kind) const noexcept override;
  bool valid() const override { return holds_.valid(); }
  int traverse(visitproc visit, void* arg) const override;
  size_t bytes() const override;
  PyObject* const* block() const override { return slots_.data(); }
  size_t block_size() const override { return block_size_; }
  const std::vector<InputRun>* input_runs() const override { return keeps_inputs_ ? &input_runs_ : nullptr; }
  size_t size() const override;
  std::vector<std::string> failures(const FrameView& frame) override;
  std::string check_fn_text() const override;
  std::string program_text() const override;
  PyObject* describe() const override;
  void adopt_arena(std::shared_ptr<source::Arena> arena) { arena_ = std::move(arena); }
  int evaluate_text(const FrameView& frame) const override;
  PyObject* text_values(const FrameView& frame) const override;

 private:
  friend class Compiler;

  enum class Answer : uint8_t { kYes, kNo, kRaised };

  // run.cpp
  Answer run(const FrameView& frame) noexcept;
  void raise_for(int32_t guard) const;
  bool check_tables(bridge::Tangents tangents) noexcept;
  bool revalidate_dict(size_t index) noexcept;
  bool revalidate_type(size_t index) noexcept;
  bool adopt(Entry& entry, PyObject* value) noexcept;
  bool adopt_dict(const OwnedDict& owned, PyObject* dict) noexcept;
  bool check_dicts() noexcept;
  bool check_group(Group& group, const FrameView& frame) noexcept;
  bool all_distinct(Group& group, const FrameView& frame) noexcept;
  PyObject* operand(Operand operand, const FrameView& frame) const {
    return operand.local ? frame.locals[operand.index] : slots_[operand.index];
  }

  // explain.cpp
  Answer holds(const GuardInfo& guard, const FrameView& frame, std::string& why) const;
  // text.cpp
  std::string guard_text(const GuardInfo& guard, TextValues& values) const;
  std::string whole_text(TextValues& values) const;
  py::Ref tuple_of(const TextValues& values, const FrameView& frame) const;

  Holds holds_;
  std::vector<Row> rows_;
  std::vector<PyObject*> slots_;  // block, table tensors, dictionaries that must be empty, other kept values, scratch
  size_t block_size_ = 0, tensor_count_ = 0, empty_end_ = 0;
  std::vector<InputRun> input_runs_;
  bool keeps_inputs_ = true;  // none of them is the result of a C getter

  std::vector<TypeRow> types_;
  std::vector<ObjectRow> objects_;
  std::vector<OtherObjectRow> other_objects_;
  std::vector<DictRow> dicts_;
  std::vector<size_t> stages_;  // ends of runs of dicts_: a run is found through the runs before it
  std::vector<const bridge::TensorSpec*> table_specs_;
  std::vector<std::pair<size_t, size_t>> table_runs_;  // of slots_, checked by table_specs_ at the same index
  std::vector<Expected> type_expected_, dict_expected_;
  std::vector<OwnedDict> object_dicts_, other_object_dicts_;

  std::vector<cpython::Key> keys_;
  std::vector<PyObject*> pointers_;  // second pointer operands of rows
  std::vector<const bridge::TensorSpec*> row_specs_;
  std::vector<Group> groups_;
  std::vector<PyObject*> owned_;  // results of C getters, until the check ends
  std::vector<int32_t> row_guards_;
  uint64_t dict_events_ = kUnknownDictEvents;  // when all dictionaries were as expected; unknown: some may not be
  bool moved_ = true;                          // an object was adopted since the rows behind kSkipUnlessMoved ran

  bridge::GlobalState state_;
  PyObject *globals_ = nullptr, *builtins_ = nullptr;
  bridge::SpecTable specs_;
  std::vector<GuardInfo> guards_;
  std::vector<const source::Source*> block_sources_;
  std::shared_ptr<source::Arena> arena_;
};

}  // namespace pellucid::guard
