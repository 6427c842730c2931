// Unary and binary operators, by the rules of CPython's abstract.c: numbers first, then sequences, reflected methods by subclass
// priority, in-place forms that fall back. Comparison and identity are in comparison.cpp.
#include <opcode.h>
#include <array>

#include "base/check.h"
#include "py/once.h"
#include "variables/values.h"

namespace pellucid::variables {
namespace {

struct Operator {
  const char* symbol;
  const char* special;    // __add__
  const char* reflected;  // __radd__
  const char* in_place;   // __iadd__
  const char* function;   // operator.add
  const char* in_place_function;
  PyObject* (*apply)(PyObject*, PyObject*);
};

PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }

constexpr int kOperators = 13;
const Operator kTable[kOperators] = {
    // in the order of NB_ADD ... NB_XOR
    {"+", "__add__", "__radd__", "__iadd__", "add", "iadd", PyNumber_Add},
    {"&", "__and__", "__rand__", "__iand__", "and_", "iand", PyNumber_And},
    {"//", "__floordiv__", "__rfloordiv__", "__ifloordiv__", "floordiv", "ifloordiv", PyNumber_FloorDivide},
    {"<<", "__lshift__", "__rlshift__", "__ilshift__", "lshift", "ilshift", PyNumber_Lshift},
    {"@", "__matmul__", "__rmatmul__", "__imatmul__", "matmul", "imatmul", PyNumber_MatrixMultiply},
    {"*", "__mul__", "__rmul__", "__imul__", "mul", "imul", PyNumber_Multiply},
    {"%", "__mod__", "__rmod__", "__imod__", "mod", "imod", PyNumber_Remainder},
    {"|", "__or__", "__ror__", "__ior__", "or_", "ior", PyNumber_Or},
    {"** or pow()", "__pow__", "__rpow__", "__ipow__", "pow", "ipow", power},
    {">>", "__rshift__", "__rrshift__", "__irshift__", "rshift", "irshift", PyNumber_Rshift},
    {"-", "__sub__", "__rsub__", "__isub__", "sub", "isub", PyNumber_Subtract},
    {"/", "__truediv__", "__rtruediv__", "__itruediv__", "truediv", "itruediv", PyNumber_TrueDivide},
    {"^", "__xor__", "__rxor__", "__ixor__", "xor", "ixor", PyNumber_Xor},
};
static_assert(NB_ADD == 0 && NB_XOR == 12 && NB_INPLACE_ADD == 13 && NB_INPLACE_XOR == 25);

PyObject* torch_operator_function(int base, bool in_place) {
  static PyObject* table[2][kOperators] = {};
  PyObject*& slot = table[in_place][base];
  if (slot == nullptr) slot = module_attribute("operator", in_place ? kTable[base].in_place_function : kTable[base].function);
  return slot;
}

std::string symbol_text(int base, bool in_place) {
  if (!in_place) return kTable[base].symbol;
  return base == NB_POWER ? "**=" : std::string(kTable[base].symbol) + "=";
}

Failed unsupported_operands(Tracer& t, int base, bool in_place, Variable* a, Variable* b) {
  return t.raise_new(PyExc_TypeError, "unsupported operand type(s) for %s: '%.100s' and '%.100s'", symbol_text(base, in_place).c_str(),
                     type_name(a), type_name(b));
}

Failed not_modelled(Tracer& t, int base, bool in_place, Variable* a, Variable* b) {
  return t.fail(Reason::unsupported_operator, describe(a) + " " + symbol_text(base, in_place) + " " + describe(b));
}

// The kinds whose type is builtin and whose operators are all written here: an operator they lack is a TypeError.
bool is_builtin_value(Variable* v) {
  switch (v->kind) {
    case Kind::kConstant:
      return is_data(v->real);
    case Kind::kTuple:
      return static_cast<TupleVariable*>(v)->type == &PyTuple_Type || static_cast<TupleVariable*>(v)->type == torch_size_type();
    case Kind::kDict:
      return static_cast<DictVariable*>(v)->type == &PyDict_Type;
    case Kind::kList:
    case Kind::kSet:
    case Kind::kSlice:
    case Kind::kDictView:
    case Kind::kFunction:
    case Kind::kBoundMethod:
      return true;
    default:
      return false;
  }
}

bool is_set_like(Variable* v) {
  return v->kind == Kind::kSet || (v->kind == Kind::kDictView && static_cast<DictViewVariable*>(v)->which != 1);
}

// -- sequences

bool concat_is_builtin(PyTypeObject* type) {  // namedtuples have the operators of tuple unless their class says otherwise
  return type->tp_as_sequence && type->tp_as_sequence->sq_concat == PyTuple_Type.tp_as_sequence->sq_concat &&
         type->tp_as_sequence->sq_repeat == PyTuple_Type.tp_as_sequence->sq_repeat &&
         (type->tp_as_number == nullptr || (type->tp_as_number->nb_add == nullptr && type->tp_as_number->nb_multiply == nullptr));
}

bool is_index(Variable* v) { return v->kind == Kind::kConstant && (PyLong_CheckExact(v->real) || PyBool_Check(v->real)); }

Result<size_t> repeat_count(Tracer& t, Variable* count, size_t size) {
  Py_ssize_t n = TRY(index_value(t, count, PyExc_OverflowError));
  if (n < 0) n = 0;
  if (size && static_cast<size_t>(n) > (size_t{1} << 22) / size)
    return t.fail(Reason::unsupported_operator, "a sequence repeated too often");
  return static_cast<size_t>(n);
}

std::vector<Variable*> repeated(const std::vector<Variable*>& items, size_t n) {
  std::vector<Variable*> result;
  result.reserve(items.size() * n);
  for (size_t i = 0; i < n; i++) result.insert(result.end(), items.begin(), items.end());
  return result;
}

Answer list_binary(Tracer& t, int base, bool in_place, ListVariable* a, Variable* b, bool* handled) {
  *handled = true;
  if (base == NB_ADD && in_place) {
    TRY(list_extend(t, a, b));
    return a;
  }
  if (base == NB_ADD) {
    auto* other = as_list(b);
    if (other == nullptr) {
      if (!is_builtin_value(b)) return not_modelled(t, base, in_place, a, b);
      return t.raise_new(PyExc_TypeError, "can only concatenate list (not \"%.200s\") to list", type_name(b));
    }
    std::vector<Variable*> items = a->items;
    items.insert(items.end(), other->items.begin(), other->items.end());
    return t.list(std::move(items));
  }
  if (base == NB_MULTIPLY && is_index(b)) {
    const size_t n = TRY(repeat_count(t, b, a->items.size()));
    std::vector<Variable*> items = repeated(a->items, n);
    if (!in_place) return t.list(std::move(items));
    a->items = std::move(items);
    t.mark_changed(a);
    return a;
  }
  *handled = false;
  return nullptr;
}

Answer tuple_binary(Tracer& t, int base, TupleVariable* a, Variable* b, bool* handled) {
  *handled = true;
  const bool size = a->type == torch_size_type();
  if (!size && !concat_is_builtin(a->type)) return t.fail(Reason::unsupported_operator, "operator of " + describe(a));
  if (base == NB_ADD) {
    auto* other = as_tuple(b);
    if (other == nullptr) {
      if (!is_builtin_value(b)) return not_modelled(t, base, false, a, b);
      return t.raise_new(PyExc_TypeError, "can only concatenate tuple (not \"%.200s\") to tuple", type_name(b));
    }
    if (size || other->type == torch_size_type()) {  // which of the two types comes out is torch's business
      PyObject *left = known(t, a), *right = known(t, b);
      if (left && right && is_data(left) && is_data(right)) return from_result(t, PyNumber_Add(left, right));
      return not_modelled(t, base, false, a, b);
    }
    std::vector<Variable*> items = a->items;
    items.insert(items.end(), other->items.begin(), other->items.end());
    return t.tuple(std::move(items));
  }
  if (base == NB_MULTIPLY && is_index(b)) {
    const size_t n = TRY(repeat_count(t, b, a->items.size()));
    if (size) {
      PyObject* left = known(t, a);
      if (left && is_data(left)) return from_result(t, PyNumber_Multiply(left, b->real));
      return not_modelled(t, base, false, a, b);
    }
    return t.tuple(repeated(a->items, n));
  }
  *handled = false;
  return nullptr;
}

Answer dict_or(Tracer& t, bool in_place, DictVariable* a, Variable* b) {
  if (in_place) {
    TRY(dict_update(t, a, b));
    return a;
  }
  auto* other = as_dict(b);
  if (other == nullptr) return unsupported_operands(t, NB_OR, false, a, b);
  DictVariable* result = dict_copy(t, a);
  TRY(dict_update(t, result, other));
  return result;
}

// -- instances

Result<Special> method_of(Tracer& t, Variable* v, const char* name) {
  if (v->kind != Kind::kObject) return Special{};
  return find_special(t, v, name);
}

Variable* real_or_inner(Variable* v) {  // the builtin value an instance of a builtin's subclass holds
  auto* object = as_object(v);
  return object && object->inner ? object->inner : v;
}

// One of the two methods of a binary operator. Null: NotImplemented.
Answer try_method(Tracer& t, int base, bool reflected, const Special& method, const char* name, Variable* self, Variable* other) {
  if (method.builtin == nullptr) {
    Variable* result = t.force(TRY(call_special_now(t, self, name, {other})));
    return is_not_implemented(result) ? nullptr : result;
  }
  // C code of a builtin type: IntEnum members, instances of list subclasses.
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
    other = real_or_inner(other);
    return reflected ? binary(t, base, other, inner) : binary(t, base, inner, other);
  }
  return not_modelled(t, base, false, self, other);
}

