// Comparison, identity, membership and truth: everything whose answer is yes or no. A tensor's yes or no is only known to the data.
#include "base/check.h"
#include "variables/values.h"

namespace pellucid::variables {
namespace {

const char* const kSymbols[] = {"<", "<=", "==", "!=", ">", ">="};
const char* const kSpecials[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
const char* const kFunctions[] = {"lt", "le", "eq", "ne", "gt", "ge"};
constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);

Failed not_comparable(Tracer& t, int operation, Variable* a, Variable* b) {
  return t.raise_new(PyExc_TypeError, "'%s' not supported between instances of '%.100s' and '%.100s'", kSymbols[operation], type_name(a),
                     type_name(b));
}

Failed not_modelled(Tracer& t, int operation, Variable* a, Variable* b) {
  return t.fail(Reason::unsupported_operator, describe(a) + " " + kSymbols[operation] + " " + describe(b));
}

// -- identity

bool anchored(Variable* v) {  // what is known of it is that it is this very object
  if (v->source == nullptr || v->source->kind == source::Kind::kConst) return true;
  auto* object = as_object(v);
  return object && object->by_identity;
}

bool is_outside(Variable* v) {  // an object that existed before the traced program ran
  if (v->kind == Kind::kBoundMethod || v->kind == Kind::kBuiltinMethod) return v->source != nullptr;
  if (auto* object = as_object(v)) return object->existed && object->real;
  return v->real != nullptr;
}

// Values that CPython keeps once: equal means identical.
bool is_singleton_value(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  if (type == &PyBool_Type || value == Py_None || value == Py_Ellipsis || value == Py_NotImplemented) return true;
  if (type == &PyLong_Type) {
    int overflow = 0;
    const long number = PyLong_AsLongAndOverflow(value, &overflow);
    return !overflow && number >= -5 && number <= 256;
  }
  if (type == &PyUnicode_Type) {
    const Py_ssize_t length = PyUnicode_GET_LENGTH(value);
    return length == 0 || (length == 1 && PyUnicode_READ_CHAR(value, 0) < 256);
  }
  if (type == &PyTuple_Type) return PyTuple_GET_SIZE(value) == 0;
  const std::string_view name = type->tp_name;
  return name == "torch.dtype" || name == "torch.layout" || name == "torch.memory_format";
}

Result<bool> constants_identical(Tracer& t, Variable* a, Variable* b) {
  if (Py_TYPE(a->real) != Py_TYPE(b->real)) return false;
  if (is_singleton_value(a->real) || is_singleton_value(b->real)) return a->real == b->real;
  const int equal = PyObject_RichCompareBool(a->real, b->real, Py_EQ);
  if (equal < 0) return t.raise_python_error();
  if (!equal) return false;
  if (a->real == b->real && anchored(a) && anchored(b)) return true;  // one constant of the program
  return t.fail(Reason::identity_comparison, describe(a) + " is " + describe(b));
}

Result<bool> pair_identical(Tracer& t, Variable* a, Variable* b) {
  if (anchored(a) && anchored(b)) return a->real == b->real;
  auto source_of = [&](Variable* v) { return v->source ? v->source : t.sources().constant(v->real); };
  const bool same = a->real == b->real;
  t.guard_pair(same ? guard::Kind::kSame : guard::Kind::kDistinct, source_of(a), source_of(b));
  return same;
}

}  // namespace

Result<bool> identical(Tracer& t, Variable* a, Variable* b) {
  a = t.force(a);
  b = t.force(b);
  if (a == b) return true;
  if (a->kind == Kind::kConstant && b->kind == Kind::kConstant) return constants_identical(t, a, b);
  auto *left = as_tensor(a), *right = as_tensor(b);
  if (left && right) {
    if (left->fake == right->fake) return true;
    if (a->source && b->source) t.guard_pair(guard::Kind::kDistinct, a->source, b->source);
    return false;
  }
  if (type_of(a) != type_of(b)) return false;
  auto *left_tuple = as_tuple(a), *right_tuple = as_tuple(b);
  if (left_tuple && right_tuple) {
    if (left_tuple->items.size() != right_tuple->items.size()) return false;
    if (left_tuple->items.empty() && left_tuple->type == &PyTuple_Type) return true;  // there is one empty tuple
    if (a->source && b->source) return pair_identical(t, a, b);
    if (!a->real && !b->real) return false;  // each made by its own instruction
    return t.fail(Reason::identity_comparison, describe(a) + " is " + describe(b));
  }
  if (a->kind == Kind::kSet && static_cast<SetVariable*>(a)->frozen)
    return t.fail(Reason::identity_comparison, describe(a) + " is " + describe(b));
  if (!is_outside(a) || !is_outside(b)) return false;
  return pair_identical(t, a, b);
}

// -- comparison

namespace {

bool has_object_comparison(PyTypeObject* type) { return type->tp_richcompare == PyBaseObject_Type.tp_richcompare; }

bool compares_by_identity(Variable* v) {
  switch (v->kind) {
    case Kind::kFunction:
    case Kind::kGenerator:
    case Kind::kIterator:
    case Kind::kPartial:
      return true;
    case Kind::kObject: {
      auto* object = static_cast<ObjectVariable*>(v);
      return object->by_identity && has_object_comparison(object->type) && object->real;
    }
    default:
      return false;
  }
}

Result<bool> sequences_equal(Tracer& t, const std::vector<Variable*>& a, const std::vector<Variable*>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size() && i < b.size(); i++) {
    if (!TRY(same_or_equal(t, a[i], b[i]))) return false;
  }
  return true;
}

Answer compare_sequences(Tracer& t, int operation, const std::vector<Variable*>& a, const std::vector<Variable*>& b) {
  if (operation == Py_EQ) return t.boolean(TRY(sequences_equal(t, a, b)));
  if (operation == Py_NE) return t.boolean(!TRY(sequences_equal(t, a, b)));
  size_t i = 0;
  while (i < a.size() && i < b.size() && TRY(same_or_equal(t, a[i], b[i]))) i++;
  if (i < a.size() && i < b.size()) return compare(t, operation, a[i], b[i]);
  const auto left = a.size(), right = b.size();
  return t.boolean(operation == Py_LT   ? left < right
                   : operation == Py_LE ? left <= right
                   : operation == Py_GT ? left > right
                                        : left >= right);
}

Result<bool> dicts_equal(Tracer& t, DictVariable* a, DictVariable* b) {
  if (a->live != b->live) return false;
  for (auto& [key, value] : a->entries) {
    if (value && dict_find(b, key) == nullptr) return false;
  }
  for (size_t i = 0; i < a->entries.size(); i++) {
    auto [key, value] = a->entries[i];
    if (value == nullptr) continue;
    Variable* other = dict_find(b, key);
    if (other == nullptr || !TRY(same_or_equal(t, value, other))) return false;
  }
  return true;
}

bool ordered(DictVariable* dict) { return std::string_view(dict->type->tp_name).find("OrderedDict") != std::string_view::npos; }

Result<bool> same_key_order(DictVariable* a, DictVariable* b) {
  auto live_keys = [](DictVariable* dict) {
    std::vector<PyObject*> keys;
    for (auto& [key, value] : dict->entries) {
      if (value) keys.push_back(key);
    }
    return keys;
  };
  std::vector<PyObject*> left = live_keys(a), right = live_keys(b);
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); i++) {
    const int equal = PyObject_RichCompareBool(left[i], right[i], Py_EQ);
    if (equal < 0) PyErr_Clear();
    if (equal != 1) return false;
  }
  return true;
}

