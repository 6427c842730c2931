"""Events on what is not tensors: globals, cells, functions, classes, containers; and on which objects are one."""

import builtins
import collections
import dataclasses
import functools
import types

import torch
from event_runs import After, Case, Event, attribute, item

X = torch.arange(6.0).reshape(2, 3)


def module_of(text, name="program", **values):
    """A module of its own with this source, so that changing its globals changes nobody else: a Case of its function."""
    module = types.ModuleType("events")
    module.__dict__.update(torch=torch, functools=functools, **values)
    exec(compile(text, __file__, "exec"), module.__dict__)
    return Case(getattr(module, name), X, g=module.__dict__)


def globals_case():
    return module_of(
        """
scale = 2
offset = torch.ones(3)
names = ["a", "b"]
table = {"shift": 1}
def helper(x):
    return x + 1
class Config:
    rate = 3
def program(x):
    return helper(x * scale + offset) * len(names) + torch.sin(x) + table["shift"] + Config.rate + max(1, 2)
"""
    )


def write(name, value):
    return lambda c: item(c.g, name, value() if callable(value) and not isinstance(value, (type, types.FunctionType)) else value)


def global_names():
    def row(name, change, harmless=lambda c: item(c.g, "unread", 1)):
        return Event(name, globals_case, change, harmless)

    yield row("a global int", lambda c: item(c.g, "scale", 3), lambda c: item(c.g, "scale", int("2")))
    yield row("a global int becomes a float", lambda c: item(c.g, "scale", 2.0))
    yield row("a global int becomes a bool", lambda c: item(c.g, "scale", True))
    yield row(
        "a global tensor of another shape", lambda c: item(c.g, "offset", torch.ones(1)), lambda c: item(c.g, "offset", torch.zeros(3))
    )
    yield row("a global function", lambda c: item(c.g, "helper", lambda x: x + 5), lambda c: item(c.g, "helper", c.g["helper"]))
    yield row("a global class", lambda c: item(c.g, "Config", type("Config", (), {"rate": 9})))
    yield row(
        "an attribute of a global class", lambda c: attribute(c.g["Config"], "rate", 4), lambda c: attribute(c.g["Config"], "rate", 3)
    )
    yield row(
        "another attribute of a global class", lambda c: attribute(c.g["Config"], "rate", 4), lambda c: attribute(c.g["Config"], "other", 3)
    )
    yield row("a global list", lambda c: c.g["names"].append("c"), lambda c: c.g["names"].reverse())
    yield row("a global list replaced", lambda c: item(c.g, "names", [1]), lambda c: item(c.g, "names", [1, 2]))
    yield row("a global dict", lambda c: c.g["table"].update(shift=2), lambda c: c.g["table"].update(shift=1))
    yield row("a global dict replaced", lambda c: item(c.g, "table", {"shift": 5}), lambda c: item(c.g, "table", {"shift": 1}))
    yield row("a global that hides a builtin", lambda c: item(c.g, "len", lambda x: 7), lambda c: item(c.g, "sum", None))
    yield row("a second global that hides a builtin", lambda c: item(c.g, "max", min))
    yield row("a global module", lambda c: item(c.g, "torch", types.SimpleNamespace(sin=torch.cos)), lambda c: item(c.g, "torch", torch))
    yield Event(
        "a builtin",
        globals_case,
        lambda c: attribute(builtins, "max", lambda *a: 50),
        lambda c: attribute(builtins, "unread", 1),
        process_wide=True,
    )
    yield Event(
        "a function of torch",
        lambda: module_of("def program(x): return torch.sin(x)"),
        lambda c: attribute(torch, "sin", torch.cos),
        lambda c: attribute(torch, "unread", 1),
        process_wide=True,
    )
    yield Event(
        "a method of torch.Tensor",
        lambda: module_of("def program(x): return x.sin()"),
        lambda c: attribute(torch.Tensor, "sin", lambda self: torch.cos(self)),
        lambda c: attribute(torch.Tensor, "unread", 1),
        process_wide=True,
    )
    yield Event(
        "a global deleted",
        lambda: module_of("max = min\ndef program(x): return x + max(1, 2)"),
        lambda c: item(c.g, "max", ...),
        lambda c: item(c.g, "max", min),
    )


