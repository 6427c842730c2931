// `pellucid._bytecode`'s shape engine: functions on symbolic numbers. The ShapeEnv type itself is in
// bytecode_symbolic_env.cpp, the numbers are in bytecode_symbolic_numbers.cpp; src/pellucid/shapes.py is what people see.
#include "module/bytecode_symbolic.h"

#include <string>
#include <vector>

#include "py/ref.h"
#include "symbolic_python/errors.h"

namespace pellucid::module {

namespace {

using symbolic::Builder;
using symbolic::Expr;
using symbolic::Kind;
using symbolic::ShapeEnv;
using symbolic::Type;

// The ShapeEnv of the first symbolic number among the arguments; null with an exception set if there is none.
ShapeEnv* env_of(PyObject* const* args, Py_ssize_t count, const char* function) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (const Expr expr = sym_expr(args[i])) return &ShapeEnv::of(expr);
  }
  PyErr_Format(PyExc_TypeError, "%s: none of the arguments is a symbolic number", function);
  return nullptr;
}

PyObject* extremum(PyObject* const* args, Py_ssize_t count, bool least) {
  const char* name = least ? "sym_min" : "sym_max";
  if (count != 2) {
    PyErr_Format(PyExc_TypeError, "%s takes two numbers", name);
    return nullptr;
  }
  return no_throw([&]() -> PyObject* {
    ShapeEnv* env = env_of(args, count, name);
    Expr a;
    Expr b;
    if (env == nullptr || !to_expr_or_raise(args[0], env->arena(), "a number", &a) ||
        !to_expr_or_raise(args[1], env->arena(), "a number", &b)) {
      return nullptr;
    }
    Builder& build = env->build();
    if (a->type == Type::kBool || b->type == Type::kBool) {
      PyErr_Format(PyExc_TypeError, "%s takes no SymBool", name);
      return nullptr;
    }
    if (a->type == Type::kInt && b->type == Type::kInt) return wrap_expr(least ? build.min(a, b) : build.max(a, b));
    return wrap_expr(build.float_binary(least ? Kind::kFloatMin : Kind::kFloatMax, build.to_float(a), build.to_float(b)));
  });
}

PyObject* sym_min(PyObject*, PyObject* const* args, Py_ssize_t count) { return extremum(args, count, true); }
PyObject* sym_max(PyObject*, PyObject* const* args, Py_ssize_t count) { return extremum(args, count, false); }

PyObject* sym_sum(PyObject*, PyObject* numbers) {
  const py::Ref items = py::Ref::steal(PySequence_Fast(numbers, "sym_sum takes a sequence of ints"));
  if (!items) return nullptr;
  PyObject** data = PySequence_Fast_ITEMS(items.get());
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
  return no_throw([&]() -> PyObject* {
    ShapeEnv* env = env_of(data, count, "sym_sum");
    if (env == nullptr) return nullptr;
    std::vector<Expr> terms(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!to_expr_or_raise(data[i], env->arena(), "an int", &terms[static_cast<size_t>(i)])) return nullptr;
      if (terms[static_cast<size_t>(i)]->type != Type::kInt) {
        PyErr_SetString(PyExc_TypeError, "sym_sum takes ints");
        return nullptr;
      }
    }
    return wrap_expr(env->build().sum(terms));
  });
}

PyObject* sym_ite(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) {
    PyErr_SetString(PyExc_TypeError, "sym_ite takes a condition and two numbers");
    return nullptr;
  }
  return no_throw([&]() -> PyObject* {
    ShapeEnv* env = env_of(args, count, "sym_ite");
    if (env == nullptr) return nullptr;
    Expr condition;
    Expr a;
    Expr b;
    if (PyBool_Check(args[0])) {
      condition = env->build().truth(args[0] == Py_True);
    } else if (!to_expr_or_raise(args[0], env->arena(), "a condition", &condition)) {
      return nullptr;
    }
    if (!to_expr_or_raise(args[1], env->arena(), "a number", &a) || !to_expr_or_raise(args[2], env->arena(), "a number", &b))
      return nullptr;
    if (condition->type != Type::kBool) {
      PyErr_SetString(PyExc_TypeError, "sym_ite: the condition must be a boolean");
      return nullptr;
    }
    if (a->type != b->type) {
      PyErr_SetString(PyExc_TypeError, "sym_ite: both numbers must be of one type");
      return nullptr;
    }
    return wrap_expr(env->build().where(condition, a, b));
  });
}

