"""Wrapped modules: one object to everyone but the caller of `module(...)`."""

import abc
import copy
import gc
import inspect
import io
import pickle
import sys
import weakref

import pytest

torch = pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

from torch import nn

import pellucid
from pellucid import _bytecode as b
from pellucid._regions import ready_core


def backend(gm, example_inputs):
    return gm.forward


def optimized(module):
    return pellucid.optimize(module, backend=backend)


class M(nn.Module):
    made_subclasses = []

    def __init_subclass__(cls, **kwargs):
        M.made_subclasses.append(cls)

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.note = "n"

    def forward(self, x, *, k=1):
        return self.lin(x) * k

    def helper(self):
        return "help", self.note

    def __len__(self):
        return 7


@pytest.fixture
def pair():
    torch.manual_seed(0)
    module = M()
    return module, optimized(module)


def test_it_is_an_instance_of_the_class_and_shares_the_dictionary(pair):
    m, c = pair
    x = torch.randn(2)
    assert torch.equal(c(x, k=3), m(x, k=3))
    assert isinstance(c, M) and isinstance(c, nn.Module) and c.__class__ is M and type(c).__name__ == "M"
    assert c.__dict__ is m.__dict__ and repr(c) == repr(m) and len(c) == 7 and c.helper() == ("help", "n")
    assert c.__wrapped__ is m and inspect.signature(c) == inspect.signature(m)
    assert M.made_subclasses == []  # nobody was told of a subclass


def test_writes_go_both_ways(pair):
    m, c = pair
    c.note = "changed"
    assert m.note == "changed"
    m.extra = nn.Parameter(torch.ones(1))
    assert c.extra is m.extra and "extra" in dict(c.named_parameters())
    del c.extra
    assert not hasattr(m, "extra")
    c.lin = nn.Linear(2, 3)
    assert m.lin.out_features == 3 and m(torch.ones(2)).shape == (3,)
    with pytest.raises(AttributeError, match="'M' object has no attribute 'absent'"):
        c.absent


def test_parameters_state_dict_and_modes(pair):
    m, c = pair
    assert list(c.state_dict()) == list(m.state_dict()) == ["lin.weight", "lin.bias"]
    assert [id(p) for p in c.parameters()] == [id(p) for p in m.parameters()]
    assert [n for n, _ in c.named_modules()] == ["", "lin"] and list(c.children()) == list(m.children())
    assert c.eval() is c and not m.training and not m.lin.training
    assert c.train() is c and m.training and c.to(torch.float64) is c and m.lin.weight.dtype == torch.float64
    c.load_state_dict({k: torch.zeros_like(v) for k, v in m.state_dict().items()})
    assert m.lin.weight.abs().sum() == 0
    c.register_buffer("buffer", torch.ones(1))
    assert "buffer" in m.state_dict()
    optimizer = torch.optim.SGD(c.parameters(), lr=1.0)
    c(torch.ones(2, dtype=torch.float64)).sum().backward()
    assert m.lin.bias.grad is not None
    c.zero_grad()
    optimizer.step()


def test_inside_another_module(pair):
    m, c = pair
    parent = nn.Sequential(c, nn.ReLU())
    assert list(parent.state_dict()) == ["0.lin.weight", "0.lin.bias"]
    assert torch.equal(parent(torch.ones(2)), m(torch.ones(2)).relu())


def test_hooks_run(pair):
    m, c = pair
    log = []
    handles = [
        c.register_forward_pre_hook(lambda mod, args: log.append("pre")),
        m.register_forward_hook(lambda mod, args, kwargs, out: log.append(("post", kwargs)) or out + 1, with_kwargs=True),
        m.lin.register_forward_hook(lambda mod, args, out: log.append("inner")),
    ]
    x = torch.randn(2)
    y = c(x, k=2)
    assert log == ["pre", "inner", ("post", {"k": 2})] and torch.equal(y, m.lin(x) * 2 + 1)
    for handle in handles:
        handle.remove()
    log.clear()
    c(x)
    assert log == []


