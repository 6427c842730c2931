"""Nothing of a program's runs while guards are checked: no finalizer, no __eq__ of a key in a class. So nothing is freed under a check."""

import gc

import pytest
import torch

import pellucid


class Finalized:
    """Garbage in a cycle: only the collector finds it."""

    def __init__(self, act):
        self.me, self.act = self, act

    def __del__(self):
        self.act()


@pytest.fixture
def collecting():
    """collecting(call, act): makes a call at whose first new object the collector finds garbage that does `act`."""
    gc.collect()
    gc.disable()
    threshold = gc.get_threshold()

    def run(call, act):
        gc.collect()
        Finalized(act)
        [[] for _ in range(10)]  # more than the threshold
        gc.set_threshold(1)
        gc.enable()
        try:
            return call()
        finally:
            gc.disable()
            gc.set_threshold(*threshold)

    yield run
    gc.enable()


class Holder:
    def __init__(self):
        self.k = 2


def reads_grad(x, holder):
    return x * 2 + x.grad


def reads_dict(x, holder):
    return x * vars(holder)["k"]


def reads_set(x, names):
    return x * 2 if "a" in names else x


ARGUMENTS = {reads_grad: Holder, reads_dict: Holder, reads_set: lambda: frozenset("ab")}


def fresh_leaf():
    """A tensor whose gradient no Python object stands for yet: who reads it makes one."""
    x = torch.arange(3.0, requires_grad=True)
    (x * 2).sum().backward()
    return x


@pytest.mark.parametrize("act", ["resets", "captures again", "replaces what is checked"])
@pytest.mark.parametrize("function", ARGUMENTS, ids=lambda function: function.__name__)
def test_a_collection_at_a_call(collecting, function, act):
    captured = pellucid.optimize(function, backend=lambda gm, inputs: gm.forward)
    captured(fresh_leaf(), ARGUMENTS[function]())
    for _ in range(5):
        x, argument = fresh_leaf(), ARGUMENTS[function]()
        done = []

        def finalize():
            done.append(True)
            if act == "replaces what is checked":
                x.grad = torch.ones(3)
                return
            pellucid.reset(captured)
            if act == "captures again":
                captured(fresh_leaf(), ARGUMENTS[function]())

        result = collecting(lambda: captured(x, argument), finalize)
        assert done
        if act != "replaces what is checked":  # either gradient is right
            assert torch.equal(result, function(x, argument))


class Name(str):
    """A key of a class that is compared in Python."""

    compared = 0

    def __hash__(self):
        return hash(str(self))

    def __eq__(self, other):
        Name.compared += 1
        return str(self) == str(other)


@pytest.mark.parametrize("known", [False, True], ids=["an argument", "a known object"])
def test_names_of_a_class_that_compare_in_python(known):
    cls = type("Odd", (), {Name("rate"): 2, "shift": 3})
    o = cls()
    function = (lambda o, x: x * o.shift + o.rate) if not known else (lambda x: x * o.shift + o.rate)
    arguments = (torch.ones(2),) if known else (o, torch.ones(2))
    captured = pellucid.optimize(function, backend=lambda gm, inputs: gm.forward)
    assert torch.equal(captured(*arguments), function(*arguments))
    captured(*arguments)
    for entry in pellucid.cache_entries(captured):
        Name.compared = 0
        assert captured(*arguments) is not None
    cls.shift = 4
    assert torch.equal(captured(*arguments), function(*arguments))
    cls.rate = 5
    assert torch.equal(captured(*arguments), function(*arguments))
