"""Builtin functions and the operator, functools, math, copy and dataclasses modules inside captured code."""

import collections
import collections.abc
import copy
import dataclasses
import enum
import functools
import math
import numbers
import operator
from typing import NamedTuple

import pytest
import torch


def test_conversions(check, x):
    def f(x, n, s):
        a = int("12"), int(n), int(2.9), int("ff", 16), float("1.5"), float(n), complex(1, n), bool(n), bool([]), bool("")
        b = str(n), str(2.5), str([1, "a", (2, None)]), repr({"k": [n]}), repr(s), str({1}), ascii("é"), str(x.shape), str(x.dtype)
        c = ord("a"), chr(n + 60), hex(n), bin(n), oct(n), format(n, "04d"), format(2.5, ".2f"), bytes(3)
        return x + n, a, b, c

    check(f, x, 7, "a'b")


def test_containers(check, x):
    def f(x, items):
        a = list(items), tuple(items), list("abc"), tuple(range(3)), list({"p": 1}), list(zip(items, items))
        b = dict(), dict(a=1), dict({"k": x}), dict([("p", 1), ("q", x)], r=3), dict(zip("ab", items))
        s = set("aab"), frozenset([1, 2]), set(range(3)) - {1}, len(set(items))
        od = collections.OrderedDict([("u", 1)])
        od["v"] = x
        dd = collections.defaultdict(list)
        dd["k"].append(x)
        dd["k"].append(2)
        return x * 2, a, b, s, od, dict(dd), list(range(5, 0, -2)), slice(1, None), slice(x.shape[0])

    check(f, x, [1, 2, 3])


def test_identity_of_tuple_and_copies(check, x):
    def f(x, items):
        t = (x, 1)
        c = copy.copy(items)
        d = copy.deepcopy(items)
        c.append(5)
        d[1].append(6)
        nested = [items[1], items[1]]
        e = copy.deepcopy(nested)
        e[0].append(7)
        return x + 1, tuple(t) is t, list(items) is items, c, d, e[1], items, copy.deepcopy((1, "a")), copy.copy({"a": x})["a"] is x

    check(f, x, [1, [2]])


class Base:
    pass


class Child(Base):
    def __len__(self):
        return 4

    def __hash__(self):
        return 12345

    def __index__(self):
        return 2

    def __float__(self):
        return 2.5

    def __abs__(self):
        return "abs"

    def __round__(self, n=None):
        return ("round", n)

    def __format__(self, spec):
        return "<" + spec + ">"

    def __str__(self):
        return "child"

    def __repr__(self):
        return "Child()"

    def __call__(self):
        return 1

    def __bool__(self):
        return False

    def __reversed__(self):
        return iter([3, 2, 1])


def test_special_methods_of_objects(check, x):
    def f(x, c):
        a = len(c), hash(c), abs(c), round(c), round(c, 2), format(c, "q"), f"{c:>3}", f"{c}", f"{c!r}", str(c), repr(c)
        b = (
            callable(c),
            bool(c),
            operator.index(c),
            float(c),
            int(c),
            list(range(c)),
            list(reversed(c)),
            operator.truth(c),
            operator.not_(c),
        )
        return x + 1, a, b, callable(f), callable(len), callable(3), callable(Base), callable(c.__len__)

    check(f, x, Child())


def test_isinstance_and_issubclass(check, x):
    class Meta(type):
        def __instancecheck__(cls, obj):
            return getattr(obj, "duck", False)

        def __subclasscheck__(cls, sub):
            return sub is int

    class Quack(metaclass=Meta):
        pass

    class Duck:
        duck = True

    maybe_int = int | None

    def f(x, n, c, p, duck):
        a = isinstance(n, int), isinstance(True, int), isinstance(n, (str, (float, int))), isinstance(n, str), isinstance(None, type(None))
        b = isinstance(x, torch.Tensor), isinstance(p, torch.nn.Parameter), isinstance(x, torch.nn.Parameter), isinstance(p, torch.Tensor)
        d = isinstance(c, Base), issubclass(Child, Base), issubclass(Base, Child), issubclass(bool, (str, int)), isinstance(c, object)
        e = isinstance([], collections.abc.Sequence), isinstance({}, collections.abc.Mapping), isinstance(n, numbers.Number)
        g = isinstance(c, collections.abc.Sized), isinstance(c, collections.abc.Iterable), isinstance(f, collections.abc.Callable)
        h = isinstance(n, maybe_int), isinstance(None, maybe_int), isinstance("s", maybe_int), isinstance(x.shape, tuple)
        i = isinstance(duck, Quack), isinstance(c, Quack), issubclass(int, Quack), issubclass(str, Quack), isinstance(Quack(), Quack)
        return x + 1, a, b, d, e, g, h, i, isinstance(torch.float32, torch.dtype), isinstance(n, list)

    check(f, x, 3, Child(), torch.nn.Parameter(torch.ones(2)), Duck())


