"""Captures grow with their program and not faster: what a capture counts, and what it keeps, at 100, 1,000 and 10,000 of everything.

Counts only: no test looks at how long anything took.
"""

import ctypes
import gc
import sys

import pytest

torch = pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

import pellucid
from pellucid import _capture

SIZES = (100, 1_000, 10_000)


def function(text):
    scope = {"torch": torch}
    exec(text, scope)
    return scope["f"]


def lines(count, line):
    return "".join(f"    {line.format(i=i)}\n" for i in range(count))


def operators(count):
    return function(f"def f(x):\n{lines(count, 'x = x + {i}')}    return x\n"), (torch.ones(2),)


def loop(count):
    return function(f"def f(x):\n    for i in range({count}):\n        x = x + i\n    return x\n"), (torch.ones(2),)


def arguments(count):
    names = [f"x{i}" for i in range(count)]
    text = f"def f({', '.join(names)}):\n    return ({', '.join(f'{name} + 1' for name in names)})\n"
    return function(text), tuple(torch.ones(2) for _ in names)


def list_of_tensors(count):
    return function("def f(xs):\n    return [x + 1 for x in xs]\n"), ([torch.ones(2) for _ in range(count)],)


def dict_of_tensors(count):
    return function("def f(xs):\n    return {key: x + 1 for key, x in xs.items()}\n"), ({f"k{i}": torch.ones(2) for i in range(count)},)


def parameters(count):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2)) for _ in range(count)])

        def forward(self, x):
            for part in self.parts:
                x = x + part
            return x

    return Model(), (torch.ones(2),)


def modules(count):
    return torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(count)]), (torch.ones(2),)


def inlined_calls(count):
    return function(f"def g(x, n):\n    return x + n\ndef f(x):\n{lines(count, 'x = g(x, {i})')}    return x\n"), (torch.ones(2),)


def calls_of_closures(count):
    text = f"def f(x):\n    for g in [lambda y, i=i: y + i for i in range({count})]:\n        x = g(x)\n    return x\n"
    return function(text), (torch.ones(2),)


def generator(count):
    return function(
        f"def g():\n    for i in range({count}):\n        yield i\ndef f(x):\n    for i in g():\n        x = x + i\n    return x\n"
    ), (torch.ones(2),)


def globals_read(count):
    constants = "".join(f"c{i} = {i}\n" for i in range(count))
    return function(f"{constants}def f(x):\n{lines(count, 'x = x + c{i}')}    return x\n"), (torch.ones(2),)


def globals_written(count):
    names = ", ".join(f"c{i}" for i in range(count))
    return function(f"def f(x):\n    global {names}\n{lines(count, 'c{i} = x')}    return x + 1\n"), (torch.ones(2),)


def keys_of_a_dict(count):
    body = lines(count, "x = x + d['k{i}']")
    return function(f"def f(d, x):\n{body}    return x\n"), ({f"k{i}": i for i in range(count)}, torch.ones(2))


def attributes_of_an_object(count):
    class Settings:
        pass

    settings = Settings()
    for i in range(count):
        setattr(settings, f"a{i}", i)
    return function(f"def f(s, x):\n{lines(count, 'x = x + s.a{i}')}    return x\n"), (settings, torch.ones(2))


def lists_changed(count):
    return function("def f(xs, y):\n    for x in xs:\n        x.append(y)\n    return y + 1\n"), ([[] for _ in range(count)], torch.ones(2))


def half_of_the_lists_changed(count):
    text = "def f(xs, ys, z):\n    for x in xs:\n        x.append(z)\n    for y in ys:\n        z = z + y[0]\n    return z\n"
    half = count // 2
    return function(text), ([[] for _ in range(half)], [[1] for _ in range(half)], torch.ones(2))


def objects_changed(count):
    class Thing:
        pass

    text = "def f(xs, y):\n    for x in xs:\n        x.value = y\n    return y + 1\n"
    return function(text), ([Thing() for _ in range(count)], torch.ones(2))


def exceptions(count):
    body = "    try:\n        raise ValueError\n    except ValueError:\n        x = x + 1\n" * count
    return function(f"def f(x):\n{body}    return x\n"), (torch.ones(2),)


def allocated():
    """Bytes that malloc has given out: what C++ keeps. The address space of large blocks too."""

    class Info(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
        ]

    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return 0
    libc.mallinfo2.restype = Info
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd


@pytest.fixture
def measured(monkeypatch):
    """`measured(make, count)`: the counts of one capture, and what is there after it that was not before."""
    profiles = []

    def report(*arguments):  # cache_entries() would print every guard
        profiles.append(arguments[-1])
        return made_report(*arguments)

    made_report = _capture.report
    monkeypatch.setattr(_capture, "report", report)

    def measure(make, count):
        counts = capture(make, count)
        (profile,) = profiles
        profiles.clear()
        counts.update(profile["counts"])
        assert max(counts["operators"], counts["code_units"]) >= count, "the program is not what it should be"
        return counts

    return measure


def capture(make, count):
    target, arguments = make(count)
    captured = pellucid.optimize(target, backend="eager", fullgraph=True)
    gc.collect()
    before = (sys.getallocatedblocks(), allocated())
    with torch.no_grad():
        result = captured(*arguments)
    del result
    gc.collect()
    after = (sys.getallocatedblocks(), allocated())
    pellucid.reset()
    return {"Python objects kept": after[0] - before[0], "bytes kept": after[1] - before[1]}


MAKERS = [
    operators,
    loop,
    arguments,
    list_of_tensors,
    dict_of_tensors,
    parameters,
    modules,
    inlined_calls,
    calls_of_closures,
    generator,
    globals_read,
    globals_written,
    keys_of_a_dict,
    attributes_of_an_object,
    lists_changed,
    half_of_the_lists_changed,
    objects_changed,
    exceptions,
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_linear(make, measured):
    sizes = SIZES if make is not modules else (50, 500, 5_000)  # making them takes longer than capturing them
    small, middle, large = (measured(make, count) for count in sizes)
    for name in small:
        row = (name, small[name], middle[name], large[name])
        if name.endswith("kept"):  # tables double, and what is free already is not counted
            assert large[name] <= 15 * max(middle[name], 0) + {"Python objects kept": 5_000, "bytes kept": 5_000_000}[name], row
        else:  # ten times more adds ten times what was added before
            assert large[name] - middle[name] <= 10.5 * (middle[name] - small[name]) + 100, row


@pytest.mark.parametrize("count", SIZES)
def test_an_operator_is_one_fake_call_and_a_handful_of_instructions(count, measured):
    counts = measured(operators, count)
    assert counts["operators"] == count and counts["fake_calls"] == count
    assert counts["instructions"] <= 4 * count + 10
    assert counts["guards"] <= 5 and counts["sources"] <= 5
    assert counts["variables"] <= 3 * count + 10


@pytest.mark.parametrize("count", SIZES)
def test_an_inlined_call_is_one_frame(count, measured):
    counts = measured(inlined_calls, count)
    assert counts["inlined_calls"] == counts["operators"] == count
    assert counts["guards"] <= 10 and counts["guard_rows"] <= 20


@pytest.mark.parametrize("count", SIZES)
def test_an_argument_is_one_guard(count, measured):
    counts = measured(arguments, count)
    assert counts["inputs"] == counts["sources"] == count
    assert counts["guards"] == count + 1  # and that no two are one tensor


@pytest.mark.parametrize("count", SIZES)
def test_a_parameter_is_a_few_guards(count, measured):
    counts = measured(parameters, count)
    assert counts["inputs"] == count + 1
    assert counts["guards"] <= 6 * count + 50
