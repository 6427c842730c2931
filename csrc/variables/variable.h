// VariableTrackers: what each Python value is during symbolic execution. One struct per kind of value; they hold state, the rules how
// they behave live in the files beside this one. All are owned by the capture and die with it. Knows no torch and no bytecode.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "py/ref.h"
#include "source/source.h"

namespace pellucid::variables {

enum class Kind : uint8_t {
  kNull,      // the NULL that CPython pushes below a callable
  kLazy,      // a value from outside that nobody has looked at yet: no guard
  kConstant,  // immutable and wholly known: numbers, strings, None, dtype, range, slice of constants ...
  kTensor,    // a node of the graph, with its fake
  kTuple,     // tuple, torch.Size, namedtuples
  kList,
  kDict,           // dict, OrderedDict, defaultdict
  kSet,            // set or frozenset of known keys
  kSlice,          // a slice with a part that is not constant
  kFunction,       // a Python function, from outside or made by the traced program
  kBoundMethod,    // Python method: function and self
  kBuiltinMethod,  // method `name` of a container, constant, tensor ... variable: called by name
  kObject,         // any other object: instance, class, module, C function; known by identity or type, or created here
  kCell,
  kIterator,
  kDictView,
  kSuper,
  kPartial,    // functools.partial
  kGenerator,  // a suspended translator frame
};

struct Variable {
  explicit Variable(Kind kind_) : kind(kind_) {}
  virtual ~Variable() = default;
  const Kind kind;
  bool changed = false;                    // differs from the object outside: side effects must write it back
  const source::Source* source = nullptr;  // where generated code reads it; null: made by the traced program
  PyObject* real = nullptr;                // the object outside (kept alive by the capture) or a known value
  uint64_t born_raise = 0;                 // exceptions: number of the instruction that first raised it
  uint64_t born = 0;                       // number of the instruction that made it
};

struct NullVariable : Variable {
  NullVariable() : Variable(Kind::kNull) {}
};

struct LazyVariable : Variable {
  LazyVariable() : Variable(Kind::kLazy) {}
  Variable* resolved = nullptr;
};

struct ConstantVariable : Variable {  // real: the value
  ConstantVariable() : Variable(Kind::kConstant) {}
};

struct TensorVariable : Variable {
  TensorVariable() : Variable(Kind::kTensor) {}
  uint32_t node = 0;
  PyObject* fake = nullptr;                                 // kept by the graph record
  PyTypeObject* type = nullptr;                             // torch.Tensor or torch.nn.Parameter
  std::vector<std::pair<PyObject*, Variable*>> attributes;  // Python attributes set by the traced program
};

struct TupleVariable : Variable {
  TupleVariable() : Variable(Kind::kTuple) {}
  std::vector<Variable*> items;
  PyTypeObject* type = nullptr;  // tuple, torch.Size or a namedtuple class
};

struct ListVariable : Variable {
  ListVariable() : Variable(Kind::kList) {}
  std::vector<Variable*> items;
};

struct DictVariable : Variable {
  DictVariable() : Variable(Kind::kDict) {}
  py::Ref index;                                         // a real dict: key -> position in `entries` (int)
  std::vector<std::pair<PyObject*, Variable*>> entries;  // in order; value null: deleted
  size_t live = 0;
  uint32_t version = 0;  // bumped when a key is added or removed: iterators notice
  PyTypeObject* type = nullptr;
  Variable* default_factory = nullptr;  // defaultdict
};

struct SetVariable : Variable {
  SetVariable() : Variable(Kind::kSet) {}
  py::Ref keys;  // a real set of known keys, or a frozenset
  bool frozen = false;
};

struct SliceVariable : Variable {
  SliceVariable() : Variable(Kind::kSlice) {}
  Variable* parts[3] = {};
};

struct CellVariable : Variable {
  CellVariable() : Variable(Kind::kCell) {}
  Variable* contents = nullptr;  // null: empty
  bool loaded = true;            // false: an outside cell whose contents were not read yet
  PyObject* name = nullptr;
};

struct FunctionVariable : Variable {
  FunctionVariable() : Variable(Kind::kFunction) {}
  PyObject* code = nullptr;
  PyObject* globals = nullptr;
  PyObject* name = nullptr;
  PyObject* qualname = nullptr;
  Variable* defaults = nullptr;    // tuple or null
  Variable* kwdefaults = nullptr;  // dict or null
  Variable* annotations = nullptr;
  std::vector<CellVariable*> closure;
  std::vector<std::pair<PyObject*, Variable*>> attributes;  // set by the traced program, or read from outside
};

struct BoundMethodVariable : Variable {
  BoundMethodVariable() : Variable(Kind::kBoundMethod) {}
  Variable* function = nullptr;
  Variable* self = nullptr;
};

struct BuiltinMethodVariable : Variable {
  BuiltinMethodVariable() : Variable(Kind::kBuiltinMethod) {}
  Variable* self = nullptr;
  PyObject* name = nullptr;
};

struct ObjectVariable : Variable {
  ObjectVariable() : Variable(Kind::kObject) {}
  PyTypeObject* type = nullptr;
  bool by_identity = false;            // guarded by identity: everything below it is anchored
  bool existed = true;                 // false: created by the traced program
  Variable* class_variable = nullptr;  // of a created object
  struct Attribute {
    PyObject* name;
    Variable* value;       // null: deleted
    bool written;          // by the traced program; false: only read
    bool slot;             // stored through a member descriptor, not in the __dict__
    bool removed = false;  // deleted by the traced program, and perhaps stored again since
  };
  std::vector<Attribute> attributes;
  std::vector<Variable*> arguments;  // exceptions: args
  Variable* inner = nullptr;         // containers: the list or dict an instance of a subclass holds
};

struct IteratorVariable : Variable {
  IteratorVariable() : Variable(Kind::kIterator) {}
  enum class Form : uint8_t {
    kSequence,
    kDict,
    kEnumerate,
    kZip,
    kMap,
    kFilter,
    kChain,
    kRepeat,
    kCount,
    kIslice,
    kReversed,
    kCallable
  } form = Form::kSequence;
  Variable* over = nullptr;        // kSequence: list or tuple (live); kDict: the dict
  std::vector<Variable*> inner;    // iterators of zip, map, chain ...
  Variable* function = nullptr;    // kMap, kFilter
  Py_ssize_t index = 0;            // next position; kEnumerate: next number
  Py_ssize_t stop = -1, step = 1;  // kRepeat, kIslice
  uint8_t which = 0;               // kDict: 0 keys, 1 values, 2 items
  uint32_t version = 0;            // kDict: of the dict when the iterator was made
  bool strict = false, exhausted = false;
};

struct DictViewVariable : Variable {
  DictViewVariable() : Variable(Kind::kDictView) {}
  DictVariable* dict = nullptr;
  uint8_t which = 0;
};

struct SuperVariable : Variable {
  SuperVariable() : Variable(Kind::kSuper) {}
  Variable* start = nullptr;  // the class whose MRO successor is searched
  Variable* self = nullptr;
};

struct PartialVariable : Variable {
  PartialVariable() : Variable(Kind::kPartial) {}
  Variable* function = nullptr;
  std::vector<Variable*> args;
  std::vector<std::pair<PyObject*, Variable*>> kwargs;
};

struct GeneratorVariable : Variable {
  GeneratorVariable() : Variable(Kind::kGenerator) {}
  void* frame = nullptr;  // translate::Frame, suspended; null once finished
  bool started = false, running = false;
  PyObject* name = nullptr;
};

template <class T>
T* as(Variable* variable, Kind kind) {
  return variable && variable->kind == kind ? static_cast<T*>(variable) : nullptr;
}
inline TensorVariable* as_tensor(Variable* v) { return as<TensorVariable>(v, Kind::kTensor); }
inline TupleVariable* as_tuple(Variable* v) { return as<TupleVariable>(v, Kind::kTuple); }
inline ListVariable* as_list(Variable* v) { return as<ListVariable>(v, Kind::kList); }
inline DictVariable* as_dict(Variable* v) { return as<DictVariable>(v, Kind::kDict); }
inline SetVariable* as_set(Variable* v) { return as<SetVariable>(v, Kind::kSet); }
inline ConstantVariable* as_constant(Variable* v) { return as<ConstantVariable>(v, Kind::kConstant); }
inline ObjectVariable* as_object(Variable* v) { return as<ObjectVariable>(v, Kind::kObject); }
inline FunctionVariable* as_function(Variable* v) { return as<FunctionVariable>(v, Kind::kFunction); }
inline IteratorVariable* as_iterator(Variable* v) { return as<IteratorVariable>(v, Kind::kIterator); }

}  // namespace pellucid::variables
