"""Functions, names, cells, imports and weak references that change between calls.

Each is a generator: `wrap` captures a function or leaves it as it is, and what is yielded must be the same either way.
"""

import builtins
import collections
import functools
import gc
import sys
import types
import weakref

import torch


def X():
    return torch.arange(6.0).reshape(2, 3) + 1


def cell_rebound(wrap):
    k = 1

    def setk(v):
        nonlocal k
        k = v

    f = wrap(lambda x: x * k)
    yield f(X())
    setk(2)
    yield f(X())
    setk(torch.ones(3))
    yield f(X())
    setk(2.0)
    yield f(X())
    setk(True)
    yield f(X())


def cell_emptied(wrap):
    k = 1

    def drop():
        nonlocal k
        del k

    def f0(x):
        try:
            return x * k
        except NameError:
            return x - 1

    f = wrap(f0)
    yield f(X())
    drop()
    yield f(X())


def default_list_mutated(wrap):
    def g(x, a=[1, 2]):
        return x * a[0] + len(a)

    f = wrap(g)
    yield f(X())
    g.__defaults__[0].append(3)
    yield f(X())
    g.__defaults__[0][0] = 9
    yield f(X())


def kwdefault_mutated(wrap):
    def g(x, *, a={"k": 1}):
        return x * a["k"]

    def h(x):
        return g(x)

    f = wrap(h)
    yield f(X())
    g.__kwdefaults__["a"]["k"] = 3
    yield f(X())
    g.__kwdefaults__ = {"a": {"k": 4}}
    yield f(X())
    g.__kwdefaults__["a"] = {"k": 5}
    yield f(X())


def default_gone(wrap):
    def g(x, a=2):
        return x * a

    def h(x):
        return g(x)

    f = wrap(h)
    yield f(X())
    g.__defaults__ = None
    try:
        r = f(X())
    except TypeError as e:
        r = "TypeError"
    yield r


def global_deleted(wrap):
    m = types.ModuleType("mm")
    m.torch = torch
    exec("k = 3\ndef f(x):\n    try: return x * k\n    except NameError: return x", m.__dict__)
    f = wrap(m.f)
    yield f(X())
    del m.k
    yield f(X())
    m.k = 4
    yield f(X())


def from_import_changes(wrap):
    m = types.ModuleType("safe3_mod2")
    m.k = 2
    sys.modules["safe3_mod2"] = m

    def g(x):
        from safe3_mod2 import k

        return x * k

    f = wrap(g)
    yield f(X())
    m.k = 5
    yield f(X())
    m.__getattr__ = lambda n: 6
    del m.k
    try:
        yield f(X())
    finally:
        del sys.modules["safe3_mod2"]


def partial_args_mutated(wrap):
    l = [2]
    p = functools.partial(lambda a, x, k=None: x * a[0] + (k or {}).get("z", 0), l, k={"z": 1})
    f = wrap(lambda x: p(x))
    yield f(X())
    l[0] = 5
    yield f(X())
    p.keywords["k"]["z"] = 4
    yield f(X())
    p.keywords["k"] = {"z": 9}
    yield f(X())
    p.__setstate__((p.func, ([1],), {}, {}))
    yield f(X())


def weakref_died(wrap):
    class A:
        k = 2

    a = A()
    r = weakref.ref(a)

    def g(x):
        o = r()
        return x * o.k if o is not None else x - 1

    f = wrap(g)
    yield f(X())
    a = None
    yield f(X())


def iter_replaced(wrap):
    class A:
        def __init__(self):
            self.l = [1, 2]

        def __iter__(self):
            return iter(self.l)

    a = A()

    def g(x):
        for v in a:
            x = x * v
        return x

    f = wrap(g)
    yield f(X())
    A.__iter__ = lambda s: iter([5])
    yield f(X())
    del A.__iter__
    A.__getitem__ = lambda s, i: s.l[i]
    yield f(X())
    a.l.append(4)
    yield f(X())


def default_factory(wrap):
    d = collections.defaultdict(lambda: 3)

    def g(x):
        return x * d["k"]

    f = wrap(g)
    yield f(X())
    d["k"] = 4
    yield f(X())
    del d["k"]
    d.default_factory = lambda: 6
    yield f(X())


