"""What tests of the decompiler share: compilers of other versions."""

import pytest
from interpreters import interpreter

from pellucid import _grading


@pytest.fixture(scope="module")
def compilers():
    """`compilers(tag)`: a compiler of a version, started on first use and kept for the module; skips where there is none."""
    made = {}
    yield lambda tag: made.setdefault(tag, _grading.Compiler(tag, interpreter(tag).path))
    for compiler in made.values():
        compiler.close()
