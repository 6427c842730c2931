// The symbols that values have while a block form is compared with its original: equal values have one number. For block_*.cpp only.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "py/ref.h"

namespace pellucid::decompile::block {

enum class TermKind : uint8_t {
  kConst,      // `object`
  kFresh,      // what an operation gave
  kMet,        // any value: what a place held where paths met
  kArgument,   // an argument that nothing assigns to: its slot
  kNull,       // PUSH_NULL
  kNothing,    // no exception is being handled
  kOffset,     // of a raising instruction
  kDead,       // a value that the original has no more
  kTuple,      // of `parts`
  kTypeOf,     // up to 3.10: the type of the exception that is the part
  kTraceback,  // and its traceback
  kStopped,    // the exception that leaves a generator instead of the part
  kIs,         // whether two values are one
  kNot,        // the opposite
  kCell,       // the cell of the variable `text`
  kSaved,      // the exception that was handled before: the part
  kShadow,     // what LOAD_FAST_AND_CLEAR took from slot `number`
  kRaw,        // block form: a function before block_support makes it what it should be: `object` is the code, the part its closure
  kSupport,    // block_support
  kHelper,     // `text` of it
  kPackage,    // pellucid, while it is imported
  kGlobals,
  kLocals,
  kJoin,      // the method that joins without anything between
  kLabel,     // block form: of a block
  kNormal,    // 3.8: a finally block was entered in the normal way
  kReturnTo,  // 3.8: it was called, to go back to `number`
  kDelegate,  // an iterator that `yield from` goes on with: `number` 1: it has yielded a value already
  kGiven,     // an awaitable that yields the part
  kWrapped,   // what an asynchronous generator yields
  kMerged,    // block form: a copy of the part, a mapping
};

struct Term {
  TermKind kind = TermKind::kNull;
  int64_t number = 0;
  bool truth = false;  // it is True or False
  PyObject* object = nullptr;
  std::string text;
  std::vector<int> parts;
};

class Terms {
 public:
  int add(Term term);
  int of(TermKind kind, std::vector<int> parts = {}, int64_t number = 0) {
    return add({kind, number, false, nullptr, {}, std::move(parts)});
  }
  int named(TermKind kind, std::string text) { return add({kind, 0, false, nullptr, std::move(text), {}}); }
  int fresh(bool truth = false) { return add({TermKind::kFresh, next_++, truth, nullptr, {}, {}}); }
  int constant(PyObject* object);
  int own_constant(py::Ref object);
  int tuple(std::vector<int> parts);  // a constant where all parts are
  int negated(int term);
  int is(int left, int right);
  const Term& operator[](int index) const { return terms_[static_cast<size_t>(index)]; }
  TermKind kind(int index) const { return terms_[static_cast<size_t>(index)].kind; }

  // 1 or 0 where the value's truth is known, -1 where it is not.
  int truth(int term) const;
  bool is_bool(int term) const;
  bool is_cells(int term) const;  // a tuple of cells, or ()
  // The parts of a tuple, of a constant one too. False for anything else.
  bool parts_of(int term, std::vector<int>* parts);

 private:
  using Key = std::tuple<TermKind, int64_t, bool, PyObject*, std::string, std::vector<int>>;
  std::vector<Term> terms_;
  std::map<Key, int> known_;
  std::map<std::pair<PyTypeObject*, Py_hash_t>, std::vector<int>> constants_;
  std::vector<py::Ref> kept_;
  int64_t next_ = 0;
};

}  // namespace pellucid::decompile::block
