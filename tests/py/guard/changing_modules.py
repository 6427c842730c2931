"""Modules that change between calls: hooks, parameters, children, options.

Each is a generator: `wrap` captures a function or leaves it as it is, and what is yielded must be the same either way.
"""

import copy
import functools
import gc
import pickle
import sys
import types

import torch
from torch import nn


def X():
    return torch.arange(6.0).reshape(2, 3) + 1


class Pick(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
        self.k = 2

    def forward(self, x):
        return self.l(x) * self.k


class Cnt(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.register_buffer("t", torch.zeros(1))

    def forward(self, x):
        self.n += 1
        self.t += 1
        return x * self.n + self.t


def sys_modules_replaced(wrap):
    m = types.ModuleType("safe3_mod")
    m.k = 2
    sys.modules["safe3_mod"] = m

    def g(x):
        import safe3_mod

        return x * safe3_mod.k

    f = wrap(g)
    yield f(X())
    n = types.ModuleType("safe3_mod")
    n.k = 7
    sys.modules["safe3_mod"] = n
    yield f(X())
    n.k = 8
    yield f(X())
    del sys.modules["safe3_mod"]


def global_module_hook(wrap):
    m = nn.Linear(3, 3)
    f = wrap(lambda x: m(x))
    yield f(X())
    h = nn.modules.module.register_module_forward_hook(lambda m, a, o: o * 2)
    try:
        yield f(X())
    finally:
        h.remove()
    yield f(X())


def hook_mutates(wrap):
    m = nn.Linear(3, 3)
    box = [2]
    m.register_forward_hook(lambda m, a, o: o * box[0])
    f = wrap(lambda x: m(x))
    yield f(X())
    box[0] = 3
    yield f(X())


def hook_dict_reordered(wrap):
    m = nn.Linear(3, 3)
    h1 = m.register_forward_hook(lambda m, a, o: o * 2)
    h2 = m.register_forward_hook(lambda m, a, o: o + 1)
    f = wrap(lambda x: m(x))
    yield f(X())
    m._forward_hooks.move_to_end(h1.id)
    yield f(X())
    h2.remove()
    yield f(X())


def parametrize(wrap):
    from torch.nn.utils import parametrize

    class S(nn.Module):
        def forward(self, w):
            return w * 2

    m = nn.Linear(3, 3)
    f = wrap(lambda x: m(x))
    yield f(X())
    parametrize.register_parametrization(m, "weight", S())
    yield f(X())
    with parametrize.cached():
        yield f(X())
        yield f(X())
    parametrize.remove_parametrizations(m, "weight")
    yield f(X())


def load_state_dict_assign(wrap):
    m = nn.Linear(3, 3)
    f = wrap(lambda x: m(x))
    yield f(X())
    m.load_state_dict({"weight": torch.ones(3, 3), "bias": torch.zeros(3)}, assign=True)
    yield f(X())
    m.load_state_dict({"weight": torch.ones(3, 3).double(), "bias": torch.zeros(3).double()}, assign=True)
    yield f(X().double())


def functional_call(wrap):
    m = nn.Linear(3, 3)
    f = wrap(lambda x: torch.func.functional_call(m, {"weight": torch.ones(3, 3) * x[0, 0], "bias": x[0]}, (x,)))
    yield f(X())
    yield f(X())
    g = wrap(lambda x: m(x))
    yield g(X())
    yield f(X() * 2)
    yield g(X())
    w = wrap(m)
    yield w(X())
    yield torch.func.functional_call(w, {"weight": torch.ones(3, 3)}, (X(),))
    yield w(X())


def deepcopy_of_captured(wrap):
    m = nn.Linear(3, 3)
    w = wrap(m)
    yield w(X())
    c = copy.deepcopy(w)
    with torch.no_grad():
        c.weight.fill_(1)
    yield c(X())
    yield w(X())
    c.bias = None
    yield c(X())
    yield w(X())


def pickled(wrap):
    m = Pick()
    f = wrap(lambda x: m(x))
    yield f(X())
    c = pickle.loads(pickle.dumps(m))
    c.k = 5
    g = wrap(lambda m, x: m(x))
    yield g(m, X())
    yield g(c, X())
    yield g(m, X())


def module_dtype(wrap):
    m = nn.Linear(3, 3)
    f = wrap(lambda x: m(x.to(m.weight.dtype)))
    yield f(X())
    m.double()
    yield f(X())
    m.half()
    yield f(X())
    m.float()
    yield f(X())
    m.to("meta")
    yield f(X().to("meta"))


def module_shared_twice(wrap):
    class N(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.a = a
            self.b = b

        def forward(self, x):
            return self.b(self.a(x))

    f = wrap(lambda n, x: n(x))
    a, b = nn.Linear(3, 3), nn.Linear(3, 3)
    n = N(a, b)
    yield f(n, X())
    n.b = a
    yield f(n, X())
    r = f(n, X())
    r.sum().backward()
    yield a.weight.grad
    n.b = b
    yield f(n, X())


def counter_shared(wrap):
    class N(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.a = a
            self.b = b

        def forward(self, x):
            return self.b(self.a(x))

    f = wrap(lambda n, x: n(x))
    n = N(Cnt(), Cnt())
    yield f(n, X())
    yield f(n, X())
    n.b = n.a
    yield f(n, X())
    yield f(n, X())


def params_tied(wrap):
    m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    f = wrap(lambda x: m(x))
    yield f(X())
    m[1].weight = m[0].weight
    r = f(X())
    yield r
    r.sum().backward()
    yield m[0].weight.grad
    m[1].weight = nn.Parameter(torch.ones(3, 3))
    yield f(X())


def module_hasattr(wrap):
    m = nn.Linear(3, 3)
    f = wrap(lambda x: m(x) if hasattr(m, "bias") and m.bias is not None else x)
    yield f(X())
    m.bias = None
    yield f(X())
    del m.bias
    g = wrap(lambda x: x + 1 if hasattr(m, "bias") else x - 1)
    yield g(X())
    m.register_parameter("bias", None)
    yield g(X())
    del m.bias
    yield g(X())
    m.register_buffer("bias", torch.ones(3))
    yield g(X())
    del m.bias
    m.bias = 3
    yield g(X())


def module_children_loop(wrap):
    m = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    f = wrap(lambda x: functools.reduce(lambda a, l: l(a), m, x))
    yield f(X())
    m.append(nn.Tanh())
    yield f(X())
    m[1] = nn.Sigmoid()
    yield f(X())
    del m[0]
    yield f(X())
    g = wrap(lambda x: x + sum(p.sum() for p in m.parameters()))
    yield g(X())
    m.add_module("z", nn.Linear(1, 1))
    yield g(X())
    h = wrap(lambda x: x + len(dict(m.named_modules())))
    yield h(X())
    m.add_module("y", nn.ReLU())
    yield h(X())


def moduledict_list(wrap):
    d = nn.ModuleDict({"a": nn.ReLU()})
    f = wrap(lambda x: d["a"](x) if "b" not in d else d["b"](x))
    yield f(X())
    d["b"] = nn.Tanh()
    yield f(X())
    d["b"] = nn.Sigmoid()
    yield f(X())
    del d["b"]
    d["a"] = nn.Tanh()
    yield f(X())
    l = nn.ParameterList([nn.Parameter(torch.ones(3))])
    g = wrap(lambda x: x + l[0] + len(l))
    yield g(X())
    l.append(nn.Parameter(torch.ones(1)))
    yield g(X())
    l[0] = nn.Parameter(torch.zeros(3))
    yield g(X())


def training_flag_deep(wrap):
    m = nn.Sequential(nn.Sequential(nn.Dropout(0.5)), nn.BatchNorm1d(3))
    f = wrap(lambda x: m(x))
    m.eval()
    yield f(X())
    m[1].train()
    yield f(X())
    m[1].training = False
    yield f(X())
    m[1].track_running_stats = False
    yield f(X())
    m[1].momentum = None
    m[1].train()
    yield f(X())
    m[0][0].p = 0.0
    m.train()
    yield f(X())
    m[0][0].p = 1.0
    yield f(X())


def buffer_none(wrap):
    m = nn.BatchNorm1d(3)
    m.eval()
    f = wrap(lambda x: m(x))
    yield f(X())
    m.running_mean = None
    m.running_var = None
    yield f(X())
    m.register_buffer("running_mean", torch.ones(3))
    m.register_buffer("running_var", torch.ones(3))
    yield f(X())


def tensor_attr_then_grad_hook(wrap):
    def g(x):
        y = x * 2
        return y

    f = wrap(g)
    a = X().requires_grad_()
    seen = []
    a.register_hook(lambda g: seen.append(1) or g * 2)
    f(a).sum().backward()
    yield a.grad
    yield seen
    a.register_hook(lambda g: g * 3)
    a.grad = None
    f(a).sum().backward()
    yield a.grad


def set_grad_inside(wrap):
    m = nn.Linear(3, 3)

    def g(x):
        with torch.no_grad():
            y = m(x)
        return y + m(x)

    f = wrap(g)
    r = f(X())
    yield r.requires_grad
    m.requires_grad_(False)
    yield f(X()).requires_grad
    m.weight.requires_grad_()
    yield f(X()).requires_grad


def freed_module_reused_id(wrap):
    def g(m, x):
        return m(x)

    f = wrap(g)
    for i in range(6):
        m = nn.Linear(3, 3, bias=bool(i % 2))
        nn.init.constant_(m.weight, i)
        if i % 2:
            nn.init.zeros_(m.bias)
        yield f(m, X())
        del m
        gc.collect()


def setattr_hooked(wrap):
    class A:
        def __setattr__(self, k, v):
            object.__setattr__(self, k, v)

    a = A()

    def g(x):
        a.k = 3
        return x * a.k

    f = wrap(g)
    yield f(X())
    A.__setattr__ = lambda s, k, v: object.__setattr__(s, k, v * 2)
    yield f(X())
    del A.__setattr__
    A.k = property(lambda s: 9, lambda s, v: None)
    yield f(X())


def optimizer_loop(wrap):
    m = nn.Linear(3, 1)
    opt = torch.optim.Adam(m.parameters(), lr=0.1)
    f = wrap(lambda x: m(x).pow(2).mean())
    for i in range(3):
        opt.zero_grad()
        l = f(X())
        l.backward()
        opt.step()
        yield l
    m.weight.requires_grad_(False)
    opt.zero_grad()
    f(X()).backward()
    yield m.weight.grad, m.bias.grad


def module_attr_swapped_dict(wrap):
    m = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    f = wrap(lambda x: m(x))
    yield f(X())
    m._modules = dict(reversed(list(m._modules.items())))
    yield f(X())
    m._modules["0"], m._modules["1"] = m._modules["1"], m._modules["0"]
    yield f(X())


def forward_replaced_on_instance(wrap):
    m = nn.Linear(3, 3)
    f = wrap(lambda x: m(x))
    w = wrap(m)
    yield f(X()), w(X())
    m.forward = lambda x: x * 2
    yield f(X()), w(X())
    m.forward = types.MethodType(lambda s, x: x * s.in_features, m)
    yield f(X()), w(X())
    del m.forward
    yield f(X()), w(X())


def call_overridden(wrap):
    class M(nn.Linear):
        def __call__(self, x):
            return super().__call__(x) * 2

    m = M(3, 3)
    f = wrap(lambda x: m(x))
    yield f(X())
    del M.__call__
    yield f(X())
    M.__call__ = lambda s, x: x
    yield f(X())


def buffer_persistent_reassign(wrap):
    m = nn.BatchNorm1d(3)
    f = wrap(lambda x: m(x))
    yield f(X())
    yield f(X())
    m.reset_running_stats()
    yield f(X())
    m.num_batches_tracked = None
    yield f(X())
    m.register_buffer("num_batches_tracked", torch.tensor(5))
    yield f(X())
    yield m.running_mean


def lazy_module(wrap):
    m = nn.LazyLinear(3)
    f = wrap(lambda x: m(x))
    torch.manual_seed(0)
    yield f(X()).shape
    yield f(X()).shape
    yield type(m).__name__


def spectral(wrap):
    torch.manual_seed(1)
    m = nn.utils.spectral_norm(nn.Linear(3, 3))
    f = wrap(lambda x: m(x))
    yield f(X())
    m.eval()
    yield f(X())
    nn.utils.remove_spectral_norm(m)
    yield f(X())


def weight_norm_old(wrap):
    m = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
    f = wrap(lambda x: m(x))
    yield f(X())
    m.parametrizations.weight.original0.data.fill_(2.0)
    yield f(X())
    m.parametrizations.weight[0].dim = 1
    try:
        yield f(X())
    except Exception as e:
        yield type(e).__name__


def embedding_options(wrap):
    m = nn.Embedding(5, 3)
    i = torch.tensor([0, 1])
    f = wrap(lambda i: m(i))
    yield f(i)
    m.scale_grad_by_freq = True
    m.max_norm = 0.1
    yield f(i)
    yield f(i.int())


def conv_attrs(wrap):
    m = nn.Conv1d(2, 2, 3, padding=1)
    x = torch.ones(1, 2, 5)
    f = wrap(lambda x: m(x))
    yield f(x)
    m.padding = (0,)
    yield f(x)
    m.padding_mode = "circular"
    m._reversed_padding_repeated_twice = [1, 1]
    yield f(x)
    m.stride = (2,)
    yield f(x)
