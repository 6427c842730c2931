"""Threads: captures, hits and recompiles of one function and one module from many threads; captures that wait, call back, fail or die."""

import contextlib
import gc
import os
import sys
import threading
import time
import weakref

import pytest
import torch

import pellucid

THREADS = 8
PATIENCE = 60.0
RACES = 5 if "PELLUCID_SANITIZED" in os.environ else 20


@contextlib.contextmanager
def switching_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


@pytest.fixture(autouse=True)
def fast_switches():
    with switching_often():
        yield


def at_once(*functions):
    """Runs each function in a thread of its own, from a common start; returns their results and raises the first error."""
    barrier = threading.Barrier(len(functions), timeout=PATIENCE)
    results, errors = [None] * len(functions), []

    def run(number, function):
        try:
            barrier.wait()
            results[number] = function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


class Counting:
    """A backend that counts, and does something first."""

    def __init__(self, first=lambda: None):
        self.graphs = []
        self.first = first

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        self.first()
        return gm.forward


def program(x, k=1):
    y = x * 2
    for _ in range(5):
        y = y.sin() + k
    return y


def test_many_threads_make_one_entry():
    for _ in range(RACES):
        backend = Counting()
        fn = pellucid.optimize(program, backend=backend)
        x = torch.ones(3)
        expected = program(x)
        for result in at_once(*[lambda: fn(x)] * THREADS):
            torch.testing.assert_close(result, expected)
        (entry,) = pellucid.cache_entries(fn)
        assert entry.hits == THREADS - len(backend.graphs)
        pellucid.reset(fn)


def test_each_shape_is_captured_once_by_many_threads():
    for _ in range(RACES):
        fn = pellucid.optimize(program, backend=Counting(), dynamic=False)
        inputs = [torch.ones(n + 1) for n in range(4)]

        def run():
            for _ in range(5):
                for x in inputs:
                    torch.testing.assert_close(fn(x), program(x))

        at_once(*[run] * THREADS)
        assert len(pellucid.cache_entries(fn)) == len(inputs)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.scale = 1

    def forward(self, x):
        return self.linear(x).relu() * self.scale


def test_one_module_from_many_threads():
    model = Net()
    wrapped = pellucid.optimize(model, backend=Counting())
    x = torch.randn(2, 3)

    def run(number):
        with torch.set_grad_enabled(number % 2 == 0):
            for _ in range(20):
                result = wrapped(x)
                assert result.requires_grad == (number % 2 == 0)
                torch.testing.assert_close(result, model(x))

    at_once(*[lambda n=n: run(n) for n in range(THREADS)])
    assert len(pellucid.cache_entries(wrapped)) == 2


def test_parameters_replaced_while_others_call():
    """What a call was verified with lives until its graph has run, whoever replaces it meanwhile. A loop before the graph is a break."""
    model = Net()

    def call(model, x):
        y = model.linear(x)
        pellucid.graph_break()
        return y + 1

    for function in (lambda model, x: model(x), call):
        fn = pellucid.optimize(function, backend=Counting())
        x = torch.ones(2, 3)
        stop = threading.Event()

        def replace():
            value = 0
            while not stop.is_set():
                value = (value + 1) % 7
                model.linear.weight = torch.nn.Parameter(torch.full((3, 3), float(value)))
                model.linear.bias = torch.nn.Parameter(torch.zeros(3))

        def run():
            try:
                for _ in range(200):
                    row = fn(model, x)
                    assert bool((row == row[0, 0]).all()) and row[0, 0] in (0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 18, 19)
            finally:
                stop.set()

        with torch.no_grad():
            model.linear.weight.fill_(1)
            model.linear.bias.fill_(0)
        at_once(run, run, run, replace)


def test_other_threads_are_left_alone():
    """While one thread captures and runs, with the hook installed for its breaks, frames of others are not looked at."""
    seen = []

    def inner(x):
        return x + 1

    def breaking(x):
        x = inner(x)
        pellucid.graph_break()
        return inner(x)

    entered, leave = threading.Event(), threading.Event()

    def slow():
        entered.set()
        assert leave.wait(PATIENCE)

    backend = Counting(slow)
    fn = pellucid.optimize(breaking, backend=backend)

    def other():
        assert entered.wait(PATIENCE)
        try:
            seen.append(inner(torch.ones(2)))
            seen.append(breaking(torch.ones(2)))
            assert not torch.compiler.is_compiling()
            assert torch.ones(2).sum().item() == 2  # a real tensor
        finally:
            leave.set()

    at_once(lambda: fn(torch.ones(2)), other)
    codes = {entry.code_before for entry in pellucid.cache_entries(fn, nested=True)}
    assert inner.__code__ not in codes  # it was inlined; nobody captured the other thread's frame of it
    torch.testing.assert_close(seen[0], torch.full((2,), 2.0))
    torch.testing.assert_close(seen[1], torch.full((2,), 3.0))


