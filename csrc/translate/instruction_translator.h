// InstructionTranslator: symbolic execution of a frame and of the Python functions it calls. One handler per opcode (handlers/), an
// explicit stack of frames, and the output graph. A handler that fails has changed nothing but the stack, which is put back: the code
// generator (codegen.h) takes over at the instruction's boundary. Where there is none, `restart` asks for another run.
#pragma once
#include <map>
#include <optional>

#include "translate/frame.h"
#include "translate/graph_record.h"
#include "translate/profile.h"
#include "translate/translate.h"
#include "variables/tracer.h"

namespace pellucid::translate {

using variables::Answer;
using variables::Arguments;
using variables::Failed;
using variables::Failure;
using variables::Reason;
using variables::Status;
using variables::Unit;

struct RootFrame {  // what translate() starts from
  guard::FrameView view;
  PyObject* code = nullptr;  // the code object of the frame's function: it may be a resume function's
};

using ForcedBreaks = std::map<uint64_t, std::pair<Reason, std::string>>;  // instruction number -> why

class InstructionTranslator : public variables::Tracer {
 public:
  InstructionTranslator(const RootFrame& root, const ForcedBreaks& forced, Profile& profile);
  ~InstructionTranslator() override;

  Status start();  // makes the root frame
  Answer run();    // to the root's return value, or the failure that ended it

  // -- Tracer
  Answer call_function(variables::FunctionVariable* function, Arguments arguments) override;
  Answer wait(Answer answer) override;
  Answer resume_generator(variables::GeneratorVariable* generator, Variable* sent) override;
  Answer throw_into_generator(variables::GeneratorVariable* generator, Variable* exception) override;
  Variable* handled_exception() override { return handled_; }
  uint64_t instruction_count() const override { return count_; }
  const guard::UserLocation& location() override;
  Answer torch_operator(PyObject* target, PyObject* method_name, const Arguments& arguments) override;
  Answer state_operator(PyObject* target, const Arguments& arguments) override;
  Answer tensor_input(PyObject* tensor, const source::Source* source) override;
  Answer wrap_result(PyObject* fake_result, uint32_t node) override;

  // -- for handlers
  Frame& frame() { return *frames_.back(); }
  Status return_value(Variable* value);  // RETURN_VALUE of the innermost frame
  Status yield_value(Variable* value);   // YIELD_VALUE
  void set_handled(Variable* exception) { handled_ = exception; }
  Variable* load_global(Frame& frame, PyObject* name);  // null: NameError
  Variable* builtin(PyObject* name);                    // null: absent
  Answer finish(Answer answer);                         // pushes a result that is there; leaves a pushed frame alone

  // -- for the code generator
  const std::vector<std::unique_ptr<Frame>>& frames() const { return frames_; }
  PyObject* root_code() const { return root_.code; }
  PyObject* root_globals() const { return PyFunction_GET_GLOBALS(root_.view.func); }
  GraphRecord& graph() { return graph_; }
  const std::vector<variables::TensorVariable*>& inputs() const { return inputs_; }
  guard::GuardSet& guard_set() { return guards_; }
  // No two inputs are one tensor: the graph was recorded as if writes to one leave the others alone. To be called once, at the end.
  void guard_distinct_inputs();
  void guard_precision(Py_ssize_t word) { guards_.add({guard::Kind::kPrecision, nullptr, nullptr, {}, {}, word, {}, {}}); }
  std::shared_ptr<source::Arena> arena() { return arena_; }
  size_t operators() const { return operators_; }
  uint64_t outermost(uint64_t number) const;  // the root-side instruction during which `number` ran inside wait()
  // A generator that was left at a yield inside try or with: when it is dropped, its handlers run. Null: there is none.
  const Frame* with_code_to_run_when_dropped() const;
  uint64_t exception_origin() const { return exception_origin_; }
  std::optional<std::pair<uint64_t, Failure>> restart;  // set when a failure asks for another run with a forced break
  Profile& profile;                                     // of the whole capture
  void count_attempt();                                 // adds to `profile` what this run has done; once, at its end
  static constexpr uint32_t kInputBit = 0x80000000u;    // node ids of inputs until the record is finished

 private:
  Answer run_until(size_t depth);
  Status step(Frame& frame);
  Status unwind(const Failure* failure, size_t base);
  bool caught(size_t base) const;
  void save_stack(Frame& frame);
  void restore_stack(Frame& frame);
  Failed break_inside_wait(const Failure* failure);
  std::unique_ptr<Frame> make_frame(variables::FunctionVariable* function, std::shared_ptr<const bytecode::Code> code);
  Status make_cells(Frame& frame);
  Frame& wake(variables::GeneratorVariable* generator);  // puts a suspended frame on the stack again
  Answer run_generator(variables::GeneratorVariable* generator);
  int32_t stack_entry();
  base::Result<Arg> argument(Variable* variable, py::Ref& fake);

  RootFrame root_;
  const ForcedBreaks& forced_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<std::unique_ptr<Frame>> suspended_;  // generators'
  std::vector<uint64_t> waiting_;                  // instruction numbers below each wait(), outermost first
  std::map<uint64_t, uint64_t> inside_wait_;       // first number inside an outermost wait -> the instruction that waits
  uint64_t waited_at_ = 0;                         // the instruction that waited last, with nothing around it waiting
  uint64_t count_ = 0, instruction_limit_ = 0;
  Variable* handled_ = nullptr;
  uint64_t exception_origin_ = 0;
  Variable* returned_ = nullptr;            // of the frame that returned to wait() or to run()
  const Failure* generator_end_ = nullptr;  // StopIteration of a generator that returned
  static Answer nullptr_answer() { return Answer(static_cast<Variable*>(nullptr)); }
  guard::UserLocation location_;
  const Frame* location_frame_ = nullptr;
  int location_pc_ = -2;

  GraphRecord graph_;
  std::vector<variables::TensorVariable*> inputs_;
  std::vector<GraphNode> input_nodes_;
  std::unordered_map<PyObject*, variables::TensorVariable*> by_fake_;
  std::unordered_map<const source::Source*, Variable*> globals_cache_;
  size_t operators_ = 0, inlined_calls_ = 0;
  uint64_t fake_calls_before_ = 0;
  std::unordered_map<PyObject*, uint32_t> state_results_;  // what nodes that change modes returned -> node
  std::vector<py::Ref> entered_;                           // inference modes that capture is in
  int32_t last_stack_ = -1;
  const Frame* last_stack_frame_ = nullptr;
  int last_stack_pc_ = -2;

 public:
  std::vector<GraphNode>& input_nodes() { return input_nodes_; }
};

}  // namespace pellucid::translate
