"""Containers and plain values that change between calls.

Each is a generator: `wrap` captures a function or leaves it as it is, and what is yielded must be the same either way.
"""

import collections
import dataclasses
import enum
import types

import torch
from torch import nn


def X():
    return torch.arange(6.0).reshape(2, 3) + 1


def dataclass_fields(wrap):
    @dataclasses.dataclass
    class C:
        a: int = 1
        b: list = dataclasses.field(default_factory=list)

    c = C()
    f = wrap(lambda x: x * c.a + len(c.b) + len(dataclasses.fields(c)))
    yield f(X())
    c.a = 4
    yield f(X())
    c.b.append(1)
    yield f(X())
    C.a = property(lambda s: 6)
    yield f(X())


def dataclass_eq_replaced(wrap):
    @dataclasses.dataclass
    class C:
        a: int = 1

    c = C()
    f = wrap(lambda x: x + 1 if c == C(1) else x - 1)
    yield f(X())
    c.a = 2
    yield f(X())
    C.__eq__ = lambda s, o: True
    yield f(X())


def dataclass_init_replaced(wrap):
    @dataclasses.dataclass
    class C:
        a: int = 1

    f = wrap(lambda x: x * C(3).a)
    yield f(X())
    C.__init__ = lambda self, a: setattr(self, "a", a * 2)
    yield f(X())
    C.__post_init__ = lambda self: None
    yield f(X())
    C.__new__ = lambda cls, *a: types.SimpleNamespace(a=50)
    yield f(X())


def enum_argument(wrap):
    class E(enum.Enum):
        A = 1
        B = 2

    f = wrap(lambda x, e: x * e.value if e is E.A else x)
    yield f(X(), E.A)
    yield f(X(), E.B)
    yield f(X(), E.A)


def namedtuple_field_replaced(wrap):
    P = collections.namedtuple("P", "a b")
    f = wrap(lambda x, p: x * p.a)
    yield f(X(), P(2, 3))
    P.a = property(lambda s: s[1])
    yield f(X(), P(2, 3))
    yield f(X(), P(3, 4))


def namedtuple_method(wrap):
    class P(collections.namedtuple("P", "a b")):
        def total(self):
            return self.a + self.b

    f = wrap(lambda x, p: x * p.total())
    yield f(X(), P(2, 3))
    P.total = lambda s: 1
    yield f(X(), P(2, 3))


def list_two_one(wrap):
    def g(a, b, x):
        a.append(1)
        b.append(2)
        return x + len(a)

    f = wrap(g)
    yield f([], [], X())
    l = []
    yield f(l, l, X())
    yield l


def dict_two_one(wrap):
    def g(a, b, x):
        a["k"] = 1
        return x + b.get("k", 0)

    f = wrap(g)
    yield f({}, {}, X())
    d = {}
    yield f(d, d, X())
    yield f({}, {"k": 5}, X())


def objects_two_one(wrap):
    class Box:
        def __init__(self):
            self.v = 0

    def g(a, b, x):
        a.v = 5
        return x + b.v

    f = wrap(g)
    yield f(Box(), Box(), X())
    o = Box()
    yield f(o, o, X())


def identity_two_one(wrap):
    def g(a, b, x):
        return x + 1 if a is b else x - 1

    f = wrap(g)
    yield f([], [], X())
    l = []
    yield f(l, l, X())
    t = X()
    h = wrap(lambda a, b: a + 1 if a is b else b - 1)
    yield h(X(), X())
    yield h(t, t)
    yield h(X(), X())


def hash_eq_dict_key(wrap):
    class K:
        def __init__(self, v):
            self.v = v

        def __hash__(self):
            return hash(self.v)

        def __eq__(self, o):
            return self.v == o.v

    d = {K(1): 2}

    def g(x):
        return x * d[K(1)]

    f = wrap(g)
    yield f(X())
    d[K(1)] = 5
    yield f(X())
    K.__eq__ = lambda s, o: False
    try:
        yield f(X())
    except KeyError:
        yield "KeyError"


def dict_missing(wrap):
    class D(dict):
        def __missing__(self, k):
            return 3

    d = D()
    f = wrap(lambda x: x * d["k"])
    yield f(X())
    D.__missing__ = lambda s, k: 4
    yield f(X())
    d["k"] = 5
    yield f(X())
    D.__getitem__ = lambda s, k: 9
    yield f(X())


