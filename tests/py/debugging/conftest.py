"""Capturing needs CPython 3.11 and torch."""

import sys

import pytest

torch = pytest.importorskip("torch")
if sys.version_info[:2] != (3, 11):
    pytest.skip("capture needs CPython 3.11", allow_module_level=True)