py::Ref real_set(Tracer& t, Variable* v) {  // the keys of a set or of a view of keys
  if (v->kind == Kind::kSet) return py::Ref::share(real_keys(v));
  auto* view = as<DictViewVariable>(v, Kind::kDictView);
  if (view == nullptr || view->which != 0) return py::Ref();
  auto keys = key_set(t, v, true);
  return keys.ok() ? keys.value() : py::Ref();
}

// Both builtin. *handled false: the types do not compare with each other.
Answer compare_builtin(Tracer& t, int operation, Variable* a, Variable* b, bool* handled) {
  *handled = true;
  const bool equality = operation == Py_EQ || operation == Py_NE;
  if (auto* left = as_list(a), *right = as_list(b); left && right) return compare_sequences(t, operation, left->items, right->items);
  if (auto* left = as_tuple(a), *right = as_tuple(b); left && right) {
    for (auto* tuple : {left, right}) {
      if (tuple->type->tp_richcompare != PyTuple_Type.tp_richcompare) return not_modelled(t, operation, a, b);
    }
    return compare_sequences(t, operation, left->items, right->items);
  }
  if (auto* left = as_dict(a), *right = as_dict(b); left && right && equality) {
    bool equal = TRY(dicts_equal(t, left, right));
    if (equal && ordered(left) && ordered(right)) equal = TRY(same_key_order(left, right));
    return t.boolean(equal == (operation == Py_EQ));
  }
  if (py::Ref left = real_set(t, a), right = real_set(t, b); left && right) {
    return from_result(t, PyObject_RichCompare(left.get(), right.get(), operation));
  }
  if (a->kind == Kind::kDictView && b->kind == Kind::kDictView) {
    auto *left = static_cast<DictViewVariable*>(a), *right = static_cast<DictViewVariable*>(b);
    if (equality && (left->which == 1 || right->which == 1)) return t.boolean((a == b) == (operation == Py_EQ));  // values have no equality
    return not_modelled(t, operation, a, b);
  }
  if (a->kind == Kind::kSlice && b->kind == Kind::kSlice && equality) {
    auto *left = static_cast<SliceVariable*>(a), *right = static_cast<SliceVariable*>(b);
    for (int i = 0; i < 3; i++) {
      Variable* x = left->parts[i] ? left->parts[i] : t.none();
      Variable* y = right->parts[i] ? right->parts[i] : t.none();
      if (!TRY(same_or_equal(t, x, y))) return t.boolean(operation == Py_NE);
    }
    return t.boolean(operation == Py_EQ);
  }
  if (a->kind == Kind::kBoundMethod && b->kind == Kind::kBoundMethod && equality) {
    auto *left = static_cast<BoundMethodVariable*>(a), *right = static_cast<BoundMethodVariable*>(b);
    const bool equal = TRY(identical(t, left->self, right->self)) && TRY(identical(t, left->function, right->function));
    return t.boolean(equal == (operation == Py_EQ));
  }
  *handled = false;
  return nullptr;
}

