"""Objects that were two when a program was captured and come as one later: a new capture where the program changes one, a hit where not."""

import sys

import pytest

torch = pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

import pellucid


def appends_to_first(a, b, c, d, x):
    a.append(5)
    return x * b[0] + c[0] + d[0] + len(b)


def appends_to_two(a, b, c, d, x):
    a.append(5)
    b.append(5)
    return x + c[0] + d[0] + len(c)


@pytest.mark.parametrize("function, changed", [(appends_to_first, 1), (appends_to_two, 2)])
def test_only_what_is_changed_must_be_no_other(function, changed):
    captured = pellucid.optimize(function, backend="eager", fullgraph=True)
    x = torch.ones(2)

    def call(call_function, first, second):
        lists = [[1] for _ in range(4)]
        lists[first] = lists[second]
        return call_function(*lists, x).tolist(), lists

    captured([1], [1], [1], [1], x)
    for second in range(4):
        for first in range(second):
            pellucid.reset()
            captured([1], [1], [1], [1], x)
            assert call(captured, first, second) == call(function, first, second)
            assert len(pellucid.cache_entries(captured)) == (2 if first < changed else 1), (first, second)


def test_changing_many_takes_one_guard():
    def changes(lists, x):
        for one in lists:
            one.append(x)
        return x + 1

    captured = pellucid.optimize(changes, backend="eager", fullgraph=True)
    x = torch.ones(2)
    captured([[] for _ in range(50)], x)
    (entry,) = pellucid.cache_entries(captured)
    assert sum("distinct" in guard.text or " is not " in guard.text for guard in entry.guards) == 1
    lists = [[] for _ in range(50)]
    lists[7] = lists[31]
    captured(lists, x)
    assert len(pellucid.cache_entries(captured)) == 2 and len(lists[7]) == 2
