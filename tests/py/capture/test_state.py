"""Values and what programs do to them: in-place work, views, out=, aliases, records, enums, numpy, sizes."""

import collections
import dataclasses
import enum
import math
import typing

import numpy
import pytest
import torch
from harness import Call, check, once, ones, pair, program, rand

import pellucid

# ---- in place, views, out=


def inplace_operators(x):
    y = x * 1
    y += 1
    y -= 0.5
    y *= 3
    y /= 2
    y **= 2
    y[0] = 7
    y[:, 1] = y[:, 0]
    y[y > 10] = -1
    y[..., -1] += 1
    return y, y._version


def inplace_on_an_argument(x):
    x.add_(1).mul_(2)
    x[0, 0] = 5
    x.t()[1].zero_()
    return x.sum(), x


def views_of_an_argument(x):
    v, w = x.view(-1), x[1]
    w += 1
    v[0] = 9
    return v, w, x.t(), x.unsqueeze(0), x[:, ::2], x.diagonal()


def views_before_writes(x):
    y = x.clone()
    rows = list(y)
    y.add_(1)
    a, b = y.chunk(2)
    a.copy_(b)
    return rows, y, a, b


def out_arguments(x):
    out = torch.empty(0)
    torch.add(x, 1, out=out)
    other = torch.zeros_like(x)
    same = torch.mul(x, 2, out=other)
    return out, other, same is other, torch.sin(x, out=x), x


def data_and_detach(x):
    d = x.detach()
    d += 1
    y = x.data
    y.mul_(2)
    return x, d, y


def resize_and_set(x):
    y = x.clone()
    y.data = torch.zeros(4)
    return y, y.shape


def fill_and_masks(x):
    y = torch.zeros_like(x)
    y.masked_fill_(x > 0, 1.5)
    y.index_fill_(0, torch.tensor([0]), 3)
    y.scatter_(1, torch.tensor([[0], [1]]), 7.0)
    y.clamp_(min=-1)
    return y


def returns_its_argument(x):
    return x, x, (x,), {"x": x}


def expanded(x):
    y = x[:1].expand(4, -1)
    return y, y.is_contiguous(), y.stride(), y.contiguous().stride()


@pytest.mark.parametrize(
    "fn",
    [
        inplace_operators,
        inplace_on_an_argument,
        views_of_an_argument,
        views_before_writes,
        out_arguments,
        data_and_detach,
        resize_and_set,
        fill_and_masks,
        returns_its_argument,
        expanded,
    ],
    ids=lambda fn: fn.__name__,
)
def test_values_in_place(fn):
    check(fn, rand(2, 3), rand(2, 3), graphs="any")


def test_inplace_with_gradients():
    def fn(x):
        y = x * 2
        y += x
        z = y[0]
        z.mul_(3)
        y[1, 1] = x[0, 0]
        return y, z

    check(fn, rand(2, 3, grad=True))

    def leaf(x):
        x.add_(1)

    check(leaf, rand(2, 3, grad=True), graphs="any")

    def needed(x):
        y = x.exp()
        y.add_(1)
        return y.sum()

    check(needed, rand(2, 3, grad=True))


def aliased(kind):
    def make():
        base = torch.arange(12.0).reshape(3, 4)
        if kind == "same":
            return base, base
        if kind == "view":
            return base, base[1:]
        if kind == "two views":
            return base[:2], base[1:]
        if kind == "transposed":
            return base[:, :3], base[:, :3].t()
        if kind == "apart":
            return base, torch.arange(12.0).reshape(3, 4) + 100
        raise AssertionError

    return make


def writes_one_reads_other(a, b):
    a.add_(10)
    c = b * 2
    b[0] = 0
    return c, a + 1, a is b, a.sum()


KINDS = ("same", "view", "two views", "transposed", "apart")


@pytest.mark.parametrize("kind", KINDS)
def test_aliased_arguments(kind):
    check(writes_one_reads_other, aliased(kind))


def test_aliased_arguments_in_turn():
    check(writes_one_reads_other, *(aliased(kind) for kind in (*KINDS, *reversed(KINDS))), stable=False)


def test_aliased_arguments_and_what_holds_them():
    def fn(x, items, table):
        items[0].add_(1)
        table["x"] = x * 2
        items.append(x)
        return items[0] is x, table["y"] is items[0]

    def make(same):
        def maker():
            x = torch.ones(2)
            other = x if same else torch.ones(2)
            return x, [other], {"y": other}

        return maker

    check(fn, make(True), make(False), graphs=2)


