"""The examples of docs/shape-engine.md do what they say."""

import doctest
import pathlib


def test_examples():
    page = pathlib.Path(__file__).resolve().parents[3] / "docs/shape-engine.md"
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 40 and result.failed == 0
