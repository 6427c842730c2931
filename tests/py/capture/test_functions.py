"""Closures, defaults, keywords, methods, inlined calls, recursion, partials: whatever is called and how."""

import functools
import operator

import pytest
import torch
from harness import Call, check, once, program, rand

import pellucid


@program
def counter():
    total, calls = torch.zeros(3), 0

    def fn(x):
        nonlocal total, calls
        calls += 1
        total = total + x * calls
        return total.sum()

    return fn, fn


@program
def nested_nonlocal():
    log = []

    def fn(x):
        level = 0
        seen = x

        def outer():
            nonlocal level, seen
            level += 1

            def inner():
                nonlocal level, seen
                level += 10
                seen = seen * 2
                log.append(level)
                return seen

            return inner() + level

        y = outer()
        z = outer()
        return y, z, level, seen

    return fn, log


@program
def returns_closures():
    def fn(x):
        scale = x.sum()
        n = 3

        def apply(y, k=2):
            return y * scale * n * k

        def bump():
            nonlocal n
            n += 1
            return n

        return apply, bump, apply(x)

    def call(x):
        apply, bump, y = fn(x)
        a = apply(x)
        bump()
        return a, apply(x, k=5), y

    return call, None


@program
def closure_escapes():
    kept = []

    def fn(x):
        y = x + 1

        def inner(z):
            return y * z

        kept.append(inner)
        return y

    return fn, kept


@program
def cell_written_after_closure_made():
    def fn(x):
        fs = []
        for i in range(3):
            fs.append(lambda y: y * i + w)
        w = x * 2
        return [f(x) for f in fs]

    return fn, None


@program
def closures_with_defaults_in_loop():
    def fn(x):
        fs = [lambda y, i=i: y + i for i in range(4)]
        return sum(f(x) for f in fs)

    return fn, None


CELLS = [counter, nested_nonlocal, returns_closures, closure_escapes, cell_written_after_closure_made, closures_with_defaults_in_loop]


@pytest.mark.parametrize("subject", CELLS, ids=lambda p: p.__name__)
def test_cells(subject):
    check(subject, rand(3), rand(3), rand(4) if subject is not counter else rand(3), stable=subject in CELLS[2:3] + CELLS[4:])


@pytest.mark.parametrize("where", range(4))
def test_break_while_cells_are_shared(where):
    @program
    def shared():
        log = []

        def fn(x):
            n = 1
            y = x

            def bump(k):
                nonlocal n, y
                if where == 0:
                    pellucid.graph_break()
                n += k
                y = y * n
                if where == 1:
                    pellucid.graph_break()
                return y

            def read():
                return n, y + 1

            if where == 2:
                pellucid.graph_break()
            a = bump(2)
            if where == 3:
                pellucid.graph_break()
            log.append(n)
            return a, bump(3), read(), n

        return fn, log

    check(shared, rand(3), breaks=["user_graph_break"], stable=False, repeat=1)


def defaults(x, a=2, *rest, k=3, other=None, **more):
    y = x * a + k
    for r in rest:
        y = y + r
    for name, value in more.items():
        y = y * value + len(name)
    return y if other is None else (y, other)


CALLS = [
    lambda: Call(torch.randn(3)),
    lambda: Call(torch.randn(3), 4),
    lambda: Call(torch.randn(3), 4, torch.ones(3), 2.5),
    lambda: Call(torch.randn(3), k=torch.ones(3)),
    lambda: Call(x=torch.randn(3), other={"z": 1}),
    lambda: Call(torch.randn(3), zz=2, y=torch.randn(3)),
    lambda: Call(torch.randn(3), 1, 2, 3, k=4, other=5, name=6),
]


def test_signatures():
    check(defaults, *CALLS, breaks=[], graphs=len(CALLS))


def test_signature_errors():
    check(defaults, CALLS[0], lambda: Call(), lambda: Call(torch.ones(2), x=2), graphs=1)

    def inner(a, b, *, c):
        return a + b + c

    def wrong(x, how):
        y = x + 1
        if how == 0:
            return inner(y)
        if how == 1:
            return inner(y, y, y)
        if how == 2:
            return inner(y, y, c=1, d=2)
        if how == 3:
            return inner(y, b=1, **{"b": 2})
        return inner(y, y, c=1)

    check(wrong, *(lambda how=how: (torch.ones(2), how) for how in range(5)))


