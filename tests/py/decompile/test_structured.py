"""The structured form: programs written the way the decompiler prints them come back letter for letter."""

import builtins
import sys
import textwrap
import time
import types

import pellucid._bytecode as bytecode
import pytest

SOURCES = {
    "arithmetic": """
        def f(a, b):
            return a - (b - 1), a ** -b, --a, ~a & b | a ^ b << 1, (-a) ** 2, not a + 1
        """,
    "constants": """
        def f():
            return 1, -0.0, 2j, 1e309, b'\\x00', 'a\\n"\\'', None, ..., (1, (2,)), ()
        """,
    "displays": """
        def f(a, b, k):
            return [a, *b], (a,), {a, 3}, {**k, 'z': 1, **a}, {'x': a, b: 2}, [1, 2, 3], {}
        """,
    "subscripts": """
        def f(x, a):
            return x[1:], x[:a:2], x[a, 1:2], x[...], x[a][0].b
        """,
    "calls": """
        def f(g, a, k):
            return g(), g(a, b=1), g(*a, 1, **k, c=2), g.h(a).i(*a), g(x for x in a), g(1, (x for x in a))
        """,
    "boolean values": """
        def f(a, b, c):
            return a and b or c, a or b and c, not a, [a or b, (a or b) and c]
        """,
    "conditions": """
        def f(a, b, c, d):
            if a and (b or not c) or d is not None and not (a in b or c):
                return 1
            return 3
        """,
    "conditional expressions": """
        def f(g, a, b, c):
            x = g(b, b + 1 if c else -b, *[c] if c else [a, b], k=(a or b) and c)
            return [x, (a if b else c) if a else b]
        """,
    "comparisons": """
        def f(a, b, c):
            if not 0 <= a < b < 100:
                a = b < c() <= a != 9
            return a is not b, a not in b
        """,
    "walrus": """
        def f(a):
            if (n := len(a)) > 3 and (m := n):
                return m
            return [y := a[0], y]
        """,
    "f-strings": """
        def f(a, w):
            return f'{a!r:>{w}}|{{}}{a:{w}.3}{a}%', f"{a['k']}", f'{(lambda: a)()}'
        """,
    "assignments": """
        def f(a, b, o):
            a = b = o.x = 1
            a, b = b, a
            a, (b, *o.y) = o[a] = o.z
            o.x += a
            o[a, b] *= 2
            a **= b
            del a, o.x, o[b]
        """,
    "imports": """
        def f():
            import a
            import a.b
            import a.b.c as d
            from . import e
            from ..f import g as h, i
            return d
        """,
    "if": """
        def f(x):
            if x < 0:
                y = -1
            elif x > 0:
                if x > 10:
                    y = 2
                else:
                    y = 1
                y *= 10
            else:
                y = 0
            return y
        """,
    "guards": """
        def f(x):
            if not x:
                return
            if x == 1:
                raise ValueError(x) from None
            assert x, 'no'
            print(x)
        """,
    "while": """
        def f(n, m):
            while n and m:
                n -= 1
                if m:
                    continue
                if n == 5:
                    break
            else:
                m()
            while True:
                if n:
                    break
                n = m()
            return n
        """,
    "for": """
        def f(xs):
            for a, b in xs:
                for c in a:
                    if c:
                        break
                    if b:
                        return c
                else:
                    continue
                print(c)
            return xs
        """,
    "try": """
        def f(d, k):
            try:
                v = d[k]
            except KeyError as error:
                v = error
            except (A, B):
                raise
            except:
                return 1
            else:
                v += 1
            return v
        """,
    "finally": """
        def f(a, log):
            try:
                log(a)
            except ZeroDivisionError:
                log('x')
                return log
            finally:
                log('f')
            log('end')
        """,
    "return through finally": """
        def f(xs):
            for x in xs:
                try:
                    return g(x)
                finally:
                    h()
        """,
    "with": """
        def f(a, b):
            with a as x, b:
                print(x)
                with b as (y, z):
                    return y + z
            return 0
        """,
    "with in a loop": """
        def f(a, xs):
            for x in xs:
                with a(x):
                    if x == 1:
                        break
                    if x == 2:
                        return x
                    print(x)
            return a
        """,
    "comprehensions": """
        def f(n):
            a = [i + j for i in range(n) if i % 2 for j in range(i)]
            b = {k: {v for v in range(k) if v and k} for k in a}
            return a, b, (x for x in b)
        """,
    "generators": """
        def f(it):
            x = yield
            y = yield x, 1
            yield
            z = yield from it
            return [(yield z)]
        """,
    "async": """
        async def f(a):
            async with a as b:
                async for x in b:
                    if x:
                        break
                    await x.y
                else:
                    return [x async for x in b if await x]
            return await b
        """,
    "functions": """
        def f(a, b, /, c, *d, e, g, **h):
            @a
            @b(1)
            def inner(x: int, y: str = 'y', *, z=3) -> c:
                return lambda u, *v: u + x
            return inner
        """,
    "classes": """
        def f(base):
            @base
            class C(base, metaclass=type):
                'text'
                x: int = 1
                y = x

                def __init__(self):
                    super().__init__()
                    self.__z = self.__w()
            return C
        """,
    "scopes": """
        def f():
            global g
            n = 1
            g = n
            def inner():
                nonlocal n
                n += 1
            return inner
        """,
    "docstring": '''
        def f():
            """First.

            Second.
            """
            return 1
        ''',
    "except star": """
        def f(g):
            try:
                g()
            except* ValueError:
                g(1)
            except* (A, B) as e:
                g(e)
        """,
}


