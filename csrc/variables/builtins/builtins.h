// The table of modelled builtins: one entry keyed by the callable object, its rule in the family file it belongs to. What the family
// files share to read arguments and known values. Knows no bytecode and no torch.
#pragma once
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "variables/tracer.h"
#include "variables/values.h"

namespace pellucid::variables::builtins {

// The rule of one builtin. It answers, or fails: every builtin in the table is handled. It is given arguments that are forced, all or
// only the first few: values that are merely passed on need no guard.
using Handler = Answer (*)(Tracer& t, PyObject* callable, Arguments& arguments);

class Table {
 public:
  static const Table& get();  // built on first use

  static constexpr size_t kAll = SIZE_MAX;
  struct Entry {
    Handler handler = nullptr;
    size_t forced = kAll;  // how many positional arguments; all: keywords too
  };
  const Entry* find(PyObject* callable) const;  // null: not modelled

  // For the family files. Names may be dotted ("chain.from_iterable": the descriptor in the class is the key). A name that this
  // Python does not have is left out.
  void add(PyObject* callable, Handler handler, size_t forced = kAll);
  void add(const char* module, std::initializer_list<const char*> names, Handler handler, size_t forced = kAll);
  void replace(const char* module, std::initializer_list<const char*> names, Handler handler);
  void add_instances(const char* module, std::initializer_list<const char*> type_names, Handler handler);  // calls of instances
  void polyfill(const char* module, std::initializer_list<const char*> names, const char* polyfill_module);
  const char* polyfill_module(PyObject* callable) const;  // null: has none

 private:
  std::unordered_map<PyObject*, Entry> by_callable_;
  std::unordered_map<PyTypeObject*, Entry> by_type_;
  std::unordered_map<PyObject*, const char*> polyfills_;
};

// Families.
void add_attributes(Table& table);
void add_breaks(Table& table);
void add_collections(Table& table);
void add_conversion(Table& table);
void add_functional(Table& table);
void add_introspection(Table& table);
void add_iteration(Table& table);
void add_itertools(Table& table);
void add_numeric(Table& table);
void add_operators(Table& table);
void add_slots(Table& table);
void add_text(Table& table);

// Python's own names for a callable: "operator.add", "len".
std::string callable_name(PyObject* callable);
Failed unsupported(Tracer& t, PyObject* callable, const Arguments& arguments);     // break: not with these arguments
Failed data_dependent(Tracer& t, PyObject* callable, const Arguments& arguments);  // break: only the data tells

// Binds arguments to parameters as a C function would. Parameters before `positional_only` have no keyword; those from
// `keyword_only` on are given by keyword only. Absent ones are null. False when CPython would raise a TypeError (a break: the
// instruction as written raises it).
bool bind(const Arguments& arguments, std::initializer_list<const char*> names, size_t required, size_t positional_only, Variable** values,
          size_t keyword_only = SIZE_MAX);
void force_arguments(Tracer& t, Arguments& arguments, size_t count);
bool has_tensor(Tracer& t, const Arguments& arguments);

// Values.
PyObject* plain(Tracer& t, Variable* v);                           // the value if it is immutable data (is_data), else null; borrowed
py::Ref materialize(Tracer& t, Variable* v);                       // a new real object equal to `v`, made of data; null: not possible
Answer fold(Tracer& t, PyObject* callable, Arguments& arguments);  // Handler: runs it if all arguments materialize, else unsupported()
PyTypeObject* class_of(Tracer& t, Variable* v);                    // the class `v` is, if it is one from outside; else null
PyObject* mro_lookup(PyTypeObject* type, const char* name);        // _PyType_Lookup without guards; borrowed or null
PyTypeObject* torch_type(const char* module, const char* name);    // null while that module is not imported
bool is_torch_type(PyTypeObject* type, const char* module, const char* name);
PyObject* library(const char* module, const char* name);  // attribute of a standard module, kept for good; null if it has none

Variable* polyfill(Tracer& t, const char* module, const char* name);        // function of pellucid.polyfills.MODULE
Answer call_polyfill(Tracer& t, PyObject* callable, Arguments& arguments);  // Handler: the polyfill registered for `callable`

// What an iterator looked like before a builtin consumed from it: put back when the graph breaks inside, since the instruction then
// runs as written.
class IteratorSnapshot {
 public:
  void take(Variable* v);
  void restore() const;

 private:
  struct State {
    IteratorVariable* iterator;
    Py_ssize_t index;
    uint32_t version;
    bool exhausted;
    Variable* over;
    std::vector<Variable*> inner;
  };
  std::vector<State> states_;
};

}  // namespace pellucid::variables::builtins
