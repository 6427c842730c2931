// What is identical, what has an equal flow, and what differs.
#include "decompile/compare.h"

#include "decompile/compiled.h"

namespace pellucid::decompile {
namespace {

Comparison compared(PyObject* first, PyObject* second, const CompareOptions& options = {}) {
  Comparison result;
  EXPECT_TRUE(first != nullptr && second != nullptr && compare(first, second, options, &result));
  EXPECT_EQ(result.difference.empty(), result.grade == Grade::kIdentical) << result.difference;
  return result;
}

Grade grade(const std::string& first, const std::string& second) {
  return compared(function_code(first).get(), function_code(second).get()).grade;
}

TEST(Compare, LinesDoNotCount) {
  EXPECT_EQ(grade("def f(a):\n  b = a\n  return b + 1\n", "\n\ndef f(a):\n  b = (\n    a)\n\n  return b + 1\n"), Grade::kIdentical);
}

TEST(Compare, PolarityOfBranchesIsEqualFlow) {
  EXPECT_EQ(grade("def f(a, b):\n  if a:\n    b(1)\n  else:\n    b(2)\n  b(3)\n",
                  "def f(a, b):\n  if not a:\n    b(2)\n  else:\n    b(1)\n  b(3)\n"),
            Grade::kEqualFlow);
}

TEST(Compare, ThreadedJumpsAreEqualFlow) {
  EXPECT_EQ(grade("def f(a, b, c):\n  if a and b:\n    c(1)\n  c(2)\n",
                  "def f(a, b, c):\n  if a:\n    if b:\n      c(1)\n    else:\n      pass\n  c(2)\n"),
            Grade::kEqualFlow);
  EXPECT_EQ(grade("def f(a, b, c):\n  if not (a and b):\n    c(1)\n  else:\n    c(2)\n  c(3)\n",
                  "def f(a, b, c):\n  if a and b:\n    c(2)\n  else:\n    c(1)\n  c(3)\n"),
            Grade::kEqualFlow);
}

TEST(Compare, OperandsAndConstantsCount) {
  EXPECT_EQ(grade("def f(a, b): return a + b\n", "def f(a, b): return b + a\n"), Grade::kDiffers);
  EXPECT_EQ(grade("def f(a): return a(1)\n", "def f(a): return a(True)\n"), Grade::kDiffers);
  EXPECT_EQ(grade("def f(a): return a(0.0)\n", "def f(a): return a(-0.0)\n"), Grade::kDiffers);
  EXPECT_EQ(grade("def f(a): return a.b\n", "def f(a): return a.c\n"), Grade::kDiffers);
}

TEST(Compare, HandlersCount) {
  EXPECT_EQ(
      grade("def f(a):\n  try:\n    a(1)\n    a(2)\n  finally:\n    a(3)\n", "def f(a):\n  a(1)\n  try:\n    a(2)\n  finally:\n    a(3)\n"),
      Grade::kDiffers);
}

TEST(Compare, InnerFunctionsCount) {
  EXPECT_EQ(grade("def f(a):\n  return lambda: a + 1\n", "def f(a):\n  return lambda: a + 2\n"), Grade::kDiffers);
  EXPECT_EQ(grade("def f(a):\n  return lambda b: a if b else 1\n", "def f(a):\n  return lambda b: 1 if not b else a\n"), Grade::kEqualFlow);
}

TEST(Compare, StandingAloneLeavesOutWhatIsAround) {
  const py::Ref outer = function_code("def f():\n  def g(a): return a\n  return g\n");
  ASSERT_TRUE(outer);
  const py::Ref consts = py::Ref::steal(PyObject_GetAttrString(outer.get(), "co_consts"));
  ASSERT_TRUE(consts);
  PyObject* inner = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(consts.get()); ++i) {
    if (PyCode_Check(PyTuple_GET_ITEM(consts.get(), i))) inner = PyTuple_GET_ITEM(consts.get(), i);
  }
  ASSERT_NE(inner, nullptr);
  const py::Ref alone = function_code("def g(a): return a\n");
  EXPECT_NE(compared(inner, alone.get()).grade, Grade::kIdentical);
  CompareOptions options;
  options.standalone = true;
  EXPECT_EQ(compared(inner, alone.get(), options).grade, Grade::kIdentical);
}

TEST(Compare, BoundNamesAreTheirConstants) {
  const py::Ref original =
      value_of("[c.replace(co_consts=tuple({} if k == 'text' else k for k in c.co_consts)) for c in [(lambda a: a('text')).__code__]][0]");
  const py::Ref again = value_of("(lambda a: a(bound)).__code__");
  ASSERT_TRUE(original && again);
  EXPECT_EQ(compared(original.get(), again.get()).grade, Grade::kDiffers);
  const py::Ref consts = py::Ref::steal(PyObject_GetAttrString(original.get(), "co_consts"));
  ASSERT_TRUE(consts);
  PyObject* object = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(consts.get()); ++i) {
    if (PyDict_Check(PyTuple_GET_ITEM(consts.get(), i))) object = PyTuple_GET_ITEM(consts.get(), i);
  }
  ASSERT_NE(object, nullptr);
  const py::Ref right = py::Ref::steal(Py_BuildValue("{s:O}", "bound", object)), wrong = value_of("{'bound': {}}");
  CompareOptions options;
  options.bindings = right.get();
  EXPECT_EQ(compared(original.get(), again.get(), options).grade, Grade::kEqualFlow);
  options.bindings = wrong.get();
  EXPECT_EQ(compared(original.get(), again.get(), options).grade, Grade::kDiffers);
}

}  // namespace
}  // namespace pellucid::decompile