def function_of(source):
    module = compile(textwrap.dedent(source), "nowhere.py", "exec", dont_inherit=True)
    return next(const for const in module.co_consts if isinstance(const, types.CodeType))


def structured(code, **options):
    source, reason, line_map, bindings = bytecode.decompile_structured(code, **options)
    assert source is not None, reason
    return source, line_map, bindings


@pytest.mark.parametrize("name", SOURCES)
def test_source_comes_back(name):
    written = textwrap.dedent(SOURCES[name]).strip().replace("'text'", '"""text"""') + "\n"
    if name == "docstring":
        written = 'def f():\n    """First.\n\n    Second.\n    """\n    return 1\n'
    source, _, bindings = structured(function_of(SOURCES[name]))
    assert source == written
    assert bindings == []


def test_modules_keep_what_their_bodies_say():
    written = '"""text"""\nimport a\nx: int = 1\nfor i in a:\n    x += i\nif x:\n    print(x)\n'
    source, _, _ = structured(compile(written, "nowhere.py", "exec"))
    assert source == written


def test_definitions_stand_apart():
    written = "import a\n\n\ndef f():\n    return 1\n\n\nclass C:\n    def g(self):\n        return 2\n\n    h = g\n\n\nf()\n"
    assert structured(compile(written, "nowhere.py", "exec"))[0] == written


def test_class_bodies_come_without_what_the_compiler_adds():
    code = next(
        const
        for const in compile("class C:\n    x = 1\n    def f(self):\n        return __class__\n", "n", "exec").co_consts
        if isinstance(const, types.CodeType)
    )
    source, _, _ = structured(code)
    assert source == "class C:\n    x = 1\n\n    def f(self):\n        return __class__\n"


def test_lambdas_are_expressions():
    code = next(const for const in compile("lambda a, b=1: a if b else -a", "n", "eval").co_consts if isinstance(const, types.CodeType))
    assert structured(code)[0] == "lambda a, b: a if b else -a\n"


def test_each_line_knows_where_it_came_from():
    code = function_of("def f(a):\n\n    b = a\n    if b:\n\n        return g(b)\n")
    source, line_map, _ = structured(code)
    assert source == "def f(a):\n    b = a\n    if b:\n        return g(b)\n"
    lines = {line: originals for line, qualname, offsets, originals in line_map}
    assert lines[2] == (3,) and lines[3] == (4,) and lines[4] == (6,)
    assert all(qualname == "f" for _, qualname, _, _ in line_map)
    every = [offset for _, _, offsets, _ in line_map for offset in offsets]
    assert every == sorted(set(every)) and every[-1] < len(code.co_code)


LONG = """
def f(a):
    return collections.namedtuple(
        rename_everything_in_this_call='tis-620',
        default_values=(a.first, a.second),
        one_module_name=a.b[a.index],
        x=lambda c: f'{c!r}, {a.b(c, 1)}'
    )
def g(a):
    a.some_attribute_with_a_long_name = call_with_a_rather_long_name(
        a.another_attribute, 'a text', a[1]
    )
def h(a):
    return [
        an_element_with_a_long_name.converted(x)
        for x in a.iterable_with_a_long_name
        if x.passes_the_test
    ]
"""


def test_long_lines_are_broken_where_brackets_and_commas_stand():
    written = LONG.replace("\n        for x", " for x").replace("\n        if x", " if x")
    for code in (const for const in compile(LONG, "nowhere.py", "exec").co_consts if isinstance(const, types.CodeType)):
        source, line_map, _ = structured(code)
        assert source in written
        offsets = {line: offsets for line, qualname, offsets, _ in line_map if qualname == code.co_name}
        # Each line has the offsets of what stands on it, and none stands on two.
        assert set(offsets) >= {2, 3}
        every = [offset for each in offsets.values() for offset in each]
        assert len(every) == len(set(every))
        if code.co_name == "g":
            attributes = {each.offset: code.co_names[each.arg] for each in bytecode.decode(code).instructions if each.op == "LOAD_ATTR"}
            assert [attributes[offset] for offset in offsets[3] if offset in attributes] == ["another_attribute"]