def closure_case():
    scale = 2
    helper = lambda x: x + 1
    sizes = [1, 2]
    empty = 0

    def program(x):
        return helper(x) * scale + sizes[0]

    def change(name, value):
        index = program.__code__.co_freevars.index(name)
        program.__closure__[index].cell_contents = value

    return Case(program, X, set=change, sizes=sizes, helper=helper)


def cells():
    yield Event("an int in a cell", closure_case, lambda c: c.set("scale", 3), lambda c: c.set("scale", int("2")))
    yield Event("a function in a cell", closure_case, lambda c: c.set("helper", lambda x: x + 5), lambda c: c.set("helper", c.helper))
    yield Event("a list in a cell", closure_case, lambda c: c.sizes.__setitem__(0, 4), lambda c: c.sizes.__setitem__(1, 9))
    yield Event("another list in a cell", closure_case, lambda c: c.set("sizes", [3, 2]), lambda c: c.set("sizes", [1, 2]))
    yield Event("a tensor in a cell", closure_case, lambda c: c.set("scale", torch.ones(3)))


def function_case():
    def helper(x, a=1, *, k=2):
        return x * a + k

    def program(x, by=3):
        return helper(x) * by

    return Case(program, X, helper=helper)


def other_code(x, a=1, *, k=2):
    return x - a - k


def functions():
    yield Event(
        "__code__",
        function_case,
        lambda c: setattr(c.helper, "__code__", other_code.__code__),
        lambda c: setattr(c.helper, "__code__", c.helper.__code__),
    )
    yield Event(
        "__defaults__",
        function_case,
        lambda c: setattr(c.helper, "__defaults__", (5,)),
        lambda c: setattr(c.helper, "__defaults__", (int("1"),)),
    )
    yield Event(
        "__kwdefaults__ replaced",
        function_case,
        lambda c: setattr(c.helper, "__kwdefaults__", {"k": 7}),
        lambda c: setattr(c.helper, "__kwdefaults__", {"k": 2}),
    )
    yield Event(
        "__kwdefaults__ written",
        function_case,
        lambda c: c.helper.__kwdefaults__.update(k=7),
        lambda c: c.helper.__kwdefaults__.update(k=2),
    )
    yield Event(
        "__defaults__ removed",
        function_case,
        lambda c: setattr(c.helper, "__defaults__", None),
        lambda c: setattr(c.helper, "note", 1),
        after=After.OTHERWISE,
    )
    yield Event(
        "__defaults__ of the captured function",
        function_case,
        lambda c: setattr(c.function, "__defaults__", (5,)),
        lambda c: setattr(c.function, "__defaults__", (3,)),
    )
    yield Event(
        "__code__ of the captured function",
        code_case,
        lambda c: setattr(c.function, "__code__", c.other.__code__),
        lambda c: setattr(c.function, "note", 1),
    )
    yield Event(
        "arguments of functools.partial",
        partial_case,
        lambda c: c.partial.__setstate__((c.partial.func, (5,), {}, None)),
        lambda c: setattr(c.partial, "note", 1),
    )
    yield Event("keywords of functools.partial", partial_case, lambda c: c.partial.keywords.update(k=9))
    yield Event(
        "an attribute of a function", attribute_case, lambda c: setattr(c.helper, "rate", 5), lambda c: setattr(c.helper, "other", 5)
    )
    yield Event(
        "__wrapped__ replaced",
        decorated_case,
        lambda c: setattr(c.helper, "__wrapped__", lambda x: x * 9),
        lambda c: setattr(c.helper, "note", 1),
    )


def code_case():
    def program(x):
        return x + 1

    def other(x):
        return x + 2

    return Case(program, X, other=other)


def partial_case():
    partial = functools.partial(lambda a, x, k=1: x * a + k, 2)

    def program(x):
        return partial(x)

    return Case(program, X, partial=partial)


def attribute_case():
    def helper(x):
        return x

    helper.rate = 2

    def program(x):
        return helper(x) * helper.rate

    return Case(program, X, helper=helper)


def decorated_case():
    @functools.wraps(code_case)
    def helper(x):
        return helper.__wrapped__(x) + 1

    helper.__wrapped__ = lambda x: x * 2

    def program(x):
        return helper(x)

    return Case(program, X, helper=helper)


