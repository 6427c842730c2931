"""What the fuzzers borrow from the tests of single areas, and what must hold after each."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
PYTHON_TESTS = pathlib.Path(__file__).resolve().parent.parent / "py"
for area in ("capture", "guard"):  # running and comparing programs; building guards
    sys.path.insert(0, str(PYTHON_TESTS / area))


@pytest.fixture(autouse=True)
def balanced():
    from pellucid import _bytecode

    yield
    assert not _bytecode.hook_installed() and _bytecode.hook_busy() == 0
