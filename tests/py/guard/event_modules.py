"""The events on modules, parameters and hooks that captured code must notice, and their harmless relatives."""

import collections
import contextlib

import torch
from event_runs import Case, Event, attribute, item
from torch import nn
from torch.nn.utils import parametrize, prune

# ---- programs


class Net(nn.Module):
    scale = 2.0

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.p = nn.Parameter(torch.ones(3))
        self.register_buffer("offset", torch.zeros(4))
        self.k = 3
        self.steps = 0
        self.sizes = [1, 2]
        self.table = {"shift": 1}

    @property
    def factor(self):
        return self.k * 2

    def helper(self, x):
        return x * 2

    def forward(self, x):
        y = self.norm(self.a(x))
        return self.helper(y) * self.scale + self.factor + self.p.sum() + self.offset + self.sizes[0] + self.table["shift"]


def seeded(make):
    torch.manual_seed(0)
    return make()


X = torch.arange(6.0).reshape(2, 3) / 6


def as_argument(make=Net):
    def program(model, x):
        return model(x) + 1

    model = seeded(make)
    return Case(program, model, X, m=model)


def in_closure(make=Net):
    model = seeded(make)

    def program(x):
        return model(x) + 1

    return Case(program, X, m=model)


def as_root(make=Net):
    model = seeded(make)
    return Case(model, X, m=model)


def in_list(make=Net):
    def program(models, x):
        for model in models:
            x = model(x)
        return x

    model = seeded(make)
    return Case(program, [model], X, m=model)


def as_attribute(make=Net):
    class Holder:
        def __init__(self, model):
            self.model = model

        def run(self, x):
            return self.model(x)

    model = seeded(make)
    return Case(Holder(model).run, X, m=model)


PLACES = (as_argument, in_closure, as_root, in_list, as_attribute)


def everywhere(name, change, harmless=None, places=PLACES, make=Net, **more):
    """A row for every way in which a program may reach the module; the first one also in threads."""
    for place in places:
        yield Event(f"{name} ({place.__name__})", lambda place=place: place(make), change, harmless, threads=place is places[0], **more)


def put(path, value):
    """A change that assigns an attribute: `put("a.weight.data", lambda: ...)`."""
    *owners, last = path.split(".")

    def change(case):
        owner = case.m
        for name in owners:
            owner = getattr(owner, name)
        setattr(owner, last, value())

    return change


def linear(bias=True):
    made = nn.Linear(3, 4, bias)
    for parameter in made.parameters():
        nn.init.ones_(parameter)
    return made


def spectral_norm(case):
    nn.utils.spectral_norm(case.m.a)
    case.m.a.weight_u.fill_(0.5)


def subclass(cls):
    return type("Sub" + cls.__name__, (cls,), {})


def doubled(cls, name="forward"):
    """A subclass whose `name` gives twice what the class gives."""
    return type("Twice", (cls,), {name: lambda self, *args: getattr(cls, name)(self, *args) * 2})


def doubling_hook(module, args, output):
    return output * 2


def shifting_pre_hook(module, args):
    return (args[0] + 1,)


def keep(*args):
    return None


class Twice(nn.Module):
    def forward(self, x):
        return x * 2


STATE = seeded(Net).state_dict()


def state(**changes):
    """A state dict of another net, with entries replaced."""
    return {**{name: value + 1 if value.is_floating_point() else value.clone() for name, value in STATE.items()}, **changes}


def remove_parametrization(case):
    parametrize.register_parametrization(case.m.a, "weight", Twice())
    parametrize.remove_parametrizations(case.m.a, "weight", leave_parametrized=False)


# ---- rows