def object_case():
    class Base:
        rate = 2
        table = {"a": 1}

        def method(self, x):
            return x * self.rate

        @classmethod
        def made(cls, x):
            return x + cls.rate

        @staticmethod
        def free(x):
            return x + 1

        @property
        def shift(self):
            return self.k

        @functools.cached_property
        def cached(self):
            return self.k + 1

    class Object(Base):
        def __init__(self):
            self.k = 3
            self.items = [1]

    class Slots:
        __slots__ = ("a", "b")

        def __init__(self):
            self.a, self.b = 1, 2

    class Added:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return self.value + other

        def __len__(self):
            return 3

        def __bool__(self):
            return True

        def __getitem__(self, index):
            return index

        def __call__(self, x):
            return x * 2

        def __contains__(self, value):
            return True

        def __iter__(self):
            return iter((1, 2))

        def __eq__(self, other):
            return True

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    def program(o, slots, special, x):
        x = o.free(o.made(o.method(x))) + o.shift + o.table["a"] + slots.a + o.items[0]
        x = (special + x) * len(special) + special[1] + (2 in special) + sum(special) + (special == 3)
        with special as entered:
            x = entered(x)
        return x if special else -x

    o, slots, special = Object(), Slots(), Added(1)
    return Case(program, o, slots, special, X, o=o, slots=slots, special=special, Base=Base, Object=Object, Special=Added)


def objects():
    def row(name, change, harmless=lambda c: setattr(c.o, "unread", 1)):
        return Event(name, object_case, change, harmless)

    yield row("an attribute", lambda c: setattr(c.o, "k", 4), lambda c: setattr(c.o, "k", int("3")))
    yield row("an attribute deleted", lambda c: delattr(c.o, "k"))
    yield row("a slot", lambda c: setattr(c.slots, "a", 4), lambda c: setattr(c.slots, "b", 4))
    yield row("a slot deleted", lambda c: delattr(c.slots, "a"))
    yield row("an item of a list in an attribute", lambda c: c.o.items.__setitem__(0, 7), lambda c: c.o.items.__setitem__(0, int("1")))
    yield row(
        "an object's __class__",
        lambda c: setattr(c.o, "__class__", type("Other", (c.Object,), {"rate": 5})),
        lambda c: setattr(c.o, "__class__", c.Object),
    )
    yield row(
        "an object's __dict__",
        lambda c: setattr(c.o, "__dict__", {**c.o.__dict__, "k": 5}),
        lambda c: setattr(c.o, "__dict__", dict(c.o.__dict__)),
    )
    yield row("an instance entry shadows a class attribute", lambda c: setattr(c.o, "rate", 5))
    yield row("an instance entry shadows a method", lambda c: setattr(c.o, "method", lambda x: x * 7))
    yield row("an instance entry shadows a staticmethod", lambda c: setattr(c.o, "free", lambda x: x * 7))
    yield row("an instance entry under a property's name", lambda c: setattr(c.o, "k", 4), lambda c: c.o.__dict__.update(shift=100))
    for name, value in {
        "rate": 5,
        "table": {"a": 6},
        "method": lambda self, x: x * 9,
        "made": classmethod(lambda cls, x: x * 9),
        "free": staticmethod(lambda x: x * 9),
        "shift": property(lambda self: 9),
        "k": property(lambda self: 9),
        "items": property(lambda self: [9]),
        "__getattribute__": lambda self, name: 5 if name == "rate" else object.__getattribute__(self, name),
    }.items():
        yield row(f"{name} of the class", lambda c, n=name, v=value: attribute(c.Object, n, v), lambda c: attribute(c.Object, "unread", 1))
        yield row(f"{name} of a base class", lambda c, n=name, v=value: attribute(c.Base, n, v), lambda c: attribute(c.Base, "unread", 1))
    yield row("a dict in a class", lambda c: c.Base.table.update(a=6), lambda c: c.Base.table.update(a=1))
    yield row("__bases__", lambda c: setattr(c.Object, "__bases__", (type("Other", (c.Base,), {"rate": 6}),)))
    for name, value in {
        "__add__": lambda self, other: other * 5,
        "__len__": lambda self: 7,
        "__bool__": lambda self: False,
        "__getitem__": lambda self, index: 9,
        "__call__": lambda self, x: x * 9,
        "__contains__": lambda self, value: False,
        "__iter__": lambda self: iter((5, 6)),
        "__eq__": lambda self, other: False,
        "__enter__": lambda self: lambda x: x + 9,
        "__exit__": lambda self, *error: 1 / 0,
    }.items():
        yield row(
            f"{name} of a class",
            lambda c, n=name, v=value: attribute(c.Special, n, v),
            lambda c: attribute(c.Special, "__neg__", lambda self: 1),
        )
    yield row("__bool__ deleted", lambda c: attribute(c.Special, "__bool__", ...))
    yield row("__radd__ of the other operand's class", lambda c: setattr(c.special, "value", 5))


