// Names and literals of the block form. Knows nothing of instructions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "bytecode/neutral_code.h"
#include "decompile/block_parts.h"

namespace pellucid::decompile::block {
namespace {

constexpr const char* kKeywords[] = {"False", "None",  "True",     "__debug__", "and",    "as",   "assert", "async",  "await",
                                     "break", "class", "continue", "def",       "del",    "elif", "else",   "except", "finally",
                                     "for",   "from",  "global",   "if",        "import", "in",   "is",     "lambda", "nonlocal",
                                     "not",   "or",    "pass",     "raise",     "return", "try",  "while",  "with",   "yield"};
constexpr int kMaxLiteralDepth = 12;
constexpr int kMaxNesting = 100;

std::string checked_utf8(PyObject* owned) {
  const py::Ref text = py::Ref::steal(owned);
  if (!text) throw PythonError();
  return utf8(text.get());
}

}  // namespace

std::string utf8(PyObject* text) {
  const py::Ref bytes = py::Ref::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
  if (!bytes) throw PythonError();
  return std::string(PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
}

bool is_plain_name(const std::string& name) {
  for (const char* keyword : kKeywords) {
    if (name == keyword) return false;
  }
  const py::Ref text = py::Ref::steal(PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), nullptr));
  if (!text) {
    PyErr_Clear();
    return false;
  }
  if (PyUnicode_IsIdentifier(text.get()) != 1) return false;
  if (std::all_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 128; })) return true;
  // The parser brings identifiers to NFKC; one that is not in it would become another name.
  const py::Ref module = py::Ref::steal(PyImport_ImportModule("unicodedata"));
  const py::Ref normal = py::Ref::steal(module ? PyObject_CallMethod(module.get(), "normalize", "sO", "NFKC", text.get()) : nullptr);
  if (!normal) throw PythonError();
  return PyUnicode_Compare(normal.get(), text.get()) == 0;
}

std::string quoted(PyObject* text) { return checked_utf8(PyObject_ASCII(text)); }

Shared::Shared(PyObject* root) {
  collect(root, 0);
  const auto free = [&](const std::string& prefix) {
    return std::none_of(used_.begin(), used_.end(), [&](const std::string& name) {
      if (name.rfind(prefix, 0) != 0 || name.size() == prefix.size()) return false;
      // What we make: a letter or word, then digits and underscores.
      return name[prefix.size()] != '_';
    });
  };
  // Names that begin with one underscore are common, so ours carry a number as well; see UnitPrinter::temporary.
  prefix_ = "_b_";
  for (int i = 0; !free(prefix_); ++i) prefix_ = "_b" + std::to_string(i) + "_";
  helpers_ = prefix_ + "helpers";
}

void Shared::collect(PyObject* code, int depth) {
  if (depth > kMaxNesting) throw Unsupported("code objects nested too deeply");
  bytecode::Code decoded;
  if (!bytecode::decode(code, decoded)) throw PythonError();
  for (const py::Ref& name : decoded.names) used_.insert(utf8(name.get()));
  for (const py::Ref& name : decoded.localsplus_names) used_.insert(utf8(name.get()));
  for (const py::Ref& value : decoded.consts) {
    if (bytecode::is_code(value.get())) collect(value.get(), depth + 1);
  }
}

std::string Shared::bind(const std::string& stem, PyObject* value, bool renamed) {
  if (const auto known = bound_.find(value); known != bound_.end()) return known->second;
  const std::string name = renamed ? stem : temporary(stem + std::to_string(next_number()));
  bindings.push_back({name, py::Ref::share(value), renamed});
  if (!renamed) bound_[value] = name;
  return name;
}

std::string Shared::literal(PyObject* value) { return literal(value, 0); }

std::string Shared::literal(PyObject* value, int depth) {
  if (value == Py_None) return "None";
  if (value == Py_True) return "True";
  if (value == Py_False) return "False";
  if (value == Py_Ellipsis) return "...";
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    return checked_utf8(PyNumber_ToBase(value, overflow != 0 ? 16 : 10));  // decimal digits are limited in number
  }
  if (PyFloat_CheckExact(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    if (std::isnan(number)) {
      for (const auto& [known, name] : {std::pair{Py_NAN, "nan"}, std::pair{-Py_NAN, "negative_nan"}}) {
        const double bits = known;
        if (std::memcmp(&bits, &number, sizeof number) == 0) return helper(name);
      }
      return bind("const", value, false);
    }
    if (std::isinf(number)) return number > 0 ? "1e999" : "-1e999";
    return checked_utf8(PyObject_Repr(value));
  }
  if (PyUnicode_CheckExact(value) || PyBytes_CheckExact(value)) return quoted(value);
  if (PyComplex_CheckExact(value)) {
    const Py_complex number = PyComplex_AsCComplex(value);
    const py::Ref real = py::Ref::steal(PyFloat_FromDouble(number.real)), imaginary = py::Ref::steal(PyFloat_FromDouble(number.imag));
    if (!real || !imaginary) throw PythonError();
    const std::string text = literal(imaginary.get(), depth);
    const bool plain = number.real == 0 && !std::signbit(number.real) && !std::signbit(number.imag) && std::isfinite(number.imag);
    return plain ? text + "j" : helper("complex") + "(" + literal(real.get(), depth) + ", " + text + ")";
  }
  if (PyFrozenSet_CheckExact(value) && depth < kMaxLiteralDepth) {
    const py::Ref items = py::Ref::steal(PySequence_Tuple(value));
    if (!items) throw PythonError();
    return helper("frozenset") + "(" + literal(items.get(), depth + 1) + ")";
  }
  if (PyTuple_CheckExact(value) && depth < kMaxLiteralDepth) {
    std::string text = "(";
    const Py_ssize_t size = PyTuple_GET_SIZE(value);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (i > 0) text += ", ";
      text += literal(PyTuple_GET_ITEM(value, i), depth + 1);
    }
    return text + (size == 1 ? ",)" : ")");
  }
  return bind("const", value, false);
}

}  // namespace pellucid::decompile::block
