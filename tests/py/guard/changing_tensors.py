"""Tensors that change between calls: aliases, metadata, attributes of their own.

Each is a generator: `wrap` captures a function or leaves it as it is, and what is yielded must be the same either way.
"""

import copy

import torch
from torch import nn


def X():
    return torch.arange(6.0).reshape(2, 3) + 1


def inference_tensors(wrap):
    with torch.inference_mode():
        t = X()
    f = wrap(lambda x: x * 2)
    yield f(X())
    yield f(t)

    def g(x):
        x.add_(1)
        return x * 2

    g2 = wrap(g)
    yield g2(X())
    try:
        r = g2(t)
    except RuntimeError as e:
        r = str(e)[:40]
    yield r
    with torch.inference_mode():
        yield g2(t)


def duals(wrap):
    import torch.autograd.forward_ad as fw

    f = wrap(lambda x: x.sin() * 2)
    yield f(X())
    with fw.dual_level():
        yield f(X())
        d = fw.make_dual(X(), torch.ones(2, 3))
        yield fw.unpack_dual(f(d)).tangent
        yield f(X())
    yield f(X())


def swap_tensors(wrap):
    m = nn.Linear(3, 3)
    f = wrap(lambda x: m(x))
    yield f(X())
    torch.utils.swap_tensors(m.weight, nn.Parameter(torch.ones(3, 3)))
    yield f(X())
    a, b = X(), torch.ones(5)
    g = wrap(lambda: a * 2)
    yield g()
    torch.utils.swap_tensors(a, b)
    yield g()


def requires_grad_flips(wrap):
    f = wrap(lambda x: (x * 2) if x.requires_grad else x + 1)
    a = X()
    yield f(a)
    a.requires_grad_()
    yield f(a)
    a.requires_grad_(False)
    yield f(a)
    with torch.no_grad():
        a.requires_grad_()
        yield f(a)


def data_set(wrap):
    f = wrap(lambda x: x * x.shape[0])
    a = X()
    yield f(a)
    a.data = torch.ones(4)
    yield f(a)
    a.data = torch.ones(4).double()
    yield f(a)
    a.data = torch.ones(4, 4).t()[0]
    yield f(a)


def overlapping(wrap):
    def g(x, y):
        x.add_(1)
        return y * 2

    f = wrap(g)
    yield f(X(), X())
    a = X()
    yield f(a, a)
    yield f(a, a.view(-1))
    yield f(a[0], a[1])
    b = torch.arange(8.0)
    yield f(b[:6], b[2:])
    yield b
    yield f(torch.as_strided(b, (4,), (2,)), torch.as_strided(b, (4,), (1,), 2))
    yield b


def expanded_input_mutation(wrap):
    def g(x):
        return x.mul_(2)

    f = wrap(g)
    yield f(X())
    e = torch.ones(1).expand(3)
    try:
        r = f(e)
    except RuntimeError as err:
        r = str(err)[:50]
    yield r


def kinds_of_tensors(wrap):
    f = wrap(lambda x: x * 2)
    yield f(X())
    s = f(X().to_sparse())
    yield s.to_dense()
    c = f(X() * 1j)
    yield c
    q = torch.quantize_per_tensor(X(), 0.1, 0, torch.qint8)
    try:
        r = f(q)
    except Exception as e:
        r = type(e).__name__
    yield r
    yield f(torch.tensor(3.0))
    yield f(X().t())
    yield f(X().to(torch.int8))
    yield f(torch.ones(1, 2, 2, 2).to(memory_format=torch.channels_last)).stride()
    yield f(X().conj()), f((X() * 1j).conj()), f((X() * 1j).imag), f(torch._neg_view(X()))


def tensors_two_one_out(wrap):
    h = wrap(lambda a, b: (a, b, [a, b]))
    yield h(X(), X())
    t = X()
    r = h(t, t)
    yield r
    yield r[0] is r[1]


def tensor_method_shadow(wrap):
    f = wrap(lambda x: x.relu() + x.shape[0])
    for make in (X, lambda: nn.Parameter(X())):
        a = make()
        yield f(a)
        a.relu = lambda: torch.zeros(3)
        yield f(a)
        del a.relu
        yield f(a)
        a.other = 1
        yield f(a)
    a = X()
    g = wrap(lambda: a.relu())
    yield g()
    a.relu = lambda: torch.zeros(3)
    yield g()
    m = nn.Linear(3, 3)
    h = wrap(lambda x: x @ m.weight.t())
    yield h(X())
    m.weight.t = lambda: torch.eye(3)
    yield h(X())
    l = [X()]
    k = wrap(lambda l: l[0].sum(0))
    yield k(l)
    l[0].sum = lambda d: torch.ones(1)
    yield k(l)


def grad_none_or_not(wrap):
    f = wrap(lambda p: p * 2 if p.grad is None else p + p.grad)
    p = nn.Parameter(X())
    yield f(p)
    p.grad = torch.ones(2, 3)
    yield f(p)
    p.grad = torch.ones(2, 3).to_sparse()
    try:
        yield f(p)
    except Exception as e:
        yield type(e).__name__
    p.grad = None
    yield f(p)


def is_leaf_views(wrap):
    f = wrap(lambda x: x * 2 if x._is_view() else x + 1)
    yield f(X())
    yield f(X()[0])
    yield f(X().view(6))
    g = wrap(lambda x: x * 2 if x.is_leaf else x + 1)
    a = X().requires_grad_()
    yield g(a)
    yield g(a * 1)
    yield g(X())
    h = wrap(lambda x: x + x.storage_offset())
    yield h(X()[0])
    yield h(X()[1])
    k = wrap(lambda x: x * 1 if x.is_contiguous() else x.t() * 2)
    yield k(X())
    yield k(X().t())
    yield k(X()[:, ::2])


