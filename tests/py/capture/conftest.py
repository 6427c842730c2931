"""What the tests of whole programs need: torch, and a Python that capture works on."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def _only_what_this_test_captures():
    import pellucid
    from pellucid import _bytecode

    yield
    pellucid.reset()
    assert not _bytecode.hook_installed() and _bytecode.hook_busy() == 0
