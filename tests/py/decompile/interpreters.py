"""The interpreters found, for tests that need one of a certain version."""

import find_pythons
import pytest

FOUND, SKIPPED = find_pythons.find()


def interpreter(tag):
    found = next((each for each in FOUND if each.tag == tag), None)
    if found is None:
        pytest.skip(next((line for line in SKIPPED if f"3.{tag % 100}:" in line), "not found"))
    return found
