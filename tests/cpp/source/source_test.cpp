// Sources: equal paths are one pointer, names say how to read them, keys compare without Python code.
#include "source/source.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "source/plain.h"

namespace pellucid::source {
namespace {

py::Ref text(const char* value) { return py::Ref::steal(PyUnicode_FromString(value)); }

py::Ref eval(const char* expression) {
  py::Ref globals = py::Ref::steal(PyDict_New());
  PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins());
  py::Ref value = py::Ref::steal(PyRun_String(expression, Py_eval_input, globals.get(), globals.get()));
  if (!value) PyErr_Print();
  return value;
}

TEST(SourceTest, EqualPathsAreOnePointer) {
  Arena arena;
  py::Ref x = text("x"), y = text("y"), joined = eval("''.join(['a', 'b'])"), literal = text("ab");
  ASSERT_NE(joined.get(), literal.get());
  const Source* local = arena.local(0, x.get());
  EXPECT_EQ(local, arena.local(0, x.get()));
  EXPECT_NE(local, arena.local(1, y.get()));
  EXPECT_EQ(arena.keyed(Kind::kInstanceItem, local, joined.get()), arena.keyed(Kind::kInstanceItem, local, literal.get()));
  EXPECT_NE(arena.keyed(Kind::kInstanceItem, local, literal.get()), arena.keyed(Kind::kAttr, local, literal.get()));
  EXPECT_NE(arena.indexed(Kind::kItem, local, 0), arena.indexed(Kind::kItem, local, 1));
  EXPECT_EQ(arena.derived(Kind::kTypeOf, local), arena.derived(Kind::kTypeOf, local));
  EXPECT_EQ(arena.all().size(), 7u);
}

TEST(SourceTest, KeysOfDifferentTypesAreDifferent) {
  Arena arena;
  const Source* base = arena.local(0, text("d").get());
  const Source* one = arena.keyed(Kind::kDictItem, base, eval("1").get());
  EXPECT_NE(one, arena.keyed(Kind::kDictItem, base, eval("True").get()));
  EXPECT_NE(one, arena.keyed(Kind::kDictItem, base, eval("1.0").get()));
  EXPECT_EQ(one, arena.keyed(Kind::kDictItem, base, eval("int('1')").get()));
  EXPECT_NE(arena.keyed(Kind::kDictItem, base, eval("0.0").get()), arena.keyed(Kind::kDictItem, base, eval("-0.0").get()));
  EXPECT_EQ(arena.keyed(Kind::kDictItem, base, eval("(1, 'a')").get()), arena.keyed(Kind::kDictItem, base, eval("(int('1'), 'a')").get()));
}

TEST(SourceTest, ConstantsAreTheirObjects) {
  Arena arena;
  py::Ref first = eval("[]"), second = eval("[]");
  const Source* a = arena.constant(first.get());
  const Source* b = arena.constant(second.get());
  EXPECT_NE(a, b);
  EXPECT_NE(a->name, b->name);
  EXPECT_EQ(a, arena.constant(first.get()));
}

TEST(SourceTest, NamesReadLikePython) {
  Arena arena;
  const Source* x = arena.local(0, text("x").get());
  const Source* layers = arena.keyed(Kind::kInstanceItem, x, text("layers").get());
  EXPECT_EQ(arena.indexed(Kind::kItem, layers, 0)->name, "L['x'].layers[0]");
  EXPECT_EQ(arena.keyed(Kind::kDictItem, layers, text("it's").get())->name, "L['x'].layers[\"it's\"]");
  EXPECT_EQ(arena.keyed(Kind::kInstanceItem, x, text("no name").get())->name, "L['x'].__dict__['no name']");
  EXPECT_EQ(arena.keyed(Kind::kAttr, arena.global(text("torch").get()), text("abs").get())->name, "G['torch'].abs");
  EXPECT_EQ(arena.derived(Kind::kCellContents, arena.free_cell(2, text("v").get()))->name, "F.__closure__[2].cell_contents");
  EXPECT_EQ(arena.keyed(Kind::kClassAttr, x, text("forward").get())->name, "type(L['x']).forward");
  EXPECT_EQ(arena.keyed(Kind::kKwDefault, x, text("k").get())->name, "L['x'].__kwdefaults__['k']");
  EXPECT_EQ(arena.indexed(Kind::kDefault, x, 1)->name, "L['x'].__defaults__[1]");
  EXPECT_EQ(arena.derived(Kind::kDictOf, arena.constant(reinterpret_cast<PyObject*>(&PyLong_Type)))->name, "K['int'].__dict__");
}

TEST(SourceTest, AWrongStepIsAnInternalError) {
  Arena arena;
  const Source* x = arena.local(0, text("x").get());
  EXPECT_THROW(arena.indexed(Kind::kAttr, x, 0), base::InternalError);
  EXPECT_THROW(arena.keyed(Kind::kItem, x, text("k").get()), base::InternalError);
  EXPECT_THROW(arena.derived(Kind::kItem, x), base::InternalError);
}

TEST(PlainTest, EqualMeansSameTypeAndBits) {
  EXPECT_TRUE(plain_equal(eval("10**30").get(), eval("10**30").get()));
  EXPECT_FALSE(plain_equal(eval("1").get(), eval("True").get()));
  EXPECT_FALSE(plain_equal(eval("0.0").get(), eval("-0.0").get()));
  EXPECT_TRUE(plain_equal(eval("float('nan')").get(), eval("float('nan')").get()));
  EXPECT_FALSE(plain_equal(eval("(1, 2)").get(), eval("(1, 2.0)").get()));
  EXPECT_TRUE(plain_equal(eval("slice(1, None)").get(), eval("slice(1, None)").get()));
  EXPECT_FALSE(plain_equal(eval("[1]").get(), eval("[1]").get()));
}

TEST(PlainTest, ContainersOfOtherValuesAreNotPlain) {
  EXPECT_TRUE(is_plain(eval("(1, ('a', None), frozenset({2}))").get()));
  EXPECT_FALSE(is_plain(eval("(1, [2])").get()));
  EXPECT_FALSE(is_plain(eval("type('T', (), {})()").get()));
  EXPECT_FALSE(is_plain(eval("type('I', (int,), {})(3)").get()));
}

TEST(PlainTest, HashAgreesWithEqual) {
  for (const char* expression : {"10**30", "'text'", "(1, 'a', (2.5,))", "frozenset({1})", "slice(1, 2)", "1j", "b'b'"}) {
    EXPECT_EQ(plain_hash(eval(expression).get()), plain_hash(eval(expression).get())) << expression;
  }
}

}  // namespace
}  // namespace pellucid::source
