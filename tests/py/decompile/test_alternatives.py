"""Sources that bytecode leaves open: making decisions otherwise finds those that compile to the very same code."""

import re
import textwrap

import pytest
from interpreters import comes_back_identical
from test_old_versions import TAGS, code_of

from pellucid import _alternatives, _bytecode, _grading, decompiling

PROGRAMS = {
    "a loop around a branch that breaks": """
        def f(a):
            while a is not None:
                if a.b in c:
                    a = a.b
                else:
                    break
            return a
        """,
    "else behind a return in a loop": """
        def f(a):
            while True:
                if a.b:
                    if not c:
                        raise a
                    break
                a += 1
            return a
        """,
    "an endless loop at the beginning of a try statement": """
        def f(a):
            while len(a) > 1:
                try:
                    while True:
                        b = a[0]
                        yield b
                        a.pop(b)
                except StopIteration:
                    a.drop()
            if a:
                yield a[0]
        """,
    "continue behind branches": """
        def f(a):
            for b in a:
                if g(b):
                    if h(b):
                        yield b
                        for c in b:
                            yield c
                    continue
                if not b.d or b == e:
                    continue
                yield b.e
        """,
    "break in the else clause of try": """
        def f(a):
            while True:
                try:
                    g(a)
                except B:
                    a += 1
                else:
                    break
            return a
        """,
    "continue behind a branch": """
        def f(a):
            for b in a:
                if b is None:
                    if b == a:
                        raise c
                    continue
                if b:
                    g(b)
                else:
                    h(b)
        """,
    "return behind finally": """
        def f(a):
            try:
                g(a)
            finally:
                try:
                    h(a)
                except:
                    k(a)
        """,
    "break behind a branch": """
        def f(a):
            while a:
                if a.b:
                    a.c()
                elif a.d:
                    if a.e and not a.f:
                        a.g()
                    break
                else:
                    a.h()
                a.k()
            return a
        """,
    "break behind or": """
        def f(a):
            while True:
                b = a.c()
                if b == a or not b:
                    break
                g(b)
            h(a)
        """,
    "a loop of one round": """
        def f(a):
            while True:
                try:
                    return a.b()
                except A:
                    a.c = 1
                    raise
                except B as e:
                    if e.d:
                        return None
                    raise
        """,
    "return past a try statement in finally": """
        def f(a):
            try:
                g(a)
                return h[a]
            finally:
                try:
                    del h[a]
                except A:
                    pass
        """,
    "return given up in finally": """
        def f(a):
            for b in a:
                try:
                    return b
                finally:
                    if a.c:
                        continue
            for b in a:
                for c in b:
                    try:
                        return c + b
                    finally:
                        if a.d:
                            break
            return a
        """,
    "finally behind a body that does not end": """
        def f(a):
            try:
                while True:
                    a.b()
            except A:
                pass
            finally:
                a.d()
        """,
    "inside of others": """
        def f(a):
            class C:
                def g(self):
                    while self.a:
                        if self.b:
                            self.c()
                        else:
                            break
                    return a
            return C
        """,
}
# By how the condition ends: with a comparison of three, or past what drops its value.
CHAINS = """
if 0 <= a <= b and c: g()
if not (0 <= a <= b and 0 <= c <= d): raise g
if 0 <= a <= b or c: g()
if c or 0 <= a <= b: h()
if 0 <= a <= b or 0 <= c <= d: g()
if (a or b < c < d) and e: g()
if a and b < c < d and e: g()
if a or (b and c) or (d and 1 < e < 2) or (b and (g in h or a in h)) or k in g: g()
if a < b < c < d > e and k: g()
while a < b < c and d: g()
a = b < c < d or e
assert a < b < c
assert 0 <= a <= b or c, 'text'
a = 1 if b < c < d else 2
a = 1 if b < c < d or e else 2
a = [b for b in c if 0 < b < 3 and d or 3 < b < 4]
"""
CASES = [(tag, name, source) for tag in TAGS for name, source in PROGRAMS.items()]


