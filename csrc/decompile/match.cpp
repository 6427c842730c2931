// match statements: each case is an `if` whose test is a pattern, until the whole is known; then those that test one subject become the
// cases of one statement. What patterns are is known from patterns.cpp.
#include <algorithm>

#include "decompile/statements.h"
#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

constexpr uint8_t kTest = 1;  // Expr::op of kMatchValue: not the subject, but the test of a case
// Stmt::op of kMatch, until all cases are found.
constexpr uint8_t kBinds = 1;  // a pattern that always matches; what follows is its guard and body
constexpr uint8_t kEnds = 2;   // the body does not go on: what follows is reached only where the pattern does not match

size_t at(int index) { return static_cast<size_t>(index); }

const Expr* test_in(const Expr* test) {
  if (test != nullptr && test->kind == ExprKind::kBool && !test->items.empty()) test = test->items[0];
  return test != nullptr && test->kind == ExprKind::kMatchValue && test->op == kTest ? test : nullptr;
}

// The line on which an expression begins.
int first_line(const Expr* expr) {
  int line = expr->at != nullptr && expr->at->position.line > 0 ? expr->at->position.line : INT32_MAX;
  for (const Expr* item : expr->items) {
    if (item != nullptr) line = std::min(line, first_line(item));
  }
  return line;
}

size_t behind_nops(const Stmts& stmts, size_t from) {
  while (from < stmts.size() && stmts[from]->kind == StmtKind::kNop) ++from;
  return from;
}

// The column of a statement, as far as an instruction of it tells; INT32_MAX: nothing does.
int column_of(const Stmt* stmt) {
  const Instruction* in = stmt->at;
  int keyword = 0;
  if (stmt->kind == StmtKind::kIf || stmt->kind == StmtKind::kMatch) {
    const Expr* first = stmt->value;
    while (!first->items.empty() && first->items[0] != nullptr) first = first->items[0];
    in = first->at;
    keyword = stmt->kind == StmtKind::kIf ? 3 : 6;
  }
  if (in == nullptr || in->position.line <= 0 || in->position.column < 0) return INT32_MAX;
  return in->position.column - keyword;
}

// Where the body of a last case that always matches ends, as far as columns tell: whatever goes on behind it might as well stand in it.
size_t end_of_case(const Stmts& stmts, size_t from, const Instruction* pattern) {
  constexpr int kCase = 5;  // `case `
  size_t end = from;
  while (end < stmts.size() && (end == from || column_of(stmts[end]) > pattern->position.column - kCase)) ++end;
  return end;
}

}  // namespace

// The test of a case that the node ends with; null: it is no case.
const Expr* Structurer::case_test(const Node& node) { return node.end == End::kCondition ? test_in(node.test) : nullptr; }

// Executes the instruction that stands for a pattern. True: the node ends here, with a conditional jump.
bool Structurer::test_case(Node& node, int index) {
  const Instruction& in = flow_.ins[at(index)];
  const CodeCase& one = flow_.cases[at(flow_.case_of[at(index)])];
  Expr* subject = peek(node, 1);
  if (subject->kind != ExprKind::kMatchValue) {
    subject = make(ExprKind::kMatchValue, in);
    subject->items = {pop(node)};
    subject->first = subject->items[0]->first;
    subject->last = subject->items[0]->last;
    push(node, subject);
  }
  if (naming_ && !std::all_of(node.stack.begin(), node.stack.end(), is_frame)) no_form("a match statement over values on the stack");
  if (!one.copies) pop_raw(node);
  Expr* test = make(ExprKind::kMatchValue, in);
  test->op = kTest;
  test->number = flow_.case_of[at(index)];
  test->items = {subject};
  test->first = test->last = ++clock_;
  if (one.fail < 0) {
    Stmt* made = arena_.stmt(StmtKind::kMatch);
    made->op = kBinds;
    made->number = test->number;
    made->value = subject;
    made->cases.resize(1);
    made->cases[0].pattern = pattern_of(one.pattern);
    emit(node, made, in);
    return false;
  }
  const Block& block = flow_.blocks[at(flow_.block_of[at(index)])];
  node.end = End::kCondition;
  node.fall = block.fall;
  node.jump = block.jump;
  node.keep = node.jump_if = false;
  node.test = node.value = test;
  if (naming_) {
    name_before(node, block.fall, in);
    name_before(node, block.jump, in);
  }
  return true;
}

