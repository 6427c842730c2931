"""What happens to a module between two calls, and whether its guards must notice."""

import gc
import os
import weakref

import pytest
import torch
from guarding import Builder, Net, accessors, guard_module, module_program
from torch import nn

X = torch.ones(2, 3)


def other_class(module):
    return type("Other", (type(module),), {})


def adam_step(m):
    m(X).sum().backward()
    torch.optim.Adam(m.parameters()).step()


HITS = {
    "nothing": lambda m: None,
    "p.data of the same shape": lambda m: setattr(m.a.weight, "data", torch.ones(4, 3)),
    "swap_tensors, same metadata": lambda m: torch.utils.swap_tensors(m.a.weight, nn.Parameter(torch.zeros(4, 3))),
    "load_state_dict": lambda m: m.load_state_dict(Net().state_dict()),
    "optimizer step": adam_step,
    "zero_grad": lambda m: m.zero_grad(),
    "train and eval and back": lambda m: (m.eval(), m.train()),
    "a new Parameter of the same metadata": lambda m: setattr(m.a, "weight", nn.Parameter(torch.ones(4, 3))),
    "a new buffer of the same metadata": lambda m: setattr(m.bn, "running_mean", torch.ones(4)),
    "an unguarded attribute": lambda m: setattr(m, "unused", 7),
    "a guarded attribute, equal value": lambda m: setattr(m, "k", int("3")),
    "functional_call": lambda m: torch.func.functional_call(m.a, {"weight": torch.ones(4, 3), "bias": torch.zeros(4)}, (X,)),
    "a hook added and removed": lambda m: m.a.register_forward_hook(print).remove(),
    "parameter hook": lambda m: m.a.weight.register_hook(print),
    "a list it holds changes": lambda m: m.items.append(3),
    "a module attribute replaced and put back": lambda m: (setattr(m, "b", m.a), m._modules.pop("b")),
    "load_state_dict(assign=True)": lambda m: m.load_state_dict(Net().state_dict(), assign=True),
    "__dict__ replaced by the same values": lambda m: setattr(m.a, "__dict__", dict(m.a.__dict__)),
    "an unrelated attribute of the class": lambda m: setattr(type(m.a), "nothing_of_ours", 1),
}

MISSES = {
    "p.data of another shape": lambda m: setattr(m.a.weight, "data", torch.ones(9, 3)),
    "p.data of other strides": lambda m: setattr(m.a.weight, "data", torch.ones(3, 4).t()),
    "p.data of another dtype": lambda m: setattr(m.a.weight, "data", torch.ones(4, 3, dtype=torch.double)),
    "double()": lambda m: m.double(),
    "half() of one": lambda m: m.bn.half(),
    "to('meta')": lambda m: m.to("meta"),
    "requires_grad_(False)": lambda m: m.requires_grad_(False),
    "requires_grad_(False) of one": lambda m: m.bn.bias.requires_grad_(False),
    "eval()": lambda m: m.eval(),
    "eval() of a child": lambda m: m.bn.eval(),
    "new Parameter of another shape": lambda m: setattr(m.a, "weight", nn.Parameter(torch.ones(5, 3))),
    "forward hook": lambda m: m.a.register_forward_hook(print),
    "forward pre hook written directly": lambda m: m.bn._forward_pre_hooks.__setitem__(7, print),
    "hook dict replaced by one that is not empty": lambda m: m.a.__dict__.__setitem__("_forward_hooks", {1: print}),
    "hook dict replaced by no dict": lambda m: m.a.__dict__.__setitem__("_forward_hooks", ()),
    "child replaced": lambda m: setattr(m, "a", nn.Linear(3, 4)),
    "child added": lambda m: setattr(m, "c", nn.Linear(3, 4)),
    "child deleted": lambda m: delattr(m, "a"),
    "an int attribute": lambda m: setattr(m, "k", 4),
    "an int attribute becomes a bool": lambda m: setattr(m, "k", True),
    "an attribute deleted": lambda m: delattr(m, "k"),
    "__class__": lambda m: setattr(m.a, "__class__", other_class(m.a)),
    "__class__ of the root": lambda m: setattr(m, "__class__", other_class(m)),
    "__dict__ replaced by other values": lambda m: setattr(m.a, "__dict__", {**m.a.__dict__, "in_features": 4}),
    "__dict__ replaced, then written": lambda m: (setattr(m.a, "__dict__", dict(m.a.__dict__)), setattr(m.a, "training", False)),
    "_parameters replaced": lambda m: m.a.__dict__.__setitem__("_parameters", dict(m.a._parameters)),
    "swap_tensors": lambda m: torch.utils.swap_tensors(m.a.weight, nn.Parameter(torch.zeros(7, 7))),
    "parametrize": lambda m: nn.utils.parametrize.register_parametrization(m.a, "weight", nn.ReLU()),
    "spectral_norm": lambda m: nn.utils.spectral_norm(m.a),
    "del m.a.bias": lambda m: delattr(m.a, "bias"),
    "bias set to None": lambda m: setattr(m.a, "bias", None),
    "resize_": lambda m: m.bn.running_mean.resize_(8),
    "p.__class__": lambda m: setattr(m.a.weight, "__class__", type("Q", (nn.Parameter,), {})),
    "sparse": lambda m: setattr(m.a, "weight", nn.Parameter(torch.eye(4, 3).to_sparse())),
    "forward of the instance": lambda m: setattr(m.a, "forward", lambda x: x),
}


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "accessors"])
@pytest.mark.parametrize("event", HITS)
def test_must_hit(event, raw):
    m = Net()
    program = module_program(m, X)
    assert program(m, X)
    HITS[event](m)
    if raw:
        assert program(m, X), program.program.failures(program.function, (m, X))
    else:
        with accessors():
            assert program(m, X)
    expected = [t for name in ("a", "bn") for holder in ("_parameters", "_buffers") for t in getattr(getattr(m, name), holder).values()]
    block = program.program.block()
    assert len(block) == len(expected) and all(x is y for x, y in zip(block, expected))
    if event == "an unrelated attribute of the class":
        del nn.Linear.nothing_of_ours


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "accessors"])
@pytest.mark.parametrize("event", MISSES)
def test_must_miss(event, raw):
    m = Net()
    program = module_program(m, X)
    assert program(m, X)
    held = (m.a, m.bn)  # what is replaced must not die: that would be another reason
    MISSES[event](m)
    if raw:
        assert not program(m, X)
    else:
        with accessors():
            assert not program(m, X)
    assert program.program.valid and held


