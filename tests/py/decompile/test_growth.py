"""Decompiling takes time linear in the size of the code, and seconds at most for 100,000 instructions."""

import time

import pytest

from pellucid import _bytecode as bytecode
from pellucid import decompiling

PARTS = {
    "straight": "    x = f(x, {0})",
    "branches": "    if x > {0}:\n        x = f(x)\n    else:\n        y = x",
    "loops": "    for i in x:\n        if i:\n            break\n        x = x - {0}",
    "handlers": "    try:\n        x = f(x)\n    except ValueError as e:\n        x = e\n    finally:\n        y = {0}",
    "finally": "    try:\n        if f(x):\n            return x\n    finally:\n        y = {0}",
    "nested handlers": "    for i in x:\n     try:\n      f({0})\n     except A:\n      continue\n     else:\n      y = i",
    "comprehensions": "    x = [i + {0} for i in x if i]",
    "functions": "    def g(a):\n        return x + {0}",
    "managers": "    with f(x) as y:\n        x = {0}",
    "one loop": "        if x > {0}:\n            continue\n        x = x - 1",
}


def code_of(name, instructions):
    head = "    while x:\n" if name == "one loop" else ""
    count = 50
    for _ in range(2):  # how many parts make so many instructions
        source = "def h(x, y, f):\n" + head + "\n".join(PARTS[name].format(number) for number in range(count))
        code = compile(source, "<big>", "exec").co_consts[0]
        size = len(bytecode.decode(code).instructions)
        count = count * instructions // size
    return code


def seconds(function, code):
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        function(code)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("form", [decompiling.decompile, decompiling.block_form], ids=["structured", "blocks"])
@pytest.mark.parametrize("name", PARTS)
def test_time_grows_with_the_code(name, form):
    small, big = code_of(name, 12_500), code_of(name, 100_000)
    growth = len(bytecode.decode(big).instructions) / len(bytecode.decode(small).instructions)
    times = seconds(form, small), seconds(form, big)
    assert times[1] < 5
    assert times[1] < 3 * growth * times[0]  # quadratic time would be eight times as much as linear


@pytest.mark.slow
def test_checking_100_000_instructions():
    code = code_of("branches", 100_000)
    start = time.process_time()
    assert decompiling.decompile(code, check=True).grade == "identical"
    assert time.process_time() - start < 10
