// Operators, subscripts, comparisons, string formatting.
#include "translate/handlers/handlers.h"

namespace pellucid::translate {

using namespace variables;

namespace {

Status unary_operator(InstructionTranslator& t, Frame& frame, const char* name) {
  Variable* operand = frame.pop();
  (void)TRY(t.finish(unary(t, name, operand)));
  return Unit{};
}

}  // namespace

OPCODE(UNARY_POSITIVE) { return unary_operator(t, frame, "pos"); }
OPCODE(UNARY_NEGATIVE) { return unary_operator(t, frame, "neg"); }
OPCODE(UNARY_INVERT) { return unary_operator(t, frame, "invert"); }

OPCODE(UNARY_NOT) {
  const bool value = TRY(truth(t, frame.peek()));
  frame.pop();
  frame.push(t.boolean(!value));
  return Unit{};
}

OPCODE(BINARY_OP) {
  Variable* right = frame.pop();
  Variable* left = frame.pop();
  (void)TRY(t.finish(binary(t, static_cast<int>(instruction.arg), left, right)));
  return Unit{};
}

OPCODE(BINARY_SUBSCR) {
  Variable* key = frame.pop();
  Variable* container = frame.pop();
  (void)TRY(t.finish(get_item(t, container, key)));
  return Unit{};
}

OPCODE(STORE_SUBSCR) {
  Variable* key = frame.pop();
  Variable* container = frame.pop();
  Variable* value = frame.pop();
  TRY(set_item(t, container, key, value));
  return Unit{};
}

OPCODE(DELETE_SUBSCR) {
  Variable* key = frame.pop();
  Variable* container = frame.pop();
  TRY(delete_item(t, container, key));
  return Unit{};
}

OPCODE(COMPARE_OP) {
  Variable* right = frame.pop();
  Variable* left = frame.pop();
  (void)TRY(t.finish(compare(t, static_cast<int>(instruction.arg), left, right)));
  return Unit{};
}

OPCODE(IS_OP) {
  Variable* right = frame.pop();
  Variable* left = frame.pop();
  const bool same = TRY(identical(t, left, right));
  frame.push(t.boolean(same != static_cast<bool>(instruction.arg)));
  return Unit{};
}

OPCODE(CONTAINS_OP) {
  Variable* container = frame.pop();
  Variable* item = frame.pop();
  Variable* result = TRY(t.wait(contains(t, container, item)));
  if (instruction.arg) result = t.boolean(!TRY(truth(t, result)));
  frame.push(result);
  return Unit{};
}

OPCODE(FORMAT_VALUE) {
  const bool has_format = (instruction.arg & 0x04) != 0;
  const int conversion = instruction.arg & 0x03;
  Variable* format = has_format ? t.force(frame.pop()) : nullptr;
  Variable* value = t.force(frame.pop());
  PyObject* specification = format ? known(t, format) : nullptr;
  if (has_format && (!specification || !PyUnicode_Check(specification)))
    return t.fail(Reason::unsupported_operator, "a format that is not known");
  PyObject* object = known(t, value);
  if (!object) {
    if (value->kind == Kind::kTensor) return t.fail(Reason::data_dependent_operator, "formatting a tensor");
    Arguments arguments;
    if (auto* instance = as_object(value); instance && conversion == 0) {
      arguments.positional.push_back(format ? format : t.string(""));
      PyObject* hook = _PyType_Lookup(instance->type, t.intern("__format__"));
      if (hook && PyFunction_Check(hook)) {
        (void)TRY(t.finish(call_special(t, value, "__format__", std::move(arguments))));
        return Unit{};
      }
    }
    const char* converter = conversion == 2 ? "repr" : conversion == 3 ? "ascii" : "str";
    if (conversion == 0 && has_format && PyUnicode_GET_LENGTH(specification))
      return t.fail(Reason::unsupported_operator, "formatting " + describe(value));
    Variable* text = TRY(t.wait(call(t, t.builtin(t.intern(converter)), {{value}, {}})));
    object = known(t, text);
    if (!object) return t.fail(Reason::unsupported_operator, "formatting " + describe(value));
  } else if (conversion) {
    object = t.keep_new(conversion == 1 ? PyObject_Str(object) : conversion == 2 ? PyObject_Repr(object) : PyObject_ASCII(object));
  }
  if (!PyUnicode_CheckExact(object) || specification) {
    PyTypeObject* type = Py_TYPE(object);
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE && type != Py_TYPE(Py_None)) {  // a class of the program: __format__, __str__ may be its own
      PyObject* hook = _PyType_Lookup(type, t.intern("__format__"));
      PyObject* text = _PyType_Lookup(type, t.intern("__str__"));
      if ((hook && PyFunction_Check(hook)) || (text && PyFunction_Check(text)))
        return t.fail(Reason::unsupported_operator, std::string("formatting ") + type->tp_name);
    }
    PyObject* formatted = PyObject_Format(object, specification);
    if (!formatted) return t.raise_python_error();
    object = t.keep_new(formatted);
  }
  frame.push(t.constant(object));
  return Unit{};
}

OPCODE(BUILD_STRING) {
  py::Ref parts = py::Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(instruction.arg)));
  for (uint32_t i = 0; i < instruction.arg; i++) {
    PyObject* part = known(t, frame.peek(instruction.arg - 1 - i));
    if (!part || !PyUnicode_Check(part)) return t.fail(Reason::unsupported_operator, "joining a string that is not known");
    Py_INCREF(part);
    PyTuple_SET_ITEM(parts.get(), static_cast<Py_ssize_t>(i), part);
  }
  py::Ref empty = py::Ref::steal(PyUnicode_FromString(""));
  PyObject* joined = PyUnicode_Join(empty.get(), parts.get());
  if (!joined) return t.raise_python_error();
  frame.drop(instruction.arg);
  frame.push(t.constant_new(joined));
  return Unit{};
}

}  // namespace pellucid::translate
