"""Idioms of Python and PyTorch in one line each: what they return and leave behind, with and without gradients."""

import collections
import contextlib
import copy
import functools
import itertools
import operator
import random
import sys
import types
import weakref

import pytest
import torch
from harness import check, ones, rand


def indexing(x):
    s = slice(0, 1)
    return x[s], x[None, ..., s], x[[0, 1]], x[torch.tensor([True, False])], x[x > 0]


def tensors_as_keys(x):
    d = {}
    d[x] = 1
    d[2] = x
    return len(d), d[x], x in d


def comparisons(x):
    return [x, 1].count(1), (1, x)[0], [1, 2] == [1, 2], {"a": 1} == {"a": 1}


def random_objects(x):
    r = random.Random(3)
    return x * r.random(), random.choice


def copies(x):
    c = copy.copy([x, [x]])
    d = copy.deepcopy({"k": [1, x]})
    return c, d


def iterators(x):
    it = itertools.count(3)
    return x * next(it) + next(it), list(itertools.islice(it, 2)), list(itertools.chain([1], [x]))


def operator_functions(x):
    f = functools.reduce(operator.add, [x, x, 1])
    return f, operator.itemgetter(1)([1, x]), operator.attrgetter("shape")(x)


def weak_references(x):
    w = weakref.ref(x)
    return w() is x, x + 1


def namespaces(x):
    ns = types.SimpleNamespace(a=x, b=2)
    ns.c = ns.a * ns.b
    return ns, vars(ns)


def exit_stacks(x):
    with contextlib.ExitStack() as st:
        st.enter_context(torch.no_grad())
        y = x * 2
    return y, torch.is_grad_enabled()


def local_classes(x):
    class L:
        v = 3

        def m(self):
            return x * self.v

    return L().m(), L.__name__


def tensor_attributes(x):
    x.k = [1]
    x.k.append(2)
    del x.k
    return hasattr(x, "k"), x + 1


def local_generators(x):
    def g():
        y = yield x
        yield y * 2

    q = g()
    a = next(q)
    return a, q.send(x + 1)


def exception_state(x):
    try:
        raise KeyError(x)
    except KeyError as e:
        return e.args[0] + 1, sys.exc_info()[0]


def tensors_as_numbers(x):
    t = torch.tensor(3)
    return [1, 2, 3, 4][t], range(10)[t], x.expand(t, 2, 2) if x.dim() == 2 else x, int(t), f"{t}"


def augmented_lists(x):
    a = b = [x]
    a += [1]
    c = (a, b)
    c[0].append(3)
    return a is b, c


def sets(x):
    s = {1, 2}
    s |= {3}
    f = frozenset(s)
    return x * len(s), sorted(f), s - {1}, s & {1}, f


def deques(x):
    q = collections.deque(maxlen=2)
    for i in range(4):
        q.append(x + i)
    return list(q), q[0], q


def augmented_arguments(x):
    y = x
    y += 1
    del y
    return x


def slice_assignment(x):
    out = []
    for i in reversed(range(3)):
        out.insert(0, x * i)
    out[1:2] = [1, 2]
    del out[::2]
    return out


def conversions(x):
    return x.numpy().sum(), x.tolist(), x.cpu() is x, x.to("cpu") is x, x.contiguous() is x


def texts(x):
    return "%s" % (x.shape,), f"{x.dtype}", str(x.shape), repr(x.shape), f"{x.shape[0]:>4}", str(x.device)


def deleted_globals(x):
    global MADE_HERE
    try:
        del MADE_HERE
    except NameError:
        pass
    MADE_HERE = x + 1
    return MADE_HERE * 2


def overlapping_writes(x):
    x[0] = x[1]
    x[:, 0] = x[:, 1] + x[0]
    a, b = x
    a.add_(b)
    return x, a


def versions(x):
    v = x.view(-1)
    v.fill_(3)
    return x.storage_offset(), x._version, v._base is x


def inplace_views(x):
    y = torch.empty_like(x).copy_(x)
    y.unsqueeze_(0)
    y.t_() if y.dim() == 2 else y.transpose_(0, 1)
    return y, y.shape


def parameters_made_inside(x):
    with torch.enable_grad():
        p = torch.nn.Parameter(x.clone())
        (p * 2).sum().backward()
    return p.grad, p


class Registering:
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.registered = len(kwargs)


def subclass_hooks(x):
    class Made(Registering):
        pass

    return x * (Made.registered + 2), Made.__mro__[1] is Registering


PROGRAMS = [
    subclass_hooks,
    indexing,
    tensors_as_keys,
    comparisons,
    random_objects,
    copies,
    iterators,
    operator_functions,
    weak_references,
    namespaces,
    exit_stacks,
    local_classes,
    tensor_attributes,
    local_generators,
    exception_state,
    tensors_as_numbers,
    augmented_lists,
    sets,
    deques,
    augmented_arguments,
    slice_assignment,
    conversions,
    texts,
    deleted_globals,
    overlapping_writes,
    versions,
    inplace_views,
    parameters_made_inside,
]


@pytest.mark.parametrize("maker", [ones(2, 2), rand(2, 2, grad=True)], ids=["plain", "grad"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_idioms(fn, maker):
    check(fn, maker, graphs="any", stable=False)