def list_subclass_getitem(wrap):
    class L(list):
        pass

    l = L([2, 3])
    f = wrap(lambda x: x * l[0] + len(l))
    yield f(X())
    L.__getitem__ = lambda s, i: 7
    yield f(X())
    L.__len__ = lambda s: 1
    yield f(X())
    g = wrap(lambda l, x: x * l[0])
    yield g(l, X())
    del L.__getitem__
    yield g(l, X())


def dict_order(wrap):
    d = {"a": 1, "b": 2}

    def g(x):
        for v in d.values():
            x = x * 2 + v
        return x

    f = wrap(g)
    yield f(X())
    d["a"] = d.pop("a")
    yield f(X())
    d.pop("a")
    d["a"] = 1
    yield f(X())


def set_changes(wrap):
    s = {1}
    f = wrap(lambda x: x + 1 if 2 in s else x - 1)
    yield f(X())
    s.add(2)
    yield f(X())
    s.discard(2)
    yield f(X())
    s |= {2}
    yield f(X())
    fs = [frozenset({1})]
    g = wrap(lambda x: x + len(fs[0]))
    yield g(X())
    fs[0] = frozenset({1, 2})
    yield g(X())


def tuple_nested_list(wrap):
    t = ([1],)
    f = wrap(lambda x: x * t[0][0])
    yield f(X())
    t[0][0] = 3
    yield f(X())


def dict_in(wrap):
    d = {"k": 1}
    f = wrap(lambda x: x + 1 if "k" in d else x - 1)
    yield f(X())
    del d["k"]
    yield f(X())
    g = wrap(lambda x: (x, d.get("z", 3)))
    yield g(X())
    d["z"] = 4
    yield g(X())
    del d["z"]
    yield g(X())
    h = wrap(lambda d, x: (x + 1, d.get("z", 3), d.setdefault("y", 1)))
    yield h({"z": 1}, X())
    yield h({}, X())
    yield h({"y": 4}, X())


def dict_getitem_unused(wrap):
    d = {"k": 1}

    def g(x):
        try:
            d["k"]
        except KeyError:
            return x - 1
        return x + 1

    f = wrap(g)
    yield f(X())
    d.clear()
    yield f(X())


def list_index_unused(wrap):
    l = [1, 2]

    def g(x):
        try:
            l[1]
        except IndexError:
            return x - 1
        return x + 1

    f = wrap(g)
    yield f(X())
    l.pop()
    yield f(X())

    def h(l, x):
        a, b = l
        return x + 1

    f = wrap(h)
    yield f([1, 2], X())
    try:
        yield f([1], X())
    except ValueError:
        yield "VE"


def tensor_dict(wrap):
    f = wrap(lambda x: x * x.scale if hasattr(x, "scale") else x + 1)
    a = X()
    yield f(a)
    a.scale = 2
    yield f(a)
    del a.scale
    yield f(a)
    p = nn.Parameter(X())
    yield f(p)
    p.scale = 3
    yield f(p)
    p.scale = torch.ones(3)
    yield f(p)


def set_and_resize(wrap):
    f = wrap(lambda x: x.sum() + x.numel())
    a = X()
    yield f(a)
    a.set_(torch.ones(4))
    yield f(a)
    a.resize_(2)
    yield f(a)
    a.t_() if a.dim() > 1 else None
    a.unsqueeze_(0)
    yield f(a)
    a.squeeze_()
    yield f(a)


def str_bytes(wrap):
    f = wrap(lambda x, s: x * len(s) + (s == "ab"))
    yield f(X(), "ab")
    yield f(X(), "cd")
    yield f(X(), b"ab")
    yield f(X(), "äb")

    class S(str):
        def __len__(self):
            return 9

    yield f(X(), S("ab"))


def int_subclass(wrap):
    class Number(int):
        k = 1

    f = wrap(lambda x, i: x * i)
    yield f(X(), Number(2))
    yield f(X(), Number(3))
    yield f(X(), 3)
    Number.__rmul__ = lambda s, o: 100
    try:
        yield f(X(), Number(3))
    except Exception as e:
        yield type(e).__name__