Answer compare_tensor(Tracer& t, int operation, Variable* a, Variable* b) {
  Variable* other = a->kind == Kind::kTensor ? b : a;
  static PyObject* functions[6] = {};
  if (functions[operation] == nullptr) functions[operation] = module_attribute("operator", kFunctions[operation]);
  const bool number = other->kind == Kind::kConstant && (PyFloat_CheckExact(other->real) || PyLong_CheckExact(other->real) ||
                                                         PyBool_Check(other->real) || PyComplex_CheckExact(other->real));
  if (other->kind == Kind::kTensor || number) {
    Arguments arguments;
    arguments.positional = {a, b};
    return t.torch_operator(functions[operation], nullptr, arguments);
  }
  const bool plain = (other->kind == Kind::kConstant && is_data(other->real)) || other->kind == Kind::kTuple ||
                     other->kind == Kind::kList || other->kind == Kind::kDict || other->kind == Kind::kSet ||
                     other->kind == Kind::kFunction;
  if (!plain) return not_modelled(t, operation, a, b);
  // torch refuses what is no number, and the comparison falls back to identity.
  if (operation == Py_EQ) return t.boolean(false);
  if (operation == Py_NE) return t.boolean(true);
  return t.fail(Reason::unsupported_operator, describe(a) + " " + kSymbols[operation] + " " + describe(b));
}

