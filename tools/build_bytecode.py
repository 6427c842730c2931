"""Builds pellucid._bytecode for the CPythons found on this machine, into src/pellucid, beside the one of the development version.

Each has a build folder of its own under build/. Knows how to call CMake, nothing of what is built.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
from typing import List

import find_pythons

ROOT = pathlib.Path(__file__).resolve().parent.parent


def build(interpreter: find_pythons.Interpreter, jobs: int) -> None:
    """Configures once and builds; raises CalledProcessError with the build's own output on the terminal."""
    folder = ROOT / "build" / f"bytecode-{interpreter.tag}"
    if not (folder / "build.ninja").exists():
        options = ["-DPELLUCID_IN_PLACE=ON", "-DPELLUCID_CORE=OFF", "-DCMAKE_BUILD_TYPE=Debug", f"-DPython_EXECUTABLE={interpreter.path}"]
        configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", *options]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(folder), "-j", str(jobs), "--", "--quiet"], check=True)


def check(interpreter: find_pythons.Interpreter) -> None:
    """Imports it there: a missing symbol or a call that this version lacks shows at load time."""
    program = "import sys; sys.path.insert(0, {!r}); import pellucid._bytecode".format(str(ROOT / "src"))
    subprocess.run([interpreter.path, "-c", program], check=True)


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="also import it in each")
    parser.add_argument("versions", nargs="*", help="only these, as 3.12")
    options = parser.parse_args(arguments)
    found, notes = find_pythons.find()
    for note in notes:
        print(note)
    failed = []
    for interpreter in found:
        version = "{}.{}".format(*interpreter.version[:2])
        if interpreter.version[:2] == sys.version_info[:2] or (options.versions and version not in options.versions):
            continue
        print(f"_bytecode for {interpreter}", flush=True)
        try:
            build(interpreter, options.jobs)
            if options.check:
                check(interpreter)
        except subprocess.CalledProcessError:
            failed.append(version)
    if failed:
        print("failed: " + ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