def test_modes_of_a_capture_stay_in_its_thread():
    inside, leave = threading.Event(), threading.Event()

    def pause():
        inside.set()
        assert leave.wait(PATIENCE)

    def changes(x):
        with torch.no_grad():
            y = x * 2
        return y + x

    fn = pellucid.optimize(changes, backend=Counting(pause))

    def other():
        assert inside.wait(PATIENCE)
        try:
            assert torch.is_grad_enabled() and torch.ones(1).device.type == "cpu"
            assert (torch.ones(1, requires_grad=True) * 2).requires_grad
        finally:
            leave.set()

    at_once(lambda: fn(torch.ones(2, requires_grad=True)), other)


def test_two_captures_of_one_function_that_wait_for_each_other():
    """The first one's backend goes on only when the second is there as well: nobody may wait for it for ever."""
    barrier = threading.Barrier(2, timeout=PATIENCE)
    fn = pellucid.optimize(program, backend=Counting(barrier.wait))
    x = torch.ones(3)
    for result in at_once(lambda: fn(x), lambda: fn(x)):
        torch.testing.assert_close(result, program(x))
    assert len(pellucid.cache_entries(fn)) == 1


def test_a_backend_that_calls_what_is_captured():
    x = torch.ones(3)

    def call():
        torch.testing.assert_close(fn(x), program(x))

    def call_in_a_thread():
        at_once(call)

    for first in (call, call_in_a_thread):
        depth = []

        def once(first=first):
            if not depth:
                depth.append(1)
                first()

        fn = pellucid.optimize(program, backend=Counting(once))
        call()
        call()
        assert len(pellucid.cache_entries(fn)) == 1


class Dying(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Dying, SystemExit])
def test_a_thread_that_dies_in_a_capture(error):
    calls = []

    def backend(gm, example_inputs):
        calls.append(1)
        if len(calls) == 1:
            time.sleep(0.05)
            raise error("dies")
        return gm.forward

    fn = pellucid.optimize(program, backend=backend)
    x = torch.ones(3)

    def first():
        with pytest.raises((error, pellucid.exc.BackendCompilerFailed)):
            fn(x)

    def second():
        while not calls:
            time.sleep(0.001)
        return fn(x)

    torch.testing.assert_close(at_once(first, second)[1], program(x))
    torch.testing.assert_close(fn(x), program(x))
    assert len(pellucid.cache_entries(fn)) == 1


def test_resets_while_others_call():
    """Entries are snapshots: one that is dropped in the middle of a call ends that call as it began."""

    def breaking(x):
        x = x * 2
        pellucid.graph_break()
        return x + 1

    for function in (program, breaking):
        fn = pellucid.optimize(function, backend=Counting())
        x = torch.ones(3)
        expected = function(x)
        stop = threading.Event()

        def reset():
            while not stop.is_set():
                pellucid.reset(fn)
                time.sleep(0.001)

        def run():
            try:
                for _ in range(50):
                    torch.testing.assert_close(fn(x), expected)
            finally:
                stop.set()

        at_once(run, run, run, reset)


def test_recompiles_and_exceptions_in_many_threads():
    def raising(x, k):
        y = x * k
        if k % 3 == 0:
            raise ValueError(k)
        return y

    fn = pellucid.optimize(raising, backend=Counting())

    def run():
        for k in range(1, 7):
            x = torch.ones(2)
            if k % 3 == 0:
                with pytest.raises(ValueError) as error:
                    fn(x, k)
                assert error.value.args == (k,)
            else:
                torch.testing.assert_close(fn(x, k), x * k)

    at_once(*[run] * THREADS)


def test_threads_leave_nothing_behind():
    wrapped = pellucid.optimize(Net(), backend=Counting())
    gone = weakref.ref(wrapped.__wrapped__)
    x = torch.ones(1, 3)

    def run(wrapped=wrapped):
        return wrapped(x)

    at_once(*[run] * THREADS)
    del run, wrapped
    gc.collect()
    assert gone() is None
