// Guards: what must hold for a cache entry to be used again. The translator collects them in a GuardSet; GuardProgram::compile makes
// the flat program that runs on every call. Knows sources, not variables.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "py/ref.h"
#include "source/source.h"

namespace pellucid::guard {

enum class Kind : uint8_t {
  kType,           // payload: type(x) is payload
  kId,             // payload: x is payload. Weak: freeing the object drops the entry (except None, types, functions of modules, ...)
  kEquals,         // payload: same type and equal value; exact int, float, str, bytes, bool, None, tuples of them, ...
  kLength,         // number: len(x) of a list, tuple, dict, set
  kDictKeys,       // payload: tuple of keys, in order (str/int/... compared by identity, then equality of exact builtin types)
  kDictHas,        // payload: key in x
  kDictLacks,      // payload: key not in x
  kInstanceLacks,  // payload: name not in x.__dict__
  kClassAttr,      // payload: name; expected: what type(x)'s MRO lookup gives (null: nothing); number 1: x is the class itself
  kGlobalLacks,    // payload: name not in func.__globals__ (the builtin is used)
  kTensor,         // payload: the example tensor: class, keys, dtype, device, layout, rank, sizes, strides, requires_grad
  kSame,           // other: x is other
  kDistinct,       // other: x is not other; or group: none of its first `number` sources (-1: all) is any other (cheap for many)
  kFunctionCode,   // payload: x.__code__ is payload
  kNoDefaults,     // x.__defaults__ (or, number 1, x.__kwdefaults__) is None or empty
  kCellEmpty,      // the cell x is empty
  kEmptyDict,      // x, a dict, is empty (hooks)
  kPrecision,      // number: classes << 32 | what bridge::float32_precision(classes) is
  kMro,            // payload: the classes of type(x)'s MRO (of x's own, number 1: x is a class)
  kSubclassOf,     // payload: class; with object: that x can be read is all that is wanted
};

struct UserLocation {
  py::Ref filename;
  int line = 0;
};

struct Guard {
  Kind kind;
  const source::Source* source = nullptr;
  const source::Source* other = nullptr;
  py::Ref payload, expected;
  Py_ssize_t number = -1;
  UserLocation where = {};
  std::vector<const source::Source*> group = {};
};

class GuardSet {  // what the translator fills; adding the same guard twice is free
 public:
  void add(Guard guard);
  const std::vector<Guard>& guards() const { return guards_; }
  bool has(Kind kind, const source::Source* source) const;
  uint64_t comparisons() const { return comparisons_; }  // of guards, to find out whether one is new

 private:
  uint64_t comparisons_ = 0;
  std::vector<Guard> guards_;
  std::unordered_multimap<size_t, size_t> by_guard_;           // hash -> index
  std::unordered_map<const source::Source*, uint32_t> kinds_;  // the kinds of guards on a source, as bits
};

// The frame as guards see it: the function and its fast locals at entry (arguments bound; cells not yet made).
struct FrameView {
  PyObject* func = nullptr;           // exact function object
  PyObject* const* locals = nullptr;  // co_nlocalsplus slots, only arguments are non-null
};

enum class Verdict : uint8_t { kHit, kMiss, kError };  // kError: a Python exception is set that names the guard

// Where a hit leaves some of the graph's inputs, side by side: in the frame's locals, or in the array that begins with the block.
struct InputRun {
  uint32_t first, count;
  bool local;
};

// What a program expects of one argument, as a number: programs that expect different numbers cannot both hold.
struct Feature {
  enum Kind : uint8_t { kInt, kType, kIdentity, kTensor };  // its value, class, address; dtype, device and sizes
  uint32_t local;
  Kind kind;
  uint64_t key;
};

class GuardProgram {
 public:
  // `block`: sources of graph inputs that are read through identity-guarded objects only (parameters, buffers): the program verifies
  // them and keeps their current objects in one array. `inputs`: of the graph's other inputs, where input_runs() is wanted.
  // Null with an exception set on failure.
  static std::unique_ptr<GuardProgram> compile(const GuardSet& guards, const std::vector<const source::Source*>& block,
                                               std::shared_ptr<source::Arena> arena, const FrameView& frame,
                                               const std::vector<const source::Source*>& inputs = {});
  virtual ~GuardProgram() = default;
  // Without looking further than at arguments; and what a frame has to show there. Equal numbers promise nothing.
  virtual std::vector<Feature> features() const { return {}; }
  virtual uint64_t feature_of(const FrameView&, uint32_t /*local*/, Feature::Kind) const noexcept { return 0; }
  virtual Verdict check(const FrameView& frame) noexcept = 0;  // the hot path: no allocation, borrowed references only
  virtual bool valid() const = 0;                              // false once a weakly held object was freed
  virtual PyObject* const* block() const = 0;                  // block inputs as verified by the last hit (borrowed)
  virtual size_t block_size() const = 0;
  // Where the last hit left `inputs`, in their order; both arrays stay where they are. Null where it keeps no references to them.
  virtual const std::vector<InputRun>* input_runs() const { return nullptr; }
  virtual std::vector<std::string> failures(const FrameView& frame) = 0;  // every failing guard with its values, for people
  virtual std::string check_fn_text() const = 0;                          // def check(L, G, ...): the same program as Python
  virtual std::string program_text() const = 0;                           // the flat rows, stably printed
  // check_fn_text() run as Python: 1, 0, or -1 with an exception set. For tests and for reports of people who doubt.
  virtual int evaluate_text(const FrameView&) const {
    PyErr_SetString(PyExc_NotImplementedError, "these guards have no text");
    return -1;
  }
  // The objects that the text calls V, for the frame: a tuple. Null with an exception set.
  virtual PyObject* text_values(const FrameView&) const {
    PyErr_SetString(PyExc_NotImplementedError, "these guards have no text");
    return nullptr;
  }
  // What the program owns, for the garbage collector of whoever owns the program; and how much memory it takes itself.
  virtual int traverse(visitproc, void*) const { return 0; }
  virtual size_t bytes() const { return 0; }
  virtual size_t size() const { return 0; }  // rows and table entries: what a call may check
  virtual PyObject* describe() const = 0;    // list of dicts: name, source, kind, text, filename, line
};

}  // namespace pellucid::guard
