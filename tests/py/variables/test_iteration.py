"""Iteration: every iterable, live containers, iterators by hand, generators."""

import itertools

import pytest
import torch


def test_everything_iterable(check, x):
    def f(x, items, d):
        seen = []
        for source in (items, (1, 2), "ab", range(3), d, d.keys(), d.values(), d.items(), b"ab", {5}, frozenset([6])):
            for value in source:
                seen.append(value)
        return x + len(seen), seen

    check(f, x, [7, 8], {"k": 1, "l": 2})


def test_rows_of_a_tensor(check, x):
    def f(x):
        total = 0
        for i, row in enumerate(x):
            total = total + row * (i + 1)
        a, b = x
        return total, a - b, [r.sum() for r in x], list(x)[1], [*x][0]

    check(f, x)


def test_rows_of_a_scalar_tensor(check, x):
    def f(x):
        try:
            for _ in x.sum():
                pass
        except TypeError as error:
            return x + 1, str(error)

    check(f, x)


def test_builtin_iterators(check, x):
    def f(x):
        a, b = [1, 2, 3], ["x", "y"]
        results = [
            list(zip(a, b)),
            list(enumerate(b, 5)),
            list(map(lambda v, w: (v, w), a, b)),
            list(filter(None, [0, 1, "", "a"])),
            list(filter(lambda v: v > 1, a)),
            list(reversed(a)),
            list(reversed("ab")),
            list(itertools.chain(a, b)),
            list(itertools.chain.from_iterable([a, b])),
            list(itertools.repeat(1, 3)),
            list(itertools.islice(itertools.count(3, 2), 4)),
            list(itertools.islice(range(20), 3, 15, 4)),
            list(zip()),
            dict(zip(b, a)),
        ]
        return x + 1, results

    check(f, x)


def test_iterators_by_hand(check, x):
    def f(x):
        it = iter([1, 2, 3])
        first = next(it)
        rest = list(it)
        ended = next(it, "end")
        pulled = []
        numbers = iter(range(10))
        for a, b in zip(numbers, numbers):
            pulled.append((a, b))
            if len(pulled) == 2:
                break
        return x + first, rest, ended, pulled, next(numbers), iter(numbers) is numbers

    check(f, x)


def test_exhausted_iterators_stay_so(check, x):
    def f(x):
        a = [1]
        it = iter(a)
        values = [next(it, None), next(it, None)]
        a.append(2)
        values.append(next(it, None))
        z = zip([1], [2])
        list(z)
        return x + 1, values, list(z)

    check(f, x)


def test_list_may_grow_while_iterated(check, x):
    def f(x):
        a = [1, 2, 3]
        for v in a:
            if v < 3:
                a.append(v + 2)
        b = [1, 2, 3, 4]
        for v in b:
            b.remove(v)
        return x + 1, a, b

    check(f, x)


def test_dict_that_changes_size_while_iterated(check, x):
    def f(x):
        d = {"a": 1}
        try:
            for k in d:
                d[k + "x"] = 2
        except RuntimeError as error:
            first = str(error)
        s = {1}
        try:
            for v in s:
                s.add(v + 1)
        except RuntimeError as error:
            second = str(error)
        for k in d:
            d[k] = 5
        return x + 1, first, second, d

    check(f, x)


@pytest.mark.parametrize("lengths", [(2, 2), (2, 3), (3, 2), (1, 1, 2), (2, 2, 1)])
def test_strict_zip(check, x, lengths):
    def f(x):
        try:
            return x + 1, list(zip(*[range(n) for n in lengths], strict=True))
        except ValueError as error:
            return x + 1, str(error)

    check(f, x)


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Pages:
    def __getitem__(self, i):
        if i >= 3:
            raise IndexError
        return i * i


class Wrapper:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        for item in self.items:
            yield item


def test_user_iterators(check, x):
    def f(x):
        total = x
        for n in Countdown(3):
            total = total + n
        a, b, c = Countdown(3)
        return (
            total,
            list(Countdown(2)),
            list(Pages()),
            4 in Pages(),
            [v for v in Wrapper("ab")],
            a,
            max(Countdown(4)),
            list(zip(Wrapper([1]), Pages())),
        )

    check(f, x)


def test_iter_with_sentinel(check, x):
    def f(x):
        values = [1, 2, 3, 0, 4]
        return x + 1, list(iter(lambda: values.pop(0), 0)), values

    check(f, x)


def test_generators(check, x):
    def squares(n):
        for i in range(n):
            sent = yield i * i
            if sent is not None:
                yield sent

    def f(x):
        g = squares(4)
        got = [next(g), g.send("sent"), next(g)]
        rest = list(g)
        h = squares(2)
        next(h)
        h.close()
        return x + 1, got, rest, list(h), sum(v for v in squares(3)), [*squares(2)], any(v > 3 for v in squares(3))

    check(f, x)


def test_unpacking(check, x):
    def f(x):
        a, *b, c = range(5)
        (d, e), h = (1, 2), "z"
        errors = []
        for source in ([1], [1, 2, 3]):
            try:
                p, q = source
            except ValueError as error:
                errors.append(str(error))
        return x + a, b, c, d, e, h, errors

    check(f, x)


@pytest.mark.parametrize("wrong", [lambda: list(5), lambda: [*None], lambda: iter(len), lambda: dict([1]), lambda: [1, 2].extend(3)])
def test_what_is_not_iterable(check, x, wrong):
    def f(x):
        try:
            wrong()
        except TypeError as error:
            return x + 1, str(error)

    check(f, x)


def test_break_while_iterating_goes_on_where_it_was(check, x):
    import pellucid

    def f(x):
        out = []
        for i, (a, row) in enumerate(zip([10, 20], x)):
            out.append(row + a)
            pellucid.graph_break()
            out.append(row * i)
        return out

    check(f, x, breaks=True)


def test_data_dependent_step_of_a_filter_runs_as_written(check, x):
    def f(x):
        rows = [x[0] - 10, x[1] + 10]
        kept = list(filter(lambda r: r.sum() > 0, rows))
        return torch.stack(kept)

    check(f, x, breaks=True)
