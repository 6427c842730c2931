"""What symbolic shapes cost, beside torch's ShapeEnv in the same run: in C++ alone, and through `pellucid.ShapeEnv` from Python.

    python -m bench.symbolic [--rounds N]

New operations and guards are on values that the ShapeEnv has not seen before. Each round makes a ShapeEnv of its own, and symbols of
other names, or torch would find what sympy remembers of the last.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import sys

import torch
from torch._dynamo.source import LocalSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext
from torch.fx.experimental.symbolic_shapes import ShapeEnv as TorchShapeEnv

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from pellucid._bytecode import symbolic_measure  # noqa: E402

import pellucid  # noqa: E402
from bench.timing import timed  # noqa: E402

# What PyTorch takes divided by what we take is to be at least this: in C++, and from Python.
GOALS = {
    "new operation": (100, 100),
    "repeated operation": (80, 40),
    "new guard": (200, 200),
    "repeated guard": (80, 40),
    "printed guard": (200, 200),
}

SYMINT_GOAL = 2.0  # microseconds that our node may add to what a torch.SymInt costs by itself


NAMES = itertools.count()


class Ours:
    """`pellucid.ShapeEnv` and its symbols."""

    def __init__(self, count):
        self.env = pellucid.ShapeEnv()
        self.symbols = [self.env.create_size(10 + i, f"L['x{next(NAMES)}'].size()[0]", policy="dynamic") for i in range(count)]

    def print(self):
        return [guard.text for guard in self.env.guards]


class Theirs:
    """torch's, with the sizes of as many tensors."""

    def __init__(self, count):
        self.env = TorchShapeEnv()
        mode = FakeTensorMode(shape_env=self.env)
        self.sources = [LocalSource(f"x{next(NAMES)}") for i in range(count)]
        self.tensors = []
        for i, source in enumerate(self.sources):
            context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC], constraint_sizes=[None])
            self.tensors.append(mode.from_tensor(torch.empty(10 + i), source=source, symbolic_context=context))
        self.symbols = [tensor.size(0) for tensor in self.tensors]

    def print(self):
        return self.env.produce_guards(self.tensors, self.sources)


def add_all(world):
    symbols = world.symbols
    for a, b in zip(symbols, symbols[1:]):
        a + b


def guard_all(world):
    symbols = world.symbols
    for i in range(1, len(symbols)):
        bool(symbols[i - 1] + symbols[i] > i)


# What is timed, and what comes before it.
STEPS = {
    "new operation": (add_all, lambda world: None),
    "repeated operation": (add_all, add_all),
    "new guard": (guard_all, lambda world: None),
    "repeated guard": (guard_all, guard_all),
    "printed guard": (lambda world: world.print(), guard_all),
}


def best(kind, step, count, rounds):
    """Nanoseconds a step."""
    run, prepare = STEPS[step]
    times = []
    for _ in range(rounds):
        world = kind(count)
        prepare(world)
        times.append(timed(lambda: run(world)))  # noqa: B023
    return min(times) / count * 1e9


def measure(step, rounds):
    count, torch_count = (1000, 1000 if step == "printed guard" else 200)
    torch_rounds = 1 if step == "printed guard" else min(rounds, 3)
    theirs = best(Theirs, step, torch_count, torch_rounds)
    native = symbolic_measure(step, count, rounds)
    python = best(Ours, step, count, rounds)
    return {"torch": theirs, "C++": native, "Python": python, "ratio C++": theirs / native, "ratio Python": theirs / python}


class NoNode:
    """What stands behind a torch.SymInt that does nothing: what is left is the cost of the SymInt."""

    def __init__(self, truth=None):
        self.truth = self if truth is None else truth
        self.pytype = bool if truth is None else int

    def is_int(self):
        return self.pytype is int

    def is_bool(self):
        return self.pytype is bool

    def is_float(self):
        return False

    is_constant = is_float

    def wrap_int(self, value):
        return self

    def add(self, other):
        return self

    def gt(self, other):
        return self.truth

    def bool_(self):
        return True


def through_symint(rounds):
    """Microseconds an operation on torch.SymInt takes with our nodes, and above that what it takes with nodes that do nothing."""
    from pellucid.torch_shapes import numbers
    from pellucid.torch_shapes.env import TorchShapeEnv

    count = 1000
    nothing = [torch.SymInt(NoNode(NoNode())) for _ in range(count)]

    def ours():
        env = TorchShapeEnv()
        return [numbers.to_torch(env.engine.create_size(10 + i, f"x{i}", policy="dynamic")) for i in range(count)]

    def add(sizes):
        for a, b in zip(sizes, sizes[1:]):
            a + b

    def compare(sizes):
        for a, b in zip(sizes, sizes[1:]):
            a > b  # noqa: B015

    def ask(sizes):
        for a, b in zip(sizes, sizes[1:]):
            bool(a > b)

    rows = {}
    for name, run, before in (
        ("new operation", add, None),
        ("repeated operation", add, add),
        ("new comparison", compare, None),
        ("repeated guard", ask, ask),
    ):
        own, whole = [], []
        for _ in range(rounds):
            sizes = ours()
            if before:
                before(sizes)
            own.append(timed(lambda: run(nothing)))  # noqa: B023
            whole.append(timed(lambda: run(sizes)))  # noqa: B023
        own_cost, whole_cost = min(own) / count * 1e6, min(whole) / count * 1e6
        rows[name] = (whole_cost, whole_cost - own_cost)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="the best of so many counts")
    parser.add_argument("--only", default="", help="steps whose name has this in it")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'ns a step':20} {'torch':>12} {'C++':>9} {'Python':>9} {'times faster: C++':>18} {'Python':>9} {'goals':>10}")
    for step, goals in GOALS.items():
        if options.only not in step:
            continue
        row = measure(step, options.rounds)
        goal = "{} {}".format(*goals)
        print(
            f"{step:20} {row['torch']:12,.0f} {row['C++']:9.1f} {row['Python']:9.1f} {row['ratio C++']:18,.0f} {row['ratio Python']:9,.0f} "
            f"{goal:>10}",
            flush=True,
        )
    print(f"\n{'us through torch.SymInt':28} {'ours':>6} {'above the SymInt itself':>24} {'goal':>6}")
    for step, (whole, above) in through_symint(options.rounds).items():
        if options.only in step:
            print(f"{step:28} {whole:6.2f} {above:24.2f} {SYMINT_GOAL:6.1f}")


if __name__ == "__main__":
    main()
