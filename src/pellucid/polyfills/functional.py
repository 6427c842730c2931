"""Polyfills of the functools module.

Errors are raised outside of except blocks: those of a C function have no __context__.
"""

from typing import Any, Callable


def reduce(function: Callable[[Any, Any], Any], iterable: Any, *initial: Any) -> Any:
    """Apply a function of two arguments cumulatively, from left to right."""
    iterator: Any = None
    try:
        iterator = iter(iterable)
    except TypeError:
        pass
    if iterator is None:
        raise TypeError("reduce() arg 2 must support iteration")
    if initial:
        value = initial[0]
    else:
        empty = False
        try:
            value = next(iterator)
        except StopIteration:
            empty = True
        if empty:
            raise TypeError("reduce() of empty iterable with no initial value")
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return value
        value = function(value, item)


class _Key:
    __slots__ = ("_compare", "obj")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, compare: Callable[[Any, Any], Any], obj: Any) -> None:
        self._compare = compare
        self.obj = obj

    def __lt__(self, other: Any) -> bool:
        return self._compare(self.obj, other.obj) < 0

    def __gt__(self, other: Any) -> bool:
        return self._compare(self.obj, other.obj) > 0

    def __eq__(self, other: Any) -> bool:
        return self._compare(self.obj, other.obj) == 0

    def __le__(self, other: Any) -> bool:
        return self._compare(self.obj, other.obj) <= 0

    def __ge__(self, other: Any) -> bool:
        return self._compare(self.obj, other.obj) >= 0


def cmp_to_key(mycmp: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Turn a comparison function into a key function."""
    return lambda obj: _Key(mycmp, obj)
