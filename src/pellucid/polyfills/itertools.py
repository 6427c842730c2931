"""Polyfills of the itertools module.

A function of itertools takes its iterators when it is called and runs when it is iterated. So each polyfill checks its arguments,
calls iter() and hands over to a generator. Within a generator, next() is called on the iterators themselves (a for loop would call
their __iter__ again), and a StopIteration out of the program's callbacks ends the iteration, as it does in C.
"""

from typing import Any, Callable, Iterator, List, Optional, Tuple

_Function = Callable[..., Any]


def _index(value: Any) -> int:
    """Return an integer as C functions read it; others raise their TypeError."""
    return range(value).stop


def count(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    """Count from start without end."""
    while True:
        yield start
        start = start + step


def cycle(iterable: Any) -> Iterator[Any]:
    """Give the items of an iterable, then the same again, without end."""
    return _cycle(iter(iterable))


def _cycle(iterator: Iterator[Any]) -> Iterator[Any]:
    saved: List[Any] = []
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            break
        saved.append(item)
        yield item
    while saved:
        for item in saved:
            yield item


def accumulate(iterable: Any, func: Optional[_Function] = None, *, initial: Any = None) -> Iterator[Any]:
    """Give the running totals, or the running results of a function of two arguments."""
    return _accumulate(iter(iterable), func, initial)


def _accumulate(iterator: Iterator[Any], func: Optional[_Function], initial: Any) -> Iterator[Any]:
    try:
        total = next(iterator) if initial is None else initial
    except StopIteration:
        return
    yield total
    while True:
        try:
            item = next(iterator)
            total = total + item if func is None else func(total, item)
        except StopIteration:
            return
        yield total


def batched(iterable: Any, n: int) -> Iterator[Any]:
    """Give tuples of n items; the last may be shorter."""
    if n < 1:
        raise ValueError("n must be at least one")
    return _batched(iter(iterable), n)


def _batched(iterator: Iterator[Any], n: int) -> Iterator[Any]:
    while True:
        batch: List[Any] = []
        while len(batch) < n:
            try:
                batch.append(next(iterator))
            except StopIteration:
                break
        if batch:
            yield tuple(batch)
        if len(batch) < n:
            return


def combinations(iterable: Any, r: int) -> Iterator[Any]:
    """Give the r-length subsequences, in order of position."""
    r = _index(r)
    pool = tuple(iterable)
    if r < 0:
        raise ValueError("r must be non-negative")
    return _combinations(pool, r)


def _combinations(pool: Tuple[Any, ...], r: int) -> Iterator[Any]:
    n = len(pool)
    if r > n:
        return
    indices = list(range(r))
    yield tuple([pool[i] for i in indices])
    while True:
        i = r - 1
        while i >= 0 and indices[i] == i + n - r:
            i -= 1
        if i < 0:
            return
        indices[i] += 1
        for j in range(i + 1, r):
            indices[j] = indices[j - 1] + 1
        yield tuple([pool[i] for i in indices])


def combinations_with_replacement(iterable: Any, r: int) -> Iterator[Any]:
    """Give the r-length subsequences in which items may repeat, in order of position."""
    r = _index(r)
    pool = tuple(iterable)
    if r < 0:
        raise ValueError("r must be non-negative")
    return _combinations_with_replacement(pool, r)


def _combinations_with_replacement(pool: Tuple[Any, ...], r: int) -> Iterator[Any]:
    n = len(pool)
    if not n and r:
        return
    indices = [0] * r
    yield tuple([pool[i] for i in indices])
    while True:
        i = r - 1
        while i >= 0 and indices[i] == n - 1:
            i -= 1
        if i < 0:
            return
        value = indices[i] + 1
        for j in range(i, r):
            indices[j] = value
        yield tuple([pool[i] for i in indices])


def compress(data: Any, selectors: Any) -> Iterator[Any]:
    """Give the items of data whose selector is true."""
    return _compress(iter(data), iter(selectors))


def _compress(data: Iterator[Any], selectors: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            item = next(data)
            chosen = bool(next(selectors))
        except StopIteration:
            return
        if chosen:
            yield item


def dropwhile(predicate: _Function, iterable: Any) -> Iterator[Any]:
    """Leave out items while the predicate is true; give all that follow."""
    return _dropwhile(predicate, iter(iterable))


def _dropwhile(predicate: _Function, iterator: Iterator[Any]) -> Iterator[Any]:
    dropping = True
    while True:
        try:
            item = next(iterator)
            dropping = dropping and bool(predicate(item))
        except StopIteration:
            return
        if not dropping:
            yield item


def takewhile(predicate: _Function, iterable: Any) -> Iterator[Any]:
    """Give items while the predicate is true."""
    return _takewhile(predicate, iter(iterable))


def _takewhile(predicate: _Function, iterator: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            item = next(iterator)
            if not predicate(item):
                return
        except StopIteration:
            return
        yield item


def filterfalse(function: Optional[_Function], iterable: Any) -> Iterator[Any]:
    """Give the items for which the function is false; None: the false items."""
    return _filterfalse(function, iter(iterable))


def _filterfalse(function: Optional[_Function], iterator: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            item = next(iterator)
            left_out = bool(item) if function is None else bool(function(item))
        except StopIteration:
            return
        if not left_out:
            yield item


class _Groups:
    """What groupby and the groups it gave share."""

    def __init__(self, iterator: Iterator[Any], key: Optional[_Function]) -> None:
        self.iterator = iterator
        self.key_function = key
        self.has_key = False
        self.key: Any = None
        self.has_value = False
        self.value: Any = None
        self.number = 0  # of the group that may give items

    def step(self) -> None:
        value = next(self.iterator)
        self.key = value if self.key_function is None else self.key_function(value)
        self.value = value
        self.has_key = self.has_value = True


def groupby(iterable: Any, key: Optional[_Function] = None) -> Iterator[Any]:
    """Give pairs of a key and an iterator over the consecutive items that have it."""
    return _groupby(_Groups(iter(iterable), key))


def _groupby(state: _Groups) -> Iterator[Any]:
    started = False
    target: Any = None
    while True:
        state.number += 1
        try:
            while not state.has_key or (started and (target is state.key or target == state.key)):
                state.step()
        except StopIteration:
            return
        started = True
        target = state.key
        yield target, _group(state, target, state.number)


def _group(state: _Groups, target: Any, number: int) -> Iterator[Any]:
    while state.number == number:
        try:
            if not state.has_value:
                state.step()
            same = target is state.key or target == state.key
        except StopIteration:
            return
        if not same:
            return
        state.has_key = state.has_value = False
        yield state.value


def islice(iterable: Any, *args: Any) -> Iterator[Any]:
    """Give the items that a slice of the iterable would hold."""
    if not 1 <= len(args) <= 3:
        raise TypeError("islice expected %s, got %d" % ("at least 2 arguments" if not args else "at most 4 arguments", len(args) + 1))
    start: Any = 0
    stop: Any = args[0]
    step: Any = 1
    if len(args) > 1:
        start, stop = args[0], args[1]
    if len(args) == 3:
        step = args[2]
    start = 0 if start is None else start if hasattr(type(start), "__index__") else -1
    step = 1 if step is None else step if hasattr(type(step), "__index__") else -1
    if stop is not None and (not hasattr(type(stop), "__index__") or stop == -1):
        raise ValueError("Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if start < 0 or (stop is not None and stop < 0):
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if step < 1:
        raise ValueError("Step for islice() must be a positive integer or None.")
    return _islice(iter(iterable), start, stop, step)


def _islice(iterator: Iterator[Any], wanted: int, stop: Optional[int], step: int) -> Iterator[Any]:
    position = 0
    while True:
        try:
            while position < wanted:
                next(iterator)
                position += 1
            if stop is not None and position >= stop:
                return
            item = next(iterator)
        except StopIteration:
            return
        position += 1
        wanted += step
        if stop is not None and wanted > stop:
            wanted = stop
        yield item


def pairwise(iterable: Any) -> Iterator[Any]:
    """Give each item with its successor."""
    return _pairwise(iter(iterable))


def _pairwise(iterator: Iterator[Any]) -> Iterator[Any]:
    try:
        previous = next(iterator)
    except StopIteration:
        return
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return
        pair = (previous, item)
        previous = item
        yield pair


def permutations(iterable: Any, r: Optional[int] = None) -> Iterator[Any]:
    """Give the r-length arrangements, in order of position."""
    pool = tuple(iterable)
    if r is None:
        r = len(pool)
    elif not isinstance(r, int):
        raise TypeError("Expected int as r")
    if r < 0:
        raise ValueError("r must be non-negative")
    return _permutations(pool, r)


def _permutations(pool: Tuple[Any, ...], r: int) -> Iterator[Any]:
    n = len(pool)
    if r > n:
        return
    indices = list(range(n))
    cycles = list(range(n, n - r, -1))
    yield tuple([pool[i] for i in indices[:r]])
    while True:
        for i in range(r - 1, -1, -1):
            cycles[i] -= 1
            if cycles[i] == 0:
                indices = indices[:i] + indices[i + 1 :] + indices[i : i + 1]
                cycles[i] = n - i
            else:
                j = n - cycles[i]
                indices[i], indices[j] = indices[j], indices[i]
                yield tuple([pool[k] for k in indices[:r]])
                break
        else:
            return


def product(*iterables: Any, repeat: int = 1) -> Iterator[Any]:
    """Give the tuples with one item of each iterable, the last changing fastest."""
    repeat = _index(repeat)
    if repeat < 0:
        raise ValueError("repeat argument cannot be negative")
    pools = [tuple(iterable) for iterable in iterables] if repeat else []
    return _product(pools * repeat)


def _product(pools: List[Tuple[Any, ...]]) -> Iterator[Any]:
    for pool in pools:
        if not pool:
            return
    size = len(pools)
    positions = [0] * size
    while True:
        yield tuple([pools[i][positions[i]] for i in range(size)])
        for i in range(size - 1, -1, -1):
            positions[i] += 1
            if positions[i] < len(pools[i]):
                break
            positions[i] = 0
        else:
            return


def starmap(function: _Function, iterable: Any) -> Iterator[Any]:
    """Call a function with each item as its arguments."""
    return _starmap(function, iter(iterable))


def _starmap(function: _Function, iterator: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            value = function(*tuple(next(iterator)))
        except StopIteration:
            return
        yield value


def tee(iterable: Any, n: int = 2) -> Tuple[Iterator[Any], ...]:
    """Give n iterators over one iterable, each with all of its items."""
    n = _index(n)
    if n < 0:
        raise ValueError("n must be >= 0")
    if n == 0:
        return ()
    iterator = iter(iter(iterable))
    seen: List[Any] = []
    return tuple([_tee(iterator, seen) for _ in range(n)])


def _tee(iterator: Iterator[Any], seen: List[Any]) -> Iterator[Any]:
    position = 0
    while True:
        if position == len(seen):
            try:
                seen.append(next(iterator))
            except StopIteration:
                return
        item = seen[position]
        position += 1
        yield item


def zip_longest(*iterables: Any, fillvalue: Any = None) -> Iterator[Any]:
    """Zip to the end of the longest iterable; the others give the fill value."""
    return _zip_longest([iter(iterable) for iterable in iterables], fillvalue)


def _zip_longest(iterators: List[Iterator[Any]], fillvalue: Any) -> Iterator[Any]:
    size = active = len(iterators)
    done = [False] * size
    while active:
        values = []
        for i in range(size):
            value = fillvalue
            if not done[i]:
                try:
                    value = next(iterators[i])
                except StopIteration:
                    done[i] = True
                    active -= 1
                    if not active:
                        return
            values.append(value)
        yield tuple(values)