@dataclasses.dataclass
class Config:
    rate: int = 2
    shift: float = 1.0


def container_case():
    state = {
        "list": [1, 2],
        "dict": {"a": 1, "b": 2},
        "ordered": collections.OrderedDict(a=1, b=2),
        "default": collections.defaultdict(int, a=1),
        "set": {1, 2},
        "tuple": (1, (2, 3)),
        "config": Config(),
        "nested": {"x": [{"y": 1}]},
        "text": "abc",
        "slice": slice(0, 2),
        "bytes": b"abc",
        "none": None,
        "dtype": torch.float32,
        "deque": collections.deque([1, 2]),
    }

    def program(s, x):
        for value in s["list"]:
            x = x * value
        for key, value in s["dict"].items():
            x = x + (value if key == "a" else -value)
        for number, key in enumerate(s["ordered"]):
            x = x + number * s["ordered"][key]
        x = x + s["default"]["a"] + sum(s["set"]) + s["tuple"][1][0] * s["config"].rate + s["nested"]["x"][0]["y"]
        x = x + len(s["text"]) + len(s["bytes"]) + (1 if s["none"] is None else 2)
        return x[s["slice"]].to(s["dtype"]), len(s["deque"])

    return Case(program, state, X, s=state)


def containers():
    def row(name, change, harmless=None, **more):
        return Event(name, container_case, change, harmless, **more)

    yield row("an item of a list", lambda c: c.s["list"].__setitem__(0, 5), lambda c: c.s["list"].__setitem__(0, int("1")))
    yield row("a list gets longer", lambda c: c.s["list"].append(5), lambda c: (c.s["list"].append(5), c.s["list"].pop()))
    yield row("a list reversed", lambda c: c.s["list"].insert(0, c.s["list"].pop() + 1), lambda c: c.s["list"].sort())
    yield row("another list", lambda c: c.s.update(list=[3]), lambda c: c.s.update(list=[1, 2]))
    yield row("a tuple instead of a list", lambda c: c.s.update(list=(1, 2)))
    yield row("a value of a dict", lambda c: c.s["dict"].update(a=4), lambda c: c.s["dict"].update(a=1))
    yield row("a key added to a dict", lambda c: c.s["dict"].update(c=4), lambda c: (c.s["dict"].update(c=4), c.s["dict"].pop("c")))
    yield row("a key removed from a dict", lambda c: c.s["dict"].pop("a"))
    yield row("the order of a dict", lambda c: c.s["dict"].update(a=c.s["dict"].pop("a")))
    yield row("the order of an OrderedDict", lambda c: c.s["ordered"].move_to_end("a"), lambda c: c.s["ordered"].move_to_end("b"))
    yield row("a key of a defaultdict", lambda c: c.s["default"].clear(), lambda c: c.s["default"].update(a=1))
    yield row("the default of a defaultdict", lambda c: (c.s["default"].clear(), setattr(c.s["default"], "default_factory", lambda: 8)))
    yield row("a set", lambda c: c.s["set"].add(9), lambda c: c.s["set"].add(1))
    yield row("a tuple in a tuple", lambda c: c.s.update(tuple=(1, (5, 3))), lambda c: c.s.update(tuple=(1, (2, 3))))
    yield row("a dataclass field", lambda c: setattr(c.s["config"], "rate", 5), lambda c: setattr(c.s["config"], "shift", 5.0))
    yield row("a nested dict", lambda c: c.s["nested"]["x"][0].update(y=5), lambda c: c.s["nested"]["x"][0].update(y=1))
    yield row("a nested list", lambda c: c.s["nested"].update(x=[{"y": 5}]), lambda c: c.s["nested"].update(x=[{"y": 1}]))
    yield row("a string", lambda c: c.s.update(text="abcd"), lambda c: c.s.update(text="".join(("ab", "c"))))
    yield row("bytes", lambda c: c.s.update(bytes=b"abcd"), lambda c: c.s.update(bytes=bytes(bytearray(b"abc"))))
    yield row("None", lambda c: c.s.update(none=0), lambda c: c.s.update(none=None))
    yield row("a slice", lambda c: c.s.update(slice=slice(0, 1)), lambda c: c.s.update(slice=slice(0, 2)))
    yield row("a dtype", lambda c: c.s.update(dtype=torch.float64))
    yield row("a deque", lambda c: c.s["deque"].append(1), lambda c: (c.s["deque"].append(1), c.s["deque"].pop()), after=After.OTHERWISE)
    yield row("a container of a subclass", lambda c: c.s.update(list=type("L", (list,), {"__iter__": lambda self: iter((7,))})([1, 2])))


