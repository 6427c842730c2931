// The decompilation of one code object: nodes of straight-line code executed symbolically, conditions and values joined across branches,
// and the statements made of them. Knows the flow graph and the syntax tree, not how source is printed.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decompile/ast.h"
#include "decompile/choices.h"
#include "decompile/flow.h"

namespace pellucid::decompile {

enum class CodeKind : uint8_t { kFunction, kLambda, kComprehension, kClass, kModule };

struct Session {  // what the code objects of one decompilation share
  Arena arena;
  Choices choices;
  int depth = 0;          // of nested calls, bounded: recursion must not overflow
  bool hopeless = false;  // an inner function has no structured form, however it is read
  bool again = false;     // decisions were turned around: the code has a form
  size_t steps = 0;       // instructions executed
};

struct Reading {                // of one function: what was taken where there is a choice; see search.cpp
  std::vector<uint8_t> script;  // to take, in the order in which places are met; the first reading behind that
  std::vector<uint8_t> taken, among;
  size_t blocks = 0;  // that got a form
};

class DepthGuard {
 public:
  explicit DepthGuard(Session& session) : session_(session) {
    if (++session.depth > kLimit) {
      --session.depth;
      no_form("it is nested too deeply");
    }
  }
  ~DepthGuard() { --session_.depth; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  static constexpr int kLimit = 1500;
  Session& session_;
};

enum class End : uint8_t {
  kStop,       // returns, raises, or ends a handler
  kGo,         // goes on at `to`
  kCondition,  // falls to `fall` if `test` holds, else jumps to `jump`
};

struct Node {  // code that is executed from its first block to the end of its last one without anything of structure between
  int first = -1, last = -1;
  Stmts stmts;
  Exprs stack;
  Expr* entry = nullptr;  // what was on top of the stack before it
  End end = End::kStop;
  int to = -1;
  bool taken = false;  // `to` is reached by a jump instruction
  const Instruction* jump_at = nullptr;
  Expr* test = nullptr;
  int fall = -1, jump = -1;
  // JUMP_IF_x_OR_POP: `value` stays on the stack when it jumps, which it does if the value is true (`jump_if`) or false.
  bool keep = false, jump_if = false;
  Expr* value = nullptr;
  std::vector<int> blocks;

  // An assignment of several values whose targets are being stored.
  std::vector<std::pair<Expr*, Expr*>> group;  // target, value
  size_t group_size = 0;
};

struct Loop {
  int header = -1, follow = -1;
};

class BlockSet {  // of blocks, emptied at no cost: most are small and there is one for every statement
 public:
  void reset(size_t blocks) {
    if (stamps_.size() != blocks) stamps_.assign(blocks, 0);
    ++stamp_;
  }
  bool has(int block) const { return stamps_[static_cast<size_t>(block)] == stamp_; }
  bool add(int block) {  // whether it is new
    if (has(block)) return false;
    stamps_[static_cast<size_t>(block)] = stamp_;
    return true;
  }

 private:
  std::vector<uint32_t> stamps_;
  uint32_t stamp_ = 0;
};

class Structurer {
 public:
  // `naming`: values that stay on the stack get names.
  Structurer(Session& session, Function& function, CodeKind kind, bool naming, Reading* reading);
  // Fills function.body (or result), signature and docstring.
  void run();
  Expr* comprehension(Function* function);
  std::vector<Instruction> take_instructions() { return std::move(flow_.ins); }

 private:
  // execute.cpp, operations.cpp: one instruction.
  void execute(Node& node, int index);
  Expr* made_bool(Expr* value, const Instruction& in);
  bool execute_old(Node& node, const Instruction& in);  // 3.8 only
  void unpack_parts(Node& node, ExprKind kind, uint8_t op, const Instruction& in);
  void unpack_maps(Node& node, const Instruction& in);
  bool execute_data(Node& node, const Instruction& in);   // displays, f-strings, unpacking
  bool execute_names(Node& node, const Instruction& in);  // loads, stores and deletes
  bool execute_calls(Node& node, const Instruction& in);
  bool execute_control(Node& node, const Instruction& in);  // returns, exceptions, with, generators, imports
  void call(Node& node, const Instruction& in, size_t n_args, PyObject* keyword_names);
  void call_ex(Node& node, const Instruction& in, bool has_keywords);
  Expr* finish_call(Expr* made, const Instruction& in);
  void make_function(Node& node, const Instruction& in);
  void take_declarations(const Function& comprehension);
  Expr* comprehension_of(Function* function, Expr* iterable, const Instruction& in);
  Expr* comprehension_from(Stmts* body, CompKind kind, Expr* iterable, const Instruction& in);
  bool inlined_comprehension(Node& node);
  // type_parameters.cpp
  bool execute_types(Node& node, const Instruction& in);
  void type_parameters(const Expr* tuple, std::vector<TypeParameter>* out);
  Expr* call_type_scope(const Expr* scope, const Exprs& args, const Instruction& in);
  bool store_type_alias(Node& node, Expr* target, Expr* value, const Instruction& in);
  bool tuple_of(Expr* tuple, Exprs* out);
  void set_annotations(Function* function, Expr* annotations);
  Expr* starred_of(Expr* value);
  void place_folded(Node& node, const Expr* tuple, Exprs& items);
  void place_annotations(Node& node, const Expr* tuple, Function* function);
  void keyword_defaults(Function* function, const Expr* values);
  void pop_top(Node& node, const Instruction& in);