# ---- records


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    k: int = 2
    tags: list = dataclasses.field(default_factory=list)

    def moved(self, by):
        return dataclasses.replace(self, x=self.x + by)


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    k: int
    name: str = "n"


@dataclasses.dataclass
class WithInit(Point):
    total: typing.Any = dataclasses.field(init=False, default=None)

    def __post_init__(self):
        self.total = self.x.sum() * self.k


Pair = collections.namedtuple("Pair", "a b", defaults=(3,))


class Typed(typing.NamedTuple):
    x: torch.Tensor
    k: int = 1

    def scaled(self):
        return self._replace(x=self.x * self.k)


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    def apply(self, x):
        return x * self.value


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Flags(enum.Flag):
    A = enum.auto()
    B = enum.auto()


def test_dataclasses():
    def fn(p):
        p.tags.append(p.k)
        q = p.moved(1)
        p.k += 1
        r = WithInit(p.x, 4)
        return q, r, r.total, dataclasses.is_dataclass(p), [f.name for f in dataclasses.fields(p)], Point(p.x).tags

    check(fn, lambda: Point(torch.ones(2)), lambda: Point(torch.ones(2), 5, [1]), graphs="any")


def test_frozen_dataclasses():
    def fn(x, f):
        try:
            f.k = 3
        except dataclasses.FrozenInstanceError as error:
            x = x + 1
        return x * f.k, f == Frozen(2), f < Frozen(9), hash(f) == hash(Frozen(f.k)), Frozen(f.k + 1, name="z")

    check(fn, lambda: (torch.ones(2), Frozen(2)), lambda: (torch.ones(2), Frozen(3)))


def test_dataclass_in_and_out():
    def fn(p):
        return Point(p.x * p.k, p.k, [*p.tags, p.x])

    once(fn, lambda: Point(torch.ones(2)), lambda: Point(torch.ones(2), 3))


def test_namedtuples():
    def fn(p, t):
        a, b = p
        q = Pair(a + 1)
        s = t.scaled()
        return q, p._replace(b=9), p._asdict(), s, s.x, p == (a, b), len(p), p[1:], Pair._fields, isinstance(p, tuple), Pair._make([a, a])

    check(fn, lambda: (Pair(torch.ones(2), 2), Typed(torch.ones(2), 4)), backward=False, graphs="any")

    def simple(p):
        return Pair(p.a * p.b, p.b + 1)

    once(simple, lambda: (Pair(torch.ones(2)),), lambda: (Pair(torch.ones(2), 7),))


def test_structseq_results():
    def fn(x):
        m = x.max(dim=1)
        values, indices = torch.sort(x)
        return m, m.values, m.indices + 1, values, torch.topk(x, 2), x.min(0)[0]

    check(fn, rand(2, 3))


def test_enums():
    def fn(x, c, level, flags):
        if c is Color.RED:
            x = x + 1
        elif c == Color.BLUE:
            x = x - 1
        x = c.apply(x) * level
        return x, c.name, level > Level.LOW, Color(2), Color["RED"], flags & Flags.A, Flags.B in flags, {c: x}[c], [e.value for e in Color]

    def make(c, level, flags):
        return lambda: (torch.ones(2), c, level, flags)

    check(fn, make(Color.RED, Level.LOW, Flags.A), make(Color.BLUE, Level.HIGH, Flags.A | Flags.B), graphs="any")


def test_numpy_scalars_and_arrays():
    def scalar(x, k):
        return x * k, k + 1, k, type(k).__name__, float(k) * 2

    makers = [
        (lambda k: lambda: (torch.ones(2), k))(k)
        for k in (numpy.float64(1.5), numpy.int64(2), numpy.float32(0.5), numpy.bool_(True), numpy.float64(2.5))
    ]
    check(scalar, *makers, graphs="any")

    def array(x, a):
        t = torch.from_numpy(a)
        a[0] = 5
        return x + t, a.shape, a.sum(), x.numpy() * 2

    check(array, lambda: (torch.ones(3), numpy.arange(3.0)), graphs="any")


def test_sizes():
    def fn(x):
        s = x.shape
        n = s.numel()
        b, *rest = s
        y = x.reshape(s[0] * s[1], -1) if len(s) > 2 else x.reshape(-1)
        z = torch.zeros(s + (1,)) + torch.ones(*s, 1) + x.new_zeros(s)[..., None]
        return y, z, n, rest, s[1:], s == (2, 3), tuple(s), list(s), x.size(), x.size(-1), s[::-1], type(s[1:]).__name__, x.shape[0] // 2

    check(fn, ones(2, 3), ones(2, 3, 4), graphs=2)


