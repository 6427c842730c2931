"""Generators that captured code leaves in the middle of try or with: what they do when they are dropped is done."""

import gc
import itertools

import pytest
import torch
from harness import check, ones, program

import pellucid


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


def after_the_end(program, *arguments):
    """What a program has logged when it returns, written and captured, on a first call and a hit. Nothing waits for the collector."""
    logs = []
    gc.disable()
    try:
        for run in (program, *[pellucid.optimize("eager")(program)] * 2):
            LOG.clear()
            run(*arguments)
            logs.append(list(LOG))
    finally:
        gc.enable()
    return logs


LOG = []


def steps(x):
    try:
        yield x
        yield x + 1
    finally:
        LOG.append("closed")


def test_what_nothing_reads_any_more_is_kept_to_the_end():
    def fn(x):
        generator = steps(x)
        y = next(generator)
        LOG.append("still open")
        return y

    expected, *captured = after_the_end(fn, torch.ones(2))
    assert expected == ["still open", "closed"] and captured == [expected, expected]


def test_a_caught_exception_keeps_nothing_alive():
    def fn(x):
        generator = steps(x)
        for _ in range(2):
            try:
                x @ torch.ones(3, 3)
            except RuntimeError:
                pass
        return next(generator)

    expected, *captured = after_the_end(fn, torch.ones(2, 2))
    assert expected == ["closed"] and captured == [expected, expected]


def test_an_exception_raised_by_a_callee_keeps_nothing_alive():
    def boom(x, n):
        if n > 1:
            raise ValueError(n)
        return x + n

    def fn(x):
        generator = steps(x)
        y = next(generator)
        for n in range(3):
            try:
                try:
                    del unbound  # noqa: F821
                except UnboundLocalError:
                    LOG.append(n)
                x = boom(x, n)
            except ValueError:
                break
        return y

    expected, *captured = after_the_end(fn, torch.ones(2))
    assert expected == [0, 1, 2, "closed"] and captured == [expected, expected]