def test_kwargs_pass_through_layers():
    def base(x, *, scale, shift=0, **more):
        return x * scale + shift + sum(more.values())

    def middle(*args, **kwargs):
        kwargs.setdefault("shift", 7)
        return base(*args, **{**kwargs, "extra": 1})

    def fn(x, **kwargs):
        out = middle(x, **kwargs)
        return out, sorted(kwargs), "shift" in kwargs

    once(fn, lambda: Call(torch.randn(2), scale=2), lambda: Call(torch.randn(2), scale=2, shift=3, zed=4))


class Accumulator:
    count = 0
    registry: dict = {}

    def __init__(self, weight):
        self.weight = weight
        self.seen = []

    def add(self, x):
        self.count += 1
        self.seen.append(x.sum())
        return x * self.weight

    @property
    def doubled(self):
        return self.weight * 2

    @doubled.setter
    def doubled(self, value):
        self.weight = value / 2

    @classmethod
    def make(cls, x):
        return cls(x)

    @staticmethod
    def shift(x):
        return x + 1

    def __call__(self, x):
        return self.add(x) + self.doubled

    def __getitem__(self, i):
        return self.weight[i]

    def __len__(self):
        return self.weight.shape[0]

    def __contains__(self, v):
        return v in (1, 2)

    def __add__(self, other):
        return type(self)(self.weight + (other.weight if isinstance(other, Accumulator) else other))

    __radd__ = __add__

    def __eq__(self, other):
        return isinstance(other, Accumulator) and self.weight is other.weight

    def __bool__(self):
        return self.count % 2 == 0

    def __iter__(self):
        return iter([self.weight, self.weight * 2])


class Child(Accumulator):
    def add(self, x):
        return super().add(x) * 10

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return len(name)
        raise AttributeError(name)


def use_methods(o, x):
    y = o.add(x)
    o.doubled = y
    return y + o.doubled, o.count, len(o.seen)


def use_dunder(o, x):
    a, b = o
    return o(x) + a + b, o[0], len(o), 1 in o, (o + x).weight, (x.sum() + 1, o + o), o == o, o != 3


def use_bool(o, x):
    return x + 1 if o else x - 1


def use_class(o, x):
    made = type(o).make(x)
    made.tag = "t"
    return made, made.shift(x), type(o).shift(x), made.add(x)


def use_bound(o, x):
    f = o.add
    g = functools.partial(f)
    return g(x) + f(x), f.__self__ is o


def use_getattr(o, x):
    return x * getattr(o, "missing", 3) + getattr(o, "dyn_abc", 1), hasattr(o, "count"), hasattr(o, "nope")


@pytest.mark.parametrize("cls", [Accumulator, Child])
@pytest.mark.parametrize("use", [use_methods, use_dunder, use_bool, use_class, use_bound, use_getattr])
def test_methods(use, cls):
    check(use, lambda: (cls(torch.arange(3.0)), torch.randn(3)), lambda: (cls(torch.ones(3)), torch.randn(3)), stable=False)


def test_methods_keep_state_over_calls():
    @program
    def keeps():
        o = Child(torch.ones(3))

        def fn(x):
            o.add(x)
            o.last = x * 2
            return o(x)

        return fn, o

    check(keeps, rand(3), rand(3), stable=False)


def deep(n, x, at_bottom):
    if n == 0:
        return at_bottom(x) * 2
    y = x + n
    z = deep(n - 1, y, at_bottom)
    return z * y - n


def test_ten_deep_in_one_graph():
    once(lambda x: deep(10, x, lambda v: v.sin()), rand(3, grad=True), operators=2 + 40 - 10)


def chain(depth, bottom):
    """`depth` functions, each calling the next: ten code objects, as ten functions of a program have."""
    namespace = {"f0": bottom}
    for i in range(1, depth + 1):
        exec(f"def f{i}(x):\n    y = x + {i}\n    z = f{i - 1}(y)\n    return z * y - {i}", namespace)
    return namespace[f"f{depth}"]


