"""The check of block forms: what is the same program is proven, and every change of one is refused, in each Python found."""

import re
import textwrap

import find_pythons
import pytest

from pellucid import _bytecode, _grading, _recompile

FOUND, SKIPPED = find_pythons.find()
TAGS = (308, 309, 310, 311, 312, 313)

SAMPLE = """
    def f(log, a, b):
        total = 0
        for x in a:
            try:
                log.first(x)
                log.second(total - x)
                if x > b:
                    total = [x, log][0] - total
                else:
                    total -= g(x, b) if x else log
            except KeyError as error:
                log.third(error)
                raise ValueError(x) from error
            with b.opened(x, a) as y:
                y.run(*a, **x)
        return total
    """

PROGRAMS = {
    "loops and handlers": SAMPLE,
    "a loop that does nothing": "def f():\n while True: pass",
    "finally": """
        def f(a):
            for x in a:
                try:
                    try:
                        if g(x):
                            continue
                        return h(x)
                    finally:
                        k(x)
                except (A, B):
                    if k:
                        break
                    raise
            else:
                return m()
        """,
    "generators": """
        def f(a):
            try:
                x = yield a
                y = yield from x
            except GeneratorExit:
                return (yield)
            return [z async for z in y] if x else y
        """.replace("[z async for z in y]", "[z for z in y]"),
    "asynchronous functions": """
        async def f(a):
            async with a as b:
                async for x in b:
                    await x
                return [await y async for y in b if y]
        """,
    "asynchronous generators": """
        async def f(a):
            async for x in a:
                y = yield x
                await y
        """,
    "functions and classes": """
        def f(a, b=1, *c, d: int = 2, **e):
            class A(a, metaclass=b):
                "about"
                x: int = a
                __y = d
                def __init__(self, z=a, *, w: str = "w"):
                    super().__init__(z)
                    nonlocal b
                    b = lambda: (self, w, __class__)
                @property
                def value(self): return [self.x + u for u in a if u]
            def inner():
                "about"
                return lambda: (a, A, [lambda: v for v in b])
            return {k: inner for k in c}, {*c}, A
        """,
    "calls and displays": """
        def f(a, b):
            g(*a, 1, *b, k=2, **a, **b)
            a.m(b, k=a)[a:b] = {**a, 'x': b, **b}
            x, *y = [*a, *b], (*a, *b), {*a, 1}
            a[b] += y
            return f'{a!r:>{b}} {x}' % (a, b.c), not a is b, a not in b, a < b < x, -a
        """,
    "many at once": "def f(a, b):\n return a({}), [{}], ({}), {{{}}}, {{{}}}, a({}), f'{}'\n".format(
        *[", ".join(["a.x, b"] * 20)] * 4,
        ", ".join("b.x{}: a".format(i) for i in range(20)),
        ", ".join("k{}=a.x{}".format(i, i) for i in range(20)),
        "{a.x}{b}" * 20,
    ),
    "constants": "def f(a):\n return a, -0.0, 1e999, 1j, -1j, 0.0, 10 ** 30, (1, (True, None, ...)), {1, 2}, b'x', a in {1, 2, 3}",
    "imports and names": """
        def f():
            global x
            import a.b as c, d
            from .e import g as h, i
            x = d
            del x, c
            try:
                del h
            finally:
                assert i, len
        """,
}
NEWER = {
    310: {
        "match": """
            def f(a):
                match a:
                    case {"x": [1, *y], **z} if y: return y, z
                    case A(1, k=(B.c | None) as w): return w
                    case [_, _] | -1: return 0
                return a
            """
    },
    311: {
        "except*": """
            def f(a):
                try:
                    g()
                except* A as e:
                    h(e)
                except* (B, C):
                    k()
            """
    },
    312: {
        "type parameters": """
            def f(a):
                class A[T: int, *U](B[T]):
                    type C[V] = dict[T, V]
                    x: T
                def g[S](x: S) -> S: return [lambda: y for y in x if a]
                return A, g
            """
    },
}


@pytest.fixture(scope="module", params=TAGS)
def compiler(request):
    python = next((python for python in FOUND if python.tag == request.param), None)
    if python is None:
        pytest.skip(next((note for note in SKIPPED if "{}.{}".format(*divmod(request.param, 100)) in note), "not found"))
    made = _grading.Compiler(request.param, python.path)
    yield made
    made.close()


def compiled(compiler, source):
    """The code object of the function `f` that a source defines."""
    [code] = compiler.compile([_recompile.Request(textwrap.dedent(source), "f", 0)])
    assert not isinstance(code, str), code
    return code


def blocks(code):
    source, why, bindings = _bytecode.decompile_blocks(code)
    assert source is not None, why
    return source, {name: value for name, value, renamed in bindings if not renamed}


def fault(compiler, code, source, bindings):
    [made] = compiler.compile([_grading.request_for(code, source)])
    return _grading.block_form_fault(code, made, bindings)


ALL = [(name, 308, source) for name, source in PROGRAMS.items()]
ALL += [(name, version, source) for version, programs in NEWER.items() for name, source in programs.items()]


@pytest.mark.parametrize("since, source", [each[1:] for each in ALL], ids=[each[0] for each in ALL])
def test_what_is_the_same(compiler, since, source):
    if compiler.version < since:
        pytest.skip("not in that Python")
    code = compiled(compiler, source)
    assert fault(compiler, code, *blocks(code)) == ""


