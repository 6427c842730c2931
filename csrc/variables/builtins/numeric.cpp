// Arithmetic builtins and reductions over iterables: abs, pow, divmod, round, sum, min, max, any, all; and the math module.
#include <opcode.h>

#include "variables/builtins/builtins.h"

namespace pellucid::variables::builtins {
namespace {

Answer call_abs(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  Variable* v = arguments.positional[0];
  if (auto* tensor = as_tensor(v)) {
    Arguments none;
    return call_tensor_method(t, tensor, t.intern("abs"), none);
  }
  if (as_object(v) && TRY(class_lookup(t, v, t.intern("__abs__"))) != nullptr) return call_special(t, v, "__abs__", {});
  return fold(t, callable, arguments);
}

Answer call_round(Tracer& t, PyObject* callable, Arguments& arguments) {
  Variable* values[2];
  if (!bind(arguments, {"number", "ndigits"}, 1, 0, values)) return unsupported(t, callable, arguments);
  Variable* method = as_object(values[0]) ? TRY(class_lookup(t, values[0], t.intern("__round__"))) : nullptr;
  if (method != nullptr && as_function(t.force(method))) {
    Arguments rest;
    if (values[1] != nullptr && plain(t, values[1]) != Py_None) rest.positional.push_back(values[1]);
    return call_special(t, values[0], "__round__", std::move(rest));
  }
  return fold(t, callable, arguments);
}

Answer call_pow(Tracer& t, PyObject* callable, Arguments& arguments) {
  Variable* values[3];
  if (!bind(arguments, {"base", "exp", "mod"}, 2, 0, values)) return unsupported(t, callable, arguments);
  if (values[2] == nullptr || plain(t, values[2]) == Py_None) return binary(t, NB_POWER, values[0], values[1]);
  return fold(t, callable, arguments);
}

bool is_number(PyObject* value) {
  return value != nullptr && (PyLong_Check(value) || PyFloat_CheckExact(value) || PyComplex_CheckExact(value));
}

Answer call_sum(Tracer& t, PyObject* callable, Arguments& arguments) {
  Variable* values[2];
  if (!bind(arguments, {"iterable", "start"}, 1, 1, values)) return unsupported(t, callable, arguments);
  Variable* total = values[1] != nullptr ? values[1] : t.integer(0);
  if (PyTypeObject* type = type_of(total); type == &PyUnicode_Type || type == &PyBytes_Type)
    return unsupported(t, callable, arguments);  // TypeError
  std::vector<Variable*> items = TRY(unpack(t, values[0]));
  bool numbers = is_number(plain(t, total));
  for (Variable* item : items) numbers = numbers && is_number(plain(t, item));
  if (numbers) {  // the real sum: versions differ in how they add floats
    Arguments known_arguments{{t.tuple(std::move(items)), total}, {}};
    return fold(t, callable, known_arguments);
  }
  for (Variable* item : items) total = TRY(t.wait(binary(t, NB_ADD, total, t.force(item))));
  return total;
}

template <int kOperation>
Answer call_extreme(Tracer& t, PyObject* callable, Arguments& arguments) {
  for (auto& [name, v] : arguments.keywords) {
    if (PyUnicode_CompareWithASCIIString(name, "key") != 0 && PyUnicode_CompareWithASCIIString(name, "default") != 0)
      return unsupported(t, callable, arguments);
  }
  if (arguments.positional.empty()) return unsupported(t, callable, arguments);
  Variable* key = arguments.keyword("key");
  if (key != nullptr && plain(t, key) == Py_None) key = nullptr;
  Variable* otherwise = arguments.keyword("default");
  bool many = arguments.positional.size() > 1;
  if (many && otherwise != nullptr) return unsupported(t, callable, arguments);
  Variable* iterator = TRY(t.wait(get_iterator(t, many ? t.tuple(arguments.positional) : arguments.positional[0])));
  Variable *best = nullptr, *best_key = nullptr, *item = nullptr;
  while (TRY(next(t, iterator, &item))) {
    Variable* item_key = key != nullptr ? TRY(t.wait(call(t, key, {{item}, {}}))) : item;
    if (best == nullptr || TRY(truth(t, TRY(t.wait(compare(t, kOperation, t.force(item_key), t.force(best_key))))))) {
      best = item;
      best_key = item_key;
    }
  }
  if (best != nullptr) return best;
  if (otherwise != nullptr) return otherwise;
  py::Ref empty = py::Ref::steal(PyTuple_New(0));
  py::Ref result = py::Ref::steal(PyObject_CallOneArg(callable, empty.get()));  // the ValueError in this version's words
  if (result) return unsupported(t, callable, arguments);
  return t.raise_python_error();
}

template <bool kAny>
Answer call_any_all(Tracer& t, PyObject* callable, Arguments& arguments) {
  if (!arguments.only_positional(1, 1)) return unsupported(t, callable, arguments);
  Variable* iterator = TRY(t.wait(get_iterator(t, arguments.positional[0])));
  Variable* item = nullptr;
  while (TRY(next(t, iterator, &item))) {
    if (TRY(truth(t, item)) == kAny) return t.boolean(kAny);
  }
  return t.boolean(!kAny);
}

}  // namespace

void add_numeric(Table& table) {
  table.add("builtins", {"abs"}, call_abs);
  table.add("builtins", {"round"}, call_round);
  table.add("builtins", {"pow"}, call_pow);
  table.add("builtins", {"divmod"}, fold);
  table.add("builtins", {"sum"}, call_sum);
  table.add("builtins", {"min"}, call_extreme<Py_LT>);
  table.add("builtins", {"max"}, call_extreme<Py_GT>);
  table.add("builtins", {"any"}, call_any_all<true>);
  table.add("builtins", {"all"}, call_any_all<false>);
  table.add("math", {"acos",  "acosh", "asin",    "asinh",     "atan",  "atan2", "atanh", "cbrt",    "ceil",     "comb",      "copysign",
                     "cos",   "cosh",  "degrees", "dist",      "erf",   "erfc",  "exp",   "exp2",    "expm1",    "fabs",      "factorial",
                     "floor", "fmod",  "frexp",   "fsum",      "gamma", "gcd",   "hypot", "isclose", "isfinite", "isinf",     "isnan",
                     "isqrt", "lcm",   "ldexp",   "lgamma",    "log",   "log10", "log1p", "log2",    "modf",     "nextafter", "perm",
                     "pow",   "prod",  "radians", "remainder", "sin",   "sinh",  "sqrt",  "tan",     "tanh",     "trunc",     "ulp"},
            fold);
}

}  // namespace pellucid::variables::builtins
