"""Parts of torch's global state that tests enter: modes, dtypes, flags, functorch levels."""

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Function(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def put_back(read, write, value):
    old = read()
    write(value)
    try:
        yield
    finally:
        write(old)


def default_dtype(dtype):
    return put_back(torch.get_default_dtype, torch.set_default_dtype, dtype)


@contextlib.contextmanager
def deterministic(**more):
    torch.use_deterministic_algorithms(True, **more)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def functorch_level(kind):
    c = torch._C._functorch
    push = c._grad_increment_nesting if kind == "grad" else lambda: c._vmap_increment_nesting(2, "error")
    pop = c._grad_decrement_nesting if kind == "grad" else c._vmap_decrement_nesting
    push()
    try:
        yield
    finally:
        pop()