def replaced(pattern, new, number=0):
    """Changes what a pattern finds, the `number`th time."""

    def change(source):
        found = list(re.finditer(pattern, source, re.M))
        assert len(found) > number, (pattern, source)
        match = found[number]
        return source[: match.start()] + match.expand(new) + source[match.end() :]

    return change


CHANGES = {
    "two labels swapped": replaced(r"_at = (\d+) if (\w+) else (\d+)", r"_at = \3 if \2 else \1"),
    "another label": replaced(r"^( +_b_0_at = )(\d+)$", r"\g<1>0", 1),
    "the dispatch moved": replaced(r"if _b_0_at < 1:", "if _b_0_at < 2:"),
    "an operation dropped": replaced(r"^( +)log\.first\(.*$", r"\1pass"),
    "an operation added": replaced(r"^( +)(log\.first\(.*)$", r"\1\2\n\1\2"),
    "two calls reordered": replaced(r"^( +)(log\.first\(.*)\n +(log\.second\(.*)$", r"\1\3\n\1\2"),
    "operands swapped": replaced(r"total - (\w+)", r"\1 - total"),
    "another operator": replaced(r"total - (\w+)", r"total + \1"),
    "another attribute": replaced(r"log\.third", "log.fourth"),
    "another method": replaced(r"\.opened\(", ".opens("),
    "arguments swapped": replaced(r"\.opened\((\w+), (\w+)\)", r".opened(\2, \1)"),
    "another constant": replaced(r"total = 0$", "total = 0.0"),
    "another variable": replaced(r"return total", "return log"),
    "another temporary": replaced(r"_b_helpers\.leave\(_b_0_s(\d+), _b_0_s(\d+)\)", r"_b_helpers.leave(_b_0_s\2, _b_0_s\1)"),
    "a handler removed": replaced(r"^( +)_b_0_s\d+(?: = _b_0_s\d+)? = _b_0_e\n +_b_0_at = \d+$", r"\1raise", 0),
    "an exception swallowed": replaced(r"^( +)raise ValueError.*$", r"\1return None"),
    "another exception caught": replaced(r"KeyError", "IndexError"),
    "a cause dropped": replaced(r"raise ValueError\((\w+)\) from .*$", r"raise ValueError(\1)"),
    "the end of the loop missed": replaced(r"is _b_helpers\.NULL", "is None"),
    "an item unpacked wrongly": replaced(r"^( +)(_b_0_t\d+), (_b_0_t\d+) = (_b_helpers\.enter)", r"\1\3, \2 = \4"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_not(compiler, change):
    code = compiled(compiler, SAMPLE)
    source, bindings = blocks(code)
    assert fault(compiler, code, source, bindings) == ""
    changed = change(source)
    assert changed != source
    found = fault(compiler, code, changed, bindings)
    assert found.startswith("block form not proven: f: "), changed


NESTED = """
    def f(a, b):
        class A:
            x = a
            def m(self, p=a):
                "about"
                return a, b, p
        return A
    """


@pytest.mark.parametrize(
    "change",
    [
        replaced(r"return \(a, b, p\)", "return (b, a, p)"),
        replaced(r"'about'", "'another'"),
        replaced(r"x = a", "x = b"),
        replaced(r"'m', ", "'n', "),
        replaced(r"def (\w+)\(self, p\)", r"def \1(p, self)"),
    ],
    ids=["a result", "the docstring", "a variable of a class", "a name", "arguments"],
)
def test_functions_inside(compiler, change):
    code = compiled(compiler, NESTED)
    source, bindings = blocks(code)
    assert fault(compiler, code, source, bindings) == ""
    assert fault(compiler, code, change(source), bindings).startswith("block form not proven: ")


def test_another_signature(compiler):
    code = compiled(compiler, "def f(a, b=1): return a")
    source, bindings = blocks(code)
    for signature in ("a, b, c", "b, a", "a, /, b", "a, *, b", "a, *b"):
        assert "not proven" in fault(compiler, code, source.replace("def f(a, b)", "def f({})".format(signature)), bindings)


def test_every_nan_is_its_own(compiler):
    """The sign of a NaN shows in texts that are made of its bits; folding `inf * 0` gives a negative one on most machines."""
    code = compiled(compiler, "def f(g):\n    g(1e300 * 1e300 * 0, -(1e300 * 1e300 * 0), (1, -(1e300 * 1e300 * 0)))")
    source, bindings = blocks(code)
    assert fault(compiler, code, source, bindings) == ""
    changed = source.replace("negative_nan", "nan")
    assert changed != source
    assert "not proven" in fault(compiler, code, changed, bindings)


def test_class_bodies_whose_class_has_type_parameters(compiler):
    """Of them alone `.type_params`, which is no name of Python, is a free variable; the source has another name for it."""
    if compiler.version < 312:
        pytest.skip("not in that Python")
    code = compiled(compiler, "def f():\n  class A[T]:\n    x: T\n    def m(self): return T\n  return A")
    bodies = [each for each in _grading.code_objects(code) if ".type_params" in each.co_freevars]
    assert [each.co_name for each in bodies] == ["A"]
    source, why, bindings = _bytecode.decompile_blocks(bodies[0])
    assert source is not None, why
    renamed = {name: value for name, value, is_renamed in bindings if is_renamed}
    assert list(renamed.values()) == [".type_params"]
    [made] = compiler.compile([_grading.request_for(bodies[0], source, renamed=renamed)])
    assert _grading.block_form_fault(bodies[0], made) == ""
    [made] = compiler.compile([_grading.request_for(bodies[0], source.replace(next(iter(renamed)), "T"), renamed=renamed)])
    assert "not proven" in _grading.block_form_fault(bodies[0], made)
