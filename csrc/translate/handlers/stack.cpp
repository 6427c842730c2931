// Stack, constants, locals, cells and globals.
#include "translate/handlers/handlers.h"

namespace pellucid::translate {

using namespace variables;

namespace {

PyObject* local_name(const Frame& frame, uint32_t index) { return frame.code->localsplus_names[index].get(); }

Failed unbound_local(InstructionTranslator& t, PyObject* name) {
  return t.raise_new(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value", name);
}

CellVariable* cell_at(Frame& frame, uint32_t index) { return static_cast<CellVariable*>(frame.locals[index]); }

Failed empty_cell(InstructionTranslator& t, Frame& frame, uint32_t index) {
  if (frame.code->localsplus_kinds[index] != bytecode::LocalKind::kFree) return unbound_local(t, local_name(frame, index));
  return t.raise_new(PyExc_NameError, "cannot access free variable '%U' where it is not associated with a value in enclosing scope",
                     local_name(frame, index));
}

}  // namespace

OPCODE(CACHE) { return Unit{}; }
OPCODE(NOP) { return Unit{}; }
OPCODE(RESUME) { return Unit{}; }
OPCODE(EXTENDED_ARG) { return Unit{}; }
OPCODE(PRECALL) { return Unit{}; }
OPCODE(MAKE_CELL) { return Unit{}; }  // cells are made with the frame
OPCODE(COPY_FREE_VARS) { return Unit{}; }

OPCODE(POP_TOP) {
  frame.pop();
  return Unit{};
}

OPCODE(PUSH_NULL) {
  frame.push(t.make<NullVariable>());
  return Unit{};
}

OPCODE(SWAP) {
  std::swap(frame.peek(), frame.peek(instruction.arg - 1));
  return Unit{};
}

OPCODE(COPY) {
  frame.push(frame.peek(instruction.arg - 1));
  return Unit{};
}

OPCODE(LOAD_CONST) {
  frame.push(t.constant(frame.code->consts[instruction.arg].get()));
  return Unit{};
}

OPCODE(LOAD_FAST) {
  Variable* value = frame.locals[instruction.arg];
  if (!value) return unbound_local(t, local_name(frame, instruction.arg));
  frame.push(value);
  return Unit{};
}

OPCODE(STORE_FAST) {
  frame.locals[instruction.arg] = frame.pop();
  return Unit{};
}

OPCODE(DELETE_FAST) {
  if (!frame.locals[instruction.arg]) return unbound_local(t, local_name(frame, instruction.arg));
  frame.locals[instruction.arg] = nullptr;
  return Unit{};
}

OPCODE(LOAD_CLOSURE) {
  frame.push(frame.locals[instruction.arg]);
  return Unit{};
}

OPCODE(LOAD_DEREF) {
  Variable* contents = TRY(t.cell_contents(cell_at(frame, instruction.arg)));
  if (!contents) return empty_cell(t, frame, instruction.arg);
  frame.push(contents);
  return Unit{};
}

OPCODE(STORE_DEREF) {
  CellVariable* cell = cell_at(frame, instruction.arg);
  cell->contents = frame.pop();
  cell->loaded = true;
  if (cell->real) t.mark_changed(cell);
  return Unit{};
}

OPCODE(DELETE_DEREF) {
  CellVariable* cell = cell_at(frame, instruction.arg);
  if (!TRY(t.cell_contents(cell))) return empty_cell(t, frame, instruction.arg);
  cell->contents = nullptr;
  if (cell->real) t.mark_changed(cell);
  return Unit{};
}

OPCODE(LOAD_GLOBAL) {
  PyObject* name = frame.code->names[instruction.arg >> 1].get();
  Variable* value = t.load_global(frame, name);
  if (!value) return t.raise_new(PyExc_NameError, "name '%U' is not defined", name);
  if (instruction.arg & 1) frame.push(t.make<NullVariable>());
  frame.push(value);
  return Unit{};
}

OPCODE(STORE_GLOBAL) {
  PyObject* name = frame.code->names[instruction.arg].get();
  Variable* value = frame.pop();
  t.write_global(frame.globals, name, value);
  return Unit{};
}

OPCODE(DELETE_GLOBAL) {
  PyObject* name = frame.code->names[instruction.arg].get();
  auto* written = t.written_global(frame.globals, name);
  const bool exists = written ? written->value != nullptr : PyDict_GetItemWithError(frame.globals, name) != nullptr;
  if (!exists) return t.raise_new(PyExc_NameError, "name '%U' is not defined", name);
  t.write_global(frame.globals, name, nullptr);
  return Unit{};
}

}  // namespace pellucid::translate
