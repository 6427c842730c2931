"""Block form: any code object gives a program that does the same."""

import asyncio
import pathlib
import re
import sys
import types

import pytest

from pellucid import _bytecode as bytecode
from pellucid import block_support, decompiling


def blocks_of(function):
    """The function that its block form defines, with the same globals, defaults and cells."""
    result = decompiling.block_form(function.__code__)
    names = function.__code__.co_freevars
    space = {**function.__globals__, **result.bindings}
    source = result.source
    if names:
        inner = "\n".join("  " + line for line in source.splitlines())
        source = f"def around({', '.join(names)}):\n{inner}\n  return {function.__name__}"
    exec(compile(source, "<blocks>", "exec"), space)
    made = space["around"](*[cell.cell_contents for cell in function.__closure__]) if names else space[function.__name__]
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


def chain(error):
    """An exception with its causes and contexts."""
    result = []
    while error is not None and len(result) < 20:
        result.append((type(error).__name__, str(error), type(error.__cause__).__name__, error.__suppress_context__))
        error = error.__context__
    return result


def outcome(function, *arguments):
    try:
        value = function(*arguments)
        if isinstance(value, types.GeneratorType):
            value = list(value)
        elif isinstance(value, types.CoroutineType):
            value = asyncio.run(value)
        return value
    except Exception as error:
        return chain(error)


def check(function, *calls):
    again = blocks_of(function)
    assert again.__code__ is not function.__code__
    for make in calls:
        first, second = make(), make()
        assert outcome(again, *second) == outcome(function, *first)
        assert repr(second) == repr(first)  # what it did to its arguments


class Manager:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, traceback):
        self.log.append(("exit", kind and kind.__name__, sys.exc_info()[1] is error))
        return self.swallow

    async def __aenter__(self):
        return self.__enter__()

    async def __aexit__(self, *arguments):
        return self.__exit__(*arguments)


