"""The interpreters found, for tests that need one of a certain version, and what is asked of code that these compiled."""

import find_pythons
import pytest

from pellucid import _grading, decompiling

FOUND, SKIPPED = find_pythons.find()


def interpreter(tag):
    found = next((each for each in FOUND if each.tag == tag), None)
    if found is None:
        pytest.skip(next((line for line in SKIPPED if f"3.{tag % 100}:" in line), "not found"))
    return found


def comes_back_identical(code, compiler):
    """Asserts that the best source of a code object compiles to the same, by the grade it is given and by compiling it once more."""
    result = decompiling.checked(code, compiler)
    assert (result.grade, result.reason) == ("identical", "")
    assert _grading.check(compiler, [(code, result.source)]) == [(_grading.IDENTICAL, "")]