def test_texts_that_stood_on_several_lines_do_again():
    written = 'def f(a):\n    a = g("""one\n  \'two\'\n""", a)\n    return """\n""" % a\n'
    code = function_of(written)
    source, line_map, _ = structured(code)
    assert source == written
    assert {line: originals for line, _, _, originals in line_map}[5] == (5,)
    assert structured(code, line_layout=True)[0] == written
    # What one line says remains on it.
    assert structured(function_of("def f():\n    return 'a\\nb'\n"))[0] == "def f():\n    return 'a\\nb'\n"


def test_constants_without_a_literal_are_bound():
    marker = object()
    code = function_of("def f():\n    return 5\n")
    code = code.replace(co_consts=tuple(marker if const == 5 else const for const in code.co_consts))
    source, _, bindings = structured(code)
    [(name, value, renamed)] = bindings
    assert value is marker and not renamed
    namespace = {name: marker}
    exec(source, namespace)
    assert namespace["f"]() is marker


def test_names_that_are_no_identifiers_are_bound():
    code = function_of("def f(a):\n    return a + 1\n").replace(co_varnames=("not a name",))
    source, _, bindings = structured(code)
    [(name, value, renamed)] = bindings
    assert value == "not a name" and renamed
    namespace = {}
    exec(source, namespace)
    assert namespace["f"](2) == 3


def test_a_value_stored_before_it_is_used_is_not_moved():
    decoded = bytecode.decode(function_of("def f(g, h):\n    g()\n    return h()\n"))
    ops = [instruction.op for instruction in decoded.instructions]
    drop = ops.index("POP_TOP")
    instructions = decoded.instructions
    # g()'s value stays below h()'s, and is what returns: no expression does that.
    end = len(instructions) - 1
    made = [bytecode.Instruction(("POP_TOP", 0, None, None, 0, None, None, None, None))]
    decoded.instructions = instructions[:drop] + instructions[drop + 1 : end] + made + instructions[end:]
    code = bytecode.assemble(decoded)
    source, reason, _, _ = bytecode.decompile_structured(code)
    log = []
    namespace = {}
    if source is None:
        assert reason
        return
    exec(source, namespace)
    assert namespace["f"](lambda: log.append("g") or 1, lambda: log.append("h") or 2) == 1
    assert log == ["g", "h"]


def test_a_value_used_twice_is_not_evaluated_twice():
    decoded = bytecode.decode(function_of("def f(g, h):\n    return g() + h\n"))
    instructions = [i for i in decoded.instructions]
    at = [instruction.op for instruction in instructions].index("BINARY_OP") - 1
    copy = bytecode.Instruction(("COPY", 1, None, None, 0, None, None, None, None))
    decoded.instructions = instructions[:at] + [copy] + instructions[at + 1 :]
    source, reason, _, _ = bytecode.decompile_structured(bytecode.assemble(decoded))
    assert source == "def f(g, h):\n    _v0 = g()\n    return _v0 + _v0\n"


def test_deep_code_has_no_form_instead_of_overflowing():
    depth = 5000
    chain = "def f(x):\n    return " + "x + (" * 80 + "x" + ")" * 80
    assert "x + (x + (" in structured(function_of(chain))[0]
    # Left-deep sums of any length: printing recurses, so there is a bound.
    long_sum = function_of("def f(x):\n    return " + " + ".join(["x"] * 900))
    assert structured(long_sum)[0].count("x") >= 900
    decoded = bytecode.decode(function_of("def f(x):\n    return x + x\n"))
    instructions = list(decoded.instructions)
    at = next(i for i, instruction in enumerate(instructions) if instruction.op == "BINARY_OP")
    load = next(instruction for instruction in instructions if instruction.op == "LOAD_FAST")
    pair = [load, instructions[at]]
    decoded.instructions = instructions[: at + 1] + pair * depth + instructions[at + 1 :]
    source, reason, _, _ = bytecode.decompile_structured(bytecode.assemble(decoded))
    assert source is None and "deep" in reason


def test_a_hundred_thousand_instructions_take_seconds():
    part = "    if a{0}:\n        b = g(a{0}, b)\n    for c in b:\n        try:\n            c()\n        except E:\n            pass\n"
    code = function_of("def f(b):\n" + "".join(part.format(i % 7) for i in range(3500)))
    assert len(bytecode.decode(code).instructions) > 100_000
    start = time.perf_counter()
    source, _, _ = structured(code)
    assert time.perf_counter() - start < 5
    assert source.count("except E:") == 3500


def test_no_file_is_opened(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a file is opened")

    code = function_of(SOURCES["try"])
    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setitem(sys.modules, "linecache", None)
    structured(code.replace(co_filename="/nonexistent/file.py"))


def test_wrong_types_are_refused():
    with pytest.raises(TypeError):
        bytecode.decompile_structured("not code")
    with pytest.raises(ValueError):
        bytecode.decompile_structured(function_of("def f(): pass"), unit=9)
