"""What the tests beside other users of the interpreter need: torch, a Python that capture works on, and nothing left behind."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def balanced():
    import pellucid
    from pellucid import _bytecode

    yield
    pellucid.reset()
    assert not _bytecode.hook_installed() and _bytecode.hook_busy() == 0
