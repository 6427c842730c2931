"""Classes of the program called inside captured code: construction, super(), metaclasses, slots, subclasses of containers."""

import collections
import typing

import pytest
import torch

import pellucid


class Base:
    made = 0

    def __init__(self, v, *, scale=1):
        self.v = v
        self.scale = scale

    def go(self, x):
        return x * self.v

    @property
    def twice(self):
        return self.v * 2

    @classmethod
    def build(cls, v):
        return cls(v)

    @staticmethod
    def plain(v):
        return v - 1


class Child(Base):
    def __init__(self, v):
        super().__init__(v + 1, scale=3)
        self.extra = "e"

    def go(self, x):
        return super().go(x) + 1

    @property
    def twice(self):
        return super().twice + 100

    @classmethod
    def build(cls, v):
        return super().build(v * 10)

    def sides(self):
        return super().plain(5), super(Child, self).plain(6), super().made


def test_construction_and_super(check, x):
    def f(x):
        c = Child(2)
        d = Child.build(1)
        return c.go(x), c.twice, d.v, type(d) is Child, c.sides(), c.scale, c.extra, c, Base.build(4).v, Base.go(c, x)

    check(f, x)


def test_super_of_an_outside_object(check, x):
    def f(x, c):
        c.v = c.v + 1
        return c.go(x), c.twice, hasattr(super(Child, c), "nope")

    check(f, x, Child(1))


def test_missing_super_attribute(check, x):
    class A:
        def go(self):
            return super().nothing

    def f(x):
        try:
            A().go()
        except AttributeError as e:
            return x + 1, str(e)

    check(f, x)


def test_new(check, x):
    class One:
        instance = None

        def __new__(cls, *args):
            made = super().__new__(cls)
            made.args = args
            return made

        def __init__(self, k):
            self.k = k

    class Other:
        def __new__(cls):
            return [1, 2]

        def __init__(self):
            raise AssertionError("not an instance")

    def f(x):
        o = One(3)
        return x * o.k, o.args, Other(), object.__new__(One).__class__ is One, isinstance(object(), object)

    check(f, x)


def test_hooks(check, x):
    class Spy:
        def __init__(self, a):
            self.a = a

        def __getattribute__(self, n):
            if n == "magic":
                return 42
            return super().__getattribute__(n)

        def __setattr__(self, n, v):
            super().__setattr__(n, v)
            object.__setattr__(self, "nset", getattr(self, "nset", 0) + 1)

        def __delattr__(self, n):
            super().__delattr__(n)
            self.deleted = n

    def f(x):
        s = Spy(3)
        s.b = x
        del s.a
        return x + s.magic, s.nset, s.deleted, hasattr(s, "a"), s

    check(f, x)


def test_metaclass_call(check, x):
    class Meta(type):
        def __call__(cls, *args):
            o = super().__call__(*args)
            o.made_by = cls.__name__
            return o

    class WithMeta(metaclass=Meta):
        def __init__(self, v):
            self.v = v

    def f(x):
        o = WithMeta(3)
        return x * o.v, o.made_by, type(o) is WithMeta

    check(f, x)


def test_slots(check, x):
    class S:
        __slots__ = ("p", "q")

        def __init__(self, p):
            self.p = p

        def __eq__(self, other):
            return (self.p, self.q) == (other.p, other.q)

    def f(x, s):
        r = S(x)
        s.q = s.p * 2
        s.p += 1
        return r.p + 1, hasattr(r, "q"), s.q, s.p

    s = S(1)
    s.q = 0
    check(f, x, s)


def test_wrong_calls_raise_as_written(check, x):
    class NoInit:
        pass

    class Bad:
        def __init__(self):
            return 3

    def f(x, k):
        y = x + 1
        out = None
        try:
            if k == 0:
                NoInit(1)
            if k == 1:
                Bad()
            if k == 2:
                Child()
        except TypeError as e:
            out = str(e)
        return y, out

    for k in range(4):
        check(f, x, k, breaks=True)


Rec = collections.namedtuple("Rec", ["x", "n"], defaults=[5])


