"""Runs the test suites one after another, prints what each took, and fails if any failed or if one found nothing to run.

Expects a developer build (`make build`). A suite is a list of commands; this file knows how to start them, nothing of what they test.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Sequence

import find_pythons

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Python tests that are worth their time under sanitizers: of the layers that work on raw memory.
SANITIZED_AREAS = ("bytecode", "decompile", "hook", "frame", "guard", "variables")
MORE_SANITIZED_AREAS = ("api", "capture", "fake", "graph", "logs", "polyfills")
# Programs that are kept outside of the repository, and those of them that may miss the number of compiles they ask for (and nothing else).
CASES = ROOT.parent / "shared" / "cases"
MAY_MISS_COUNTS: FrozenSet[str] = frozenset()
MISSED_COUNT = re.compile(r"^AssertionError: [^:]*: \d+, expected ")


class SuiteError(Exception):
    """A suite failed; the text says what and how."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one suite."""

    name: str
    seconds: float
    error: Optional[str]


def run(command: List[str], env: Optional[Dict[str, str]] = None) -> None:
    """Runs a command with its output on ours; SuiteError where it fails."""
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL).returncode
    if status != 0:
        raise SuiteError(f"{' '.join(command)}: exit status {status}")


def ctest(build: pathlib.Path) -> List[str]:
    """The command for a build's C++ tests: an error without test programs (and each program fails where it has no test)."""
    return ["ctest", "--test-dir", str(build), "--no-tests=error", "--output-on-failure"]


def test_areas(parent: pathlib.Path) -> List[pathlib.Path]:
    """The folders under `parent` that hold Python tests."""
    areas = sorted({path.parent for path in parent.glob("*/test_*.py")})
    if not areas:
        raise SuiteError(f"no tests under {parent}")
    return areas


def all_commands(commands: Iterator[List[str]], env: Optional[Dict[str, str]] = None) -> None:
    """Runs every command even if one fails, so that one run shows all failures."""
    errors = []
    for command in commands:
        try:
            run(command, env)
        except SuiteError as error:
            errors.append(str(error))
    if errors:
        raise SuiteError("; ".join(errors))


def lint(_jobs: int) -> None:
    """Layers, formatting, ruff, mypy."""
    run(["make", "--no-print-directory", "lint"])


def cpp(_jobs: int) -> None:
    """GoogleTest programs."""
    run(ctest(ROOT / "build" / "dev"))


def interpreters(jobs: int) -> None:
    """_bytecode built for, and imported by, every CPython found."""
    run([sys.executable, "tools/find_pythons.py"])
    run([sys.executable, "tools/build_bytecode.py", "--jobs", str(jobs), "--check"])


def python(_jobs: int) -> None:
    """Every area of tests/py in an interpreter of its own: none can lean on what another left behind."""
    times = []

    def commands() -> Iterator[List[str]]:
        for area in test_areas(ROOT / "tests" / "py"):
            started = time.monotonic()
            print(f"-- tests/py/{area.name}", flush=True)
            yield [sys.executable, "-m", "pytest", str(area)]
            times.append(f"{area.name} {time.monotonic() - started:.1f} s")

    try:
        all_commands(commands())
    finally:
        print("-- " + ", ".join(times), flush=True)


def fuzz(_jobs: int) -> None:
    """Random code objects, guards and programs for a minute, the same ones every time; `make fuzz` goes on for longer, with others."""
    run([sys.executable, "-m", "pytest", "tests/fuzz"])


def cases(jobs: int) -> None:
    """The programs of ../shared/cases (group coverage), captured and eagerly."""
    rows = cases_with("case_adapter:factory", jobs)
    if rows is not None:
        judge_cases(rows)


def generated_cases(jobs: int) -> None:
    """The same, with the code that Pellucid makes of them decompiled and run in its place."""
    rows = cases_with("decompiled_adapter:own", jobs)
    if rows is not None:
        judge_cases(rows)


def generated_cases_stock(jobs: int) -> None:
    """The programs that torch.compile passes, with the code that it makes of them decompiled and run in its place."""
    rows = cases_with("torch", jobs)
    if rows is not None:
        passed = {row["case"] for row in rows if row["ok"]}
        judge_cases([row for row in cases_with("decompiled_adapter:stock", jobs) or [] if row["case"] in passed])


def cases_with(implementation: str, jobs: int) -> Optional[List[Dict[str, Any]]]:
    """What the programs of ../shared/cases (group coverage) gave; None where they are not there."""
    if not (CASES / "run_cases.py").is_file():
        print("NOT RUN: no ../shared/cases beside this checkout")
        return None
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [sys.executable, str(CASES / "run_cases.py"), "--impl", implementation, "--group", "coverage"]
        path = os.pathsep.join(str(ROOT / name) for name in ("src", "tests/cases"))
        try:
            run([*command, "-j", str(jobs), "--timeout", "300", "--verbose", "--json", str(report)], {"PYTHONPATH": path})
        except SuiteError:
            if not report.exists():
                raise
        rows: List[Dict[str, Any]] = json.loads(report.read_text())
        return rows


def decompiler_cases(_jobs: int) -> None:
    """The functions of ../shared/cases/decompile, decompiled and run by every CPython found."""
    program = CASES / "decompile" / "run.py"
    if not program.is_file():
        print("NOT RUN: no ../shared/cases/decompile beside this checkout")
        return
    path = os.pathsep.join(str(ROOT / name) for name in ("src", "tests/cases"))
    wrong = []
    for interpreter in find_pythons.find()[0]:
        for function in ("decompile", "blocks"):
            with tempfile.TemporaryDirectory() as folder:
                report = pathlib.Path(folder) / "report.json"
                run([interpreter.path, str(program), f"decompile_adapter:{function}", "--json", str(report)], {"PYTHONPATH": path})
                rows = json.loads(report.read_text())["rows"]
            if not rows:
                raise SuiteError("no case found")
            wrong += [f"{interpreter} {function} {row['id']}: {row['status']} {row['why']}" for row in rows if row["status"] != "ok"]
    if wrong:
        raise SuiteError("; ".join(wrong))


