// The table of skip rules. First match wins; a file that no rule names is looked at.
#include "cache/skip_rules.h"

#include <cstring>
#include <string_view>
#include <utility>

namespace pellucid::cache {

namespace {

SkipRoots& roots() {
  static SkipRoots instance;
  return instance;
}

enum class Where { kTorch, kOwn, kSite, kLibrary, kName };  // what `prefix` is relative to

struct FileRule {
  Where where;
  const char* prefix;
  const char* reason;  // null: look at it
};

constexpr const char* kTorchInternals = "code of PyTorch's internals";

constexpr FileRule kFileRules[] = {
    // What users write programs with in torch/ is ordinary Python to us.
    {Where::kTorch, "nn/modules/", nullptr},
    {Where::kTorch, "nn/functional.py", nullptr},
    {Where::kTorch, "nn/utils/", nullptr},
    {Where::kTorch, "nn/init.py", nullptr},
    {Where::kTorch, "distributions/", nullptr},
    {Where::kTorch, "functional.py", nullptr},
    {Where::kTorch, "", kTorchInternals},
    {Where::kOwn, "polyfills/", nullptr},
    {Where::kOwn, "", "code of Pellucid's own"},
    {Where::kSite, "", nullptr},  // before the standard library, which it lies in
    {Where::kLibrary, "", "code of the standard library"},
    {Where::kName, "<frozen ", "a frozen module of the interpreter"},
    {Where::kName, "<__array_function__", "a dispatcher of NumPy"},
    {Where::kName, "<eval_with_key>", "a captured graph"},
};

const std::string& root_of(Where where) {
  static const std::string none;
  switch (where) {
    case Where::kTorch:
      return roots().torch;
    case Where::kOwn:
      return roots().own;
    case Where::kSite:
      return roots().site;
    case Where::kLibrary:
      return roots().library;
    case Where::kName:
      break;
  }
  return none;
}

bool matches(const FileRule& rule, std::string_view file) {
  const std::string& root = root_of(rule.where);
  if (rule.where != Where::kName && (root.empty() || file.substr(0, root.size()) != root)) return false;
  file.remove_prefix(root.size());
  return file.substr(0, strlen(rule.prefix)) == rule.prefix;
}

}  // namespace

void set_skip_roots(SkipRoots new_roots) { roots() = std::move(new_roots); }

const char* skip_reason(PyObject* code_object) {
  auto* code = reinterpret_cast<PyCodeObject*>(code_object);
  if (code->co_flags & CO_GENERATOR) return "a generator";
  if (code->co_flags & CO_COROUTINE) return "a coroutine";
  if (code->co_flags & CO_ASYNC_GENERATOR) return "an asynchronous generator";
  if (!(code->co_flags & CO_OPTIMIZED)) return "the body of a class or module";
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
  if (text == nullptr) {  // a name with lone surrogates: none of the files in the table
    PyErr_Clear();
    return nullptr;
  }
  std::string_view file(text, static_cast<size_t>(length));
  for (const FileRule& rule : kFileRules) {
    if (matches(rule, file)) return rule.reason;
  }
  return nullptr;
}

}  // namespace pellucid::cache