def tensors():
    yield from everywhere("p.data of another shape", put("p.data", lambda: torch.ones(5)), put("p.data", lambda: torch.full((3,), 7.0)))
    yield from everywhere(
        "p.data of another dtype", put("p.data", lambda: torch.ones(3, dtype=torch.double)), put("p.data", lambda: torch.ones(3))
    )
    yield from everywhere(
        "p.data of other strides",
        put("a.weight.data", lambda: torch.ones(3, 4).t()),
        put("a.weight.data", lambda: torch.ones(4, 3)),
    )
    yield from everywhere(
        "a parameter of another shape", put("p", lambda: nn.Parameter(torch.ones(5))), put("p", lambda: nn.Parameter(torch.ones(3)))
    )
    yield from everywhere("a buffer of another shape", put("offset", lambda: torch.ones(1)), put("offset", lambda: torch.ones(4)))
    yield from everywhere("a parameter deleted and put back as None", put("a.bias", lambda: None), lambda c: c.m.zero_grad())
    yield from everywhere("requires_grad_ of a parameter", lambda c: c.m.p.requires_grad_(False), lambda c: c.m.p.requires_grad_(True))
    yield from everywhere("requires_grad_ of the module", lambda c: c.m.requires_grad_(False), lambda c: c.m.requires_grad_(True))
    yield from everywhere(
        "swap_tensors",
        lambda c: torch.utils.swap_tensors(c.m.p, nn.Parameter(torch.ones(7))),
        lambda c: torch.utils.swap_tensors(c.m.p, nn.Parameter(torch.full((3,), 2.0))),
    )
    yield from everywhere(
        "a parameter's __class__",
        lambda c: setattr(c.m.p, "__class__", subclass(nn.Parameter)),
        lambda c: setattr(c.m.p, "__class__", nn.Parameter),
    )
    yield from everywhere("resize_ of a buffer", lambda c: c.m.offset.resize_(1).zero_(), lambda c: c.m.offset.add_(1))
    yield from everywhere("a module becomes double", put("offset", lambda: torch.zeros(4).double()), lambda c: c.m.float())
    yield from everywhere("a hook on a tensor is harmless", put("k", lambda: 4), lambda c: c.m.p.register_hook(lambda g: g))
    yield from everywhere(
        "load_state_dict with assign",
        lambda c: c.m.load_state_dict(state(p=torch.ones(3, dtype=torch.double)), assign=True),
        lambda c: c.m.load_state_dict(state(), assign=True),
    )
    yield from everywhere(
        "load_state_dict",
        lambda c: c.m.load_state_dict(state(offset=torch.zeros(4)), assign=True) and c.m.eval(),
        lambda c: c.m.load_state_dict(state()),
    )
    yield from everywhere(
        "an optimizer's step is harmless",
        put("p", lambda: nn.Parameter(torch.ones(5))),
        lambda c: torch.optim.SGD(c.m.parameters(), lr=0.1).step(),
    )


