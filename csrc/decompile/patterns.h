// The code of match statements read back into patterns, before blocks are made of it. A pattern keeps what it captures on the stack until
// all of it has matched and drops it step by step where it has not; here the whole of it becomes one conditional jump. Knows
// instructions, not the expressions that values are.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bytecode/code.h"
#include "decompile/ast.h"

namespace pellucid::decompile {

struct Flow;

struct PatternValue {      // a literal, a name with attributes, or an element of a constant tuple
  std::vector<int> loads;  // the instructions that evaluate it
  int item = -1;
};

struct CodePattern {
  PatternKind kind = PatternKind::kAs;
  bool tested = false;                           // there is a test for its kind
  bool explicit_any = false;                     // `_ as name`
  bool open = false;                             // kSequence: has a star
  bool alternative = false;                      // stands for what each alternative of an or-pattern captures, `items`
  int length = 0;                                // kSequence: the least length; kClass: the number of positional patterns
  int star = -1, rest = -1;                      // kSequence: *name, kMapping: **name
  int at = -1;                                   // the instruction of the first test
  std::vector<int> names;                        // instructions that store it
  std::vector<int> items;                        // all but kSequence
  std::vector<PatternValue> values;              // kValue, kSingleton, kClass: one and the names of keywords; kMapping: keys
  std::vector<std::pair<int, int>> front, back;  // kSequence: index from the start or the end, item
};

struct CodeCase {
  int start = -1;       // its first instruction; the jump that stands for the pattern
  int next = -1;        // where execution goes on when it matches
  int fail = -1;        // and when it doesn't; -1: it always matches
  int pattern = -1;     // the root
  bool bare = false;    // `case _ if`: nothing is left of the pattern, `start` is where the guard begins
  bool copies = false;  // the subject stays on the stack: there are further cases
  int line = -1;        // the last one of the pattern
};

class CaseReader;

class PatternReader {
 public:
  PatternReader(const bytecode::Code& code, Flow& flow);
  ~PatternReader();
  PatternReader(const PatternReader&) = delete;
  PatternReader& operator=(const PatternReader&) = delete;

  // Reads the pattern that begins at `start`, where the subject is on top of the stack; false: there is none. Adds to flow.patterns.
  bool read(int start, CodeCase* out);
  const std::vector<int>& visited() const;  // the instructions that the last one took
  int next_real(int i) const;               // past jumps and instructions without effect

 private:
  std::unique_ptr<CaseReader> reader_;
};

bool is_pattern_load(bytecode::Op op);       // evaluates a value or the beginning of it
bool is_pattern_attribute(bytecode::Op op);  // refines the value that is on top of the stack
bool is_pattern_copy(const bytecode::Instruction& in);

// Finds the match statements of prepared instructions, fills flow.patterns, flow.cases and flow.case_of. In find_matches.cpp.
void find_matches(const bytecode::Code& code, Flow& flow, const std::vector<int>& depths);

}  // namespace pellucid::decompile