def test_dtype_and_device_values():
    def fn(x):
        d = x.dtype
        table = {torch.float32: 1, torch.float64: 2}
        y = x.to(torch.float64) if table[d] == 1 else x.float()
        return y * table[d], d.is_floating_point, str(d), x.device, x.device.type, d == torch.float32, torch.finfo(d).max, x.type_as(y)

    check(fn, ones(2), ones(2, dtype=torch.double), graphs=2)


def test_python_types_as_dtypes():
    def fn(x):
        y = torch.zeros(2, dtype=float) + x.to(int)
        return y, x.to(dtype=bool), torch.ones(2, dtype=complex), torch.arange(3, dtype=int)

    check(fn, ones(2), graphs="any")


def test_floats_keep_their_bits():
    def fn(x, k):
        return x * k, k, -k, math.copysign(1, k), k == k, [k] == [k]

    values = (0.0, -0.0, float("nan"), float("inf"), 1e-320, True, 1, 1.0, 10**30)
    check(fn, *((lambda k: lambda: (torch.ones(2), k))(k) for k in values), stable=False, graphs="any")


def test_complex_and_bool_values():
    def fn(x, k, flag):
        y = x * k if flag else x + k
        return y.abs(), k.real, k.conjugate() if isinstance(k, complex) else k, not flag, flag + 1, flag & True, flag is True

    check(fn, *((lambda k, f: lambda: (torch.ones(2), k, f))(k, f) for k in (1 + 2j, 2, 0.5) for f in (True, False)))


def test_strings():
    def fn(x, mode):
        key = f"{mode!r:>8}{x.shape[0]:03d}{1.5:.2f}"
        parts = mode.split("-")
        return (
            {key: x * len(parts)},
            mode.upper(),
            "-".join(reversed(parts)),
            mode[::-1],
            "%s %d" % (mode, 3),
            mode.encode(),
            mode in "a-b-c",
        )

    check(fn, lambda: (torch.ones(2), "a-b"), lambda: (torch.ones(2), "größe"))


def test_containers_are_the_caller_s_own():
    def fn(x, items, table, names, queue):
        items.append(x)
        items.reverse()
        table["new"] = items
        table.pop("old", None)
        names.add("z")
        names.discard("a")
        queue.appendleft(x + 1)
        queue.rotate(1)
        queue.pop()
        return items, table["new"] is items, names, len(queue)

    check(fn, lambda: (torch.ones(2), [1], {"old": 1}, {"a", "b"}, collections.deque([1, 2], maxlen=4)), graphs="any")


def test_ordered_and_default_dicts():
    def fn(x, ordered, default, counter):
        ordered.move_to_end("a")
        default["k"].append(x)
        default["m"]
        counter["x"] += 2
        return list(ordered), ordered.popitem(last=False), dict(default), counter.most_common(1), x + counter["x"]

    def make():
        ordered = collections.OrderedDict(a=1, b=2)
        return torch.ones(2), ordered, collections.defaultdict(list), collections.Counter("xyx")

    check(fn, make, graphs="any")


def test_containers_that_hold_themselves():
    def fn(x):
        items = [x + 1]
        items.append(items)
        table = {"items": items}
        table["table"] = table
        return items, table

    check(fn, ones(2), backward=False)


class Node:
    __slots__ = ("value", "next")

    def __init__(self, value, next=None):
        self.value, self.next = value, next


def test_slots_and_linked_objects():
    def fn(node):
        total = 0
        at = node
        while at is not None:
            total = total + at.value
            at.value = total * 1
            at = at.next
        node.next = Node(total, node)
        return total

    check(fn, lambda: Node(torch.ones(2), Node(torch.ones(2))), lambda: Node(torch.ones(2)), backward=False, graphs=2)


