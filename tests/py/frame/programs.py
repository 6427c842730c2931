"""Functions of every kind of signature and body, to be run as they are and through optimize(). Each row: function, calls."""

import asyncio
import contextlib
import functools
import inspect
import itertools
import operator
import sys


def plain(a):
    return a


def defaults(a, b=2, c="c"):
    return a, b, c


def positional_only(a, b=2, /, c=3):
    return a, b, c


def keyword_only(*, a, b=2):
    return a, b


def rest(*args):
    return args


def more(**kwargs):
    return kwargs


def everything(a, b=1, /, c=2, *args, d, e=5, **kwargs):
    return a, b, c, args, d, e, kwargs


def name_also_in_kwargs(a, /, **kwargs):
    return a, kwargs


def no_arguments():
    return "none"


def many(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p):
    return (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)


def cell_argument(a, *args, **kwargs):
    def inner():
        nonlocal a
        a += 1
        return a, args, kwargs

    return inner(), inner(), a


def closure_factory(n):
    total = 0

    def inner(x):
        nonlocal total
        total += x * n
        return total

    return inner


counter = closure_factory(3)


def recursive(n):
    return 1 if n <= 0 else n * recursive(n - 1)


def mutual_even(n):
    return True if n == 0 else mutual_odd(n - 1)


def mutual_odd(n):
    return False if n == 0 else mutual_even(n - 1)


def raises(kind):
    raise {"key": KeyError, "value": ValueError, "stop": StopIteration, "exit": SystemExit}[kind](kind)


def chained():
    try:
        {}["missing"]
    except KeyError as error:
        raise ValueError("outer") from error


def context():
    try:
        raise KeyError("first")
    except KeyError:
        raise ValueError("second")


def handled(x):
    try:
        return 1 / x
    except ZeroDivisionError as error:
        return type(error).__name__
    finally:
        x = None


def finally_wins():
    try:
        raise KeyError
    finally:
        return "finally"


def groups():
    names = []
    try:
        raise ExceptionGroup("g", [KeyError(1), ValueError(2)])
    except* KeyError as caught:
        names += [type(e).__name__ for e in caught.exceptions]
    except* ValueError:
        names.append("value")
    return names


def with_blocks():
    log = []

    @contextlib.contextmanager
    def manager(name):
        log.append("enter " + name)
        try:
            yield name
        except KeyError:
            log.append("swallowed")
        finally:
            log.append("exit " + name)

    with manager("a") as a, manager("b"):
        log.append(a)
        raise KeyError
    return log


def generator(n):
    received = []
    for i in range(n):
        received.append((yield i))
    return received


def drive_generator(n):
    steps = generator(n)
    out = [next(steps)]
    try:
        while True:
            out.append(steps.send("sent"))
    except StopIteration as stop:
        out.append(stop.value)
    return out


def closes_generator():
    log = []

    def inner():
        try:
            yield 1
        except GeneratorExit:
            log.append("closed")
            raise
        finally:
            log.append("finally")

    it = inner()
    next(it)
    it.close()
    return log


def delegates():
    def outer():
        result = yield from generator(2)
        yield result

    return list(outer())


async def coroutine(n):
    await asyncio.sleep(0)
    return n * 2


