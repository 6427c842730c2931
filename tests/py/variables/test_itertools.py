"""itertools inside captured code: native iterators and inlined polyfills, over tensors and over functions of the program."""

import itertools

import pytest
import torch


def test_itertools_over_values(check, x):
    def f(x):
        a = (
            list(itertools.islice(itertools.count(3, 2), 4)),
            list(itertools.islice("abcdef", 1, None, 2)),
            list(itertools.islice([1, 2], 5)),
        )
        b = list(itertools.chain([1], (2, x), "c")), list(itertools.chain.from_iterable([[x], (x * 2,)])), list(itertools.chain())
        c = list(itertools.repeat(x, 2)), list(zip(itertools.repeat(1), "ab")), list(map(pow, [2, 3], itertools.repeat(2)))
        d = [u + v for u, v in itertools.product((1, 2), (x, -x))], list(itertools.product("ab", repeat=2)), list(itertools.product())
        e = (
            list(itertools.combinations((1, 2, 3), 2)),
            list(itertools.permutations("abc", 2)),
            list(itertools.combinations_with_replacement("ab", 2)),
        )
        return a, b, c, d, e, x + 1

    check(f, x)


def test_itertools_with_callbacks(check, x):
    def f(x):
        a = (
            list(itertools.accumulate([x, x, x], lambda p, q: p * 2 + q)),
            list(itertools.accumulate([1, 2, 3])),
            list(itertools.accumulate([1], initial=5)),
        )
        b = (
            [(k, len(list(g))) for k, g in itertools.groupby("aabbbc")],
            [(k, sum(g)) for k, g in itertools.groupby([1, 3, 2, 4, 5], key=lambda v: v % 2)],
        )
        c = list(itertools.takewhile(lambda v: v < 3, [1, 2, 3, 1])), list(itertools.dropwhile(lambda v: v < 3, [1, 2, 3, 1]))
        d = (
            list(itertools.starmap(torch.add, [(x, 1), (x, x)])),
            list(itertools.filterfalse(None, [0, 1, 2])),
            list(itertools.compress("abc", [1, 0, 1])),
        )
        e = list(itertools.zip_longest([1, 2], [x], fillvalue=0)), list(itertools.pairwise([1, 2, 3]))
        cyc = itertools.cycle([1, 2])
        g = [next(cyc) for _ in range(5)]
        left, right = itertools.tee(iter([1, 2, 3]))
        h = next(left), list(right), list(left)
        return a, b, c, d, e, g, h

    check(f, x)


def test_iterators_are_lazy(check, x):
    def f(x):
        log = []

        def note(v):
            log.append(v)
            return v

        stream = map(note, [1, 2, 3, 4])
        first = list(itertools.islice(stream, 2))
        before = list(log)
        rest = list(itertools.takewhile(lambda v: v < 4, stream))
        return x + 1, first, before, rest, log

    check(f, x)


def test_infinite_iterators_in_loops(check, x):
    def f(x):
        for i in itertools.count():
            if i == 3:
                break
            x = x + i
        for i, t in zip(itertools.count(1.5, 0.5), x):
            x = x + i * t
        for v in itertools.cycle((1, 2)):
            x = x * v
            if v == 2:
                break
        return x

    check(f, x)


def test_iterator_given_from_a_loop(check, x):
    def f(x):
        it = iter(range(6))
        pairs = list(zip(it, it))
        chunks = [list(itertools.islice(iter([1, 2, 3, 4]), n)) for n in range(3)]
        return x + 1, pairs, chunks

    check(f, x)


def test_exceptions_of_callbacks(check, x):
    def f(x):
        out = []
        try:
            list(itertools.starmap(lambda a: 1 / a, [(1,), (0,)]))
        except ZeroDivisionError as e:
            out.append(str(e))
        try:
            list(itertools.islice([1], -1))
        except ValueError as e:
            out.append(str(e))
        try:
            list(itertools.permutations([1], -2))
        except ValueError as e:
            out.append(str(e))
        return x + 1, out

    check(f, x)


def test_break_inside_a_callback(check, x):
    def f(x):
        def noisy(v):
            print(end="")
            return v * 2

        y = x + 1
        return y * 2, list(map(noisy, [1, 2])), list(itertools.starmap(torch.add, [(y, noisy(2))]))

    check(f, x, breaks=True)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_chain_of_iterators_that_were_started(check, x, n):
    def f(x, n):
        it = iter([1, 2, 3])
        for _ in range(n):
            next(it)
        return x + 1, list(itertools.chain(it, "ab", it))

    check(f, x, n)
