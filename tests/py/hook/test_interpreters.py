"""The hook on every CPython that is found: on_interpreter.py run by each, with a _bytecode built for it."""

import os
import pathlib
import subprocess
import sys

import build_bytecode
import find_pythons
import pytest

from pellucid import _bytecode

FOUND, _ = find_pythons.find()
BY_TAG = {interpreter.tag: interpreter for interpreter in FOUND}
OWN_TAG = sys.version_info[0] * 100 + sys.version_info[1]


@pytest.mark.parametrize("tag", sorted({*BY_TAG, OWN_TAG}))
def test_hook(tag):
    if tag == OWN_TAG:
        python, folder = sys.executable, pathlib.Path(_bytecode.__file__).parent
    elif "PELLUCID_SANITIZED" in os.environ:
        pytest.skip("under sanitizers only the interpreter that runs the tests")
    else:
        build_bytecode.build(BY_TAG[tag], jobs=2)
        python, folder = BY_TAG[tag].path, build_bytecode.ROOT / "src" / "pellucid"
    script = pathlib.Path(__file__).parent / "on_interpreter.py"
    done = subprocess.run([python, str(script), str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stdout
