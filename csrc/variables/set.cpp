// set and frozenset: real sets of known keys, so that hashing, equality and order are CPython's own.
#include <opcode.h>

#include "base/check.h"
#include "variables/values.h"

namespace pellucid::variables {

PyObject* real_keys(Variable* v) {
  CHECK(v->kind == Kind::kSet) << "not a set";
  auto* set = static_cast<SetVariable*>(v);
  if (!set->keys) set->keys = py::Ref::steal(set->frozen ? PyFrozenSet_New(nullptr) : PySet_New(nullptr));
  CHECK(set->keys) << "no memory for a set";
  return set->keys.get();
}

SetVariable* make_set(Tracer& t, PyObject* owned_keys) {
  CHECK(owned_keys) << "a set could not be made";
  auto* set = t.make<SetVariable>();
  set->frozen = PyFrozenSet_CheckExact(owned_keys);
  set->keys = py::Ref::steal(owned_keys);
  return set;
}

namespace {

// Adds the keys of an iterable; those before an exception of the traced program stay, those before a break are not to be used.
Status add_keys(Tracer& t, Variable* iterable, PyObject* keys) {
  std::vector<Variable*> items;
  Status status = unpack_into(t, iterable, &items);
  if (broke(status)) return status;
  for (Variable* item : items) {
    PyObject* key = TRY(dict_key(t, item));
    if (PySet_Add(keys, t.keep(key)) < 0) return t.raise_python_error();
  }
  return status;
}

}  // namespace

Result<py::Ref> key_set(Tracer& t, Variable* iterable, bool frozen) {
  iterable = t.force(iterable);
  py::Ref keys = py::Ref::steal(PySet_New(iterable->kind == Kind::kSet ? real_keys(iterable) : nullptr));
  CHECK(keys) << "no memory for a set";
  if (iterable->kind != Kind::kSet) TRY(add_keys(t, iterable, keys.get()));
  if (frozen) keys = py::Ref::steal(PyFrozenSet_New(keys.get()));
  CHECK(keys) << "no memory for a set";
  return keys;
}

namespace {

bool is_set_operand(Variable* v) {
  return v->kind == Kind::kSet || (v->kind == Kind::kDictView && static_cast<DictViewVariable*>(v)->which != 1);
}

// The keys of `changed` in place of those of `self`.
void replace_keys(Tracer& t, Variable* self, py::Ref changed) {
  static_cast<SetVariable*>(self)->keys = std::move(changed);
  t.mark_changed(self);
}

py::Ref combine(const char* method, PyObject* left, const std::vector<py::Ref>& others) {
  py::Ref bound = py::Ref::steal(PyObject_GetAttrString(left, method));
  if (!bound) return bound;
  std::vector<PyObject*> stack;
  for (auto& other : others) stack.push_back(other.get());
  return py::Ref::steal(PyObject_Vectorcall(bound.get(), stack.data(), stack.size(), nullptr));
}

Answer call_mutating(Tracer& t, SetVariable* self, std::string_view method, Arguments& arguments, bool* handled) {
  auto& args = arguments.positional;
  PyObject* keys = real_keys(self);
  *handled = true;
  if (method == "add" && arguments.only_positional(1, 1)) {
    PyObject* key = TRY(dict_key(t, args[0]));
    if (PySet_Add(keys, t.keep(key)) < 0) return t.raise_python_error();
    t.mark_changed(self);
    return t.none();
  }
  if ((method == "discard" || method == "remove") && arguments.only_positional(1, 1)) {
    PyObject* key = nullptr;
    const bool may_be_there = TRY(lookup_key(t, keys, args[0], &key));
    const int found = may_be_there ? PySet_Discard(keys, key) : 0;
    if (found < 0) return t.raise_python_error();
    if (!found && method == "remove") return raise_key_error(t, args[0]);
    if (found) t.mark_changed(self);
    return t.none();
  }
  if (method == "pop" && arguments.only_positional(0, 0)) {
    if (PySet_GET_SIZE(keys) == 0) {
      return raise_key_error(t, t.string("pop from an empty set"));
    }
    py::Ref key = py::Ref::steal(PySet_Pop(keys));
    CHECK(key) << "a set that is not empty gave nothing";
    t.mark_changed(self);
    return key_variable(t, t.keep(key.get()));
  }
  if (method == "clear" && arguments.only_positional(0, 0)) {
    if (PySet_Clear(keys) < 0) return t.raise_python_error();
    t.mark_changed(self);
    return t.none();
  }
  if (method == "update" && arguments.keywords.empty()) {
    py::Ref united = py::Ref::steal(PySet_New(keys));
    CHECK(united) << "no memory for a set";
    Status status = Unit{};
    for (size_t i = 0; i < args.size() && status.ok(); i++) status = add_keys(t, args[i], united.get());
    if (broke(status)) return Failed{status.failure()};
    replace_keys(t, self, std::move(united));
    if (!status.ok()) return Failed{status.failure()};
    return t.none();
  }
  static constexpr std::pair<std::string_view, const char*> kUpdates[] = {{"difference_update", "difference"},
                                                                          {"intersection_update", "intersection"},
                                                                          {"symmetric_difference_update", "symmetric_difference"}};
  for (auto& [update, pure] : kUpdates) {
    if (method != update || !arguments.keywords.empty() || (update == "symmetric_difference_update" && args.size() != 1)) continue;
    std::vector<py::Ref> others;
    for (Variable* v : args) others.push_back(TRY(key_set(t, v, false)));
    py::Ref result = combine(pure, keys, others);
    if (!result) return t.raise_python_error();
    replace_keys(t, self, std::move(result));
    return t.none();
  }
  *handled = false;
  return nullptr;
}

}  // namespace

Answer call_set_method(Tracer& t, Variable* self, PyObject* name, Arguments& arguments) {
  auto* set = static_cast<SetVariable*>(self);
  PyObject* keys = real_keys(self);
  const std::string_view method = text_of(name);
  auto& args = arguments.positional;
  if (!set->frozen) {
    bool handled = false;
    Answer answer = call_mutating(t, set, method, arguments, &handled);
    if (handled) return answer;
  }
  if ((method == "copy" || method == "__copy__") && arguments.only_positional(0, 0)) {
    if (set->frozen) return self;
    return make_set(t, PySet_New(keys));
  }
  for (const char* pure : {"union", "intersection", "difference"}) {
    if (method != pure || !arguments.keywords.empty()) continue;
    std::vector<py::Ref> others;
    for (Variable* v : args) others.push_back(TRY(key_set(t, v, false)));
    py::Ref result = combine(pure, keys, others);
    if (!result) return t.raise_python_error();
    return make_set(t, result.release());
  }
  for (const char* pure : {"symmetric_difference", "issubset", "issuperset", "isdisjoint"}) {
    if (method != pure || !arguments.only_positional(1, 1)) continue;
    std::vector<py::Ref> others;
    others.push_back(TRY(key_set(t, args[0], false)));
    py::Ref result = combine(pure, keys, others);
    if (!result) return t.raise_python_error();
    if (PyBool_Check(result.get())) return t.boolean(result.get() == Py_True);
    return make_set(t, result.release());
  }
  return no_such_method(t, self, name, arguments);
}

Answer set_binary(Tracer& t, int operation, bool in_place, Variable* a, Variable* b) {
  const int base = in_place ? operation - NB_INPLACE_ADD : operation;
  const bool view = a->kind == Kind::kDictView;
  if (!view && !is_set_operand(b)) return t.fail(Reason::unsupported_operator, describe(a) + " with " + describe(b));
  // Beside a view of keys the view's own operator answers: the result is a new set, of the in-place forms too.
  const bool by_view = view || b->kind == Kind::kDictView;
  py::Ref left = by_view ? TRY(key_set(t, a, false)) : py::Ref::share(real_keys(a));
  py::Ref right = b->kind == Kind::kSet ? py::Ref::share(real_keys(b)) : TRY(key_set(t, b, false));
  PyObject* (*apply)(PyObject*, PyObject*) = base == NB_AND   ? PyNumber_And
                                             : base == NB_OR  ? PyNumber_Or
                                             : base == NB_XOR ? PyNumber_Xor
                                                              : PyNumber_Subtract;
  py::Ref result = py::Ref::steal(apply(left.get(), right.get()));
  if (!result) return t.raise_python_error();
  if (in_place && !by_view && !static_cast<SetVariable*>(a)->frozen) {
    replace_keys(t, a, std::move(result));
    return a;
  }
  return make_set(t, result.release());
}

}  // namespace pellucid::variables