// A condition behind a pattern that goes on where the pattern does if it fails: a guard, which stands behind the pattern. Where this is the
// last case it might as well be an `if` in its body; there the line tells.
bool Structurer::join_guard(Node& node, Node& guard) {
  const CodeCase& one = flow_.cases[at(case_test(node)->number)];
  if (guard.end != End::kCondition || !guard.stmts.empty() || guard.keep || guard.test->kind == ExprKind::kExceptionMatch ||
      guard.stack.size() != node.stack.size() || !same_stack(node.stack, guard.stack, node.stack.size()) ||
      flow_.resolve(guard.jump) != flow_.resolve(node.jump)) {
    return false;
  }
  if (!one.copies && first_line(guard.test) > one.line) return false;
  const int jump = node.jump;
  --edges_[at(guard.jump)];
  node.test = node.value = boolean(kAnd, node.test, guard.test);
  take(node, guard);
  node.jump = jump;
  return true;
}

Expr* Structurer::value_of(const PatternValue& value) {
  Node scratch;
  for (int index : value.loads) {
    const Instruction& in = code_.instructions[at(index)];
    if (in.op == Op::LOAD_CONST) {
      if (in.arg >= code_.consts.size()) no_form("a constant out of range");
      PyObject* object = code_.consts[in.arg].get();
      if (value.item >= 0) object = PyTuple_GET_ITEM(object, value.item);
      push(scratch, constant(object, in));
    } else if (!execute_names(scratch, in)) {
      no_form("a pattern with an unknown value");
    }
  }
  if (scratch.stack.size() != 1) no_form("a pattern with an unknown value");
  return scratch.stack[0];
}

Pattern* Structurer::sequence_of(const CodePattern& code) {
  Pattern* made = arena_.pattern(PatternKind::kSequence);
  const size_t length = static_cast<size_t>(code.length);
  made->items.assign(length, nullptr);
  size_t star = length;
  if (code.open) {
    for (const auto& [distance, item] : code.back) star = std::min(star, length - std::min(length, at(distance)));
  }
  for (const auto& [index, item] : code.front) {
    if (at(index) >= star || made->items[at(index)] != nullptr) no_form("a pattern that looks at one item twice");
    made->items[at(index)] = pattern_of(item);
  }
  for (const auto& [distance, item] : code.back) {
    if (distance < 1 || at(distance) > length || made->items[length - at(distance)] != nullptr)
      no_form("a pattern that looks at one item twice");
    made->items[length - at(distance)] = pattern_of(item);
  }
  for (Pattern*& item : made->items) {
    if (item == nullptr) item = arena_.pattern(PatternKind::kAs);
  }
  if (code.open) {
    Pattern* starred = arena_.pattern(PatternKind::kStar);
    if (code.star >= 0) {
      star = code.front.size();
      const CodePattern& rest = flow_.patterns[at(code.star)];
      if (rest.tested || rest.names.size() > 1) no_form("a star that is more than a name");
      if (!rest.names.empty()) starred->name = pattern_of(code.star)->name;
    }
    made->items.insert(made->items.begin() + static_cast<std::ptrdiff_t>(star), starred);
  }
  return made;
}

Pattern* Structurer::bare_pattern(const CodePattern& code) {
  if (!code.tested) return nullptr;
  Pattern* made = code.kind == PatternKind::kSequence ? sequence_of(code) : arena_.pattern(code.kind);
  switch (code.kind) {
    case PatternKind::kValue:
      made->value = value_of(code.values[0]);
      break;
    case PatternKind::kSingleton:
      made->value = code.values.empty() ? constant(Py_None, code_.instructions[at(code.at)]) : value_of(code.values[0]);
      break;
    case PatternKind::kMapping:
      for (const PatternValue& key : code.values) made->keys.push_back(value_of(key));
      if (code.rest >= 0) {
        const CodePattern& rest = flow_.patterns[at(code.rest)];
        if (rest.tested || rest.names.size() != 1) no_form("the rest of a mapping without a name");
        made->has_rest = true;
        made->name = pattern_of(code.rest)->name;
      }
      break;
    case PatternKind::kClass: {
      made->value = value_of(code.values[0]);
      const Expr* names = value_of(code.values[1]);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names->object); ++i)
        made->keywords.push_back(text_of(PyTuple_GET_ITEM(names->object, i)));
      break;
    }
    default:
      break;
  }
  if (code.kind != PatternKind::kSequence) {
    for (int item : code.items) made->items.push_back(pattern_of(item));
  }
  if (code.at >= 0) made->at = &code_.instructions[at(code.at)];
  return made;
}