def version_and_ptr(wrap):
    f = wrap(lambda x, y: x * 2 if x.data_ptr() == y.data_ptr() else x + y)
    a = X()
    yield f(a, X())
    yield f(a, a)
    yield f(a, a.detach())
    g = wrap(lambda x: x * x._version)
    b = X()
    yield g(b)
    b.add_(1)
    yield g(b)


def view_inputs_mutated(wrap):
    def g(x, v):
        v.mul_(2)
        return x + 1

    f = wrap(g)
    a = X()
    yield f(a, X())
    yield f(a, a[0])
    yield a
    yield f(a, a.view(6)[:3])
    yield a
    b = X().requires_grad_()
    try:
        yield f(X(), b)
    except RuntimeError as e:
        yield str(e)[:30]


def scalar_kinds(wrap):
    f = wrap(lambda x, k: x * k)
    for k in (1, True, 1.0, 2, 2**40, 1j, torch.tensor(2), torch.tensor(2.0), -0.0, float("nan"), None):
        try:
            yield f(X(), k)
        except TypeError:
            yield "TE"


def staticmethod_swap(wrap):
    class A:
        @staticmethod
        def s(x):
            return x + 1

        @classmethod
        def c(cls, x):
            return x + cls.k

        k = 2

    f = wrap(lambda x: A.s(x) + A.c(x))
    yield f(X())
    A.s = classmethod(lambda c, x: x * 3)
    yield f(X())
    A.k = 5
    yield f(X())
    A.c = staticmethod(lambda x: x)
    yield f(X())


def alias_through_attr(wrap):
    class Box:
        pass

    def g(a, b, x):
        a.l.append(1)
        return x + len(b.l)

    f = wrap(g)
    p, q = Box(), Box()
    p.l, q.l = [], []
    yield f(p, q, X())
    q.l = p.l
    yield f(p, q, X())
    yield f(p, p, X())


def param_alias_arg(wrap):
    m = nn.Linear(3, 3)

    def g(w, x):
        with torch.no_grad():
            w.add_(1)
        return m(x)

    f = wrap(g)
    yield f(torch.ones(3, 3), X())
    yield f(m.weight, X())
    yield f(m.weight.data, X())
    yield m.weight


def out_alias(wrap):
    def g(x, o):
        torch.add(x, 1, out=o)
        return x * 2

    f = wrap(g)
    yield f(X(), X())
    t = X()
    yield f(t, t)
    yield t


def views_returned(wrap):
    f = wrap(lambda x: (x.view(-1), x[0], x, x.t()))
    a = X()
    r = f(a)
    r[0].add_(1)
    yield a, r
    yield r[2] is a
    b = X()
    r = f(b)
    b.mul_(2)
    yield r


def detach_alias(wrap):
    f = wrap(lambda x: x.detach())
    a = X().requires_grad_()
    d = f(a)
    d.add_(1)
    yield a
    yield d


def dtype_flip(wrap):
    f = wrap(lambda x: x + torch.ones(3, dtype=x.dtype))
    yield f(X())
    yield f(X().double())
    yield f(X().int())
    yield f(X().bool())
    yield f(X().half())


def requires_grad_inference_param(wrap):
    m = nn.Linear(3, 3)
    f = wrap(lambda x: m(x))
    with torch.inference_mode():
        yield f(X())
    yield f(X()).requires_grad
    with torch.no_grad():
        yield f(X())
    with torch.enable_grad():
        yield f(X()).requires_grad


def ema_swap(wrap):
    m = nn.Linear(3, 3)
    e = copy.deepcopy(m)
    with torch.no_grad():
        e.weight.zero_()
    f = wrap(lambda x: m(x))
    yield f(X())
    a, b = m.weight.data, e.weight.data
    m.weight.data, e.weight.data = b, a
    yield f(X())
    m.__dict__["_parameters"], e.__dict__["_parameters"] = e._parameters, m._parameters
    yield f(X())
    m._parameters["weight"], e._parameters["weight"] = e._parameters["weight"], m._parameters["weight"]
    yield f(X())


def detach_in_grad_fn_user(wrap):
    f = wrap(lambda x: x * 2 if x.grad_fn is None else x * 3)
    a = X().requires_grad_()
    yield f(a)
    yield f(a * 1)
    yield f(X())
    yield f(a)
    g = wrap(lambda x: x + (1 if x.is_leaf else 2) if x.requires_grad else x)
    yield g(a)
    yield g(a * 1)
    yield g(X())


def retain_output_nr(wrap):
    f = wrap(lambda x: x * (1 + x.output_nr))
    yield f(X())
    yield f(X().unbind(0)[1])
    g = wrap(lambda x: x * 2 if x.retains_grad else x)
    a = X().requires_grad_() * 1
    yield g(a)
    a.retain_grad()
    yield g(a)


def shared_pinned(wrap):
    f = wrap(lambda x: x * 2 if x.is_shared() else x)
    a = X()
    yield f(a)
    a.share_memory_()
    yield f(a)
    g = wrap(lambda x: x * x.element_size() + x.nbytes)
    yield g(X())
    yield g(X().double())


def untyped_storage_size(wrap):
    f = wrap(lambda x: x + x.untyped_storage().nbytes())
    yield f(X())
    yield f(torch.arange(10.0)[:6].view(2, 3))
    g = wrap(lambda x: torch.as_strided(x, (2,), (1,)) * 2)
    yield g(X())
    yield g(torch.arange(10.0)[4:].view(2, 3))
