"""Settings, as attributes of this module: `pellucid.config.cache_size_limit = 16`, `with pellucid.config.patch(...)`.

Values lie in the module's own dictionary under their names, so reading one is a plain lookup, from C++ too. Writing is checked: a
misspelt name or a value of the wrong kind is an error at once. Knows nothing of who reads the settings.
"""

import difflib
import functools
import sys
from types import ModuleType, TracebackType
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional, Type, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Option(NamedTuple):
    default: Any
    check: Callable[[Any], bool]
    wants: str
    doc: str


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _one_of(*values: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in values


_OPTIONS: Dict[str, _Option] = {
    "cache_size_limit": _Option(
        8, _is_count, "an int of at least 1", "entries per code object and optimize call; past it, calls that miss run as written"
    ),
    "backend_errors": _Option(
        "raise", _one_of("raise", "eager"), '"raise" or "eager"', "when a backend fails: raise BackendCompilerFailed, or run as written"
    ),
    "suppress_errors": _Option(True, _is_bool, "a bool", "internal faults: warn and run the frame as written, or raise InternalError"),
    "instruction_limit": _Option(
        1_000_000, _is_count, "an int of at least 1", "symbolically executed instructions in one capture; past it the graph ends"
    ),
    "assume_duck_shapes": _Option(
        True, _is_bool, "a bool", "sizes that are equal when a symbol is made share it, at the price of a guard that they stay equal"
    ),
}

# Declared for readers and type checkers; the table above is what counts, and a test compares the two.
cache_size_limit: int = 8
backend_errors: str = "raise"
suppress_errors: bool = True
instruction_limit: int = 1_000_000
assume_duck_shapes: bool = True


def options() -> Dict[str, Any]:
    """The current value of every setting, by name."""
    return {name: globals()[name] for name in _OPTIONS}


def describe() -> str:
    """Every setting with its value, its default and what it does, one a line."""
    return "\n".join(f"{name} = {globals()[name]!r} (default {option.default!r}): {option.doc}" for name, option in _OPTIONS.items())


def reset() -> None:
    """Sets every setting back to its default."""
    globals().update({name: option.default for name, option in _OPTIONS.items()})


def _unknown(name: str) -> NoReturn:
    close = difflib.get_close_matches(name, _OPTIONS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(sorted(_OPTIONS))
    raise AttributeError(f"pellucid.config has no setting {name!r}; {hint}")


def _check(name: str, value: Any) -> None:
    if name not in _OPTIONS:
        _unknown(name)
    option = _OPTIONS[name]
    if not option.check(value):
        raise ValueError(f"pellucid.config.{name} must be {option.wants}, not {value!r}")


class patch:
    """Sets settings for a while: `with patch(cache_size_limit=2): ...`, or `@patch(...)` around every call of a function.

    Takes keywords, or a dictionary of names and values. May be nested and used again.
    """

    def __init__(self, changes: Optional[Dict[str, Any]] = None, **more: Any) -> None:
        """Names and values are checked here, before anything changes."""
        self._changes: Dict[str, Any] = {**(changes or {}), **more}
        for name, value in self._changes.items():
            _check(name, value)
        self._saved: List[Dict[str, Any]] = []

    def __enter__(self) -> "patch":
        self._saved.append({name: globals()[name] for name in self._changes})
        globals().update(self._changes)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType]) -> None:
        globals().update(self._saved.pop())

    def __call__(self, function: _Function) -> _Function:
        """Decorates a function; for a coroutine or generator function only the making of the object is covered."""

        @functools.wraps(function)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with patch(self._changes):  # one of its own: calls may overlap
                return function(*args, **kwargs)

        return patched  # type: ignore[return-value]


class _ConfigModule(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # What the import system writes is no setting: __spec__, __loader__ and the like.
        if not (name.startswith("__") and name.endswith("__")):
            _check(name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"pellucid.config.{name} can't be deleted; pellucid.config.reset() brings the defaults back")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module 'pellucid.config' has no attribute {name!r}")
        _unknown(name)


sys.modules[__name__].__class__ = _ConfigModule
