// Python functions: construction without guards, and argument binding.
#include "variables/function.h"

#include "base/check.h"

namespace pellucid::variables {

namespace {
constexpr int kVarArgs = 0x04, kVarKeywords = 0x08;  // co_flags
}

FunctionVariable* function_without_guards(Tracer& t, PyObject* real) {
  auto* object = reinterpret_cast<PyFunctionObject*>(real);
  auto* result = t.make<FunctionVariable>();
  result->real = t.keep(real);
  result->source = t.sources().constant(real);
  result->code = t.keep(object->func_code);
  result->globals = t.keep(object->func_globals);
  result->name = t.keep(object->func_name);
  result->qualname = t.keep(object->func_qualname);
  auto known_values = [&](PyObject* value) { return value ? t.lazy(value, t.sources().constant(value)) : nullptr; };
  result->defaults = known_values(object->func_defaults);
  result->kwdefaults = known_values(object->func_kwdefaults);
  if (object->func_closure) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object->func_closure); i++) {
      PyObject* cell = PyTuple_GET_ITEM(object->func_closure, i);
      auto* existing = as<CellVariable>(t.outside(cell), Kind::kCell);
      result->closure.push_back(existing ? existing : t.outside_cell(cell, t.sources().constant(cell)));
    }
  }
  return result;
}

Status bind_arguments(Tracer& t, FunctionVariable* function, const bytecode::Code& code, Arguments& arguments,
                      std::vector<Variable*>& locals) {
  const size_t n_positional = static_cast<size_t>(code.argcount), n_keyword_only = static_cast<size_t>(code.kwonly);
  const bool has_varargs = code.flags & kVarArgs, has_keywords = code.flags & kVarKeywords;
  locals.assign(code.localsplus_names.size(), nullptr);
  auto wrong = [&](const char* what) {
    return t.fail(Reason::uncaught_exception, std::string("arguments of ") + PyUnicode_AsUTF8(function->qualname) + ": " + what);
  };

  const size_t given = arguments.positional.size();
  for (size_t i = 0; i < given && i < n_positional; i++) locals[i] = arguments.positional[i];
  size_t slot = n_positional + n_keyword_only;
  if (has_varargs) {
    std::vector<Variable*> rest;
    for (size_t i = n_positional; i < given; i++) rest.push_back(arguments.positional[i]);
    locals[slot++] = t.tuple(std::move(rest));
  } else if (given > n_positional) {
    return wrong("too many positional arguments");
  }
  DictVariable* extra = nullptr;
  if (has_keywords) locals[slot] = extra = t.dict();
  for (auto& [name, value] : arguments.keywords) {
    bool bound = false;
    for (size_t i = static_cast<size_t>(code.posonly); i < n_positional + n_keyword_only && !bound; i++) {
      PyObject* parameter = code.localsplus_names[i].get();
      if (parameter != name && PyUnicode_Compare(parameter, name) != 0) continue;
      if (locals[i]) return wrong("multiple values for one argument");
      locals[i] = value;
      bound = true;
    }
    if (bound) continue;
    if (!extra) return wrong("unexpected keyword argument");
    dict_store(t, extra, name, value);
  }
  if (given < n_positional) {
    TupleVariable* defaults = function->defaults ? as_tuple(t.force(function->defaults)) : nullptr;
    const size_t count = defaults ? defaults->items.size() : 0;
    for (size_t i = 0; i < n_positional; i++) {
      if (locals[i]) continue;
      if (count > n_positional || i < n_positional - count) return wrong("a required argument is missing");
      locals[i] = defaults->items[i - (n_positional - count)];
    }
  }
  if (n_keyword_only) {
    for (size_t i = n_positional; i < n_positional + n_keyword_only; i++) {
      if (locals[i]) continue;
      DictVariable* defaults = function->kwdefaults ? as_dict(t.force(function->kwdefaults)) : nullptr;
      Variable* value = defaults ? dict_find(defaults, code.localsplus_names[i].get()) : nullptr;
      if (!value) return wrong("a required keyword-only argument is missing");
      locals[i] = value;
    }
  }
  return Unit{};
}

}  // namespace pellucid::variables
