"""Programs whose compiled forms are written down and run: each is a function, and the arguments of its calls."""

import contextlib

import torch

SCALE = 3.0
TABLE = {"k": 2}


def helper(x, by=2):
    return x * by


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def defaults(x, y=2, *rest, key=3, **named):
    return x * y + key + len(rest) + sum(named.values())


def prints(x):
    y = helper(x) * SCALE
    print("between", end="")
    return y + TABLE["k"]


def loops(x, n):
    for i in range(n):
        x = x + i
        if x.sum() > 3:
            x = x - 1
    return x


def größe(länge):
    breite = länge * 2
    return breite.sum() + länge


def containers(x, items):
    items.append(x + 1)
    return {"first": items[0], "all": [x, *items]}, x.shape[0]


def with_no_grad(x):
    with torch.no_grad():
        y = x * 2
        print(end="")
        z = y + x
    return z + x


def breaks_in_try(x):
    try:
        y = x * 2
        print(end="")
        y = y + 1
    finally:
        x = x + 1
    return x + y


def breaks_with_values_on_the_stack(x):
    return [x + 1, str(print(end="")), x * 2]


def inlines(x):
    return inner(x) + 1


def inner(x):
    y = x * 2
    print(end="")
    return y * 3


def comprehension(x):
    return [x * i for i in range(3)], sum(v for v in (1, 2))


def makes_functions(x):
    def inside(v, w=x):
        return v + w

    return inside(x) * (lambda q: q + 1)(x)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("offset", torch.ones(3))
        self.times = 2

    def forward(self, x):
        x = self.linear(x) * self.times
        if x.sum() > 100:
            return x
        return x + self.offset


class Breaks(Model):
    def forward(self, x):
        x = self.linear(x)
        print(end="")
        return self.linear(x) + self.offset


class Holder:
    def __init__(self):
        self.factor = 4

    def method(self, x, by=1):
        return x * self.factor + by


def closing_over(k):
    def closure(x):
        y = x + k
        return y * k

    return closure


def closure_with_break(k):
    def closure(x):
        y = x + k
        print(end="")
        return y * k

    return closure


def a(n=10, shift=0.0, grad=False):
    made = torch.linspace(-1, 1, n) + shift
    return made.requires_grad_(grad)


def programs():
    """name -> (callable, argument lists of its calls)"""
    torch.manual_seed(0)
    holder = Holder()
    calls = [(a(), a(shift=2.0)), (a(), a(shift=-2.0)), (a(11), a(11, 2.0)), (a(12, grad=True), a(12))]
    return {
        "toy_example": (toy_example, calls),
        "defaults": (defaults, [(a(),), (a(), 3, 4)]),
        "prints": (prints, [(a(),), (a(5),)]),
        "loops": (loops, [(a(), 3)]),
        "größe": (größe, [(a(),)]),
        "containers": (containers, [(a(), [a()])]),
        "with_no_grad": (with_no_grad, [(a(grad=True),)]),
        "breaks_in_try": (breaks_in_try, [(a(),)]),
        "breaks_with_values_on_the_stack": (breaks_with_values_on_the_stack, [(a(),)]),
        "inlines": (inlines, [(a(),)]),
        "comprehension": (comprehension, [(a(),)]),
        "makes_functions": (makes_functions, [(a(),)]),
        "lambda": (lambda x, y=2: x * y + SCALE, [(a(),), (a(), 3)]),
        "method": (holder.method, [(a(),), (a(), 2)]),
        "Model": (Model(), [(torch.ones(2, 3),)]),
        "Breaks": (Breaks(), [(torch.ones(2, 3),)]),
        "closure": (closing_over(2), [(a(),)]),
        "closure_with_break": (closure_with_break(2), [(a(),)]),
    }


@contextlib.contextmanager
def fresh():
    """Nothing compiled before, nothing after."""
    import pellucid

    torch.compiler.reset()
    pellucid.reset()
    try:
        yield
    finally:
        torch.compiler.reset()
        pellucid.reset()
