// The ShapeEnv type and the guard programs it makes, as Python objects. src/pellucid/shapes.py derives the public class from it, and
// turns the tuples that come out of here into something with names.
#include <cmath>
#include <string>

#include "module/bytecode_symbolic.h"
#include "py/ref.h"
#include "symbolic/guard_set.h"
#include "symbolic/print.h"

namespace pellucid::module {

namespace {

using symbolic::Constraint;
using symbolic::DimPolicy;
using symbolic::DimSpec;
using symbolic::Expr;
using symbolic::GuardSet;
using symbolic::Int;
using symbolic::Range;
using symbolic::ShapeEnv;
using symbolic::Type;

struct ProgramObject {
  PyObject_HEAD symbolic::GuardProgram* program;
  PyObject* floats;  // bytes: whether each input is a float
};

PyTypeObject* env_type = nullptr;
PyTypeObject* program_type = nullptr;

ShapeEnv& env_of(PyObject* self) { return *reinterpret_cast<ShapeEnvObject*>(self)->env; }

PyObject* text_object(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

PyObject* bound_object(Int bound) {  // None for an infinite one
  if (bound >= symbolic::kMaxValue || bound <= symbolic::kMinValue) Py_RETURN_NONE;
  return PyLong_FromLongLong(static_cast<int64_t>(bound));
}

PyObject* env_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  new (&reinterpret_cast<ShapeEnvObject*>(self)->env) symbolic::Handle<ShapeEnv>();
  return no_throw([&]() -> PyObject* {
    reinterpret_cast<ShapeEnvObject*>(self)->env = symbolic::Handle<ShapeEnv>(new ShapeEnv());
    return self;
  });
}

int env_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"specialize_zero_one", "duck_shapes", nullptr};
  int specialize = 1;
  int duck = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$pp:ShapeEnv", const_cast<char**>(names), &specialize, &duck)) return -1;
  return no_throw([&]() -> int {
    ShapeEnv::Options options;
    options.specialize_zero_one = specialize != 0;
    options.duck_shapes = duck != 0;
    reinterpret_cast<ShapeEnvObject*>(self)->env = symbolic::Handle<ShapeEnv>(new ShapeEnv(options));
    return 0;
  });
}

void env_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<ShapeEnvObject*>(self)->env.~Handle();
  type->tp_free(self);
  Py_DECREF(type);
}

bool read_policy(const char* name, DimPolicy* policy) {
  static const std::pair<const char*, DimPolicy> policies[] = {
      {"duck", DimPolicy::kDuck},         {"dynamic", DimPolicy::kDynamic},         {"static", DimPolicy::kStatic},
      {"unbacked", DimPolicy::kUnbacked}, {"oblivious", DimPolicy::kObliviousSize},
  };
  for (const auto& [text, value] : policies) {
    if (std::string(text) == name) {
      *policy = value;
      return true;
    }
  }
  PyErr_Format(PyExc_ValueError, "no policy %.50s: it is one of duck, dynamic, static, unbacked, oblivious", name);
  return false;
}

bool read_constraint(const char* name, const Range& range, Constraint* constraint) {
  constraint->range = range;
  if (name == nullptr) {
    if (range != Range{}) constraint->kind = Constraint::Kind::kStrict;
    return true;
  }
  const std::string text = name;
  if (text == "strict") {
    constraint->kind = Constraint::Kind::kStrict;
  } else if (text == "relaxed") {
    constraint->kind = Constraint::Kind::kRelaxed;
  } else {
    PyErr_Format(PyExc_ValueError, "no constraint %.50s: it is strict or relaxed", name);
    return false;
  }
  return true;
}

PyObject* create_size(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"hint", "source", "policy", "min", "max", "constraint", "specialize_zero_one", nullptr};
  long long hint;
  const char* source;
  const char* policy = "duck";
  PyObject *least = Py_None, *most = Py_None, *specialize = Py_None;
  const char* constraint = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Ls|$sOOzO:create_size", const_cast<char**>(names), &hint, &source, &policy, &least, &most,
                                   &constraint, &specialize)) {
    return nullptr;
  }
  DimSpec spec;
  Range range;
  if (!read_policy(policy, &spec.policy) || !read_range(least, most, &range) || !read_constraint(constraint, range, &spec.constraint)) {
    return nullptr;
  }
  if (specialize != Py_None) {
    const int value = PyObject_IsTrue(specialize);
    if (value < 0) return nullptr;
    spec.specialize_zero_one = value != 0;
  }
  return no_throw([&] { return wrap_expr(env_of(self).create_size(hint, source, spec, user_site())); });
}

