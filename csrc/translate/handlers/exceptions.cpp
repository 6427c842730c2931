// Raising, handling, context managers. The exception being handled is the translator's, as CPython's is the thread's.
#include "translate/handlers/handlers.h"

#include "variables/descriptor.h"
#include "variables/exception.h"

namespace pellucid::translate {

using namespace variables;

namespace {

bool is_none(Variable* variable) { return variable->kind == Kind::kConstant && variable->real == Py_None; }

Status set_field(InstructionTranslator& t, Variable* exception, const char* field, Variable* value) {
  auto* object = as_object(exception);
  if (!object) return t.fail(Reason::unsupported_value, "raising " + describe(exception));
  bool handled = false;
  return set_exception_attribute(t, object, t.intern(field), value, &handled);
}

Status chain(InstructionTranslator& t, Variable* exception) {  // CPython: _PyErr_SetObject
  Variable* handled = t.handled_exception();
  if (!handled || handled == exception) return Unit{};
  return set_field(t, exception, "__context__", handled);
}

Answer bound_special(InstructionTranslator& t, Variable* manager, const char* name) {
  Variable* function = TRY(class_lookup(t, manager, t.intern(name)));
  if (!function) return t.fail(Reason::uncaught_exception, describe(manager) + " is no context manager");
  function = t.force(function);
  if (function->kind != Kind::kFunction) return t.fail(Reason::unsupported_value, "context manager " + describe(manager));
  auto* method = t.make<BoundMethodVariable>();
  method->function = function;
  method->self = manager;
  return method;
}

Variable* traceback(InstructionTranslator& t) {  // there is one, but what it shows is not known here
  auto* object = t.make<ObjectVariable>();
  object->existed = false;
  object->type = &PyTraceBack_Type;
  return object;
}

}  // namespace

OPCODE(LOAD_ASSERTION_ERROR) {
  frame.push(t.known_object(PyExc_AssertionError));
  return Unit{};
}

OPCODE(RAISE_VARARGS) {
  if (instruction.arg == 0) {
    Variable* handled = t.handled_exception();
    if (!handled) return t.raise_new(PyExc_RuntimeError, "No active exception to reraise");
    return t.raise(handled);
  }
  Variable* cause = instruction.arg == 2 ? t.force(frame.pop()) : nullptr;
  Variable* exception = TRY(exception_instance(t, frame.pop()));
  if (cause) {
    Variable* instance = is_none(cause) ? cause : TRY(exception_instance(t, cause));
    TRY(set_field(t, exception, "__cause__", instance));
  }
  TRY(chain(t, exception));
  return t.raise(exception);
}

OPCODE(RERAISE) {
  Variable* exception = t.force(frame.pop());
  return t.raise(exception);
}

OPCODE(PUSH_EXC_INFO) {
  Variable* exception = t.force(frame.pop());
  if (exception->kind != Kind::kObject || static_cast<ObjectVariable*>(exception)->existed)
    return t.skip_frame(Reason::exception_boundary, "an exception from outside is being handled");
  Variable* before = t.handled_exception();
  frame.push(before ? before : t.none());
  frame.push(exception);
  t.set_handled(exception);
  return Unit{};
}

OPCODE(POP_EXCEPT) {
  Variable* before = frame.pop();
  t.set_handled(is_none(before) ? nullptr : before);
  return Unit{};
}

OPCODE(CHECK_EXC_MATCH) {
  Variable* type = t.force(frame.pop());
  Variable* exception = t.force(frame.peek());
  std::vector<Variable*> types;
  if (auto* tuple = as_tuple(type))
    types = tuple->items;
  else
    types.push_back(type);
  bool matches = false;
  for (Variable* candidate : types) {
    auto* cls = as_object(t.force(candidate));
    if (!cls || !cls->real || !PyExceptionClass_Check(cls->real)) return t.fail(Reason::unsupported_value, "except " + describe(candidate));
    matches = matches || exception_matches(exception, cls->real);
  }
  frame.push(t.boolean(matches));
  return Unit{};
}

OPCODE(BEFORE_WITH) {
  Variable* manager = t.force(frame.pop());
  Variable* enter = TRY(bound_special(t, manager, "__enter__"));
  Variable* exit = TRY(bound_special(t, manager, "__exit__"));
  frame.push(exit);
  (void)TRY(t.finish(call(t, enter, {})));
  return Unit{};
}

OPCODE(WITH_EXCEPT_START) {
  Variable* exit = frame.peek(3);
  Variable* exception = t.force(frame.peek());
  Variable* type = TRY(class_variable(t, exception));
  (void)TRY(t.finish(call(t, exit, {{type, exception, traceback(t)}, {}})));
  return Unit{};
}

}  // namespace pellucid::translate
