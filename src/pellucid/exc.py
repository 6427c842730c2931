"""The exceptions Pellucid raises, all of them below `PellucidError`.

What the program under capture raises is never wrapped in any of these. Imports nothing of Pellucid, so that every part can use it.
"""

import linecache
import os
from typing import Iterable, List, NamedTuple, Optional, Tuple, Union

__all__ = [
    "BackendCompilerFailed",
    "ConstraintViolationError",
    "CoreUnavailable",
    "DataDependentError",
    "GuardError",
    "GuardsFrozenError",
    "InternalError",
    "PellucidError",
    "Unsupported",
    "UserFrame",
]


class UserFrame(NamedTuple):
    """One place in the user's program. Columns are UTF-8 byte offsets as in co_positions(); -1: not known."""

    filename: str
    function: str
    line: int
    end_line: int = -1
    column: int = -1
    end_column: int = -1

    def __str__(self) -> str:
        """The place as a traceback shows it: file, line, source, and carets below the part that is meant."""
        text = f'  File "{self.filename}", line {self.line}, in {self.function}'
        source = linecache.getline(self.filename, self.line).rstrip("\n")
        stripped = source.lstrip()
        if not stripped:
            return text
        text += f"\n    {stripped}"
        carets = self._carets(source, len(source) - len(stripped))
        return f"{text}\n    {carets}" if carets else text

    def _carets(self, source: str, indent: int) -> str:
        if self.column < 0:
            return ""
        start = _characters(source, self.column)
        same_line = self.end_line in (-1, self.line) and self.end_column >= 0
        end = _characters(source, self.end_column) if same_line else len(source)
        if end <= start or (start <= indent and end >= len(source)):
            return ""  # nothing to point at, or all of the line
        return " " * (start - indent) + "^" * (end - start)


def _characters(source: str, byte_offset: int) -> int:
    return len(source.encode("utf-8")[:byte_offset].decode("utf-8", errors="replace"))


_FrameLike = Union[UserFrame, Tuple[str, str, int, int, int, int]]


class PellucidError(RuntimeError):
    """Base of what Pellucid itself raises."""


class Unsupported(PellucidError):
    """Capture met something it can't put into the graph, and the caller asked for one whole graph (`fullgraph=True`)."""

    def __init__(
        self, reason: str, title: str, explanation: str = "", hint: str = "", detail: str = "", user_stack: Iterable[_FrameLike] = ()
    ) -> None:
        """`reason` is the stable id that docs list; `user_stack` is outermost first."""
        self.reason = reason
        self.title = title
        self.explanation = explanation
        self.hint = hint
        self.detail = detail
        self.user_stack: List[UserFrame] = [UserFrame(*frame) for frame in user_stack]
        # All of it in `args`, so that the exception survives pickling.
        super().__init__(reason, title, explanation, hint, detail, self.user_stack)

    def __str__(self) -> str:
        lines = [f"{self.title} [{self.reason}]"]
        parts = (("detail", self.detail), ("why", self.explanation), ("hint", self.hint))
        lines += [f"  {label}: {value}" for label, value in parts if value]
        if self.user_stack:
            lines += ["", "from user code:", *map(str, self.user_stack)]
        return "\n".join(lines)


class BackendCompilerFailed(PellucidError):
    """The backend raised, or returned something that can't be called. The state of the program is as before the call."""

    def __init__(self, backend: str, detail: str, inner: Optional[BaseException] = None) -> None:
        """`inner` is what the backend raised, if it did; it becomes `__cause__`."""
        self.backend = backend
        self.detail = detail
        self.inner = inner
        super().__init__(backend, detail, inner)
        self.__cause__ = inner

    def __str__(self) -> str:
        return f"backend {self.backend!r} failed: {self.detail}"


class InternalError(PellucidError):
    """A fault of Pellucid's own. Raised only with `config.suppress_errors = False`; else the frame runs as written after a warning."""

    def __init__(self, detail: str, reproducer: Optional[str] = None) -> None:
        """`reproducer` is the path of a file that shows the fault, if one could be written."""
        self.detail = detail
        self.reproducer = reproducer
        super().__init__(detail, reproducer)

    def __str__(self) -> str:
        text = f"internal error: {self.detail}"
        return text if self.reproducer is None else f"{text}\n  reproduced by: {os.path.abspath(self.reproducer)}"


class GuardError(PellucidError):
    """Evaluating a guard raised. It is neither a pass nor a miss: something the guard looks at broke its own rules."""

    def __init__(self, guard: str, detail: str = "") -> None:
        """`guard` is the guard's text."""
        self.guard = guard
        self.detail = detail
        super().__init__(guard, detail)

    def __str__(self) -> str:
        return f"guard {self.guard} could not be evaluated" + (f": {self.detail}" if self.detail else "")


class DataDependentError(PellucidError):
    """A ShapeEnv was asked what only the data knows. The text says of which symbols, where they are from, and what to write instead."""


class ConstraintViolationError(PellucidError):
    """What was demanded of a dimension does not hold. The text says where it was broken, and what would mend it."""


class GuardsFrozenError(PellucidError):
    """A question needs a new guard after `ShapeEnv.freeze(errors=True)`."""


class CoreUnavailable(PellucidError, ImportError):
    """Capture is not possible in this process: Pellucid was built without torch, or for another version of it."""