// Whether a builtin value's own operator may accept an object of another class: subclasses of its type, and numbers by duck typing.
bool builtin_may_accept(Variable* builtin, Variable* object) {
  PyTypeObject *type = type_of(builtin), *other = type_of(object);
  return PyType_IsSubtype(other, type) || (PyNumber_Check(builtin->real ? builtin->real : Py_None) && other->tp_as_number &&
                                           (other->tp_flags & (Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS)));
}

Answer object_binary(Tracer& t, int base, bool in_place, Variable* a, Variable* b) {
  const Operator& op = kTable[base];
  if (in_place) {
    Special method = TRY(method_of(t, a, op.in_place));
    if (method.method && !method.builtin) {
      Variable* result = t.force(TRY(call_special_now(t, a, op.in_place, {b})));
      if (!is_not_implemented(result)) return result;
    } else if (method.method) {
      if (inner_of(a, method) == nullptr) return not_modelled(t, base, in_place, a, b);
      TRY(binary(t, base + NB_INPLACE_ADD, inner_of(a, method), real_or_inner(b)));
      t.mark_changed(a);
      return a;
    }
  }
  PyTypeObject *left_type = type_of(a), *right_type = type_of(b);
  Special left = TRY(method_of(t, a, op.special)), right;
  if (left_type != right_type) right = TRY(method_of(t, b, op.reflected));
  if ((a->kind != Kind::kObject && !is_builtin_value(a)) || (b->kind != Kind::kObject && !is_builtin_value(b))) {
    return not_modelled(t, base, in_place, a, b);
  }
  if (right.method && PyType_IsSubtype(right_type, left_type)) {
    bool overridden = true;
    if (left.method) {
      Special inherited = TRY(method_of(t, a, op.reflected));
      overridden = inherited.method == nullptr || inherited.method->real != right.method->real || right.method->real == nullptr;
    }
    if (overridden) {
      if (Variable* result = TRY(try_method(t, base, true, right, op.reflected, b, a))) return result;
      right.method = nullptr;
    }
  }
  if (left.method) {
    if (Variable* result = TRY(try_method(t, base, false, left, op.special, a, b))) return result;
  } else if (a->kind != Kind::kObject && builtin_may_accept(a, b) && !right.method) {
    return not_modelled(t, base, in_place, a, b);
  }
  if (right.method) {
    if (Variable* result = TRY(try_method(t, base, true, right, op.reflected, b, a))) return result;
  }
  // Nobody took it. Sequences have a last word and another message; objects of C classes may have slots without methods.
  if (a->kind == Kind::kList || a->kind == Kind::kTuple || (a->kind == Kind::kConstant && PySequence_Check(a->real))) {
    if (base == NB_ADD || base == NB_MULTIPLY || base == NB_REMAINDER) return not_modelled(t, base, in_place, a, b);
  }
  if (base == NB_MULTIPLY && (b->kind == Kind::kList || b->kind == Kind::kTuple || b->kind == Kind::kConstant)) {
    return not_modelled(t, base, in_place, a, b);
  }
  return unsupported_operands(t, base, in_place, a, b);
}

