"""What a hit's guards cost: one check in C, without the call around it, beside the number of guards and what compiling them took.

    python -m bench.guards [--rounds N]

Modules are guarded as a capture that runs all of them would: identity and class of every module, its forward, its four hook
dictionaries, every parameter and buffer with its metadata, every number among its attributes.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/py/guard")]

from guarding import Builder, guard_module  # noqa: E402


def arguments(count, value, kind):
    namespace = {}
    exec(f"def function({', '.join(f'a{i}' for i in range(count))}): ...", namespace)
    values = [value(i) for i in range(count)]
    builder = Builder(namespace["function"], *values)
    for i, each in enumerate(values):
        builder.guard(kind, builder.local(i), payload=each)
    if kind == "tensor" and count > 1:
        builder.guard("distinct", None, group=[builder.local(i) for i in range(count)])
    return builder


def module(model):
    def function(self, x): ...

    x = torch.ones(2, 3)
    builder = Builder(function, model, x)
    guard_module(builder, builder.local(0), model)
    builder.guard("tensor", builder.local(1), payload=x)
    return builder


def nested(depth):
    def function(x): ...

    value = 1
    for _ in range(depth):
        value = [value]
    builder = Builder(function, value)
    source = builder.local(0)
    while isinstance(value, list):
        builder.guard("length", source, number=1)
        source, value = builder.step("item", source, 0), value[0]
    builder.guard("equals", source, payload=1)
    return builder


CASES = {
    **{f"{n} tensor arguments": lambda n=n: arguments(n, lambda i: torch.ones(2, 3), "tensor") for n in (1, 4, 16, 64)},
    "16 int arguments": lambda: arguments(16, lambda i: i, "equals"),
    "lists nested 50 deep": lambda: nested(50),
    "Linear": lambda: module(nn.Linear(3, 3)),
    "TransformerEncoder, 12 layers": lambda: module(nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, batch_first=True), 12)),
    "1,000 Linear": lambda: module(nn.Sequential(*[nn.Linear(3, 3) for _ in range(1000)])),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30, help="the best of so many runs counts: others use the machine too")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    print(f"{'case':32} {'guards':>7} {'ns a check':>11} {'ms to compile':>14}")
    for name, make in CASES.items():
        builder = make()
        program = builder.compile().program
        best = min(program.measure(builder.function, builder.arguments, 1 + 200_000 // len(builder.guards)) for _ in range(rounds))
        compiling = []
        for _ in range(5):
            start = time.perf_counter()
            builder.compile()
            compiling.append((time.perf_counter() - start) * 1e3)
        print(f"{name:32} {len(builder.guards):7} {best:11.1f} {min(compiling):14.3f}")


if __name__ == "__main__":
    main()
