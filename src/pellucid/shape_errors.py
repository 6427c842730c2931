"""The shape engine's exceptions, which PyTorch's code catches too. csrc/symbolic_python makes them by these functions.

PyTorch's own Python code catches `GuardOnDataDependentSymNode` where it has another way to go on. Where that class is loaded, our error is
one of both kinds; where it isn't, nobody can be waiting for it, and nothing is imported to find out.
"""

import functools
import sys
from typing import Any, Optional, Type

from pellucid import exc


@functools.lru_cache(maxsize=None)
def _both_kinds(theirs: Type[Exception]) -> Type[exc.DataDependentError]:
    class DataDependentError(exc.DataDependentError, theirs):  # type: ignore[valid-type, misc]
        """A question that only the data can answer, as Pellucid's and as PyTorch's exception."""

        def __init__(self, message: str, cond: Optional[object] = None) -> None:
            RuntimeError.__init__(self, message)
            self.cond = cond

    DataDependentError.__module__ = exc.DataDependentError.__module__
    DataDependentError.__qualname__ = exc.DataDependentError.__qualname__
    return DataDependentError


def data_dependent(message: str) -> exc.DataDependentError:
    """The exception for a question that only the data can answer."""
    module: Any = sys.modules.get("torch.fx.experimental.symbolic_shapes")
    if module is None:
        return exc.DataDependentError(message)
    return _both_kinds(module.GuardOnDataDependentSymNode)(message)


def constraint_violation(message: str) -> exc.ConstraintViolationError:
    """The exception for a demand on a dimension that does not hold."""
    return exc.ConstraintViolationError(message)


def frozen(message: str) -> exc.GuardsFrozenError:
    """The exception for a guard that comes after the guards were frozen."""
    return exc.GuardsFrozenError(message)
