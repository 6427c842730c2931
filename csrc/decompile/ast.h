// The syntax tree the decompiler builds and prints: expressions and statements of every Python from 3.8 to 3.13, and the few kinds that
// exist only while code is being executed symbolically. Nodes live in an Arena and point at each other freely. Knows nothing of bytecode
// beyond the instruction a node came from.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "bytecode/code.h"
#include "py/ref.h"

namespace pellucid::decompile {

struct Expr;
struct Stmt;
struct Function;
struct Pattern;
using Exprs = std::vector<Expr*>;
using Stmts = std::vector<Stmt*>;

enum class ExprKind : uint8_t {
  kConst,        // object
  kName,         // text
  kAttribute,    // items[0].text
  kSubscript,    // items[0][items[1]]
  kSlice,        // items: lower, upper, step, each may be null
  kCall,         // items[0](items[1:]); kKeyword and kStarred among the arguments
  kKeyword,      // text=items[0]; empty text: **items[0]
  kStarred,      // *items[0]
  kBinary,       // items[0] op items[1]
  kUnary,        // op items[0]
  kBool,         // items joined by op
  kCompare,      // items[0] ops[0] items[1] ops[1] ...
  kConditional,  // items[1] if items[0] else items[2]
  kTuple,
  kList,
  kSet,
  kDict,           // items: key, value, ...; a null key: **value
  kLambda,         // function
  kComprehension,  // op: CompKind; items[0] element (items[1] the value of a dict's element); clauses
  kJoined,         // f-string: kConst and kFormatted
  kFormatted,      // {items[0]!op:items[1]}; items[1] may be missing
  kYield,          // items[0] may be missing
  kYieldFrom,
  kAwait,
  kNamed,  // (items[0] := items[1])

  // Only on the symbolic stack.
  kNull,            // PUSH_NULL, or what stands beside a method
  kException,       // what a handler finds on the stack; number: its block
  kExceptionMatch,  // exception matches items[0]; op: 1 for except*
  kIterator,        // of the loop whose header is block `number`; items[0]: what it iterates over
  kIterable,        // iter(items[0]); op: 1 for async
  kNext,            // the loop variable's value
  kWithEnter,       // the value of `with`; number: which with
  kWithExit,
  kFunction,     // MAKE_FUNCTION; function
  kBuildClass,   // LOAD_BUILD_CLASS
  kClass,        // the call of it; items: bases and keywords, function: the body
  kImport,       // object: fromlist, text: module, number: level; op: ImportOp
  kImportFrom,   // text: the name taken from items[0]
  kUnpacked,     // element `number` of the unpacking items[0]
  kUnpack,       // items: targets so far (null: open); number: index of the star or -1; the value is `value`
  kChain,        // a value already stored in items[1:]; items[0]: the value
  kAugmented,    // items[0] op= items[1], not stored yet
  kAssertion,    // LOAD_ASSERTION_ERROR
  kClosure,      // LOAD_CLOSURE; text
  kAnnotations,  // a function's annotations as a tuple
  kDecorated,    // items: decorators and then a kFunction or kClass
  kMatchValue,   // the subject of a match statement items[0], or (op: 1) the test for case `number` of it
  kOther,        // known by `text` to those who made it
};

enum class CompKind : uint8_t { kList, kSet, kDict, kGenerator };

struct Clause {  // for target in iterable if conditions
  Expr* target = nullptr;
  Expr* iterable = nullptr;
  Exprs conditions;
  bool is_async = false;
};

struct Expr {
  ExprKind kind = ExprKind::kConst;
  uint8_t op = 0;
  mutable bool printed = false;  // an expression stands once: a value used twice is no expression
  int32_t number = 0;
  int32_t first = INT32_MAX, last = -1;       // when evaluation begins and ends, in the order of execution; a constant has neither
  const bytecode::Instruction* at = nullptr;  // the instruction that made it
  PyObject* object = nullptr;                 // kept alive by the code objects of the decompilation
  Function* function = nullptr;
  Expr* value = nullptr;
  std::string text;
  Exprs items;
  std::vector<uint8_t> ops;
  std::vector<Clause> clauses;
};

enum class StmtKind : uint8_t {
  kExpression,  // value
  kAssign,      // targets = value
  kAugmented,   // targets[0] op= value
  kAnnotated,   // targets[0]: annotation [= value]
  kReturn,      // value may be null
  kRaise,       // value, cause
  kDelete,      // targets
  kPass,
  kIf,          // value: body else orelse
  kWhile,       // value may be null: True
  kFor,         // targets[0] in value
  kTry,         // body, handlers, orelse, final
  kWith,        // withs: body
  kFunction,    // function, decorators
  kClass,       // function, decorators, targets: bases and keywords
  kImport,      // names
  kImportFrom,  // text, number: level, names
  kGlobal,      // names
  kNonlocal,    // names
  kAssert,      // value, cause: message
  kBreak,
  kContinue,
  kMatch,      // value, cases
  kTypeAlias,  // targets[0] = value; function: type parameters

