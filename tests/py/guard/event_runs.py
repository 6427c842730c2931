"""Runs events: a captured program, something that changes between two calls of it, and whether the second call hits or misses.

An `Event` is a row of a table (events.py): a program, a change after which the captured code is no longer right, and a harmless change
after which it still is. Every row is run as written on a twin of the program and captured, in one thread or in several at once.
"""

import contextlib
import dataclasses
import enum
import threading
from typing import Any, Callable, List, Optional

import torch

import pellucid


class After(enum.Enum):
    """What the call after the change must do."""

    MISS = "captured again"
    AS_WRITTEN = "runs as written, no entry is used or made"
    OTHERWISE = "the entry is not used; what else happens is not asked"


class Case:
    """A program with what events change of it: `function(*arguments)` is captured, and anything else an event needs is an attribute."""

    def __init__(self, function, *arguments, **things):
        self.function = function
        self.arguments = arguments
        self.around = contextlib.nullcontext  # makes what every call is made in
        self.how = lambda function, arguments: function(*arguments)
        self.__dict__.update(things)

    def __call__(self, wrapped=None):
        with self.around():
            return self.how(wrapped or self.function, self.arguments)


# A change either is made for good, or is a context manager that is in force as long as it is entered.
Change = Callable[[Case], Any]


@dataclasses.dataclass(frozen=True)
class Event:
    name: str
    make: Callable[[], Case]
    change: Change
    harmless: Optional[Change] = None
    after: After = After.MISS
    process_wide: bool = False  # it changes what all threads see: one thread makes it for all
    threads: bool = True  # several threads can make it at once
    repeatable: bool = True  # the program gives the same however often it was called before


def enter(stack, change, case):
    """Makes a change; what it returns is entered if it can be."""
    made = change(case)
    if hasattr(made, "__enter__") and hasattr(made, "__exit__"):
        stack.enter_context(made)


@contextlib.contextmanager
def attribute(owner, name, value):
    """`owner.name` is `value` for a while, or with `...` is not there."""
    missing = object()
    old = vars(owner).get(name, missing)
    if value is ...:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
    try:
        yield
    finally:
        if old is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, old)


@contextlib.contextmanager
def item(mapping, key, value):
    """`mapping[key]` is `value` for a while, or with `...` is not there."""
    missing = object()
    old = mapping.get(key, missing)
    if value is ...:
        del mapping[key]
    else:
        mapping[key] = value
    try:
        yield
    finally:
        if old is missing:
            del mapping[key]
        else:
            mapping[key] = old


def outcome(case, wrapped=None):
    """The result of a call, or its exception."""
    try:
        return case(wrapped)
    except Exception as error:  # compared with the other run's
        return type(error), str(error)


def assert_same(actual, expected):
    assert type(actual) is type(expected), (actual, expected)
    if isinstance(expected, torch.Tensor):
        assert actual.requires_grad == expected.requires_grad
        if expected.device.type == "meta":
            assert (actual.shape, actual.dtype, actual.device) == (expected.shape, expected.dtype, expected.device)
        else:
            torch.testing.assert_close(actual.detach(), expected.detach(), equal_nan=True)
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected), (actual, expected)
        for one, other in zip(actual, expected):
            assert_same(one, other)
    elif not callable(expected):
        assert actual == expected


class Captured:
    """A case behind pellucid.optimize, and what is known of its captures."""

    def __init__(self, case):
        self.case = case
        self.graphs: List[Any] = []
        self.wrapped = pellucid.optimize(case.function, backend=self.backend)

    def backend(self, gm, example_inputs):
        self.graphs.append(gm)
        return gm.forward

    def call(self):
        return outcome(self.case, self.wrapped)

    def hits(self):
        return sum(entry.hits for entry in pellucid.cache_entries(self.wrapped))

    def has_breaks(self):
        """Whether what runs behind the entries may notice what they need not."""
        return any(entry.calls_python for entry in pellucid.cache_entries(self.wrapped))

    def entries(self):
        return len(pellucid.cache_entries(self.wrapped))


def expected_results(event):
    """What the program gives as written: at first, after the harmless change, after the change."""
    case = event.make()
    results = [outcome(case)]
    for change in (event.harmless, event.change):
        if change is None:
            results.append(None)
            continue
        with contextlib.ExitStack() as stack:
            enter(stack, change, case)
            results.append(outcome(case))
    return results


class Run:
    """What one thread does with one event: calls, the harmless change, a call, the change, a call.

    `wait` is where threads meet between the steps; `changes`: this thread makes the changes, otherwise another one makes them for it.
    """

    def __init__(self, event, captured, expected, wait=lambda: None, changes=True, alone=True):
        self.event, self.captured, self.expected = event, captured, expected
        self.wait, self.changes, self.alone = wait, changes, alone

    def __call__(self):
        event, captured, (first, harmless, changed) = self.event, self.captured, self.expected
        self.wait()
        assert_same(captured.call(), first)
        self.wait()
        assert captured.graphs, "the program was not captured"
        assert captured.entries() == 1
        graphs = len(captured.graphs)
        if event.harmless is not None:
            hits = self.call_after(event.harmless, harmless)
            assert len(captured.graphs) == graphs, "captured again without cause (PELLUCID_LOGS=recompiles says why)"
            assert captured.hits() > hits
        hits = self.call_after(event.change, changed)
        if event.after is After.AS_WRITTEN:
            assert len(captured.graphs) == graphs
        elif event.after is After.MISS:
            assert len(captured.graphs) > graphs, "not noticed"
        if self.alone and not captured.has_breaks():
            assert captured.hits() <= hits  # less where the entry itself is gone
        self.wait()

    def call_after(self, change, expected):
        """Makes a change and calls. Returns the number of hits before."""
        self.wait()
        hits = self.captured.hits()
        with contextlib.ExitStack() as stack:
            self.wait()
            if self.changes:
                enter(stack, change, self.captured.case)
            self.wait()
            assert_same(self.captured.call(), expected)
            self.wait()
        self.wait()
        return hits


THREADS = 4
PATIENCE = 20.0


def run_alone(event):
    Run(event, Captured(event.make()), expected_results(event))()


def run_in_threads(functions, barrier):
    """Runs functions at once, each in a thread of its own; the first error is raised here, and ends the wait of the others."""
    errors: List[BaseException] = []

    def run(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread hangs"
    for error in errors:
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    assert not errors


def run_apart(event):
    """In four threads at once, each with a program of its own. What changes the process, one of them changes for all."""
    expected = expected_results(event)
    barrier = threading.Barrier(THREADS, timeout=PATIENCE)
    runs = []
    for number in range(THREADS):
        changes = number == 0 or not event.process_wide
        runs.append(Run(event, Captured(event.make()), expected, barrier.wait, changes))
    run_in_threads(runs, barrier)


def run_together(event):
    """In four threads at once, all with the same program: one changes it for all."""
    expected = expected_results(event)
    barrier = threading.Barrier(THREADS, timeout=PATIENCE)
    captured = Captured(event.make())
    runs = [Run(event, captured, expected, barrier.wait, number == 0, False) for number in range(THREADS)]
    run_in_threads(runs, barrier)