def judge_cases(rows: List[Dict[str, Any]]) -> None:
    """Of a report of the cases' runner: SuiteError unless each passed, or missed a number of compiles that it may miss."""
    if not rows:
        raise SuiteError("no case found")
    failed = {f"{row['file']}:{row['case']}": str(row["message"]) for row in rows if not row["ok"]}
    excused = sorted(name for name, text in failed.items() if name in MAY_MISS_COUNTS and MISSED_COUNT.match(text))
    print(f"{len(rows) - len(failed)} passed, {len(failed)} failed, {len(excused)} of these in the number of compiles only", flush=True)
    wrong = sorted(failed.keys() - set(excused))
    if wrong:
        raise SuiteError("; ".join(f"{name}: {failed[name]}" for name in wrong))


def sanitizers(jobs: int) -> None:
    """AddressSanitizer and UBSan over the C++ tests and some Python tests; torch_bridge is not instrumented."""
    sanitize(jobs, ROOT / "build" / "asan", "OFF", SANITIZED_AREAS)


def sanitizers_all(jobs: int) -> None:
    """The same over everything: torch_bridge is instrumented too, and more Python tests run."""
    sanitize(jobs, ROOT / "build" / "asan-all", "ON", SANITIZED_AREAS + MORE_SANITIZED_AREAS)


def sanitize(jobs: int, folder: pathlib.Path, bridge: str, areas: Sequence[str]) -> None:
    """Builds under sanitizers, then runs the C++ tests and areas of the Python tests."""
    if not (folder / "build.ninja").exists():
        settings = [f"-DPython_EXECUTABLE={sys.executable}", "-DPELLUCID_CORE=ON", f"-DPELLUCID_SANITIZE_BRIDGE={bridge}"]
        run(["cmake", "--preset", "asan", "-B", str(folder), *settings])
    run(["cmake", "--build", str(folder), "-j", str(jobs)])
    # Leaks: CPython and torch keep much for the life of a process. The new/delete check mistakes torch's allocations for ours.
    options = {
        "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0:abort_on_error=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }
    run(ctest(folder), options)
    package = sanitized_package(folder)
    preload = " ".join(compiler_library(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so"))
    env = {**options, "LD_PRELOAD": preload, "PYTHONPATH": str(package), "PELLUCID_SANITIZED": "1"}
    search = "pythonpath=" + " ".join((str(package), "tools"))
    # A report of the sanitizer goes to file descriptor 2, so that is not captured.
    command = [sys.executable, "-m", "pytest", "-o", search, "-p", "no:cacheprovider", "--capture=sys", "-m", "not slow"]
    all_commands(([*command, str(ROOT / "tests" / "py" / name)] for name in areas), env)


def compiler_library(name: str) -> str:
    """Where the compiler keeps a library of its own."""
    done = subprocess.run(["g++", "-print-file-name=" + name], check=True, stdout=subprocess.PIPE, text=True)
    return str(pathlib.Path(done.stdout.strip()).resolve())


def sanitized_package(folder: pathlib.Path) -> pathlib.Path:
    """A folder to import pellucid from: the Python sources, by links, with the sanitized extension modules."""
    package = folder / "package" / "pellucid"
    package.mkdir(parents=True, exist_ok=True)
    for old in package.iterdir():
        old.unlink()
    sources = [path for path in (ROOT / "src" / "pellucid").iterdir() if path.suffix != ".so" and path.name != "__pycache__"]
    for path in [*sources, *folder.glob("_*.so")]:
        (package / path.name).symlink_to(path)
    return package.parent


SUITES: Dict[str, Callable[[int], None]] = {
    "lint": lint,
    "cpp": cpp,
    "interpreters": interpreters,
    "python": python,
    "cases": cases,
    "generated-cases": generated_cases,
    "decompiler-cases": decompiler_cases,
    "fuzz": fuzz,
    "sanitizers": sanitizers,
}
ON_REQUEST: Dict[str, Callable[[int], None]] = {  # only where named by --only
    "sanitizers-all": sanitizers_all,
    "generated-cases-stock": generated_cases_stock,
}


def run_suite(name: str, jobs: int) -> Outcome:
    """Runs one suite with a headline; never raises for a failure of the suite."""
    suite = SUITES.get(name) or ON_REQUEST[name]
    print(f"\n==== {name}: {(suite.__doc__ or '').partition(chr(10))[0]}", flush=True)
    started = time.monotonic()
    error = None
    try:
        suite(jobs)
    except SuiteError as failure:
        error = str(failure)
    seconds = time.monotonic() - started
    print(f"==== {name}: {'ok' if error is None else 'FAILED'} in {seconds:.1f} s", flush=True)
    return Outcome(name, seconds, error)


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", choices=sorted([*SUITES, *ON_REQUEST]), help="may be given several times")
    parser.add_argument("--skip", action="append", choices=sorted(SUITES), default=[])
    options = parser.parse_args(arguments)
    wanted = [*SUITES] if options.only is None else [name for name in (*SUITES, *ON_REQUEST) if name in options.only]
    names = [name for name in wanted if name not in options.skip]
    if not names:
        print("no suite left to run")
        return 1
    outcomes = [run_suite(name, options.jobs) for name in names]
    print()
    for outcome in outcomes:
        print(f"{outcome.name:14s} {outcome.seconds:8.1f} s  {outcome.error or 'ok'}")
    return 1 if any(outcome.error for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
