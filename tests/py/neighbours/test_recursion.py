"""Deep recursion: as deep as plain Python at the default limit, and an exception instead of a crash beyond what the C stack holds."""

import sys

import pytest
import torch
from programs import optimized, run_script

PREAMBLE = """
import sys, threading, torch, pellucid, programs

def plain(n):
    return 0 if n == 0 else 1 + plain(n - 1)

def broken(x, n):
    print(end="")
    return x if n == 0 else broken(x + 1, n - 1)

def calls(x, n):
    print(end="")
    return x + plain(n)

def steps(n):
    yield n
    if n:
        yield from steps(n - 1)

def generators(x, n):
    print(end="")
    return x + sum(1 for _ in steps(n))

class Lazy:
    def __getattr__(self, name):
        return getattr(self, name + "_")

def attributes(x, n):
    print(end="")
    return x + getattr(Lazy(), "a", 0)

def ping(x, n):
    return x if n == 0 else off(x, n - 1)

@pellucid.disable
def off(x, n):
    return ping(x, n) + 1

def ends(function, *given):
    try:
        function(*given)
    except RecursionError:
        return "RecursionError"
    return "returned"

pellucid.config.cache_size_limit = 2
import logging
logging.disable(logging.CRITICAL)
names = "broken calls generators attributes ping".split()
wrappers = {name: pellucid.optimize(globals()[name], backend=programs.Backend()) for name in names}
"""


@pytest.mark.parametrize("name", ["broken", "calls"])
def test_as_deep_as_plain_python_at_the_default_limit(name):
    def plain(n):
        return 0 if n == 0 else 1 + plain(n - 1)

    def broken(x, n):
        print(end="")
        return x if n == 0 else broken(x + 1, n - 1)

    def calls(x, n):
        print(end="")
        return x + plain(n)

    function = {"broken": broken, "calls": calls}[name]
    wrapper = optimized(function)
    x = torch.ones(2)

    def deepest(call):
        low, high = 0, sys.getrecursionlimit()
        while high - low > 4:
            middle = (low + high) // 2
            try:
                call(x, middle)
            except RecursionError:
                high = middle
            else:
                low = middle
        return low

    wrapper(x, 3)
    assert deepest(wrapper) >= deepest(function) - 8


@pytest.mark.parametrize("name", ["broken", "calls"])
@pytest.mark.parametrize("stack", [0, 1 << 20], ids=["main thread", "1 MiB"])
def test_an_exception_instead_of_a_crash_with_a_raised_limit(name, stack):
    text = run_script(
        PREAMBLE
        + f"""
sys.setrecursionlimit(10**6)
results = []

def work():
    given = torch.ones(2), 900000
    results.extend([ends(wrappers[{name!r}], *given), ends(wrappers[{name!r}], torch.ones(2), 5)])

if {stack}:
    threading.stack_size({stack})
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
else:
    work()
print(results)
"""
    )
    assert text == "['RecursionError', 'returned']\n", text
