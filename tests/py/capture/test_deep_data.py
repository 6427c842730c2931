"""Data nested far deeper than the C stack would hold, as arguments, results and in what captured code walks through."""

import pytest
import torch

from pellucid import optimize


def nested(depth, kind=list):
    value = 0
    for _ in range(depth):
        value = {"a": value} if kind is dict else kind([value])
    return value


def same(fn, *arguments):
    """Captured and as a hit: what eager gives. Nothing here may compare the data itself, which would recurse."""
    captured = optimize("eager")(fn)
    for _ in range(2):
        assert torch.equal(captured(*arguments), fn(*arguments))


@pytest.mark.parametrize("kind", [list, tuple, dict])
def test_a_deep_argument(kind):
    def fn(x, data):
        return x + len(data)

    same(fn, torch.ones(2), nested(10_000, kind))


def test_a_deep_argument_that_is_returned():
    deep = nested(10_000)

    def fn(x, data):
        return x + 1, data

    for _ in range(2):
        result, returned = optimize("eager")(fn)(torch.ones(2), deep)
        assert returned is deep and torch.equal(result, torch.full((2,), 2.0))


@pytest.mark.parametrize("kind", [list, tuple])
def test_walking_down(kind):
    def fn(x, data):
        depth = 0
        while isinstance(data, (list, tuple)) and data:
            data = data[0]
            depth += 1
        return x + depth

    same(fn, torch.ones(2), nested(2_000, kind))


def test_a_list_that_holds_itself():
    def fn(x, data):
        return x + len(data)

    data = [1]
    data.append(data)
    same(fn, torch.ones(2), data)


@pytest.mark.parametrize("made", ["itself", "shared"])
def test_functions_of_c_modules_on_endless_lists(made):
    def fn(x, itself):
        data = [1]
        if itself:
            data.append(data)
        else:
            for _ in range(60):
                data = [data, data]
        try:
            return x + len("%d" % len(data)), len(max([data], key=len))
        except (RecursionError, ValueError) as error:
            return x, type(error)

    arguments = torch.ones(2), made == "itself"
    assert str(optimize("eager")(fn)(*arguments)) == str(fn(*arguments))
