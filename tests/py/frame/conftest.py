"""These tests are of the hook, the call path and the wrappers: they say themselves what is captured."""

import sys

import pytest


@pytest.fixture(autouse=True)
def nothing_is_captured():
    """Every miss runs as written, unless the test captures by hand."""
    if sys.version_info[:2] != (3, 11):
        yield
        return
    from pellucid._regions import ready_core

    core = ready_core()
    core.testing_set_translate(lambda function, code, arguments: ("as is", "a test of the call path"))
    yield
    core.testing_set_translate(None)
