// Prints expressions. What is printed compiles to the tree it was printed from; parentheses stand only where the grammar needs them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "decompile/print.h"
#include "decompile/statements.h"

namespace pellucid::decompile {
namespace {

constexpr std::array kBinaryText{"+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"};
constexpr std::array kBinaryLevel{kPrecSum,   kPrecBitAnd, kPrecTerm,  kPrecShift, kPrecTerm, kPrecTerm,  kPrecTerm,
                                  kPrecBitOr, kPrecPower,  kPrecShift, kPrecSum,   kPrecTerm, kPrecBitXor};
constexpr std::array kUnaryText{"+", "-", "~", "not "};
constexpr std::array kCompareText{"<", "<=", "==", "!=", ">", ">=", "in", "not in", "is", "is not"};

}  // namespace

bool is_keyword(const std::string& name) {
  static const std::set<std::string> kWords{"False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
                                            "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
                                            "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
                                            "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  return kWords.count(name) != 0;
}

std::string Printer::repr(PyObject* object) {
  const py::Ref text = py::Ref::steal(PyObject_Repr(object));
  if (!text) {
    PyErr_Clear();
    no_form("a constant that has no text");
  }
  return utf8(text.get());
}

// The name under which an object without a literal is handed to the source.
std::string Printer::bound(PyObject* object) {
  const auto [found, added] = objects_.insert({object, ""});
  if (added) {
    found->second = "__object_" + std::to_string(objects_.size() - 1);
    bindings_.push_back({found->second, py::Ref::share(object), false});
  }
  return found->second;
}

std::string Printer::identifier(const std::string& name) {
  const auto is_letter = [](unsigned char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_plain = [&](unsigned char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  if (!name.empty() && is_letter(static_cast<unsigned char>(name[0])) && std::all_of(name.begin(), name.end(), is_plain) &&
      !is_keyword(name)) {
    return name;
  }
  const auto found = renamed_.find(name);
  if (found != renamed_.end()) return found->second;
  const py::Ref text = py::Ref::steal(PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "surrogatepass"));
  if (!text) {
    PyErr_Clear();
    no_form("a name that is no text");
  }
  std::string chosen = name;
  if (PyUnicode_IsIdentifier(text.get()) != 1 || is_keyword(name)) {
    chosen = "__name_" + std::to_string(bindings_.size());
    bindings_.push_back({chosen, text, true});
  }
  renamed_[name] = chosen;
  return chosen;
}

// Inside of class C the compiler makes _C__x of __x.
std::string Printer::unmangled(const std::string& name) {
  if (!class_name_.empty() && name.size() > class_name_.size() + 3 && name[0] == '_' &&
      name.compare(1, class_name_.size(), class_name_) == 0 && name.compare(1 + class_name_.size(), 2, "__") == 0 &&
      !name.ends_with("__") && name.find('.') == std::string::npos) {
    return identifier(name.substr(1 + class_name_.size()));
  }
  return identifier(name);
}

// A text as people write it over several lines, empty where something in it would have to be escaped. `escaped`: what repr() gives.
std::string Printer::triple_quoted(const std::string& text, const std::string& escaped) {
  if (text.empty() || text.ends_with('"') || text.find('\\') != std::string::npos || text.find("\"\"\"") != std::string::npos) return "";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') return "";
  }
  for (const char* escape : {"\\u", "\\x", "\\U"}) {
    if (escaped.find(escape) != std::string::npos) return "";
  }
  return "\"\"\"" + text + "\"\"\"";
}

// A text that stood on several lines, as many as it has: from 3.11 on positions tell.
bool Printer::several_lines(const Expr* e) {
  if (version_ < 311 || in_text_ || e->at == nullptr || !PyUnicode_CheckExact(e->object)) return false;
  const bytecode::Position& p = e->at->position;
  if (p.line <= 0 || p.end_line <= p.line) return false;
  // What is one of several values in one constant has the place of them all.
  if (e->at->op == bytecode::Op::LOAD_CONST && function_ != nullptr && e->at->arg < function_->code.consts.size() &&
      PyTuple_CheckExact(function_->code.consts[e->at->arg].get()))
    return false;
  const std::string text = utf8(e->object);
  const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  if (lines != p.end_line - p.line) return false;
  const std::string quoted = triple_quoted(text, repr(e->object));
  if (quoted.empty()) return false;
  out_ += quoted;
  line_ += lines;
  if (layout_) original_ = std::max(original_, p.end_line);
  return true;
}

int Printer::constant_precedence(PyObject* object) const {
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long value = PyLong_AsLongAndOverflow(object, &overflow);
    return overflow < 0 || (overflow == 0 && value < 0) ? kPrecUnary : kPrecAtom;
  }
  if (PyFloat_CheckExact(object)) {
    const double value = PyFloat_AS_DOUBLE(object);
    if (std::isnan(value)) return kPrecTerm;
    return std::signbit(value) ? kPrecUnary : kPrecAtom;
  }
  if (PyComplex_CheckExact(object)) {
    const Py_complex value = PyComplex_AsCComplex(object);
    if (!std::isfinite(value.real) || !std::isfinite(value.imag)) return kPrecAtom;
    if (value.real == 0 && std::signbit(value.real) == std::signbit(value.imag)) return std::signbit(value.imag) ? kPrecUnary : kPrecAtom;
    if (value.real != 0 && value.imag == 0 && std::signbit(value.imag)) return kPrecUnary;
    return kPrecSum;
  }
  if (PyTuple_CheckExact(object)) return kPrecAtom;
  return kPrecAtom;
}

void Printer::constant(PyObject* object, int least) {
  if (PyTuple_CheckExact(object)) {
    const Py_ssize_t size = PyTuple_GET_SIZE(object);
    const bool bare = least <= kPrecTuple && size > 0;
    if (!bare) open('(');
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (i > 0) comma();
      constant(PyTuple_GET_ITEM(object, i), kPrecTest);
    }
    if (size == 1) out_ += ',';
    if (!bare) close(')');
    return;
  }
  const bool wrap = constant_precedence(object) < least;
  if (wrap) open('(');
  if (PyFloat_CheckExact(object)) {
    const double value = PyFloat_AS_DOUBLE(object);
    if (std::isinf(value)) {
      out_ += value > 0 ? "1e309" : "-1e309";
    } else if (std::isnan(value)) {
      // Which sign the product has is the machine's choice.
      const volatile double infinite = HUGE_VAL;
      out_ += std::signbit(infinite * 0) == std::signbit(value) ? "1e309 * 0" : "-(1e309 * 0)";
    } else {
      out_ += repr(object);
    }
  } else if (PyComplex_CheckExact(object)) {
    // Sums and differences of a number and an imaginary one; not every pair of signs of zero is one.
    const Py_complex value = PyComplex_AsCComplex(object);
    const auto part = [&](double real, double imaginary) {
      if (std::isinf(real) || std::isinf(imaginary)) {
        out_ += std::isinf(imaginary) ? "1e309j" : real > 0 ? "1e309" : "-1e309";
        return;
      }
      const py::Ref boxed = py::Ref::steal(imaginary != 0 || real == 0 ? PyComplex_FromDoubles(0, imaginary) : PyFloat_FromDouble(real));
      if (!boxed) no_form("a constant that has no text");
      std::string text = repr(boxed.get());
      if (text.ends_with(".0")) text.resize(text.size() - 2);  // the sum makes it a float
      out_ += text;
    };
    const bool minus = std::signbit(value.imag), minus_real = std::signbit(value.real);
    if (std::isnan(value.real) || std::isnan(value.imag) || (value.real == 0 && minus_real && !minus)) {
      out_ += bound(object);
    } else if (value.real == 0 && minus == minus_real) {
      if (minus) out_ += '-';
      part(0, std::fabs(value.imag));
    } else if (value.real != 0 && value.imag == 0 && minus) {  // no difference has that zero
      out_ += "-(";
      part(-value.real, 0);
      out_ += "+0j)";
    } else {
      if (value.real == 0) {
        out_ += '0';
      } else {
        part(value.real, 0);
      }
      out_ += minus ? '-' : '+';
      part(0, std::fabs(value.imag));
    }
  } else if (PyFrozenSet_CheckExact(object)) {
    const py::Ref list = py::Ref::steal(PySequence_List(object));
    if (!list) {
      PyErr_Clear();
      no_form("a constant that cannot be read");
    }
    if (PyList_GET_SIZE(list.get()) == 0) {
      out_ += bound(object);
    } else {
      open('{');
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
        if (i > 0) comma();
        // Kept alive by the frozenset.
        constant(PyList_GET_ITEM(list.get(), i), kPrecTest);
      }
      close('}');
    }
  } else if (PyLong_CheckExact(object) && _PyLong_NumBits(object) > 12000) {
    const py::Ref text = py::Ref::steal(PyNumber_ToBase(object, 16));
    if (!text) {
      PyErr_Clear();
      no_form("a number that has no text");
    }
    out_ += utf8(text.get());
  } else if (object == Py_Ellipsis) {
    out_ += "...";
  } else if (object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) || PyUnicode_CheckExact(object) ||
             PyBytes_CheckExact(object)) {
    out_ += repr(object);
  } else {
    out_ += bound(object);
  }
  if (wrap) close(')');
}

