// Constants that are equal to Python and not the same to a compiler, and the other way round.
#include "decompile/constants.h"

#include "decompile/compiled.h"

namespace pellucid::decompile {
namespace {

bool same(const std::string& a, const std::string& b) {
  const py::Ref left = value_of(a), right = value_of(b);
  EXPECT_TRUE(left && right);
  const bool result = same_constant(left.get(), right.get());
  EXPECT_EQ(same_constant(right.get(), left.get()), result) << a << " and " << b;
  EXPECT_EQ(PyErr_Occurred(), nullptr);
  return result;
}

TEST(Constants, TypesCount) {
  EXPECT_TRUE(same("1000", "999 + 1"));
  EXPECT_FALSE(same("1", "True"));
  EXPECT_FALSE(same("1", "1.0"));
  EXPECT_FALSE(same("1.0", "True"));
  EXPECT_FALSE(same("1.0", "1+0j"));
  EXPECT_FALSE(same("'a'", "b'a'"));
  EXPECT_FALSE(same("None", "..."));
}

TEST(Constants, FloatsAreTheirBits) {
  EXPECT_TRUE(same("0.5", "1 / 2"));
  EXPECT_FALSE(same("0.0", "-0.0"));
  EXPECT_FALSE(same("0j", "-0.0 + 0j * -1"));
  EXPECT_FALSE(same("complex(0.0, -0.0)", "complex(0.0, 0.0)"));
  EXPECT_TRUE(same("float('nan')", "float('nan')"));
  EXPECT_FALSE(same("float('nan')", "-float('nan')"));
  EXPECT_TRUE(same("1e309", "float('inf')"));
}

TEST(Constants, TuplesAreTheirItems) {
  EXPECT_TRUE(same("(1, (2.0, 'x'), ())", "tuple([1, tuple([2.0, 'x']), ()])"));
  EXPECT_FALSE(same("(1, (2.0, 'x'))", "(1, (2, 'x'))"));
  EXPECT_FALSE(same("(0.0,)", "(-0.0,)"));
  EXPECT_FALSE(same("(1, 2)", "(1, 2, 3)"));
  EXPECT_FALSE(same("((1, 2), 3)", "(1, (2, 3))"));
}

TEST(Constants, FrozensetsHaveNoOrder) {
  EXPECT_TRUE(same("frozenset([1, 'a', 8])", "frozenset(['a', 8, 1])"));
  EXPECT_FALSE(same("frozenset([1, 2])", "frozenset([1, 3])"));
  EXPECT_FALSE(same("frozenset([1])", "frozenset([True])"));
}

TEST(Constants, OtherObjectsAreThemselves) {
  const py::Ref list = value_of("[]");
  EXPECT_TRUE(same_constant(list.get(), list.get()));
  EXPECT_FALSE(same("[]", "[]"));
  EXPECT_FALSE(same("object()", "object()"));
  EXPECT_TRUE(same_constant(nullptr, nullptr));
  EXPECT_FALSE(same_constant(list.get(), nullptr));
}

}  // namespace
}  // namespace pellucid::decompile
