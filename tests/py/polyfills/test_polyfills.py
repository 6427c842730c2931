"""Polyfills against the C functions they stand for: values, exceptions with their texts, and the order of calls into the program."""

import collections
import functools
import itertools
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.polyfills import builtins as builtins_polyfills
from pellucid.polyfills import collections as collections_polyfills
from pellucid.polyfills import functional, operators
from pellucid.polyfills import itertools as polyfills

LIMIT = 60

small = st.integers(-3, 6)
items = st.lists(st.one_of(st.integers(-2, 3), st.sampled_from(["a", "b", 1.0, None, True])), max_size=6)
numbers = st.lists(st.one_of(st.integers(-5, 5), st.floats(-3, 3)), max_size=6)
optional = st.one_of(st.none(), small)


class Log:
    """Iterables and functions that write down every call."""

    def __init__(self):
        self.calls = []

    def iterable(self, name, values):
        log = self

        class Iterator:
            def __init__(self):
                self.position = 0

            def __iter__(self):
                log.calls.append(("iter again", name))
                return self

            def __next__(self):
                log.calls.append(("next", name))
                if self.position >= len(values):
                    raise StopIteration
                self.position += 1
                return values[self.position - 1]

        class Iterable:
            def __iter__(self):
                log.calls.append(("iter", name))
                return Iterator()

        return Iterable()

    def function(self, name, function):
        def logged(*args):
            self.calls.append((name, args))
            return function(*args)

        return logged


def outcome(run):
    """What `run(log)` gives: a list of at most LIMIT results or the exception, and the calls it made."""
    log = Log()
    try:
        iterator = iter(run(log))
        log.calls.append("made")
        results = list(itertools.islice(iterator, LIMIT))
    except Exception as error:
        return type(error), str(error), type(error.__cause__), type(error.__context__), log.calls
    return [(type(r), r) for r in results], log.calls


def same(original, polyfill, run):
    assert outcome(lambda log: run(polyfill, log)) == outcome(lambda log: run(original, log))


@given(small, small)
def test_count(start, step):
    same(itertools.count, polyfills.count, lambda f, log: f(start, step))
    same(itertools.count, polyfills.count, lambda f, log: f(float(start), step / 2))


@given(st.lists(items, max_size=4))
def test_zip_longest(lists):
    same(
        itertools.zip_longest,
        polyfills.zip_longest,
        lambda f, log: f(*[log.iterable(i, values) for i, values in enumerate(lists)], fillvalue="-"),
    )


@given(items)
def test_one_iterable(values):
    for name in ("cycle", "pairwise", "permutations"):
        same(getattr(itertools, name), getattr(polyfills, name), lambda f, log: f(log.iterable("x", values)))


@given(numbers, optional)
def test_accumulate(values, initial):
    same(itertools.accumulate, polyfills.accumulate, lambda f, log: f(log.iterable("x", values), initial=initial))
    same(
        itertools.accumulate,
        polyfills.accumulate,
        lambda f, log: f(log.iterable("x", values), log.function("f", lambda a, b: a * 2 + b), initial=initial),
    )


@given(items, small)
def test_combinatorics(values, r):
    for name in ("combinations", "combinations_with_replacement", "permutations"):
        same(getattr(itertools, name), getattr(polyfills, name), lambda f, log: f(log.iterable("x", values), r))
    same(itertools.permutations, polyfills.permutations, lambda f, log: f(values, None))


@pytest.mark.parametrize("name", ["combinations", "combinations_with_replacement", "permutations"])
def test_combinatorics_refuse_other_lengths(name):
    same(getattr(itertools, name), getattr(polyfills, name), lambda f, log: f([1, 2], 1.5))
    same(getattr(itertools, name), getattr(polyfills, name), lambda f, log: f([1, 2], True))


@given(st.lists(st.lists(small, max_size=3), max_size=3), small)
def test_product(lists, repeat):
    same(
        itertools.product,
        polyfills.product,
        lambda f, log: f(*[log.iterable(i, values) for i, values in enumerate(lists)], repeat=repeat),
    )
    same(itertools.product, polyfills.product, lambda f, log: f(*lists))


