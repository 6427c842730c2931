"""Who captures: Pellucid and torch._dynamo behind one interface, and the backends that a measurement gives them."""

import abc
import dataclasses
from typing import Any, Callable, List, Sequence, Tuple

ENTRIES = 64  # that one function may have: some workloads have more than either side's default


class Compiler(abc.ABC):
    """One front end. Nothing of it is imported before it is used."""

    name: str

    @abc.abstractmethod
    def load(self) -> None:
        """Everything that has to be imported before a capture."""

    @abc.abstractmethod
    def wrap(self, target: Any, backend: Callable[..., Any]) -> Any:
        """What calls are made through."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Forgets everything that was captured."""


class Pellucid(Compiler):
    name = "pellucid"

    def load(self) -> None:
        import pellucid.api  # noqa: F401
        from pellucid import _native

        _native.core()

    def wrap(self, target: Any, backend: Callable[..., Any]) -> Any:
        import pellucid

        pellucid.config.cache_size_limit = ENTRIES
        return pellucid.optimize(target, backend=backend, dynamic=False)

    def reset(self) -> None:
        import pellucid

        pellucid.reset()


class TorchDynamo(Compiler):
    name = "torch._dynamo"

    def load(self) -> None:
        import torch._dynamo  # noqa: F401

    def wrap(self, target: Any, backend: Callable[..., Any]) -> Any:
        import torch
        import torch._dynamo

        torch._dynamo.config.recompile_limit = ENTRIES
        return torch.compile(target, backend=backend, dynamic=False)

    def reset(self) -> None:
        import torch._dynamo

        torch._dynamo.reset()


PELLUCID, TORCH = Pellucid(), TorchDynamo()
BOTH = (PELLUCID, TORCH)


@dataclasses.dataclass
class Graph:
    """One captured graph: what it was called with and gave, and how many operators it has."""

    inputs: Tuple[Any, ...]
    outputs: Tuple[Any, ...]
    operators: int


class Recorder:
    """A backend that runs graphs as they are and keeps what they gave."""

    def __init__(self) -> None:
        self.graphs: List[Graph] = []

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        graph = Graph((), (), sum(node.op.startswith("call_") for node in gm.graph.nodes))
        self.graphs.append(graph)

        def run(*inputs: Any) -> Any:
            graph.inputs, graph.outputs = inputs, tuple(gm.forward(*inputs))
            return graph.outputs

        return run


class DoNothing:
    """A backend that looks at the graph and has its callable ready: what is left of a first call is capture."""

    def __init__(self, callables: Sequence[Callable[..., Any]]) -> None:
        self.callables = callables
        self.nodes: List[int] = []

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        self.nodes.append(len(gm.graph.nodes))
        return self.callables[len(self.nodes) - 1]

    def check(self) -> None:
        """RuntimeError unless exactly the graphs that were recorded were captured."""
        if len(self.nodes) != len(self.callables):
            raise RuntimeError(f"{len(self.nodes)} graphs captured, expected {len(self.callables)}")


def prepared(graphs: Sequence[Graph]) -> List[Callable[..., Any]]:
    """For each graph a C callable that returns its outputs and computes nothing."""
    from pellucid import _native

    return [_native.core().prepared_outputs(graph.outputs) for graph in graphs]


def record(compiler: Compiler, workload: Any) -> List[Graph]:
    """The graphs that one round of a workload's calls makes, in the order of their capture."""
    compiler.reset()
    recorder = Recorder()
    compiled = compiler.wrap(workload.target, recorder)
    with workload.context():
        for arguments in workload.calls:
            compiled(*arguments)
    compiler.reset()
    if not recorder.graphs:
        raise RuntimeError(f"{compiler.name} captured nothing of {workload.name}")
    return recorder.graphs
