"""What the call path in C++ tells Python on its cold side: misses, skips, the entry limit, faults. Called by name from `_core`.

Each function turns an event into log records. Knows nothing of caches; code objects and texts are all it gets.
"""

import os
import tempfile
from types import CodeType
from typing import List

from pellucid import config, exc, logging


def _place(code: CodeType) -> str:
    return f"{code.co_qualname if hasattr(code, 'co_qualname') else code.co_name} ({code.co_filename}:{code.co_firstlineno})"


def _why(reasons: List[List[str]]) -> str:
    lines = []
    for number, texts in enumerate(reasons):
        lines += [f"  entry {number}: {text}" for text in (texts or ["no failing guard found"])]
    return "\n".join(lines)


def cache_size_limit() -> int:
    """The limit as it is now."""
    return config.cache_size_limit


def skipped(code: CodeType, reason: str) -> None:
    """Code that will not be captured again."""
    logging.log("graph_breaks", f"{_place(code)} runs as written from now on: {reason}")


def run_as_is(code: CodeType, reason: str) -> None:
    """A call that runs as written; the next one is looked at again."""
    logging.log("graph_breaks", f"{_place(code)} runs this call as written: {reason}")


def recompiles_wanted() -> bool:
    """Whether the reasons of misses are worth making."""
    return logging.enabled("recompiles")


def recompiling(code: CodeType, reasons: List[List[str]]) -> None:
    """A miss with entries there: `reasons` has the failing guards of each."""
    logging.log("recompiles", f"{_place(code)} is captured again, as no entry fits:\n{_why(reasons)}")


def limit_reached(code: CodeType, reasons: List[List[str]]) -> None:
    """The miss that found all entries taken. Told once per code object and optimize call."""
    logging.root.warning(
        "%s has reached config.cache_size_limit (%d): calls that fit no entry run as written from now on.\n%s",
        _place(code),
        len(reasons),
        _why(reasons),
    )


def _reproducer(code: CodeType, detail: str) -> str:
    handle, path = tempfile.mkstemp(prefix="pellucid_fault_", suffix=".py")
    import base64
    import marshal

    # A code object without its source: enough to capture it again and look.
    text = base64.b64encode(marshal.dumps(code)).decode("ascii")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"# {_place(code)}\n" + "".join(f"# {line}\n" for line in detail.splitlines()))
        file.write("import base64, dis, marshal\n\n")
        file.write(f'code = marshal.loads(base64.b64decode("{text}"))\n')
        file.write('if __name__ == "__main__":\n    dis.dis(code)\n')
    return path


def internal_fault(code: CodeType, detail: str) -> None:
    """A failed CHECK. With config.suppress_errors the frame runs as written after this warning, else the fault is raised."""
    path = _reproducer(code, detail)
    if not config.suppress_errors:
        raise exc.InternalError(detail, path)
    logging.root.warning(
        "internal error while capturing %s, which runs as written: %s\n  the code and this message are in %s", _place(code), detail, path
    )