def modules():
    yield from everywhere(
        "__class__ of a child", lambda c: setattr(c.m.a, "__class__", doubled(nn.Linear)), lambda c: setattr(c.m.a, "__class__", nn.Linear)
    )
    yield from everywhere("__class__ of the module", lambda c: setattr(c.m, "__class__", doubled(Net)), places=PLACES[:2] + PLACES[3:])
    yield from everywhere(
        "__dict__",
        lambda c: setattr(c.m, "__dict__", {**c.m.__dict__, "k": 5}),
        lambda c: setattr(c.m, "__dict__", dict(c.m.__dict__)),
        places=PLACES[:2] + PLACES[3:],  # a wrapped module shares the dictionary it had
    )
    yield from everywhere(
        "__dict__ of a child",
        lambda c: setattr(c.m.a, "__dict__", {**linear(bias=False).__dict__}),
        lambda c: setattr(c.m.a, "__dict__", dict(c.m.a.__dict__)),
    )
    yield from everywhere("eval()", lambda c: c.m.eval(), lambda c: c.m.train(), repeatable=False)
    yield from everywhere("eval() of a child", lambda c: c.m.norm.eval(), lambda c: (c.m.eval(), c.m.train()), repeatable=False)
    yield from everywhere("a counter that is read", put("k", lambda: 4), put("steps", lambda: 4))
    yield from everywhere("an int becomes a bool", put("k", lambda: True), put("k", lambda: int("3")))
    yield from everywhere("an attribute deleted", lambda c: delattr(c.m, "k"), lambda c: setattr(c.m, "unread", 1))
    yield from everywhere("a list in an attribute", lambda c: c.m.sizes.__setitem__(0, 5), lambda c: c.m.sizes.__setitem__(0, 1))
    yield from everywhere("a dict in an attribute", lambda c: c.m.table.update(shift=5), lambda c: c.m.table.update(shift=1))
    yield from everywhere("a child replaced", put("a", lambda: linear(bias=False)), lambda c: setattr(c.m, "spare", nn.Linear(1, 1)))
    yield from everywhere("a child replaced by another class", put("norm", Twice), lambda c: (setattr(c.m, "b", c.m.a), delattr(c.m, "b")))
    yield from everywhere("parametrize", lambda c: parametrize.register_parametrization(c.m.a, "weight", Twice()))
    yield from everywhere("spectral_norm", spectral_norm, repeatable=False)
    yield from everywhere("weight_norm", lambda c: nn.utils.parametrizations.weight_norm(c.m.a))
    yield from everywhere("pruning", lambda c: prune.random_unstructured(c.m.a, "weight", 0.0))
    yield from everywhere(
        "functional_call outside is harmless",
        put("k", lambda: 4),
        lambda c: torch.func.functional_call(c.m.a, {"weight": torch.ones(4, 3)}, (X,)) is None,
    )
    for hooks in ("forward", "forward_pre", "full_backward", "full_backward_pre"):
        hook = {"forward": doubling_hook, "forward_pre": shifting_pre_hook}.get(hooks, keep)
        yield from everywhere(
            f"a {hooks} hook",
            lambda c, hooks=hooks, hook=hook: getattr(c.m.a, f"register_{hooks}_hook")(hook),
            lambda c, hooks=hooks, hook=hook: getattr(c.m.a, f"register_{hooks}_hook")(hook).remove(),
        )
    yield from everywhere("a hook with keywords", lambda c: c.m.register_forward_hook(lambda m, a, k, o: o * 2, with_kwargs=True))
    yield from everywhere("a hook that is always called", lambda c: c.m.register_forward_hook(doubling_hook, always_call=True))
    yield from everywhere(
        "a hook written into the dict",
        lambda c: c.m.a._forward_hooks.__setitem__(1 << 40, doubling_hook),
        lambda c: c.m.a._forward_hooks.clear(),
    )
    yield from everywhere(
        "a pre-hook written into the dict", lambda c: c.m.norm._forward_pre_hooks.update({1 << 40: lambda m, a: (a[0] + 1,)})
    )
    yield from everywhere(
        "another dict of hooks",
        lambda c: c.m.a.__dict__.__setitem__("_forward_hooks", collections.OrderedDict({1: doubling_hook})),
        lambda c: c.m.a.__dict__.__setitem__("_forward_hooks", collections.OrderedDict()),
    )
    yield from everywhere(
        "state_dict hooks are harmless", put("k", lambda: 4), lambda c: c.m.register_state_dict_post_hook(lambda *a: None)
    )
    yield from everywhere(
        "a hook on every module",
        lambda c: hooked(nn.modules.module.register_module_forward_hook, lambda m, a, o: o * 2 if isinstance(m, Net) else None),
        process_wide=True,
    )
    yield from everywhere(
        "a pre-hook on every module",
        lambda c: hooked(nn.modules.module.register_module_forward_pre_hook, lambda m, a: (a[0] + 1,) if isinstance(m, Net) else None),
        process_wide=True,
    )
    yield from everywhere(
        "a backward hook on every module",
        lambda c: hooked(nn.modules.module.register_module_full_backward_hook, lambda m, a, o: None),
        process_wide=True,
    )


@contextlib.contextmanager
def hooked(register, hook):
    handle = register(hook)
    try:
        yield
    finally:
        handle.remove()


class Hooked(Net):
    def __init__(self):
        super().__init__()
        self.handle = self.a.register_forward_hook(doubling_hook)
        self.pre_handle = self.norm.register_forward_pre_hook(lambda m, a: (a[0] + 1,))


def hooks():
    yield from everywhere("a forward hook removed", lambda c: c.m.handle.remove(), lambda c: setattr(c.m, "spare", 1), make=Hooked)
    yield from everywhere("a forward pre-hook removed", lambda c: c.m.pre_handle.remove(), make=Hooked)
    yield from everywhere("hooks cleared in the dict", lambda c: c.m.a._forward_hooks.clear(), make=Hooked)
    yield from everywhere("a second forward hook", lambda c: c.m.a.register_forward_hook(lambda m, a, o: o + 1), make=Hooked)
    yield from everywhere(
        "a hook replaced in the dict", lambda c: c.m.a._forward_hooks.update({c.m.handle.id: lambda m, a, o: o + 1}), make=Hooked
    )
    yield from everywhere(
        "hooks put into another order",
        lambda c: c.m.a._forward_hooks.move_to_end(c.m.handle.id),
        make=TwoHooks,
    )


