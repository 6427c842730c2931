// Prints statements and whole units, line by line, with the map from lines to bytecode.
#include "decompile/print.h"

#include <algorithm>
#include <array>
#include <set>

#include "decompile/structure.h"

namespace pellucid::decompile {
namespace {

constexpr std::array kBinaryText{"+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"};
constexpr int kFutureAnnotations = 0x1000000;

}  // namespace

void Printer::mark(const bytecode::Instruction* at) {
  if (at == nullptr || at->offset < 0) return;
  marks_.push_back({line_, function_, at->offset, at->position.line, out_.size()});
}

void Printer::begin_line() {
  if (inline_) {
    inline_ = false;
    return;
  }
  original_ = 0;
  statement_ = out_.size();
  joints_.clear();
  for (int i = 0; i < indent_; ++i) out_ += "    ";
}

void Printer::end_line() {
  continue_lines();
  wrap_line();
  out_ += '\n';
  ++line_;
}

bool Printer::wants_layout(const Function& function) const {
  if (turned_ == nullptr || turned_->empty() || !function.code.name) return layout_;
  const std::string code = utf8(function.code.name.get()) + ":" + std::to_string(function.code.firstlineno);
  if (turned_->count({code, ChoiceKind::kWithLines, 0}) != 0) return true;
  return layout_ && turned_->count({code, ChoiceKind::kWithoutLines, 0}) == 0;
}

void Printer::block(const Stmts& stmts, const Function* function) {
  if (const bool wanted = function != nullptr ? wants_layout(*function) : layout_; wanted != layout_) {
    layout_ = wanted;
    original_ = wanted ? function->code.firstlineno : 0;
    block(stmts, function);
    layout_ = !wanted;
    original_ = 0;
    return;
  }
  if (stands_behind(stmts, function)) {
    const Stmt* before = nullptr;
    for (const Stmt* stmt : stmts) {
      if (before == nullptr || stands_beside(before, stmt)) {
        out_.back() = before == nullptr ? ' ' : ';';
        if (before != nullptr) out_ += ' ';
        --line_;
        inline_ = true;
      }
      statement(stmt);
      before = stmt;
    }
    return;
  }
  ++indent_;
  body(stmts, function);
  --indent_;
}

void Printer::body(const Stmts& stmts, const Function* function) {
  if (++depth_ > 1000) no_form("it is nested too deeply");
  const size_t before = out_.size();
  if (function != nullptr) {
    docstring(*function);
    for (const Stmt* stmt : function->declarations) statement(stmt);
  }
  // Definitions stand apart, as people write them: by two lines in modules, by one in classes.
  int apart = 0;
  if (function != nullptr && function->kind == static_cast<uint8_t>(CodeKind::kModule)) apart = 2;
  if (function != nullptr && function->kind == static_cast<uint8_t>(CodeKind::kClass)) apart = 1;
  bool after_definition = false;
  const Stmt* before_this = nullptr;
  for (const Stmt* stmt : stmts) {
    if (before_this != nullptr && stands_beside(before_this, stmt)) {
      out_.back() = ';';
      out_ += ' ';
      --line_;
      inline_ = true;
    }
    before_this = stmt;
    const bool defines = stmt->kind == StmtKind::kFunction || stmt->kind == StmtKind::kClass;
    if ((defines || after_definition) && out_.size() != before) {
      for (int i = 0; i < apart; ++i) end_line();
    }
    statement(stmt);
    after_definition = defines;
  }
  if (out_.size() == before && !(function != nullptr && indent_ == 0)) {
    begin_line();
    out_ += "pass";
    end_line();
  }
  --depth_;
}

void Printer::docstring(const Function& function) {
  if (function.docstring == nullptr) return;
  begin_line();
  const std::string escaped = repr(function.docstring), text = triple_quoted(utf8(function.docstring), escaped);
  out_ += text.empty() ? escaped : text;
  line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  end_line();
}

void Printer::annotation(const Expr* e) {
  // Under `from __future__ import annotations` they are kept as text.
  if (function_ != nullptr && (function_->code.flags & kFutureAnnotations) != 0 && e->kind == ExprKind::kConst &&
      PyUnicode_Check(e->object)) {
    out_ += utf8(e->object);
    return;
  }
  expr(e, kPrecTest);
}

void Printer::parameters(const Function& f, bool annotated) {
  bool first = true;
  const auto next = [&] {
    if (!first) comma();
    first = false;
  };
  const auto one = [&](const Parameter& parameter, const char* stars) {
    next();
    if (annotated && parameter.annotation != nullptr) {
      place(leftmost(parameter.annotation));
    } else if (parameter.default_value != nullptr) {
      place(leftmost(parameter.default_value));
    }
    out_ += stars;
    out_ += unmangled(parameter.name);
    const bool typed = annotated && parameter.annotation != nullptr;
    if (typed) {
      out_ += ": ";
      if (stars[0] == '*' && stars[1] == 0 && parameter.annotation->kind == ExprKind::kStarred) {
        expr(parameter.annotation, kPrecTuple);
      } else {
        annotation(parameter.annotation);
      }
    }
    if (parameter.default_value != nullptr) {
      out_ += typed ? " = " : "=";
      expr(parameter.default_value, kPrecTest);
    }
  };
  for (size_t i = 0; i < f.positional.size(); ++i) {
    one(f.positional[i], "");
    if (static_cast<int>(i) + 1 == f.posonly) {
      next();
      out_ += '/';
    }
  }
  if (f.has_star) {
    one(f.star, "*");
  } else if (!f.keyword_only.empty()) {
    next();
    out_ += '*';
  }
  for (const Parameter& parameter : f.keyword_only) one(parameter, "");
  if (f.has_star_star) one(f.star_star, "**");
}

void Printer::type_parameters(const Function& f) {
  if (f.type_parameters.empty()) return;
  open('[');
  for (size_t i = 0; i < f.type_parameters.size(); ++i) {
    const TypeParameter& parameter = f.type_parameters[i];
    if (i > 0) comma();
    out_ += std::string(parameter.stars, '*') + unmangled(parameter.name);
    if (parameter.bound != nullptr) {
      out_ += ": ";
      expr(parameter.bound, kPrecTest);
    }
    if (parameter.default_value != nullptr) {
      out_ += " = ";
      expr(parameter.default_value, kPrecTest);
    }
  }
  close(']');
}

void Printer::definition(const Stmt* stmt) {
  const Function& f = *stmt->function;
  for (const Expr* decorator : stmt->decorators) {
    begin_line();
    out_ += '@';
    expr(decorator, kPrecNamed);
    end_line();
  }
  begin_line();
  place(stmt->at);
  mark(stmt->at);
  out_ += f.is_async ? "async def " : "def ";
  out_ += identifier(f.name);
  type_parameters(f);
  open('(');
  const Function* outer = function_;
  parameters(f, true);
  for (const auto& [name, value] : f.annotations) {
    if (name == "return") place(leftmost(value));
  }
  close(')');
  for (const auto& [name, value] : f.annotations) {
    if (name == "return") {
      out_ += " -> ";
      annotation(value);
    }
  }
  out_ += ':';
  end_line();
  function_ = &f;
  block(f.body, &f);
  function_ = outer;
}

void Printer::class_definition(const Stmt* stmt) {
  const Function& f = *stmt->function;
  for (const Expr* decorator : stmt->decorators) {
    begin_line();
    out_ += '@';
    expr(decorator, kPrecNamed);
    end_line();
  }
  begin_line();
  place(stmt->at);
  mark(stmt->at);
  out_ += "class " + identifier(f.name);
  type_parameters(f);
  if (!stmt->targets.empty()) {
    open('(');
    for (size_t i = 0; i < stmt->targets.size(); ++i) {
      if (i > 0) comma();
      const Expr* base = stmt->targets[i];
      if (base->kind == ExprKind::kStarred) {
        out_ += '*';
        expr(base->items[0], kPrecTest);
      } else {
        expr(base, kPrecTest);
      }
    }
    close(')');
  }
  out_ += ':';
  end_line();
  const Function* outer = function_;
  std::string outer_class = f.name.substr(std::min(f.name.find_first_not_of('_'), f.name.size()));
  std::swap(outer_class, class_name_);
  function_ = &f;
  block(f.body, &f);
  function_ = outer;
  std::swap(outer_class, class_name_);
}

void Printer::condition(const Expr* test) { whole(test, test->kind == ExprKind::kNamed ? kPrecNamed : kPrecTest); }

void Printer::if_statement(const Stmt* stmt) {
  const char* word = "if ";
  for (;;) {
    begin_line();
    mark(stmt->at);
    out_ += word;
    condition(stmt->value);
    out_ += ':';
    end_line();
    block(stmt->body);
    if (stmt->orelse.empty()) return;
    if (stmt->orelse.size() == 1 && stmt->orelse[0]->kind == StmtKind::kIf) {
      stmt = stmt->orelse[0];
      word = "elif ";
      continue;
    }
    begin_line();
    out_ += "else:";
    end_line();
    block(stmt->orelse);
    return;
  }
}

void Printer::try_statement(const Stmt* stmt) {
  begin_line();
  place(stmt->header);
  // Nothing is left of a `try:` with code behind it.
  if (layout_ && version_ >= 311 && stmt->header == nullptr && !stmt->body.empty()) original_ = first_line(stmt->body[0]);
  mark(stmt->at);
  out_ += "try:";
  end_line();
  // try ... except ... finally is a try ... finally around a try ... except, unless something is left of each `try:`.
  const Stmt* inner = stmt;
  if (stmt->handlers.empty() && stmt->body.size() == 1 && stmt->body[0]->kind == StmtKind::kTry && !stmt->body[0]->handlers.empty() &&
      stmt->body[0]->final.empty() && (stmt->header == nullptr || stmt->body[0]->header == nullptr)) {
    inner = stmt->body[0];
  }
  block(inner->body);
  for (const Handler& handler : inner->handlers) {
    begin_line();
    out_ += inner->is_star ? "except*" : "except";
    if (handler.type != nullptr) {
      out_ += ' ';
      expr(handler.type, kPrecTest);
      if (!handler.name.empty()) out_ += " as " + unmangled(handler.name);
    }
    out_ += ':';
    end_line();
    block(handler.body);
  }
  if (!inner->orelse.empty()) {
    begin_line();
    out_ += "else:";
    end_line();
    block(inner->orelse);
  }
  if (!stmt->final.empty() || stmt->handlers.empty()) {
    begin_line();
    out_ += "finally:";
    end_line();
    block(stmt->final);
  }
}

void Printer::with_statement(const Stmt* stmt) {
  begin_line();
  out_ += stmt->is_async ? "async with " : "with ";
  bool first = true;
  for (;;) {
    mark(stmt->at);
    for (const WithItem& item : stmt->withs) {
      if (!first) comma();
      first = false;
      expr(item.context, kPrecTest);
      if (item.target != nullptr) {
        out_ += " as ";
        expr(item.target, kPrecTest);
      }
    }
    if (stmt->body.size() != 1) break;
    const Stmt* inner = stmt->body[0];
    if (inner->kind != StmtKind::kWith || inner->is_async != stmt->is_async || inner->at == nullptr || stmt->at == nullptr ||
        inner->at->position.line != stmt->at->position.line) {
      break;
    }
    stmt = inner;
  }
  out_ += ':';
  end_line();
  if (layout_ && stmt->body.empty()) {  // the place of a `pass` on a line of its own would be left
    out_.back() = ' ';
    out_ += "pass\n";
    return;
  }
  block(stmt->body);
}

void Printer::import_names(const std::vector<Alias>& names, bool dotted) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) comma();
    out_ += dotted || names[i].name == "*" ? names[i].name : identifier(names[i].name);
    if (!names[i].as.empty()) out_ += " as " + unmangled(names[i].as);
  }
}