PyObject* create_int(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"hint", "source", "min", "max", "constraint", nullptr};
  long long hint;
  const char* source;
  PyObject *least = Py_None, *most = Py_None;
  const char* kind = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Ls|$OOz:create_int", const_cast<char**>(names), &hint, &source, &least, &most, &kind)) {
    return nullptr;
  }
  Range range;
  Constraint constraint;
  if (!read_range(least, most, &range) || !read_constraint(kind, range, &constraint)) return nullptr;
  return no_throw([&] { return wrap_expr(env_of(self).create_int(hint, source, constraint, user_site())); });
}

PyObject* create_float(PyObject* self, PyObject* args) {
  double hint;
  const char* source;
  if (!PyArg_ParseTuple(args, "ds:create_float", &hint, &source)) return nullptr;
  return no_throw([&] { return wrap_expr(env_of(self).create_float(hint, source, user_site())); });
}

PyObject* create_unbacked_int(PyObject* self, PyObject*) {
  return no_throw([&] { return wrap_expr(env_of(self).create_unbacked_int(user_site())); });
}

PyObject* create_unbacked_float(PyObject* self, PyObject*) {
  return no_throw([&] { return wrap_expr(env_of(self).create_unbacked_float(user_site())); });
}

PyObject* create_unbacked_bool(PyObject* self, PyObject*) {
  return no_throw([&] { return wrap_expr(env_of(self).create_unbacked_bool(user_site())); });
}

PyObject* declare_equal(PyObject* self, PyObject* args) {
  const char* source;
  const char* other;
  if (!PyArg_ParseTuple(args, "ss:declare_equal", &source, &other)) return nullptr;
  return no_throw([&]() -> PyObject* {
    env_of(self).declare_equal(source, other, user_site());
    Py_RETURN_NONE;
  });
}

PyObject* constrain_range(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"number", "min", "max", nullptr};
  PyObject* number;
  PyObject *least = Py_None, *most = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:constrain_range", const_cast<char**>(names), &number, &least, &most))
    return nullptr;
  Range range;
  if (!read_range(least, most, &range)) return nullptr;
  return no_throw([&]() -> PyObject* {
    Expr expr;
    if (!to_expr_or_raise(number, env_of(self).arena(), "a SymInt", &expr)) return nullptr;
    if (expr->type != Type::kInt) {
      PyErr_SetString(PyExc_TypeError, "constrain_range takes an int");
      return nullptr;
    }
    env_of(self).constrain_range(expr, range, user_site());
    Py_RETURN_NONE;
  });
}

PyObject* use_as_size(PyObject* self, PyObject* number) {
  return no_throw([&]() -> PyObject* {
    Expr expr;
    if (!to_expr_or_raise(number, env_of(self).arena(), "a SymInt", &expr)) return nullptr;
    if (expr->type != Type::kInt) {
      PyErr_SetString(PyExc_TypeError, "a size is an int");
      return nullptr;
    }
    env_of(self).use_as_size(expr, user_site());
    Py_RETURN_NONE;
  });
}

PyObject* sources_of(PyObject* self, PyObject* symbol) {
  return no_throw([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    Expr expr;
    if (!to_expr_or_raise(symbol, env.arena(), "a symbol", &expr)) return nullptr;
    const std::vector<uint32_t> places = env.inputs_of(expr);
    py::Ref sources = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(places.size())));
    for (size_t i = 0; i < places.size() && sources; ++i) {
      PyObject* text = text_object(env.inputs()[places[i]].source);
      if (text == nullptr) return nullptr;
      PyTuple_SET_ITEM(sources.get(), static_cast<Py_ssize_t>(i), text);
    }
    return sources.release();
  });
}

PyObject* evaluate(PyObject* self, PyObject* number) {
  return no_throw([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    if (PyBool_Check(number)) return py::Ref::share(number).release();
    Expr expr;
    if (!to_expr_or_raise(number, env.arena(), "a symbolic number", &expr)) return nullptr;
    if (expr->type == Type::kBool) return PyBool_FromLong(env.evaluate(expr, user_site()));
    if (expr->type == Type::kInt) return PyLong_FromLongLong(env.evaluate_int(expr, user_site()));
    return PyFloat_FromDouble(env.evaluate_float(expr, user_site()));
  });
}

