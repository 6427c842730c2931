// Frame: one Python function under symbolic execution. Frames are heap objects on the translator's explicit stack, never C recursion.
#pragma once
#include <memory>
#include <vector>

#include "bytecode/code.h"
#include "translate/profile.h"
#include "variables/variable.h"

namespace pellucid::translate {

using variables::Variable;

struct Frame {
  std::shared_ptr<const bytecode::Code> code;
  PyObject* code_object = nullptr;  // the original code object (kept by the tracer)
  PyObject* globals = nullptr;
  variables::FunctionVariable* function = nullptr;  // null for the root frame
  std::vector<Variable*> locals;                    // one per localsplus entry; cells hold a CellVariable; null: unbound
  std::vector<Variable*> stack;
  std::vector<Variable*> saved;       // the stack's top as it was when the current instruction began
  size_t saved_below = 0;             // how much of the stack `saved` leaves out
  int pc = -1;                        // the instruction being executed
  int next = 0;                       // the one after it
  uint64_t number = 0;                // when the current instruction began: InstructionTranslator::instruction_count
  PyObject* keyword_names = nullptr;  // KW_NAMES
  bool returns_to_wait = false;       // its value goes to a C++ caller, not on the stack below
  variables::GeneratorVariable* generator = nullptr;
  Variable* outer_exception = nullptr;  // exception being handled when this frame was entered
  int32_t module = -1;                  // GraphRecord::modules entry
  int32_t stack_parent = -1;            // GraphRecord::stacks entry of the call that made this frame

  const bytecode::Instruction& instruction() const { return code->instructions[static_cast<size_t>(pc)]; }
  Variable* pop() {
    Variable* top = stack.back();
    stack.pop_back();
    return top;
  }
  Variable*& peek(size_t depth = 0) { return stack[stack.size() - 1 - depth]; }
  void push(Variable* variable) { stack.push_back(variable); }
  void drop(size_t count) { stack.resize(stack.size() - count); }
};

// Decoded code objects, kept until they are forgotten. Null with a Python exception set on failure.
std::shared_ptr<const bytecode::Code> decoded(PyObject* code, Profile& profile);
// live_locals of decoded code, computed once.
const std::vector<std::vector<bool>>& liveness(const std::shared_ptr<const bytecode::Code>& code);
void forget_decoded(bool unused_only = false);
// What was decoded and made for code that is gone, once that is much: for programs that make code over and over again.
void forget_unused();

}  // namespace pellucid::translate