def test_the_call_is_captured_with_the_original_as_self(pair):
    m, c = pair
    core = ready_core()
    wrapper = c._optimized_call

    def other(self, args, kwargs):
        import sys

        return self, args, kwargs, sys._getframe(1).f_code.co_name

    core.testing_add_entry(wrapper._region, nn.Module.__call__.__code__, other.__code__, None, False)
    assert c(1, k=2) == (m, (1,), {"k": 2}, "test_the_call_is_captured_with_the_original_as_self")
    assert c.__call__(1)[:2] == (m, (1,)) and type(c).__call__(c, 3)[1] == (3,)
    assert [entry.hits for entry in pellucid.cache_entries(c)] == [3]
    pellucid.reset(c)
    assert pellucid.cache_entries(c) == []


def test_a_replaced_module_call_is_called(monkeypatch, pair):
    m, c = pair
    monkeypatch.setattr(nn.Module, "__call__", lambda self, *args: ("replaced", self, args))
    assert c(1) == ("replaced", m, (1,))


def test_copies_and_pickles(pair):
    m, c = pair
    x = torch.randn(2)
    for other in (copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        assert type(other) is type(c) and other.__wrapped__ is not m and other.lin.weight is not c.lin.weight
        assert torch.equal(other(x), c(x)) and other._optimized_call._region is not c._optimized_call._region
    shallow = copy.copy(c)
    assert shallow.lin is c.lin and shallow.__wrapped__ is not m
    buffer = io.BytesIO()
    torch.save(c, buffer)
    buffer.seek(0)
    assert torch.equal(torch.load(buffer, weights_only=False)(x), c(x))
    holder = nn.ModuleList([c])
    assert copy.deepcopy(holder)[0].__wrapped__ is not m


def test_wrapping_again_and_disabling(pair):
    m, c = pair
    again = optimized(c)
    assert again.__wrapped__ is m and type(again) is type(c)


def test_lifetime():
    m = M()
    refs = weakref.ref(m), weakref.ref(optimized(m))
    gc.collect()
    assert refs[0]() is m and refs[1]() is None
    c = optimized(m)
    c.itself = c  # a cycle through the shared dictionary
    refs = weakref.ref(m), weakref.ref(c)
    c(torch.ones(2))
    del m, c
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_special_classes():
    class Abstract(nn.Module, abc.ABC):
        @abc.abstractmethod
        def forward(self, x): ...

    class Concrete(Abstract):
        def forward(self, x):
            return x + 1

    c = optimized(Concrete())
    assert c(1) == 2 and isinstance(c, Abstract)

    class Slots(nn.Module):
        __slots__ = ("slotted",)

        def forward(self, x):
            return x

    s = Slots()
    s.slotted = 5
    c = optimized(s)  # slots can't be shared: the wrapper only passes for the module
    assert c(3) == 3 and c.slotted == 5 and c.training

    class Own(nn.Module):
        def __call__(self, x):
            return "own", super().__call__(x)

        def forward(self, x):
            return x

    assert optimized(Own())(1) == ("own", 1)

    class Gets(nn.Module):
        def __getattr__(self, name):
            return "dynamic " + name if name.startswith("x_") else super().__getattr__(name)

    assert optimized(Gets()).x_1 == "dynamic x_1"
    assert torch.equal(optimized(nn.Sequential(nn.Linear(1, 1)))[0].weight, nn.Sequential(nn.Linear(1, 1))[0].weight) is not None
    scripted = torch.jit.script(nn.ReLU())
    assert torch.equal(optimized(scripted)(torch.ones(1)), torch.ones(1))


def test_a_class_as_target():
    @pellucid.optimize(backend=backend)
    class N(nn.Module):
        def forward(self, x):
            return x * 2

    assert isinstance(N, type) and type(N.__call__).__name__ == "OptimizedFunction"
    assert N()(2) == 4 and optimized(N())(3) == 6


def test_the_hook_is_balanced_after_errors(pair):
    _, c = pair
    with pytest.raises(TypeError):
        c()
    with pytest.raises(RuntimeError):
        c(torch.ones(5))
    assert not b.hook_installed() and b.hook_busy() == 0
