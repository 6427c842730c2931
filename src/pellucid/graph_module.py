"""The ``torch.fx.GraphModule`` that captured graphs are handed out as.

It prints and compiles its ``forward`` when somebody asks for it, so that a backend which only reads the graph does not pay for code.
Knows nothing of how graphs are captured.
"""

from __future__ import annotations

from typing import Any, Optional, Type

from torch.fx._lazy_graph_module import _LazyGraphModule


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


class GraphModule(_LazyGraphModule):
    """A ``torch.fx.GraphModule`` whose ``forward`` and ``code`` are generated at their first use."""

    # _LazyGraphModule tells "not generated yet" by `cls.forward is cls._lazy_forward`, and resets the one to the other.
    _lazy_forward = _CompileOnAccess()
    forward = _lazy_forward