class Point(collections.namedtuple("Point", "a b")):
    def total(self):
        return self.a + self.b


class Typed(typing.NamedTuple):
    t: torch.Tensor
    k: int = 3


def test_namedtuples(check, x):
    def f(x, p):
        r = Rec(x)
        s = r._replace(n=7)
        a, b = p
        q = Point(b=x, a=1)
        u = Typed(x * 2)
        return (
            r,
            s.n,
            r.n,
            s._asdict(),
            q.total(),
            p.total(),
            Rec._make([1, 2]),
            a,
            b,
            len(q),
            q[0],
            u,
            Rec._fields,
            isinstance(q, tuple),
            Point(1, 2) == (1, 2),
        )

    check(f, x, Point(1, 2))


def test_dict_and_list_subclasses_made_in_the_graph(check, x):
    class Attr(dict):
        def __getattr__(self, k):
            try:
                return self[k]
            except KeyError:
                raise AttributeError(k) from None

        def __setitem__(self, k, v):
            super().__setitem__(k, v)
            self.log = k

    class L(list):
        def append(self, v):
            super().append(v)
            self.n = getattr(self, "n", 0) + 1

    class Default(dict):
        def __missing__(self, k):
            return k * 2

    def f(x):
        d = Attr(b=1)
        d["a"] = x + d.b
        d["c"] = len(d)
        ls = L([0])
        ls.append(x)
        ls.append(d.c)
        m = Default(k=1)
        return (
            d.a,
            getattr(d, "zzz", "none"),
            isinstance(d, dict),
            ls.n,
            len(ls),
            ls[2],
            sum(ls[2:]),
            "a" in d,
            list(d),
            m["q"],
            m["k"],
            [v for v in ls][0],
        )

    check(f, x)


def test_subclasses_returned(check, x):
    class Attr(dict):
        pass

    class L(list):
        pass

    def f(x):
        d = Attr(a=x + 1)
        d.mark = "m"
        ls = L([x, 2])
        ls.append(3)
        return d, ls

    check(f, x)


def test_classes_with_generic_bases(check, x):
    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        def __init__(self, v: T):
            self.v = v

    def f(x):
        return Box(x * 2).v

    check(f, x)


def test_no_grad_objects(check, x):
    def f(x):
        guard = torch.no_grad()
        with guard:
            y = x * 2
        with torch.enable_grad():
            z = x * 3
        with torch.set_grad_enabled(False):
            w = x * 4
        return y, z, w, y.requires_grad, z.requires_grad, w.requires_grad

    check(f, x.clone().requires_grad_())


class Ordered(collections.OrderedDict):
    """What model outputs are made of."""


class Counted(collections.OrderedDict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.made = len(self)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__("last", key)


@pytest.mark.parametrize("cls", [Ordered, Counted])
def test_an_instance_of_an_ordered_dict_subclass_is_an_output(cls):
    def f(x):
        made = cls(a=x + 1)
        made["b"] = x * 2
        made["c"] = 3
        made.move_to_end("a")
        return made

    captured = pellucid.optimize("eager", fullgraph=True)(f)
    for _ in range(2):
        x = torch.ones(2)
        got, expected = captured(x), f(x)
        assert type(got) is cls and list(got) == list(expected) == ["b", "c", "a"]
        assert got.__dict__ == expected.__dict__
        assert all(torch.equal(torch.as_tensor(got[key]), torch.as_tensor(expected[key])) for key in expected)


@pytest.mark.parametrize("field", ["values", "indices"])
def test_fields_of_what_operators_return(field):
    def fn(x):
        return getattr(x.sort(-1), field).shape, getattr(x.max(0), field) + 1

    x = torch.randn(2, 3)
    captured = pellucid.optimize("eager", fullgraph=True)(fn)
    (shape, largest), (expected_shape, expected) = captured(x), fn(x)
    assert shape == expected_shape and torch.equal(largest, expected)
    assert [entry.report["breaks"] for entry in pellucid.cache_entries(captured)] == [[]]
