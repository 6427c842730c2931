// Calls, returns, functions made by the traced program, attributes, imports.
#include "translate/handlers/handlers.h"

#include "base/check.h"
#include "variables/function.h"

namespace pellucid::translate {

using namespace variables;

namespace {

// super() reads the class from the cell __class__ and the first argument of the frame that calls it.
Answer zero_argument_super(InstructionTranslator& t, Frame& frame) {
  const bytecode::Code& code = *frame.code;
  for (size_t i = 0; i < code.localsplus_names.size(); i++) {
    if (code.localsplus_kinds[i] != bytecode::LocalKind::kFree ||
        PyUnicode_CompareWithASCIIString(code.localsplus_names[i].get(), "__class__") != 0)
      continue;
    Variable* cls = TRY(t.cell_contents(static_cast<CellVariable*>(frame.locals[i])));
    Variable* self = frame.locals[0];
    if (self && code.localsplus_kinds[0] != bytecode::LocalKind::kLocal) self = TRY(t.cell_contents(static_cast<CellVariable*>(self)));
    if (!cls || !self) return t.raise_new(PyExc_RuntimeError, "super(): no arguments");
    auto* super = t.make<SuperVariable>();
    super->start = t.force(cls);
    super->self = t.force(self);
    return super;
  }
  return t.raise_new(PyExc_RuntimeError, "super(): __class__ cell not found");
}

bool is_super(Variable* callable) {
  auto* object = as_object(callable);
  return object && object->real == reinterpret_cast<PyObject*>(&PySuper_Type);
}

// Functions that look at the frame they are called from: the frame has to be as written.
bool inspects_frame(InstructionTranslator& t, Variable* callable, size_t arguments) {
  auto* object = as_object(callable);
  if (!object || !object->real || !PyCFunction_Check(object->real)) return false;
  const char* name = reinterpret_cast<PyCFunctionObject*>(object->real)->m_ml->ml_name;
  const std::string_view text = name;
  (void)t;
  if (text == "locals" || text == "_getframe" || text == "eval" || text == "exec" || text == "breakpoint") return true;
  return (text == "vars" || text == "dir") && arguments == 0;
}

}  // namespace

OPCODE(KW_NAMES) {
  frame.keyword_names = frame.code->consts[instruction.arg].get();
  return Unit{};
}

OPCODE(CALL) {
  const size_t n = instruction.arg;
  PyObject* names = std::exchange(frame.keyword_names, nullptr);
  const size_t n_keywords = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  Arguments arguments;
  Variable* callable = nullptr;
  const bool is_method = frame.peek(n + 1)->kind != Kind::kNull;
  if (is_method) {
    callable = frame.peek(n + 1);
    arguments.positional.push_back(frame.peek(n));
  } else {
    callable = frame.peek(n);
  }
  for (size_t i = 0; i < n - n_keywords; i++) arguments.positional.push_back(frame.peek(n - 1 - i));
  for (size_t i = 0; i < n_keywords; i++)
    arguments.keywords.emplace_back(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)), frame.peek(n_keywords - 1 - i));
  callable = t.force(callable);
  if (inspects_frame(t, callable, n)) return t.skip_frame(Reason::frame_introspection, describe(callable));
  frame.drop(n + 2);
  if (n == 0 && is_super(callable)) {
    frame.push(TRY(zero_argument_super(t, frame)));
    return Unit{};
  }
  (void)TRY(t.finish(call(t, callable, std::move(arguments))));
  return Unit{};
}

OPCODE(CALL_FUNCTION_EX) {
  Arguments arguments;
  const bool has_keywords = instruction.arg & 1;
  if (has_keywords) {
    auto* keywords = as_dict(t.force(frame.peek()));
    if (!keywords) return t.fail(Reason::unsupported_value, "** of " + describe(t.force(frame.peek())));
    for (auto& [key, value] : keywords->entries) {
      if (!value) continue;
      if (!PyUnicode_Check(key)) return t.fail(Reason::uncaught_exception, "keywords must be strings");
      arguments.keywords.emplace_back(key, value);
    }
  }
  arguments.positional = TRY(unpack(t, frame.peek(has_keywords)));
  Variable* callable = t.force(frame.peek(has_keywords + 1));
  if (inspects_frame(t, callable, arguments.positional.size())) return t.skip_frame(Reason::frame_introspection, describe(callable));
  frame.drop(has_keywords + 3u);
  (void)TRY(t.finish(call(t, callable, std::move(arguments))));
  return Unit{};
}

OPCODE(RETURN_VALUE) {
  Variable* value = frame.pop();
  return t.return_value(value);
}