  Expr* make(ExprKind kind, const Instruction& in) {
    Expr* made = arena_.expr(kind);
    made->at = &in;
    return made;
  }
  Expr* name(const std::string& text, const Instruction& in);
  Expr* constant(PyObject* object, const Instruction& in);
  Expr* combine(ExprKind kind, const Instruction& in, Exprs items);
  Expr* left_over(Expr* value);
  bool keeps_constants(const Instruction& in, const Exprs& items) const;
  void order_items(Expr* made);
  void order_joined(Expr* made);
  void push(Node& node, Expr* value) { node.stack.push_back(value); }
  Expr* pop_raw(Node& node);
  Expr* pop(Node& node) { return value_of(pop_raw(node)); }
  Exprs pop_many(Node& node, size_t count);
  Expr* peek(Node& node, size_t depth);
  Expr* value_of(Expr* expr);
  void emit(Node& node, Stmt* stmt, const Instruction& in);
  void store(Node& node, Expr* target, const Instruction& in);
  void store_value(Node& node, Expr* target, Expr* value, const Instruction& in);
  bool store_special(Node& node, Expr* target, Expr* value, const Instruction& in);
  bool drains(const Node& node, int index) const;
  void close_group(Node& node, const Instruction& in);
  void unpack(Node& node, size_t before, int star, const Instruction& in);
  static bool is_frame(const Expr* expr);
  std::string text_of(PyObject* object) const;
  std::string name_at(uint32_t index) const;
  std::string local_at(uint32_t index) const;

  // name_values.cpp
  Expr* atom(const std::string& text, const Instruction& in);
  Expr* another(Expr* expr);
  Expr* assign_name(Node& node, Expr* value, const Instruction& in);
  void name_stack(Node& node, const Instruction& in);
  static void leave_nothing(const Node& node);
  void keep_value_of(Node& node, const std::string& text, const Instruction& in);
  bool execute_moves(Node& node, int index);
  void name_before(Node& node, int to, const Instruction& in);
  bool is_value_name(const Expr* expr) const;
  void settle_names(Stmts& body);
  void settle_names(Stmts& stmts, std::unordered_map<std::string, int>& uses);
  Expr** evaluated_first(Stmt* stmt, const std::string& text) const;
  void count_names(const Expr* expr, std::unordered_map<std::string, int>* uses) const;
  void count_names(const Stmts& body, std::unordered_map<std::string, int>* uses) const;

  // expressions.cpp: values and conditions across branches.
  Node* node_at(int block, const Exprs& stack);
  Node* child(int block, const Exprs& stack, int region);
  void build(Node& node, int block);
  void absorb(Node& node, int block);
  bool continues_comparison(const Node& node) const;
  void reduce(Node& node);
  bool reduce_once(Node& node);
  bool same_target(int a, int b) const;
  bool join_conditions(Node& node, Node& other);
  bool join_comparison(Node& node, Node& other);
  void skip_jump(Node& node);
  void add_unreached_value(Node& node, int jump);  // these three in old_constants.cpp
  bool join_constant_branch(Node& node);
  Expr* constant_test(Expr* test, bool guards);
  bool join_value(Node& node, Node& other);
  bool join_branches(Node& node, Node& fall, Node& jump);
  bool can_absorb(int from, int block) const;
  // Decides about what an instruction says: see choices.h.
  bool decide(ChoiceKind kind, const Instruction* about, bool likely) const {
    return choices_.decide(kind, static_cast<int>(about - flow_.ins.data()), likely);
  }
  const Instruction* last_in(int block) const { return &flow_.ins[static_cast<size_t>(flow_.blocks[static_cast<size_t>(block)].end) - 1]; }
  static bool same_stack(const Exprs& a, const Exprs& b, size_t count);
  Expr* negate(Expr* expr, const Instruction* at);
  Expr* boolean(BoolOp op, Expr* left, Expr* right);
  void take(Node& node, Node& other);

