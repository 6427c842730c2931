"""_core alone: it brings _bytecode, whose capsule it needs, itself."""

import os
import pathlib
import subprocess
import sys

import pytest

import pellucid


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="capture needs CPython 3.11")
def test_core_loads_first_in_a_fresh_process():
    pytest.importorskip("torch")
    code = "import torch, pellucid._core, sys; assert 'pellucid._bytecode' in sys.modules"
    source = str(pathlib.Path(pellucid.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": source})
