"""The ``torch.fx.GraphModule`` that captured graphs are handed out as.

It prints and compiles its ``forward`` when somebody asks for it, so that a backend which only reads the graph does not pay for code.
Knows nothing of how graphs are captured.
"""

from __future__ import annotations

import linecache
import re
import weakref
from typing import Any, Dict, Optional, Type

import torch.fx
import torch.fx.graph_module as fx_graph_module
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.graph import PythonCode
from torch.fx.graph_module import _assign_attr

from pellucid import _native

# An entry of node.meta["stack_trace"].
_STACK_ENTRY = re.compile(r'^  File "(?P<filename>.*)", line (?P<line>\d+), in (?P<name>.*)$', re.MULTILINE)


class _CompileOnAccess:
    """``forward`` of a module whose code is not generated yet: reading it from an instance generates the code.

    ``_LazyGraphModule`` has a method here, and whoever keeps that bound method goes through it at each call. Reading through this
    descriptor gives the generated function itself.
    """

    def __get__(self, module: Optional[GraphModule], owner: Optional[Type[GraphModule]] = None) -> Any:
        if module is None:
            return self
        module.real_recompile()
        return module.forward


class _CallWithUserLines:
    """What ``GraphModule.__call__`` goes through, in place of torch's ``_WrappedCall``, which prints the error and drops the traceback."""

    def __init__(self, cls: Type[GraphModule]) -> None:
        self.cls = cls

    def __call__(self, module: GraphModule, *args: Any, **kwargs: Any) -> Any:
        try:
            return super(self.cls, module).__call__(*args, **kwargs)
        except Exception as exception:
            add_user_lines(module, exception)
            raise


class GraphModule(_LazyGraphModule):
    """A ``torch.fx.GraphModule`` whose ``forward`` and ``code`` are generated at their first use.

    An exception out of a call of it shows the lines of the user's program.
    """

    # _LazyGraphModule tells "not generated yet" by `cls.forward is cls._lazy_forward`, and resets the one to the other.
    _lazy_forward = _CompileOnAccess()
    forward = _lazy_forward

    @classmethod
    def of_graph(cls, root: Dict[str, Any], graph: torch.fx.Graph) -> GraphModule:
        """What ``GraphModule(root, graph)`` makes, for a graph that belongs to no tracer, at half the price.

        Most of the time of ``__init__`` goes into setting the same attributes to the same empty values, one by one; so they are
        copied from a module that it made.
        """
        module: GraphModule = cls.__new__(cls)  # of a class of its own
        type(module).__name__ = "GraphModule"
        module.__dict__.update(_empty_attributes())
        module._graph = graph
        graph.owning_module = module
        for target in sorted(root, key=lambda name: name.count(".")):  # a.b before a.b.c, which it may hold
            _assign_attr(root[target], module, target)
        return module

    def _real_recompile(self) -> PythonCode:
        cls = type(self)  # each module has one of its own
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _CallWithUserLines(cls)
        made = super()._real_recompile()
        code = getattr(cls.forward, "__code__", None)
        if code is not None:
            weakref.finalize(code, _forget_source, code.co_filename).atexit = False
        return made


def _forget_source(key: str) -> None:
    """torch.fx keeps the source of every graph that was compiled for tracebacks; without the code there will be none."""
    fx_graph_module._loader.eval_cache.pop(key, None)
    linecache.cache.pop(key, None)


_template: Optional[GraphModule] = None


def _empty_attributes() -> Dict[str, Any]:
    """The ``__dict__`` of a new module without a graph. Containers are made anew."""
    global _template
    if _template is None:
        _template = GraphModule({}, torch.fx.Graph())
    return {name: type(value)() if isinstance(value, (dict, list, set)) else value for name, value in vars(_template).items()}


def _node_at(module: GraphModule, line: int) -> Optional[torch.fx.Node]:
    """The node whose code is on `line` of the generated source; None where the graph has changed since."""
    index = (module._lineno_map or {}).get(line - module._prologue_start)
    nodes = list(module.graph.nodes)
    if index is None or index >= len(nodes):
        return None
    node: torch.fx.Node = nodes[index]
    source = module._code.split("\n")[line - 1].strip()
    return node if source.startswith(f"{node.name} ") else None


def add_user_lines(module: GraphModule, exception: BaseException) -> None:
    """Adds to the traceback of an exception out of `module`'s forward the lines of the user's program that the failed node came from."""
    code = module.forward.__func__.__code__
    entry = exception.__traceback__
    while entry is not None and entry.tb_frame.f_code is not code:
        entry = entry.tb_next
    node = None if entry is None else _node_at(module, entry.tb_lineno)
    if entry is None or node is None:
        return
    inner: Any = entry.tb_next
    for match in reversed(list(_STACK_ENTRY.finditer(node.stack_trace or ""))):
        inner = _native.core().make_traceback(match["filename"], match["name"], int(match["line"]), inner)
    entry.tb_next = inner