def test_ten_deep_with_a_break_at_the_bottom():
    def bottom(v):
        w = v.cos()
        pellucid.graph_break()
        return w + v

    out = check(chain(10, bottom), rand(3, grad=True), breaks=["user_graph_break"], graphs=12)
    assert out.names().count("cos") == 1 and len(out.names()) == 10 + 1 + 1 + 20
    assert out.break_rows[0]["user_stack"][-1][1] == "bottom" and len(out.break_rows[0]["user_stack"]) == 11


def test_recursion_with_a_break_at_the_bottom():
    def bottom(v):
        w = v.cos()
        pellucid.graph_break()
        return w + v

    check(lambda x: deep(6, x, bottom), rand(3, grad=True), breaks=["user_graph_break"])


def test_ten_deep_raising_at_the_bottom():
    def bottom(v):
        w = v.cos()
        if w.sum() > -10:
            raise ValueError("at the bottom", 3)
        return w

    check(chain(10, bottom), rand(3, grad=True))
    check(lambda x: deep(6, x, bottom), rand(3, grad=True))


def test_recursion_on_data():
    def collatz(x, n, depth=0):
        if n == 1:
            return x, depth
        return collatz(x + n, n // 2 if n % 2 == 0 else 3 * n + 1, depth + 1)

    once(collatz, lambda: (torch.ones(2), 6), lambda: (torch.ones(2), 7))


def test_recursion_over_a_tensor():
    def halve(x):
        if x.numel() == 1 or x.sum() < 0.1:
            return x
        return halve(x[: len(x) // 2]) + 1

    check(halve, lambda: torch.arange(8.0), lambda: torch.zeros(8))


def test_recursion_too_deep_is_as_eager():
    def endless(x):
        return endless(x + 1)

    def fn(x):
        try:
            return endless(x)
        except RecursionError:
            return x * 2

    check(fn, rand(2), graphs=None, stable=False, repeat=1)


def test_partials_and_callables():
    def f(a, b, c=1, *, d=2):
        return a * b + c - d

    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, x, y=1):
            return x * self.k + y

    check(functools.partial(f, torch.ones(3), d=5), rand(3), lambda: Call(torch.ones(3), c=4))
    check(Scale(3), rand(3), lambda: Call(torch.ones(3), y=4))
    check(functools.partial(functools.partial(f, 2), c=1), rand(3))

    def fn(x):
        p = functools.partial(f, x, c=3)
        q = functools.partial(Scale(2), y=x)
        return p(x), q(1), functools.reduce(operator.add, [x, x, x]), list(map(functools.partial(f, x), [1, 2]))

    once(fn, rand(3))


def test_methods_are_optimized():
    class Model:
        def __init__(self):
            self.w = torch.arange(3.0)

        def run(self, x):
            self.w = self.w + 1
            return self.w * x

    @program
    def bound():
        m = Model()
        return m.run, m

    check(bound, rand(3))

    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    class Decorated:
        scale = 2

        @pellucid.optimize(backend=backend)
        def f(self, x):
            return x * self.scale

        @staticmethod
        @pellucid.optimize(backend=backend)
        def g(x):
            return x + 1

        @classmethod
        @pellucid.optimize(backend=backend)
        def h(cls, x):
            return x * cls.scale

        @property
        @pellucid.optimize(backend=backend)
        def p(self):
            return torch.ones(2) * self.scale

    d = Decorated()
    x = torch.randn(2)
    for _ in range(2):
        assert (
            torch.equal(d.f(x), x * 2)
            and torch.equal(d.g(x), x + 1)
            and torch.equal(Decorated.h(x), x * 2)
            and torch.equal(d.p, torch.ones(2) * 2)
        )
    assert len(graphs) == 4
    d.scale = 5
    Decorated.scale = 7
    assert torch.equal(d.f(x), x * 5) and torch.equal(Decorated.h(x), x * 7) and torch.equal(Decorated().f(x), x * 7)


def test_nested_optimize():
    counts = [0, 0]

    def backend(i):
        def compile(gm, inputs):
            counts[i] += 1
            return gm.forward

        return compile

    inner = pellucid.optimize(lambda x: x * 2 + 1, backend=backend(0))
    outer = pellucid.optimize(lambda x: inner(x + 1) - 1, backend=backend(1))
    x = torch.randn(3)
    for _ in range(3):
        assert torch.equal(outer(x), (x + 1) * 2 + 1 - 1)
    assert sum(counts) >= 1
    assert torch.equal(inner(x), x * 2 + 1)


def test_decorated_functions_and_wraps():
    @program
    def subject():
        calls = []

        def log(f):
            @functools.wraps(f)
            def wrapper(*args, **kwargs):
                calls.append(f.__name__)
                return f(*args, **kwargs)

            return wrapper

        @log
        @log
        def g(x, k=1):
            return x * k

        def fn(x):
            return g(x, k=3) + g(x), len(calls)

        return fn, calls

    check(subject, rand(2), stable=False)


@functools.lru_cache(None)
def cached(n):
    return n * 2


def test_cached_functions():
    check(lambda x: x * cached(3) + cached(4), rand(2))


def test_function_attributes_and_replaced_code():
    @program
    def subject():
        def g(x):
            return x + g.k

        def fn(x):
            fn.calls = getattr(fn, "calls", 0) + 1
            return g(x)

        g.k = 1
        return fn, fn.__dict__

    check(subject, rand(2), stable=False)

    def one(x):
        return x + 1

    def two(x):
        return x * 2

    wrapped = pellucid.optimize(lambda x: one(x), backend="eager")
    assert torch.equal(wrapped(torch.ones(2)), torch.ones(2) + 1)
    one.__code__ = two.__code__
    assert torch.equal(wrapped(torch.ones(2) * 3), torch.ones(2) * 6)
    one.__defaults__ = (3,)


def test_defaults_replaced():
    def g(x, k=2, *, m=3):
        return x * k + m

    def fn(x):
        return g(x)

    w = pellucid.optimize(fn, backend="eager")
    x = torch.randn(2)
    assert torch.equal(w(x), x * 2 + 3)
    g.__defaults__ = (5,)
    assert torch.equal(w(x), x * 5 + 3)
    g.__kwdefaults__["m"] = 9
    assert torch.equal(w(x), x * 5 + 9)
    g.__kwdefaults__ = None
    with pytest.raises(TypeError):
        w(x)


GLOBAL_SCALE = 2
GLOBAL_LIST: list = []


def test_globals():
    def read(x):
        return x * GLOBAL_SCALE

    def write(x):
        global GLOBAL_SCALE, GLOBAL_NEW
        GLOBAL_SCALE += 1
        GLOBAL_NEW = x * GLOBAL_SCALE
        GLOBAL_LIST.append(GLOBAL_SCALE)
        return GLOBAL_NEW

    @program
    def subject():
        def fn(x):
            global GLOBAL_SCALE
            a = read(x)
            b = write(x)
            c = read(x)
            r = (a, b, c, list(GLOBAL_LIST), GLOBAL_NEW)
            GLOBAL_SCALE = 2
            GLOBAL_LIST.clear()
            return r

        return fn, None

    check(subject, rand(2))


def test_deleted_global():
    def fn(x):
        global GLOBAL_TEMP
        GLOBAL_TEMP = x + 1
        y = GLOBAL_TEMP * 2
        del GLOBAL_TEMP
        try:
            GLOBAL_TEMP
        except NameError as error:
            return y, str(error)

    check(fn, rand(2))


def test_lambda_sort_keys_and_min_max():
    def fn(x, names):
        order = sorted(names, key=lambda n: (-len(n), n), reverse=True)
        best = max(names, key=len)
        return [x * len(n) for n in order], best, min(names, key=lambda n: n[-1]), list(filter(lambda n: "a" in n, names))

    once(fn, lambda: (torch.randn(2), ["abc", "b", "xyza"]))


def test_starred_everything():
    def g(*args, **kw):
        return args, kw

    def fn(x):
        (a, *b), kw = g(*[x, x + 1], *(x * 2,), **{"p": 1}, **dict(q=x))
        first, *_, last = range(5)
        return a, b, kw, first, last, [*b, a], {**kw, "r": 3}

    once(fn, rand(2))
