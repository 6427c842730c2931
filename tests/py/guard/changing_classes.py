"""Classes and objects that change between calls: descriptors, bases, metaclasses, special methods.

Each is a generator: `wrap` captures a function or leaves it as it is, and what is yielded must be the same either way.
"""

import functools
import types

import torch


def X():
    return torch.arange(6.0).reshape(2, 3) + 1


def class_attr_becomes_property(wrap):
    class A:
        k = 2

    a = A()
    f = wrap(lambda x: x * a.k)
    yield f(X())
    A.k = property(lambda self: 5)
    yield f(X())
    del A.k
    A.k = 7
    yield f(X())


def class_attr_becomes_data_descriptor_over_instance(wrap):
    class D:
        def __get__(self, o, t):
            return 11

        def __set__(self, o, v):
            pass

    class A:
        def __init__(self):
            self.k = 2

    a = A()
    f = wrap(lambda x: x * a.k)
    yield f(X())
    A.k = D()
    yield f(X())


def descriptor_gains_set(wrap):
    class D:
        def __get__(self, o, t):
            return 11

    class A:
        d = D()

    a = A()
    a.__dict__["d"] = 3
    f = wrap(lambda x: x * a.d)
    yield f(X())
    D.__set__ = lambda self, o, v: None
    yield f(X())
    del D.__set__
    yield f(X())


def descriptor_get_replaced(wrap):
    class D:
        def __get__(self, o, t):
            return 11

    class A:
        d = D()

    a = A()
    f = wrap(lambda x: x * a.d)
    yield f(X())
    D.__get__ = lambda self, o, t: 4
    yield f(X())
    del D.__get__
    y = None
    try:
        y = f(X())
    except Exception as e:
        y = type(e).__name__
    yield y


def getattr_added(wrap):
    class A:
        pass

    a = A()
    f = wrap(lambda x: x * getattr(a, "k", 3))
    yield f(X())
    A.__getattr__ = lambda self, n: 8
    yield f(X())
    A.__getattr__ = lambda self, n: 9
    yield f(X())


def hasattr_changes(wrap):
    class A:
        pass

    a = A()
    f = wrap(lambda x: x + 1 if hasattr(a, "flag") else x - 1)
    yield f(X())
    a.flag = 0
    yield f(X())
    del a.flag
    yield f(X())
    A.flag = 1
    yield f(X())


def class_assigned(wrap):
    class A:
        def m(self, x):
            return x + 1

    class B:
        def m(self, x):
            return x * 5

    a = A()
    f = wrap(lambda x: a.m(x))
    yield f(X())
    a.__class__ = B
    yield f(X())
    a.__class__ = A
    yield f(X())


def property_shadowing(wrap):
    class A:
        @property
        def k(self):
            return 2

    class B(A):
        pass

    b = B()
    b.__dict__["k"] = 100
    f = wrap(lambda x: x * b.k)
    yield f(X())
    A.k = 3
    yield f(X())
    B.k = property(lambda s: 4)
    yield f(X())
    del B.k
    del A.k
    yield f(X())


def cached_property(wrap):
    class A:
        def __init__(self):
            self.k = 1

        @functools.cached_property
        def c(self):
            return self.k + 1

    a = A()
    f = wrap(lambda x: x * a.c)
    yield f(X())
    a.k = 5
    yield f(X())
    del a.__dict__["c"]
    yield f(X())
    a.c = 9
    yield f(X())


def super_middle_gains(wrap):
    class A:
        def m(self, x):
            return x + 1

    class B(A):
        pass

    class C(B):
        def m(self, x):
            return super().m(x) * 2

    o = C()
    f = wrap(lambda x: o.m(x))
    yield f(X())
    B.m = lambda self, x: x + 10
    yield f(X())
    del B.m
    yield f(X())


def bases_assigned_super(wrap):
    class A:
        def m(self, x):
            return x + 1

    class A2:
        def m(self, x):
            return x + 5

    class B(A):
        pass

    class C(B):
        def m(self, x):
            return super().m(x) * 2

    o = C()
    f = wrap(lambda x: o.m(x))
    yield f(X())
    B.__bases__ = (A2,)
    yield f(X())


def bases_isinstance(wrap):
    class A:
        pass

    class A2:
        pass

    class B(A):
        pass

    o = B()
    f = wrap(lambda x: x + 1 if isinstance(o, A) else x - 1)
    yield f(X())
    B.__bases__ = (A2,)
    yield f(X())
    g = wrap(lambda o, x: x + 1 if isinstance(o, A2) else x - 1)
    yield g(o, X())
    B.__bases__ = (A,)
    yield g(o, X())
    h = wrap(lambda x: x + 1 if issubclass(B, A) else x - 1)
    yield h(X())
    B.__bases__ = (A2,)
    yield h(X())


