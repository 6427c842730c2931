"""Watching torch.compile. What torch._dynamo tells by hooks is taken from them: the stages of backends come through torch's structured
log. Which frame was compiled to what, behind which guards, no hook tells (bytecode hooks run before there are guards, and get no
globals), so two methods are replaced, and put back. Knows torch._dynamo, and no files.
"""

import contextlib
import functools
import importlib.abc
import importlib.machinery
import logging
import sys
import threading
from types import CodeType, FunctionType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from pellucid import logging as pellucid_logging
from pellucid.debugging.records import Capture, Captures, Entry, Graph, Stage

COMPILER = "torch.compile"
_CONVERT_FRAME = "torch._dynamo.convert_frame"
# The stages of backends, by the name of torch's log records.
_STAGES = {
    "aot_joint_graph": "joint",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "aot_inference_graph": "inference",
    "inductor_output_code": "output_code",
}


class StageLog(logging.Handler):
    """Hears what backends write of their stages, and gives it to the graph that is being compiled, or was by that compile id."""

    def __init__(self) -> None:
        super().__init__()
        self._by_id: Dict[Tuple[Any, Any], Graph] = {}
        self._thread = threading.local()

    @contextlib.contextmanager
    def compiling(self, graph: Graph) -> Iterator[None]:
        """What is heard inside belongs to this graph."""
        before = getattr(self._thread, "graph", None)
        self._thread.graph = graph
        try:
            yield
        finally:
            self._thread.graph = before

    def emit(self, record: logging.LogRecord) -> None:
        """Takes one record of torch's structured log."""
        metadata, text = getattr(record, "metadata", None), getattr(record, "payload", None)
        if not isinstance(metadata, dict):
            return
        place = (metadata.get("frame_id"), metadata.get("frame_compile_id"))
        graph = getattr(self._thread, "graph", None)
        if graph is not None:
            self._by_id[place] = graph  # backward graphs are compiled later
        else:
            graph = self._by_id.get(place)
        if graph is not None and isinstance(text, str):
            graph.stages += [Stage(kind, text) for name, kind in _STAGES.items() if name in metadata]


class Watch:
    """Watches torch.compile from `start` to `stop`, from its import on if it is not loaded yet."""

    def __init__(self, captures: Captures, stages: StageLog) -> None:
        self._captures, self._stages = captures, stages
        self._undo: List[Callable[[], None]] = []
        self._graphs: Dict[str, Graph] = {}  # by the global name that transformed code calls them by

    def start(self) -> None:
        """Begins to watch."""
        module = sys.modules.get(_CONVERT_FRAME)
        if module is not None and hasattr(module, "ConvertFrameAssert"):
            self._install(module)
            return
        finder = _WhenImported(_CONVERT_FRAME, self._install)
        sys.meta_path.insert(0, finder)
        self._undo.append(lambda: sys.meta_path.remove(finder))

    def stop(self) -> None:
        """Puts everything back."""
        while self._undo:
            self._undo.pop()()

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        before = getattr(owner, name)
        setattr(owner, name, functools.wraps(before)(value))
        self._undo.append(lambda: setattr(owner, name, before))

    def _install(self, convert_frame: ModuleType) -> None:
        from torch._dynamo.output_graph import OutputGraph
        from torch._logging._internal import trace_log

        trace_log.addHandler(self._stages)
        self._undo.append(lambda: trace_log.removeHandler(self._stages))
        frames: Any = convert_frame.ConvertFrameAssert
        convert, compile_graph = frames.__call__, OutputGraph.call_user_compiler

        def seen_convert(converter: Any, frame: Any, *arguments: Any, **named: Any) -> Any:
            try:
                result = convert(converter, frame, *arguments, **named)
            except Exception as error:
                self._capture(frame).runs_as_written("{}: {}".format(type(error).__name__, error))
                raise
            try:
                self._converted(frame, result)
            except Exception as error:  # of ours: the program goes on, and the index says what is missing
                pellucid_logging.root.warning("%s can't be written down", frame.f_code.co_name, exc_info=True)
                self._capture(frame).as_written.append("an entry is missing here: {}: {}".format(type(error).__name__, error))
            return result

        def seen_compile(output: Any, module: Any, inputs: Any) -> Any:
            graph = Graph(_copy(module), _name_of(output.compiler_fn))
            self._graphs[module.meta["backend_id"]] = graph
            with self._stages.compiling(graph):
                return compile_graph(output, module, inputs)

        self._replace(frames, "__call__", seen_convert)
        self._replace(OutputGraph, "call_user_compiler", seen_compile)

    def _capture(self, frame: Any) -> Capture:
        return self._captures.of(COMPILER, frame.f_code, lambda: _function_of(frame))

    def _converted(self, frame: Any, result: Any) -> None:
        from pellucid.debugging.stock_guards import GuardWriter, names_in

        capture = self._capture(frame)
        guarded = result.guarded_code
        if guarded is None:
            capture.runs_as_written(result.skip_reason or "torch.compile leaves the frame alone")
            return
        modes = tuple(type(mode) for mode in _function_modes())
        writer = GuardWriter(guarded.guard_manager, frame.f_locals, frame.f_globals, modes)
        entry = Entry(guarded.code, writer, all_positional=False)
        for name in sorted(names_in(guarded.code)):
            if name in self._graphs:
                entry.graphs[name] = self._graphs[name]
            value = frame.f_globals.get(name) if name.startswith("__resume_at_") else None
            if isinstance(value, FunctionType):
                entry.resumes[name] = _resumed(value)
        capture.entries.append(entry)