OPCODE(MAKE_FUNCTION) {
  auto* function = t.make<FunctionVariable>();
  PyObject* code = known(t, frame.pop());
  CHECK(code && PyCode_Check(code)) << "MAKE_FUNCTION without code";
  function->code = t.keep(code);
  function->globals = frame.globals;
  function->name = t.keep_new(PyObject_GetAttrString(code, "co_name"));
  function->qualname = t.keep_new(PyObject_GetAttrString(code, "co_qualname"));
  if (instruction.arg & 0x08) {
    auto* cells = as_tuple(t.force(frame.pop()));
    CHECK(cells) << "closure of a new function";
    for (Variable* cell : cells->items) function->closure.push_back(static_cast<CellVariable*>(cell));
  }
  if (instruction.arg & 0x04) function->annotations = frame.pop();
  if (instruction.arg & 0x02) function->kwdefaults = frame.pop();
  if (instruction.arg & 0x01) function->defaults = frame.pop();
  frame.push(function);
  return Unit{};
}

OPCODE(LOAD_ATTR) {
  Variable* object = frame.pop();
  (void)TRY(t.finish(get_attribute(t, object, frame.code->names[instruction.arg].get())));
  return Unit{};
}

OPCODE(LOAD_METHOD) {
  Variable* object = frame.pop();
  frame.push(t.make<NullVariable>());
  (void)TRY(t.finish(get_attribute(t, object, frame.code->names[instruction.arg].get())));
  return Unit{};
}

OPCODE(STORE_ATTR) {
  Variable* object = frame.pop();
  Variable* value = frame.pop();
  TRY(set_attribute(t, object, frame.code->names[instruction.arg].get(), value));
  return Unit{};
}

OPCODE(DELETE_ATTR) {
  Variable* object = frame.pop();
  TRY(delete_attribute(t, object, frame.code->names[instruction.arg].get()));
  return Unit{};
}

OPCODE(IMPORT_NAME) {
  PyObject* name = frame.code->names[instruction.arg].get();
  PyObject* from = known(t, frame.peek());
  PyObject* level = known(t, frame.peek(1));
  const long depth = level ? PyLong_AsLong(level) : -1;
  py::Ref absolute = py::Ref::share(name);
  if (depth > 0) {
    PyObject* package = PyDict_GetItemString(frame.globals, "__package__");
    py::Ref util = py::Ref::steal(PyImport_ImportModule("importlib.util"));
    if (!package || !util) return t.fail(Reason::import_in_function, "relative import");
    py::Ref dots = py::Ref::steal(PyUnicode_FromFormat("%s%U", std::string(static_cast<size_t>(depth), '.').c_str(), name));
    absolute = py::Ref::steal(PyObject_CallMethod(util.get(), "resolve_name", "OO", dots.get(), package));
    if (!absolute) {
      PyErr_Clear();
      return t.fail(Reason::import_in_function, "relative import");
    }
  }
  PyObject* modules = PyImport_GetModuleDict();
  if (!from || depth < 0 || !PyDict_GetItemWithError(modules, absolute.get()))
    return t.fail(Reason::import_in_function, PyUnicode_AsUTF8(name));
  if (PyTuple_Check(from)) {  // names that are submodules not loaded yet would be imported
    PyObject* module = PyDict_GetItemWithError(modules, absolute.get());
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(from); i++)
      if (!PyObject_HasAttr(module, PyTuple_GET_ITEM(from, i)))
        return t.fail(Reason::import_in_function, PyUnicode_AsUTF8(PyTuple_GET_ITEM(from, i)));
  }
  py::Ref module = py::Ref::steal(PyImport_ImportModuleLevelObject(name, frame.globals, nullptr, from, static_cast<int>(depth)));
  if (!module) return t.raise_python_error();
  // What sys.modules holds decides: of `import a.b` under both names.
  const source::Source* loaded = t.sources().constant(modules);
  auto guard_loaded = [&](PyObject* key) {
    if (PyObject* value = PyDict_GetItemWithError(modules, key))
      t.guard(guard::Kind::kId, t.sources().keyed(source::Kind::kDictItem, loaded, key), value);
  };
  guard_loaded(absolute.get());
  const Py_ssize_t dot = PyUnicode_FindChar(absolute.get(), '.', 0, PyUnicode_GET_LENGTH(absolute.get()), 1);
  if (dot > 0) guard_loaded(t.keep_new(PyUnicode_Substring(absolute.get(), 0, dot)));
  frame.drop(2);
  frame.push(t.known_object(module.get()));
  return Unit{};
}

OPCODE(IMPORT_FROM) {
  Variable* value = TRY(t.wait(get_attribute(t, frame.peek(), frame.code->names[instruction.arg].get())));
  frame.push(value);
  return Unit{};
}

}  // namespace pellucid::translate
