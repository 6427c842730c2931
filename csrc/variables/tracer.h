// Tracer: what the rules of variables may ask of the symbolic execution around them: make variables, install guards, record operators,
// call Python functions, fail with a reason. Implemented by translate::InstructionTranslator.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "guard/guard.h"
#include "variables/failure.h"
#include "variables/variable.h"

namespace pellucid::variables {

struct Arguments {
  std::vector<Variable*> positional;
  std::vector<std::pair<PyObject*, Variable*>> keywords;  // names are kept by the tracer
  Variable* keyword(std::string_view name) const;         // null if absent
  bool only_positional(size_t low, size_t high) const { return keywords.empty() && positional.size() >= low && positional.size() <= high; }
};

// A result of null means: a frame was pushed; its return value will be pushed on the caller's stack when it returns. Only allowed in
// tail position of an instruction; everybody else says tracer.wait(...).
using Answer = Result<Variable*>;

class Tracer {
 public:
  virtual ~Tracer();

  // -- making variables (owned by the tracer)
  template <class T>
  T* make() {
    auto owned = std::make_unique<T>();
    T* variable = owned.get();
    variable->born = instruction_count();
    variables_.push_back(std::move(owned));
    return variable;
  }
  PyObject* keep(PyObject* borrowed);      // takes a reference for the capture's life; returns the same object
  PyObject* keep_new(PyObject* owned);     // takes over a reference
  PyObject* intern(const char* text);      // an interned str, kept
  Variable* constant(PyObject* borrowed);  // ConstantVariable, or tuple of them
  Variable* constant_new(PyObject* owned);
  Variable* none() { return constant(Py_None); }
  Variable* boolean(bool value) { return constant(value ? Py_True : Py_False); }
  Variable* integer(Py_ssize_t value) { return constant_new(PyLong_FromSsize_t(value)); }
  Variable* string(std::string_view text);
  TupleVariable* tuple(std::vector<Variable*> items, PyTypeObject* type = &PyTuple_Type);
  ListVariable* list(std::vector<Variable*> items);
  DictVariable* dict(PyTypeObject* type = &PyDict_Type);

  // -- outside objects (variables/build.cpp)
  Variable* lazy(PyObject* real, const source::Source* source);  // no guard yet
  Variable* force(Variable* variable);                           // resolves a lazy one: guards are installed. Never null
  Variable* known_object(PyObject* real);   // an object that needs no guard: builtins, classes reached through constants
  Variable* outside(PyObject* real) const;  // the variable already made for this object, or null
  CellVariable* outside_cell(PyObject* cell, const source::Source* source);
  Result<Variable*> cell_contents(CellVariable* cell);  // null: the cell is empty

  // -- guards
  source::Arena& sources() { return *arena_; }
  void guard(guard::Kind kind, const source::Source* source, PyObject* payload = nullptr, Py_ssize_t number = -1);
  // `source` (null: made in the trace) is an object of `type`, whose MRO gives `expected` (null: nothing) for an interned `name`.
  void guard_class_attribute(const source::Source* source, PyTypeObject* type, PyObject* name, PyObject* expected);
  // What attributes of `type` are looked for in, and what its objects are instances of.
  void guard_mro(const source::Source* source, PyTypeObject* type);
  bool guarded(guard::Kind kind, const source::Source* source) const { return guards_.has(kind, source); }
  void guard_pair(guard::Kind kind, const source::Source* a, const source::Source* b);  // kSame, kDistinct

  // As lazy(), of something that need not be there: if nothing is guarded of it in the end, that it is there is.
  Variable* lazy_present(PyObject* real, const source::Source* source);
  void guard_presence();

  // Two outside objects were taken for two: where one of them was changed, that must hold at the next call too.
  void guard_distinctness();

  // -- failures
  Failed fail(Reason reason, std::string detail);  // graph break
  Failed raise(Variable* exception);               // the traced program raises
  Failed raise_new(PyObject* exception_type, const char* format, ...);
  Failed raise_python_error();  // the Python exception that is set becomes one of the traced program
  Failed fatal();               // the Python exception that is set leaves the capture
  Failed skip_frame(Reason reason, std::string detail);

