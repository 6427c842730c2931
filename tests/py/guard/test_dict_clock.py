"""Where no dictionary of the process changed since the last check, none is looked at again: every change must still be seen."""

import torch
from guarding import Net, module_program

X = torch.ones(2, 3)


class Large(torch.nn.Module):
    """So many dictionaries that asking for changes is cheaper than looking at each."""

    def __init__(self):
        super().__init__()
        self.nets = torch.nn.Sequential(*[Net() for _ in range(8)])
        self.number = 1

    def forward(self, x):
        return self.nets(x)


def program():
    model = Large()
    made = module_program(model, X)
    check = made.program.check
    assert all(check(made.function, (model, X)) for _ in range(3))
    return model, lambda: check(made.function, (model, X))


def hook(*_):
    pass


def test_each_kind_of_change_is_seen_after_quiet_checks():
    changes = {
        "attribute": lambda m: setattr(m, "number", 2),
        "attribute of a child": lambda m: setattr(m.nets[5], "k", 4),
        "mode": lambda m: m.nets[3].eval(),
        "parameter": lambda m: setattr(m.nets[7].a, "weight", torch.nn.Parameter(torch.ones(5, 3))),
        "hook by the API": lambda m: m.nets[6].bn.register_forward_hook(hook),
        "hook written directly": lambda m: m.nets[6].bn._forward_pre_hooks.__setitem__(0, hook),
        "child": lambda m: m.nets.add_module("8", Net()),
        "new dictionary of an object": lambda m: setattr(m.nets[2], "__dict__", {**m.nets[2].__dict__, "k": 5}),
        "class": lambda m: setattr(m.nets[1], "__class__", Large),
    }
    for name, change in changes.items():
        model, holds = program()
        assert holds() and holds()
        change(model)
        assert not holds(), name
        assert not holds(), name


def test_a_dictionary_prepared_earlier_is_seen():
    """Giving an object another __dict__ changes no dictionary at that moment."""
    model, holds = program()
    for number, expected in ((1, True), (9, False)):
        other = {**model.nets[4].__dict__, "k": 3 if number == 1 else number}
        assert holds() and holds()
        model.nets[4].__dict__ = other
        assert holds() == expected
        assert holds() == expected


def test_a_failing_check_leaves_nothing_unlooked_at():
    """A check that ends half way has adopted some of what moved: the next one looks at the rest."""
    model, holds = program()
    assert holds()
    old = model.nets[0].__dict__
    model.nets[0].__dict__ = {**old, "k": 7}
    model.__class__ = type("Other", (Large,), {})
    assert not holds()
    model.__class__ = Large
    assert not holds()
    model.nets[0].__dict__ = old
    assert holds() and holds()


def test_unrelated_changes_are_no_miss():
    model, holds = program()
    for i in range(20):
        unrelated = {i: i}
        unrelated[i + 1] = 0
        model.untracked = i
        assert holds()
        assert holds()