@given(items, items)
def test_compress(data, selectors):
    same(itertools.compress, polyfills.compress, lambda f, log: f(log.iterable("d", data), log.iterable("s", selectors)))


@given(items)
def test_predicates(values):
    for name in ("dropwhile", "takewhile", "filterfalse"):
        same(getattr(itertools, name), getattr(polyfills, name), lambda f, log: f(log.function("p", bool), log.iterable("x", values)))
    for function in (None, bool):
        same(itertools.filterfalse, polyfills.filterfalse, lambda f, log: f(function, log.iterable("x", values)))


@pytest.mark.parametrize("name", ["dropwhile", "takewhile", "filterfalse", "starmap"])
def test_stop_iteration_of_a_callback_ends_the_iteration(name):
    def stop(*args):
        if args[0] == 2:
            raise StopIteration
        return True

    same(getattr(itertools, name), getattr(polyfills, name), lambda f, log: f(stop, [(1,), (2,), (3,)] if name == "starmap" else [1, 2, 3]))
    same(itertools.accumulate, polyfills.accumulate, lambda f, log: f([1, 2, 3], stop))
    same(itertools.groupby, polyfills.groupby, lambda f, log: (k for k, _ in f([1, 2, 3], stop)))


@given(items, st.booleans())
def test_groupby_with_groups_read(values, with_key):
    def run(f, log):
        key = log.function("key", str) if with_key else None
        return ((k, list(group)) for k, group in f(log.iterable("x", values), key))

    same(itertools.groupby, polyfills.groupby, run)


@given(items, st.lists(st.sampled_from(["next", "first", "last"]), max_size=12))
def test_groupby_with_groups_read_in_any_order(values, steps):
    def run(f, log):
        # A list: C iterators that ended ask their source again when they are asked again, generators do not.
        groups = f(values, log.function("key", str))
        made = []
        for step in steps:
            if step == "next":
                pair = next(groups, None)
                if pair is None:
                    return
                made.append(pair[1])
                yield pair[0]
            elif made:
                yield next(made[0] if step == "first" else made[-1], "end")

    same(itertools.groupby, polyfills.groupby, run)


@given(items, optional, optional, optional, st.integers(1, 3))
def test_islice(values, start, stop, step, count):
    def run(f, log):
        iterable = log.iterable("x", values)
        if count == 1:
            return f(iterable, stop)
        return f(iterable, start, stop) if count == 2 else f(iterable, start, stop, step)

    same(itertools.islice, polyfills.islice, run)


@pytest.mark.parametrize(
    "args", [(1.5,), ("a",), (0, 1.5), (1.5, 3), (0, 3, 1.5), (0, 3, 0), (-1,), (-2,), (0, -1), (0, -2), (True,), (2, 5, 10)]
)
def test_islice_of_odd_arguments(args):
    same(itertools.islice, polyfills.islice, lambda f, log: f(log.iterable("x", [1, 2, 3, 4]), *args))


@given(st.lists(st.tuples(small, small), max_size=5))
def test_starmap(pairs):
    same(itertools.starmap, polyfills.starmap, lambda f, log: f(log.function("f", operator.add), log.iterable("x", pairs)))


@given(items, st.lists(st.integers(0, 2), max_size=15))
def test_tee(values, order):
    def run(f, log):
        copies = f(log.iterable("x", values), 3)
        for which in order:
            item = next(copies[which], "end")
            yield item
            if item == "end":
                return

    same(itertools.tee, polyfills.tee, run)


def test_tee_of_odd_counts():
    for n in (0, 1, -1, 1.5, "a"):
        same(itertools.tee, polyfills.tee, lambda f, log: [list(i) for i in f([1, 2], n)])


