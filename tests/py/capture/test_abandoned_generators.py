"""Generators that captured code leaves in the middle of try or with: what they do when they are dropped is done."""

import itertools

import pytest
import torch
from harness import check, ones, program


def of(log):
    def steps(x, n):
        try:
            for i in range(n):
                yield x + i
        finally:
            log.append("closed")

    def nested(x):
        yield from steps(x, 3)

    def dropped(x):
        it = steps(x, 3)
        x = next(it) + 1
        return x * 2

    def replaced(x):
        it = steps(x, 3)
        x = next(it)
        it = None
        log.append("replaced")
        return x

    def left_by_break(x):
        for one in steps(x, 3):
            x = x + one
            if len(log) < 5:
                break
        return x

    def delegated(x):
        it = nested(x)
        return next(it) * 2

    def zipped(x):
        for one, i in zip(steps(x, 3), itertools.repeat(2, 1)):
            x = x + one * i
        return x

    def exhausted(x):
        for one in steps(x, 2):
            x = x + one
        return x

    return [dropped, replaced, left_by_break, delegated, zipped, exhausted]


@pytest.mark.parametrize("number", range(len(of([]))), ids=[f.__name__ for f in of([])])
def test_cleanup_runs(number):
    @program
    def make():
        log = []
        return of(log)[number], log

    check(make, ones(3), graphs="any", stable=False)


def test_generators_that_end_need_no_break():
    captured = check(of([])[-1], ones(3), graphs="any", stable=False, repeat=1)
    assert captured.breaks == [] and torch.equal(captured.results[0], torch.ones(3) * 3 + 1)
