"""Small programs of every kind: the same values, arguments and exceptions as eager, and captured in as many graphs as expected."""

import functools

import pytest
import torch
from comparing import compare

X = torch.arange(6.0).view(2, 3)


class Value:
    """Arithmetic, containers, calls and contexts by special methods."""

    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return Value(self.v + (other.v if isinstance(other, Value) else other))

    def __radd__(self, other):
        return self + other

    def __repr__(self):
        return f"Value({self.v})"

    def __getitem__(self, i):
        return self.v[i]

    def __len__(self):
        return len(self.v)

    def __iter__(self):
        return iter(self.v)

    def __call__(self, k):
        return self.v * k

    def __enter__(self):
        self.v = self.v + 1
        return self

    def __exit__(self, *exception):
        self.v = self.v * 2
        return True

    @property
    def double(self):
        return self.v * 2

    @staticmethod
    def make(v):
        return Value(v)

    @classmethod
    def plus_one(cls, v):
        return cls(v + 1)


def suppressing_context(x):
    p = Value(x)
    with p as q:
        q.v + 1
        raise ValueError
    return p.v


def generator_protocol(x):
    def g():
        try:
            r = yield x
            yield r * 2
        finally:
            pass

    it = g()
    a = next(it)
    b = it.send(a + 1)
    return a, b, list(it)


def nested_closures(x):
    def a(y):
        def b(z):
            return z + y + x

        return b(y) * 2

    return a(x)


def recursion(x, n):
    return x if n == 0 else recursion(x + n, n - 1)


ONE_GRAPH = {
    "dict comprehension": (lambda x: {k: v * 2 for k, v in {"a": x, "b": x + 1}.items()}, (X,)),
    "zip and enumerate": (lambda x: [a + b * i for i, (a, b) in enumerate(zip(x, x * 2))], (X,)),
    "sets": (lambda x: len({1, 2, 3} & {2, 3}) + x.sum(), (X,)),
    "nested closures": (nested_closures, (X,)),
    "recursion, 200 deep": (recursion, (X, 200)),
    "special methods": (lambda x: (Value(x) + Value(x) + 1, 1 + Value(x), Value(x)[0], len(Value(x)), list(Value(x)), Value(x)(3)), (X,)),
    "property, static and class methods": (lambda x: (Value(x).double, Value.make(x), Value.plus_one(x)), (X,)),
    "context that suppresses": (suppressing_context, (X,)),
    "generator protocol": (generator_protocol, (X,)),
    "map, filter, reversed": (lambda x: (list(map(lambda v: v + 1, [x, x])), list(filter(None, [0, 1])), list(reversed([1, 2]))), (X,)),
    "partial": (lambda x: functools.partial(lambda a, b, c=0: a * b + c, x, c=2)(3), (X,)),
    "in-place and views": (lambda x: (x.add_(1), x.t(), x.view(-1).mul_(2))[2], (X,)),
    "out argument": (lambda x, o: torch.add(x, 1, out=o), (X, torch.zeros(2, 3))),
    "where and cumsum": (lambda x: torch.where(x > 2, x, -x).cumsum(0), (X,)),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), (X,)),
    "stack and unbind": (lambda x: torch.stack([x, x + 1]).sum(0).unbind(1), (X,)),
    "factories": (lambda x: torch.arange(x.shape[0]).float() + torch.linspace(0, 1, 2) + torch.full((2,), 3.0), (X,)),
    "complex scalar": (lambda x: (1 + 2j) * x, (X,)),
    "strides": (lambda x: x.reshape(3, -1).permute(1, 0).contiguous().stride(), (X,)),
    "default that is a function": (lambda x, f=lambda v: v * 2: f(x), (X,)),
    "walrus": (lambda x: (y := x + 1) + y, (X,)),
    "split": (lambda x: [a * 2 for a in x.split([1, 2], 1)], (X,)),
}


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph(name):
    function, arguments = ONE_GRAPH[name]
    captured = compare(function, arguments)
    assert len(captured.counter.graphs) == 1 and captured.counter.operators > 0 and captured.reasons == []


NO_GRAPH = {
    "sorted with a key": (lambda x: sorted([3, 1, 2], key=lambda v: -v), (X,)),
    "formatted strings": (lambda x: f"{x.shape} {x.dtype} {x.dim():>3} {tuple(x.shape)!r}", (X,)),
    "dict from outside": (lambda x, d: [k for k in d if d[k] is not None], (X, {"a": 1, "b": None})),
    "chained comparison": (lambda x, k: 0 < k < 5 <= 9, (X, 3)),
    "every kind of argument": (lambda x: (lambda a, *b, c=1, **d: (a, b, c, d))(*[x, 1, 2], **{"c": 3, "e": 4}), (X,)),
    "types": (lambda x: (isinstance(x, torch.Tensor), type(x) is torch.Tensor, hasattr(x, "foo"), callable(len)), (X,)),
    "list methods": (lambda x, v: (v.append(x), v.extend([1, 2]), v.pop(0), v.insert(0, 5), v)[4], (X, [1])),
    "dict methods": (lambda x, d: (d.update(a=1), d.setdefault("q", []).append(x), d.pop("z", None), d)[3], (X, {"z": 1})),
    "shapes": (lambda x: x.shape == torch.Size([2, 3]) and x.size(1) * x.numel(), (X,)),
}


@pytest.mark.parametrize("name", NO_GRAPH)
def test_python_work_needs_no_graph(name):
    function, arguments = NO_GRAPH[name]
    captured = compare(function, arguments)
    assert captured.counter.graphs == [] and captured.reasons == []


RAISES = {
    "shapes that do not match": (lambda x: x + torch.ones(5), "operator_raised"),
    "index of a list": (lambda x: [1][3], "uncaught_exception"),
    "key of a dict": (lambda x: {}["k"], "uncaught_exception"),
    "conversion": (lambda x: int("z"), "uncaught_exception"),
    "attribute": (lambda x: x.nope, "uncaught_exception"),
    "name": (lambda x: undefined_name, "uncaught_exception"),  # noqa: F821
}


@pytest.mark.parametrize("name", RAISES)
def test_what_eager_raises(name):
    function, reason = RAISES[name]
    captured = compare(function, (X,))
    assert captured.reasons == [reason]


DATA_DEPENDENT = {
    "item": (lambda x: x.sum().item() + 1, "data_dependent_operator"),
    "tolist": (lambda x: x.tolist(), "data_dependent_operator"),
    "numpy": (lambda x: x.numpy().sum(), "data_dependent_operator"),
    "mask": (lambda x: x[x > 2] + 1, "data_dependent_operator"),
    "branch": (lambda x: bool(x.sum() > 0) and not (x.mean() < 0), "data_dependent_branch"),
    "branch over a statement": (lambda x: x + 1 if x.sum() > 3 else x - 1, "data_dependent_branch"),
}


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_values_end_the_graph(name):
    function, reason = DATA_DEPENDENT[name]
    captured = compare(function, (X,), (X - 10,))
    assert reason in captured.reasons