// One side's method. Null: NotImplemented.
Answer try_comparison(Tracer& t, int operation, const Special& method, Variable* self, Variable* other) {
  const char* name = kSpecials[operation];
  if (!method.builtin) {
    Variable* result = t.force(TRY(call_special_now(t, self, name, {other})));
    return is_not_implemented(result) ? nullptr : result;
  }
  if (method.object_default) {
    // object.__eq__ answers only yes, object.__ne__ inverts what __eq__ says.
    if (operation == Py_EQ) return TRY(identical(t, self, other)) ? t.boolean(true) : nullptr;
    if (operation != Py_NE) return nullptr;
    Special equal = TRY(find_special(t, self, "__eq__"));
    if (!equal.method) return nullptr;
    Variable* result = TRY(try_comparison(t, Py_EQ, equal, self, other));
    if (result == nullptr) return nullptr;
    return t.boolean(!TRY(truth(t, result)));
  }
  PyObject *left = known(t, self), *right = known(t, other);
  if (left && right && is_data_type(method.builtin) && (is_data(right) || PyObject_TypeCheck(right, method.builtin))) {
    PyObject* operands[] = {left, right};
    PyObject* value = PyObject_Vectorcall(method.method->real, operands, 2, nullptr);
    if (value == Py_NotImplemented) {
      Py_DECREF(value);
      return nullptr;
    }
    return from_result(t, value);
  }
  if (Variable* inner = inner_of(self, method)) {
    auto* object = as_object(other);
    return compare(t, operation, inner, object && object->inner ? object->inner : other);
  }
  return not_modelled(t, operation, self, other);
}

Answer compare_objects(Tracer& t, int operation, Variable* a, Variable* b) {
  PyTypeObject *left_type = type_of(a), *right_type = type_of(b);
  const bool equality = operation == Py_EQ || operation == Py_NE;
  if (equality && compares_by_identity(a) && compares_by_identity(b)) return t.boolean(TRY(identical(t, a, b)) == (operation == Py_EQ));
  Special left, right;
  if (a->kind == Kind::kObject) left = TRY(find_special(t, a, kSpecials[operation]));
  if (b->kind == Kind::kObject) right = TRY(find_special(t, b, kSpecials[kSwapped[operation]]));
  // A builtin's comparison of a value with an object of an unrelated class is NotImplemented; of a subclass it is not modelled.
  for (auto [builtin, object] : {std::pair{a, b}, std::pair{b, a}}) {
    if (builtin->kind != Kind::kObject && builtin->kind != Kind::kTensor && PyType_IsSubtype(type_of(object), type_of(builtin)) &&
        !(known(t, object) && known(t, builtin))) {
      auto* instance = as_object(object);
      if (!instance || !instance->inner) return not_modelled(t, operation, a, b);
    }
  }
  bool swapped = false;
  if (right.method && left_type != right_type && PyType_IsSubtype(right_type, left_type)) {
    swapped = true;
    if (Variable* result = TRY(try_comparison(t, kSwapped[operation], right, b, a))) return result;
  }
  if (left.method) {
    if (Variable* result = TRY(try_comparison(t, operation, left, a, b))) return result;
  }
  if (right.method && !swapped) {
    if (Variable* result = TRY(try_comparison(t, kSwapped[operation], right, b, a))) return result;
  }
  if (equality) return t.boolean(TRY(identical(t, a, b)) == (operation == Py_EQ));
  return not_comparable(t, operation, a, b);
}

}  // namespace

Answer compare(Tracer& t, int operation, Variable* a, Variable* b) {
  CHECK(operation >= Py_LT && operation <= Py_GE) << operation;
  a = t.force(a);
  b = t.force(b);
  if (a->kind == Kind::kConstant && b->kind == Kind::kConstant && is_data(a->real) && is_data(b->real)) {
    return from_result(t, PyObject_RichCompare(a->real, b->real, operation));
  }
  if (a->kind == Kind::kTensor || b->kind == Kind::kTensor) return compare_tensor(t, operation, a, b);
  if (a->kind == Kind::kObject || b->kind == Kind::kObject) return compare_objects(t, operation, a, b);
  bool handled = false;
  Answer answer = compare_builtin(t, operation, a, b, &handled);
  if (handled) return answer;
  if (operation == Py_EQ || operation == Py_NE) {
    // Values of types that do not know each other, or that have no comparison of their own.
    return t.boolean(TRY(identical(t, a, b)) == (operation == Py_EQ));
  }
  return not_comparable(t, operation, a, b);
}

