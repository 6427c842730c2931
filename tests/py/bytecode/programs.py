"""Small functions that between them use most of what bytecode has to offer, each with arguments to run it on.

Bytecode tests decode, edit and run them; `outcome` says what running one gave, tracebacks included.
"""

import contextlib
import traceback


def loops(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        total += i
        while total > 40:
            total -= 7
            if total == 36:
                break
    else:
        total += 1000
    return total


def handlers(items):
    seen = []
    for item in items:
        try:
            try:
                seen.append(10 // item)
            except ZeroDivisionError as error:
                seen.append(str(error))
                if len(seen) > 3:
                    raise ValueError("too many") from error
            else:
                seen.append("fine")
        except TypeError:
            seen.append("type")
        finally:
            seen.append("done")
    return seen


def contexts(fail):
    trace = []

    @contextlib.contextmanager
    def manager(name, swallow):
        trace.append("enter " + name)
        try:
            yield name
        except KeyError:
            trace.append("caught in " + name)
            if not swallow:
                raise
        finally:
            trace.append("leave " + name)

    with manager("outer", True) as outer, manager("inner", False):
        trace.append(outer)
        if fail:
            raise KeyError(fail)
    return trace


def closures(start):
    count = start

    def step(by=1, *, twice=False):
        nonlocal count
        count += by * (2 if twice else 1)
        return count

    return [step(), step(5), step(twice=True), step(by=3, twice=True), count]


def generators(n):
    def inner(m):
        received = []
        for i in range(m):
            got = yield i
            if got:
                received.append(got)
        return received

    def outer():
        result = yield from inner(n)
        yield result
        yield from [1, 2]

    running = outer()
    out = [next(running)]
    for value in ("a", None, "b"):
        with contextlib.suppress(StopIteration):
            out.append(running.send(value))
    out.extend(running)
    return out


def matching(value):
    match value:
        case {"kind": kind, **rest} if rest:
            return kind, rest
        case [first, *others]:
            return first, others
        case int(x) | float(x):
            return x + 1
        case str() as text:
            return text.upper()
        case None:
            return "nothing"
    return "other"


def many_constants(x):
    a = [1, 2.5, "three", b"four", (5, 6), None, True, ...]
    b = {"k": x, **{"l": 1}}
    c = {*a[:3], x}
    first, *middle, last = a
    del a[0]
    a[1:3] = [x]
    return f"{x!r:>5} {x}", b, sorted(map(str, c)), first, middle, last, a[-1], -x, ~x, not x, x if x > 1 else [y * x for y in range(x)]


def boolean(a, b, c):
    if (a and not b) or (b and c is not None):
        return a or b
    return [a is None, a is not b, b in (1, 2), a not in (1, 2), 0 < b < 3, a == b != c]


def calls(*args, **kwargs):
    def target(p, /, q=1, *rest, r=2, **more):
        return p, q, rest, r, more

    return target(*args, **kwargs), target(1, r=3), target(*args), target(0, *args, r=1, **kwargs)


def imports():
    import os.path as path
    from os import sep as separator

    return path.join("a", "b"), separator


def never_bound():
    if imports is None:
        x = 1
    return x


def classes(value):
    class Base:
        def __init__(self, v):
            self.v = v

        def get(self):
            return self.v

    class Derived(Base):
        factor = 2

        def get(self):
            return super().get() * self.factor

    return Derived(value).get()


def raising_in_finally(x):
    for _ in range(3):
        try:
            if x:
                return "returned"
        finally:
            if x == 2:
                continue
            if x == 3:
                raise RuntimeError("from finally")
    return "fell through"


def nones(items):
    out = []
    while items is not None:
        first, *rest = items
        if first is None:
            out.append("none")
        elif rest is not None and first is not None:
            out.append(first)
        items = rest if rest else None
        if items is None:
            out.append("end")
    return out


PROGRAMS = [
    (loops, [(0,), (5,), (30,)]),
    (handlers, [([1, 0, 5],), ([0, 0, "x"],), ([None, 1],)]),
    (contexts, [("",), ("key",)]),
    (closures, [(0,), (7,)]),
    (generators, [(0,), (3,)]),
    (matching, [({"kind": 1, "a": 2},), ([1, 2, 3],), (4,), ("s",), (None,), (object,)]),
    (many_constants, [(1,), (3,), ("bad",)]),
    (boolean, [(0, 1, 2), (1, 0, 2), (0, 0, None), (3, 4, 5)]),
    (nones, [([1],), ([None, 2, 3],), ([],)]),
    (calls, [(1,), (1, 2, 3), ()]),
    (imports, [()]),
    (never_bound, [()]),
    (classes, [(2,)]),
    (raising_in_finally, [(0,), (1,), (2,), (3,)]),
]


def outcome(function, arguments):
    """What a call gave: its value, or the exception with the lines its traceback names."""
    try:
        return ("value", repr(function(*arguments)))
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)[1:]]
        return (type(error).__name__, str(error), lines)