// torch refuses operands of a class that has nothing of a number or tensor; the class's own method then has its turn.
bool torch_refuses(PyTypeObject* type) {
  auto* number = type->tp_as_number;
  if (number && (number->nb_index || number->nb_float || number->nb_int)) return false;
  for (const char* name : {"__torch_function__", "__array__", "__array_priority__", "__dlpack__"}) {
    if (PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), name)) return false;
  }
  PyErr_Clear();
  return true;
}

Answer tensor_with_object(Tracer& t, int base, bool in_place, Variable* a, Variable* b) {
  const Operator& op = kTable[base];
  const bool object_first = a->kind == Kind::kObject;
  Variable* object = object_first ? a : b;
  // A member of an IntEnum is a number to torch; its class has C code for the operator, or its own.
  PyObject* real = known(t, object);
  if (real && (PyLong_Check(real) || PyFloat_Check(real))) {
    Special method = TRY(find_special(t, object, object_first ? op.special : op.reflected));
    if (!method.builtin || !is_data_type(method.builtin)) return not_modelled(t, base, in_place, a, b);
    Variable* number = t.constant_new(PyLong_Check(real) ? PyNumber_Long(real) : PyNumber_Float(real));
    if (!PyLong_CheckExact(number->real) && !PyFloat_CheckExact(number->real)) return not_modelled(t, base, in_place, a, b);
    return object_first ? binary(t, base, number, b) : binary(t, in_place ? base + NB_INPLACE_ADD : base, a, number);
  }
  std::vector<const char*> names = {object_first ? op.special : op.reflected};
  if (object_first && in_place) names.insert(names.begin(), op.in_place);
  if (object_first || torch_refuses(type_of(object))) {
    for (const char* name : names) {
      Special method = TRY(find_special(t, object, name));
      if (!method.method || method.builtin) continue;
      Variable* result = t.force(TRY(call_special_now(t, object, name, {object_first ? b : a})));
      if (!is_not_implemented(result)) return result;
    }
  }
  return not_modelled(t, base, in_place, a, b);
}

