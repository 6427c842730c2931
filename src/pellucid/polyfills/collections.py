"""Polyfills of the collections module."""

from typing import Any


def _count_elements(mapping: Any, iterable: Any) -> None:
    """Count the items of an iterable in a mapping, as Counter.update does."""
    get = mapping.get
    for item in iterable:
        mapping[item] = get(item, 0) + 1
