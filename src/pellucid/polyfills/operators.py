"""Polyfills of the operator module."""

from typing import Any, Iterator


def _iterate(a: Any) -> Iterator[Any]:
    iterator: Any = None
    try:
        iterator = iter(a)
    except TypeError:
        pass
    if iterator is None:
        raise TypeError("argument of type '%.200s' is not iterable" % type(a).__name__)
    return iterator


def countOf(a: Any, b: Any) -> int:
    """Return how many items of a are b or equal to b."""
    iterator = _iterate(a)
    count = 0
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return count
        if item is b or item == b:
            count += 1


def indexOf(a: Any, b: Any) -> int:
    """Return the first index of b in a."""
    iterator = _iterate(a)
    index = 0
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            break
        if item is b or item == b:
            return index
        index += 1
    raise ValueError("sequence.index(x): x not in sequence")