// A condition: a Python bool, or ours. 1 and *expr, 0 and *value, or -1 with an exception set.
int read_condition(PyObject* self, PyObject* object, Expr* expr, bool* value) {
  if (PyBool_Check(object)) {
    *value = object == Py_True;
    return 0;
  }
  if (!to_expr_or_raise(object, env_of(self).arena(), "a condition", expr)) return -1;
  if ((*expr)->type == Type::kBool) return 1;
  PyErr_SetString(PyExc_TypeError, "expected a condition, not a number");
  return -1;
}

template <class Ask>
PyObject* ask(PyObject* self, PyObject* condition, bool negate_constant, Ask answer) {
  return no_throw([&]() -> PyObject* {
    Expr expr = nullptr;
    bool value = false;
    const int kind = read_condition(self, condition, &expr, &value);
    if (kind < 0) return nullptr;
    return PyBool_FromLong(kind == 0 ? value != negate_constant : answer(env_of(self), expr));
  });
}

PyObject* statically_known_true(PyObject* self, PyObject* condition) {
  return ask(self, condition, false, [](ShapeEnv& env, Expr expr) { return env.statically_known(expr) == true; });
}

PyObject* statically_known_false(PyObject* self, PyObject* condition) {
  return ask(self, condition, true, [](ShapeEnv& env, Expr expr) { return env.statically_known(expr) == false; });
}

PyObject* guard_or_false(PyObject* self, PyObject* condition) {
  return ask(self, condition, false, [](ShapeEnv& env, Expr expr) { return env.guard_or(expr, false, user_site()); });
}

PyObject* guard_or_true(PyObject* self, PyObject* condition) {
  return ask(self, condition, false, [](ShapeEnv& env, Expr expr) { return env.guard_or(expr, true, user_site()); });
}

PyObject* size_oblivious(PyObject* self, PyObject* condition) {
  return ask(self, condition, false, [](ShapeEnv& env, Expr expr) { return env.evaluate_size_oblivious(expr, user_site()); });
}

PyObject* expect_true(PyObject* self, PyObject* args) {
  PyObject* condition;
  const char* message = "";
  if (!PyArg_ParseTuple(args, "O|s:expect_true", &condition, &message)) return nullptr;
  return ask(self, condition, false, [&](ShapeEnv& env, Expr expr) { return env.expect_true(expr, message, user_site()); });
}

PyObject* simplify(PyObject* self, PyObject* number) {
  return no_throw([&]() -> PyObject* {
    Expr expr;
    if (!to_expr_or_raise(number, env_of(self).arena(), "a symbolic number", &expr)) return nullptr;
    return wrap_expr(env_of(self).simplify(expr));
  });
}

PyObject* range_of(PyObject* self, PyObject* number) {
  return no_throw([&]() -> PyObject* {
    Expr expr;
    if (!to_expr_or_raise(number, env_of(self).arena(), "a SymInt", &expr)) return nullptr;
    if (expr->type != Type::kInt) {
      PyErr_SetString(PyExc_TypeError, "only ints have a range");
      return nullptr;
    }
    const Range range = env_of(self).range(expr);
    return Py_BuildValue("NN", bound_object(range.lo), bound_object(range.hi));
  });
}

PyObject* guard_tuples(PyObject* self, PyObject* skip) {
  const int skip_static = PyObject_IsTrue(skip);
  if (skip_static < 0) return nullptr;
  return no_throw([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    GuardSet set = symbolic::produce_guards(env, skip_static != 0);
    const py::Ref rows = py::Ref::steal(PyList_New(0));
    if (!rows) return nullptr;
    for (const symbolic::GuardRow& row : set.rows) {
      const py::Ref item = py::Ref::steal(Py_BuildValue("NNi", text_object(row.text), text_object(row.location.file), row.location.line));
      if (!item || PyList_Append(rows.get(), item.get()) < 0) return nullptr;
    }
    const py::Ref floats = py::Ref::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(env.inputs().size())));
    if (!floats) return nullptr;
    for (size_t i = 0; i < env.inputs().size(); ++i) PyBytes_AS_STRING(floats.get())[i] = env.inputs()[i].type == Type::kFloat ? 1 : 0;
    auto program = std::make_unique<symbolic::GuardProgram>(std::move(set.program));
    ProgramObject* object = PyObject_New(ProgramObject, program_type);
    if (object == nullptr) return nullptr;
    object->program = program.release();
    object->floats = floats.new_ref();
    return Py_BuildValue("ON", rows.get(), object);
  });
}

