"""Statements of 3.8 to 3.10, whose handlers are set up by instructions: each program comes back letter for letter, and identical."""

import subprocess
import textwrap

import pytest
from interpreters import interpreter

from pellucid import _bytecode, _grading

TAGS = (308, 309, 310)
COMPILE = "import marshal, sys; sys.stdout.buffer.write(marshal.dumps(compile(sys.stdin.read(), 'elsewhere', 'exec', 0, True)))"

PROGRAMS = {
    "except clauses": """
        def f(a):
            try:
                g()
            except A as e:
                h(e)
            except (B, C):
                return a.b
            except:
                k()
            done()
        """,
    "else": """
        def f(a):
            try:
                x = g()
            except A:
                x = None
            else:
                h(x)
            return x
        """,
    "handlers that leave a loop": """
        def f(a):
            for x in a:
                try:
                    y = g(x)
                except A:
                    break
                except B:
                    continue
                h(y)
            return y
        """,
    "a name unbound on every way out": """
        def f(a):
            while a():
                try:
                    g()
                except A as e:
                    if e.x:
                        return e.y
                    raise
        """,
    "finally": """
        def f(a):
            try:
                g()
                if a:
                    return a.b
                h()
            finally:
                k()
            done()
        """,
    "finally in finally": """
        def f(a):
            try:
                g()
            finally:
                try:
                    h()
                except A:
                    k()
                finally:
                    done()
        """,
    "except and finally": """
        def f(a):
            try:
                g()
            except A as e:
                return a[e]
            finally:
                h()
        """,
    "return in finally": """
        def f(a):
            try:
                g()
            finally:
                h()
                return a.b
        """,
    "with": """
        def f(a):
            with a as b, c(b):
                g(b)
            with d:
                return g(a)
        """,
    "with in a loop": """
        def f(a):
            for x in a:
                with x as y:
                    if y:
                        continue
                    g(y)
                if h(x):
                    break
            else:
                k()
        """,
    "return of a constant out of with": """
        def f(a):
            with a:
                if g():
                    return 1
                h()
            return 2
        """,
    "try in with in try": """
        def f(a):
            try:
                with a as b:
                    try:
                        g(b)
                    except A:
                        h()
            finally:
                k()
        """,
    "async": """
        async def f(a):
            async with a as b:
                await b.c()
            async for x in b:
                if x:
                    break
            else:
                g()
            return [y async for y in b if await y]
        """,
    "async with in try": """
        async def f(a):
            try:
                async with a:
                    await g()
            except A:
                pass
            finally:
                await h()
        """,
    "generators": """
        def f(a):
            try:
                x = yield a
                yield from g(x)
            finally:
                h()
        """,
    "a generator without yield": """
        def f():
            return
            yield
        """,
    "assert": """
        def f(a, b):
            assert a
            assert a is not b, 'x'
            assert a in b and b, g(a)
            assert False
        """,
    "stars": """
        def f(g, a, k):
            x = [*a, 1, *k], (*a,), {*a, 2}, {**k, 'z': 1, **a}
            g(*a, 1, *k, x=2, **k)
            return g(1, *a), g(**k)
        """,
    "short circuits to a jump": """
        def f(a, b):
            for x in a:
                if not x or x in b:
                    continue
                while x():
                    if a or b:
                        break
                    g()
                h(x)
            return 0 <= a < b
        """,
    "loops without end": """
        def f(a):
            while True:
                x = a()
                if not x:
                    break
                if x.y:
                    raise A
                g(x)
            return x
        """,
    "names declared for others": """
        def f(a):
            x = None
            def g():
                nonlocal x
                [x := y for y in a]
            g()
            return x
        """,
}
# What 3.9 and 3.10 put apart, up to 3.9 dead code tells.
ONLY = {
    (308, 309): {
        "no arguments but stars": """
            def f(a):
                f(*(), **{})
                f(*(), **a)
                f(*(), x=a)
            """,
        "variables that only functions close over that nothing reaches": """
            def f(a):
                g(a)
                if False:
                    b = None
                    lambda: (a, b)
            """,
        "an else clause behind a return": """
            def f(a):
                if a:
                    return g(a)
                else:
                    return h(a)
            """,
        "an else clause behind a raise": """
            def f(a):
                if a:
                    raise A
                else:
                    g()
                h()
            """,
        "an else clause of try behind a handler that returns": """
            def f(a):
                try:
                    g()
                except A:
                    return 1
                else:
                    return h(a)
            """,
        "an else clause that nothing reaches": """
            def f(a):
                try:
                    raise a
                except A:
                    g()
                else:
                    h()
                k()
            """,
        "an else clause with nothing in it": """
            def f(a):
                if a:
                    g()
                else:
                    pass
            """,
    },
    (310,): {
        "a line of its own": """
            def f(a):
                if a:
                    g()
                pass
                h()
            """,
        "exits of any length": """
            def f(a, b):
                with a:
                    with b:
                        if a:
                            g()
                        else:
                            h()
            """,
        "an expression whose branches end apart": """
            def f(a, b):
                if a:
                    raise A('x' if b is None else b)
                g(a if b else 0)
            """,
    },
    (308,): {
        "arguments of mappings": """
            def f(a, b):
                f(0, **{})
                f(**{})
                f(*a, **{})
                f(a, **{'a': b, 'b': 2})
                f(a, **{'a': b, b: 2})
                f(a, **{'no name': 1})
                f(a, a=1, **{'a': b, b: 2})
                f(*a, b=1)
            """,
        "finally blocks that always leave": """
            def f(a):
                while a:
                    try:
                        g()
                    finally:
                        break
                for x in a:
                    try:
                        continue
                    finally:
                        h()
                        break
                try:
                    return 1
                finally:
                    return 2
            """,
        "what nothing reaches behind a finally block that always leaves": """
            def f(a):
                for x in a:
                    try:
                        g()
                    finally:
                        continue
                    h()
                while a:
                    try:
                        g()
                    finally:
                        continue
                    break
                try:
                    h()
                finally:
                    return
                k()
            """,
    },
    (308, 309, 310): {
        "not in front of or": """
            def f(a, b, c):
                if not (a is None or b and c):
                    g()
                while not (a and b or c in a or b and not c):
                    h()
                if b and not (a and c or a in b):
                    g()
                a = 1 if not (a in b or not c) else 2
            """,
        "annotations of items": """
            def f(a):
                a[0]: ...
                a[1:2]: ...
                a[1:2:3]: ...
                a.b[0]: ...
                return a
            """,
    },
}
MANY_WAYS_OUT = "def f(a):\n    for x in a:\n" + "".join(f"        if x == {i}:\n            break\n" for i in range(40))
CASES = [(tag, name, source) for tag in TAGS for name, source in PROGRAMS.items()]
CASES += [(tag, name, source) for tags, programs in ONLY.items() for tag in tags for name, source in programs.items()]
CASES += [(tag, "many ways out of a loop", MANY_WAYS_OUT) for tag in TAGS]


