"""Code whose form depends on little but the compiler: each program is compiled by each interpreter found and comes back identical."""

import textwrap

import pytest
from interpreters import comes_back_identical
from test_old_versions import code_of

VERSIONS = range(308, 314)

# By title: the versions, and the text.
PROGRAMS = {
    "not in front of or": (
        VERSIONS,
        """
        def f(a, b, c):
            if not (a is None or (b and c == 1)):
                g()
            while not (a in b or (b.x in c and b.y in c[b.x]) or (d(b) and b.z)):
                h()
            if c and not (a and b or a in c or b and not a):
                g()
            if not (a in b or c) and d:
                g()
            return [x for x in c if not (x in a or x and b)], not (a in b or not c)
        """,
    ),
    "annotations of what is no variable": (
        range(308, 312),
        """
        def f(a):
            class C:
                b.c: int = 0
            class D:
                b[0]: int
                b[1:2]: str
            a.b: int = 1
            a[g()]: int = 2
            return C, D
        """,
    ),
    "variables in cells that nothing closes over": (
        range(308, 311),
        """
        def f(a):
            if 0:
                lambda: a
            try:
                g()
            except A as e:
                a.e = e
            a = None
        """,
    ),
    "complex numbers": (
        VERSIONS,
        """
        def f():
            return -(1+0j), 1+6j, 1-6j, -(2.5+0j), -2j, -0.5-3j
        """,
    ),
    "constants in displays": (
        VERSIONS,
        """
        def f():
            a = {1, 1.0, True}
            b = [*(1, 2)]
            c = {*(1, 2)}
            return a, b, c
        """,
    ),
    "parts of displays that became constants later": (
        VERSIONS,
        """
        def f():
            a = [1 or 2 or 3, 2, 3]
            b = (1 or 2, 3)
            c = (0 and 1,)
            return a, b, c, {1 or 2, 3, 4}
        """,
    ),
    "texts within the expressions of f-strings": (
        VERSIONS,
        """
        def f(d):
            return f"{'#'}{d['#']}", f'{10:#{1}0x}', f'{-10:-{"#"}1{0}x}'
        """,
    ),
    "elements that no round reaches": (
        range(308, 313),
        """
        def f(a):
            return (x for x in (y for y in a if True) if False), [x for x in a if 0], {x: x for x in a if False}
        """,
    ),
    "conditions of comprehensions over several lines": (
        VERSIONS,
        """
        def f(a, b):
            return {
                k
                for k, v in a.items()
                if k in b or (
                    not k.startswith('_') and
                    k not in b.x and
                    not k.endswith('y') and
                    not k.upper() == k and
                    g(v) == b.z
                )
            }
        """,
    ),
    "a loop left to a return that was copied": (
        VERSIONS,
        """
        def f(a, b):
            for x in a:
                y = g(x)
                if len(y) <= b and len(x) <= b:
                    break
            else:
                raise ValueError('too long')
            return x, y
        """,
    ),
    "loops left to returns that were copied": (
        VERSIONS,
        """
        def f(a):
            for x in a:
                for y in x:
                    if y:
                        break
                    if y.z:
                        return y.x
                else:
                    raise A
                return x.y
            return None
        """,
    ),
    "continue out of a handler within with": (
        VERSIONS,
        """
        def f(a, b):
            for x in a:
                with b:
                    try:
                        y = x.y
                    except A:
                        z = g(x)
                        if z is None:
                            continue
                    else:
                        z = y(x)
                if z:
                    h(z)
        """,
    ),
    "a handler that returns past finally": (
        (308, 309, 310, 312, 313),
        """
        def f(self):
            try:
                a = self.g()
            except A as e:
                self.h(e)
                return
            finally:
                self.k = 1
            a.x = b
            return a
        """,
    ),
    "a finally block behind branches, in a handler": (
        VERSIONS,
        """
        def f(self):
            try:
                return self.g()
            except A:
                b()
                try:
                    if self.x >= 1:
                        a = self.y = False
                    else:
                        a = self.y = h()
                finally:
                    k()
                return a
        """,
    ),
    "values dropped at the end of a finally block": (
        range(308, 311),
        """
        def f(a, b):
            try:
                return a.g(b)
            finally:
                a.x() or a.y()
        """,
    ),
    "conditions that are constants": (
        range(308, 310),
        """
        def f(a):
            b = 1 if __debug__ else 0
            c, d = (1, 1) if __debug__ else (0, '')
            if (True if a else False):
                return b
            g(c, 5 if 1 else h(6))
            if 1 or 1:
                pass
            if not 1 and 1:
                pass
            if 1 and 1 or 1 and 1 and 1 or not 1 and 1:
                pass
            return d
        """,
    ),
    "else clauses that nothing reaches, in front of another statement": (
        range(308, 310),
        """
        def f(a):
            try:
                raise a
            except A:
                pass
            else:
                g('no exception')
            try:
                b = h()
                while True:
                    pass
            except B as e:
                k(e)
            else:
                g('not raised')
            try:
                g(b)
            except A:
                pass
        """,
    ),
    "an else clause behind a raise that is no assertion": (
        range(308, 309),
        """
        def f(a):
            if not a:
                raise AssertionError('a')
            elif a.x:
                g()
            else:
                h()
            k()
        """,
    ),
}
CASES = [(tag, name, source) for name, (tags, source) in PROGRAMS.items() for tag in tags]


@pytest.mark.parametrize(("tag", "name", "source"), CASES, ids=[f"{tag}-{name}" for tag, name, _ in CASES])
def test_identical(tag, name, source, compilers):
    comes_back_identical(code_of(tag, textwrap.dedent(source)), compilers(tag))
