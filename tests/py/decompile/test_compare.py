"""The grades: what counts as the same code, and what must not."""

import textwrap

import pytest

from pellucid import _bytecode as bytecode
from pellucid import _grading, _interpreters, _recompile

DIFFERS, EQUAL_FLOW, IDENTICAL = 0, 1, 2


def function(source):
    space = {}
    exec(compile(textwrap.dedent(source), "<test>", "exec"), space)
    return space["f"].__code__


def grade(first, second):
    return bytecode.compare(function(first), function(second))


def test_the_same_source_is_identical():
    source = """
    def f(a, *b, c=1, **d):
        'doc'
        with a as x:
            for y in b:
                try:
                    yield lambda: (x, y, -0.0, 1)
                except KeyError as e:
                    return e
    """
    assert grade(source, source) == (IDENTICAL, "")
    assert bytecode.compare(function(source), bytecode.neutral(function(source))) == (IDENTICAL, "")


@pytest.mark.parametrize(
    "first, second",
    [
        ("return (a and\n b) or c", "return a and b or c"),
        ("if (a and\n b) or c:\n  return 1\n return 2", "if a and b or c:\n  return 1\n return 2"),
        ("x = (1,\n [a,\n b])\n return x", "x = (1, [a, b])\n return x"),
        ("if a: return 1\n else: return 2", "if not a: return 2\n else: return 1"),
        ("while a:\n  if b: continue\n  a = c", "while True:\n  if not a: break\n  if b: continue\n  a = c"),
    ],
)
def test_other_layouts_have_equal_flow(first, second):
    result, difference = grade(f"def f(a, b, c):\n {first}", f"def f(a, b, c):\n {second}")
    assert result >= EQUAL_FLOW, difference


@pytest.mark.parametrize(
    "first, second",
    [
        ("return a + b", "return b + a"),
        ("return 0.0", "return -0.0"),
        ("return 1", "return True"),
        ("return {1, 2} == a in {1, 2}", "return {1, 2} == a in {1.0, 2}"),
        ("return a in {1, 2}", "return a in {1, 2.0}"),
        ("return (1, (2, 3))", "return (1, (2, 3.0))"),
        ("a.x; b.x", "b.x; a.x"),
        ("try: a()\n except KeyError: pass", "a()"),
        ("try: a()\n except KeyError: pass", "try: a()\n except ValueError: pass"),
        ("try: a()\n finally: b()", "a()\n b()"),
        ("for x in a: b()\n else: c()", "for x in a: b()\n c(1)"),
        ("return a if b else c", "return c if b else a"),
        ("return lambda: a", "return lambda: b"),
        ("return lambda x=1: x", "return lambda x=2: x"),
        ("return lambda: 1", "return lambda: 2"),
        ("return a is None", "return a is not None"),
        ("if a is None: return 1", "if a is not None: return 1"),
        ("return a < b", "return a <= b"),
        ("return a.f(b)", "return a.g(b)"),
        ("return a.f(b=1)", "return a.f(c=1)"),
        ("'x'", "'y'"),
        ("while a: b()", "if a: b()"),
        ("while True: pass", "return None"),
        ("return len(a)", "return max(a)"),
        ("yield a", "return a"),
    ],
)
def test_different_programs_differ(first, second):
    result, difference = grade(f"def f(a, b, c):\n {first}", f"def f(a, b, c):\n {second}")
    assert result == DIFFERS
    assert difference


def test_signatures_and_names_count():
    assert grade("def f(a, b): pass", "def f(a, *, b): pass")[0] == DIFFERS
    assert grade("def f(a, b): pass", "def f(a, b, /): pass")[0] == DIFFERS
    assert grade("def f(a, b): pass", "def f(a, c): pass")[0] == DIFFERS
    code = function("def f(): return f")
    assert bytecode.compare(code, code.replace(co_name="g"))[0] == DIFFERS


def test_dead_names_keep_it_from_identical_only():
    assert grade("def f(a):\n if 0: x = 1\n return a", "def f(a):\n return a")[0] == EQUAL_FLOW


def test_standalone_ignores_prefixes_of_qualified_names():
    space = {}
    exec("class C:\n def f(self):\n  def g(): pass\n  return g\ndef f(self):\n  def g(): pass\n  return g", space)
    inner, alone = space["C"].f.__code__, space["f"].__code__
    assert bytecode.compare(inner, alone, standalone=True) == (IDENTICAL, "")
    assert bytecode.compare(inner, alone)[0] != IDENTICAL


def test_standalone_knows_what_is_put_around():
    source = "def make(x):\n class K:\n  def m(self): return x\n return K\n"
    space = {}
    exec(source, space)
    [body] = [const for const in space["make"].__code__.co_consts if hasattr(const, "co_code")]
    request = _recompile.Request("class K:\n def m(self): return x\n", "K", body.co_flags, body.co_freevars)
    assert bytecode.compare(body, _recompile.compile_request(request), standalone=True) == (IDENTICAL, "")


def test_what_cannot_be_compared_is_an_error():
    with pytest.raises(TypeError):
        bytecode.compare(1, function("def f(): pass"))


@pytest.mark.parametrize("pair", [("a", "not not a"), ("a == b", "not not a == b"), ("(not not a) and b", "a and b")])
def test_a_value_made_a_bool_is_another_value(pair):
    """Also where 3.13 says so in an instruction that only prepares a test elsewhere."""
    for version in (311, 312, 313):
        python = _interpreters.find(version)
        if python is None:
            continue
        compiler = _grading.Compiler(version, python)
        try:
            first, second = compiler.compile([_recompile.Request(f"def f(a, b):\n    return {text}\n", "f", 0) for text in pair])
        finally:
            compiler.close()
        assert bytecode.compare(first, second)[0] == DIFFERS