@pytest.mark.parametrize(("tag", "name", "source"), CASES, ids=[f"{tag}-{name}" for tag, name, _ in CASES])
def test_identical(tag, name, source, compilers):
    comes_back_identical(code_of(tag, textwrap.dedent(source)), compilers(tag))


@pytest.mark.parametrize("statement", CHAINS.strip().splitlines())
@pytest.mark.parametrize("around", ["{}", "for z in y:\n        {}", "if z:\n        {}\n    else: h()"], ids=["alone", "loop", "branch"])
@pytest.mark.parametrize("tag", TAGS)
def test_chained_comparisons(tag, around, statement, compilers):
    code = code_of(tag, "def f(y):\n    " + around.format(statement) + "\n    return h()\n")
    assert decompiling.checked(code, compilers(tag)).grade == "identical"


UNREACHED = """
yield 1; raise; yield 2
raise a; yield 2
return 3; raise a('text')
while a:
        if a.b: g(); continue; b = 2
        h()
try:
        a.b()
        raise A('text')
        a.c('text')
    finally:
        a.d()
while not a:
        try:
            continue
            a = 'text'
        except:
            a = 'other text'
for b in a:
        break
        g(b)
try:
        a.b()
        return
    finally:
        a.c()
    a.d()
try:
        return a.b()
    except A:
        return a.c
    return a.d
"""


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("statements", re.split(r"^(?=\w)", UNREACHED.strip(), flags=re.MULTILINE)[1:])
def test_statements_that_nothing_reaches(tag, statements, compilers):
    code = code_of(tag, "def f(a):\n    " + statements.rstrip() + "\n")
    assert decompiling.checked(code, compilers(tag)).grade == "identical"


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize(
    "source",
    [
        "def f(a):\n    for b in a:\n        try:\n            g(b)\n        except A:\n            pass\n"
        "        else:\n            break\n"
        "    else:\n        raise A\n    h(b)\n",
        "def f(a):\n    for b in a:\n        try:\n            g(b)\n        except A:\n            continue\n        break\n"
        "    else:\n        raise A\n    h(b)\n",
        "def f(a):\n    try:\n        g(a)\n    except A as e:\n        h(e)\n    return a.b\n",
        "def f(a):\n    try:\n        g(a)\n    except A:\n        try:\n            h(a)\n        except B:\n"
        "            pass\n        raise\n",
        "def f(a):\n    f'no docstring'\n    return a\n",
        "def f(a):\n    return f(a)\n",
    ],
    ids=["else in a loop", "break behind try", "return behind handlers", "raise behind handlers", "f-string", "a global of its own name"],
)
def test_exits(tag, source, compilers):
    code = code_of(tag, source)
    assert decompiling.checked(code, compilers(tag)).grade == "identical"


@pytest.mark.parametrize(
    "source",
    [
        "def f(a):\n    if a:\n        return 3\n        raise A('text')\n    return a.b\n",
        "def f(a):\n    try:\n        raise A\n    except B as e:\n        a.c(e)\n    else:\n        a.d('text')\n    return a.b\n",
        "def f(a):\n    g(a)\n    if 0:\n        import b\n        c = b.d\n",
        "def f(a):\n    while 1:\n        a.b()\n    return c\n",
    ],
    ids=["behind return", "else", "behind the end", "behind a loop"],
)
def test_names_of_what_nothing_reaches(source, compilers):
    code = code_of(310, source)
    assert decompiling.checked(code, compilers(310)).grade == "identical"


