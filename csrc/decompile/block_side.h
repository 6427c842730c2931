// One of the two code objects that the check of a block form compares, executed with terms for values from one event to the next. Both
// sides give the same events for the same doings: what the block form writes as a call of block_support is the event of the instruction it
// stands for. For block_*.cpp only.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bytecode/cfg.h"
#include "bytecode/code.h"
#include "bytecode/tables.h"
#include "decompile/block_terms.h"

namespace pellucid::decompile::block {

struct NotProven {
  std::string why;
};

struct State {
  int pc = 0;
  int phase = 0;  // of an instruction that is several events
  std::vector<int> stack;
  int current = 0;                    // the exception being handled
  int keywords = -1;                  // KW_NAMES, for the call behind it
  int leaving = -1;                   // the exception that leaves the function
  bool met = false;                   // where a loop begins, kMeeting has been reported
  std::map<std::string, int> own;     // temporaries of the block form
  std::map<int32_t, int32_t> depths;  // 3.8: see note_depth()
};

struct Event {
  enum Kind : uint8_t { kAct, kBranch, kReturn, kLeave, kForever, kMeeting } kind = kAct;
  bytecode::Op op = bytecode::Op::NOP;
  int64_t number = 0;
  std::string text;           // a name, or a variable's
  std::vector<int> operands;  // of a branch: what it is on
  int results = 0;
  bool truth = false;   // the result is True or False
  bool raises = true;   // it may raise
  bool returns = true;  // it may do anything else
  int index = 0;
  enum After : uint8_t { kPush, kTuple, kWithNull, kNot, kReversed, kUnder, kKeepIterator, kNone, kFound } after = kPush;
  int then = -1;                                             // where execution goes on; -1: behind the instruction
  int phase = 0;                                             // and in which phase of it
  int if_true = -1, if_false = -1;                           // kBranch
  PyObject* code = nullptr;                                  // of a function that is made
  int closure = -1;                                          // the term of its cells
  bool inside = false;                                       // block form: it stands in that code
  int name = -1, qualname = -1;                              // block form: what it is called, terms
  std::vector<std::pair<std::string, std::string>> shadows;  // block form: free variables, and those that hold their cells
};

// How variables of the block form stand for those of the original. What a name suggests is not trusted: were it wrong, the two would
// not do the same.
struct Naming {
  std::string prefix;            // of what the block form adds
  PyObject* bindings = nullptr;  // dict: globals that stand for objects
};

class Side {
 public:
  // `free`: by name, what the free variables are in the scope around; `original`: the other side, null for the original itself.
  Side(Terms& terms, const Naming& naming, bytecode::Code code, std::map<std::string, std::string> free, const Side* original);

  State start();
  // Goes on to the next event. The block form also stops, with kMeeting, where its loops begin.
  Event next(State* state);
  void seek(State* state);  // goes on until right in front of it
  void finish(State* state, const Event& event, const std::vector<int>& results);
  // Where an exception of an instruction goes.
  void raise(State* state, int index, int error) const;
  bool is_handled(int index) const { return cfg_.blocks[static_cast<size_t>(cfg_.block_of[static_cast<size_t>(index)])].row >= 0; }

  const bytecode::Code& code() const { return code_; }
  bool is_optimized() const { return (code_.flags & 1) != 0; }
  std::string shown(int index) const;
  std::string key_of(uint32_t slot) const { return slot < keys_.size() ? keys_[slot] : "?"; }
  bool keeps_cell(uint32_t slot) const;
  bool is_within_block(const std::string& name) const;  // whether a temporary is of no use to other blocks, by its name
  std::string shadow_prefix(const State& state, uint32_t slot) const;

 private:
  enum class Role : uint8_t { kVariable, kTemporary, kSupport };
  using Instruction = bytecode::Instruction;
  using Op = bytecode::Op;

  Role role(const std::string& name) const;
  void name_slots();
  void skip_beginning_of_class(State* state) const;

  int pop(State& state);
  std::vector<int> pop_many(State& state, size_t count);
  int& peek(State& state, size_t depth);
  void push(State& state, int term) { state.stack.push_back(term); }
  int constant(uint32_t index);
  std::string name(uint32_t index) const;
  std::string slot_name(uint32_t slot) const;
  Op op_at(int index) const;
  bool text_of(int term, std::string* text) const;

  enum class Step : uint8_t { kOther, kDone, kEvent };  // not its concern; done; `event` is filled

  Step step(State& state, const Instruction& in, Event& event);
  Step stack_step(State& state, const Instruction& in);
  Step variable_step(State& state, const Instruction& in, Event& event);
  Step named_step(State& state, const Instruction& in, Event& event);
  Step jump_step(State& state, const Instruction& in, Event& event);
  Step exception_step(State& state, const Instruction& in, Event& event);
  Step finally_step(State& state, const Instruction& in, Event& event);
  Step display_step(State& state, const Instruction& in, Event& event);
  Step operator_step(State& state, const Instruction& in, Event& event);
  Step call_step(State& state, const Instruction& in, Event& event);
  Step suspension_step(State& state, const Instruction& in, Event& event);
  Step pattern_step(State& state, const Instruction& in, Event& event);
  Step plain_step(State& state, const Instruction& in, Event& event);

  Step load(State& state, const std::string& key, bool cell, Event& event);
  std::string key_of_name(const std::string& name) const;
  bool holds_cell(const std::string& key) const;
  Step load_slot(State& state, uint32_t slot, bool through_cell, Event& event);
  Step store_slot(State& state, uint32_t slot, Event& event);
  void store_own(State& state, const std::string& name, int value);
  bool load_own(State& state, const std::string& name);
  Step load_name(State& state, const std::string& name, Op op, Event& event);
  Step store_name(State& state, const std::string& name, Op op, Event& event);
  Step attribute(State& state, const std::string& name, bool method, Event& event);
  Step truth(State& state, Event& event);  // makes a bool of the top
  Step fold(State& state, Event& event);
  Step fork(State& state, int condition, int if_true, int if_false, Event& event);
  Step compare_label(State& state, const Instruction& in);
  Step call(State& state, int callee, std::vector<int> arguments, int names, Event& event);
  Step call_support(State& state, const std::string& helper, const std::vector<int>& arguments, Event& event);
  Step make_function(State& state, uint32_t flags, Event& event);
  Step made_by_support(const std::string& helper, const std::vector<int>& arguments, Event& event);
  Step loads_from(const std::vector<int>& arguments, const std::string& name, Event& event);
  Step delegated(State& state, int send, bool yielded, Event& event);
  bool in_send_loop(int send) const;
  bool builds_tuple(int index) const;
  Step raise_now(State& state, int index, int error);
  int copies_keywords(int index) const;
  void sort_constants(std::vector<int>* items) const;

  Terms& terms_;
  const Naming& naming_;
  std::map<std::string, std::string> free_;  // by name, what the free variables are in the scope around
  std::string unit_;                         // block form: the number in its names
  bytecode::Code code_;
  bytecode::Cfg cfg_;
  const Side* original_;
  const bytecode::Tables& tables_;
  std::vector<std::string> keys_;           // by slot; of the block form only for variables
  std::map<std::string, int> argument_of_;  // the term of an argument that nothing assigns to, by key
  int phase_ = 0;                           // of the instruction that is being executed
  std::vector<bool> meeting_;               // by instruction: where a loop begins
};

}  // namespace pellucid::decompile::block
