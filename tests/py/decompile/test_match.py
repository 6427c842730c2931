"""match statements with every kind of pattern, as each interpreter found compiles them: they come back letter for letter, and identical."""

import json
import subprocess
import textwrap

import pytest
from interpreters import interpreter

from pellucid import _bytecode, _grading

TAGS = (310, 311, 312, 313)
COMPILE = "import marshal, sys; sys.stdout.buffer.write(marshal.dumps(compile(sys.stdin.read(), 'elsewhere', 'exec', 0, True)))"

PROGRAMS = {
    "literals": """
        def f(x):
            match x:
                case 1:
                    return 'one'
                case -2.5:
                    return 'negative'
                case 1-2j:
                    return 'complex'
                case -1j:
                    return 'imaginary'
                case 'text' | b'bytes':
                    return 'strings'
                case '':
                    return 'empty'
            return 'none'
        """,
    "singletons": """
        def f(x):
            match x:
                case None:
                    r = 'none'
                case True:
                    r = 'true'
                case False:
                    r = 'false'
                case _:
                    r = x
            return r
        """,
    "names with dots": """
        def f(x, a):
            match x:
                case a.one:
                    return 1
                case a.inner.two | a.inner.three:
                    return 2
                case [a.one, b] | [b, a.one]:
                    return b
        """,
    "one case": """
        def f(x):
            match x:
                case 1:
                    x += 1
            return x
        """,
    "one case and the rest": """
        def f(x):
            match x:
                case None:
                    x = 1
                case _:
                    x = 2
            return x
        """,
    "captures": """
        def f(x):
            match x:
                case 0 | 1 as small:
                    return small
                case [y] if y:
                    return y
                case other if other == 7:
                    return 'seven'
                case last:
                    return [last]
        """,
    "sequences": """
        def f(x):
            match x:
                case []:
                    return 0
                case [a]:
                    return a
                case [a, _, 3]:
                    return a
                case [_, _]:
                    return 2
                case [1, *_]:
                    return 'one'
                case [*_, 9]:
                    return 'nine'
                case [a, *b, c] if b:
                    return a, b, c
                case [_, [a, *_], *_]:
                    return a
                case [*_]:
                    return 'any'
        """,
    "sequences with stars that bind": """
        def f(x):
            match x:
                case [*a]:
                    return a
        """,
    "stars in between": """
        def f(x):
            match x:
                case [_, 2, *_, 4, _]:
                    return 'inner'
                case [*_, 7, _, _]:
                    return 'end'
                case [_, _, 5, *_]:
                    return 'start'
        """,
    "mappings": """
        def f(x, k):
            match x:
                case {'a': 1, -1: y}:
                    return y
                case {'b': {'c': [z, *_]}, **rest}:
                    return z, rest
                case {k.key: v, True: None}:
                    return v
                case {'d': _}:
                    return 'd'
                case {**whole} if whole:
                    return whole
                case {}:
                    return 'mapping'
        """,
    "classes": """
        def f(x, m):
            match x:
                case int():
                    return 'int'
                case P(1, b=2):
                    return 'both'
                case P(a, b=c) if a == c:
                    return a
                case m.Q(_, P(_, y)):
                    return y
                case str(s) | bytes(s):
                    return s
                case P(b=_):
                    return 'has b'
        """,
    "as patterns": """
        def f(x):
            match x:
                case [1, 2 | 3 as y] as z:
                    return y, z
                case {'k': [a, b] as c} as d:
                    return a, b, c, d
                case int() | str() as e:
                    return e
                case [P(a=q) as p, *r]:
                    return q, p, r
        """,
    "alternatives that bind in another order": """
        def f(x):
            match x:
                case [1, a, b, c] | [2, c, a, b] | [3, b, c, a]:
                    return a, b, c
                case [p, [q, r] | {'q': q, 'r': r}, s]:
                    return p, q, r, s
                case str(t) | [t] as u:
                    return t, u
        """,
    "alternatives in alternatives": """
        def f(x):
            match x:
                case [1 | 2, 3 | [4 | 5, 6]] | {'k': 7 | 8} | None:
                    return 'deep'
                case (1 | 2 as a) | [a]:
                    return a
        """,
    "alternatives of a last case": """
        def f(x):
            match x:
                case 0:
                    return 0
                case 1 | 2 | 3:
                    return 1
        """,
    "guards": """
        def f(x, g):
            match x:
                case int() if g and x > 3 or not g:
                    return 1
                case [a, b] if 0 < a < b and (c := a + b):
                    return c
                case str() if any(y == 'z' for y in x):
                    return 2
                case _ if g:
                    return 3
                case None:
                    return 4
                case n if n:
                    return n
        """,
    "guards that only look at names": """
        def f(x, g):
            match x:
                case _ if not g:
                    return 1
                case [y] if y:
                    return y
                case _ if x == 7 or x == 5:
                    return 3
                case n if n is None:
                    return 4
                case []:
                    return 5
            return 6
        """,
    "a last case with a condition in it": """
        def f(x, g):
            match x:
                case 1:
                    g = 2
                case [a, b] if a:
                    if b:
                        g = 3
            return g
        """,
    "patterns that always match": """
        def f(x, g):
            match len(x):
                case n:
                    g = n
            match g:
                case z if not z:
                    g = 0
                case _:
                    g = 1
            return g
        """,
    "subjects": """
        def f(x, y):
            match (x, y):
                case [1, b]:
                    r = b
                case [a, 1]:
                    r = a
                case _:
                    r = None
            match x.real + 1 if x else y:
                case 2:
                    r = 1
                case 3:
                    r = 2
            match (n := len(y)):
                case 4:
                    return n
            return r
        """,
    "match in match": """
        def f(x):
            match x:
                case [kind, value]:
                    match kind:
                        case 'a':
                            match value:
                                case 1:
                                    return 'a1'
                                case _:
                                    return 'a?'
                        case 'b':
                            return 'b'
                    return 'other'
                case {'k': v}:
                    match v:
                        case 1:
                            r = 1
                        case int():
                            r = 2
                case _:
                    r = 3
            return r
        """,
    "in loops": """
        def f(xs):
            out = []
            for x in xs:
                match x:
                    case 0:
                        continue
                    case -1:
                        break
                    case [y, *_]:
                        out.append(y)
                    case str():
                        while x:
                            match x[0]:
                                case 'q':
                                    return out
                                case 'w':
                                    break
                            x = x[1:]
                    case _:
                        pass
                out.append(x)
            else:
                out.append('end')
            done(out)
            return out
        """,
    "at the end of a loop": """
        def f(xs):
            out = []
            for x in xs:
                match x:
                    case 1:
                        out.append(1)
                    case 2:
                        out.append(2)
                    case [a, b]:
                        out.append(a + b)
            return out
        """,
    "in try": """
        def f(x):
            try:
                match x:
                    case [a, b]:
                        return a // b
                    case {'k': v}:
                        raise ValueError(v)
                    case _:
                        r = 1
            except ZeroDivisionError as e:
                match x:
                    case [0, _]:
                        r = 2
                    case [n, _]:
                        r = n
            except ValueError:
                r = 3
            finally:
                done()
            return r
        """,
    "in with": """
        def f(x):
            with ctx() as c:
                match x:
                    case 1:
                        c.append(1)
                    case [y]:
                        return y
                    case _:
                        c.append(3)
            return c
        """,
    "pass": """
        def f(x):
            match x:
                case 1:
                    pass
                case 2 | 3:
                    pass
                case [4]:
                    done(x)
                case _:
                    pass
        """,
    "the end of a function": """
        def f(x):
            match x:
                case 1:
                    done()
                case [2, y]:
                    done(y)
                case {'k': z}:
                    if z:
                        done(z)
                case _:
                    done(None)
        """,
    "conditions around": """
        def f(x, y):
            if y:
                match x:
                    case 1:
                        return 'a'
                    case 2:
                        y = 3
            elif x:
                match x:
                    case 1:
                        y = 4
                    case _:
                        y = 5
            else:
                y = 6
            return y
        """,
    "comparisons that are no match": """
        def f(x, a):
            if x == 1:
                return 1
            if x == a.b:
                return 2
            if x is None:
                return 3
            if (y := x) == 4:
                return y
            y = z = x
            return y, z
        """,
    "in a class and a module": """
        global r


        class C:
            kind = 3
            match kind:
                case 1:
                    name = 'one'
                case [name]:
                    pass
                case n:
                    name = str(n)


        match C.name:
            case '3':
                r = 1
            case _:
                r = 2
        kinds = {r: C.name, None: C.kind}


        def f(x):
            global r
            match x:
                case [r]:
                    return r
                case r:
                    return C.name
        """,
    "captured variables": """
        def f(x):
            def g():
                nonlocal a
                match x:
                    case [a, b]:
                        return lambda: b
                    case {'a': a}:
                        return lambda: x
                    case _:
                        return lambda: None
            a = 0
            return g()(), a
        """,
    "generators": """
        def f(xs):
            for x in xs:
                match x:
                    case [y]:
                        yield y
                    case 1 | 2:
                        yield from (x, x)
                    case n if (yield n):
                        return
        """,
}

