"""Polyfills of the builtins module."""

from typing import Any, Iterator, List


def reversed(sequence: Any) -> Iterator[Any]:
    """Walk an object that has __len__ and __getitem__ from its end, as the builtin reversed does."""
    return _walk_back(sequence, len(sequence) - 1)


def _walk_back(sequence: Any, index: int) -> Iterator[Any]:
    while index >= 0:
        try:
            item = sequence[index]
        except (IndexError, StopIteration):
            return
        index -= 1
        yield item


def reversed_keys(mapping: Any) -> Iterator[Any]:
    """Give the keys of a dict in reverse order, as reversed(mapping)."""
    return _reversed_entries(mapping, list(mapping), 0)


def reversed_values(mapping: Any) -> Iterator[Any]:
    """Give the values of a dict in reverse order, as reversed(mapping.values())."""
    return _reversed_entries(mapping, list(mapping), 1)


def reversed_items(mapping: Any) -> Iterator[Any]:
    """Give the items of a dict in reverse order, as reversed(mapping.items())."""
    return _reversed_entries(mapping, list(mapping), 2)


def _reversed_entries(mapping: Any, keys: List[Any], which: int) -> Iterator[Any]:
    size = len(keys)
    for index in range(size - 1, -1, -1):
        if len(mapping) != size:
            raise RuntimeError("dictionary changed size during iteration")
        key = keys[index]
        if which == 0:
            yield key
        elif which == 1:
            yield mapping[key]
        else:
            yield key, mapping[key]