def simplenamespace(wrap):
    n = types.SimpleNamespace(a=1)
    f = wrap(lambda x: x * n.a)
    yield f(X())
    n.a = 2
    yield f(X())
    g = wrap(lambda n, x: x * n.a)
    yield g(n, X())
    n.a = 3
    yield g(n, X())
    yield g(types.SimpleNamespace(a=3), X())


def mappingproxy_chainmap_deque(wrap):
    d = {"k": 1}
    p = types.MappingProxyType(d)
    f = wrap(lambda x: x * p["k"])
    yield f(X())
    d["k"] = 5
    yield f(X())
    c = collections.ChainMap({}, d)
    g = wrap(lambda x: x * c["k"])
    yield g(X())
    c["k"] = 9
    yield g(X())
    q = collections.deque([1])
    h = wrap(lambda x: x * q[0] + len(q))
    yield h(X())
    q.append(2)
    yield h(X())
    q[0] = 4
    yield h(X())


def numpy_values(wrap):
    import numpy as np

    a = np.ones(3)
    f = wrap(lambda x: x * float(a[0]))
    yield f(X())
    a[0] = 5
    yield f(X())
    s = [np.float32(2)]
    g = wrap(lambda x: x * s[0])
    yield g(X())
    s[0] = np.float32(3)
    yield g(X())


def same_list_twice_in_one(wrap):
    def g(l, x):
        l[0].append(1)
        return x + len(l[1])

    f = wrap(g)
    yield f([[], []], X())
    s = []
    yield f([s, s], X())
    yield f([[], []], X())


def dict_values_alias(wrap):
    def g(d, x):
        d["a"]["k"] = 5
        return x + d["b"].get("k", 0)

    f = wrap(g)
    yield f({"a": {}, "b": {}}, X())
    s = {}
    yield f({"a": s, "b": s}, X())


def tensor_alias_inplace_in_list(wrap):
    def g(l):
        l[0].add_(1)
        return l[1] * 2

    f = wrap(g)
    yield f([X(), X()])
    t = X()
    yield f([t, t])
    yield f([t, t[0]])
    yield f([t[0], t[1]])
    yield t


def list_returned_identity(wrap):
    f = wrap(lambda l, x: (l, [l], x + 1))
    l = [1]
    r = f(l, X())
    yield r[0] is l and r[1][0] is l
    m = [1]
    r = f(m, X())
    yield r[0] is m


def sorting_key(wrap):
    class Box:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            return self.v < o.v

    l = [Box(3), Box(1)]

    def g(x):
        for o in sorted(l):
            x = x * 2 + o.v
        return x

    f = wrap(g)
    yield f(X())
    Box.__lt__ = lambda s, o: s.v > o.v
    yield f(X())
    l[0].v = 0
    yield f(X())


def bool_subtleties(wrap):
    f = wrap(lambda x, k: x + 1 if k else x - 1)
    for k in (0, 1, 0.0, "", "a", [], [0], {}, {1: 1}, None, (), (0,), set(), X):
        yield f(X(), k)


def float_identity(wrap):
    nan = float("nan")
    f = wrap(lambda x, a, b: x + 1 if a == b else x - 1)
    yield f(X(), nan, nan)
    yield f(X(), 1.0, 1)
    yield f(X(), 1, True)
    yield f(X(), 0.0, -0.0)
    g = wrap(lambda x, l: x + l.index(1.0))
    yield g(X(), [2, 1])
    yield g(X(), [1, 2])
    yield g(X(), [True, 2])


def tuple_identity(wrap):
    t = (1, 2)
    f = wrap(lambda x, a, b: x + 1 if a is b else x - 1)
    yield f(X(), t, t)
    yield f(X(), (1, 2), tuple([1, 2]))

    class Box:
        pass

    o = Box()
    yield f(X(), o, o)
    yield f(X(), o, Box())


def enum_members(wrap):
    class E(enum.Enum):
        A = 1
        B = 2

        def go(self, x):
            return x * self.value

    f = wrap(lambda x: E.A.go(x))
    yield f(X())
    E.go = lambda self, x: x - self.value
    yield f(X())
    E.A._value_ = 5
    yield f(X())