int Printer::precedence(const Expr* e) const {
  switch (e->kind) {
    case ExprKind::kConst:
      return constant_precedence(e->object);
    case ExprKind::kNamed:
      return kPrecNamed;
    case ExprKind::kTuple:
      return kPrecTuple;
    case ExprKind::kYield:
    case ExprKind::kYieldFrom:
      return kPrecNamed;
    case ExprKind::kLambda:
    case ExprKind::kFunction:
    case ExprKind::kConditional:
      return kPrecTest;
    case ExprKind::kBool:
      return e->op == kOr ? kPrecOr : kPrecAnd;
    case ExprKind::kUnary:
      return e->op == kNot ? kPrecNot : kPrecUnary;
    case ExprKind::kCompare:
      return kPrecCompare;
    case ExprKind::kBinary:
      return kBinaryLevel[e->op];
    case ExprKind::kAwait:
      return kPrecAwait;
    case ExprKind::kStarred:
      return kPrecTuple;
    case ExprKind::kJoined:
    case ExprKind::kFormatted:
      return is_percent_format(e) ? kPrecTerm : kPrecAtom;
    default:
      return kPrecAtom;
  }
}

void Printer::expr(const Expr* e, int least) {
  if (++depth_ > 1000) no_form("it is nested too deeply");
  if (e->kind != ExprKind::kConst) {
    if (e->printed) no_form("a value used twice");
    e->printed = true;
    printed_.push_back(e);
  }
  place(leftmost(e));
  if (e->kind == ExprKind::kConst) {
    mark(e->at);
    if (!several_lines(e)) constant(e->object, least);
  } else if (e->kind == ExprKind::kTuple) {
    mark(e->at);
    tuple(e->items, least <= kPrecTuple);
  } else {
    const bool wrap = precedence(e) < least && e->kind != ExprKind::kStarred;
    if (wrap) open('(');
    mark(e->at);
    expr_inner(e);
    if (wrap) close(')');
  }
  --depth_;
}