def test_type_of_values(check, x):
    def f(x, n, c):
        a = type(n) is int, type(c) is Child, type(c).__name__, type(x) is torch.Tensor, type(type(c)) is type, type(None) is type(None)
        b = type([]) is list, type(f).__name__, type(x.shape) is torch.Size, c.__class__ is Child, type(len).__name__
        return x + 1, a, b, type(iter([])).__name__, type({}.keys()).__name__, type(enumerate([])) is enumerate, type(n)("5")

    check(f, x, 3, Child())


def test_attribute_functions(check, x):
    class Holder:
        kind = "h"

        def __init__(self):
            self.a = 1

        @property
        def bad(self):
            raise AttributeError("inner")

        @property
        def worse(self):
            raise ValueError("inner")

    def f(x, h):
        a = getattr(h, "a"), getattr(h, "zzz", "none"), getattr(h, "bad", 5), hasattr(h, "bad"), hasattr(h, "kind"), hasattr(h, "zzz")
        try:
            getattr(h, "worse", 1)
        except ValueError as e:
            b = str(e)
        setattr(h, "n" + "ew", x * 2)
        delattr(h, "a")
        try:
            h.a
        except AttributeError as e:
            c = str(e)
        return x + h.new, a, b, c, hasattr(x, "shape"), hasattr(x, "nope"), getattr(x, "ndim"), h

    check(f, x, Holder())


def test_reductions(check, x):
    def f(x, items):
        a = sum(items), sum([1, 2.5]), sum([[1], [2]], []), sum((x, x, 1)), sum([], 5), sum(v * 2 for v in items)
        b = min(items), max(3, 1, 2), max("abc", key=lambda c: -ord(c)), min([], default=7), max(items, key=None), min((2, "b"), (1, "a"))
        c = any([0, "", 3]), all([]), any([]), all([1, 0]), any(v > 2 for v in items), all(isinstance(v, int) for v in items)
        d = max([[1], [2]]), abs(-3), round(2.567, 2), round(2.5), divmod(7, 2), pow(2, 5), pow(2, 5, 7)
        return x + 1, a, b, c, d, abs(x - 2), pow(x, 2), max(items) is items[1]

    check(f, x, [3, 50, 2])


@pytest.mark.parametrize("name", ["min", "max"])
def test_empty_extremes(check, x, name):
    def f(x, function):
        try:
            function([])
        except ValueError as e:
            return x + 1, str(e)

    check(f, x, {"min": min, "max": max}[name])


def test_iteration_consumes_only_what_it_looks_at(check, x):
    def f(x):
        it = iter([0, 1, 2, 3])
        a = any(it), next(it)
        it = iter([1, 0, 2])
        b = all(it), list(it)
        it = iter([5, 6])
        c = next(it), next(it), next(it, "end"), next(it, "end")
        return x + 1, a, b, c

    check(f, x)


def test_messages_of_refused_arguments(check, x):
    def attempt(function, *args):
        try:
            return function(*args)
        except Exception as e:
            return type(e).__name__, str(e)

    def f(x):
        a = attempt(dict, [1]), attempt(dict, [(1, 2), (3,)]), attempt(collections.defaultdict, str, [None])
        b = attempt(operator.countOf, 3, 1), attempt(operator.indexOf, [1], 2), attempt(next, iter(())), attempt(min, ())
        return x + 1, a, b, collections.defaultdict(), attempt(collections.defaultdict().__getitem__, "k")

    check(f, x)