@pytest.mark.parametrize("tag", [tag for tag in TAGS if tag >= 311])
@pytest.mark.parametrize(
    "source",
    [
        "def f(a):\n    if 1:\n        pass\n    if 0:\n        pass\n    return 1\n",
        "def f(a):\n    try:\n        return 1\n    finally:\n        a()\n",
        "def f(a):\n    b = 1\n    if 0:\n        pass\n    a(b)\n    if True or False:\n        return 1\n",
        "def f(a):\n    try:\n        pass\n    except a:\n        pass\n    a()\n",
        "def f(a):\n    if a:\n        return None\n    try:\n        raise a\n    except A:\n        pass\n"
        "    else:\n        a.b('text')\n",
        "def f(a, b):\n    for c in a:\n        if False and a.b:\n            print(a.c)\n        b(c)\n    return c\n",
    ],
    ids=["conditions", "return", "between statements", "try", "dead else", "dead if"],
)
def test_lines_of_which_nothing_is_left(tag, source, compilers):
    code = code_of(tag, source)
    assert decompiling.checked(code, compilers(tag)).grade == "identical"


@pytest.mark.parametrize("tag", [tag for tag in TAGS if tag >= 310])
def test_an_endless_loop_at_the_beginning_of_another_one(tag, compilers):
    source = """
def f(a, b):
    while True:
        while True:
            try:
                c = a.get()
            except KeyError:
                a.wait()
            else:
                break
        if c == b:
            return
        a.append(c)
"""
    assert decompiling.checked(code_of(tag, source), compilers(tag)).grade == "identical"


def test_choices_are_said_and_turned():
    code = compile("def f(a, b):\n    if a and b:\n        g()\n", "elsewhere", "exec").co_consts[0]
    source, choices = _bytecode.decompile_choices(code)
    assert "if a and b:" in source
    sources = [_bytecode.decompile_choices(code, turned=[choice])[0] for choice in choices]
    assert any("if a:\n        if b:" in each for each in sources if each is not None)
    assert all(name == "f:1" for name, _, _ in choices)


@pytest.mark.parametrize("tag", TAGS)
def test_each_inner_function_has_its_own_lines(tag, compilers):
    """Of two functions one compiles to the same with the original's lines only, the other one without them only, whatever is around."""
    source = """
def f(a):
    def with_lines(b):
        return [c for c in b
                if c and
                c.d or
                c.e]
    class C:
        def method(self, b):
            while b:
                if b.c: b = b.d
                else:
                    break
            return b
    return with_lines, C
"""
    code = code_of(tag, source)
    alternatives = _alternatives.Alternatives(compilers(tag))
    assert alternatives.search(code).grade == _grading.IDENTICAL


def test_lines_of_one_code_object():
    code = compile("def f(a):\n    def g(b): return h(b,\n        1)\n    return k(a,\n        g)\n", "elsewhere", "exec").co_consts[0]
    plain, _ = _bytecode.decompile_choices(code)
    with_lines, _ = _bytecode.decompile_choices(code, line_layout=True)
    inner, _ = _bytecode.decompile_choices(code, turned=[("g:2", 16, 0)])
    outer, _ = _bytecode.decompile_choices(code, turned=[("g:2", 17, 0)], line_layout=True)
    assert "    def g(b): return h(b,\n" in inner and "return k(a, g)\n" in inner
    assert "        return h(b, 1)\n" in outer and "return k(a,\n" in outer
    assert len({plain, with_lines, inner, outer}) == 4


@pytest.mark.parametrize("wrong", [1, [1], [("f", 1)], [(1, 2, 3)]])
def test_what_is_no_choice(wrong):
    with pytest.raises(TypeError):
        _bytecode.decompile_choices(test_what_is_no_choice.__code__, turned=wrong)


def test_the_search_ends_where_nothing_helps():
    """What no source compiles to stays what it was, at the best grade found."""
    code = compile("def f(a):\n    if a:\n        return g(a)\n    return 2\n", "elsewhere", "exec").co_consts[0]
    other = code.replace(co_names=("h",))
    compiler = _grading.Compiler(_grading.OWN_VERSION)
    compiler.compile = lambda requests: [code for _ in requests]  # compiles whatever it is given to the same
    found = _alternatives.Alternatives(compiler).search(other)
    assert found.grade == _grading.DIFFERS
