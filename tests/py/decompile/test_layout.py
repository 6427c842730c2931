"""Sources printed with the original's lines: where lines begin decides what compilers make of jumps, of pairs of variables and of lines
without an instruction."""

import textwrap

import pellucid._bytecode as bytecode
import pytest

from pellucid import _grading, _interpreters

PROGRAMS = {
    "arguments on lines of their own": """
        def f(a, b):
            return g(
                a,
                b,
                key=(a,
                     b))
        """,
    "an operand on the next line": """
        def f(a, b, c):
            x = (a and
                 b or
                 c)
            return x
        """,
    "a suite behind its header": """
        def f(a, b):
            for x in a: b(x)
            try: a()
            except ValueError: pass
            if a: return b
            while True: b(); a = b
        """,
    "statements behind each other": """
        def f(a, b):
            a = b; b = a
            return a; b
        """,
    "conditions of comprehensions": """
        def f(a, b):
            return (x for x in a
                    if x
                    if b(x))
        """,
    "a with statement of one line": """
        def f(a, b):
            with a(b): pass
            with b as c: pass
            return c
        """,
    "text formatted with a tuple over several lines": """
        def f(a, b):
            return ('%s and %-5r, 100%%: %.3a'
                    % (a, b.x,
                       a(b)))
        """,
    "targets over several lines": """
        def f(a):
            (b, c, d,
             e) = a(a)
            return b
        """,
    "a test and what follows it on one line": """
        def f(a, b, c):
            if a: pass
            if a < b < c: pass
        """,
    "a value returned out of a with statement": """
        def f(a, b):
            with a(b):
                return b.c(
                    a,
                    b)
            with b:
                return (
                    a
                    + b)
        """,
    "conditions in parentheses": """
        def f(a, b, c):
            return ((a and b)
                    and c)
        def g(a, b, c):
            return ((a or b)
                    or c)
        """,
    "annotations on lines of their own": """
        def f(a):
            def g(
                b: 'int' = 1,
                c: 'str' = '',
                *,
                d: 3 = a,
            ) -> 'None':
                return b
            def h(b, c: 1, d: 2, *e: 3, f=4,
                  **g: 5) -> 6: pass
            return g, h
        """,
    "a value returned where an exception is handled": """
        def f(a, b, c):
            with a:
                try:
                    return a.b(a, b,
                               b, c).d()
                finally:
                    b()
        """,
    "conditions in parentheses of a lambda": """
        def f(a):
            return g(lambda b:
                b.a()
                and (b.c(1) and not b.c(2))
                or b.d())
        """,
    "bodies without effect on the line of try": """
        def f(a):
            for b in a:
                try: pass
                except: pass
                try: pass
                finally: pass
                b.c()
        """,
    "methods in a chain": """
        def f(a, b):
            return a.first(b) \\
                .second(a,
                        b)
        """,
}


@pytest.mark.parametrize("version", [311, 312, 313])
@pytest.mark.parametrize("title", PROGRAMS)
def test_layout_makes_it_identical(title, version):
    python = _interpreters.find(version)
    if python is None:
        pytest.skip(f"no Python {_interpreters.version_name(version)} is found")
    compiler = _grading.Compiler(version, python)
    try:
        program = textwrap.dedent(PROGRAMS[title])
        [original] = compiler.compile([_grading._recompile.Request(program, "f", 0)])
        source, reason, _, _ = bytecode.decompile_structured(original, line_layout=True)
        assert source is not None, reason
        assert _grading.check(compiler, [(original, source)]) == [(_grading.IDENTICAL, "")], source
    finally:
        compiler.close()


def test_lines_break_where_the_original_did():
    space = {}
    exec("def f(a, b):\n    c = a.b(\n        b)\n    return c if a else \\\n        b\n", space)
    source, _, line_map, _ = bytecode.decompile_structured(space["f"].__code__, line_layout=True)
    assert source == "def f(a, b):\n    c = a.b(\n        b)\n    return (c if a else\n        b)\n"
    assert {line: lines for line, _, _, lines in line_map} == {2: (2,), 3: (3,), 4: (4,), 5: (5,)}