Answer tensor_binary(Tracer& t, int base, bool in_place, Variable* a, Variable* b) {
  Variable* other = a->kind == Kind::kTensor ? b : a;
  if (other->kind == Kind::kObject) return tensor_with_object(t, base, in_place, a, b);
  // str % tensor formats, list += tensor iterates; everything else that is not a number is refused by torch.
  const bool number = other->kind == Kind::kConstant && !PyUnicode_Check(other->real) && PyNumber_Check(other->real);
  if (other->kind != Kind::kTensor && !number) return not_modelled(t, base, in_place, a, b);
  Arguments arguments;
  arguments.positional = {a, b};
  // `5 += tensor` has no in-place form: the left side decides.
  return t.torch_operator(torch_operator_function(base, in_place && a->kind == Kind::kTensor), nullptr, arguments);
}

}  // namespace

Answer binary(Tracer& t, int operation, Variable* a, Variable* b) {
  a = t.force(a);
  b = t.force(b);
  const bool in_place = operation >= NB_INPLACE_ADD;
  const int base = in_place ? operation - NB_INPLACE_ADD : operation;
  CHECK(base >= 0 && base < kOperators) << operation;
  if (a->kind == Kind::kTensor || b->kind == Kind::kTensor) return tensor_binary(t, base, in_place, a, b);
  if (a->kind == Kind::kConstant && b->kind == Kind::kConstant && is_data(a->real) && is_data(b->real)) {
    if (base == NB_MULTIPLY && !(PyNumber_Check(a->real) && PyNumber_Check(b->real))) {
      const bool left = PyLong_Check(b->real);
      Variable *sequence = left ? a : b, *count = left ? b : a;
      if (PySequence_Check(sequence->real) && is_index(count)) {
        TRY(repeat_count(t, count, static_cast<size_t>(PySequence_Size(sequence->real))));
      }
    }
    return from_result(t, kTable[base].apply(a->real, b->real));
  }
  bool handled = false;
  if (a->kind == Kind::kConstant && base == NB_REMAINDER && (PyUnicode_CheckExact(a->real) || PyBytes_CheckExact(a->real))) {
    bool nested = false;
    py::Ref values = readable_copy(t, b, &nested);
    if (!values) return not_modelled(t, base, in_place, a, b);
    return from_result(t, PyNumber_Remainder(a->real, values.get()));
  }
  if (a->kind == Kind::kObject || b->kind == Kind::kObject) {
    if (a->kind == Kind::kList && in_place && base == NB_ADD) {  // list.__iadd__ comes before any reflected method... which comes first
      Special reflected = TRY(method_of(t, b, "__radd__"));
      if (!reflected.method) return list_binary(t, base, in_place, static_cast<ListVariable*>(a), b, &handled);
    }
    return object_binary(t, base, in_place, a, b);
  }
  if (auto* list = as_list(a)) {
    Answer answer = list_binary(t, base, in_place, list, b, &handled);
    if (handled) return answer;
  } else if (auto* tuple = as_tuple(a)) {
    Answer answer = tuple_binary(t, base, tuple, b, &handled);
    if (handled) return answer;
  } else if (auto* dict = as_dict(a); dict && base == NB_OR) {
    return dict_or(t, in_place, dict, b);
  }
  if (base == NB_MULTIPLY && is_index(a)) {
    if (auto* list = as_list(b)) return list_binary(t, base, false, list, a, &handled);
    if (auto* tuple = as_tuple(b)) return tuple_binary(t, base, tuple, a, &handled);
  }
  if (is_set_like(a) && (base == NB_AND || base == NB_OR || base == NB_SUBTRACT || base == NB_XOR)) {
    if (is_set_like(b) || a->kind == Kind::kDictView) return set_binary(t, operation, in_place, a, b);
  }
  if (b->kind == Kind::kDictView && is_set_like(b)) return not_modelled(t, base, in_place, a, b);  // any iterable with a view
  if (!is_builtin_value(a) || !is_builtin_value(b)) return not_modelled(t, base, in_place, a, b);
  if (base == NB_MULTIPLY && (as_list(a) || as_tuple(a) || as_list(b) || as_tuple(b))) {
    Variable* other = as_list(a) || as_tuple(a) ? b : a;
    return t.raise_new(PyExc_TypeError, "can't multiply sequence by non-int of type '%.200s'", type_name(other));
  }
  if (base == NB_ADD && a->kind == Kind::kConstant && (PyUnicode_Check(a->real) || PyBytes_Check(a->real))) {
    return not_modelled(t, base, in_place, a, b);  // the sequence's own message
  }
  return unsupported_operands(t, base, in_place, a, b);
}

