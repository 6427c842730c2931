// How expressions leave `pellucid._bytecode` for `pellucid._core` and come back, without either knowing the other's types: in capsules
// named "pellucid.symbolic.Expr", whose maker keeps the expression alive until the receiver holds its environment.
#include "module/bytecode_symbolic.h"
#include "py/ref.h"
#include "symbolic/saved.h"
#include "symbolic/translate.h"

namespace pellucid::module {

namespace {

using symbolic::Expr;
using symbolic::ShapeEnv;

constexpr const char* kCapsule = "pellucid.symbolic.Expr";

PyTypeObject* env_type = nullptr;

ShapeEnvObject* as_env(PyObject* object) {
  if (PyObject_TypeCheck(object, env_type)) return reinterpret_cast<ShapeEnvObject*>(object);
  PyErr_Format(PyExc_TypeError, "expected a ShapeEnv, not %.200s", Py_TYPE(object)->tp_name);
  return nullptr;
}

PyObject* to_capsule(PyObject* /*module*/, PyObject* number) {
  const Expr expr = sym_expr(number);
  if (expr == nullptr) return PyErr_Format(PyExc_TypeError, "expected a symbolic number, not %.200s", Py_TYPE(number)->tp_name);
  return PyCapsule_New(const_cast<symbolic::Node*>(expr), kCapsule, nullptr);
}

PyObject* from_capsule(PyObject* /*module*/, PyObject* capsule) {
  const auto expr = static_cast<Expr>(PyCapsule_GetPointer(capsule, kCapsule));
  return expr == nullptr ? nullptr : no_throw([&] { return wrap_expr(expr); });
}

PyObject* env_key(PyObject* /*module*/, PyObject* object) {
  const ShapeEnvObject* self = as_env(object);
  return self == nullptr ? nullptr : PyLong_FromVoidPtr(self->env.get());
}

PyObject* adopt(PyObject* /*module*/, PyObject* args) {
  PyObject* object = nullptr;
  PyObject* number = nullptr;
  if (PyArg_ParseTuple(args, "OO:symbolic_adopt", &object, &number) == 0) return nullptr;
  ShapeEnvObject* self = as_env(object);
  if (self == nullptr) return nullptr;
  const Expr expr = sym_expr(number);
  if (expr == nullptr) return PyErr_Format(PyExc_TypeError, "expected a symbolic number, not %.200s", Py_TYPE(number)->tp_name);
  self->env = symbolic::Handle<ShapeEnv>(&ShapeEnv::of(expr));
  Py_RETURN_NONE;
}

PyObject* translate(PyObject* /*module*/, PyObject* args) {
  PyObject* object = nullptr;
  PyObject* number = nullptr;
  if (PyArg_ParseTuple(args, "OO:symbolic_translate", &object, &number) == 0) return nullptr;
  const ShapeEnvObject* self = as_env(object);
  const Expr expr = sym_expr(number);
  if (self == nullptr) return nullptr;
  if (expr == nullptr) return py::Ref::share(number).release();
  return no_throw([&] {
    symbolic::Translator translator(*expr->arena, self->env->arena());
    return wrap_expr(translator(expr));
  });
}

PyObject* save(PyObject* /*module*/, PyObject* object) {
  const ShapeEnvObject* self = as_env(object);
  if (self == nullptr) return nullptr;
  return no_throw([&] {
    const std::string bytes = symbolic::save(*self->env);
    return PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size()));
  });
}

PyObject* load(PyObject* /*module*/, PyObject* args) {
  PyObject* object = nullptr;
  const char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (PyArg_ParseTuple(args, "Oy#:symbolic_load", &object, &bytes, &size) == 0) return nullptr;
  ShapeEnvObject* self = as_env(object);
  if (self == nullptr) return nullptr;
  return no_throw([&]() -> PyObject* {
    self->env = symbolic::load({bytes, static_cast<size_t>(size)});
    Py_RETURN_NONE;
  });
}

// The expression that has this place among those of the environment.
PyObject* expression(PyObject* /*module*/, PyObject* args) {
  PyObject* object = nullptr;
  Py_ssize_t id = 0;
  if (PyArg_ParseTuple(args, "On:symbolic_expression", &object, &id) == 0) return nullptr;
  const ShapeEnvObject* self = as_env(object);
  if (self == nullptr) return nullptr;
  if (id < 0 || static_cast<size_t>(id) >= self->env->arena().size()) return PyErr_Format(PyExc_IndexError, "no expression %zd", id);
  return no_throw([&] { return wrap_expr(self->env->arena().node(static_cast<size_t>(id))); });
}

PyObject* symbols(PyObject* /*module*/, PyObject* object) {
  const ShapeEnvObject* self = as_env(object);
  if (self == nullptr) return nullptr;
  return no_throw([&]() -> PyObject* {
    const symbolic::Arena& arena = self->env->arena();
    py::Ref result = py::Ref::steal(PyList_New(static_cast<Py_ssize_t>(arena.symbol_count())));
    for (size_t i = 0; result && i < arena.symbol_count(); ++i) {
      PyObject* number = wrap_expr(arena.symbol(i));
      if (number == nullptr) return nullptr;
      PyList_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), number);
    }
    return result.release();
  });
}

PyMethodDef functions[] = {
    {"symbolic_capsule", to_capsule, METH_O, "symbolic_capsule(number)\n--\n\nThe expression of a symbolic number, for pellucid._core."},
    {"symbolic_number", from_capsule, METH_O, "symbolic_number(capsule)\n--\n\nThe number of an expression from pellucid._core."},
    {"symbolic_env_key", env_key, METH_O, "symbolic_env_key(env)\n--\n\nAn int that all views of one environment share."},
    {"symbolic_adopt", adopt, METH_VARARGS, "symbolic_adopt(env, number)\n--\n\nMakes a ShapeEnv a view of the environment of a number."},
    {"symbolic_translate", translate, METH_VARARGS,
     "symbolic_translate(env, number)\n--\n\nThe same number of a ShapeEnv that was asked the same (ShapeEnv.replayed)."},
    {"symbolic_save", save, METH_O, "symbolic_save(env)\n--\n\nA ShapeEnv as bytes."},
    {"symbolic_load", load, METH_VARARGS,
     "symbolic_load(env, bytes)\n--\n\nMakes a ShapeEnv what was saved; ValueError for damaged bytes."},
    {"symbolic_expression", expression, METH_VARARGS, "symbolic_expression(env, id)\n--\n\nAn expression by its place in its environment."},
    {"symbolic_symbols", symbols, METH_O, "symbolic_symbols(env)\n--\n\nAll symbols of an environment, as they were made."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool bind_symbolic_border(PyObject* module) {
  env_type = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module, "ShapeEnv"));  // kept for good
  return env_type != nullptr && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace pellucid::module
