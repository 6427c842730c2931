// Structural pattern matching (PEP 634; CPython: match_keys, match_class).
#include "translate/handlers/handlers.h"

namespace pellucid::translate {

using namespace variables;

namespace {

Status push_flag(InstructionTranslator& t, Frame& frame, unsigned long flag) {
  Variable* subject = t.force(frame.peek());
  PyTypeObject* type = type_of(subject);
  if (!type) return t.fail(Reason::unsupported_value, "match of " + describe(subject));
  frame.push(t.boolean((type->tp_flags & flag) != 0));
  return Unit{};
}

// int, str, list ...: a single positional pattern matches the subject itself.
bool matches_itself(PyTypeObject* type) {
  for (PyTypeObject* self : {&PyBool_Type, &PyByteArray_Type, &PyBytes_Type, &PyDict_Type, &PyFloat_Type, &PyFrozenSet_Type, &PyLong_Type,
                             &PyList_Type, &PySet_Type, &PyUnicode_Type, &PyTuple_Type})
    if (PyType_IsSubtype(type, self)) return true;
  return false;
}

}  // namespace

OPCODE(MATCH_MAPPING) { return push_flag(t, frame, Py_TPFLAGS_MAPPING); }
OPCODE(MATCH_SEQUENCE) { return push_flag(t, frame, Py_TPFLAGS_SEQUENCE); }

OPCODE(MATCH_KEYS) {
  auto* dict = as_dict(t.force(frame.peek(1)));
  auto* keys = as_tuple(t.force(frame.peek()));
  if (!dict || !keys) return t.fail(Reason::unsupported_value, "matching keys of " + describe(t.force(frame.peek(1))));
  std::vector<Variable*> values;
  for (Variable* key : keys->items) {
    PyObject* object = TRY(dict_key(t, key));
    Variable* value = dict_find(dict, object);
    if (!value) {
      frame.push(t.none());
      return Unit{};
    }
    values.push_back(value);
  }
  frame.push(t.tuple(std::move(values)));
  return Unit{};
}

OPCODE(MATCH_CLASS) {
  auto* names = as_tuple(t.force(frame.peek()));
  auto* cls = as_object(t.force(frame.peek(1)));
  Variable* subject = t.force(frame.peek(2));
  PyTypeObject* type = type_of(subject);
  if (!names || !cls || !cls->real || !PyType_Check(cls->real) || !type)
    return t.fail(Reason::unsupported_value, "matching a class against " + describe(subject));
  auto* wanted = reinterpret_cast<PyTypeObject*>(cls->real);
  if (Py_TYPE(wanted) != &PyType_Type)
    return t.fail(Reason::unsupported_value, std::string("matching class ") + wanted->tp_name + ", which has a metaclass");
  auto finish = [&](Variable* result) {
    frame.drop(3);
    frame.push(result);
    return Status(Unit{});
  };
  if (!PyType_IsSubtype(type, wanted)) return finish(t.none());
  std::vector<Variable*> values;
  auto read = [&](PyObject* name) -> base::Result<bool> {
    Answer answer = t.wait(get_attribute(t, subject, name));
    if (answer.ok()) {
      values.push_back(answer.value());
      return true;
    }
    if (answer.failure()->kind == Failure::Kind::kRaise && exception_matches(answer.failure()->exception, PyExc_AttributeError))
      return false;
    return Failed{answer.failure()};
  };
  if (const size_t count = instruction.arg) {
    PyObject* match_args = t.intern("__match_args__");
    if (_PyType_Lookup(wanted, match_args)) {
      auto* parameters = as_tuple(t.force(TRY(t.wait(get_attribute(t, cls, match_args)))));
      if (!parameters || parameters->items.size() < count) return t.fail(Reason::uncaught_exception, "__match_args__");
      for (size_t i = 0; i < count; i++) {
        PyObject* name = known(t, parameters->items[i]);
        if (!name || !PyUnicode_Check(name)) return t.fail(Reason::uncaught_exception, "__match_args__");
        if (!TRY(read(name))) return finish(t.none());
      }
    } else if (count == 1 && matches_itself(wanted)) {
      values.push_back(subject);
    } else {
      return t.fail(Reason::uncaught_exception, "too many positional patterns");
    }
  }
  for (Variable* item : names->items) {
    PyObject* name = known(t, item);
    if (!TRY(read(name))) return finish(t.none());
  }
  return finish(t.tuple(std::move(values)));
}

}  // namespace pellucid::translate