PyObject* sym_ceil_div(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "sym_ceil_div takes two ints");
    return nullptr;
  }
  return no_throw([&]() -> PyObject* {
    ShapeEnv* env = env_of(args, count, "sym_ceil_div");
    Expr a;
    Expr b;
    if (env == nullptr || !to_expr_or_raise(args[0], env->arena(), "an int", &a) ||
        !to_expr_or_raise(args[1], env->arena(), "an int", &b)) {
      return nullptr;
    }
    if (a->type != Type::kInt || b->type != Type::kInt) {
      PyErr_SetString(PyExc_TypeError, "sym_ceil_div takes two ints");
      return nullptr;
    }
    return wrap_expr(env->build().ceil_div(a, b));
  });
}

PyObject* sym_not(PyObject*, PyObject* condition) {
  if (PyBool_Check(condition)) return PyBool_FromLong(condition == Py_False);
  return no_throw([&]() -> PyObject* {
    const Expr expr = sym_expr(condition);
    if (expr == nullptr || expr->type != Type::kBool) {
      PyErr_SetString(PyExc_TypeError, "sym_not takes a bool or SymBool");
      return nullptr;
    }
    return wrap_expr(ShapeEnv::of(expr).build().logical_not(expr));
  });
}

PyObject* sym_float(PyObject*, PyObject* number) {
  return no_throw([&]() -> PyObject* {
    const Expr expr = sym_expr(number);
    if (expr == nullptr) return PyNumber_Float(number);
    return wrap_expr(ShapeEnv::of(expr).build().to_float(expr));
  });
}

PyObject* sym_int(PyObject*, PyObject* number) {
  return no_throw([&]() -> PyObject* {
    const Expr expr = sym_expr(number);
    if (expr == nullptr) return PyNumber_Long(number);
    Builder& build = ShapeEnv::of(expr).build();
    if (expr->type == Type::kInt) return wrap_expr(expr);
    if (expr->type == Type::kBool) return wrap_expr(build.where(expr, build.constant(1), build.constant(0)));
    return wrap_expr(build.to_int(Kind::kTrunc, expr));
  });
}

PyObject* sym_math(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyUnicode_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "sym_math takes the name of a function of math and a number");
    return nullptr;
  }
  const char* name = PyUnicode_AsUTF8(args[0]);
  if (name == nullptr) return nullptr;
  return no_throw([&]() -> PyObject* {
    ShapeEnv* env = env_of(args + 1, 1, "sym_math");
    Expr a;
    if (env == nullptr || !to_expr_or_raise(args[1], env->arena(), "a number", &a)) return nullptr;
    for (int kind = static_cast<int>(Kind::kSqrt); kind <= static_cast<int>(Kind::kLog2); ++kind) {
      if (std::string("math.") + name != symbolic::kind_text(static_cast<Kind>(kind))) continue;
      return wrap_expr(env->build().float_unary(static_cast<Kind>(kind), env->build().to_float(a)));
    }
    PyErr_Format(PyExc_ValueError, "sym_math knows no function %.100s", name);
    return nullptr;
  });
}

#define PELLUCID_FAST(function) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function))

PyMethodDef functions[] = {
    {"sym_min", PELLUCID_FAST(sym_min), METH_FASTCALL, "The smaller of two numbers, without asking which."},
    {"sym_max", PELLUCID_FAST(sym_max), METH_FASTCALL, "The larger of two numbers, without asking which."},
    {"sym_sum", sym_sum, METH_O, "The sum of many ints at once."},
    {"sym_ite", PELLUCID_FAST(sym_ite), METH_FASTCALL, "The second argument where the first is true, else the third, without asking."},
    {"sym_ceil_div", PELLUCID_FAST(sym_ceil_div), METH_FASTCALL, "The quotient of two ints, rounded up."},
    {"sym_not", sym_not, METH_O, "The negation of a condition, without asking."},
    {"sym_float", sym_float, METH_O, "A number as a float, without asking which."},
    {"sym_int", sym_int, METH_O, "A number as an int, without asking which."},
    {"sym_math", PELLUCID_FAST(sym_math), METH_FASTCALL, "A function of math, by name, of a symbolic number."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool read_range(PyObject* least, PyObject* most, symbolic::Range* range) {
  const auto read = [](PyObject* object, symbolic::Int* out) {
    if (object == nullptr || object == Py_None) return true;
    const long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred()) return false;
    *out = value;
    return true;
  };
  return read(least, &range->lo) && read(most, &range->hi);
}

void raise_from_cpp() {
  try {
    throw;
  } catch (const symbolic::Error& error) {
    symbolic_python::raise(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

bool bind_symbolic(PyObject* module) {
  return PyModule_AddFunctions(module, functions) == 0 && bind_symbolic_numbers(module) && bind_symbolic_env(module) &&
         bind_symbolic_measure(module);
}

}  // namespace pellucid::module