# ---- which objects are one


class Box:
    def __init__(self, k):
        self.k = k


def two(make, program, same):
    """A program of two arguments that are one object, or two."""

    def case():
        a, b = make(), make()
        return Case(program, a, a if same else b, X, a=a, b=b, make=make)

    return case


def become(same):
    def change(c):
        c.arguments = (c.a, c.a if same else c.b, X)

    return change


def others(same):
    def change(c):
        a, b = c.make(), c.make()
        c.arguments = (a, a if same else b, X)

    return change


def appended(a, b, x):
    a.append(1)
    return x + len(b)


def stored(a, b, x):
    a["k"] = 5
    return x + b["k"]


def attribute_set(a, b, x):
    a.k = 5
    return x + b.k


def tensor_changed(a, b, x):
    a.add_(1)
    return x + b.sum()


def module_changed(a, b, x):
    a.k = 5
    return b(x) + b.k


def added_to_set(a, b, x):
    a.add(9)
    return x + len(b)


def identical(a, b, x):
    return x + 1 if a is b else x - 1


def identity_in_list(a, b, x):
    return x + 1 if any(a is each for each in [b]) else x - 1


def module():
    made = torch.nn.Linear(3, 3)
    for p in made.parameters():
        torch.nn.init.ones_(p)
    made.k = 1
    return made


def aliases():
    for name, make, program in (
        ("lists", lambda: [1], appended),
        ("dicts", lambda: {"k": 1}, stored),
        ("sets", lambda: {1}, added_to_set),
        ("objects", lambda: Box(1), attribute_set),
        ("tensors", lambda: torch.ones(3), tensor_changed),
        ("modules", module, module_changed),
        ("lists by identity", lambda: [1], identical),
        ("dicts by identity", lambda: {"k": 1}, identical),
        ("objects by identity", lambda: Box(1), identical),
        ("tensors by identity", lambda: torch.ones(3), identical),
        ("modules by identity", module, identical),
        ("functions by identity", lambda: lambda: 1, identical),
        ("lists in a list", lambda: [1], identity_in_list),
        ("objects in a list", lambda: Box(1), identity_in_list),
    ):
        fresh = None if name.startswith("modules") else others  # another module is another program
        after = After.OTHERWISE if name == "sets" else After.MISS  # writes to sets run as written
        more = {"after": after, "repeatable": program not in (appended, tensor_changed)}
        yield Event(f"two {name} become one", two(make, program, False), become(True), fresh and fresh(False), **more)
        yield Event(f"one of {name} becomes two", two(make, program, True), become(False), fresh and fresh(True), **more)


def held_case():
    shared = [1]

    class Holder:
        def __init__(self):
            self.items = [1]
            self.other = [1]

    def program(holder, argument, x):
        holder.items.append(1)
        shared.append(1)
        return x + len(argument) + len(holder.other)

    holder = Holder()
    return Case(program, holder, [1, 2, 3], X, holder=holder, shared=shared)


def held_aliases():
    """Every call makes the lists longer, so the program is given new ones before each."""

    def arguments(change=lambda c: None):
        def make(c):
            c.holder.items, c.holder.other = [1], [1]
            c.shared[:] = [1]
            c.arguments = (c.holder, [1, 2, 3], X)
            change(c)

        return make

    def argument(value):
        return arguments(lambda c: setattr(c, "arguments", (c.holder, value(c), X)))

    def row(name, change):
        return Event(name, held_case, change, arguments(), repeatable=False)

    yield row("an argument becomes the list in an attribute", argument(lambda c: c.holder.items))
    yield row("an argument becomes the list in a cell", argument(lambda c: c.shared))
    yield row("an attribute becomes the list in another", arguments(lambda c: setattr(c.holder, "other", c.holder.items)))
    yield row("an attribute becomes the list in a cell", arguments(lambda c: setattr(c.holder, "other", c.shared)))