def test_exceptions_see_each_other():
    def f(log, a):
        try:
            try:
                log.append(1 // a)
                raise KeyError(a)
            except ZeroDivisionError:
                log.append(sys.exc_info()[0].__name__)
                try:
                    raise ValueError("inner")
                except ValueError:
                    log.append(sys.exc_info()[0].__name__)
                log.append(sys.exc_info()[0].__name__)
                raise
            except KeyError as error:
                raise TypeError("outer") from error
            finally:
                log.append(("finally", sys.exc_info()[0] and sys.exc_info()[0].__name__))
        except (ZeroDivisionError, OSError):
            raise RuntimeError("last")

    check(f, lambda: ([], 0), lambda: ([], 1), lambda: ([], "x"))


def test_leaving_loops_through_finally():
    def f(log, xs):
        for x in xs:
            try:
                if x == 1:
                    continue
                if x == 2:
                    break
                if x == 3:
                    return "three"
                log.append(10 // x)
            except ZeroDivisionError:
                return "zero"
            finally:
                log.append(x)
        else:
            log.append("else")
        return log[-1]

    check(f, *[lambda xs=xs: ([], xs) for xs in ([1, 5], [5, 2, 7], [3], [0], [], ["x"])])


def test_with():
    def f(log, swallow, a):
        with Manager(log, swallow) as manager, Manager(log):
            log.append(manager.swallow)
            if a == 1:
                return "returned"
            log.append(6 // a)
        return "after"

    check(f, *[lambda s=s, a=a: ([], s, a) for s in (True, False) for a in (0, 1, 2)])


def test_async():
    async def values(n):
        for i in range(n):
            yield i

    async def f(log, n):
        async with Manager(log, True) as manager:
            async for i in values(n):
                if i == 2:
                    raise ValueError(i)
                log.append([j async for j in values(i)])
            else:
                log.append("else")
        return manager.swallow

    check(f, lambda: ([], 2), lambda: ([], 4))


def test_generators():
    def f(log, n):
        try:
            got = yield n
            log.append(got)
            yield from (x * n for x in range(n))
            return (yield [*range(n)])
        finally:
            log.append("closed")

    check(f, lambda: ([], 2), lambda: ([], "x"))
    for function in (f, blocks_of(f)):
        log = []
        generator = function(log, 3)
        assert next(generator) == 3
        assert generator.send("sent") == 0
        with pytest.raises(KeyError):
            generator.throw(KeyError("thrown"))
        assert log == ["sent", "closed"]
        generator = function(log, 1)
        next(generator)
        generator.close()
        assert log == ["sent", "closed", "closed"]


def test_functions_and_classes_inside():
    def f(a, b):
        def inner(x, /, y=a, *rest, key: int = b, **named) -> str:
            "about"
            nonlocal a
            a += 1
            return x, y, rest, key, named

        class Base:
            value: int = a

            def method(self):
                return self.value

        class Derived(Base, **{}):
            value = [Base.value + i for i in range(2)]

            def method(self):
                return super().method(), __class__.__name__, (lambda: self.value)()

        facts = (inner.__name__, inner.__qualname__, inner.__doc__, inner.__annotations__, inner.__defaults__, inner.__kwdefaults__)
        names = sorted(name for name in vars(Derived) if name not in ("__doc__", "__static_attributes__", "__firstlineno__"))
        return inner(1), inner(1, 2, 3, key=4, z=5), Derived().method(), a, facts, names, Derived.__qualname__, inner.__code__.co_name

    check(f, lambda: (1, 2))


def test_expressions_keep_their_order():
    def f(log, a):
        def t(x):
            log.append(x)
            return x

        d = {t("k"): t("v"), **{t("m"): 1}}
        d[t("i")] = t(3)
        d[t("i")] += t(4)
        x, (y, *z) = t((1, (2, 3, 4)))
        s = f"{t('f')!r:>{t(9)}}|{a}"
        r = t(1) < t(2) < t(0) or t(5) and (t(6) if t(a) else t(7))
        return d, x, y, z, s, r, [t(i) for i in range(2)][:: t(-1)], (lambda *p, **q: (p, q))(t(1), *t([2]), k=t(3), **t({"j": 4}))

    check(f, lambda: ([], 0), lambda: ([], 1))


def test_unbound_variables_and_assertions():
    def f(a):
        assert a != 3, "three"
        if a:
            x = a
        del a
        return x

    check(f, lambda: (1,), lambda: (0,), lambda: (3,))


def test_modules_leave_no_temporaries():
    source = "import os.path as p\nfrom math import *\nfor i in range(3):\n    if i: j = i\n"
    source += "x: int = 3\ntry: y\nexcept NameError as e: z = str(e)\n"
    expected, found = {"__name__": "m"}, {"__name__": "m"}
    code = compile(source, "<m>", "exec")
    exec(code, expected)
    exec(compile(decompiling.block_form(code).source, "<b>", "exec"), found)
    expected.pop("__builtins__")
    found.pop("__builtins__")
    assert found == expected


def test_names_that_are_none_and_constants_that_are_objects():
    marker = object()
    template = (lambda a: (a, "constant", b)).__code__  # noqa: F821
    code = template.replace(
        co_name="not a name",
        co_varnames=("class",),
        co_consts=tuple(marker if const == "constant" else const for const in template.co_consts),
    )
    result = decompiling.block_form(code)
    assert list(result.bindings.values()) == [marker]
    [(name, original)] = result.renamed.items()
    assert original == "not a name"
    space = {**result.bindings, "b": 3}
    exec(result.source, space)
    assert space[name](1) == (1, marker, 3)


def assembled(instructions, **changes):
    """A code object from hand-made instructions over a template's names."""
    decoded = bytecode.decode((lambda a, b: None).__code__)
    decoded.consts = changes.get("consts", [None])
    decoded.names = changes.get("names", [])
    decoded.stacksize = 10
    decoded.instructions = [
        bytecode.Instruction((op, arg, target, -1, 0, None, None, None, None)) for op, arg, target in [("RESUME", 0, None), *instructions]
    ]
    assert bytecode.validate(decoded) == ""
    return bytecode.assemble(decoded)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="written in the opcodes of 3.11")
def test_values_on_the_stack_across_a_loop_that_is_entered_twice():
    """No structure: two jumps lead into the loop, and the sum is kept on the stack."""
    code = assembled(
        [
            ("LOAD_CONST", 0, None),  # the sum
            ("LOAD_FAST", 0, None),
            ("POP_JUMP_FORWARD_IF_FALSE", 0, 6),
            ("LOAD_CONST", 1, None),  # 4
            ("BINARY_OP", 0, None),
            ("LOAD_FAST", 1, None),  # 6
            ("BINARY_OP", 0, None),
            ("LOAD_FAST", 0, None),
            ("LOAD_CONST", 1, None),
            ("BINARY_OP", 10, None),
            ("STORE_FAST", 0, None),
            ("LOAD_FAST", 0, None),
            ("LOAD_CONST", 0, None),
            ("COMPARE_OP", 4, None),
            ("POP_JUMP_BACKWARD_IF_TRUE", 0, 4),
            ("RETURN_VALUE", 0, None),
        ],
        consts=[0, 1],
    )
    function = types.FunctionType(code, {}, "f")
    space = {}
    result = decompiling.decompile(code, check=True)
    assert result.grade == decompiling.BLOCK_FORM
    exec(result.source.replace("_b_unit", "f"), space)
    again = next(value for value in space.values() if isinstance(value, types.FunctionType))
    for a in range(4):
        assert again(a, 10) == function(a, 10)


def test_every_helper_is_there():
    """What the C++ sources have block form call."""
    root = pathlib.Path(__file__).resolve().parents[3]
    used = set()
    for path in (root / "csrc" / "decompile").glob("block_*.cpp"):
        used |= set(re.findall(r'(?:helper|push_call|grow)\((?:in\.arg, )?"(\w+)"', path.read_text()))
    assert len(used) > 60
    assert sorted(name for name in used if not hasattr(block_support, name)) == []


def test_signatures_keep_their_defaults():
    def function(a, b=3, /, c=len, *d, e=(1, "x"), f=None, **g):
        return a, b, c, d, e, f, g

    made = decompiling.block_form(function.__code__, function=function)
    space = dict(made.bindings)
    exec(made.source, space)
    again = space["function"]
    assert again.__defaults__ == function.__defaults__ and again.__kwdefaults__ == function.__kwdefaults__
    assert again(1) == function(1) and again(1, 2, e=5, h=6) == function(1, 2, e=5, h=6)

    def wrapper(*args, **kw):
        return args, kw

    wrapper.__defaults__ = ("more than there are parameters",)
    assert decompiling.block_form(wrapper.__code__, function=wrapper).source.startswith("def wrapper(*args, **kw):")
    assert decompiling.decompile(wrapper, check=True).grade == "identical"