  // Marks that say where code leaves something; gone before printing.
  kNop,          // an instruction without effect that has a line of its own
  kLeave,        // leaves the region `number`
  kDropIterator  // leaves the loop whose header is block `number`
};

struct Handler {  // except type as name
  Expr* type = nullptr;
  std::string name;
  Stmts body;
};

struct WithItem {
  Expr* context = nullptr;
  Expr* target = nullptr;
};

struct Case {
  Pattern* pattern = nullptr;
  Expr* guard = nullptr;
  Stmts body;
};

struct Alias {
  std::string name, as;
};

struct Stmt {
  StmtKind kind = StmtKind::kPass;
  uint8_t op = 0;
  bool is_async = false;
  bool is_star = false;        // except*
  bool explicit_jump = false;  // break or continue that stands in the source, as the position of its jump says
  int32_t number = 0;
  int32_t order = 0;  // when it was executed, on the scale of Expr::first
  const bytecode::Instruction* at = nullptr;
  const bytecode::Instruction* header = nullptr;  // kTry, kWhile: what is left of `try:` or `True`
  Expr* value = nullptr;
  Expr* cause = nullptr;
  Expr* annotation = nullptr;
  Function* function = nullptr;
  std::string text;
  Exprs targets, decorators;
  Stmts body, orelse, final;
  std::vector<Handler> handlers;
  std::vector<WithItem> withs;
  std::vector<Case> cases;
  std::vector<Alias> names;
};

enum class PatternKind : uint8_t { kValue, kSingleton, kSequence, kMapping, kClass, kStar, kAs, kOr };

struct Pattern {
  PatternKind kind = PatternKind::kAs;
  const bytecode::Instruction* at = nullptr;  // the first test
  Expr* value = nullptr;                      // kValue, kSingleton, kClass: the class
  std::string name;                           // kAs (items: what it names, or none), kStar, kMapping: **rest; empty: none or `_`
  bool has_rest = false;
  std::vector<Pattern*> items;
  std::vector<Expr*> keys;            // kMapping
  std::vector<std::string> keywords;  // kClass: names of the last items
};

struct Parameter {
  std::string name;
  Expr* annotation = nullptr;
  Expr* default_value = nullptr;
};

struct TypeParameter {
  std::string name;
  uint8_t stars = 0;
  Expr* bound = nullptr;
  Expr* default_value = nullptr;
};

struct Function {  // a function, lambda, comprehension, class body or module
  bytecode::Code code;
  std::vector<bytecode::Instruction> instructions;  // what the nodes of the body point at
  std::string name, qualname;
  Exprs defaults;  // of the last positional parameters
  std::vector<std::pair<std::string, Expr*>> kw_defaults;
  std::vector<std::pair<std::string, Expr*>> annotations;
  std::vector<TypeParameter> type_parameters;
  std::vector<Parameter> positional, keyword_only;
  int posonly = 0;
  Parameter star, star_star;
  bool has_star = false, has_star_star = false;
  bool is_async = false;
  PyObject* docstring = nullptr;
  uint8_t kind = 0;    // CodeKind
  Stmts declarations;  // global and nonlocal
  Stmts body;
  Expr* result = nullptr;  // lambda: its value
};

class Arena {
 public:
  Expr* expr(ExprKind kind) {
    Expr& made = exprs_.emplace_back();
    made.kind = kind;
    return &made;
  }
  Stmt* stmt(StmtKind kind) {
    Stmt& made = stmts_.emplace_back();
    made.kind = kind;
    return &made;
  }
  Function* function() { return &functions_.emplace_back(); }
  Pattern* pattern(PatternKind kind) {
    Pattern& made = patterns_.emplace_back();
    made.kind = kind;
    return &made;
  }
  PyObject* keep(py::Ref object) {
    kept_.push_back(std::move(object));
    return kept_.back().get();
  }

 private:
  std::deque<Expr> exprs_;
  std::deque<Stmt> stmts_;
  std::deque<Function> functions_;
  std::deque<Pattern> patterns_;
  std::vector<py::Ref> kept_;
};

// Operators, by the order of the tables in print.cpp.
enum BinaryOp : uint8_t {
  kAdd,
  kBitAnd,
  kFloorDivide,
  kLeftShift,
  kMatrixMultiply,
  kMultiply,
  kModulo,
  kBitOr,
  kPower,
  kRightShift,
  kSubtract,
  kDivide,
  kBitXor
};
enum UnaryOp : uint8_t { kPositive, kNegative, kInvert, kNot };
enum BoolOp : uint8_t { kAnd, kOr };
enum CompareOp : uint8_t { kLess, kLessEqual, kEqual, kNotEqual, kGreater, kGreaterEqual, kIn, kNotIn, kIs, kIsNot };

struct NoForm {  // thrown inside of the decompiler only: there is no structured form, and why
  std::string reason;
};

[[noreturn]] inline void no_form(std::string reason) { throw NoForm{std::move(reason)}; }

}  // namespace pellucid::decompile