void Printer::items(const Exprs& list, size_t from, int least) {
  for (size_t i = from; i < list.size(); ++i) {
    if (i > from) comma();
    expr(list[i], least);
  }
}

void Printer::tuple(const Exprs& list, bool bare) {
  if (list.empty()) bare = false;
  if (!bare) open('(');
  items(list, 0, bare ? kPrecTest : kPrecTest);
  if (list.size() == 1) out_ += ',';
  if (!bare) close(')');
}

void Printer::expr_inner(const Expr* e) {
  switch (e->kind) {
    case ExprKind::kName:
      out_ += unmangled(e->text);
      return;
    case ExprKind::kAttribute: {
      const Expr* object = e->items[0];
      const bool number =
          object->kind == ExprKind::kConst && PyLong_CheckExact(object->object) && constant_precedence(object->object) == kPrecAtom;
      if (number) open('(');
      expr(object, kPrecAtom);
      if (number) close(')');
      place(e->at);
      out_ += '.';
      const std::string name = unmangled(e->text);
      if (name != e->text && bindings_.size() > 0 && bindings_.back().renamed && bindings_.back().name == name)
        no_form("an attribute that is no identifier");
      out_ += name;
      return;
    }
    case ExprKind::kSubscript:
      expr(e->items[0], kPrecAtom);
      open('[');
      subscript(e->items[1]);
      close(']');
      return;
    case ExprKind::kSlice:  // outside of a subscript: slice objects that a tuple index holds
      slice(e);
      return;
    case ExprKind::kCall:
      call(e);
      return;
    case ExprKind::kKeyword:
      out_ += e->text.empty() ? "**" : identifier(e->text) + "=";
      expr(e->items[0], e->text.empty() ? static_cast<int>(kPrecTest) : static_cast<int>(kPrecTest));
      return;
    case ExprKind::kStarred:
      out_ += '*';
      expr(e->items[0], kPrecBitOr);
      return;
    case ExprKind::kBinary: {
      const int level = kBinaryLevel[e->op];
      const bool power = e->op == kPower;
      if (version_ >= 311 && e->op == kModulo && would_be_formatted(e)) {
        out_ += 'f';  // an f-string without expressions: a plain text would compile to one with these
        constant_text(e->items[0]->object);
      } else {
        expr(e->items[0], power ? level + 1 : level);
      }
      out_ += ' ';
      out_ += kBinaryText[e->op];
      out_ += ' ';
      expr(e->items[1], power ? static_cast<int>(kPrecUnary) : level + 1);
      return;
    }
    case ExprKind::kUnary:
      out_ += kUnaryText[e->op];
      expr(e->items[0], e->op == kNot ? kPrecNot : kPrecUnary);
      return;
    case ExprKind::kBool:
      boolean(e);
      return;
    case ExprKind::kCompare:
      expr(e->items[0], kPrecBitOr);
      for (size_t i = 0; i < e->ops.size(); ++i) {
        out_ += ' ';
        out_ += kCompareText[e->ops[i]];
        out_ += ' ';
        expr(e->items[i + 1], kPrecBitOr);
      }
      return;
    case ExprKind::kConditional:
      expr(e->items[1], kPrecOr);
      out_ += " if ";
      expr(e->items[0], kPrecOr);
      out_ += " else ";
      expr(e->items[2], kPrecTest);
      return;
    case ExprKind::kList:
      open('[');
      for (size_t i = 0; i < e->items.size(); ++i) {
        if (i > 0) comma();
        expr(e->items[i], e->items[i]->kind == ExprKind::kNamed ? kPrecNamed : kPrecTest);
      }
      close(']');
      return;
    case ExprKind::kSet:
      if (e->items.empty()) no_form("an empty set display");
      open('{');
      items(e->items, 0, kPrecTest);
      close('}');
      return;
    case ExprKind::kDict:
      open('{');
      for (size_t i = 0; i + 1 < e->items.size(); i += 2) {
        if (i > 0) comma();
        if (e->items[i] == nullptr) {
          place(leftmost(e->items[i + 1]));
          out_ += "**";
          expr(e->items[i + 1], kPrecBitOr);
        } else {
          expr(e->items[i], kPrecTest);
          out_ += ": ";
          expr(e->items[i + 1], kPrecTest);
        }
      }
      close('}');
      return;
    case ExprKind::kFunction:
      lambda(e);
      return;
    case ExprKind::kComprehension:
      comprehension(e);
      return;
    case ExprKind::kJoined:
    case ExprKind::kFormatted:
      is_percent_format(e) ? percent_format(e) : joined(e);
      return;
    case ExprKind::kYield:
      out_ += "yield";
      if (!e->items.empty() && !is_none(e->items[0])) {
        out_ += ' ';
        expr(e->items[0], kPrecTuple);
      }
      return;
    case ExprKind::kYieldFrom:
      out_ += "yield from ";
      expr(e->items[0], kPrecTest);
      return;
    case ExprKind::kAwait:
      if (e->op != 0) no_form("a value that is never awaited");
      out_ += "await ";
      expr(e->items[0], kPrecAtom);
      return;
    case ExprKind::kNamed:
      expr(e->items[0], kPrecAtom);
      out_ += " := ";
      expr(e->items[1], kPrecTest);
      return;
    case ExprKind::kAssertion:
      no_form("AssertionError outside of an assert statement");
    default:
      no_form("a value that no expression makes");
  }
}