void Printer::statement(const Stmt* stmt) {
  switch (stmt->kind) {
    case StmtKind::kFunction:
      definition(stmt);
      return;
    case StmtKind::kClass:
      class_definition(stmt);
      return;
    case StmtKind::kIf:
      if_statement(stmt);
      return;
    case StmtKind::kTry:
      try_statement(stmt);
      return;
    case StmtKind::kWith:
      with_statement(stmt);
      return;
    case StmtKind::kMatch:
      match_statement(stmt);
      return;
    case StmtKind::kNop:
    case StmtKind::kDropIterator:
      return;
    default:
      break;
  }
  begin_line();
  mark(stmt->at);
  switch (stmt->kind) {
    case StmtKind::kExpression:
      whole(stmt->value, stmt->value->kind == ExprKind::kYield || stmt->value->kind == ExprKind::kYieldFrom ? kPrecNamed : kPrecTuple);
      break;
    case StmtKind::kAssign:
      for (const Expr* target : stmt->targets) {
        expr(target, kPrecTuple);
        out_ += " = ";
      }
      whole(stmt->value, stmt->value->kind == ExprKind::kNamed ? kPrecTuple : kPrecNamed);
      break;
    case StmtKind::kAugmented:
      expr(stmt->targets[0], kPrecAtom);
      out_ += ' ';
      out_ += kBinaryText[stmt->op];
      out_ += "= ";
      whole(stmt->value, stmt->value->kind == ExprKind::kNamed ? kPrecTuple : kPrecNamed);
      break;
    case StmtKind::kAnnotated:
      expr(stmt->targets[0], kPrecAtom);
      out_ += ": ";
      annotation(stmt->annotation);
      if (stmt->value != nullptr) {
        out_ += " = ";
        whole(stmt->value, stmt->value->kind == ExprKind::kNamed ? kPrecTuple : kPrecNamed);
      }
      break;
    case StmtKind::kReturn:
      place(place_of_return(stmt));
      out_ += "return";
      if (stmt->value != nullptr) {
        out_ += ' ';
        whole(stmt->value, kPrecTuple);
      }
      break;
    case StmtKind::kRaise:
      place(stmt->at);
      out_ += "raise";
      if (stmt->value != nullptr) {
        out_ += ' ';
        whole(stmt->value, kPrecTest);
      }
      if (stmt->cause != nullptr) {
        out_ += " from ";
        whole(stmt->cause, kPrecTest);
      }
      break;
    case StmtKind::kDelete:
      place(stmt->at);
      out_ += "del ";
      items(stmt->targets, 0, kPrecTest);
      break;
    case StmtKind::kPass:
      place(stmt->at);
      out_ += "pass";
      break;
    case StmtKind::kWhile:
      place(stmt->header);
      if (layout_ && version_ >= 310 && stmt->value == nullptr && stmt->header == nullptr && !stmt->body.empty())
        original_ = first_line(stmt->body[0]);
      out_ += "while ";
      if (stmt->value != nullptr) {
        condition(stmt->value);
      } else {
        out_ += "True";
      }
      out_ += ':';
      end_line();
      block(stmt->body);
      if (stmt->orelse.empty()) return;
      begin_line();
      out_ += "else:";
      end_line();
      block(stmt->orelse);
      return;
    case StmtKind::kFor:
      out_ += stmt->is_async ? "async for " : "for ";
      expr(stmt->targets[0], kPrecTuple);
      out_ += " in ";
      whole(stmt->value, kPrecTest);
      out_ += ':';
      end_line();
      block(stmt->body);
      if (stmt->orelse.empty()) return;
      begin_line();
      out_ += "else:";
      end_line();
      block(stmt->orelse);
      return;
    case StmtKind::kImport:
      place(stmt->at);
      out_ += "import ";
      import_names(stmt->names, true);
      break;
    case StmtKind::kImportFrom:
      place(stmt->at);
      out_ += "from " + std::string(static_cast<size_t>(stmt->number), '.') + stmt->text + " import ";
      import_names(stmt->names, false);
      break;
    case StmtKind::kGlobal:
    case StmtKind::kNonlocal:
      out_ += stmt->kind == StmtKind::kGlobal ? "global " : "nonlocal ";
      for (size_t i = 0; i < stmt->names.size(); ++i) {
        if (i > 0) comma();
        out_ += unmangled(stmt->names[i].name);
      }
      break;
    case StmtKind::kAssert:
      out_ += "assert ";
      whole(stmt->value, kPrecTest);
      if (stmt->cause != nullptr) {
        comma();
        whole(stmt->cause, kPrecTest);
      }
      break;
    case StmtKind::kTypeAlias:
      place(stmt->at);
      out_ += "type ";
      expr(stmt->targets[0], kPrecAtom);
      type_parameters(*stmt->function);
      out_ += " = ";
      whole(stmt->value, kPrecTest);
      break;
    case StmtKind::kBreak:
      place(stmt->at);
      out_ += "break";
      break;
    case StmtKind::kContinue:
      place(stmt->at);
      out_ += "continue";
      break;
    default:
      no_form("a statement of an unknown kind");
  }
  end_line();
}