PyObject* input_tuples(PyObject* self, PyObject*) {
  return no_throw([&]() -> PyObject* {
    const py::Ref list = py::Ref::steal(PyList_New(0));
    if (!list) return nullptr;
    for (const symbolic::Input& input : env_of(self).inputs()) {
      const py::Ref item = py::Ref::steal(Py_BuildValue("NN", text_object(input.source), wrap_expr(input.expr)));
      if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
    }
    return list.new_ref();
  });
}

PyObject* assert_tuples(PyObject* self, PyObject*) {
  return no_throw([&]() -> PyObject* {
    const py::Ref list = py::Ref::steal(PyList_New(0));
    if (!list) return nullptr;
    for (const symbolic::RuntimeAssert& entry : env_of(self).runtime_asserts()) {
      const py::Ref item = py::Ref::steal(Py_BuildValue("NNNNi", wrap_expr(entry.symbol), wrap_expr(entry.condition),
                                                        text_object(entry.message), text_object(entry.location.file), entry.location.line));
      if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
    }
    return list.new_ref();
  });
}

PyObject* replacement_tuples(PyObject* self, PyObject*) {
  return no_throw([&]() -> PyObject* {
    ShapeEnv& env = env_of(self);
    const py::Ref result = py::Ref::steal(PyDict_New());
    if (!result) return nullptr;
    for (const Expr symbol : env.facts().replaced()) {
      const py::Ref name = py::Ref::steal(text_object(env.arena().symbol_name(symbol)));
      const py::Ref by = py::Ref::steal(wrap_expr(env.simplify(symbol)));
      if (!name || !by || PyDict_SetItem(result.get(), name.get(), by.get()) < 0) return nullptr;
    }
    return result.new_ref();
  });
}

PyObject* log_lines(PyObject* self, PyObject*) {
  return no_throw([&]() -> PyObject* {
    const py::Ref list = py::Ref::steal(PyList_New(0));
    if (!list) return nullptr;
    for (const symbolic::Event& event : env_of(self).log()) {
      const py::Ref line = py::Ref::steal(text_object(to_text(event)));
      if (!line || PyList_Append(list.get(), line.get()) < 0) return nullptr;
    }
    return list.new_ref();
  });
}

PyObject* replay(PyObject* self, PyObject* other) {
  if (!PyObject_TypeCheck(other, env_type)) {
    PyErr_SetString(PyExc_TypeError, "replay takes the ShapeEnv whose log is to be replayed");
    return nullptr;
  }
  return no_throw([&]() -> PyObject* {
    env_of(self).replay(env_of(other));
    Py_RETURN_NONE;
  });
}

PyObject* suppress(PyObject* self, PyObject*) {
  return no_throw([&]() -> PyObject* {
    env_of(self).suppress_guards();
    Py_RETURN_NONE;
  });
}

PyObject* unsuppress(PyObject* self, PyObject*) {
  return no_throw([&]() -> PyObject* {
    env_of(self).unsuppress_guards();
    Py_RETURN_NONE;
  });
}

PyObject* freeze(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"errors", nullptr};
  int errors = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:freeze", const_cast<char**>(names), &errors)) return nullptr;
  return no_throw([&]() -> PyObject* {
    env_of(self).freeze(errors != 0);
    Py_RETURN_NONE;
  });
}

PyObject* get_frozen(PyObject* self, void*) { return PyBool_FromLong(env_of(self).frozen()); }
PyObject* get_specialize(PyObject* self, void*) { return PyBool_FromLong(env_of(self).options().specialize_zero_one); }
PyObject* get_duck(PyObject* self, void*) { return PyBool_FromLong(env_of(self).options().duck_shapes); }
PyObject* get_guard_count(PyObject* self, void*) { return PyLong_FromSize_t(env_of(self).guards().size()); }
PyObject* get_work(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(env_of(self).arena().work()); }
PyObject* get_nodes(PyObject* self, void*) { return PyLong_FromSize_t(env_of(self).arena().size()); }

PyObject* owns(PyObject* self, PyObject* number) {
  const Expr expr = sym_expr(number);
  return PyBool_FromLong(expr != nullptr && expr->arena == &env_of(self).arena());
}