Result<bool> equal(Tracer& t, Variable* a, Variable* b) {
  Variable* result = TRY(compare(t, Py_EQ, a, b));
  return truth(t, result);
}

Result<bool> same_or_equal(Tracer& t, Variable* a, Variable* b) {
  a = t.force(a);
  b = t.force(b);
  if (a == b) return true;
  if (a->kind == Kind::kConstant && b->kind == Kind::kConstant) {
    const int equal = PyObject_RichCompareBool(a->real, b->real, Py_EQ);  // looks at identity first, as this function must
    if (is_data(a->real) && is_data(b->real)) {
      if (equal < 0) return t.raise_python_error();
      return equal == 1;
    }
    PyErr_Clear();
  }
  auto *left = as_tensor(a), *right = as_tensor(b);
  if (left && right && left->fake == right->fake) return true;
  if (a->kind == Kind::kObject && b->kind == Kind::kObject && a->real && a->real == b->real && TRY(identical(t, a, b))) return true;
  return equal(t, a, b);
}

// -- membership

namespace {

Answer is_among(Tracer& t, Variable* iterator, Variable* item) {
  IteratorPositions before(iterator);
  for (Variable* value = nullptr;;) {
    Result<bool> found = next(t, iterator, &value);
    if (found.ok() && !found.value()) return t.boolean(false);
    if (found.ok()) found = same_or_equal(t, value, item);
    if (!found.ok()) {
      if (broke(found)) before.restore();
      return Failed{found.failure()};
    }
    if (found.value()) return t.boolean(true);
  }
}

}  // namespace

Answer contains(Tracer& t, Variable* container, Variable* item) {
  container = t.force(container);
  auto in_items = [&](std::vector<Variable*>& items) -> Answer {
    for (size_t i = 0; i < items.size(); i++) {
      if (TRY(same_or_equal(t, items[i], item))) return t.boolean(true);
    }
    return t.boolean(false);
  };
  switch (container->kind) {
    case Kind::kList:
      return in_items(static_cast<ListVariable*>(container)->items);
    case Kind::kTuple: {
      auto* tuple = static_cast<TupleVariable*>(container);
      auto* sequence = tuple->type->tp_as_sequence;
      if (!sequence || sequence->sq_contains != PyTuple_Type.tp_as_sequence->sq_contains) break;
      return in_items(tuple->items);
    }
    case Kind::kDict: {
      auto* dict = static_cast<DictVariable*>(container);
      PyObject* key = nullptr;
      if (!TRY(lookup_key(t, real_index(dict), item, &key))) return t.boolean(false);
      return t.boolean(dict_find(dict, key) != nullptr);
    }
    case Kind::kSet: {
      PyObject* key = nullptr;
      if (!TRY(lookup_key(t, real_keys(container), item, &key))) return t.boolean(false);
      const int found = PySet_Contains(real_keys(container), key);
      if (found < 0) return t.raise_python_error();
      return t.boolean(found == 1);
    }
    case Kind::kConstant: {
      item = t.force(item);
      PyObject* value = known(t, item);
      if (value && is_data(container->real) && is_data(value)) {
        const int found = PySequence_Contains(container->real, value);
        if (found < 0) return t.raise_python_error();
        return t.boolean(found == 1);
      }
      break;
    }
    case Kind::kDictView: {
      auto* view = static_cast<DictViewVariable*>(container);
      if (view->which == 0) return contains(t, view->dict, item);
      if (view->which == 1) {
        std::vector<Variable*> values = TRY(unpack(t, view));
        return in_items(values);
      }
      auto* pair = as_tuple(t.force(item));
      if (pair == nullptr || pair->items.size() != 2) return t.boolean(false);
      PyObject* key = nullptr;
      if (!TRY(lookup_key(t, real_index(view->dict), pair->items[0], &key))) return t.boolean(false);
      Variable* value = dict_find(view->dict, key);
      return t.boolean(value && TRY(same_or_equal(t, value, pair->items[1])));
    }
    case Kind::kObject: {
      Special method = TRY(find_special(t, container, "__contains__"));
      if (method.method && !method.builtin) return truth_of_answer(t, call_special_now(t, container, "__contains__", {item}), false);
      if (Variable* inner = inner_of(container, method)) return contains(t, inner, item);
      if (method.method) break;
      return is_among(t, TRY(get_iterator(t, container)), item);
    }
    case Kind::kIterator:
    case Kind::kGenerator:
      return is_among(t, container, item);
    case Kind::kTensor:
      return t.fail(Reason::data_dependent_operator, "membership test in a tensor");
    case Kind::kFunction:
    case Kind::kBoundMethod:
    case Kind::kSlice:
      return t.raise_new(PyExc_TypeError, "argument of type '%.200s' is not iterable", type_name(container));
    default:
      break;
  }
  return t.fail(Reason::unsupported_operator, describe(item) + " in " + describe(container));
}

