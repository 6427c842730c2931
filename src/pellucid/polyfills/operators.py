"""Polyfills of the operator module."""

from typing import Any


def countOf(a: Any, b: Any) -> int:
    """Return how many items of a are b or equal to b."""
    count = 0
    for item in a:
        if item is b or item == b:
            count += 1
    return count


def indexOf(a: Any, b: Any) -> int:
    """Return the first index of b in a."""
    for index, item in enumerate(a):
        if item is b or item == b:
            return index
    raise ValueError("sequence.index(x): x not in sequence")