// Whether all guards hold: of as many values as there are inputs.
int64_t run_program(PyObject* self, PyObject* args) {
  const ProgramObject* object = reinterpret_cast<ProgramObject*>(self);
  const Py_ssize_t count = PyBytes_GET_SIZE(object->floats);
  if (PyTuple_GET_SIZE(args) != count) {
    PyErr_Format(PyExc_TypeError, "this guard program takes %zd values, not %zd", count, PyTuple_GET_SIZE(args));
    return -2;
  }
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(args, i);
    if (PyBytes_AS_STRING(object->floats)[i] != 0) {
      const double value = PyFloat_AsDouble(item);
      if (value == -1 && PyErr_Occurred()) return -2;
      values[static_cast<size_t>(i)] = std::bit_cast<int64_t>(value);
    } else {
      const long long value = PyLong_AsLongLong(item);
      if (value == -1 && PyErr_Occurred()) return -2;
      values[static_cast<size_t>(i)] = value;
    }
  }
  return object->program->first_failed(values);
}

PyObject* program_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) {
    PyErr_SetString(PyExc_TypeError, "a guard program takes no keywords");
    return nullptr;
  }
  return no_throw([&]() -> PyObject* {
    const int64_t failed = run_program(self, args);
    return failed == -2 ? nullptr : PyBool_FromLong(failed < 0);
  });
}

PyObject* program_first_failed(PyObject* self, PyObject* args) {
  return no_throw([&]() -> PyObject* {
    const int64_t failed = run_program(self, args);
    if (failed == -2) return nullptr;
    if (failed == -1) Py_RETURN_NONE;
    return PyLong_FromLongLong(failed == UINT32_MAX ? -1 : failed);
  });
}

PyObject* program_text(PyObject* self, PyObject*) {
  return no_throw([&] { return text_object(reinterpret_cast<ProgramObject*>(self)->program->disassemble()); });
}

void program_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<ProgramObject*>(self)->program;
  Py_XDECREF(reinterpret_cast<ProgramObject*>(self)->floats);
  PyObject_Free(self);
  Py_DECREF(type);
}

#define PELLUCID_KEYWORDS(function) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function))