  // -- control, by the translator
  virtual Answer call_function(FunctionVariable* function, Arguments arguments) = 0;  // inlines: pushes a frame (null), or a generator
  virtual Answer wait(Answer answer) = 0;                                             // runs a pushed frame to its end
  virtual Answer resume_generator(GeneratorVariable* generator, Variable* sent) = 0;  // wait() on it; raises StopIteration at its end
  virtual Answer throw_into_generator(GeneratorVariable* generator, Variable* exception) = 0;
  virtual Variable* handled_exception() = 0;  // sys.exc_info()[1] as traced, or null
  virtual uint64_t instruction_count() const = 0;
  virtual const guard::UserLocation& location() = 0;

  // -- tensor work, by the translator's output graph (translate/output_graph.cpp)
  // Runs `target` on the fakes, records the node, wraps the result. method_name non-null: a method call on arguments.positional[0].
  virtual Answer torch_operator(PyObject* target, PyObject* method_name, const Arguments& arguments) = 0;
  // The same for a function that changes torch's modes: its node stays whatever it returns.
  virtual Answer state_operator(PyObject* target, const Arguments& arguments) = 0;
  virtual Answer tensor_input(PyObject* tensor, const source::Source* source) = 0;  // placeholder for an outside tensor
  virtual Answer wrap_result(PyObject* fake_result, uint32_t node) = 0;

  // -- changed variables, in order of first change (side effects written back at the end)
  void mark_changed(Variable* variable);
  const std::vector<Variable*>& changed() const { return changed_; }

  // Globals written by the traced program: (globals dict, name) -> value (null: deleted)
  struct GlobalWrite {
    PyObject* globals;
    PyObject* name;
    Variable* value;      // null: deleted
    bool stored = false;  // and deleted later: no such name need have existed before
  };
  const std::vector<GlobalWrite>& global_writes() const { return global_writes_; }
  GlobalWrite* written_global(PyObject* globals, PyObject* name);  // null: not written
  void write_global(PyObject* globals, PyObject* name, Variable* value);

  bool changes_state = false;  // the graph has nodes that change torch's modes