  // statements.cpp: sequences of nodes, with the statements that conditions and loops make. `falls` is set where execution reaches the
  // block `next` behind the sequence.
  Stmts sequence(int block, Exprs stack, int next, int region, bool* falls);
  int make_if(Node& node, Stmts* out, int next, bool* falls);
  int behind_else(const Node& node) const;
  int dead_jump_before(int block) const;  // these eight in old_else.cpp
  bool returns_before_dead_code(int block) const;
  int old_end(int region, int block, size_t depth);
  bool has_old_else(int jump) const;
  bool has_empty_else(int jump) const;
  bool stands_before_continue(const Node& node, const Stmts& guarded);
  void drop_inner_exits(std::vector<int>* exits);
  int end_of_clauses(int otherwise) const;
  void find_else(int region, int handlers_to, int* normal, int* follow) const;
  int merge_of(const Node& node, int next, std::vector<int>* others) const;
  int make_loop(int header, Exprs* stack, Stmts* out, int next, bool* falls);
  std::vector<int> loop_exits(int header, bool iterates, int exit);
  int choose_follow(const std::vector<int>& exits, int exit, int next);
  int likely_follow(const std::vector<int>& exits, int exit, int next) const;
  void take_true(Stmt* loop) const;
  const Instruction* explicit_jump(int to, const Instruction* jump, int next) const;
  bool continues(int from, int to, int next) const;
  bool leave(int to, const Instruction* jump_at, const Instruction* about, int next, Stmts* out, bool* falls);

  // match.cpp
  bool test_case(Node& node, int index);
  static const Expr* case_test(const Node& node);
  bool join_guard(Node& node, Node& guard);
  void make_case(Stmt* made, bool ends);
  void drop_subject(Node& node, int to) const;
  void settle_matches(Stmts& body);
  bool take_cases(Stmts& list, size_t index, Stmt* whole);
  void add_default(Stmt* whole, const CodeCase& last, Stmts body);
  bool is_default(const Instruction* nop, const CodeCase& last, bool alone) const;
  bool keep_default(const Node& node, int jump, int behind, Stmts* out);
  Pattern* pattern_of(int index);
  Pattern* bare_pattern(const CodePattern& code);
  Pattern* sequence_of(const CodePattern& code);
  Expr* value_of(const PatternValue& value);

  // exceptions.cpp
  int make_try(int region, int block, Exprs* stack, Stmts* out, int next, bool* falls);
  int make_with(int region, int block, Exprs* stack, Stmts* out, int next, bool* falls);
  int behind_handlers(int otherwise, int handler) const;
  int make_except(int region, int block, Exprs* stack, Stmts* out, int next, bool* falls);
  void star_clauses(Stmt* made, int clause, Exprs stack, int own);
  int make_finally(int region, int block, Exprs* stack, Stmts* out, int next, bool* falls);
  int entered_region(int from, int block) const;
  std::vector<std::pair<int, int>> leaving_edges(int region, int entry);
  void move_to_else(Stmt* made, int region);
  void move_behind(Stmt* made, int region, Stmts* out);
  void bar(int block, int by);
  bool drops_iterator(int block) const;
  bool is_exit(int block) const;
  bool leaves_with(int index) const;
  int statement_column(int block, bool behind_jump = false) const;
  std::vector<bytecode::Position> clause_places(int region) const;
  const bytecode::Position* place_of(int block) const;
  bool leaves_finally(int from, int block) const;
  void mark_leaving(int from, int block, const Exprs& stack, Stmts* out);
  void strip_handler(Stmts& body, bool named);
  void strip_with(Stmts& body, int number);
  int normal_end(int region, int block, size_t depth);

  // finally_copies.cpp
  void strip_finally(Stmts& body, int region, const Stmts& final);
  void settle(Stmts& body);
  void strip_copy(Stmts& body, size_t at, const Stmts& final);

