// Resume functions: the rest of a function after a graph break, entered at an instruction of the original body with its locals and
// stack as arguments. One code object per (original code, instruction, shape of the stack, bound locals, way of entering).
#pragma once
#include <string>
#include <vector>

#include "bytecode/code.h"
#include "py/ref.h"

namespace pellucid::translate {

struct ResumeKey {
  enum class Entry : uint8_t {
    kAt,       // continue with instruction `index`
    kByCall,   // first call (callee, argument tuple), push what it returns, then continue with instruction `index`; `call_index` made it
    kHandler,  // continue at a handler: the last stack value is the exception
  };
  PyObject* code = nullptr;  // the original code object
  int index = 0;
  int call_index = -1;
  Entry entry = Entry::kAt;
  bool repeats = false;          // `index` is where a caller's graph ended: its break was reported there
  std::vector<bool> stack_null;  // stack slots, bottom first: true: NULL, not passed
  std::vector<bool> bound;       // localsplus entries (free variables left out): true: passed and bound
  std::vector<int> lasti_slots;  // stack slots that hold the offset of an instruction (its index is passed here)
};

struct Resume {
  ResumeKey key;
  py::Ref code;         // the code object
  py::Ref original;     // owns key.code
  size_t n_locals = 0;  // arguments that are locals; stack values follow, then (kByCall) callee and argument tuple
};

// Where the call at `pc` begins: at the KW_NAMES that belongs to it, or at itself. For any other instruction it is `pc`.
int call_start(const bytecode::Code& code, int pc);

// The resume code for a key, made on first use; null with a Python exception set on failure.
const Resume* resume_code(const ResumeKey& key, const bytecode::Code& original);
// What a resume function's code object stands for, or null for ordinary code.
const Resume* resume_of(PyObject* code);
void forget_resume_functions();
size_t resume_count();

}  // namespace pellucid::translate
