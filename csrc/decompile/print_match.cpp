// match statements and patterns as text. Knows nothing of how they were found.
#include "decompile/print.h"

namespace pellucid::decompile {
namespace {

enum Tightness : uint8_t { kAsPattern, kOrPattern, kClosedPattern };

}  // namespace

void Printer::match_statement(const Stmt* stmt) {
  begin_line();
  mark(stmt->at);
  out_ += "match ";
  whole(stmt->value, kPrecTest);
  out_ += ':';
  end_line();
  ++indent_;
  for (const Case& one : stmt->cases) {
    begin_line();
    if (one.pattern->at != nullptr) mark(one.pattern->at);
    out_ += "case ";
    pattern(one.pattern, kAsPattern);
    if (one.guard != nullptr) {
      out_ += " if ";
      condition(one.guard);
    }
    out_ += ':';
    end_line();
    block(one.body);
  }
  --indent_;
}

// A literal or a dotted name. A literal stands without parentheses, as the key of a mapping must.
void Printer::pattern_value(const Expr* value) {
  if (value->kind != ExprKind::kConst) return expr(value, kPrecAtom);
  place(value->at);
  constant(value->object, kPrecTest);
}

void Printer::mapping_pattern(const Pattern* p) {
  open('{');
  for (size_t i = 0; i < p->items.size(); ++i) {
    if (i > 0) comma();
    pattern_value(p->keys[i]);
    out_ += ": ";
    pattern(p->items[i], kAsPattern);
  }
  if (p->has_rest) {
    if (!p->items.empty()) comma();
    out_ += "**" + unmangled(p->name);
  }
  close('}');
}

void Printer::class_pattern(const Pattern* p) {
  expr(p->value, kPrecAtom);
  open('(');
  const size_t positional = p->items.size() - p->keywords.size();
  for (size_t i = 0; i < p->items.size(); ++i) {
    if (i > 0) comma();
    if (i >= positional) out_ += p->keywords[i - positional] + "=";
    pattern(p->items[i], kAsPattern);
  }
  close(')');
}

void Printer::pattern(const Pattern* p, int least) {
  if (++depth_ > 200) no_form("patterns nested too deeply");
  const bool named = p->kind == PatternKind::kAs && !p->items.empty();
  const bool wrap = (named && least > kAsPattern) || (p->kind == PatternKind::kOr && least > kOrPattern);
  if (wrap) open('(');
  place(p->at);
  switch (p->kind) {
    case PatternKind::kAs:
      if (named) {
        pattern(p->items[0], kOrPattern);
        out_ += " as ";
      }
      out_ += p->name.empty() ? "_" : unmangled(p->name);
      break;
    case PatternKind::kStar:
      out_ += "*" + (p->name.empty() ? "_" : unmangled(p->name));
      break;
    case PatternKind::kValue:
    case PatternKind::kSingleton:
      pattern_value(p->value);
      break;
    case PatternKind::kSequence:
      open('[');
      for (size_t i = 0; i < p->items.size(); ++i) {
        if (i > 0) comma();
        pattern(p->items[i], kAsPattern);
      }
      close(']');
      break;
    case PatternKind::kMapping:
      mapping_pattern(p);
      break;
    case PatternKind::kClass:
      class_pattern(p);
      break;
    case PatternKind::kOr:
      for (size_t i = 0; i < p->items.size(); ++i) {
        if (i > 0) out_ += " | ";
        pattern(p->items[i], kClosedPattern);
      }
      break;
  }
  if (wrap) close(')');
  --depth_;
}

}  // namespace pellucid::decompile
