"""The programs of programs.py under the real translator: captured or not, results and exceptions are eager's."""

import sys

import pytest

pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)

from test_identity import ROWS, fresh, optimized, outcome

from pellucid import _bytecode as b
from pellucid._regions import ready_core


@pytest.fixture(autouse=True)
def real_translator(nothing_is_captured):
    ready_core().testing_set_translate(None)
    yield
    assert not b.hook_installed() and b.hook_busy() == 0


def without_places(result):
    """Tracebacks name the places of transformed code; what was raised, and from what, has to agree."""
    return (result[0], [row[:3] for row in result[1]]) if result[0] == "raised" else result


@pytest.mark.parametrize("fn, calls", ROWS)
def test_same_results_and_exceptions(fn, calls):
    plain, wrapped, nested = fresh(fn), optimized(fresh(fn)), fresh(fn)
    outer = optimized(lambda args, kwargs: nested(*args, **kwargs))
    for _ in range(3):
        for args, kwargs in calls:
            expected = outcome(plain, args, kwargs)
            assert without_places(outcome(wrapped, args, kwargs)) == without_places(expected)
    plain = fresh(fn)
    for _ in range(3):
        for args, kwargs in calls:
            expected = outcome(plain, args, kwargs)
            assert without_places(outcome(outer, (args, kwargs), {})) == without_places(expected)
