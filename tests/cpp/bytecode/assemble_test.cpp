// Code as generators of code build it: from nothing, and with jumps longer than any source would give.
#include <gtest/gtest.h>

#include <string>

#include "bytecode/code.h"
#include "bytecode/lowering/code_object.h"

namespace pellucid::bytecode {
namespace {

class Assemble : public testing::Test {
 protected:
  void SetUp() override {
    if (running_version() != 311) GTEST_SKIP() << "written in opcodes of CPython 3.11";
  }

  static py::Ref text(const std::string& value) { return py::Ref::steal(PyUnicode_InternFromString(value.c_str())); }

  static void add_local(Code& code, const std::string& name, LocalKind kind = LocalKind::kLocal) {
    code.localsplus_names.push_back(text(name));
    code.localsplus_kinds.push_back(kind);
  }

  static void add(Code& code, Op op, uint32_t arg = 0, int32_t target = -1) {
    Instruction& made = code.instructions.emplace_back();
    made.op = op;
    made.arg = arg;
    made.target = target;
  }

  // A function (a, b, *rest, key) with nothing in it yet.
  static Code empty() {
    Code code;
    code.version = 311;
    for (const char* name : {"a", "b", "key", "rest"}) add_local(code, name);
    code.argcount = 2;
    code.kwonly = 1;
    code.flags = 0x04 | 0x03;  // CO_VARARGS, CO_OPTIMIZED, CO_NEWLOCALS
    code.firstlineno = 1;
    code.filename = text("made.py");
    code.name = text("made");
    code.qualname = text("made");
    code.consts.push_back(py::Ref::share(Py_None));
    add(code, Op::RESUME);
    return code;
  }

  // The result of made(a, b, key=None) as a C long; -1 with the exception printed.
  static long call(const Code& code, long a, long b) {
    EXPECT_EQ(validate(code), "");
    const py::Ref made = py::Ref::steal(assemble(code));
    const py::Ref globals = py::Ref::steal(PyDict_New());
    const py::Ref arguments = py::Ref::steal(Py_BuildValue("(ll)", a, b));
    const py::Ref keywords = py::Ref::steal(Py_BuildValue("{s:O}", "key", Py_None));
    py::Ref result;
    if (made && globals && arguments && keywords) {
      const py::Ref function = py::Ref::steal(PyFunction_New(made.get(), globals.get()));
      if (function) result = py::Ref::steal(PyObject_Call(function.get(), arguments.get(), keywords.get()));
    }
    if (result) return PyLong_AsLong(result.get());
    PyErr_Print();
    return -1;
  }

  static void expect_refused(const Code& code) {
    const py::Ref made = py::Ref::steal(assemble(code));
    EXPECT_FALSE(made);
    EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_ValueError));
    PyErr_Clear();
  }
};

TEST_F(Assemble, ArgumentsAndLocalsAreCounted) {
  Code code = empty();
  add_local(code, "local");
  add_local(code, "cell", LocalKind::kCell);
  EXPECT_EQ(code.n_arguments(), 4);
  EXPECT_EQ(code.nlocals(), 5);
}

TEST_F(Assemble, FromNothing) {
  Code code = empty();
  add(code, Op::LOAD_FAST, 0);
  add(code, Op::LOAD_FAST, 1);
  add(code, Op::BINARY_OP, 0);  // +
  add(code, Op::RETURN_VALUE);
  EXPECT_EQ(call(code, 3, 4), 7);
}

TEST_F(Assemble, AJumpOfThreePrefixes) {
  Code code = empty();
  constexpr int kFiller = 1 << 21;  // LOAD_METHOD takes eleven units with its cache
  add(code, Op::LOAD_FAST, 0);
  add(code, Op::POP_JUMP_FORWARD_IF_TRUE, 0, 5 + kFiller);
  add(code, Op::LOAD_FAST, 1);
  add(code, Op::RETURN_VALUE);
  code.names.push_back(text("x"));
  code.instructions.reserve(kFiller + 16);
  for (int i = 0; i < kFiller; ++i) add(code, Op::LOAD_METHOD, 0);  // never reached
  add(code, Op::LOAD_FAST, 0);
  add(code, Op::RETURN_VALUE);
  EXPECT_EQ(call(code, 0, 9), 9);
  EXPECT_EQ(call(code, 8, 9), 8);
  const py::Ref made = py::Ref::steal(assemble(code));
  Code again;
  ASSERT_TRUE(made && decode(made.get(), again));
  EXPECT_EQ(again.instructions[2].extended, 3);
  EXPECT_EQ(again.instructions[2].target, 5 + kFiller);
}

TEST_F(Assemble, RowsNeedNoOrder) {
  // Two protected divisions, each with a handler of its own; the rows are given last first.
  Code code = empty();
  for (int part = 0; part < 2; ++part) {
    const auto base = static_cast<int32_t>(code.instructions.size());
    add(code, Op::LOAD_FAST, 0);
    add(code, Op::LOAD_FAST, 1);
    add(code, Op::BINARY_OP, 2);  // //
    add(code, Op::RETURN_VALUE);
    add(code, Op::PUSH_EXC_INFO);
    add(code, Op::POP_TOP);
    add(code, Op::POP_EXCEPT);
    code.rows.insert(code.rows.begin(), {base, base + 3, base + 4, 0, false});
  }
  add(code, Op::LOAD_FAST, 0);
  add(code, Op::RETURN_VALUE);
  EXPECT_EQ(call(code, 9, 2), 4);
  EXPECT_EQ(call(code, 9, 0), 9);
}

TEST_F(Assemble, AnotherOrderOfLocalsIsRefused) {
  Code code = empty();
  add_local(code, "cell", LocalKind::kCell);
  add_local(code, "late");
  add(code, Op::LOAD_CONST, 0);
  add(code, Op::RETURN_VALUE);
  expect_refused(code);
}

TEST_F(Assemble, AnotherVersionIsRefused) {
  Code code = empty();
  code.version = 312;
  expect_refused(code);
}

TEST_F(Assemble, ManyLocalsNeedPrefixes) {
  Code code = empty();
  for (int i = 0; i < 300; ++i) add_local(code, "local" + std::to_string(i));
  add(code, Op::LOAD_FAST, 1);
  add(code, Op::STORE_FAST, 303);
  add(code, Op::LOAD_FAST, 303);
  add(code, Op::RETURN_VALUE);
  EXPECT_EQ(call(code, 1, 6), 6);
  const std::vector<std::vector<bool>> live = live_locals(code);
  EXPECT_TRUE(live[1][1]);
  EXPECT_FALSE(live[2][1]);
  EXPECT_FALSE(live[2][303]);
  EXPECT_TRUE(live[3][303]);
}

}  // namespace
}  // namespace pellucid::bytecode