def getattr_default(wrap):
    class A:
        pass

    a = A()
    a.k = 2
    f = wrap(lambda x: (x + 1, getattr(a, "k", 5)))
    yield f(X())
    del a.k
    yield f(X())
    a.k = 7
    yield f(X())
    A.k = 4
    del a.k
    yield f(X())


def memory_format(wrap):
    f = wrap(lambda x: x.stride()[1] + x)
    a = torch.ones(1, 2, 2, 2)
    yield f(a)
    yield f(a.to(memory_format=torch.channels_last))
    yield f(a.permute(0, 1, 3, 2))


def function_attr_and_wrapped(wrap):
    def h(x):
        return x + 1

    h.k = 2
    f = wrap(lambda x: h(x) * h.k)
    yield f(X())
    h.k = 3
    yield f(X())
    h.__code__ = (lambda x: x - 1).__code__
    yield f(X())
    h.__dict__.clear()
    try:
        yield f(X())
    except AttributeError:
        yield "AE"


def lru_cache(wrap):
    n = [2]

    @functools.lru_cache
    def h(k):
        return k * n[0]

    f = wrap(lambda x: x * h(3))
    yield f(X())
    n[0] = 5
    yield f(X())
    h.cache_clear()
    yield f(X())


def method_function_replaced(wrap):
    class A:
        def m(self, x):
            return x + 1

    a = A()
    b = a.m
    f = wrap(lambda x: b(x))
    yield f(X())
    A.m = lambda s, x: x * 9
    yield f(X())
    b.__func__.__code__ = (lambda s, x: x - 3).__code__
    yield f(X())


def builtins_shadow(wrap):
    m = types.ModuleType("mm2")
    exec("def f(x): return x * len([1, 2]) + abs(-3) + max(1, 2)", m.__dict__)
    f = wrap(m.f)
    yield f(X())
    m.len = lambda l: 7
    yield f(X())
    del m.len
    yield f(X())
    m.__dict__["__builtins__"] = {**builtins.__dict__, "abs": lambda v: 50}
    yield f(X())


def globals_call(wrap):
    m = types.ModuleType("mm3")
    exec("k = 2\ndef f(x): return x * globals()['k']", m.__dict__)
    f = wrap(m.f)
    yield f(X())
    m.k = 3
    yield f(X())


def generator_state(wrap):
    g0 = iter([1, 2, 3])
    f = wrap(lambda x: x * next(g0))
    yield f(X())
    yield f(X())
    yield f(X())
    c = iter(range(5))
    f = wrap(lambda x: x + sum(zip(c, [1]).__next__()))
    yield f(X())
    yield f(X())


def weakref_value_used_and_returned(wrap):
    class A:
        pass

    a = A()
    a.k = 2
    r = weakref.ref(a)

    def g(x):
        o = r()
        return (x, None) if o is None else (x * o.k, o.k)

    f = wrap(g)
    yield f(X())
    a.k = 3
    yield f(X())
    b = r()
    a = None
    yield f(X())
    del b
    gc.collect()
    yield r() is None
    yield f(X())


def weak_containers(wrap):
    class A:
        k = 2

    a = A()
    d = weakref.WeakValueDictionary()
    d["a"] = a

    def g(x):
        o = d.get("a")
        return x * o.k if o is not None else x

    f = wrap(g)
    yield f(X())
    a = None
    yield f(X())
    p0 = A()
    p = weakref.proxy(p0)
    h = wrap(lambda x: x * p.k)
    yield h(X())
    A.k = 4
    yield h(X())


def closures_factory(wrap):
    def make(k):
        def g(x):
            return x * k

        return g

    fs = [wrap(make(i)) for i in range(4)]
    for f in fs:
        yield f(X())


def recursive_structure(wrap):
    a = [1]
    a.append(a)
    f = wrap(lambda x: x * a[0] + len(a[1]))
    yield f(X())
    a[0] = 3
    yield f(X())
    a[1] = [1, 2, 3]
    yield f(X())


