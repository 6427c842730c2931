// Exceptions of the traced program: what `raise` raises, which handler matches, the C fields of exception objects (args, __cause__,
// value ...) and their texts. Exceptions made outside are looked at only through their class.
#include "variables/exception.h"

#include <cstring>

#include "base/check.h"
#include "variables/builtins/builtins.h"

namespace pellucid::variables {
namespace {

using builtins::mro_lookup;

PyTypeObject* base_exception() { return reinterpret_cast<PyTypeObject*>(PyExc_BaseException); }

bool is(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

struct Field {
  PyObject* const* family;  // exception class that has the field
  const char* name;
};

// Fields beyond those of BaseException; None until set.
const Field kFields[] = {
    {&PyExc_StopIteration, "value"}, {&PyExc_SystemExit, "code"},  {&PyExc_NameError, "name"},   {&PyExc_AttributeError, "name"},
    {&PyExc_AttributeError, "obj"},  {&PyExc_ImportError, "name"}, {&PyExc_ImportError, "path"}, {&PyExc_ImportError, "msg"},
};

bool belongs_to(PyTypeObject* type, PyObject* family) { return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(family)) != 0; }

// The name stands for a C field of this exception (and no class of the program shadows it).
bool is_field(PyTypeObject* type, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  PyObject* descriptor = text != nullptr ? mro_lookup(type, text) : nullptr;
  if (descriptor == nullptr || (Py_TYPE(descriptor) != &PyGetSetDescr_Type && Py_TYPE(descriptor) != &PyMemberDescr_Type)) return false;
  return PyType_IsSubtype(PyDescr_TYPE(descriptor), base_exception()) && !(PyDescr_TYPE(descriptor)->tp_flags & Py_TPFLAGS_HEAPTYPE);
}

Variable* stored(ObjectVariable* exception, PyObject* name) {
  for (auto& attribute : exception->attributes) {
    if (attribute.slot && PyUnicode_Compare(attribute.name, name) == 0) return attribute.value;
  }
  return nullptr;
}

void store(Tracer& t, ObjectVariable* exception, PyObject* name, Variable* value) {
  for (auto& attribute : exception->attributes) {
    if (!attribute.slot || PyUnicode_Compare(attribute.name, name) != 0) continue;
    attribute.value = value;
    attribute.written = true;
    return;
  }
  exception->attributes.push_back({t.keep(name), value, true, true});
}

std::string name_of(PyTypeObject* type) { return builtins::callable_name(reinterpret_cast<PyObject*>(type)); }

Answer text_of(Tracer& t, PyTypeObject* conversion, Variable* v) {
  bool handled = false;
  Arguments one{{v}, {}};
  PyObject* callable = conversion != nullptr ? reinterpret_cast<PyObject*>(conversion) : builtins::library("builtins", "repr");
  Answer answer = t.wait(call_builtin(t, callable, one, &handled));
  CHECK(handled) << "str and repr are builtins";
  return answer;
}

}  // namespace

bool is_modelled_exception(PyTypeObject* type) {
  if (type->tp_basicsize == base_exception()->tp_basicsize) return true;  // args only
  PyObject* object = reinterpret_cast<PyObject*>(type);
  return object == PyExc_StopIteration || object == PyExc_SystemExit || object == PyExc_NameError || object == PyExc_UnboundLocalError ||
         object == PyExc_AttributeError || object == PyExc_ImportError || object == PyExc_ModuleNotFoundError;
}

Status init_exception(Tracer& t, ObjectVariable* exception, Arguments& arguments) {
  PyTypeObject* type = exception->type;
  for (auto& [name, value] : arguments.keywords) {
    bool known_field = false;
    for (const Field& field : kFields) {
      bool by_keyword = *field.family == PyExc_NameError || *field.family == PyExc_AttributeError ||
                        (*field.family == PyExc_ImportError && !is(name, "msg"));
      known_field = known_field || (by_keyword && belongs_to(type, *field.family) && is(name, field.name));
    }
    if (!known_field) return t.fail(Reason::unsupported_callable, name_of(type) + "() takes no keyword arguments");
  }
  exception->arguments = arguments.positional;
  for (auto& [name, value] : arguments.keywords) store(t, exception, name, value);
  auto& args = exception->arguments;
  if (belongs_to(type, PyExc_StopIteration)) store(t, exception, t.intern("value"), args.empty() ? t.none() : args[0]);
  if (belongs_to(type, PyExc_SystemExit)) {
    Variable* code = args.empty() ? t.none() : args.size() == 1 ? args[0] : t.tuple(args);
    store(t, exception, t.intern("code"), code);
  }
  if (belongs_to(type, PyExc_ImportError)) store(t, exception, t.intern("msg"), args.size() == 1 ? args[0] : t.none());
  return Unit{};
}

Answer get_exception_attribute(Tracer& t, ObjectVariable* exception, PyObject* name, bool* handled) {
  *handled = is_field(exception->type, name);
  if (!*handled) return Answer(nullptr);
  auto failure = [&] {
    return t.fail(Reason::unsupported_attribute, "'" + std::string(PyUnicode_AsUTF8(name)) + "' of " + name_of(exception->type));
  };
  if (exception->existed || is(name, "__traceback__")) return failure();
  if (is(name, "args")) return t.tuple(exception->arguments);
  if (Variable* value = stored(exception, name)) return value;
  if (is(name, "__cause__") || is(name, "__context__")) return t.none();
  if (is(name, "__suppress_context__")) return t.boolean(false);
  for (const Field& field : kFields) {
    if (!belongs_to(exception->type, *field.family) || !is(name, field.name)) continue;
    // Raised without __init__ (by the interpreter's own rules): StopIteration's value is its argument.
    if (*field.family == PyExc_StopIteration && !exception->arguments.empty()) return exception->arguments[0];
    return t.none();
  }
  return failure();
}

Status set_exception_attribute(Tracer& t, ObjectVariable* exception, PyObject* name, Variable* value, bool* handled) {
  *handled = is_field(exception->type, name);
  if (!*handled) return Unit{};
  auto failure = [&] {
    return t.fail(Reason::unsupported_attribute, "writing '" + std::string(PyUnicode_AsUTF8(name)) + "' of " + name_of(exception->type));
  };
  if (exception->existed || value == nullptr) return failure();
  value = t.force(value);
  if (is(name, "args")) {
    exception->arguments = TRY(unpack(t, value));
    return Unit{};
  }
  if (is(name, "__cause__") || is(name, "__context__")) {
    PyTypeObject* type = type_of(value);
    if (value->real != Py_None && (type == nullptr || !PyType_IsSubtype(type, base_exception()))) return failure();  // TypeError
    store(t, exception, name, value);
    if (is(name, "__cause__")) store(t, exception, t.intern("__suppress_context__"), t.boolean(true));
    return Unit{};
  }
  if (is(name, "__suppress_context__")) {
    if (value->real != Py_True && value->real != Py_False) return failure();
    store(t, exception, name, value);
    return Unit{};
  }
  for (const Field& field : kFields) {
    if (!belongs_to(exception->type, *field.family) || !is(name, field.name)) continue;
    store(t, exception, name, value);
    return Unit{};
  }
  return failure();
}

Answer exception_text(Tracer& t, ObjectVariable* exception, bool as_str) {
  PyTypeObject* type = exception->type;
  auto failure = [&] { return t.fail(Reason::unsupported_builtin, std::string(as_str ? "str" : "repr") + " of " + name_of(type)); };
  if (exception->existed) return failure();
  PyObject* rule = mro_lookup(type, as_str ? "__str__" : "__repr__");
  if (rule == nullptr || Py_TYPE(rule) != &PyWrapperDescr_Type) return failure();
  // Most classes have a slot wrapper of their own around the one C function of BaseException.
  void* function = reinterpret_cast<PyWrapperDescrObject*>(rule)->d_wrapped;
  auto is_slot_of = [&](PyObject* cls) {
    auto* owner = reinterpret_cast<PyTypeObject*>(cls);
    return function == reinterpret_cast<void*>(as_str ? owner->tp_str : owner->tp_repr);
  };
  auto& args = exception->arguments;
  if (!as_str) {  // BaseException_repr
    if (!is_slot_of(PyExc_BaseException)) return failure();
    const char* dot = std::strrchr(type->tp_name, '.');
    std::string class_name = dot != nullptr ? dot + 1 : type->tp_name;
    Variable* inside = t.force(TRY(text_of(t, nullptr, args.size() == 1 ? args[0] : t.tuple(args))));
    const char* text = PyUnicode_AsUTF8(inside->real);
    if (text == nullptr) {  // lone surrogates
      PyErr_Clear();
      return failure();
    }
    return t.string(args.size() == 1 ? class_name + "(" + text + ")" : class_name + text);
  }
  if (is_slot_of(PyExc_ImportError)) {
    Variable* message = stored(exception, t.intern("msg"));
    if (message != nullptr && t.force(message)->real != nullptr && PyUnicode_CheckExact(t.force(message)->real)) return message;
  } else if (is_slot_of(PyExc_KeyError)) {
    if (args.size() == 1) return text_of(t, nullptr, args[0]);
  } else if (!is_slot_of(PyExc_BaseException)) {
    return failure();
  }
  if (args.empty()) return t.string("");
  return text_of(t, &PyUnicode_Type, args.size() == 1 ? args[0] : t.tuple(args));
}

Result<Variable*> exception_instance(Tracer& t, Variable* class_or_instance) {
  Variable* v = t.force(class_or_instance);
  if (PyTypeObject* cls = builtins::class_of(t, v); cls != nullptr && PyType_IsSubtype(cls, base_exception())) {
    Variable* made = t.force(TRY(t.wait(call(t, v, {}))));
    PyTypeObject* type = type_of(made);
    if (type == nullptr || !PyType_IsSubtype(type, base_exception()))
      return t.raise_new(PyExc_TypeError, "calling %R should have returned an instance of BaseException, not %R", cls,
                         type != nullptr ? type : &PyBaseObject_Type);
    return made;
  }
  PyTypeObject* type = type_of(v);
  if (as_object(v) && type != nullptr && PyType_IsSubtype(type, base_exception())) return v;
  return t.raise_new(PyExc_TypeError, "exceptions must derive from BaseException");
}

bool exception_matches(Variable* exception, PyObject* type) {
  if (PyTuple_Check(type)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type); i++) {
      if (exception_matches(exception, PyTuple_GET_ITEM(type, i))) return true;
    }
    return false;
  }
  PyTypeObject* raised = type_of(exception);
  return raised != nullptr && PyExceptionClass_Check(type) && PyType_IsSubtype(raised, reinterpret_cast<PyTypeObject*>(type)) != 0;
}

}  // namespace pellucid::variables