void Printer::subscript(const Expr* index) {
  if (index->kind == ExprKind::kSlice) {
    slice(index);
  } else if (index->kind == ExprKind::kTuple && !index->items.empty()) {
    bool bare = true;
    if (version_ < 311) {
      for (const Expr* item : index->items) bare &= item->kind != ExprKind::kStarred;
    }
    if (!bare) open('(');
    for (size_t i = 0; i < index->items.size(); ++i) {
      if (i > 0) comma();
      subscript_item(index->items[i]);
    }
    if (index->items.size() == 1) out_ += ',';
    if (!bare) close(')');
  } else {
    expr(index, index->kind == ExprKind::kConst ? kPrecTuple : kPrecTest);
  }
}

void Printer::subscript_item(const Expr* item) {
  if (item->kind == ExprKind::kSlice) {
    slice(item);
  } else {
    expr(item, kPrecTest);
  }
}

void Printer::slice(const Expr* e) {
  if (e->items[0] != nullptr) expr(e->items[0], kPrecTest);
  out_ += ':';
  if (e->items[1] != nullptr) expr(e->items[1], kPrecTest);
  if (e->items[2] != nullptr) {
    out_ += ':';
    if (!is_none(e->items[2])) expr(e->items[2], kPrecTest);
  }
}

void Printer::call(const Expr* e) {
  expr(e->items[0], kPrecAtom);
  open('(');
  if (e->items.size() == 2 && e->items[1]->kind == ExprKind::kComprehension &&
      e->items[1]->op == static_cast<uint8_t>(CompKind::kGenerator)) {
    clauses(e->items[1]);
  } else {
    for (size_t i = 1; i < e->items.size(); ++i) {
      if (i > 1) comma();
      const Expr* arg = e->items[i];
      if (arg->kind == ExprKind::kStarred) {
        place(leftmost(arg));
        out_ += '*';
        expr(arg->items[0], kPrecTest);
      } else {
        expr(arg, arg->kind == ExprKind::kNamed ? kPrecNamed : kPrecTest);
      }
    }
  }
  close(')');
}