class TwoHooks(Net):
    def __init__(self):
        super().__init__()
        self.handle = self.a.register_forward_hook(doubling_hook)
        self.a.register_forward_hook(lambda m, a, o: o + 1)


def shadows():
    def in_dict(name, value):
        return lambda c: item(c.m.__dict__, name, value)

    yield from everywhere("an instance entry shadows a method", in_dict("helper", lambda x: x * 5), in_dict("unread", 1))
    yield from everywhere("an instance entry shadows a submodule", in_dict("a", lambda x: x.sum(1, keepdim=True) * torch.ones(4)))
    yield from everywhere("an instance entry shadows a parameter", in_dict("p", torch.zeros(3)))
    yield from everywhere("an instance entry shadows a buffer", in_dict("offset", torch.ones(4)))
    yield from everywhere("an instance entry shadows a class attribute", in_dict("scale", 5.0))
    yield from everywhere("an instance entry shadows forward", in_dict("forward", lambda x: x * 5))
    yield from everywhere("an instance entry does not shadow a property", put("k", lambda: 4), in_dict("factor", 100))
    for name, value in {
        "a method": ("helper", lambda self, x: x * 5),
        "a property": ("factor", property(lambda self: 100)),
        "an attribute": ("scale", 5.0),
        "forward": ("forward", lambda self, x: x * 5),
        "a property over an instance attribute": ("k", property(lambda self: 100)),
        "a class attribute over a submodule": ("a", staticmethod(lambda x: x.sum(1, keepdim=True) * torch.ones(4))),
        "a class attribute over a parameter": ("p", torch.zeros(3)),
        "a class attribute over a buffer": ("offset", torch.ones(4)),
        "__call__": ("__call__", lambda self, x: x * 5),
        "__getattribute__": ("__getattribute__", lambda self, name: 5.0 if name == "scale" else nn.Module.__getattribute__(self, name)),
        "__getattr__": ("__getattr__", lambda self, name: torch.zeros(3) if name == "p" else nn.Module.__getattr__(self, name)),
    }.items():
        yield from everywhere(
            f"on the class: {name}",
            lambda c, value=value: attribute(type(c.m), *value),
            lambda c: attribute(type(c.m), "unread", 1),
            make=fresh_class,
        )
        if name not in ("a property", "an attribute", "forward"):
            continue
        yield from everywhere(
            f"on a base class: {name}",
            lambda c, value=value: attribute(type(c.m).__mro__[1], *value),
            lambda c: attribute(type(c.m).__mro__[1], "unread", 1),
            make=fresh_class,
        )
    yield from everywhere("a method deleted from a subclass", lambda c: attribute(type(c.m), "helper", ...), make=overriding_class)
    yield from everywhere("__bases__", lambda c: setattr(type(c.m), "__bases__", (doubled(Net, "helper"),)), make=fresh_class)
    yield from everywhere(
        "a method of nn.Linear",
        lambda c: attribute(nn.Linear, "forward", lambda self, x: x.sum(1, keepdim=True) * torch.ones(4)),
        lambda c: attribute(nn.Linear, "unread", 1),
        process_wide=True,
    )
    yield from everywhere(
        "nn.Module.__call__",
        lambda c: attribute(nn.Module, "__call__", lambda self, *a: self.forward(*a) * 2),
        lambda c: attribute(nn.Module, "unread", 1),
        process_wide=True,
    )
    yield from everywhere(
        "nn.Module._call_impl", lambda c: attribute(nn.Module, "_call_impl", lambda self, *a: self.forward(*a) * 2), process_wide=True
    )


def fresh_class():
    """A net of a class of its own, so that changing classes changes nobody else."""
    base = type("Base", (nn.Module,), {k: v for k, v in vars(Net).items() if k not in ("__dict__", "__weakref__", "__init__")})

    def __init__(self):
        nn.Module.__init__(self)
        self.__dict__.update(Net().__dict__)

    return type("Fresh", (base,), {"__init__": __init__})()


def overriding_class():
    made = fresh_class()
    type(made).helper = lambda self, x: x * 9
    return made