  // try_else.cpp
  int named_by(const Instruction& in) const;
  size_t else_by_names(const Stmt* stmt, const Stmts& body, size_t behind);
  size_t else_by_columns(const Stmt* stmt, const Stmts& body, size_t behind) const;
  void find_else_clauses(Stmts& body);

  // annotations.cpp
  void find_annotated_items(Stmts& body);
  void find_annotated_attributes(Stmts& body);

  // unreached.cpp
  Stmts unreached_statements(int i, const Exprs& stack);
  int unreached_end(int region) const;
  void add_unreached(int i, const Exprs& stack, Stmts* out) {
    const Stmts more = unreached_statements(i, stack);
    out->insert(out->end(), more.begin(), more.end());
  }
  std::vector<uint8_t> stores_of_comprehensions() const;
  void find_unreached_names();
  void find_unreached_cells();
  bool guards_unreached_names(Stmt* nop);
  void add_unreached_names(ChoiceKind kind, const Instruction* about, Stmts* out);
  void place_unreached_names(Stmts& body);
  void add_unreached_names(Stmts* body);

  // finish.cpp: what can be said only when the whole is known.
  void finish(Stmts& body);
  void keep_generator(Stmts& body);
  void tidy(Stmts& body, bool tail, int32_t before);
  void signature();
  void declare_names();
  void add_unused_free();
  void add_unreached_yield(Stmts* body);
  bool is_old_pass(const Stmt* nop, const Stmt* next) const;
  bool is_new_pass(const Stmt* nop) const;
  bool likely_pass(const Stmt* nop, const Stmt* next) const;
  bool has_place_of_another(const Instruction* nop) const;
  bool is_last_pass(const Stmt* end) const;
  Expr* lambda_result(const Stmts& body);

  size_t choose(size_t among);
  int choose_block(int likeliest, const std::vector<int>& others);

  Session& session_;
  CodeChoices choices_;
  Arena& arena_;
  Function& function_;
  const bytecode::Code& code_;
  CodeKind kind_;
  Reading* reading_;
  Flow flow_;
  int32_t clock_ = 0;
  int end_stack_ = 0;
  std::set<std::tuple<int, int, int>> with_places_;  // lines and columns of with statements
  int last_dead_continue_ = -1;                      // the last `continue` found that nothing reaches
  PyObject* keyword_names_ = nullptr;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unordered_map<int, Node*> cached_;  // by first block
  std::vector<int> edges_;                 // ordinary edges that still lead to each block
  std::vector<int> barrier_;               // blocks at which an enclosing statement goes on
  std::vector<uint8_t> placed_;
  BlockSet inside_, seen_;
  std::vector<uint8_t> jumped_to_;         // by instruction: by an unconditional jump
  std::vector<std::vector<int>> guarded_;  // by region: its blocks
  std::vector<int> region_of_handler_;     // by block, -1: no handler
  std::vector<Loop> loops_;
  std::vector<std::string> globals_, nonlocals_;
  std::vector<std::string> unreached_names_, unreached_locals_, unreached_cells_;
  bool needs_unreached_ = false;
  std::vector<int> first_lines_;  // by name and variable: the first line that has it
  std::set<int> kept_unreached_;  // instructions that nothing reaches but stand in the body
  int inlining_ = 0;              // comprehensions around the code at hand

  const bool naming_;
  std::string value_prefix_;  // of the names
  Exprs value_names_;         // everywhere they stand
  int n_values_ = 0;
  int stored_already_ = -1;  // the index of a store that its COPY has made
};

// For all who build trees.
void place_branches(Stmts& body, bool behind_elif);  // else_columns.cpp, as what follows
// Where a statement begins, by what the place of its first token says; -1: that is not known.
int beginning_of(const Stmt* stmt);
bool equal(const Expr* a, const Expr* b);
bool equal(const Stmts& a, size_t from, const Stmts& b);
bool copied_with_tail(const Stmts& body, size_t index, const Stmts& final, Stmts* tail);
void decompile_function(Session& session, Function& function, CodeKind kind);
void add_to_signature(Function& function);
bool are_keywords(const Expr* dict);       // whether its items may stand as keyword arguments
bool is_keyword(const std::string& name);  // no identifier for that; print_expr.cpp
bool is_type_scope(const std::string& name);
CodeKind kind_of(const bytecode::Code& code);
Expr* lone_comprehension(Session& session, Function& function);
std::string utf8(PyObject* text);
CodeChoices choices_of(Session& session, const bytecode::Code& code);

}  // namespace pellucid::decompile
