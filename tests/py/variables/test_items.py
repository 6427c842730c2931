"""Subscripts: of tensors, sequences, dicts, user classes and classes."""

import collections

import pytest
import torch


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        slice(None),
        slice(0, 1),
        slice(None, None, 2),
        None,
        Ellipsis,
        (0, 1),
        (slice(None), 1),
        (Ellipsis, 0),
        (None, Ellipsis, slice(1, None)),
        [1, 0],
        ([0, 1], [1, 2]),
        True,
    ],
    ids=repr,
)
def test_tensor_index(check, x, index):
    def f(x):
        return x[index] + 1

    check(f, x)


def test_tensor_index_by_tensor_and_computed_slices(check, x):
    def f(x, rows, n):
        size = x.shape[1]
        return x[rows], x[:, n : size - 1], x[..., -n:], x[:, rows], x[x.shape[0] - 1]

    check(f, x, torch.tensor([1, 0]), 1)


def test_tensor_assignment(check, x):
    def f(x):
        y = x.clone()
        y[0] = 5
        y[:, 1] = x[:, 0]
        y[1, 2] += 3
        y[y.shape[0] - 1 :, 0] *= 2
        return y

    check(f, x)


def test_tensor_assignment_reaches_the_argument(check, x):
    def f(x):
        x[0, 0] = 7
        return x.sum()

    check(f, x)


def test_sequences(check, x):
    def f(x, items, pair):
        a = [*items, x]
        t = (*pair, 3)
        text = "hello"
        return (
            (a[0], a[-2], a[1:3], a[::-1][0], a[:], t[1:], t[::-1], t[-1], text[1], text[::2], range(10)[3], range(10)[2:5], b"ab"[0]),
            a[-1] + 1,
        )

    check(f, x, [1, 2, 3], (1, 2))


def test_list_assignment(check, x):
    def f(x, items):
        a = [0, 1, 2, 3, 4, 5]
        a[0] = x
        a[-1] = 9
        a[1:3] = [7, 7, 7]
        a[::2] = (10, 11, 12, 13)
        del a[1]
        del a[-2:]
        del a[::2]
        items[0] = x + 1
        items[1:] = []
        return a, items[0] * 2

    check(f, x, [1, 2, 3])


def test_dicts(check, x):
    def f(x, d):
        d["new"] = x + 1
        d["a"] = 3
        del d["b"]
        made = {1: "one", (1, 2): "pair", None: 0, "k": x, 1.5: 2}
        counts = collections.defaultdict(int)
        for letter in "abca":
            counts[letter] += 1
        lists = collections.defaultdict(list)
        lists["x"].append(x)
        return made[1], made[1.0], made[(1, 2)], made[None], made["k"] + 1, dict(counts), lists["x"][0] * 2, len(lists), len(d), d["new"]

    check(f, x, {"a": 1, "b": 2})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: [1][1],
        lambda: [1][-2],
        lambda: (1,)[3],
        lambda: [1]["a"],
        lambda: (1,)[None],
        lambda: "abc"[9],
        lambda: "abc"["a"],
        lambda: {"a": 1}["b"],
        lambda: {}[(1, "two")],
        lambda: {}[[]],
        lambda: {[]: 1},
        lambda: {(1, []): 1},
        lambda: {1, []},
        lambda: range(3)[5],
        lambda: {1}[0],
        lambda: [].__setitem__(0, 1),
        lambda: [][1:2].pop(),
        lambda: (lambda: 0)[0],
        lambda: int["a"],
        lambda: [1, 2, 3].__setitem__(slice(0, 3, 2), [1]),
    ],
)
def test_wrong_subscripts_raise_what_cpython_raises(check, x, wrong):
    def f(x):
        try:
            wrong()
        except Exception as error:
            return x + 1, type(error).__name__, error.args

    check(f, x)


class Missing(dict):
    def __missing__(self, key):
        return key * 2


class Grid:
    def __init__(self):
        self.cells = {}

    def __getitem__(self, key):
        if isinstance(key, slice):
            return (key.start, key.stop, key.step)
        return self.cells.get(key, 0)

    def __setitem__(self, key, value):
        self.cells[key] = value

    def __delitem__(self, key):
        del self.cells[key]


def test_user_subscripts(check, x):
    def f(x):
        g = Grid()
        g[1, 2] = x
        g["a"] = 1
        del g["a"]
        return g[1, 2] + 1, g["a"], g[1:2], g[:3]

    check(f, x)


def test_dict_subclass_with_missing(check, x):
    def f(x):
        d = Missing(a=1)
        d["b"] = x
        return d["a"], d["zz"], d["b"] + 1, len(d), "zz" in d, list(d)

    check(f, x)


Point = collections.namedtuple("Point", "x y")


def test_namedtuples(check, x):
    def f(x, p):
        q = Point(p.x + 1, y=p[1])
        a, b = q
        return x * a, q, q._replace(x=9), q._asdict(), q[0:1], q == (a, b), len(q), q + (1,), Point._fields

    check(f, x, Point(1, 2))


def test_sizes(check, x):
    def f(x):
        s = x.shape
        return (
            x.reshape(s[::-1]),
            s,
            s[0],
            s[-1:],
            s.numel(),
            len(s),
            s == (2, 3),
            tuple(s),
            list(s),
            s + (1,),
            s.index(3),
            2 in s,
            x.size(),
        )

    check(f, x)


def test_generic_aliases(check, x):
    def f(x):
        kind = list[int]
        return x + 1, kind

    check(f, x)


def test_length(check, x):
    def f(x):
        return x * len(x), (len([1, 2]), len((1,)), len({"a": 1}), len("abc"), len(range(7)), len({1, 2}), len({"a": 1}.items()))

    check(f, x)


def test_module_containers(check, x):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(3))
            self.named = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3)})
            self.chain = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            x = self.named["a"](x) if "a" in self.named else x
            x = self.chain[0](x) if len(self.chain) == 2 else x
            return self.layers[-1](x) + len(self.layers)

    net = Net()
    check(lambda x: net(x), x)