# What is made of the subject, and a source that is compiled to what another one is.
OTHER_WORDS = {
    "without parentheses": (
        "def f(x):\n    match x:\n        case a, b:\n            return a\n        case (c):\n            return c\n",
        "def f(x):\n    match x:\n        case [a, b]:\n            return a\n        case c:\n            return c\n",
    ),
    "wildcards around a star": (
        "def f(x):\n    match x:\n        case [_, *_, _]:\n            return 1\n        case [a, *_, _]:\n            return a\n",
        "def f(x):\n    match x:\n        case [_, _, *_]:\n            return 1\n        case [a, _, *_]:\n            return a\n",
    ),
}

SETUP = """
class P:
    __match_args__ = ("a", "b")
    def __init__(self, a, b):
        self.a = a
        self.b = b
    def __repr__(self):
        return "P(%r, %r)" % (self.a, self.b)
class Names:
    one, key, P = 1, "key", P
    class Q(P):
        def __init__(self):
            P.__init__(self, 1, P(1, 2))
    class inner:
        two, three = 2, 3
class ctx(list):
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.append(4)
def done(*args):
    log.append(args)
"""

SUBJECTS = """[
    None, True, False, 0, 1, 2, 3, 4, 5, 7, -1, -2.5, 1-2j, -1j, "text", b"bytes", "", "z", "qw", "aqw", [], [1], [0], [4], ["a", 1],
    ["a", 2],
    ["b", 3], [1, 2], [1, 3], [2, 1], [0, 0], [4, 0], [1, 2, 3], [1, 2, 4, 5], [2, "c", "a", "b"], [3, "b", "c", "a"], [5, [6, 7], 8],
    [5, {"q": 1, "r": 2}, 3], [0, 2, 4, 0], [7, 0, 0], [9, 9, 5, 1], [1, [4, 6]], [2, 3], [0, 9], [0, [8], 1, 1, 1], ["z"],
    {}, {"a": 1, -1: 2}, {"b": {"c": [1, 2]}, "e": 3}, {"key": 1, True: None}, {"d": 1}, {"k": [1, 2]}, {"k": 7}, {"k": 1}, {"x": 1},
    P(1, 2), P(3, 3), P(None, None), Names.Q(), [P(1, 2), 3, 4], range(3), (1, 2), {1, 2}, 1e309, [None, P(0, 0)], [[1, 2], 0, -1, 5],
]"""

