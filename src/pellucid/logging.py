"""What Pellucid tells while it works, through the standard `logging` module, sorted by artifact.

`PELLUCID_LOGS=guards,recompiles python program.py` (or `enable("guards,recompiles")`) turns artifacts on; each has a logger of its
own, `pellucid.guards` and so on. Warnings go to the logger `pellucid` and are always on. Knows the names, not who writes to them.
"""

import logging as _logging
import os as _os
import sys as _sys
from typing import Dict, Iterable, Union

ARTIFACTS: Dict[str, str] = {
    "guards": "the guards of each new cache entry, and its guard program",
    "recompiles": "on a miss, every failing guard with its values",
    "graph_breaks": "each graph break: reason, hint, and the user's stack",
    "graph_code": "each captured graph as Python",
    "bytecode": "each code object before and after",
    "sources": "where each captured value came from",
    "perf": "how long each capture took, by phase",
}

root: _logging.Logger = _logging.getLogger("pellucid")
_loggers: Dict[str, _logging.Logger] = {name: _logging.getLogger("pellucid." + name) for name in ARTIFACTS}
LEVEL = _logging.DEBUG  # of all artifact records: whether they are wanted is said by name, not by level


class _Handler(_logging.Handler):
    """Writes to stderr while the program has set up no logging of its own; else its handlers get the records, and once."""

    def emit(self, record: _logging.LogRecord) -> None:
        if _logging.getLogger().handlers:
            return
        try:
            _sys.stderr.write(self.format(record) + "\n")
        except Exception:  # what handlers do: logging must not stop the program
            self.handleError(record)


_handler = _Handler()
_handler.setFormatter(_logging.Formatter("[%(name)s] %(message)s"))


def _set_up() -> None:
    # The level keeps artifacts silent that nobody asked for, whatever the program's root logger shows.
    if root.level == _logging.NOTSET:
        root.setLevel(_logging.WARNING)
    if _handler not in root.handlers:
        root.addHandler(_handler)


def logger(artifact: str) -> _logging.Logger:
    """The logger of one artifact; ValueError for a name that is none."""
    return _loggers[_known(artifact)]


def enabled(artifact: str) -> bool:
    """Whether anybody reads this artifact: what is dear to print need not be printed otherwise."""
    return logger(artifact).isEnabledFor(LEVEL)


def log(artifact: str, message: str) -> None:
    """Writes one record of an artifact; `message` is taken as it is."""
    logger(artifact).log(LEVEL, "%s", message)


def enable(names: Union[str, Iterable[str]]) -> None:
    """Turns artifacts on: names, or one string of names with commas; "all" means every one. ValueError for an unknown name."""
    for name in _parse(names):
        logger(name).setLevel(LEVEL)


def disable(names: Union[str, Iterable[str]] = "all") -> None:
    """Turns artifacts off again."""
    for name in _parse(names):
        logger(name).setLevel(_logging.NOTSET)


def _known(name: str) -> str:
    if name not in ARTIFACTS:
        raise ValueError(f"unknown log artifact {name!r}; known: {', '.join(sorted(ARTIFACTS))}, all")
    return name


def _parse(names: Union[str, Iterable[str]]) -> Iterable[str]:
    words = [word.strip() for word in (names.split(",") if isinstance(names, str) else names)]
    wanted = [word for word in words if word]
    return list(ARTIFACTS) if "all" in wanted else [_known(word) for word in wanted]


def _from_environment() -> None:
    try:
        enable(_os.environ.get("PELLUCID_LOGS", ""))
    except ValueError as error:
        raise ValueError(f"PELLUCID_LOGS: {error}") from None


_set_up()
_from_environment()
