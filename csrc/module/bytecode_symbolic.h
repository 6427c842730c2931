// What the files that bind the shape engine share: the Python objects around expressions and environments, conversion of numbers, errors.
#pragma once
#include <exception>
#include <new>
#include <type_traits>

#include "base/check.h"
#include "module/bindings.h"
#include "symbolic/shape_env.h"
#include "symbolic_python/user_site.h"

namespace pellucid::module {

struct SymObject {  // SymInt, SymFloat, SymBool: immutable, holds its expression's environment alive
  PyObject_HEAD symbolic::Expr expr;
};

struct ShapeEnvObject {
  PyObject_HEAD symbolic::Handle<symbolic::ShapeEnv> env;
};

// Set once, by the binders.
extern PyTypeObject* sym_int_type;
extern PyTypeObject* sym_float_type;
extern PyTypeObject* sym_bool_type;

bool bind_symbolic_numbers(PyObject* module);
bool bind_symbolic_env(PyObject* module);
bool bind_symbolic_measure(PyObject* module);

// The expression of a SymInt, SymFloat or SymBool, else null.
inline symbolic::Expr sym_expr(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return type == sym_int_type || type == sym_float_type || type == sym_bool_type ? reinterpret_cast<SymObject*>(object)->expr : nullptr;
}

// A Python number for a constant, else a SymInt, SymFloat or SymBool.
PyObject* wrap_expr(symbolic::Expr expr);

enum class Converted { kYes, kNo, kError };
// An expression for a number of Python or ours: kNo for other types; kError, with an exception set, for one of another ShapeEnv, an int
// beyond int64, or one of torch's symbolic numbers.
Converted to_expr(PyObject* object, symbolic::Arena& arena, symbolic::Expr* out);
// The same where nothing else will do: false with an exception set. `wanted` is what the error says.
bool to_expr_or_raise(PyObject* object, symbolic::Arena& arena, const char* wanted, symbolic::Expr* out);

// Two ints as a range, None or null for no bound: false with an exception set.
bool read_range(PyObject* least, PyObject* most, symbolic::Range* range);

using symbolic_python::user_site;

// Makes the exception that is being handled Python's. Only in a catch block.
void raise_from_cpp();

// No C++ exception crosses into the interpreter.
template <class Function>
auto no_throw(Function function) -> decltype(function()) {
  using Result = decltype(function());
  try {
    return function();
  } catch (...) {
    raise_from_cpp();
  }
  if constexpr (std::is_pointer_v<Result>) {
    return nullptr;
  } else if constexpr (std::is_same_v<Result, bool>) {
    return false;
  } else {
    return -1;
  }
}

}  // namespace pellucid::module
