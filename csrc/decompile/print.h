// From syntax trees to source text with no more parentheses than Python needs, and the map from its lines back to bytecode. Knows
// nothing of bytecode but where a node came from.
#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "decompile/ast.h"
#include "decompile/decompile.h"
#include "decompile/structure.h"

namespace pellucid::decompile {

enum Precedence : uint8_t {
  kPrecNamed,
  kPrecTuple,  // also yield
  kPrecTest,   // lambda, conditional expression
  kPrecOr,
  kPrecAnd,
  kPrecNot,
  kPrecCompare,
  kPrecBitOr,
  kPrecBitXor,
  kPrecBitAnd,
  kPrecShift,
  kPrecSum,
  kPrecTerm,
  kPrecUnary,
  kPrecPower,
  kPrecAwait,
  kPrecAtom,
};

class Printer {
 public:
  // `turned`: may say which code objects are printed with the original's lines, or without them.
  explicit Printer(int version, bool layout = false, const std::set<Choice>* turned = nullptr)
      : version_(version), layout_(layout), turned_(turned) {}
  void function(const Function& function);  // a whole unit
  void expression(const Function& function, const Expr* e);
  Decompiled take();
  static const bytecode::Instruction* leftmost(const Expr* expr);

  struct Joint {  // where a line may be broken
    enum Kind : uint8_t { kOpen, kComma, kClose } kind;
    size_t at;  // in the text: the bracket, or the comma
  };

 private:
  struct Mark {
    int line;
    const Function* function;
    int32_t offset;
    int original;
    size_t at;  // in the text
  };

  // print.cpp
  void statement(const Stmt* stmt);
  void body(const Stmts& stmts, const Function* function);
  void block(const Stmts& stmts, const Function* function = nullptr);
  bool wants_layout(const Function& function) const;
  void definition(const Stmt* stmt);
  void class_definition(const Stmt* stmt);
  void condition(const Expr* test);
  void if_statement(const Stmt* stmt);
  void try_statement(const Stmt* stmt);
  void with_statement(const Stmt* stmt);
  void import_names(const std::vector<Alias>& names, bool dotted);
  void docstring(const Function& function);
  void parameters(const Function& function, bool annotated);
  void type_parameters(const Function& function);
  void annotation(const Expr* expr);
  void begin_line();
  void end_line();
  void mark(const bytecode::Instruction* at);

  // print_match.cpp
  void match_statement(const Stmt* stmt);
  void pattern(const Pattern* pattern, int least);
  void mapping_pattern(const Pattern* pattern);
  void class_pattern(const Pattern* pattern);
  void pattern_value(const Expr* value);

  // layout.cpp
  static int first_line(const Stmt* stmt);
  static const bytecode::Instruction* place_of_return(const Stmt* stmt);
  void place(const bytecode::Instruction* at);
  void whole(const Expr* expr, int least);
  void continue_lines();
  bool stands_behind(const Stmts& stmts, const Function* function) const;
  bool stands_beside(const Stmt* before, const Stmt* stmt) const;
  void open(char bracket) {
    joints_.push_back({Joint::kOpen, out_.size()});
    out_ += bracket;
    ++brackets_;
  }
  void comma() {
    joints_.push_back({Joint::kComma, out_.size()});
    out_ += ", ";
  }
  void close(char bracket) {
    joints_.push_back({Joint::kClose, out_.size()});
    out_ += bracket;
    --brackets_;
  }

  // wrap.cpp
  void wrap_line();

  // print_boolean.cpp
  void boolean(const Expr* expr);
  const Expr* denied(const Expr* expr);
  static size_t denied_items(const Expr* expr, size_t from);

  // print_expr.cpp
  void expr(const Expr* expr, int least);
  void expr_inner(const Expr* expr);
  int precedence(const Expr* expr) const;
  void items(const Exprs& items, size_t from, int least);
  void tuple(const Exprs& items, bool bare);
  void call(const Expr* expr);
  void subscript(const Expr* index);
  void subscript_item(const Expr* item);
  void slice(const Expr* expr);
  void lambda(const Expr* expr);
  void comprehension(const Expr* expr);
  void clauses(const Expr* expr);
  void constant(PyObject* object, int least);
  bool several_lines(const Expr* expr);
  int constant_precedence(PyObject* object) const;
  void joined(const Expr* expr);
  static bool is_percent_format(const Expr* expr);
  static bool would_be_formatted(const Expr* expr);
  void constant_text(PyObject* text);
  void percent_format(const Expr* expr);
  bool joined_pieces(const Expr* expr, const std::string& quote, bool spec, std::string* out, bool* clash);
  std::string text_of(const Expr* expr, int least);
  static std::string triple_quoted(const std::string& text, const std::string& escaped);
  std::string repr(PyObject* object);
  std::string bound(PyObject* object);
  std::string identifier(const std::string& name);
  std::string unmangled(const std::string& name);

  int version_;
  bool layout_;
  const std::set<Choice>* turned_;
  int original_ = 0;           // the original's line that printing has come to; 0: none yet in this statement
  int brackets_ = 0;           // that are open
  size_t statement_ = 0;       // where the statement begins in `out_`
  std::vector<Joint> joints_;  // of the statement
  bool in_text_ = false;       // inside of an f-string
  bool inline_ = false;        // the statement stands behind another or its header
  std::string out_;
  int line_ = 1;
  int indent_ = 0;
  int depth_ = 0;
  const Function* function_ = nullptr;
  std::string class_name_;
  std::vector<Mark> marks_;
  std::vector<const Expr*> printed_;
  std::vector<Binding> bindings_;
  std::unordered_map<std::string, std::string> renamed_;
  std::map<PyObject*, std::string> objects_;
  std::deque<Expr> made_;  // that are nowhere in the tree
};

}  // namespace pellucid::decompile