void Printer::lambda(const Expr* e) {
  if (e->function->result == nullptr) no_form("a function that is no statement");
  out_ += "lambda";
  const size_t before = out_.size();
  out_ += ' ';
  parameters(*e->function, false);
  if (out_.size() == before + 1) out_.pop_back();
  out_ += ": ";
  const Function* outer = function_;
  function_ = e->function;
  expr(e->function->result, kPrecTest);
  function_ = outer;
}

void Printer::clauses(const Expr* e) {
  const Function* outer = function_;
  const Function* own = e->function != nullptr ? e->function : outer;  // from 3.12 on it may have no code object of its own
  function_ = own;
  if (e->op == static_cast<uint8_t>(CompKind::kDict)) {
    if (e->items.size() != 2) no_form("a comprehension without an element");
    expr(e->items[0], kPrecTest);
    out_ += ": ";
    expr(e->items[1], kPrecTest);
  } else {
    if (e->items.size() != 1) no_form("a comprehension without an element");
    expr(e->items[0], e->items[0]->kind == ExprKind::kNamed ? kPrecNamed : kPrecTest);
  }
  bool first = true;
  for (const Clause& clause : e->clauses) {
    out_ += clause.is_async ? " async for " : " for ";
    expr(clause.target, kPrecTuple);
    out_ += " in ";
    // The first iterable is evaluated outside.
    function_ = first ? outer : own;
    expr(clause.iterable, kPrecOr);
    function_ = own;
    first = false;
    for (const Expr* condition : clause.conditions) {
      out_ += " if ";
      expr(condition, kPrecOr);
    }
  }
  function_ = outer;
}