Answer unary(Tracer& t, const char* special, Variable* v) {
  v = t.force(v);
  const std::string_view name = special;
  PyObject* (*apply)(PyObject*) = name == "neg" ? PyNumber_Negative : name == "pos" ? PyNumber_Positive : PyNumber_Invert;
  CHECK(name == "neg" || name == "pos" || name == "invert") << special;
  if (v->kind == Kind::kConstant && is_data(v->real)) return from_result(t, apply(v->real));
  if (v->kind == Kind::kTensor) {
    static py::Once<std::array<PyObject*, 3>> kept;
    const auto& functions = kept.get([] {
      return std::array{module_attribute("operator", "neg"), module_attribute("operator", "pos"), module_attribute("operator", "invert")};
    });
    Arguments arguments;
    arguments.positional = {v};
    return t.torch_operator(functions[name == "neg" ? 0 : name == "pos" ? 1 : 2], nullptr, arguments);
  }
  const std::string method = "__" + std::string(name) + "__";
  if (v->kind == Kind::kObject) {
    Special found = TRY(find_special(t, v, method.c_str()));
    if (found.method && !found.builtin) return call_special(t, v, method.c_str(), {});
    PyObject* value = known(t, v);
    if (found.method && value && is_data_type(found.builtin)) return from_result(t, apply(value));
    if (found.method) return t.fail(Reason::unsupported_operator, std::string(name) + " of " + describe(v));
  } else if (!is_builtin_value(v)) {
    return t.fail(Reason::unsupported_operator, std::string(name) + " of " + describe(v));
  }
  return t.raise_new(PyExc_TypeError, "bad operand type for unary %s: '%.200s'",
                     name == "neg"   ? "-"
                     : name == "pos" ? "+"
                                     : "~",
                     type_name(v));
}

}  // namespace pellucid::variables