PyMethodDef env_methods[] = {
    {"create_size", PELLUCID_KEYWORDS(create_size), METH_VARARGS | METH_KEYWORDS,
     "create_size(hint, source, *, policy='duck', min=None, max=None, constraint=None, specialize_zero_one=None)\n--\n\n"
     "The size of one dimension: a SymInt, or an int where it is not symbolic."},
    {"create_int", PELLUCID_KEYWORDS(create_int), METH_VARARGS | METH_KEYWORDS,
     "create_int(hint, source, *, min=None, max=None, constraint=None)\n--\n\nAn int from outside that is no size."},
    {"create_float", create_float, METH_VARARGS, "create_float(hint, source)\n--\n\nA float from outside."},
    {"create_unbacked_int", create_unbacked_int, METH_NOARGS, "An int that only the data knows."},
    {"create_unbacked_float", create_unbacked_float, METH_NOARGS, "A float that only the data knows."},
    {"create_unbacked_bool", create_unbacked_bool, METH_NOARGS, "A condition that only the data knows."},
    {"declare_equal", declare_equal, METH_VARARGS, "declare_equal(source, other)\n--\n\nStates that two inputs are always equal."},
    {"constrain_range", PELLUCID_KEYWORDS(constrain_range), METH_VARARGS | METH_KEYWORDS,
     "constrain_range(number, *, min=None, max=None)\n--\n\nStates that an int lies in a range, ends included."},
    {"use_as_size", use_as_size, METH_O, "States that an int is used as a size: not negative, and size-like."},
    {"sources_of", sources_of, METH_O, "sources_of(symbol): the inputs that are this symbol, by their sources."},
    {"evaluate", evaluate, METH_O, "The value of a symbolic number, with the guards that it needs."},
    {"statically_known_true", statically_known_true, METH_O, "Whether the condition is true whatever the symbols are. Never a guard."},
    {"statically_known_false", statically_known_false, METH_O, "Whether the condition is false whatever the symbols are. Never a guard."},
    {"guard_or_false", guard_or_false, METH_O, "The condition's value; False where only the data knows."},
    {"guard_or_true", guard_or_true, METH_O, "The condition's value; True where only the data knows."},
    {"size_oblivious", size_oblivious, METH_O, "The condition's value as if no size-like number were 0 or 1."},
    {"expect_true", expect_true, METH_VARARGS,
     "expect_true(condition, message='')\n--\n\nStates a fact, checked at run time if only the data knows; False if it does not hold."},
    {"simplify", simplify, METH_O, "The number by what is known now."},
    {"range", range_of, METH_O, "(min, max) of an int by what is known now; None for no bound."},
    {"owns", owns, METH_O, "Whether the number is of this ShapeEnv."},
    {"_guards", guard_tuples, METH_O, "([(text, file, line)], program)"},
    {"_inputs", input_tuples, METH_NOARGS, "[(source, value)]"},
    {"_runtime_asserts", assert_tuples, METH_NOARGS, "[(symbol, condition, message, file, line)]"},
    {"_replacements", replacement_tuples, METH_NOARGS, "{name: value}"},
    {"_log", log_lines, METH_NOARGS, "The decision log, one line an event."},
    {"_replay", replay, METH_O, "Repeats what was asked of another ShapeEnv."},
    {"_suppress", suppress, METH_NOARGS, "Guards are not recorded from here."},
    {"_unsuppress", unsuppress, METH_NOARGS, "The end of one _suppress."},
    {"freeze", PELLUCID_KEYWORDS(freeze), METH_VARARGS | METH_KEYWORDS,
     "freeze(*, errors=False)\n--\n\nNo new guards: questions are answered by the hints; with errors=True one that needs a guard raises."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef env_getters[] = {
    {"frozen", get_frozen, nullptr, "Whether guards are frozen.", nullptr},
    {"specialize_zero_one", get_specialize, nullptr, "Whether sizes 0 and 1 become constants.", nullptr},
    {"duck_shapes", get_duck, nullptr, "Whether equal sizes share a symbol.", nullptr},
    {"guard_count", get_guard_count, nullptr, "How many guards were recorded, before those that follow from others are left out.", nullptr},
    {"_work", get_work, nullptr, "Elementary steps so far.", nullptr},
    {"_nodes", get_nodes, nullptr, "Distinct expressions so far.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef program_methods[] = {
    {"first_failed", program_first_failed, METH_VARARGS,
     "first_failed(*values)\n--\n\nWhich guard does not hold first; -1: a value that no symbol can be; None: all hold."},
    {"disassemble", program_text, METH_NOARGS, "The program's rows as text."},
    {nullptr, nullptr, 0, nullptr},
};

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

PyTypeObject* add_type(PyObject* module, const char* name, PyType_Spec* spec) {
  PyObject* type = PyType_FromSpec(spec);
  if (type == nullptr) return nullptr;
  Py_INCREF(type);  // one for us
  return add_object(module, name, type) ? reinterpret_cast<PyTypeObject*>(type) : nullptr;
}

}  // namespace

bool bind_symbolic_env(PyObject* module) {
  PyType_Slot env_slots[] = {
      {Py_tp_new, slot(env_new)},
      {Py_tp_init, slot(env_init)},
      {Py_tp_dealloc, slot(env_dealloc)},
      {Py_tp_methods, env_methods},
      {Py_tp_getset, env_getters},
      {Py_tp_doc, const_cast<char*>("The engine's side of pellucid.ShapeEnv.")},
      {0, nullptr},
  };
  PyType_Spec env_spec{"pellucid._bytecode.ShapeEnv", static_cast<int>(sizeof(ShapeEnvObject)), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                       env_slots};
  env_type = add_type(module, "ShapeEnv", &env_spec);
  if (env_type == nullptr) return false;
  PyType_Slot program_slots[] = {
      {Py_tp_dealloc, slot(program_dealloc)},
      {Py_tp_call, slot(program_call)},
      {Py_tp_methods, program_methods},
      {Py_tp_doc, const_cast<char*>("Guards as a program: called with the inputs' values it says whether all hold.")},
      {0, nullptr},
  };
  PyType_Spec program_spec{"pellucid.GuardProgram", static_cast<int>(sizeof(ProgramObject)), 0, Py_TPFLAGS_DEFAULT, program_slots};
  program_type = add_type(module, "GuardProgram", &program_spec);
  if (program_type == nullptr) return false;
  program_type->tp_new = nullptr;
  return true;
}

}  // namespace pellucid::module
