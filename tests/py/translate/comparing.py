"""Runs a function eagerly and captured over the same calls and compares everything a program can see. Knows no test."""

import contextlib
import copy
import io
import traceback
from typing import Any, Callable, List, NamedTuple

import pellucid


class Counter:
    """A backend that counts graphs and operators and runs the graph as it is."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph_module, example_inputs):
        self.graphs.append(graph_module)
        return graph_module.forward

    @property
    def operators(self):
        return sum(node.op.startswith("call_") for graph in self.graphs for node in graph.graph.nodes)


class Seen(NamedTuple):
    """What one call showed."""

    result: str
    arguments: str
    output: str


class Captured(NamedTuple):
    """What a comparison leaves for further assertions."""

    function: Any
    counter: Counter
    reasons: List[str]
    instructions: int


def _user_lines(error, filename):
    return [(row.name, row.lineno) for row in traceback.extract_tb(error.__traceback__) if row.filename == filename]


def _call(function, arguments, filename):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        try:
            result = repr(function(*arguments))
        except Exception as error:
            chain = [type(link).__name__ for link in (error.__cause__, error.__context__) if link is not None]
            result = f"{type(error).__name__}: {error} {chain} {_user_lines(error, filename)}"
    return Seen(result, repr(arguments), stream.getvalue())


def compare(function: Callable[..., Any], *calls: tuple, rounds: int = 2) -> Captured:
    """Calls `function` with each of `calls`, `rounds` times over, eagerly and captured, on equal copies of the arguments."""
    counter = Counter()
    captured = pellucid.optimize(counter)(function)
    filename = function.__code__.co_filename
    for _ in range(rounds):
        for arguments in calls:
            expected = _call(function, copy.deepcopy(arguments), filename)
            got = _call(captured, copy.deepcopy(arguments), filename)
            assert got == expected
    entries = pellucid.cache_entries(captured, nested=True)
    reasons = [row["reason"] for entry in entries for row in entry.report["breaks"]]
    return Captured(captured, counter, reasons, sum(entry.report["instructions"] for entry in entries))