def test_values_put_back_hit_again():
    m = Net()
    program = module_program(m, X)
    for _ in range(3):
        m.eval()
        assert not program(m, X)
        m.train()
        assert program(m, X)
        m.k += 1
        assert not program(m, X)
        m.k -= 1
        assert program(m, X)
        old = m.a
        m.a = nn.Linear(3, 4)
        assert not program(m, X)
        m.a = old
        assert program(m, X)


def test_class_attribute_changes_and_returns():
    class Child(nn.Module):
        def forward(self, x):
            return x

    class Parent(nn.Module):
        def __init__(self):
            super().__init__()
            self.child = Child()

        def forward(self, x):
            return self.child(x)

    m = Parent()
    program = module_program(m, X)
    first = Child.forward
    Child.forward = lambda self, x: -x
    assert not program(m, X)
    Child.forward = first
    assert program(m, X)
    Child.other = 1
    assert program(m, X)
    nn.Module.another = 2
    try:
        assert program(m, X)
    finally:
        del nn.Module.another
    assert program(m, X)


def test_freed_child_makes_it_invalid_for_good():
    m = Net()
    program = module_program(m, X)
    m.a = nn.Linear(3, 4)  # the old one dies: nothing else holds it
    gc.collect()
    assert not program.program.valid
    assert not program(m, X)
    assert program.program.failures(program.function, (m, X)) == ["a guarded object was freed"]


def test_reused_identity_never_matches():
    # Modules die and are made until an address comes back; it must never be taken for the guarded one.
    def forward(self, x): ...

    reused = 0
    for _ in range(50):
        m = nn.Linear(3, 4)
        b = Builder(forward, m, X)
        guard_module(b, b.local(0), m)
        program = b.compile()
        b.arguments = b.guards = None
        assert program(m, X)
        address = id(m)
        del m, b
        others = [nn.Linear(3, 4) for _ in range(3)]
        for other in others:
            reused += id(other) == address
            assert not program(other, X)
        assert not program.program.valid
    assert reused > 0 or "PELLUCID_SANITIZED" in os.environ  # otherwise this shows nothing; freed memory waits under sanitizers


def test_guards_keep_nothing_alive():
    m = Net()
    program = module_program(m, X)
    gone = [weakref.ref(m), weakref.ref(m.a), weakref.ref(m.a.weight), weakref.ref(m.bn.running_mean)]
    del m
    gc.collect()
    assert [r() for r in gone] == [None] * 4
    assert not program.program.valid


def test_cycle_through_a_program_is_collected():
    # A compiled method stored on its own module: the program must not hold the module's dictionaries.
    m = Net()
    m.a.compiled = module_program(m, X)
    m.a.owner = [m]
    gone = weakref.ref(m)
    del m
    gc.collect()
    assert gone() is None


def test_thousand_modules_are_tables_not_rows():
    m = nn.Sequential(*[nn.Linear(3, 3) for _ in range(200)])
    program = module_program(m, X)
    text = program.program.program_text()
    assert program(m, X)
    assert "402 dicts" in text and "201 objects" in text and "804 empty dicts" in text and "400 tensors" in text, text
    assert text.index("tables: ") < 600, text  # a handful of rows


def test_counters_are_revalidated():
    class Counting(Net):
        def __init__(self):
            super().__init__()
            self.calls = []

    m = Counting()
    program = module_program(m, X)
    for i in range(5):
        m.untracked = i  # moves the tag at every call
        m.a._buffers["scratch"] = torch.ones(i)
        assert program(m, X)