// -- truth

Result<int> maybe_truth(Tracer& t, Variable* v) {
  v = t.force(v);
  switch (v->kind) {
    case Kind::kTensor:
      return -1;
    case Kind::kConstant: {
      if (!is_data(v->real)) return t.fail(Reason::unsupported_operator, "truth of " + describe(v));
      const int yes = PyObject_IsTrue(v->real);
      if (yes < 0) return t.raise_python_error();
      return yes;
    }
    case Kind::kTuple: {
      auto* tuple = static_cast<TupleVariable*>(v);
      if (tuple->type->tp_as_number && tuple->type->tp_as_number->nb_bool) break;
      return !tuple->items.empty();
    }
    case Kind::kList:
      return !static_cast<ListVariable*>(v)->items.empty();
    case Kind::kDict:
      return static_cast<DictVariable*>(v)->live > 0;
    case Kind::kSet:
      return PySet_GET_SIZE(real_keys(v)) > 0;
    case Kind::kDictView:
      return static_cast<DictViewVariable*>(v)->dict->live > 0;
    case Kind::kObject: {
      auto* object = static_cast<ObjectVariable*>(v);
      PyTypeObject* type = object->type;
      if (type == &PyType_Type || type == &PyModule_Type || type == &PyCFunction_Type) return 1;
      Special method = TRY(find_special(t, v, "__bool__"));
      if (method.method && !method.builtin) {
        Variable* result = t.force(TRY(call_special_now(t, v, "__bool__", {})));
        if (result->kind == Kind::kTensor) return t.fail(Reason::data_dependent_branch, "__bool__ gave a tensor");
        if (result->kind == Kind::kConstant && PyBool_Check(result->real)) return result->real == Py_True;
        return t.raise_new(PyExc_TypeError, "__bool__ should return bool, returned %s", type_name(result));
      }
      PyObject* value = known(t, v);
      if (method.method) {
        if (!value || !is_data_type(method.builtin)) break;
        const int yes = PyObject_IsTrue(value);  // an IntEnum member: C code
        if (yes < 0) return t.raise_python_error();
        return yes;
      }
      Special size = TRY(find_special(t, v, "__len__"));
      if (!size.method) return 1;
      return TRY(length(t, v)) > 0;
    }
    case Kind::kNull:
    case Kind::kLazy:
      CHECK(false) << "truth of no value";
      break;
    default:
      return 1;  // functions, iterators, slices and the like have neither __bool__ nor __len__
  }
  return t.fail(Reason::unsupported_operator, "truth of " + describe(v));
}

Result<bool> truth(Tracer& t, Variable* v) {
  const int yes = TRY(maybe_truth(t, v));
  if (yes < 0) return t.fail(Reason::data_dependent_branch, "truth of a tensor");
  return yes == 1;
}

}  // namespace pellucid::variables
