"""Rewrites the goldens of the given tests (all of tests/py without arguments) with what the code prints now.

Read the difference before committing it: a golden says what was meant.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import List

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main(arguments: List[str]) -> int:
    command = [sys.executable, "-m", "pytest", *(arguments or ["tests/py"])]
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, "PELLUCID_UPDATE_GOLDENS": "1"}).returncode
    subprocess.run(["git", "status", "--short", "tests/golden"], cwd=ROOT)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