Pattern* Structurer::pattern_of(int index) {
  DepthGuard guard(session_);
  const CodePattern& code = flow_.patterns[at(index)];
  Pattern* made = bare_pattern(code);
  if (made == nullptr && code.explicit_any) made = arena_.pattern(PatternKind::kAs);
  for (int store : code.names) {
    const Instruction& in = code_.instructions[at(store)];
    Node scratch;
    push(scratch, make(ExprKind::kMatchValue, in));
    if (!execute_names(scratch, in) || scratch.stmts.size() != 1 || scratch.stmts[0]->kind != StmtKind::kAssign)
      no_form("a capture that is no name");
    Pattern* named = arena_.pattern(PatternKind::kAs);
    named->name = scratch.stmts[0]->targets[0]->text;
    if (made != nullptr) {
      named->items = {made};
      named->at = made->at;
    }
    made = named;
  }
  return made != nullptr ? made : arena_.pattern(PatternKind::kAs);
}

// From an `if` whose test is a pattern to a statement with one case.
void Structurer::make_case(Stmt* made, bool ends) {
  const Expr* test = test_in(made->value);
  Case one;
  one.pattern = pattern_of(flow_.cases[at(test->number)].pattern);
  if (made->value != test) {
    Exprs conditions(made->value->items.begin() + 1, made->value->items.end());
    // Of a last case, what stands on a later line is an `if` in its body.
    size_t own = conditions.size();
    if (!flow_.cases[at(test->number)].copies && made->orelse.empty() && !ends) {
      const auto later = [&](const Expr* condition) { return first_line(condition) > flow_.cases[at(test->number)].line; };
      own = static_cast<size_t>(std::find_if(conditions.begin(), conditions.end(), later) - conditions.begin());
    }
    const auto joined = [&](size_t from, size_t to) {
      if (to - from == 1) return conditions[from];
      Expr* all = arena_.expr(ExprKind::kBool);
      *all = *made->value;
      all->items.assign(conditions.begin() + static_cast<std::ptrdiff_t>(from), conditions.begin() + static_cast<std::ptrdiff_t>(to));
      all->first = all->items[0]->first;
      return all;
    };
    if (own > 0) one.guard = joined(0, own);
    if (own < conditions.size()) {
      Stmt* inner = arena_.stmt(StmtKind::kIf);
      inner->value = joined(own, conditions.size());
      inner->at = inner->value->at;
      inner->order = inner->value->first == INT32_MAX ? 0 : inner->value->first;
      inner->body = std::move(made->body);
      made->body = {inner};
    }
  }
  const CodeCase& code = flow_.cases[at(test->number)];
  const auto block = [&](int index) { return flow_.resolve(flow_.block_of[at(index)]); };
  if (one.guard == nullptr && code.copies && block(code.next) == block(code.fail)) {
    one.guard = constant(Py_False, *test->at);  // the next case is looked at, whether this one matches or not
    made->body.clear();
  }
  one.body = std::move(made->body);
  made->body.clear();
  made->op = ends ? kEnds : 0;
  made->kind = StmtKind::kMatch;
  made->at = test->at;
  made->number = test->number;
  made->value = test->items[0];
  made->cases = {std::move(one)};
}

// Behind a match statement its subject is no longer on the stack, where further cases are looked at it is.
void Structurer::drop_subject(Node& node, int to) const {
  if (node.stack.empty() || node.stack.back()->kind != ExprKind::kMatchValue) return;
  if (flow_.blocks[at(to)].depth < flow_.blocks[at(node.jump)].depth) node.stack.pop_back();
}

// Whether an instruction without effect is what a last `case _` begins with. 3.10 has no columns; there it may be a `pass` too, but where
// only a failed pattern leads to it (`alone`).
bool Structurer::is_default(const Instruction* nop, const CodeCase& last, bool alone) const {
  return nop->position.line > last.line && (spans(nop, 1) || (alone && code_.version == 310));
}

// What is left of a `case _` that does nothing, between where the last test fails and what follows the statement.
bool Structurer::keep_default(const Node& node, int jump, int behind, Stmts* out) {
  const CodeCase& last = flow_.cases[at(case_test(node)->number)];
  const int end = flow_.resolve(behind);
  bool found = false;
  int b = jump;
  Stmts kept;
  for (; b != behind && b != end && flow_.only_jumps(b); b = flow_.blocks[at(b)].fall) {
    for (int i = flow_.blocks[at(b)].start; i < flow_.blocks[at(b)].end; ++i) {
      const Instruction& in = flow_.ins[at(i)];
      if (in.op != Op::NOP || flow_.hidden[at(i)] != 0 || in.position.line < 0) continue;
      found = found || is_default(&in, last, true);
      if (!found) continue;
      Stmt* made = arena_.stmt(StmtKind::kNop);
      made->at = &in;
      made->order = ++clock_;
      kept.push_back(made);
    }
  }
  if (!found || (b != behind && b != end)) return false;
  out->insert(out->end(), kept.begin(), kept.end());
  return true;
}

