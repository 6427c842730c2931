// Codegen: the transformed function of a capture. It calls the graph, rebuilds values, replays side effects, and returns or goes on in
// resume functions. Everything it reads from outside is read before anything is written.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "bytecode/code.h"
#include "translate/instruction_translator.h"
#include "translate/resume.h"

namespace pellucid::translate {

class Codegen {
 public:
  // `root_code`: the code object of the root frame's function, whose parameters and closure the transformed function has.
  Codegen(InstructionTranslator& translator, PyObject* root_code);

  // The whole transformed function: `graph` is the callable to call (null: no operators were captured).
  // `position`: of the instruction the generated code is attributed to.
  Status return_value(Variable* value);
  Status break_at(const Failure& failure);
  Status break_by_call(const Resume& resume);  // root: the rest of a frame that calls the rest of its callee first

  // After one of the above: what the graph must return, what it takes, then the code object (null: a Python exception is set).
  const std::vector<variables::TensorVariable*>& outputs() const { return outputs_; }
  void set_arguments(std::vector<variables::TensorVariable*> arguments) { arguments_ = std::move(arguments); }
  const std::vector<variables::TensorVariable*>& arguments() const { return arguments_; }
  void attribute_to_break();  // generated code gets the position of the instruction that breaks
  py::Ref assemble(PyObject* graph_callable);
  bool calls_python() const { return calls_python_; }
  // Before assemble: what the function does besides calling the graph, if that is so little. False: more.
  bool is_direct(cache::DirectCall& direct) const;

 private:
  using Op = bytecode::Op;
  template <class T>
  using Result = base::Result<T>;

  // -- emitting
  bytecode::Instruction& emit(Op op, uint32_t arg = 0);
  void load_constant(PyObject* object);
  void load_call(size_t arguments);  // PRECALL, CALL
  void load_name(Op op, PyObject* name);
  uint32_t constant_index(PyObject* object);
  uint32_t name_index(PyObject* name);
  uint32_t new_temporary();
  void store_temporary(uint32_t slot) { emit(Op::STORE_FAST, slot); }
  PyObject* helper(const char* module, const char* name);  // kept by the translator

  // -- values (codegen_values.cpp)
  Status load_source(const source::Source* source);
  Status value(Variable* variable);  // pushes it
  Status build(Variable* variable);
  Status fill_created();                // contents of objects, cells and functions made above
  bool is_direct(Variable* variable);   // cheap to load again and unaffected by writes: constants
  Status evaluate(Variable* variable);  // into a temporary, unless direct
  Failed cannot_build(Variable* variable);

  // -- side effects (codegen_effects.cpp)
  void collect_effects();
  Status evaluate_effects();
  Status write_effects();
  Status write_container(Variable* variable);

  // -- the end of a capture (codegen_break.cpp)
  struct StackValue {  // a slot of the stack where a resume function goes on
    Variable* variable = nullptr;
    int slot = -1;  // the temporary that holds it, instead of a variable
    bool null = false;
  };
  Status break_instruction(Frame& frame);
  Status break_branch(Frame& frame);
  Status break_for_iter(Frame& frame);
  Status break_below_calls();
  Status evaluate_frame(const Frame& frame, const std::vector<bool>& live);
  Status push_function(const Resume& resume, const Frame& frame, bool root);
  Result<size_t> push_arguments(const Frame& frame, const Resume& resume, const std::vector<StackValue>& stack);
  static std::vector<StackValue> stack_values(const Frame& frame, size_t count);  // the lowest `count` slots of its stack
  Status leave(Frame& frame, ResumeKey key, const std::vector<StackValue>& stack, bool with_exception = false);
  Status tail_call(Frame& frame, int index, const std::vector<StackValue>& stack);
  Status cover(Frame& frame, int32_t start, int32_t end);
  void forget_exceptions();
  Status tail_call_handler(Frame& frame, const bytecode::ExceptionRow& row);
  Status inner_call(size_t level);  // pushes NULL, the resume function of frame `level`, its arguments; calls it
  Result<const Resume*> resume_for(const Frame& frame, ResumeKey key);
  std::vector<bool> live(const Frame& frame, int index) const;

  InstructionTranslator& t_;
  bytecode::Code out_;
  size_t n_parameters_ = 0;
  std::unordered_map<PyObject*, uint32_t> constants_;
  std::unordered_map<PyObject*, uint32_t> names_;  // interned
  std::unordered_map<const Variable*, uint32_t> temporaries_;
  std::unordered_map<const Variable*, size_t> output_index_;
  std::vector<Variable*> to_fill_;
  std::vector<Variable*> building_;
  std::vector<variables::TensorVariable*> outputs_;
  std::vector<variables::TensorVariable*> arguments_;
  std::vector<Variable*> effects_;
  uint32_t graph_result_ = 0;
  size_t pending_arguments_ = 0;
  bool calls_python_ = false;
  int n_temporaries_ = 0;
  bytecode::Position position_;
};

}  // namespace pellucid::translate
