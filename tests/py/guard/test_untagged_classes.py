"""Classes without a version tag: CPython has run out of numbers. Their attributes are looked up in every check, and nothing is lost.

How to get there without making four thousand million tags: a class that is not marked as ready is given none, and a class below it gets
one that no write to it takes away again, which must not be trusted either.
"""

import ctypes

import pytest
import torch

import pellucid

FLAGS_AT, TAG_AT = 168, 384  # tp_flags, tp_version_tag
READY, VALID = 1 << 12, 1 << 19


def flags(cls):
    return ctypes.c_ulong.from_address(id(cls) + FLAGS_AT)


def tag(cls):
    return ctypes.c_uint.from_address(id(cls) + TAG_AT).value


@pytest.fixture
def untag():
    """Takes the tag of a class away for good; it is an ordinary class again afterwards."""
    changed = []

    def take(cls):
        assert flags(cls).value == cls.__flags__ and cls.__flags__ & READY
        flags(cls).value &= ~READY
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))
        changed.append(cls)
        return cls

    yield take
    for cls in changed:
        flags(cls).value |= READY
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


def make_classes():
    class Base:
        rate = 2

        def method(self, x):
            return x * self.rate + self.shift

        @property
        def shift(self):
            return self.k

        @classmethod
        def made(cls, x):
            return x + cls.rate

        @staticmethod
        def free(x):
            return x + 1

    class Middle(Base):
        pass

    class Leaf(Middle):
        def __init__(self):
            self.k = 3

        def __call__(self, x):
            return x

    return Base, Middle, Leaf


CHANGES = {
    "a value": ("rate", 5),
    "a method": ("method", lambda self, x: x * 9),
    "a property": ("shift", property(lambda self: 9)),
    "a classmethod": ("made", classmethod(lambda cls, x: x * 9)),
    "a staticmethod": ("free", staticmethod(lambda x: x * 9)),
    "a property over an attribute": ("k", property(lambda self: 9)),
    "__call__": ("__call__", lambda self, x: x * 9),
    "__getattribute__": ("__getattribute__", lambda self, name: 7 if name == "rate" else object.__getattribute__(self, name)),
}


class Counted:
    def __init__(self, function):
        self.graphs = 0
        self.function = function
        self.wrapped = pellucid.optimize(function, backend=self.backend, fullgraph=True)

    def backend(self, gm, inputs):
        self.graphs += 1
        return gm.forward

    def __call__(self, *arguments):
        actual = self.wrapped(*arguments)
        # Running the program as written moves tags that no write moved. Here a check is the last that looked before the write.
        self.wrapped(*arguments)
        self.last = actual, arguments
        return self.graphs

    def compare(self):
        actual, arguments = self.last
        expected = self.function(*arguments)
        assert torch.equal(actual, expected), (actual, expected)


@pytest.mark.parametrize("known", [False, True], ids=["an argument", "a known object"])
@pytest.mark.parametrize("changed", [0, 1, 2], ids=["base", "middle", "leaf"])
@pytest.mark.parametrize("untagged", [0, 1, 2], ids=["no tag from the base on", "no tag from the middle on", "no tag for the leaf"])
@pytest.mark.parametrize("change", CHANGES)
def test_writes_to_classes_are_noticed(untag, change, untagged, changed, known):
    classes = make_classes()
    untag(classes[untagged])
    o = classes[2]()
    x = torch.arange(3.0)

    def use(o, x):
        return o(o.free(o.made(o.method(x)))) + o.k

    call = Counted((lambda x: use(o, x)) if known else use)
    arguments = (x,) if known else (o, x)
    assert call(*arguments) == 1
    assert tag(classes[untagged]) == 0 and not any(cls.__flags__ & VALID for cls in classes[untagged:])
    for _ in range(3):
        assert call(*arguments) == 1
    for cls in classes:  # not of ours
        cls.unread = 1
        assert call(*arguments) == 1
    name, value = CHANGES[change]
    setattr(classes[changed], name, value)
    hidden = any(name in vars(cls) for cls in classes[changed + 1 :])
    assert call(*arguments) == (1 if hidden else 2)
    assert call(*arguments) == (1 if hidden else 2)
    setattr(classes[changed], "unread", 2)
    assert call(*arguments) == (1 if hidden else 2)
    call.compare()


def test_modules(untag):
    class Net(torch.nn.Module):
        rate = 2

        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.a(x) * self.rate

    class Derived(Net):
        pass

    untag(Net)
    net = Derived()
    x = torch.ones(2, 3)
    call = Counted(lambda x: net(x))
    assert [call(x) for _ in range(3)] == [1, 1, 1]
    Net.rate = 3
    assert [call(x) for _ in range(3)] == [2, 2, 2]
    net.rate = 4
    assert call(x) == 3
    Derived.forward = lambda self, x: self.a(x, x) - 1 if self.a is torch.add else self.a(x) - 2
    assert call(x) == 4
    Derived.__bases__ = (type("Other", (Net,), {"rate": 7, "a": property(lambda self: torch.add)}),)
    assert call(x) == 5
    call.compare()


def test_a_metaclass_without_a_tag(untag):
    class Meta(type):
        rate = 2

    class Config(metaclass=Meta):
        pass

    untag(Meta)
    call = Counted(lambda x: x * Config.rate)
    x = torch.ones(2)
    assert [call(x) for _ in range(3)] == [1, 1, 1]
    Meta.rate = 3
    assert [call(x) for _ in range(3)] == [2, 2, 2]
    Config.rate = 4
    assert call(x) == 3
    call.compare()