@given(items, st.integers(-1, 4))
def test_batched(values, n):
    if not hasattr(itertools, "batched"):
        chunks = [tuple(values[i : i + n]) for i in range(0, len(values), n)] if n > 0 else None
        if chunks is None:
            with pytest.raises(ValueError, match="n must be at least one"):
                polyfills.batched(values, n)
        else:
            assert list(polyfills.batched(values, n)) == chunks
        return
    same(itertools.batched, polyfills.batched, lambda f, log: f(log.iterable("x", values), n))


@given(numbers, st.booleans())
def test_reduce(values, with_initial):
    def run(f, log):
        function = log.function("f", lambda a, b: a * 2 - b)
        iterable = log.iterable("x", values)
        return [f(function, iterable, 7) if with_initial else f(function, iterable)]

    same(functools.reduce, functional.reduce, run)


@pytest.mark.parametrize("iterable", [[], 3, None, (1,)])
def test_reduce_of_odd_iterables(iterable):
    same(functools.reduce, functional.reduce, lambda f, log: [f(operator.add, iterable)])


@given(st.lists(st.integers(0, 4), max_size=10))
def test_cmp_to_key(values):
    def run(f, log):
        return sorted(values, key=f(log.function("cmp", lambda a, b: b - a)))

    same(functools.cmp_to_key, functional.cmp_to_key, run)
    ours, theirs = functional.cmp_to_key(lambda a, b: a - b), functools.cmp_to_key(lambda a, b: a - b)
    for compare in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        assert [compare(ours(a), ours(b)) for a in (1, 2) for b in (1, 2)] == [
            compare(theirs(a), theirs(b)) for a in (1, 2) for b in (1, 2)
        ]
    with pytest.raises(TypeError):
        hash(ours(1))


@given(items, small)
def test_count_of_and_index_of(values, wanted):
    same(operator.countOf, operators.countOf, lambda f, log: [f(log.iterable("x", values), wanted)])
    same(operator.indexOf, operators.indexOf, lambda f, log: [f(log.iterable("x", values), wanted)])


@pytest.mark.parametrize("name", ["countOf", "indexOf"])
def test_count_of_and_index_of_things_without_items(name):
    same(getattr(operator, name), getattr(operators, name), lambda f, log: [f(3, 1)])


def test_starmap_of_things_that_are_no_arguments():
    same(itertools.starmap, polyfills.starmap, lambda f, log: f(operator.add, [3]))


def test_identity_counts_as_equality():
    nan = float("nan")
    assert operators.countOf([nan, 1], nan) == operator.countOf([nan, 1], nan) == 1
    assert operators.indexOf([1, nan], nan) == operator.indexOf([1, nan], nan) == 1


@given(items)
def test_count_elements(values):
    ours, theirs = {}, {}
    collections_polyfills._count_elements(ours, values)
    collections._count_elements(theirs, values)
    assert list(ours.items()) == list(theirs.items())


class Sequence:
    def __init__(self, log, values, missing=()):
        self.log, self.values, self.missing = log, values, missing

    def __len__(self):
        self.log.calls.append("len")
        return len(self.values)

    def __getitem__(self, index):
        self.log.calls.append(("item", index))
        if index in self.missing:
            raise IndexError(index)
        return self.values[index]


@given(items, st.sets(st.integers(0, 6), max_size=2))
@settings(max_examples=50)
def test_reversed_of_sequences(values, missing):
    same(reversed, builtins_polyfills.reversed, lambda f, log: f(Sequence(log, values, missing)))


@given(st.dictionaries(small, small, max_size=5))
def test_reversed_of_dicts(mapping):
    assert list(builtins_polyfills.reversed_keys(mapping)) == list(reversed(mapping))
    assert list(builtins_polyfills.reversed_values(mapping)) == list(reversed(mapping.values()))
    assert list(builtins_polyfills.reversed_items(mapping)) == list(reversed(mapping.items()))


def test_reversed_of_a_dict_that_grows():
    def grow(make):
        mapping = {1: 2, 3: 4}
        for key in make(mapping):
            mapping[key + 10] = 0

    same(reversed, builtins_polyfills.reversed_keys, lambda f, log: [grow(f)])
