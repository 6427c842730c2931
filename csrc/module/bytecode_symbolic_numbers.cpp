// SymInt, SymFloat and SymBool: expressions as Python numbers, with C number slots. An operation is a look-up in the arena; asking for
// a truth value, an int or a float asks the ShapeEnv. They know neither torch nor its SymInt.
#include <cmath>
#include <initializer_list>

#include "module/bytecode_symbolic.h"
#include "py/ref.h"
#include "symbolic/print.h"

namespace pellucid::module {

PyTypeObject* sym_int_type = nullptr;
PyTypeObject* sym_float_type = nullptr;
PyTypeObject* sym_bool_type = nullptr;

namespace {

using symbolic::Arena;
using symbolic::Builder;
using symbolic::Expr;
using symbolic::Int;
using symbolic::Kind;
using symbolic::ShapeEnv;
using symbolic::Type;

enum class Binary { kAdd, kSub, kMul, kFloorDiv, kMod, kTrueDiv, kPow, kShiftLeft, kShiftRight, kAnd, kOr, kXor };

Expr expr_of(PyObject* self) { return reinterpret_cast<SymObject*>(self)->expr; }

// Null: these types have no such operation.
Expr make_binary(Builder& build, Binary op, Expr a, Expr b) {
  if (a->type == Type::kInt && b->type == Type::kInt) {
    switch (op) {
      case Binary::kAdd:
        return build.add(a, b);
      case Binary::kSub:
        return build.sub(a, b);
      case Binary::kMul:
        return build.mul(a, b);
      case Binary::kFloorDiv:
        return build.floor_div(a, b);
      case Binary::kMod:
        return build.mod(a, b);
      case Binary::kTrueDiv:
        return build.int_true_div(a, b);
      case Binary::kPow:
        // As Python: a negative exponent gives a float. Of a symbol the hint tells, as for any other choice of type.
        if (b->is_const() && b->value < 0) return build.float_binary(Kind::kFloatPow, build.to_float(a), build.to_float(b));
        return build.pow(a, b);
      case Binary::kShiftLeft:
        return build.shift_left(a, b);
      case Binary::kShiftRight:
        return build.shift_right(a, b);
      case Binary::kAnd:
        return build.bit_and(a, b);
      case Binary::kOr:
        return build.bit_or(a, b);
      case Binary::kXor:
        return build.bit_xor(a, b);
    }
  }
  if (a->type == Type::kBool || b->type == Type::kBool) {
    if (a->type != b->type) return nullptr;
    if (op == Binary::kAnd) return build.logical_and(a, b);
    if (op == Binary::kOr) return build.logical_or(a, b);
    if (op == Binary::kXor) return build.ne(a, b);
    return nullptr;
  }
  Kind kind;
  switch (op) {
    case Binary::kAdd:
      kind = Kind::kFloatAdd;
      break;
    case Binary::kSub:
      kind = Kind::kFloatSub;
      break;
    case Binary::kMul:
      kind = Kind::kFloatMul;
      break;
    case Binary::kFloorDiv:
      kind = Kind::kFloatFloorDiv;
      break;
    case Binary::kMod:
      kind = Kind::kFloatMod;
      break;
    case Binary::kTrueDiv:
      kind = Kind::kFloatDiv;
      break;
    case Binary::kPow:
      kind = Kind::kFloatPow;
      break;
    default:
      return nullptr;
  }
  return build.float_binary(kind, build.to_float(a), build.to_float(b));
}

// Both operands in one arena: that of whichever is ours. kNo: another type's turn.
Converted operands(PyObject* left, PyObject* right, Expr* a, Expr* b) {
  *a = sym_expr(left);
  *b = sym_expr(right);
  if (*a != nullptr && *b != nullptr) {
    if ((*a)->arena == (*b)->arena) return Converted::kYes;
    PyErr_SetString(PyExc_ValueError, "the operands belong to different ShapeEnvs");
    return Converted::kError;
  }
  if (*a != nullptr) return to_expr(right, *(*a)->arena, b);
  return to_expr(left, *(*b)->arena, a);
}

// bool and 0 or 1 are told apart as Python does: of a SymBool, True is a boolean; of a SymInt it is 1.
Expr as_boolean(Expr expr, Expr other) {
  if (other->type == Type::kBool && expr->is_const() && (expr->value == 0 || expr->value == 1)) {
    return expr->arena->truth(expr->value == 1);
  }
  return expr;
}

template <Binary op>
PyObject* binary(PyObject* left, PyObject* right) {
  return no_throw([&]() -> PyObject* {
    Expr a;
    Expr b;
    const Converted converted = operands(left, right, &a, &b);
    if (converted == Converted::kError) return nullptr;
    if (converted == Converted::kNo) Py_RETURN_NOTIMPLEMENTED;
    if constexpr (op == Binary::kAnd || op == Binary::kOr || op == Binary::kXor) {
      if (PyBool_Check(left)) a = as_boolean(a, b);
      if (PyBool_Check(right)) b = as_boolean(b, a);
    }
    const Expr result = make_binary(ShapeEnv::of(a).build(), op, a, b);
    if (result == nullptr) Py_RETURN_NOTIMPLEMENTED;
    return wrap_expr(result);
  });
}

PyObject* power(PyObject* base, PyObject* exponent, PyObject* modulus) {
  if (modulus == Py_None) return binary<Binary::kPow>(base, exponent);
  PyErr_SetString(PyExc_TypeError, "pow() of symbolic numbers takes no modulus");
  return nullptr;
}

PyObject* divide_with_rest(PyObject* left, PyObject* right) {
  const py::Ref quotient = py::Ref::steal(binary<Binary::kFloorDiv>(left, right));
  if (!quotient || quotient.get() == Py_NotImplemented) return quotient.new_ref();
  const py::Ref rest = py::Ref::steal(binary<Binary::kMod>(left, right));
  return rest ? PyTuple_Pack(2, quotient.get(), rest.get()) : nullptr;
}

PyObject* compare(PyObject* left, PyObject* right, int op) {
  return no_throw([&]() -> PyObject* {
    Expr a;
    Expr b;
    const Converted converted = operands(left, right, &a, &b);
    if (converted == Converted::kError) return nullptr;
    if (converted == Converted::kNo) Py_RETURN_NOTIMPLEMENTED;
    if (PyBool_Check(left)) a = as_boolean(a, b);
    if (PyBool_Check(right)) b = as_boolean(b, a);
    Builder& build = ShapeEnv::of(a).build();
    if (a->type == Type::kBool || b->type == Type::kBool) {
      if (a->type != b->type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    }
    switch (op) {
      case Py_EQ:
        return wrap_expr(build.eq(a, b));
      case Py_NE:
        return wrap_expr(build.ne(a, b));
      case Py_LT:
        return wrap_expr(build.lt(a, b));
      case Py_LE:
        return wrap_expr(build.le(a, b));
      case Py_GT:
        return wrap_expr(build.gt(a, b));
      default:
        return wrap_expr(build.ge(a, b));
    }
  });
}

PyObject* negative(PyObject* self) {
  return no_throw([&] {
    const Expr a = expr_of(self);
    Builder& build = ShapeEnv::of(a).build();
    return wrap_expr(a->type == Type::kFloat ? build.float_unary(Kind::kFloatNeg, a) : build.neg(a));
  });
}

PyObject* positive(PyObject* self) {
  Py_INCREF(self);
  return self;
}

PyObject* absolute(PyObject* self) {
  return no_throw([&] {
    const Expr a = expr_of(self);
    Builder& build = ShapeEnv::of(a).build();
    return wrap_expr(a->type == Type::kFloat ? build.float_unary(Kind::kFloatAbs, a) : build.abs(a));
  });
}

PyObject* invert(PyObject* self) {  // ~: of ints -x - 1, of booleans `not`
  return no_throw([&] {
    const Expr a = expr_of(self);
    Builder& build = ShapeEnv::of(a).build();
    return wrap_expr(a->type == Type::kBool ? build.logical_not(a) : build.sub(build.constant(-1), a));
  });
}

int truth(PyObject* self) {
  return no_throw([&]() -> int {
    const Expr a = expr_of(self);
    ShapeEnv& env = ShapeEnv::of(a);
    if (a->type == Type::kBool) return env.evaluate(a, user_site());
    Builder& build = env.build();
    const Expr zero = a->type == Type::kInt ? build.constant(0) : build.real(0.0);
    return env.evaluate(build.ne(a, zero), user_site());
  });
}

PyObject* as_int(PyObject* self) {
  return no_throw([&]() -> PyObject* {
    const Expr a = expr_of(self);
    ShapeEnv& env = ShapeEnv::of(a);
    switch (a->type) {
      case Type::kInt:
        return PyLong_FromLongLong(env.evaluate_int(a, user_site()));
      case Type::kBool:
        return PyLong_FromLong(env.evaluate(a, user_site()));
      case Type::kFloat:
        return PyLong_FromLongLong(env.evaluate_int(env.build().to_int(Kind::kTrunc, a), user_site()));
    }
    return nullptr;
  });
}

PyObject* as_float(PyObject* self) {
  return no_throw([&]() -> PyObject* {
    const Expr a = expr_of(self);
    ShapeEnv& env = ShapeEnv::of(a);
    if (a->type == Type::kFloat) return PyFloat_FromDouble(env.evaluate_float(a, user_site()));
    if (a->type == Type::kBool) return PyFloat_FromDouble(env.evaluate(a, user_site()) ? 1.0 : 0.0);
    return PyFloat_FromDouble(static_cast<double>(env.evaluate_int(a, user_site())));
  });
}

template <Kind rounding>
PyObject* rounded(PyObject* self, PyObject*) {
  return no_throw([&]() -> PyObject* {
    const Expr a = expr_of(self);
    if (a->type == Type::kInt) return positive(self);
    return wrap_expr(ShapeEnv::of(a).build().to_int(rounding, a));
  });
}

PyObject* round_number(PyObject* self, PyObject* args) {
  PyObject* digits = Py_None;
  if (!PyArg_ParseTuple(args, "|O:__round__", &digits)) return nullptr;
  long count = 0;
  if (digits != Py_None) {
    count = PyLong_AsLong(digits);
    if (count == -1 && PyErr_Occurred()) return nullptr;
  }
  return no_throw([&]() -> PyObject* {
    const Expr a = expr_of(self);
    Builder& build = ShapeEnv::of(a).build();
    if (a->type == Type::kInt) {
      if (count >= 0) return positive(self);
      PyErr_SetString(PyExc_NotImplementedError, "round() of a SymInt to negative digits");
      return nullptr;
    }
    if (digits == Py_None) return wrap_expr(build.to_int(Kind::kRound, a));
    return wrap_expr(build.round_digits(a, static_cast<int>(std::max(-1000L, std::min(1000L, count)))));
  });
}

PyObject* is_integer(PyObject* self, PyObject*) {
  return no_throw([&]() -> PyObject* {
    const Expr a = expr_of(self);
    Builder& build = ShapeEnv::of(a).build();
    if (a->type == Type::kInt) Py_RETURN_TRUE;
    return wrap_expr(build.float_binary(Kind::kFloatEq, build.to_float(build.to_int(Kind::kFloor, a)), a));
  });
}

PyObject* text(PyObject* self) {
  return no_throw([&] {
    const Expr a = expr_of(self);
    return PyUnicode_FromString(symbolic::to_text(ShapeEnv::of(a).simplify(a)).c_str());
  });
}

Py_hash_t no_hash(PyObject* self) {
  PyErr_Format(PyExc_TypeError, "unhashable type: '%.100s' (its equality is a question to the ShapeEnv; .id is a key)",
               Py_TYPE(self)->tp_name);
  return -1;
}

PyObject* get_hint(PyObject* self, void*) {
  return no_throw([&]() -> PyObject* {
    const Expr a = expr_of(self);
    if (a->type == Type::kInt) {
      if (const auto hint = ShapeEnv::hint_int(a)) return PyLong_FromLongLong(*hint);
    } else if (a->type == Type::kFloat) {
      if (const auto hint = ShapeEnv::hint_float(a)) return PyFloat_FromDouble(*hint);
    } else if (const auto hint = ShapeEnv::hint_bool(a)) {
      return PyBool_FromLong(*hint);
    }
    Py_RETURN_NONE;
  });
}

PyObject* get_unbacked(PyObject* self, void*) { return PyBool_FromLong(expr_of(self)->unbacked); }

PyObject* get_id(PyObject* self, void*) {
  return no_throw([&] {
    const Expr a = expr_of(self);
    return PyLong_FromUnsignedLong(ShapeEnv::of(a).simplify(a)->id);
  });
}

PyObject* get_is_symbol(PyObject* self, void*) { return PyBool_FromLong(expr_of(self)->is(Kind::kSymbol)); }

PyObject* get_raw(PyObject* self, void*) {
  return no_throw([&] { return PyUnicode_FromString(symbolic::to_text(expr_of(self)).c_str()); });
}

PyObject* constrain(PyObject* self, PyObject* args) {
  PyObject *least, *most;
  symbolic::Range range;
  if (!PyArg_ParseTuple(args, "OO:_constrain_range", &least, &most) || !read_range(least, most, &range)) return nullptr;
  return no_throw([&]() -> PyObject* {
    const Expr a = expr_of(self);
    if (a->type != Type::kInt) {
      PyErr_SetString(PyExc_TypeError, "only ints have a range");
      return nullptr;
    }
    ShapeEnv::of(a).constrain_range(a, range, user_site());
    Py_RETURN_NONE;
  });
}

PyObject* itself(PyObject* self, PyObject*) { return positive(self); }

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  expr_of(self)->arena->owner().release();
  PyObject_Free(self);
  Py_DECREF(type);
}

PyGetSetDef getters[] = {
    {"hint", get_hint, nullptr, "The value at the hints, without a guard; None with symbols that have none.", nullptr},
    {"unbacked", get_unbacked, nullptr, "Whether a symbol in it has no hint.", nullptr},
    {"is_symbol", get_is_symbol, nullptr, "Whether it is one symbol.", nullptr},
    {"id", get_id, nullptr, "A number that equal expressions of one ShapeEnv share, by what is known now: a key for dictionaries.",
     nullptr},
    {"raw", get_raw, nullptr, "The expression as it was made, before what is known of it now.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef methods[] = {
    {"__floor__", rounded<Kind::kFloor>, METH_NOARGS, "math.floor()."},
    {"__ceil__", rounded<Kind::kCeil>, METH_NOARGS, "math.ceil()."},
    {"__trunc__", rounded<Kind::kTrunc>, METH_NOARGS, "math.trunc()."},
    {"__round__", round_number, METH_VARARGS, "round()."},
    {"is_integer", is_integer, METH_NOARGS, "Whether it is a whole number."},
    {"_constrain_range", constrain, METH_VARARGS, "States that it lies between two ints, None for no bound."},
    {"__copy__", itself, METH_NOARGS, "Itself: it never changes."},
    {"__deepcopy__", itself, METH_O, "Itself: it never changes."},
    {nullptr, nullptr, 0, nullptr},
};

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

PyTypeObject* make_type(PyObject* module, const char* name, const char* full_name, const char* doc, bool integer, bool number) {
  std::initializer_list<PyType_Slot> common = {
      {Py_tp_dealloc, slot(dealloc)}, {Py_tp_repr, slot(text)}, {Py_tp_hash, slot(no_hash)},         {Py_tp_richcompare, slot(compare)},
      {Py_tp_methods, methods},       {Py_tp_getset, getters},  {Py_tp_doc, const_cast<char*>(doc)}, {Py_nb_bool, slot(truth)},
  };
  std::initializer_list<PyType_Slot> numeric = {
      {Py_nb_add, slot(binary<Binary::kAdd>)},
      {Py_nb_subtract, slot(binary<Binary::kSub>)},
      {Py_nb_multiply, slot(binary<Binary::kMul>)},
      {Py_nb_floor_divide, slot(binary<Binary::kFloorDiv>)},
      {Py_nb_remainder, slot(binary<Binary::kMod>)},
      {Py_nb_true_divide, slot(binary<Binary::kTrueDiv>)},
      {Py_nb_power, slot(power)},
      {Py_nb_divmod, slot(divide_with_rest)},
      {Py_nb_negative, slot(negative)},
      {Py_nb_positive, slot(positive)},
      {Py_nb_absolute, slot(absolute)},
      {Py_nb_int, slot(as_int)},
      {Py_nb_float, slot(as_float)},
  };
  std::initializer_list<PyType_Slot> integral = {
      {Py_nb_lshift, slot(binary<Binary::kShiftLeft>)},
      {Py_nb_rshift, slot(binary<Binary::kShiftRight>)},
      {Py_nb_index, slot(as_int)},
  };
  std::initializer_list<PyType_Slot> bits = {
      {Py_nb_and, slot(binary<Binary::kAnd>)},
      {Py_nb_or, slot(binary<Binary::kOr>)},
      {Py_nb_xor, slot(binary<Binary::kXor>)},
      {Py_nb_invert, slot(invert)},
  };
  std::vector<PyType_Slot> slots(common);
  if (number) slots.insert(slots.end(), numeric);
  if (integer) slots.insert(slots.end(), integral);
  if (integer || !number) slots.insert(slots.end(), bits);
  if (!number) slots.insert(slots.end(), {{Py_nb_int, slot(as_int)}, {Py_nb_float, slot(as_float)}});
  slots.push_back({0, nullptr});
  PyType_Spec spec{full_name, static_cast<int>(sizeof(SymObject)), 0, Py_TPFLAGS_DEFAULT, slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return nullptr;
  reinterpret_cast<PyTypeObject*>(type)->tp_new = nullptr;  // made by a ShapeEnv only
  Py_INCREF(type);                                          // one for us
  if (!add_object(module, name, type)) return nullptr;
  return reinterpret_cast<PyTypeObject*>(type);
}

// A symbolic number of torch, which belongs to another engine.
bool is_torch_number(PyObject* object) {
  const py::Ref module = py::Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__module__"));
  if (!module) PyErr_Clear();
  if (!module || !PyUnicode_Check(module.get()) || PyUnicode_CompareWithASCIIString(module.get(), "torch") != 0) return false;
  const std::string name = Py_TYPE(object)->tp_name;
  return name == "SymInt" || name == "SymFloat" || name == "SymBool";
}

}  // namespace

PyObject* wrap_expr(Expr expr) {
  PyTypeObject* type = sym_int_type;
  switch (expr->kind) {
    case Kind::kConst:
      if (symbolic::fits_int64(expr->value)) return PyLong_FromLongLong(static_cast<int64_t>(expr->value));
      break;  // past int64 it stays symbolic, for what comes of it may fit again
    case Kind::kTruth:
      return PyBool_FromLong(expr->value != 0);
    case Kind::kReal:
      return PyFloat_FromDouble(expr->real());
    default:
      break;
  }
  if (expr->type == Type::kFloat) type = sym_float_type;
  if (expr->type == Type::kBool) type = sym_bool_type;
  SymObject* object = PyObject_New(SymObject, type);
  if (object == nullptr) return nullptr;
  object->expr = expr;
  expr->arena->owner().retain();
  return reinterpret_cast<PyObject*>(object);
}

Converted to_expr(PyObject* object, Arena& arena, Expr* out) {
  if (const Expr own = sym_expr(object)) {
    *out = own;
    if (own->arena == &arena) return Converted::kYes;
    PyErr_SetString(PyExc_ValueError, "the operands belong to different ShapeEnvs");
    return Converted::kError;
  }
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) {
      PyErr_Format(PyExc_OverflowError, "%.200R does not fit int64, which symbolic numbers are of", object);
      return Converted::kError;
    }
    *out = arena.constant(value);
    return Converted::kYes;
  }
  if (PyFloat_Check(object)) {
    *out = arena.real(PyFloat_AS_DOUBLE(object));
    return Converted::kYes;
  }
  if (is_torch_number(object)) {
    PyErr_Format(PyExc_TypeError,
                 "pellucid's symbolic numbers and torch.%.20s can't be mixed: each belongs to the ShapeEnv that made it, and these are "
                 "different engines",
                 Py_TYPE(object)->tp_name);
    return Converted::kError;
  }
  return Converted::kNo;
}

bool to_expr_or_raise(PyObject* object, Arena& arena, const char* wanted, Expr* out) {
  switch (to_expr(object, arena, out)) {
    case Converted::kYes:
      return true;
    case Converted::kError:
      return false;
    case Converted::kNo:
      break;
  }
  PyErr_Format(PyExc_TypeError, "expected %s, not %.100s", wanted, Py_TYPE(object)->tp_name);
  return false;
}

bool bind_symbolic_numbers(PyObject* module) {
  sym_int_type = make_type(module, "SymInt", "pellucid.SymInt", "An int that a ShapeEnv knows as an expression.", true, true);
  if (sym_int_type == nullptr) return false;
  sym_float_type = make_type(module, "SymFloat", "pellucid.SymFloat", "A float that a ShapeEnv knows as an expression.", false, true);
  if (sym_float_type == nullptr) return false;
  sym_bool_type = make_type(module, "SymBool", "pellucid.SymBool", "A condition on symbols; its truth value is a question.", false, false);
  return sym_bool_type != nullptr;
}

}  // namespace pellucid::module