def code_of(tag, source):
    """The first function of a source, compiled by the interpreter of a version."""
    done = subprocess.run([interpreter(tag).path, "-I", "-c", COMPILE], input=source.encode(), stdout=subprocess.PIPE, check=True)
    module = _bytecode.load_marshal(done.stdout, tag)
    return next(const for const in module.co_consts if type(const) is _bytecode.NeutralCode)


@pytest.mark.parametrize(("tag", "name", "source"), CASES, ids=[f"{tag}-{name}" for tag, name, _ in CASES])
def test_source_comes_back(tag, name, source, compilers):
    source = textwrap.dedent(source).lstrip("\n")
    code = code_of(tag, source)
    made, reason, _, _ = _bytecode.decompile_structured(code)
    assert reason is None or reason == ""
    assert made == source
    assert _grading.check(compilers(tag), [(code, made)]) == [(_grading.IDENTICAL, "")]


@pytest.mark.parametrize("tag", TAGS)
def test_blocks_that_do_not_nest_have_no_structured_form(tag):
    """Where the end of a body is overwritten, what is set up is never taken down; block form takes such code."""
    code = code_of(tag, "def f(a):\n    for x in a:\n        try:\n            g()\n        except A:\n            h()\n")
    names = [instruction.op for instruction in _bytecode.decode(code).instructions]
    offset = 2 * names.index("POP_BLOCK")
    damaged = bytearray(code.co_code)
    assert damaged[offset] == 87  # POP_BLOCK
    damaged[offset] = 9  # NOP
    data = bytearray(marshal_of(tag))
    at = data.index(code.co_code)
    data[at : at + len(damaged)] = damaged
    again = next(const for const in _bytecode.load_marshal(bytes(data), tag).co_consts if type(const) is _bytecode.NeutralCode)
    made, reason, _, _ = _bytecode.decompile_structured(again)
    assert made is None
    assert reason == "code reached inside of different blocks"
    assert _bytecode.decompile_blocks(again)[0] is not None


def marshal_of(tag):
    source = "def f(a):\n    for x in a:\n        try:\n            g()\n        except A:\n            h()\n"
    return subprocess.run([interpreter(tag).path, "-I", "-c", COMPILE], input=source.encode(), stdout=subprocess.PIPE, check=True).stdout
