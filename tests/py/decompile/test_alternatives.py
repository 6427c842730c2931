"""Sources that bytecode leaves open: making decisions otherwise finds those that compile to the very same code."""

import textwrap

import pytest
from test_old_versions import TAGS, code_of, interpreter

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
CASES = [(tag, name, source) for tag in TAGS for name, source in PROGRAMS.items()]


@pytest.fixture(scope="module")
def compilers():
    made = {}
    yield lambda tag: made.setdefault(tag, _grading.Compiler(tag, interpreter(tag).path))
    for compiler in made.values():
        compiler.close()


@pytest.mark.parametrize(("tag", "name", "source"), CASES, ids=[f"{tag}-{name}" for tag, name, _ in CASES])
def test_identical(tag, name, source, compilers):
    code = code_of(tag, textwrap.dedent(source))
    result = decompiling.checked(code, compilers(tag))
    assert (result.grade, result.reason) == ("identical", "")
    assert _grading.check(compilers(tag), [(code, result.source)]) == [(_grading.IDENTICAL, "")]


def test_choices_are_said_and_turned():
    code = compile("def f(a, b):\n    if a and b:\n        g()\n", "elsewhere", "exec").co_consts[0]
    source, choices = _bytecode.decompile_choices(code)
    assert "if a and b:" in source
    sources = [_bytecode.decompile_choices(code, turned=[choice])[0] for choice in choices]
    assert any("if a:\n        if b:" in each for each in sources if each is not None)
    assert all(name == "f:1" for name, _, _ in choices)


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