def test_iterators(check, x):
    def f(x, items):
        a = list(enumerate(items)), list(enumerate("ab", start=3)), list(zip(items, "abcd")), list(zip()), list(map(str, items))
        b = list(map(lambda p, q: p + q, items, [10, 20])), list(filter(None, [0, 1, ""])), list(filter(lambda v: v > 2, items))
        c = list(reversed(items)), list(reversed((1, 2))), list(reversed(range(3))), list(reversed("ab")), list(reversed({"p": 1, "q": 2}))
        d = list(reversed({"p": 1, "q": 2}.items())), list(reversed({"p": 1, "q": x}.values()))
        box = [1, 2, 3]
        e = list(iter(box.pop, 1)), box
        g = [u + v for u, v in zip(x, x * 2, strict=True)]
        return x + 1, a, b, c, d, e, g, [i * t for i, t in enumerate(x)]

    check(f, x, [3, 1, 2])


def test_errors_of_iterators(check, x):
    def f(x):
        out = []
        try:
            list(zip([1], [1, 2], strict=True))
        except ValueError as e:
            out.append(str(e))
        try:
            next(iter([]))
        except StopIteration as e:
            out.append((e.args, e.value))
        try:
            for _ in 3:
                pass
        except TypeError as e:
            out.append(str(e))
        return x + 1, out

    check(f, x)


def test_iterator_is_put_back_when_the_graph_breaks(check, x):
    def f(x, flags):
        it = iter([*flags, x.sum() > 0, 5])
        found = any(it)  # only the data tells
        return x + 1, bool(found), list(it)

    check(f, x, [0, False], breaks=True)
    check(f, -x - 1, [0, False], breaks=True)


def test_sorted(check, x):
    class Rank:
        def __init__(self, n, log):
            self.n, self.log = n, log

        def __lt__(self, other):
            self.log.append((self.n, other.n))
            return self.n < other.n

    def f(x, items, names):
        a = sorted(items), sorted(items, reverse=True), sorted(names, key=len), sorted(names, key=lambda s: (len(s), s), reverse=True)
        pairs = [(2, x), (1, x * 2), (2, x * 3)]
        b = [p[0] for p in sorted(pairs, key=lambda p: p[0], reverse=True)], sorted(pairs, key=operator.itemgetter(0))[0][1]
        log = []
        c = [r.n for r in sorted([Rank(n, log) for n in items])]
        d = [r.n for r in sorted([Rank(n, log) for n in items], reverse=True)]
        e = sorted({"b": 1, "a": 2}), sorted(items, key=functools.cmp_to_key(lambda p, q: q - p))
        try:
            sorted([1, "a"])
        except TypeError as error:
            g = str(error)
        return x + 1, a, b, c, d, log, e, g

    check(f, x, [5, 3, 8, 1, 9, 2, 7], ["ccc", "a", "bb", "dd"])


def test_operator_functions(check, x):
    def f(x, n):
        a = operator.add(x, 1), operator.mul(2, x), operator.matmul(x, x.t()), operator.neg(x), operator.getitem(x, 0), operator.eq(x, x)
        b = operator.add(n, 1), operator.floordiv(7, 2), operator.lt(1, n), operator.is_(n, n), operator.is_not(None, n), operator.not_(0)
        items = [1, 2]
        operator.setitem(items, 0, x)
        operator.delitem(items, 1)
        other = operator.iadd(items, [4])
        c = operator.contains([1, n], 1), operator.concat([1], [2]), operator.countOf([1, 2, 1], 1), operator.indexOf("abc", "c")
        return a, b, items, other is items, c, operator.index(True), operator.xor(5, 1), operator.truth([]), operator.invert(2)

    check(f, x, 3)


class Point(NamedTuple):
    x: int
    y: int = 4

    def total(self):
        return self.x + self.y


def test_getters(check, x):
    get = operator.itemgetter(1)

    def f(x, p, pairs):
        a = get([4, 5]), operator.itemgetter(0, 1)("ab"), operator.itemgetter("k")({"k": x}), list(map(operator.itemgetter(0), pairs))
        b = operator.attrgetter("x")(p), operator.attrgetter("x", "y")(p), operator.attrgetter("shape.__class__.__name__")(x)
        c = (
            operator.methodcaller("total")(p),
            operator.methodcaller("split", "-", maxsplit=1)("a-b-c"),
            operator.methodcaller("sum", dim=0)(x),
        )
        return x + 1, a, b, c

    check(f, x, Point(1), [(1, 2), (3, 4)])


