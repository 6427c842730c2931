// Source: where a Python value came from, as a path from the frame. Answers three questions: what it is called (name), how generated
// code reads it again (translate/codegen), and how a guard reads it (guard/). Interned per capture: equal paths are one pointer.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "py/ref.h"

namespace pellucid::source {

enum class Kind : uint8_t {
  kLocal,         // index: fast local at frame entry (an argument; a cell argument still holds its raw value there)
  kFreeCell,      // index: the cell object at func.__closure__[index]
  kGlobal,        // key: name in func.__globals__
  kConst,         // key: an object the entry keeps alive (a module's globals of an inlined function, builtins, a class)
  kInstanceItem,  // key: name in the __dict__ of `base`; generated code reads it as base.name
  kAttr,          // key: name; getattr(base, name) where that runs C code only (slots, module attributes, type attributes)
  kClassAttr,     // key: name; what type(base)'s MRO holds under name, unbound (a function, a descriptor, a constant)
  kItem,          // index: base[index] of an exact list or tuple (or a subclass read through the base type)
  kDictItem,      // key: base[key] of a dict (or a subclass read through the base type)
  kCellContents,  // base: a cell
  kTypeOf,        // type(base)
  kDictOf,        // base.__dict__
  kDefault,       // index: base.__defaults__[index]
  kKwDefault,     // key: base.__kwdefaults__[key]
  kClosureCell,   // index: base.__closure__[index], base a function other than the frame's
  kBoundSelf,     // base.__self__ of a bound method
  kBoundFunc,     // base.__func__ of a bound method
  kReferent,      // base(), base a weak reference; None if the object is dead
};

struct Source {
  Kind kind;
  const Source* base = nullptr;
  PyObject* key = nullptr;  // owned by the arena
  Py_ssize_t index = -1;
  std::string name;  // as Python text: L['x'].layers[0], G['torch'].abs
};

class Arena {  // owns sources; kept alive by the capture and then by the cache entry
 public:
  const Source* local(Py_ssize_t index, PyObject* name);
  const Source* free_cell(Py_ssize_t index, PyObject* name);
  const Source* global(PyObject* name);
  const Source* constant(PyObject* object);
  const Source* keyed(Kind kind, const Source* base, PyObject* key);       // kInstanceItem, kAttr, kClassAttr, kDictItem, kKwDefault
  const Source* indexed(Kind kind, const Source* base, Py_ssize_t index);  // kItem, kDefault, kClosureCell
  const Source* derived(Kind kind, const Source* base);                    // the kinds without key and index
  const std::deque<Source>& all() const { return sources_; }
  int traverse(visitproc visit, void* arg) const;  // objects that it owns, for the garbage collector
  size_t bytes() const;
  uint64_t comparisons() const { return comparisons_; }  // of sources, to find out whether one is new

 private:
  template <class Name>
  const Source* intern(Kind kind, const Source* base, PyObject* key, Py_ssize_t index, Name name);
  uint64_t comparisons_ = 0;
  std::deque<Source> sources_;
  std::deque<py::Ref> keys_;
  std::unordered_multimap<size_t, const Source*> table_;
  std::unordered_set<std::string> constant_names_;
};

}  // namespace pellucid::source