void Printer::function(const Function& f) {
  function_ = &f;
  Stmt stmt;
  stmt.function = const_cast<Function*>(&f);
  switch (static_cast<CodeKind>(f.kind)) {
    case CodeKind::kFunction:
      definition(&stmt);
      return;
    case CodeKind::kClass:
      class_definition(&stmt);
      return;
    case CodeKind::kModule:
      body(f.body, &f);
      return;
    case CodeKind::kLambda: {
      Expr made;
      made.kind = ExprKind::kFunction;
      made.function = stmt.function;
      expr(&made, kPrecTest);
      end_line();
      return;
    }
    case CodeKind::kComprehension:
      break;
  }
}

void Printer::expression(const Function& f, const Expr* e) {
  function_ = &f;
  expr(e, kPrecTest);
  end_line();
}

Decompiled Printer::take() {
  Decompiled result;
  result.source = std::move(out_);
  result.structured = true;
  result.bindings = std::move(bindings_);
  // Lines in their order, and on each the functions in the order in which they come.
  std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) { return a.line < b.line; });
  const auto settle = [](auto& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  };
  for (size_t begin = 0, end; begin < marks_.size(); begin = end) {
    std::vector<std::pair<const Function*, LineEntry>> functions;
    for (end = begin; end < marks_.size() && marks_[end].line == marks_[begin].line; ++end) {
      const Mark& mark = marks_[end];
      auto found = std::find_if(functions.begin(), functions.end(), [&](const auto& each) { return each.first == mark.function; });
      if (found == functions.end()) found = functions.emplace(functions.end(), mark.function, LineEntry{mark.line, "", {}, {}});
      found->second.offsets.push_back(mark.offset);
      if (mark.original > 0) found->second.lines.push_back(mark.original);
    }
    for (auto& [function, entry] : functions) {
      if (function != nullptr) entry.qualname = function->qualname;
      settle(entry.offsets);
      settle(entry.lines);
      result.line_map.push_back(std::move(entry));
    }
  }
  return result;
}

}  // namespace pellucid::decompile