def test_partial_and_reduce(check, x):
    def scale(a, b, c=1, *, d=0):
        return a * b + c + d

    outside = functools.partial(scale, 2, c=5)

    def f(x):
        p = functools.partial(scale, 3)
        q = functools.partial(p, c=7, d=1)
        r = functools.partial(q, c=8)
        s = functools.partial(torch.add, x)
        a = p(x), q(x), r(x), r(x, d=4), outside(x), s(1), s(1, alpha=2), p.args, q.keywords, q.func is scale
        b = functools.reduce(lambda u, v: u + v, [x, x, 1]), functools.reduce(operator.add, range(4), 10), functools.reduce(max, (3, 9, 1))
        try:
            functools.reduce(operator.add, [])
        except TypeError as e:
            c = str(e), e.__context__
        return a, b, c

    check(f, x)


def test_wraps(check, x):
    def f(x):
        def double(fn):
            @functools.wraps(fn)
            def inner(*args):
                return fn(*args) * 2

            return inner

        @double
        def g(v):
            """doc"""
            return v + 1

        return g(x), g.__name__, g.__wrapped__(x)

    check(f, x)


def test_math_of_known_numbers(check, x):
    def f(x, n):
        return x * math.sqrt(n), math.floor(2.5), math.prod([2, 3]), math.pi, math.gcd(12, n), math.isnan(float("nan")), math.log2(8)

    check(f, x, 9)


def test_math_of_a_tensor_breaks(check, x):
    def f(x):
        y = x + 1
        return math.sqrt(y.sum()), y * 2

    check(f, x, breaks=True)


@dataclasses.dataclass
class Config:
    width: int
    names: list = dataclasses.field(default_factory=list)
    ratio: float = dataclasses.field(default=0.5, repr=False)


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: int = 2


def test_dataclasses(check, x):
    def f(x, c, fr):
        n = Config(c.width + 1)
        n.names.append("p")
        m = dataclasses.replace(c, width=9)
        a = (
            [fld.name for fld in dataclasses.fields(c)],
            dataclasses.is_dataclass(c),
            dataclasses.is_dataclass(Config),
            dataclasses.is_dataclass(3),
        )
        b = fr == Frozen(1), fr < Frozen(3), Frozen(1, 5) != fr, n == Config(5, ["p"]), repr(fr), str(n)
        try:
            fr.a = 3
        except dataclasses.FrozenInstanceError as e:
            d = str(e)
        return x * n.width, n, m, a, b, d, dataclasses.asdict(n), dataclasses.astuple(fr)

    check(f, x, Config(4), Frozen(1))


class Color(enum.Enum):
    RED = 1
    BLUE = "b"

    @property
    def double(self):
        return self.value * 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def test_enums(check, x):
    def f(x, c, level):
        a = (
            Color(1) is Color.RED,
            Color("b"),
            Color["RED"],
            c.name,
            c.value,
            c.double,
            c is Color.RED,
            c == Color.BLUE,
            isinstance(c, Color),
        )
        b = level + 1, level > Level.LOW, int(level), Level(2), Color(c) is c, {Color.RED: 5}[c], [m.name for m in (Color.RED, Color.BLUE)]
        return x * int(level), a, b

    check(f, x, Color.RED, Level.HIGH)


def test_print_and_warnings_break(check, x, capsys):
    import warnings

    def f(x):
        y = x + 1
        print("seen", y.shape)
        warnings.warn("careful")
        return y * 2

    with pytest.warns(UserWarning, match="careful"):
        check(f, x, breaks=True)
    assert capsys.readouterr().out.count("seen torch.Size([2, 3])") == 4


def test_id_of_known_objects(check, x):
    def f(x):
        return x + 1, id(Base) == id(Base), id(len) == id(None), id(torch.nn) == id(torch.nn)

    check(f, x)


def test_counter(check, x):
    def f(x, names):
        c = collections.Counter(names)
        c.update("a")
        return x * c["a"], c["zz"], sorted(c.items()), c.most_common(1)

    check(f, x, ["a", "b", "a"])