void Structurer::add_default(Stmt* whole, const CodeCase& last, Stmts body) {
  Case one;
  one.pattern = arena_.pattern(PatternKind::kAs);
  if (!body.empty() && body[0]->kind == StmtKind::kNop && is_default(body[0]->at, last, true)) {
    one.pattern->at = body[0]->at;
    body.erase(body.begin());
  } else if (body.size() == 1 && body[0]->kind == StmtKind::kIf && body[0]->orelse.empty()) {  // on the line of the case: its guard
    one.guard = body[0]->value;
    body = Stmts(body[0]->body);
  }
  one.body = std::move(body);
  whole->cases.push_back(std::move(one));
}

// Moves the case at `index` and those that follow it into `whole`. They stand in its `else`, or behind it where it does not go on itself.
// True: what is left behind it in the list is reached only where no case matches.
bool Structurer::take_cases(Stmts& list, size_t index, Stmt* whole) {
  DepthGuard guard(session_);
  Stmt* one = list[index];
  const Expr* subject = whole->value;
  Stmts otherwise = std::move(one->orelse);
  one->orelse.clear();
  Case made;
  const CodeCase* code = nullptr;
  if (one->op == kBinds) {
    code = &flow_.cases[at(one->number)];
    made.pattern = one->cases[0].pattern;
    Stmt* test = index + 1 < list.size() && list[index + 1]->kind == StmtKind::kIf ? list[index + 1] : nullptr;
    if (test != nullptr && !code->copies && first_line(test->value) > code->line) test = nullptr;
    if (test == nullptr) {
      if (code->copies) no_form("a case that always matches in front of others");
      const size_t end = end_of_case(list, index + 1, one->at);
      made.body.assign(list.begin() + static_cast<std::ptrdiff_t>(index) + 1, list.begin() + static_cast<std::ptrdiff_t>(end));
      erase(list, index + 1, end - index - 1);
      whole->cases.push_back(std::move(made));
      return false;
    }
    made.guard = test->value;
    made.body = std::move(test->body);
    otherwise = std::move(test->orelse);
    erase(list, index + 1, 1);
  } else {
    code = &flow_.cases[at(one->number)];
    made = std::move(one->cases[0]);
  }
  const bool copies = code->copies, ends = one->op == kEnds || (one->op == kBinds && (!made.body.empty() && leaves(made.body.back())));
  if (made.guard == nullptr && made.body.size() > 1 && made.body[0]->kind == StmtKind::kNop &&
      made.body[0]->at->position.line == code->line) {
    made.guard = constant(Py_True, *made.body[0]->at);
    made.body.erase(made.body.begin());
  }
  whole->cases.push_back(std::move(made));
  const auto same_subject = [&](const Stmts& stmts, size_t k) {
    return k < stmts.size() && stmts[k]->kind == StmtKind::kMatch && stmts[k]->value == subject;
  };
  if (!otherwise.empty()) {
    const size_t next = behind_nops(otherwise, 0);
    if (!copies) {
      add_default(whole, *code, std::move(otherwise));
      return false;
    }
    if (!same_subject(otherwise, next)) no_form("a match statement whose cases are elsewhere");
    const bool open = take_cases(otherwise, next, whole);
    if (otherwise.size() == next + 1) return false;
    if (!open) no_form("a match statement in the middle of which one goes on");
    add_default(whole, *code, Stmts(otherwise.begin() + static_cast<std::ptrdiff_t>(next) + 1, otherwise.end()));
    return false;
  }
  const size_t next = behind_nops(list, index + 1);
  if (copies) {
    if (!same_subject(list, next)) no_form("a match statement whose cases are elsewhere");
    const bool open = take_cases(list, next, whole);
    erase(list, index + 1, next - index);
    return open;
  }
  if (index + 1 < list.size() && list[index + 1]->kind == StmtKind::kNop && is_default(list[index + 1]->at, *code, ends)) {
    const size_t end = end_of_case(list, index + 1, list[index + 1]->at);
    add_default(whole, *code,
                Stmts(list.begin() + static_cast<std::ptrdiff_t>(index) + 1, list.begin() + static_cast<std::ptrdiff_t>(end)));
    erase(list, index + 1, end - index - 1);
    return false;
  }
  return ends;
}

void Structurer::settle_matches(Stmts& body) {
  DepthGuard guard(session_);
  for (size_t i = 0; i < body.size(); ++i) {
    Stmt* stmt = body[i];
    if (stmt->kind == StmtKind::kMatch) {
      Stmt* whole = arena_.stmt(StmtKind::kMatch);
      whole->at = stmt->at;
      whole->order = stmt->order;
      whole->value = stmt->value;
      take_cases(body, i, whole);
      whole->value = whole->value->items[0];
      body[i] = stmt = whole;
    }
    each_list(stmt, [&](Stmts& list) { settle_matches(list); });
  }
}

}  // namespace pellucid::decompile