async def async_generator(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


def runs_async(n):
    async def main():
        values = [v async for v in async_generator(n)]
        return values + list(await asyncio.gather(*(coroutine(i) for i in range(n))))

    return asyncio.run(main())


def comprehensions(n):
    return [i * j for i in range(n) for j in range(i)], {i: str(i) for i in range(n)}, {i % 3 for i in range(n)}, sum(i for i in range(n))


def unpacking(items):
    first, *middle, last = items
    (a, b), c = (first, last), middle
    return {**{"a": a}, "b": b}, [*c, *c], (*c,)


def matching(value):
    match value:
        case {"kind": "point", "at": (x, y)}:
            return "point", x, y
        case [1, *others]:
            return "list", others
        case str() as text if text:
            return "text", text
        case _:
            return "other"


def class_body(n):
    class Local:
        kind = n

        def method(self):
            return __class__.__name__, self.kind

    return Local().method()


def global_and_builtin(x):
    return len(x), operator.add(1, 2), itertools.chain.from_iterable([x, x]).__class__.__name__


def evaluates(x):
    return eval("x + 1"), sorted(locals()), exec("y = 3")


def frames():
    return sys._getframe().f_code.co_name, inspect.currentframe().f_lineno


def strings(a, b):
    return f"{a!r:>10}|{b:.2f}", "%s %d" % (a, b), "{}".format(a)


def loops(n):
    out = []
    for i in range(n):
        if i == 2:
            continue
        if i == 5:
            break
        out.append(i)
    else:
        out.append("else")
    while n:
        n -= 1
    return out, n


def deletes(a, b):
    del b
    try:
        return b  # noqa: F821
    except UnboundLocalError as error:
        return str(error)


def lambdas(x):
    return list(map(lambda v: v + x, [1, 2])), functools.reduce(lambda a, b: a * b, [1, 2, 3], x), sorted([3, 1], key=lambda v: -v)


class Base:
    @classmethod
    def made(cls, x):
        return cls.__name__, x

    @staticmethod
    def static(x):
        return x

    def method(self, x=1):
        return type(self).__name__, x


class Derived(Base):
    def method(self, x=2):
        return "derived", super().method(x)

    @property
    def prop(self):
        return "prop"

    def __call__(self, *args):
        return "called", args


def uses_objects():
    d = Derived()
    return d.method(), d.prop, d(1, 2), Derived.made(1), d.static(2), Derived.method(d, 5)


CALLS = [
    (plain, [((1,), {}), ((), {"a": 1}), ((), {}), ((1, 2), {}), ((1,), {"a": 2}), ((1,), {"z": 2})]),
    (defaults, [((1,), {}), ((1, 2, 3), {}), ((1,), {"c": 9}), ((), {"c": 1, "a": 2}), ((1, 2, 3, 4), {})]),
    (positional_only, [((1,), {}), ((1, 2), {"c": 4}), ((), {"a": 1}), ((1,), {"b": 2})]),
    (keyword_only, [((), {"a": 1}), ((), {"b": 1}), ((1,), {}), ((), {"b": 1, "a": 0})]),
    (rest, [((), {}), ((1, 2, 3), {}), ((), {"a": 1})]),
    (more, [((), {}), ((), {"a": 1, "b": 2}), ((1,), {})]),
    (everything, [((1,), {"d": 4}), ((1, 2, 3, 4, 5), {"d": 6, "z": 7}), ((1,), {}), ((1,), {"d": 1, "c": 2, "a": 3}), ((), {"d": 1})]),
    (name_also_in_kwargs, [((1,), {"a": 2}), ((), {"a": 2})]),
    (no_arguments, [((), {}), ((1,), {})]),
    (many, [(tuple(range(16)), {}), (tuple(range(15)), {}), (tuple(range(15)), {"p": 1})]),
    (cell_argument, [((1,), {}), ((1, 2), {"k": 3})]),
    (closure_factory(2), [((1,), {}), ((2,), {})]),
    (recursive, [((10,), {})]),
    (mutual_even, [((7,), {})]),
    (raises, [(("key",), {}), (("value",), {}), (("stop",), {}), (("exit",), {}), (("none",), {})]),
    (chained, [((), {})]),
    (context, [((), {})]),
    (handled, [((2,), {}), ((0,), {})]),
    (finally_wins, [((), {})]),
    (groups, [((), {})]),
    (with_blocks, [((), {})]),
    (drive_generator, [((3,), {})]),
    (closes_generator, [((), {})]),
    (delegates, [((), {})]),
    (runs_async, [((3,), {})]),
    (comprehensions, [((5,), {})]),
    (unpacking, [(([1, 2, 3, 4],), {}), (([1],), {})]),
    (matching, [(({"kind": "point", "at": (1, 2)},), {}), (([1, 2],), {}), (("x",), {}), ((3,), {})]),
    (class_body, [((3,), {})]),
    (global_and_builtin, [(([1],), {})]),
    (evaluates, [((1,), {})]),
    (frames, [((), {})]),
    (strings, [(("a", 2), {}), (("a", "b"), {})]),
    (loops, [((4,), {}), ((8,), {})]),
    (deletes, [((1, 2), {})]),
    (lambdas, [((3,), {})]),
    (uses_objects, [((), {})]),
]