def _resumed(value: FunctionType) -> CodeType:
    """The code behind a global name of torch._dynamo's: a function, or with free variables what makes one of a closure."""
    cells = dict(zip(value.__code__.co_freevars, value.__closure__ or ()))
    code = cells["code"].cell_contents if "code" in cells else None
    return code if isinstance(code, CodeType) else value.__code__


def _function_modes() -> Sequence[Any]:
    from torch.overrides import _get_current_function_mode_stack

    return list(_get_current_function_mode_stack())


def _copy(module: Any) -> Any:
    """A graph module of its own: backends change the one that they are given."""
    import torch.fx

    made = torch.fx.GraphModule(module, torch.fx.Graph(), type(module).__name__)
    copied: Dict[Any, Any] = {}
    output = made.graph.graph_copy(module.graph, copied, return_output_node=False)
    last = next(node for node in reversed(list(module.graph.nodes)) if node.op == "output")
    made.graph.output(output, last.type)
    for node in made.graph.find_nodes(op="placeholder"):
        argument = node.meta.pop("grapharg", None)  # it keeps the example
        source = getattr(argument, "source", None)
        if source is not None:
            node.meta["source_name"] = source.name if isinstance(source.name, str) else source.name()
    return made


def _name_of(backend: Any) -> str:
    while True:
        inner = getattr(backend, "_torchdynamo_orig_backend", None) or getattr(backend, "compiler_fn", None)
        if inner is None or inner is backend:
            break
        backend = inner
    return str(getattr(backend, "compiler_name", None) or getattr(backend, "__name__", None) or type(backend).__name__)


def _function_of(frame: Any) -> FunctionType:
    """The function of a frame, with its defaults: the frame itself does not name it."""
    import gc

    closure: Optional[Tuple[Any, ...]] = tuple(frame.closure) if frame.f_code.co_freevars else None
    for found in gc.get_referrers(frame.f_code):
        if isinstance(found, FunctionType) and found.__code__ is frame.f_code and found.__closure__ == closure:
            return found
    return FunctionType(frame.f_code, frame.f_globals, frame.f_code.co_name, None, closure)


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls a function with a module as soon as it has been imported."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name, self._then = name, then

    def find_spec(self, name: str, path: Any, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name != self._name:
            return None
        for finder in list(sys.meta_path):
            spec = None if finder is self or not hasattr(finder, "find_spec") else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _ThenLoader(spec.loader, self._then)
                return spec
        return None


class _ThenLoader(importlib.abc.Loader):
    """Loads as another loader does, and calls a function with the module."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: Any) -> Optional[ModuleType]:
        made: Optional[ModuleType] = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then(module)