class Meter:
    total = 0

    def __init__(self):
        self._t, self.log = torch.zeros(2), []

    @property
    def t(self):
        self.log.append("get")
        return self._t

    @t.setter
    def t(self, value):
        self.log.append("set")
        self._t = value

    def __getattr__(self, name):
        if name.startswith("auto_"):
            return len(name)
        raise AttributeError(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if name == "counted":
            type(self).total += 1

    def __len__(self):
        return 3

    def __contains__(self, item):
        return item == 1

    def __getitem__(self, key):
        return self._t[key] if isinstance(key, int) else key

    def __setitem__(self, key, value):
        self.log.append((key, value))

    def __iadd__(self, other):
        self._t = self._t + other
        return self

    def __call__(self, *args, **kwargs):
        return self._t + len(args) + len(kwargs)


@program
def meter_program():
    class Own(Meter):
        pass

    meter = Own()

    def fn(x):
        nonlocal meter
        meter.t = meter.t + x
        meter.counted = 1
        meter["k"] = 2
        meter += 1
        y = meter[0] + meter(1, a=2) + meter.auto_name + len(meter)
        del meter.counted
        return y, meter[1:2], 1 in meter, hasattr(meter, "nothing"), bool(meter), Own.total

    return fn, meter


def test_properties_and_special_methods():
    check(meter_program, ones(2), ones(2), graphs="any", stable=False)


class Plain:
    kind = "class"

    def __init__(self):
        self.a, self.b = 1, 2


class Guarded(Plain):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        object.__delattr__(self, name)


def deleting(cls):
    def make():
        old = cls()

        def fn(x):
            new = cls()
            for thing in (old, new):
                thing.c = x + 1
                del thing.c
                del thing.a
                thing.d = 5
                thing.a = x * 2
                thing.kind = "own"
                del thing.kind
                del thing.b
            return new, list(vars(new)), list(vars(old)), hasattr(old, "b"), old.kind

        return fn, old

    make.__name__ = cls.__name__
    return program(make)


@pytest.mark.parametrize("cls", [Plain, Guarded], ids=lambda cls: cls.__name__)
def test_deleted_attributes(cls):
    check(deleting(cls), ones(2), graphs="any", repeat=1)


def test_keyword_containers_are_fresh():
    def fn(x, *args, **kwargs):
        kwargs["k"] = args
        args += (x,)
        return kwargs, args

    shared = {"a": 1}
    wrapper = pellucid.optimize(fn, backend=lambda gm, inputs: gm.forward)
    for _ in range(2):
        first, _ = wrapper(torch.ones(1) + 0, 1, **shared)
        assert shared == {"a": 1} and first is not shared
    check(fn, lambda: Call(torch.ones(1), 1, 2, a=3), graphs="any")


def test_tensor_attributes():
    def fn(x):
        x.tag = "seen"
        y = x + 1
        y.tag = [x.tag, y.shape]
        return y, getattr(y, "tag"), hasattr(x, "nothing"), x.grad, y.is_leaf, y.requires_grad, x.ndim, x.T, x.data_ptr() == x.data_ptr()

    check(fn, ones(2, 3), graphs="any")


def test_requires_grad_and_hooks():
    def fn(x):
        x.requires_grad_()
        y = x * 2
        seen = []
        y.register_hook(lambda grad: grad * 10)
        y.sum().backward()
        g = x.grad * 1
        x.grad = None
        return g, x.requires_grad, torch.autograd.grad((x * 3).sum(), x)

    check(fn, ones(2), graphs="any")


def test_random_numbers():
    def fn(x):
        torch.manual_seed(4)
        y = torch.rand(2) + torch.nn.functional.dropout(x, 0.5) + torch.randn_like(x)
        state = torch.get_rng_state()
        a = torch.randint(10, (2,))
        torch.set_rng_state(state)
        return y, a, torch.randint(10, (2,)), torch.randperm(4)

    check(fn, ones(2), graphs="any")

    def plain(x):
        return torch.rand_like(x) + torch.bernoulli(torch.full_like(x, 0.5)) + x.clone().normal_()

    once(plain, ones(2))


def test_tensors_made_from_python_values():
    def fn(x, k):
        t = torch.tensor([1, k, 3])
        u = torch.tensor([[1.0, k], [x.shape[0], 2]])
        return t, u, torch.as_tensor(k), torch.full((2,), k), torch.arange(k), torch.linspace(0, k, 3), x.new_tensor([k]), t.dtype

    check(fn, lambda: (torch.ones(2), 2), lambda: (torch.ones(2), 5), graphs="any")


def test_pairs_of_everything():
    def fn(x, y):
        return x == y, (x < y).any(), x.equal(y), torch.allclose(x, x), bool((x == x).all()), [x, y].index(y) if x is y else 0

    check(fn, pair(2), graphs="any")
