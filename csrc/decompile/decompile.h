// From a code object to Python source with structure: statements, loops, try blocks and expressions as a person would have written
// them. What has no structured form is a value with the reason, never a wrong text. Knows code objects only; it never opens a file.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bytecode/code.h"
#include "decompile/choices.h"
#include "py/ref.h"

namespace pellucid::decompile {

enum class Unit : uint8_t {  // what the code object is the body of, where it does not say so itself
  kAuto,                     // by its flags and name: a function, `<lambda>`, a comprehension, a class body or a module
  kFunction,
  kClass,
  kModule,
};

struct Options {
  Unit unit = Unit::kAuto;
  bool line_layout = false;      // print every statement and argument on the line the line table gives it
  PyObject* function = nullptr;  // the function whose code it is: its defaults and annotations belong to its signature
  std::set<Choice> turned = {};  // decisions to be made the other way
};

struct LineEntry {               // one line of the output
  int line = 0;                  // from 1
  std::string qualname;          // of the code object it came from
  std::vector<int32_t> offsets;  // byte offsets in that code object, ascending
  std::vector<int> lines;        // original lines, ascending
};

struct Binding {  // a name in the source that stands for an object without a literal, or for a name that is no identifier
  std::string name;
  py::Ref value;  // the object; for a renamed variable its original name
  bool renamed = false;
};

struct Decompiled {
  std::string source;
  bool structured = false;
  std::string reason;  // why there is no structured form
  std::vector<LineEntry> line_map;
  std::vector<Binding> bindings;
  std::set<Choice> choices;  // what was decided, and could be decided otherwise
};

// Decompiles `code`, nested code objects included. False with a Python exception set only when the code object cannot be decoded or
// memory runs out; otherwise true, and `out->structured` says whether there is a source.
//
// The source of a function is a `def`, of a lambda or a comprehension an expression statement, of a class body a `class` statement
// without bases, of a module the module's text. Free variables stay free: the caller wraps the source where they must be bound.
bool structured_source(PyObject* code, const Options& options, Decompiled* out);

}  // namespace pellucid::decompile
