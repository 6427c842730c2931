// Expressions come back with no more parentheses than Python needs.
#include <utility>

#include "decompile/compiled.h"
#include "decompile/decompile.h"

namespace pellucid::decompile {
namespace {

// The expression that a function returns, there and back.
std::string again(const std::string& expression) {
  const std::string head = "def f(a, b, c):\n    return ";
  const py::Ref code = function_code(head + expression + "\n");
  Decompiled result;
  if (!code || !structured_source(code.get(), {}, &result)) {
    PyErr_Print();
    return "no code";
  }
  if (!result.structured || result.source.rfind(head, 0) != 0 || result.source.back() != '\n') return result.reason + result.source;
  return result.source.substr(head.size(), result.source.size() - head.size() - 1);
}

TEST(Print, NeededParenthesesStay) {
  for (const char* expression : {
           "a - (b - c)",   "(a + b) * c",         "(-a) ** b",    "(a ** b) ** c", "-(a + b)",
           "(a, b)[c]",     "(a or b) and c",      "not (a or b)", "(not a) + b",   "(a if b else c) if a else b",
           "(lambda: a)()", "(a < b) < c",         "a < (b < c)",  "(yield a) + b", "[(yield), a]",
           "(a | b) & c",   "a << (b << c)",       "(a @ b) ** c", "(1).real",      "(-1) ** a",
           "a((b, c))",     "(a.b if b else c).d", "a(*b or c)",
       }) {
    EXPECT_EQ(again(expression), expression);
  }
}

TEST(Print, OthersGo) {
  const std::pair<const char*, const char*> cases[] = {
      {"((a - b) - c)", "a - b - c"},
      {"(a * b) + (b * c)", "a * b + b * c"},
      {"a ** (b ** c)", "a ** b ** c"},
      {"a ** (-b)", "a ** -b"},
      {"-(a ** b)", "-a ** b"},
      {"(not (a)) or ((b) and (c))", "not a or b and c"},
      {"not (a < b)", "not a < b"},
      {"(a.b).c((a)[(b)])", "a.b.c(a[b])"},
      {"(a if b else (b if c else a))", "a if b else b if c else a"},
      {"lambda: (a, b)", "lambda: (a, b)"},
      {"a((x for x in b))", "a(x for x in b)"},
      {"(a | (b & c))", "a | b & c"},
      {"a[(b, c)]", "a[b, c]"},
      {"((a) < (b + c)) and ((b) in (c))", "a < b + c and b in c"},
      {"-(-(~a))", "--~a"},
      {"(a)[(b):(c)]", "a[b:c]"},
  };
  for (const auto& [given, expected] : cases) {
    EXPECT_EQ(again(given), expected);
    EXPECT_EQ(again(expected), expected);
  }
}

}  // namespace
}  // namespace pellucid::decompile