 protected:
  std::shared_ptr<source::Arena> arena_ = std::make_shared<source::Arena>();
  guard::GuardSet guards_;
  std::vector<std::unique_ptr<Variable>> variables_;
  std::vector<py::Ref> kept_;
  std::unordered_map<PyObject*, Variable*> outside_;  // identity: one variable per outside object
  std::vector<Variable*> changed_;
  std::vector<GlobalWrite> global_writes_;
  std::map<std::pair<PyObject*, PyObject*>, size_t> global_write_of_;  // (globals, name) -> index
  std::vector<std::unique_ptr<Failure>> failures_;
  std::unordered_map<std::string, PyObject*> interned_;
  // What was guarded of which class, and through which object.
  std::unordered_map<PyTypeObject*, std::unordered_map<PyObject*, const source::Source*>> class_attributes_;
  std::unordered_map<PyTypeObject*, const source::Source*> mros_;
  std::vector<LazyVariable*> present_;
};

// -- what values do. One function per protocol; the files beside this one implement them by kind.
bool may_be_written(PyTypeObject* type);  // a class of the program: its bases and special methods may change
PyTypeObject* type_of(Variable* v);       // v forced; null if not known (never for what is modelled)
PyObject* known(Tracer& t, Variable* v);  // the real object if wholly known (tuples, slices of constants too), else null; borrowed
std::string describe(Variable* v);        // for messages: "Tensor", "list of 3", "function f"

Answer get_attribute(Tracer& t, Variable* object, PyObject* name);  // attribute.cpp
Status set_attribute(Tracer& t, Variable* object, PyObject* name, Variable* value);
Status delete_attribute(Tracer& t, Variable* object, PyObject* name);
Result<bool> has_attribute(Tracer& t, Variable* object, PyObject* name);
Answer generic_get_attribute(Tracer& t, ObjectVariable* object, PyObject* name);             // object.__getattribute__
Status generic_set_attribute(Tracer& t, Variable* object, PyObject* name, Variable* value);  // object.__setattr__; value null: delete
Answer class_lookup(Tracer& t, Variable* object, PyObject* name);  // type(object)'s MRO, unbound; value null: nothing. Guarded
Answer call_special(Tracer& t, Variable* object, const char* name,
                    Arguments arguments);  // type(object).name(object, ...); AttributeError-free: fails if absent

Answer call(Tracer& t, Variable* callee, Arguments arguments);                            // call.cpp
Answer call_method(Tracer& t, Variable* self, PyObject* name, Arguments arguments);       // builtin types' methods: method.cpp and by kind
Answer instantiate(Tracer& t, Variable* cls, Arguments arguments);                        // object.cpp
Answer call_builtin(Tracer& t, PyObject* callable, Arguments& arguments, bool* handled);  // builtins/: table keyed by the callable
Answer fold_call(Tracer& t, PyObject* callable, const Arguments& arguments,
                 bool* handled);                                                        // constant.cpp: pure C callable on known arguments
Answer call_torch(Tracer& t, PyObject* callable, Arguments& arguments, bool* handled);  // torch.cpp: operators and state queries
Answer call_tensor_method(Tracer& t, TensorVariable* self, PyObject* name, Arguments& arguments);
Answer get_tensor_attribute(Tracer& t, TensorVariable* self, PyObject* name);
Status set_tensor_attribute(Tracer& t, TensorVariable* self, PyObject* name, Variable* value);

Result<bool> truth(Tracer& t, Variable* v);                          // operators.cpp; Break data_dependent_branch for tensors
Result<int> maybe_truth(Tracer& t, Variable* v);                     // 0, 1; -1: only the data tells (tensor)
Answer unary(Tracer& t, const char* special, Variable* v);           // "neg", "pos", "invert"
Answer binary(Tracer& t, int operation, Variable* a, Variable* b);   // NB_ADD ... NB_INPLACE_XOR
Answer compare(Tracer& t, int operation, Variable* a, Variable* b);  // Py_LT ...
Result<bool> identical(Tracer& t, Variable* a, Variable* b);         // `is`
Answer contains(Tracer& t, Variable* container, Variable* item);
Result<bool> equal(Tracer& t, Variable* a, Variable* b);  // a == b as a known truth

Answer get_item(Tracer& t, Variable* container, Variable* key);        // item.cpp
Answer struct_field(Tracer& t, TupleVariable* tuple, PyObject* name);  // of a struct sequence (torch.return_types), by name; item.cpp
Status set_item(Tracer& t, Variable* container, Variable* key, Variable* value);
Status delete_item(Tracer& t, Variable* container, Variable* key);
Result<Py_ssize_t> length(Tracer& t, Variable* v);

Answer get_iterator(Tracer& t, Variable* v);                           // iterate.cpp
Result<bool> next(Tracer& t, Variable* iterator, Variable** value);    // false: exhausted
Result<std::vector<Variable*>> unpack(Tracer& t, Variable* iterable);  // list(iterable)
// The same, item by item: where the traced program raises midway, `items` are those before.
Status unpack_into(Tracer& t, Variable* iterable, std::vector<Variable*>* items);

// dict entries, keys by hash and equality of the known key object (container.cpp)
Result<PyObject*> dict_key(Tracer& t, Variable* key);  // the object that stands for a key: known value, or an outside object's identity
Variable* dict_key_variable(Tracer& t, DictVariable* dict, PyObject* key);
Variable* dict_find(DictVariable* dict, PyObject* key);  // null: absent
void dict_store(Tracer& t, DictVariable* dict, PyObject* key, Variable* value);
bool dict_remove(Tracer& t, DictVariable* dict, PyObject* key);
Status dict_update(Tracer& t, DictVariable* dict, Variable* other);  // dict.update(other)

Result<Variable*> exception_instance(Tracer& t, Variable* class_or_instance);  // exception.cpp: what `raise x` raises
bool exception_matches(Variable* exception, PyObject* type);

}  // namespace pellucid::variables
