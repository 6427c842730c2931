"""State of torch and of the process that changes between calls.

Each is a generator: `wrap` captures a function or leaves it as it is, and what is yielded must be the same either way.
"""

import math
import operator
import threading

import torch
from torch import nn


def X():
    return torch.arange(6.0).reshape(2, 3) + 1


def default_dtype(wrap):
    f = wrap(lambda x: torch.ones(3) + x.sum() + torch.tensor(1.5) + torch.full((3,), 2.5))
    yield f(X())
    torch.set_default_dtype(torch.float64)
    try:
        yield f(X())
    finally:
        torch.set_default_dtype(torch.float32)
    yield f(X())


def autocast_nesting(wrap):
    f = wrap(lambda x: x @ x.t())
    yield f(X())
    with torch.autocast("cpu", torch.bfloat16):
        yield f(X())
        with torch.autocast("cpu", enabled=False):
            yield f(X())
        with torch.autocast("cpu", torch.float16):
            yield f(X())
        yield f(X())
    yield f(X())


def vmap_level(wrap):
    f = wrap(lambda x: x * 2 + x.shape[0])
    yield f(X())
    yield torch.vmap(f)(X())
    yield f(X()[0])
    yield torch.func.grad(lambda x: f(x).sum())(X())
    yield f(X())
    yield torch.func.jvp(f, (X(),), (X(),))


def torch_function_patched(wrap):
    import torch.nn.functional as F

    f = wrap(lambda x: F.relu(x) + torch.sin(x) + torch.add(x, 1))
    yield f(X())
    old = F.relu
    F.relu = lambda x: x * 3
    try:
        yield f(X())
    finally:
        F.relu = old
    yield f(X())


def operator_module(wrap):
    f = wrap(lambda x: operator.add(x, 1) * math.sqrt(4.0))
    yield f(X())
    old = math.sqrt
    math.sqrt = lambda v: 5.0
    try:
        yield f(X())
    finally:
        math.sqrt = old


def context_var(wrap):
    import contextvars

    v = contextvars.ContextVar("v", default=2)
    f = wrap(lambda x: x * v.get())
    yield f(X())
    v.set(5)
    yield f(X())


def threading_local(wrap):
    l = threading.local()
    l.k = 2
    f = wrap(lambda x: x * l.k)
    yield f(X())
    l.k = 4
    yield f(X())


def env_and_config(wrap):
    import os

    os.environ["SAFE3"] = "2"
    f = wrap(lambda x: x * int(os.environ["SAFE3"]))
    yield f(X())
    os.environ["SAFE3"] = "3"
    yield f(X())
    g = wrap(lambda x: x * int(os.environ.get("SAFE3_NO", "1")))
    yield g(X())
    os.environ["SAFE3_NO"] = "4"
    yield g(X())
    del os.environ["SAFE3_NO"]


def dtype_attr(wrap):
    class C:
        dtype = torch.float32
        dev = torch.device("cpu")

    f = wrap(lambda x: x.to(C.dtype).to(C.dev))
    yield f(X())
    C.dtype = torch.float64
    yield f(X())
    C.dev = torch.device("meta")
    yield f(X()).device


def generator_object_seed(wrap):
    g0 = torch.Generator()
    g0.manual_seed(1)
    f = wrap(lambda x: x + torch.rand(3, generator=g0))
    yield f(X())
    yield f(X())
    g0.manual_seed(1)
    yield f(X())


def device_context(wrap):
    f = wrap(lambda x: x + torch.ones(3, device=x.device))
    yield f(X())
    with torch.device("meta"):
        yield f(X())
    torch.set_default_device("meta")
    try:
        g = wrap(lambda: torch.ones(3))
        yield g().device
    finally:
        torch.set_default_device(None)
    yield g().device


