"""Finds the Python interpreters that version-dependent tools and tests run on.

Taken in this order: the paths in PELLUCID_PYTHONS, else every `python3.N` on PATH that really runs (shims of a version
manager may not), else what a version manager has installed. Knows nothing of Pellucid itself.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import subprocess
import sys
from typing import Dict, List, Optional, Tuple

SUPPORTED_MINORS = tuple(range(8, 14))


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """A Python that runs: its path and its version."""

    path: str
    version: Tuple[int, int, int]

    @property
    def tag(self) -> int:
        """The version as the C++ sources write it: 311 for 3.11."""
        return self.version[0] * 100 + self.version[1]

    def __str__(self) -> str:
        return "{} ({})".format(".".join(map(str, self.version)), self.path)


def probe(path: str) -> Optional[Interpreter]:
    """Runs `path` to learn its version; None when it is no working CPython."""
    program = "import sys; print(sys.implementation.name, *sys.version_info[:3])"
    try:
        done = subprocess.run([path, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.decode().split()
    if done.returncode != 0 or len(words) != 4 or words[0] != "cpython":
        return None
    return Interpreter(path, (int(words[1]), int(words[2]), int(words[3])))


def _on_path(name: str) -> Optional[Interpreter]:
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = os.path.join(folder, name)
        if os.access(candidate, os.X_OK):
            found = probe(candidate)
            if found is not None:
                return found
    return None


def _of_version_managers() -> List[str]:
    roots = [os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")]
    return sorted(path for root in roots for path in glob.glob(os.path.join(root, "versions", "*", "bin", "python")))


def find() -> Tuple[List[Interpreter], List[str]]:
    """The interpreters found, one per minor version, in version order; and a line for each version that was not found."""
    chosen: Dict[int, Interpreter] = {}
    notes: List[str] = []
    named = os.environ.get("PELLUCID_PYTHONS")
    if named:
        for path in filter(None, named.split(os.pathsep)):
            found = probe(path)
            if found is None:
                notes.append("skipped {}: named in PELLUCID_PYTHONS, but does not run as CPython".format(path))
            else:
                chosen.setdefault(found.version[1], found)
        where = "not named in PELLUCID_PYTHONS"
    else:
        for minor in SUPPORTED_MINORS:
            found = _on_path("python3.{}".format(minor))
            if found is not None and found.version[:2] == (3, minor):
                chosen[minor] = found
        for path in _of_version_managers():
            found = probe(path)
            if found is not None and found.version[0] == 3 and found.version[1] in SUPPORTED_MINORS:
                chosen.setdefault(found.version[1], found)
        where = "neither on PATH nor installed by a version manager"
    for minor in SUPPORTED_MINORS:
        if minor not in chosen:
            notes.append("skipped 3.{}: {}".format(minor, where))
    return [chosen[minor] for minor in sorted(chosen)], notes


def main() -> int:
    """Prints what was found and what was skipped."""
    found, notes = find()
    for interpreter in found:
        print("found {}".format(interpreter))
    for note in notes:
        print(note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
