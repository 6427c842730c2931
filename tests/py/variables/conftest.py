"""Differential checks: a function runs eagerly and captured, on equal arguments, and must give, raise and leave behind the same."""

import copy

import pytest
import torch

import pellucid


class Backend:
    """Runs the graph as recorded, and counts."""

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        return gm.forward

    @property
    def calls(self):
        """Names of the recorded operators."""
        return [str(getattr(n.target, "__name__", n.target)) for gm in self.graphs for n in gm.graph.nodes if n.op.startswith("call")]


def assert_same(eager, captured, path="result"):
    """Equal in type and value, tensors bit for bit, containers in order."""
    assert type(eager) is type(captured), f"{path}: {type(eager)} and {type(captured)}"
    if isinstance(eager, torch.Tensor):
        assert eager.shape == captured.shape and eager.dtype == captured.dtype, path
        assert torch.equal(eager.nan_to_num(), captured.nan_to_num()), f"{path}: {eager} and {captured}"
    elif isinstance(eager, (list, tuple)):
        assert len(eager) == len(captured), f"{path}: {eager} and {captured}"
        for i, (a, b) in enumerate(zip(eager, captured)):
            assert_same(a, b, f"{path}[{i}]")
    elif isinstance(eager, dict):
        assert list(eager) == list(captured), f"{path}: {eager} and {captured}"
        for key in eager:
            assert_same(eager[key], captured[key], f"{path}[{key!r}]")
    elif isinstance(eager, BaseException):
        assert_same(eager.args, captured.args, f"{path}.args")
    elif type(eager).__eq__ is not object.__eq__:
        assert eager == captured or (eager != eager and captured != captured), f"{path}: {eager!r} and {captured!r}"
    elif hasattr(eager, "__dict__") and not isinstance(eager, type):
        assert_same(vars(eager), vars(captured), f"vars({path})")
    else:
        assert eager is captured or type(eager) is object, f"{path}: {eager!r} and {captured!r}"


def outcome(function, arguments):
    """What the call gave or raised, and what it did to its arguments."""
    try:
        return function(*arguments), arguments
    except Exception as error:
        return error, arguments


@pytest.fixture
def check():
    """check(f, *args, breaks=False): compares, and demands one whole graph unless breaks are expected."""

    def run(function, *arguments, breaks=False, calls=2):
        backend = Backend()
        pellucid.reset()
        captured = pellucid.optimize(function, backend=backend, fullgraph=not breaks)
        for _ in range(calls):  # the first call captures, the next ones go through guards
            eager_arguments, own_arguments = copy.deepcopy(arguments), copy.deepcopy(arguments)
            torch.manual_seed(0)
            expected, left = outcome(function, eager_arguments)
            torch.manual_seed(0)
            got, own_left = outcome(captured, own_arguments)
            if isinstance(got, pellucid.exc.PellucidError):
                raise got
            assert_same(expected, got)
            assert_same(left, own_left, "arguments")
        if not breaks:
            assert len(backend.graphs) == 1, f"{len(backend.graphs)} graphs"
        else:
            assert backend.graphs, "nothing was captured"
        return backend

    return run


@pytest.fixture
def x():
    return torch.arange(6.0).reshape(2, 3)