def instancecheck_added(wrap):
    class M(type):
        pass

    class A(metaclass=M):
        pass

    o = A()
    f = wrap(lambda x: x + 1 if isinstance(o, A) else x - 1)
    f2 = wrap(lambda x: x + 1 if isinstance(3, A) else x - 1)
    yield f(X())
    yield f2(X())
    M.__instancecheck__ = lambda c, o: True
    yield f2(X())
    M.__instancecheck__ = lambda c, o: False
    yield f2(X())


def meta_getattribute(wrap):
    class M(type):
        def __getattribute__(cls, n):
            return 7 if n == "k" else type.__getattribute__(cls, n)

    class A(metaclass=M):
        k = 2

    f = wrap(lambda x: x * A.k)
    yield f(X())
    del M.__getattribute__
    yield f(X())


def meta_property(wrap):
    class M(type):
        pass

    class A(metaclass=M):
        k = 2

    f = wrap(lambda x: x * A.k)
    yield f(X())
    M.k = property(lambda c: 9)
    yield f(X())
    del M.k
    M.__getattr__ = lambda c, n: 4
    yield f(X())
    del A.k
    yield f(X())


def class_attr_value_gains_get(wrap):
    class V:
        v = 3

    class A:
        k = V()

    a = A()
    f = wrap(lambda x: x * a.k.v)
    yield f(X())
    V.__get__ = lambda s, o, t: types.SimpleNamespace(v=8)
    yield f(X())
    f2 = wrap(lambda x: x * A.k.v)
    yield f2(X())
    del V.__get__
    yield f(X())
    yield f2(X())


def class_getitem(wrap):
    class A:
        def __class_getitem__(cls, k):
            return k + 1

    f = wrap(lambda x: x * A[2])
    yield f(X())
    A.__class_getitem__ = classmethod(lambda c, k: k)
    yield f(X())


def len_contains_fallback(wrap):
    class A:
        def __init__(self):
            self.l = [1, 2]

        def __iter__(self):
            return iter(self.l)

    a = A()
    f = wrap(lambda x: x + 1 if 2 in a else x - 1)
    yield f(X())
    A.__contains__ = lambda s, v: False
    yield f(X())
    g = wrap(lambda x: x + 1 if a else x - 1)
    yield g(X())
    A.__len__ = lambda s: 0
    yield g(X())
    A.__bool__ = lambda s: True
    yield g(X())


def radd_added(wrap):
    class A:
        def __add__(self, o):
            return o + 1

    class B:
        pass

    a, b = A(), B()

    def g(x):
        try:
            return a + x + 1
        except TypeError:
            return x

    f = wrap(g)
    yield f(X())
    A.__add__ = lambda s, o: NotImplemented
    A.__radd__ = None
    try:
        yield f(X())
    except Exception as e:
        yield type(e).__name__

    class C(A):
        pass

    c = C()
    A.__add__ = lambda s, o: 2
    h = wrap(lambda x: x * (a + c))
    yield h(X())
    C.__radd__ = lambda s, o: 5
    yield h(X())


def eq_reflected_subclass(wrap):
    class A:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            return True

    class B(A):
        pass

    a, b = A(1), B(2)
    f = wrap(lambda x: x + 1 if a < b else x - 1)
    yield f(X())
    B.__gt__ = lambda s, o: False
    yield f(X())


def slots_shadow(wrap):
    class A:
        __slots__ = ("k",)

    a = A()
    a.k = 2
    f = wrap(lambda x: x * a.k)
    yield f(X())
    a.k = 3
    yield f(X())
    del a.k
    try:
        yield f(X())
    except AttributeError:
        yield "AE"
    g = wrap(lambda x: x + 1 if hasattr(a, "k") else x - 1)
    yield g(X())
    a.k = 1
    yield g(X())
    del a.k
    yield g(X())
    h = wrap(lambda x: x * getattr(a, "k", 9))
    yield h(X())
    a.k = 2
    yield h(X())
    del a.k
    yield h(X())


def try_attribute(wrap):
    class A:
        pass

    a = A()
    a.k = 2

    def g(x):
        try:
            a.k
        except AttributeError:
            return x - 1
        return x + 1

    f = wrap(g)
    yield f(X())
    del a.k
    yield f(X())


def class_counter(wrap):
    class A:
        n = 0

        def go(self, x):
            type(self).n += 1
            return x * self.n

    a = A()
    f = wrap(a.go)
    yield f(X())
    yield f(X())
    A.n = 7
    yield f(X())
    yield A.n
    a.n = 100
    yield f(X())
    yield A.n


def index_protocol(wrap):
    class Number:
        def __index__(self):
            return 1

    i = Number()
    l = [1, 5, 7]
    f = wrap(lambda x: x[i] * l[i])
    yield f(X())
    Number.__index__ = lambda s: 0
    yield f(X())