void Printer::comprehension(const Expr* e) {
  const auto kind = static_cast<CompKind>(e->op);
  open(kind == CompKind::kList ? '[' : kind == CompKind::kGenerator ? '(' : '{');
  clauses(e);
  close(kind == CompKind::kList ? ']' : kind == CompKind::kGenerator ? ')' : '}');
}

std::string Printer::text_of(const Expr* e, int least) {
  // Up to 3.11 the expressions of an f-string stand on one line.
  std::string saved;
  std::swap(saved, out_);
  const size_t marks = marks_.size(), joints = joints_.size();
  const bool around = in_text_;
  in_text_ = true;
  const bool layout = layout_;
  layout_ = layout && version_ >= 312;
  ++brackets_;
  expr(e, least);
  --brackets_;
  layout_ = layout;
  std::swap(saved, out_);
  for (size_t i = marks; i < marks_.size(); ++i) marks_[i].at = out_.size();
  joints_.resize(joints);
  in_text_ = around;
  return saved;
}

// Appends the pieces of an f-string in `quote`. Sets `clash` where an expression holds what a string in these quotes may not hold.
bool Printer::joined_pieces(const Expr* e, const std::string& quote, bool spec, std::string* out, bool* clash) {
  Exprs parts{const_cast<Expr*>(e)};
  if (e->kind == ExprKind::kJoined) parts = e->items;
  for (const Expr* part : parts) {
    if (part->kind == ExprKind::kConst && PyUnicode_Check(part->object)) {
      // repr() escapes what must be escaped; quotes are put right here.
      std::string text = repr(part->object);
      const char used = text[0];
      text = text.substr(1, text.size() - 2);
      std::string made;
      for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\\' && i + 1 < text.size()) {
          if (text[i + 1] == used) {
            made += text[++i];
            if (made.back() == quote[0]) made.insert(made.size() - 1, "\\");
          } else {
            made += c;
            made += text[++i];
          }
        } else if (c == '{' || c == '}') {
          made += c;
          made += c;
        } else if (c == quote[0]) {
          made += '\\';
          made += c;
        } else {
          made += c;
        }
      }
      if (spec && version_ < 312 && made.find('\\') != std::string::npos) *clash = true;
      *out += made;
      continue;
    }
    if (part->kind == ExprKind::kJoined) {
      joined_pieces(part, quote, spec, out, clash);
      continue;
    }
    if (part->kind != ExprKind::kFormatted) no_form("a part of an f-string that is none");
    std::string text = text_of(part->items[0], kPrecTest);
    if (part->items[0]->kind == ExprKind::kFunction || text.find(":=") != std::string::npos) text = "(" + text + ")";
    // A lambda's colon would begin the format.
    if (part->items[0]->kind == ExprKind::kConditional && text.find("lambda") != std::string::npos) text = "(" + text + ")";
    if (version_ < 312 && (text.find('\\') != std::string::npos || text.find(quote) != std::string::npos)) *clash = true;
    if (version_ < 312 && quote.size() == 1 && text.find('\n') != std::string::npos) *clash = true;
    *out += '{';
    if (text[0] == '{') *out += ' ';
    *out += text;
    if (text.back() == '}') *out += ' ';
    if (part->op != 0) {
      *out += '!';
      *out += part->op == 1 ? 's' : part->op == 2 ? 'r' : 'a';
    }
    if (part->items.size() > 1) {
      *out += ':';
      joined_pieces(part->items[1], quote, true, out, clash);
    }
    *out += '}';
  }
  return true;
}

