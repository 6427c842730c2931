// structured_source: decodes, decompiles and prints, or says why there is no structured form.
#include "decompile/decompile.h"

#include <algorithm>

#include "decompile/print.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

// A value that a signature holds: a builtin by its name, everything else as the constant it is.
Expr* held(Session& session, PyObject* value) {
  Expr* made = session.arena.expr(ExprKind::kConst);
  made->object = session.arena.keep(py::Ref::share(value));
  if (!PyType_Check(value)) return made;
  const py::Ref name = py::Ref::steal(PyObject_GetAttrString(value, "__name__"));
  if (name && PyUnicode_Check(name.get()) && PyDict_GetItemWithError(PyEval_GetBuiltins(), name.get()) == value) {
    made->kind = ExprKind::kName;
    made->text = utf8(name.get());
  }
  PyErr_Clear();
  return made;
}

// Calls `take` with each name and value of a function's attribute, where that is a dict.
template <class Take>
void each_entry(PyObject* function, const char* attribute, Take take) {
  const py::Ref dict = py::Ref::steal(PyObject_GetAttrString(function, attribute));
  if (!dict) PyErr_Clear();
  if (!dict || !PyDict_CheckExact(dict.get())) return;
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict.get(), &position, &key, &value) != 0) {
    if (PyUnicode_Check(key)) take(utf8(key), value);
  }
}

// A class body alone doesn't say what type parameters its class has, but that it has some: they are among its free variables.
void guess_type_parameters(Function& function) {
  bool generic = false;
  for (size_t i = 0; i < function.code.localsplus_names.size(); ++i) {
    if (function.code.localsplus_kinds[i] != bytecode::LocalKind::kFree) continue;
    const std::string name = utf8(function.code.localsplus_names[i].get());
    generic |= name == ".type_params";
    if (name[0] != '.' && name.rfind("__", 0) != 0) function.type_parameters.push_back({name, 0, nullptr, nullptr});
  }
  if (!generic) function.type_parameters.clear();
  if (generic && function.type_parameters.empty()) function.type_parameters.push_back({"T", 0, nullptr, nullptr});
}

// The function that evaluates a type alias of a class looks names up in the class, which no other function does.
Stmt* alias_in_class(Session& session, Function& function) {
  const std::vector<py::Ref>& names = function.code.localsplus_names;
  const bool looks_up = std::any_of(names.begin(), names.end(), [](const py::Ref& name) { return utf8(name.get()) == "__classdict__"; });
  if (!looks_up || function.body.size() != 1 || function.body[0]->kind != StmtKind::kReturn || function.code.n_arguments() != 0)
    return nullptr;
  Expr* target = session.arena.expr(ExprKind::kName);
  target->text = function.name;
  Stmt* alias = session.arena.stmt(StmtKind::kTypeAlias);
  alias->at = function.body[0]->at;
  alias->targets = {target};
  alias->value = function.body[0]->value;
  alias->function = session.arena.function();
  Stmt* made = session.arena.stmt(StmtKind::kClass);
  made->at = alias->at;
  made->function = session.arena.function();
  made->function->name = "_";
  made->function->kind = static_cast<uint8_t>(CodeKind::kClass);
  made->function->body = {alias};
  return made;
}

// What a function object keeps of its signature beside its code.
void read_signature(Session& session, Function& function, PyObject* object) {
  const py::Ref defaults = py::Ref::steal(PyObject_GetAttrString(object, "__defaults__"));
  if (!defaults) PyErr_Clear();
  if (defaults && PyTuple_CheckExact(defaults.get())) {
    // Those of more than there are parameters go to none.
    for (Py_ssize_t i = std::max<Py_ssize_t>(0, PyTuple_GET_SIZE(defaults.get()) - function.code.argcount);
         i < PyTuple_GET_SIZE(defaults.get()); ++i) {
      function.defaults.push_back(held(session, PyTuple_GET_ITEM(defaults.get(), i)));
    }
  }
  each_entry(object, "__kwdefaults__", [&](const std::string& name, PyObject* value) {
    function.kw_defaults.push_back({name, held(session, value)});
  });
  each_entry(object, "__annotations__", [&](const std::string& name, PyObject* value) {
    function.annotations.push_back({name, held(session, value)});
  });
  add_to_signature(function);
}

}  // namespace

bool structured_source(PyObject* code, const Options& options, Decompiled* out) {
  Session session;
  session.choices = Choices(options.turned);
  session.again = !options.turned.empty();
  Function& function = *session.arena.function();
  if (!bytecode::decode(code, function.code)) return false;
  try {
    CodeKind kind = kind_of(function.code);
    if (options.unit == Unit::kFunction && kind != CodeKind::kLambda) kind = CodeKind::kFunction;
    if (options.unit == Unit::kClass) kind = CodeKind::kClass;
    if (options.unit == Unit::kModule) kind = CodeKind::kModule;
    decompile_function(session, function, kind);
    if (options.function != nullptr && (kind == CodeKind::kFunction || kind == CodeKind::kLambda)) {
      read_signature(session, function, options.function);
    }
    if (kind == CodeKind::kClass) guess_type_parameters(function);
    Printer printer(function.code.version, options.line_layout, &options.turned);
    if (kind == CodeKind::kComprehension) {
      printer.expression(function, lone_comprehension(session, function));
    } else if (Stmt* around = kind == CodeKind::kFunction ? alias_in_class(session, function) : nullptr; around != nullptr) {
      function.kind = static_cast<uint8_t>(CodeKind::kModule);
      function.body = {around};
      function.declarations.clear();
      printer.function(function);
    } else {
      printer.function(function);
    }
    *out = printer.take();
  } catch (const NoForm& none) {
    *out = {};
    out->reason = none.reason;
  }
  out->choices = session.choices.made();
  return true;
}

}  // namespace pellucid::decompile