def flags(wrap):
    f = wrap(lambda x: x.sum() if torch.are_deterministic_algorithms_enabled() else x * 2)
    yield f(X())
    torch.use_deterministic_algorithms(True)
    try:
        yield f(X())
    finally:
        torch.use_deterministic_algorithms(False)
    g = wrap(lambda x: x * torch.get_num_threads())
    yield g(X())
    n = torch.get_num_threads()
    torch.set_num_threads(n + 1)
    try:
        yield g(X())
    finally:
        torch.set_num_threads(n)
    h = wrap(lambda x: x + 1 if torch.is_grad_enabled() else x)
    yield h(X())
    with torch.no_grad():
        yield h(X())
    k = wrap(lambda x: x * (2 if torch.get_default_dtype() == torch.float32 else 3))
    yield k(X())
    torch.set_default_dtype(torch.float64)
    try:
        yield k(torch.ones(2))
    finally:
        torch.set_default_dtype(torch.float32)
    l = wrap(lambda x: x * (2 if torch.get_float32_matmul_precision() == "highest" else 3))
    yield l(X())
    torch.set_float32_matmul_precision("medium")
    try:
        yield l(X())
    finally:
        torch.set_float32_matmul_precision("highest")
    m = wrap(lambda x: x * (2 if torch.backends.mkldnn.enabled else 3))
    yield m(X())
    with torch.backends.mkldnn.flags(enabled=False):
        yield m(X())
    q = wrap(lambda x: x * (2 if torch.is_anomaly_enabled() else 3))
    yield q(X())
    with torch.autograd.detect_anomaly():
        yield q(X())
    r = wrap(lambda x: x * (2 if torch.is_autocast_enabled("cpu") else 3))
    yield r(X())
    with torch.autocast("cpu"):
        yield r(X())
    s = wrap(lambda x: x * (2 if torch.is_inference_mode_enabled() else 3))
    yield s(X())
    with torch.inference_mode():
        yield s(X())


def saved_hooks(wrap):
    f = wrap(lambda x: (x * x).sum())
    a = X().requires_grad_()
    f(a).backward()
    yield a.grad
    a.grad = None
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        f(a).backward()
    yield a.grad
    a.grad = None
    f(a).backward()
    yield a.grad
    with torch.autograd.graph.save_on_cpu():
        a.grad = None
        f(a).backward()
        yield a.grad


def torch_function_mode(wrap):
    from torch.overrides import TorchFunctionMode

    class M(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            r = func(*args, **(kwargs or {}))
            return r * 2 if func is torch.sin else r

    f = wrap(lambda x: torch.sin(x))
    yield f(X())
    with M():
        yield f(X())
    yield f(X())
    m = M()
    with m:
        yield f(X())
    M.__torch_function__ = lambda self, func, types, args=(), kwargs=None: func(*args, **(kwargs or {}))
    with m:
        yield f(X())
    p = nn.Parameter(X())
    p.grad = torch.ones(2, 3)
    g = wrap(lambda p: p + p.grad)
    with M():
        yield g(p)
    yield g(p)


def torch_dispatch_mode(wrap):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class M(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    f = wrap(lambda x: torch.sin(x) + 1)
    yield f(X())
    with M():
        yield f(X())
    yield seen
    yield f(X())
    p = nn.Parameter(X())
    p.grad = torch.ones(2, 3)
    g = wrap(lambda p: p + p.grad)
    with M():
        yield g(p)
    yield g(p)


def rnn_flags(wrap):
    m = nn.LSTM(3, 4)
    f = wrap(lambda x: m(x)[0])
    yield f(X())
    m.bidirectional = False
    m.dropout = 0.0
    yield f(X())
    m.batch_first = True
    yield f(torch.ones(1, 2, 3))
    m.batch_first = False
    yield f(torch.ones(1, 2, 3))
    m.flatten_parameters()
    yield f(X())


def functorch_nested(wrap):
    f = wrap(lambda x: x.sin())
    yield torch.vmap(torch.vmap(f))(X())
    yield torch.func.grad(lambda x: torch.func.grad(f)(x))(torch.tensor(1.0))
    yield torch.func.jacrev(f)(torch.ones(2))
    yield f(X())
    yield torch.func.hessian(lambda x: f(x).sum())(torch.ones(2))
