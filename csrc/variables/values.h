// What the files with the rules of values share: which real objects are plain data, wrapping real results, special methods of user
// classes, keys, and the methods of each builtin kind. Internal to variables/; others use tracer.h.
#pragma once
#include <string_view>

#include "variables/tracer.h"

namespace pellucid::variables {

// Immutable builtin data: exact None, numbers, str, bytes, range, slices, tuples and frozensets of data, torch.Size, dtype, device and
// the like. C code that gets only data runs nobody's Python code and changes nothing.
bool is_data(PyObject* object);
bool is_data_type(PyTypeObject* type);  // a type whose instances, constructor and methods are such data
PyTypeObject* torch_size_type();        // torch.Size

// The variable of a result of C code. Takes over the reference; null: the exception that is set becomes one of the traced program.
// *representable is cleared instead of a failure when the result is neither data nor a list, set or dict of data.
Answer from_result(Tracer& t, PyObject* owned, bool* representable = nullptr);

// A fresh real copy of a list, set or dict of data, or the known data itself; null without exception if there is none. For C code
// that only reads its argument. *nested is set when a container that has an identity lies inside.
py::Ref readable_copy(Tracer& t, Variable* v, bool* nested);

PyObject* module_attribute(const char* module, const char* name);  // of a module that can't be missing; lives for ever

inline std::string_view text_of(PyObject* string) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(string, &size);
  if (text == nullptr) {
    PyErr_Clear();
    return {};
  }
  return {text, static_cast<size_t>(size)};
}

const char* type_name(Variable* v);  // as CPython's messages print it

// A special method of the class of `object`, looked up as the interpreter does.
struct Special {
  Variable* method = nullptr;       // null: the class has none
  PyTypeObject* builtin = nullptr;  // it is C code of this type (a slot wrapper or method descriptor)
  bool object_default = false;      // it is the one of `object`
};
Result<Special> find_special(Tracer& t, Variable* object, const char* name);
Answer call_special_now(Tracer& t, Variable* object, const char* name, std::vector<Variable*> arguments);  // runs it to its end
// What the instance of a list, dict, tuple or set subclass holds, if `special` is the builtin's own method; else null.
Variable* inner_of(Variable* object, const Special& special);

bool is_not_implemented(Variable* v);
bool raised(const Failure* failure, PyObject* type);  // an exception of the traced program of that type
template <class T>
bool broke(const Result<T>& result) {  // failed, and not by an exception of the traced program: nothing may have changed
  return !result.ok() && result.failure()->kind != Failure::Kind::kRaise;
}
Failed raise_key_error(Tracer& t, Variable* key);
Failed raise_unhashable(Tracer& t, Variable* v);

// x is y or x == y, as containers compare their items.
Result<bool> same_or_equal(Tracer& t, Variable* a, Variable* b);
Answer truth_of_answer(Tracer& t, Answer answer, bool negate);

// An index: known int or an object with __index__. `*index` is clipped as PyNumber_AsSsize_t with `error` (null: clip).
Result<Py_ssize_t> index_value(Tracer& t, Variable* v, PyObject* error);
struct SliceBounds {
  Py_ssize_t start, stop, step, count;
};
// Resolves a slice over `size` items; `v` is a slice of known parts.
Result<SliceBounds> slice_bounds(Tracer& t, Variable* v, Py_ssize_t size);
bool is_slice(Variable* v);

// The object to look up among `keys` (the real dict or set of a container). False: the key is surely absent.
Result<bool> lookup_key(Tracer& t, PyObject* keys, Variable* key, PyObject** object);
PyObject* real_index(DictVariable* dict);  // the real dict of a dict's keys
Variable* key_variable(Tracer& t, PyObject* key);
void dict_clear(Tracer& t, DictVariable* dict);
DictVariable* dict_copy(Tracer& t, DictVariable* dict);
PyObject* real_keys(Variable* v);                                     // the real set of a set or frozenset variable
SetVariable* make_set(Tracer& t, PyObject* owned_keys);               // set or frozenset by the type of keys
Result<py::Ref> key_set(Tracer& t, Variable* iterable, bool frozen);  // a real set of the iterable's keys
bool has_dict_version(DictVariable* dict, uint32_t version, Py_ssize_t live);

// The positions of an iterator and of those it draws from. A step that breaks puts them back: the instruction runs again as written.
class IteratorPositions {
 public:
  explicit IteratorPositions(Variable* iterator) { save(iterator); }
  void restore();

 private:
  struct State {
    IteratorVariable* iterator;
    Py_ssize_t index;
    bool exhausted;
    uint32_t version;
    Variable* over;
    std::vector<Variable*> inner;
  };
  void save(Variable* v);
  std::vector<State> saved_;
};

Status list_extend(Tracer& t, ListVariable* list, Variable* iterable);

// Methods by kind; the answer of an unknown name is a failure.
Answer call_constant_method(Tracer& t, Variable* self, PyObject* name, Arguments& arguments);
Answer call_tuple_method(Tracer& t, TupleVariable* self, PyObject* name, Arguments& arguments);
Answer call_list_method(Tracer& t, ListVariable* self, PyObject* name, Arguments& arguments);
Answer call_dict_method(Tracer& t, DictVariable* self, PyObject* name, Arguments& arguments);
Answer call_view_method(Tracer& t, DictViewVariable* self, PyObject* name, Arguments& arguments);
Answer call_set_method(Tracer& t, Variable* self, PyObject* name, Arguments& arguments);
Answer set_binary(Tracer& t, int operation, bool in_place, Variable* a, Variable* b);  // & | - ^ of sets and key views

Failed no_such_method(Tracer& t, Variable* self, PyObject* name, const Arguments& arguments);

}  // namespace pellucid::variables