# Runs in each interpreter: both sources on all subjects, and what they do. Arguments behind the first one are tried each way.
RUN = """
import json, re, sys
setup, first, second, subjects = json.load(sys.stdin)
def results(source):
    log = []
    space = {"log": log}
    exec(setup, space)
    exec(source, space)
    f, out = space["f"], []
    for subject in eval(subjects, space):
        for more in (space["Names"], None, [1, 2, 3, 4]):
            try:
                got = f(*(subject, more)[: f.__code__.co_argcount])
                got = list(got) if type(got).__name__ == "generator" else got
            except Exception as error:
                got = (type(error).__name__, str(error))
            out.append(re.sub("0x[0-9a-f]+", "", repr(got)))
    return out, [re.sub("0x[0-9a-f]+", "", repr(entry)) for entry in log]
a, b = results(first), results(second)
assert len(set(a[0])) > 1 or a[1], a
assert a == b, next((x, y) for x, y in zip(a[0] + a[1], b[0] + b[1]) if x != y)
"""

# Without columns, or where a place tells nothing, another statement may stand there that is compiled to the same.
OTHERWISE = {(310, "pass"), (311, "pass"), (310, "generators"), (310, "patterns that always match")}

CASES = [(tag, name) for tag in TAGS for name in PROGRAMS]


def code_of(tag, source):
    """The module, as the interpreter compiles it."""
    made = subprocess.run([interpreter(tag).path, "-I", "-c", COMPILE], input=source.encode(), stdout=subprocess.PIPE, check=True).stdout
    return _bytecode.load_marshal(made, tag)


def source_of(name):
    return textwrap.dedent(PROGRAMS[name]).lstrip("\n")


@pytest.mark.parametrize(("tag", "name"), CASES, ids=[f"{tag}-{name}" for tag, name in CASES])
def test_source_comes_back(tag, name, compilers):
    source = source_of(name)
    code = code_of(tag, source)
    made, reason, _, _ = _bytecode.decompile_structured(code)
    assert reason is None or reason == ""
    assert made == source or (tag, name) in OTHERWISE
    assert _grading.check(compilers(tag), [(code, made)]) == [(_grading.IDENTICAL, "")]


@pytest.mark.parametrize(("tag", "name"), CASES, ids=[f"{tag}-{name}" for tag, name in CASES])
def test_what_comes_back_does_the_same(tag, name):
    source = source_of(name)
    made, reason, _, _ = _bytecode.decompile_structured(code_of(tag, source))
    assert made is not None, reason
    given = json.dumps([SETUP, source, made, SUBJECTS])
    done = subprocess.run([interpreter(tag).path, "-c", RUN], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize(("written", "expected"), OTHER_WORDS.values(), ids=OTHER_WORDS)
def test_other_words_for_the_same(tag, written, expected, compilers):
    code = code_of(tag, written)
    made, _, _, _ = _bytecode.decompile_structured(code)
    assert made == expected
    assert _grading.check(compilers(tag), [(code, made)]) == [(_grading.IDENTICAL, "")]
