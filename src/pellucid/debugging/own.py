"""Watching pellucid.optimize and compile: the core tells about every capture, `_capture` about every graph that goes to a backend.
Knows no files.
"""

import ast
import contextlib
import threading
from types import CodeType, FunctionType
from typing import Any, Callable, ContextManager, Dict, Iterator, Optional

from pellucid import guard_text
from pellucid.debugging.records import Capture, Captures, Entry, Graph
from pellucid.debugging.references import References

COMPILER = "pellucid"


class Watch:
    """Watches Pellucid's captures from `start` to `stop`."""

    def __init__(self, captures: Captures, compiling: Callable[[Graph], ContextManager[None]]) -> None:
        self._captures, self._compiling = captures, compiling
        self._thread = threading.local()
        self._before: Any = None
        self._core: Any = None

    def start(self) -> None:
        """Begins to watch, where there is a core that captures."""
        from pellucid import _regions, exc

        try:
            self._core = _regions.ready_core()
        except exc.CoreUnavailable:
            return
        from pellucid import _capture

        self._before, _capture.graph_watcher = _capture.graph_watcher, self._graph
        self._core.set_capture_observer(self._captured)

    def stop(self) -> None:
        """Ends it."""
        if self._core is None:
            return
        from pellucid import _capture

        _capture.graph_watcher = self._before
        self._core.set_capture_observer(None)

    @contextlib.contextmanager
    def _graph(self, backend: str, module: Any) -> Iterator[None]:
        graph = Graph(_copy(module), backend)
        self._thread.graph = (module, graph)
        with self._compiling(graph):
            yield

    def _captured(self, function: FunctionType, row: Optional[Dict[str, Any]], reason: str) -> None:
        capture: Capture = self._captures.of(COMPILER, function.__code__, lambda: function)
        if row is None:
            capture.runs_as_written(reason)
            return
        check, values = row["check_fn"], row["values"]
        entry = Entry(row["code"], lambda name, references: _guards(name, check, values, references), all_positional=True)
        entry.breaks = [_break_text(one) for one in (row["report"] or {}).get("breaks", ())]
        self._constants(entry, row)
        capture.entries.append(entry)
        if len(capture.entries) == 1:
            _name_after_module(capture, values)

    def _constants(self, entry: Entry, row: Dict[str, Any]) -> None:
        for number, const in enumerate(entry.transformed.co_consts):
            name = "const {}".format(number)
            if type(const).__module__ == "pellucid._core" and type(const).__name__ == "GraphCall":
                entry.graphs[name] = self._graph_of(row["graph_module"], const.added)
            elif const is self._core.tail_call:
                entry.constants[name] = "_rt.tail_call"
            elif isinstance(const, FunctionType) and self._core.resumed_code(const.__code__) is not None:
                entry.resumes[name] = const.__code__
            elif isinstance(const, CodeType) and self._core.resumed_code(const) is not None:
                entry.resumes[name] = const
            elif const is FunctionType:
                entry.constants[name] = "_rt.function_type"

    def _graph_of(self, module: Any, added: int) -> Graph:
        seen, graph = getattr(self._thread, "graph", (None, None))
        if graph is None or seen is not module:
            graph = Graph(module, "eager")
        inputs = [node for node in graph.written.graph.nodes if node.op == "placeholder"]
        graph.parameters = [str(node.meta["source_name"]) for node in inputs[len(inputs) - added :]]
        return graph


def _name_after_module(capture: Capture, values: Any) -> None:
    """All modules are called through one function of torch's: such a capture is named after the class of its first module."""
    import torch

    if capture.function is torch.nn.Module.__call__:
        module = next((value for value in values if isinstance(value, torch.nn.Module)), None)
        capture.name = capture.name if module is None else type(module).__name__


def _copy(module: Any) -> Any:
    import copy

    from pellucid.graph_module import GraphModule

    return GraphModule(module, copy.deepcopy(module.graph))


def _break_text(row: Dict[str, Any]) -> str:
    stack = row.get("user_stack") or [("", "", 0)]
    filename, _, line = stack[-1][:3]
    return "{} ({}) at {}:{}".format(row["title"], row["detail"], filename, line)


def _guards(name: str, check: str, values: Any, references: References) -> str:
    table = "".join("    {},\n".format(references.expression(value)) for value in values)
    head = "V_{} = (\n{})\n\n\n".format(name, table) if values else ""
    # Their words by argument: a variable of the program's may have the same name.
    used = {node.id for node in ast.walk(ast.parse(check)) if isinstance(node, ast.Name)}
    words = (", V=V_" + name if values else "") + "".join(
        ", {0}=_words.{0}".format(word) for word in sorted(used & set(guard_text.HELPERS))
    )
    return head + check.replace("def check(L, G, F):", "def {}(L, G, F{}):".format(name, words), 1)
