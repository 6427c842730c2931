"""Finds the Python of a wanted version, to compile a file with it or to check what was decompiled for it.

Knows where interpreters are usually kept, nothing of what is done with them.
"""

import glob
import marshal
import os
import shutil
import subprocess
import sys
from typing import Any, Iterator, Optional

import pellucid._bytecode as _bytecode

OWN_VERSION = sys.version_info[0] * 100 + sys.version_info[1]

_PROBE = "import sys; print(sys.implementation.name, sys.version_info[0] * 100 + sys.version_info[1])"
_COMPILE = (
    "import marshal, sys, warnings; warnings.simplefilter('ignore'); "
    "sys.stdout.buffer.write(marshal.dumps(compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec', 0, True)))"
)


def version_name(version: int) -> str:
    """311 as people write it: 3.11."""
    return "{}.{}".format(version // 100, version % 100)


def find(version: int) -> Optional[str]:
    """The path of a CPython of that version (308 to 313): this one, one on PATH, or one that a version manager installed."""
    if version == OWN_VERSION:
        return sys.executable
    return next((path for path in _candidates(version) if _runs(path, version)), None)


def _candidates(version: int) -> Iterator[str]:
    name = version_name(version)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = shutil.which("python" + name, path=folder)
        if path:
            yield path
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    yield from sorted(glob.glob(os.path.join(root, "versions", name + ".*", "bin", "python")))


def _runs(path: str, version: int) -> bool:
    try:
        done = subprocess.run([path, "-I", "-c", _PROBE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.decode("ascii", "replace").split() == ["cpython", str(version)]


def compile_file(path: str, version: int, python: str) -> Any:
    """The code object that an interpreter makes of a source file; ValueError with its message where it can't."""
    done = subprocess.run([python, "-I", "-c", _COMPILE, path], capture_output=True)
    if done.returncode != 0:
        message = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise ValueError("Python {} cannot compile {}: {}".format(version_name(version), path, message[-1]))
    return _bytecode.load_marshal(done.stdout, version)


def compile_own(path: str) -> Any:
    """The same in this interpreter."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        code = compile(data, path, "exec", 0, True)
    except SyntaxError as error:
        raise ValueError("Python {} cannot compile {}: {}".format(version_name(OWN_VERSION), path, error)) from error
    return _bytecode.load_marshal(marshal.dumps(code), OWN_VERSION)