def alias_arg_and_global(wrap):
    glob = []

    def g(l, x):
        l.append(1)
        return x + len(glob)

    f = wrap(g)
    yield f([], X())
    yield f(glob, X())
    yield f([], X())


def mutated_default_list(wrap):
    def g(x, acc=[]):
        acc.append(1)
        return x + len(acc)

    f = wrap(g)
    yield f(X())
    yield f(X())
    yield f(X())
    yield g.__defaults__


def global_counter(wrap):
    m = types.ModuleType("mm")
    exec("n = 0\nlog = []\ndef f(x):\n    global n\n    n += 1\n    log.append(n)\n    return x * n", m.__dict__)
    f = wrap(m.f)
    yield f(X())
    yield f(X())
    m.n = 10
    yield f(X())
    yield m.n, m.log


def nonlocal_counter(wrap):
    n = 0

    def g(x):
        nonlocal n
        n += 1
        return x * n

    f = wrap(g)
    yield f(X())
    yield f(X())
    n = 9
    yield f(X())
    yield n


def context_manager_replaced(wrap):
    class C:
        def __init__(self):
            self.n = 0

        def __enter__(self):
            self.n += 1
            return self

        def __exit__(self, *a):
            self.n += 10

    c = C()

    def g(x):
        with c:
            y = x * c.n
        return y + c.n

    f = wrap(g)
    yield f(X())
    yield f(X())
    C.__exit__ = lambda s, *a: None
    yield f(X())
    C.__enter__ = lambda s: s
    yield f(X())


def exception_types(wrap):
    class E(Exception):
        pass

    h = [E]

    def g(x):
        try:
            raise E("a")
        except h[0]:
            return x + 1
        except Exception:
            return x - 1

    f = wrap(g)
    yield f(X())
    h[0] = ValueError
    yield f(X())
    h[0] = (KeyError, E)
    yield f(X())


def match_class(wrap):
    class P:
        __match_args__ = ("a", "b")

        def __init__(self, a, b):
            self.a, self.b = a, b

    names = {"P": P}
    text = "def g(p, x):\n match p:\n  case P(1, b): return x * b\n  case P(a, b): return x + a\n  case _: return x"
    exec(text, names)
    f = wrap(names["g"])
    yield f(P(1, 2), X())
    yield f(P(2, 2), X())
    P.__match_args__ = ("b", "a")
    yield f(P(1, 2), X())
    yield f(3, X())


def format_str(wrap):
    class A:
        def __str__(self):
            return "a"

        def __repr__(self):
            return "bb"

        def __format__(self, s):
            return "ccc"

    a = A()
    f = wrap(lambda x: x + len(f"{a}") + len(f"{a!r}") + len(str(a)))
    yield f(X())
    A.__str__ = lambda s: "ddddd"
    yield f(X())
    A.__format__ = lambda s, k: ""
    yield f(X())
    A.__repr__ = lambda s: ""
    yield f(X())


def map_filter_fn(wrap):
    h = {"f": lambda v: v * 2}

    def g(x):
        for v in map(h["f"], [1, 2]):
            x = x + v
        return x

    f = wrap(g)
    yield f(X())
    h["f"] = lambda v: v * 5
    yield f(X())
    h["f"].__defaults__ = None
    h["f"].__code__ = (lambda v: v).__code__
    yield f(X())


def kwargs_order(wrap):
    def g(x, **kw):
        for k, v in kw.items():
            x = x * 2 + v
        return x

    f = wrap(g)
    yield f(X(), a=1, b=2)
    yield f(X(), b=2, a=1)
    yield f(X(), a=1)
    yield f(X(), **{"a": 1, "c": 2})


def varargs_len(wrap):
    f = wrap(lambda *a: a[0] * len(a))
    yield f(X())
    yield f(X(), 1)
    yield f(X(), 1, 2)
    yield f(X(), None)


def optional_tensor(wrap):
    f = wrap(lambda x, m=None: x * 2 if m is None else x * m)
    yield f(X())
    yield f(X(), X())
    yield f(X(), None)
    yield f(X(), 3)