// From 3.11 on `'%s' % (x,)` compiles to what an f-string does, but each value has the place of its own expression, not of `{x!s}`.
bool Printer::is_percent_format(const Expr* e) {
  const Exprs lone{const_cast<Expr*>(e)};
  bool any = false;
  for (const Expr* part : e->kind == ExprKind::kJoined ? e->items : lone) {
    if (part->kind == ExprKind::kConst) continue;
    if (part->kind != ExprKind::kFormatted || part->op == 0 || part->at == nullptr || part->items[0]->at == nullptr) return false;
    const bytecode::Position &p = part->at->position, &q = part->items[0]->at->position;
    if (p.line <= 0 || p.column < 0 || p.line != q.line || p.column != q.column || p.end_line != q.end_line ||
        p.end_column != q.end_column) {
      return false;
    }
    any = true;
  }
  return any;
}

// Whether the compiler would have made an f-string of a text formatted with a tuple, had the text been a plain one.
bool Printer::would_be_formatted(const Expr* e) {
  const Expr *format = e->items[0], *values = e->items[1];
  if (format->kind != ExprKind::kConst || !PyUnicode_CheckExact(format->object) || values->kind != ExprKind::kTuple) return false;
  size_t wanted = 0;
  const std::string text = utf8(format->object);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    const size_t begin = ++i;
    if (i < text.size() && text[i] == '%') continue;
    while (i < text.size() && (text[i] == '-' || text[i] == '.' || (text[i] >= '0' && text[i] <= '9'))) ++i;
    if (i == text.size() || (text[i] != 's' && text[i] != 'r' && text[i] != 'a') || i - begin > 8) return false;
    ++wanted;
  }
  const auto starred = [](const Expr* one) { return one->kind == ExprKind::kStarred; };
  return wanted == values->items.size() && std::none_of(values->items.begin(), values->items.end(), starred);
}

// The text of an f-string without expressions, behind its `f`.
void Printer::constant_text(PyObject* text) {
  std::string doubled;
  for (const char c : repr(text)) {
    doubled += c;
    if (c == '{' || c == '}') doubled += c;
  }
  out_ += doubled;
}

void Printer::percent_format(const Expr* e) {
  const Exprs lone{const_cast<Expr*>(e)};
  std::string format;
  Exprs values;
  const auto add_text = [&](PyObject* text, bool literal) {
    for (const char c : utf8(text)) {
      format += c;
      if (literal && c == '%') format += c;
    }
  };
  for (const Expr* part : e->kind == ExprKind::kJoined ? e->items : lone) {
    if (part->kind == ExprKind::kConst) {
      add_text(part->object, true);
      continue;
    }
    format += '%';
    if (part->items.size() > 1) {
      if (part->items[1]->kind != ExprKind::kConst) no_form("a format that is no constant");
      std::string spec = utf8(part->items[1]->object);  // [>][width][.precision]
      if (spec[0] == '>') {
        spec.erase(0, 1);
      } else if (spec[0] != '.') {
        format += '-';
      }
      format += spec;
    }
    format += part->op == 1 ? 's' : part->op == 2 ? 'r' : 'a';
    values.push_back(part->items[0]);
  }
  const py::Ref text = py::Ref::steal(PyUnicode_FromStringAndSize(format.data(), static_cast<Py_ssize_t>(format.size())));
  if (!text) {
    PyErr_Clear();
    no_form("a format that is no text");
  }
  out_ += repr(text.get()) + " % ";
  tuple(values, false);
}

void Printer::joined(const Expr* e) {
  for (const char* quote : {"'", "\"", "\"\"\"", "'''"}) {
    std::string made = std::string("f") + quote;
    bool clash = false;
    const size_t before = printed_.size();
    joined_pieces(e, quote, false, &made, &clash);
    if (clash) {
      for (; printed_.size() > before; printed_.pop_back()) printed_.back()->printed = false;
      continue;
    }
    out_ += made + quote;
    return;
  }
  no_form("an f-string whose expressions cannot stand in one");
}

}  // namespace pellucid::decompile
