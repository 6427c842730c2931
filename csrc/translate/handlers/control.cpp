// Jumps, iteration, generators.
#include "translate/handlers/handlers.h"

#include "variables/exception.h"

namespace pellucid::translate {

using namespace variables;

namespace {

Status jump(Frame& frame, const Instruction& instruction) {
  frame.next = instruction.target;
  return Unit{};
}

Status pop_jump(InstructionTranslator& t, Frame& frame, const Instruction& instruction, bool when) {
  const int value = TRY(maybe_truth(t, frame.peek()));
  if (value < 0) return t.fail(Reason::data_dependent_branch, describe(t.force(frame.peek())));
  frame.pop();
  if (static_cast<bool>(value) == when) frame.next = instruction.target;
  return Unit{};
}

Status pop_jump_none(InstructionTranslator& t, Frame& frame, const Instruction& instruction, bool when) {
  Variable* value = t.force(frame.peek());
  auto* constant = as_constant(value);
  const bool is_none = constant && constant->real == Py_None;
  frame.pop();
  if (is_none == when) frame.next = instruction.target;
  return Unit{};
}

Status jump_or_pop(InstructionTranslator& t, Frame& frame, const Instruction& instruction, bool when) {
  const int value = TRY(maybe_truth(t, frame.peek()));
  if (value < 0) return t.fail(Reason::data_dependent_branch, describe(t.force(frame.peek())));
  if (static_cast<bool>(value) == when)
    frame.next = instruction.target;
  else
    frame.pop();
  return Unit{};
}

}  // namespace

OPCODE(JUMP_FORWARD) { return jump(frame, instruction); }
OPCODE(JUMP_BACKWARD) { return jump(frame, instruction); }
OPCODE(JUMP_BACKWARD_NO_INTERRUPT) { return jump(frame, instruction); }
OPCODE(POP_JUMP_FORWARD_IF_FALSE) { return pop_jump(t, frame, instruction, false); }
OPCODE(POP_JUMP_FORWARD_IF_TRUE) { return pop_jump(t, frame, instruction, true); }
OPCODE(POP_JUMP_BACKWARD_IF_FALSE) { return pop_jump(t, frame, instruction, false); }
OPCODE(POP_JUMP_BACKWARD_IF_TRUE) { return pop_jump(t, frame, instruction, true); }
OPCODE(POP_JUMP_FORWARD_IF_NONE) { return pop_jump_none(t, frame, instruction, true); }
OPCODE(POP_JUMP_FORWARD_IF_NOT_NONE) { return pop_jump_none(t, frame, instruction, false); }
OPCODE(POP_JUMP_BACKWARD_IF_NONE) { return pop_jump_none(t, frame, instruction, true); }
OPCODE(POP_JUMP_BACKWARD_IF_NOT_NONE) { return pop_jump_none(t, frame, instruction, false); }
OPCODE(JUMP_IF_FALSE_OR_POP) { return jump_or_pop(t, frame, instruction, false); }
OPCODE(JUMP_IF_TRUE_OR_POP) { return jump_or_pop(t, frame, instruction, true); }

OPCODE(GET_ITER) {
  Variable* iterable = frame.pop();
  (void)TRY(t.finish(get_iterator(t, iterable)));
  return Unit{};
}

OPCODE(FOR_ITER) {
  Variable* value = nullptr;
  if (TRY(next(t, frame.peek(), &value))) {
    frame.push(value);
  } else {
    frame.pop();
    frame.next = instruction.target;
  }
  return Unit{};
}

OPCODE(GET_YIELD_FROM_ITER) {
  Variable* iterable = t.force(frame.peek());
  if (iterable->kind == Kind::kGenerator) return Unit{};
  frame.pop();
  (void)TRY(t.finish(get_iterator(t, iterable)));
  return Unit{};
}

OPCODE(RETURN_GENERATOR) {
  if (!frame.generator) return t.skip_frame(Reason::unsupported_opcode, "a generator's own frame");
  frame.push(t.none());
  return Unit{};
}

OPCODE(YIELD_VALUE) {
  if (!frame.generator) return t.skip_frame(Reason::unsupported_opcode, "a generator's own frame");
  Variable* value = frame.pop();
  return t.yield_value(value);
}

OPCODE(SEND) {
  Variable* sent = frame.pop();
  Variable* receiver = t.force(frame.peek());
  if (auto* generator = as<GeneratorVariable>(receiver, Kind::kGenerator)) {
    Answer answer = t.resume_generator(generator, sent);
    if (answer.ok()) {
      frame.push(answer.value());
      return Unit{};
    }
    if (answer.failure()->kind != Failure::Kind::kRaise || !exception_matches(answer.failure()->exception, PyExc_StopIteration))
      return Failed{answer.failure()};
    auto* stop = static_cast<ObjectVariable*>(answer.failure()->exception);
    frame.pop();
    frame.push(stop->arguments.empty() ? t.none() : stop->arguments[0]);
    frame.next = instruction.target;
    return Unit{};
  }
  auto* constant = as_constant(t.force(sent));
  if (!constant || constant->real != Py_None) {
    Answer answer = t.wait(call_special(t, receiver, "send", {{sent}, {}}));
    frame.push(TRY(answer));
    return Unit{};
  }
  Variable* value = nullptr;
  if (TRY(next(t, receiver, &value))) {
    frame.push(value);
    return Unit{};
  }
  frame.pop();
  frame.push(t.none());
  frame.next = instruction.target;
  return Unit{};
}

}  // namespace pellucid::translate
