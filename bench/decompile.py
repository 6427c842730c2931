"""What decompiling a code object costs, beside depyf: `python -m bench.decompile`, and the section "decompile" of `python -m bench`.

Both decompile the same functions of the standard library, one after the other, in one process. depyf goes into a folder of the bench,
without what it asks for; nothing else finds it there.
"""

import contextlib
import functools
import io
import json
import pathlib
import random
import signal
import subprocess
import sys
import sysconfig
from types import CodeType
from typing import Any, Callable, Dict, Iterator, List, Optional

from bench import ROOT
from bench.timing import interleaved, timed

PEERS = pathlib.Path(__file__).with_name("requirements-peers.txt")
FOLDER = ROOT / "build" / "bench" / "peers"
PELLUCID, DEPYF = "pellucid", "depyf"
_PATIENCE = 10  # seconds for one code object
_ROUNDS = 5
_IN_PART = 54  # instructions of one part of a big function
_BIG = 100_000  # instructions


class OutOfPatience(Exception):
    """A decompiler took too long."""


def install() -> Optional[str]:
    """Puts depyf into its folder; a text says why it could not."""
    done = FOLDER / "installed.txt"
    wanted = PEERS.read_text()
    if done.exists() and done.read_text() == wanted:
        return None
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(FOLDER), "-r", str(PEERS)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        return (result.stderr.strip().splitlines() or ["pip failed"])[-1]
    done.write_text(wanted)
    return None


def functions(count: int, seed: int = 0) -> List[CodeType]:
    """Functions of the standard library, chosen at random."""
    files = sorted(pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    random.Random(seed).shuffle(files)
    found: List[CodeType] = []
    for file in files:
        if "site-packages" in file.parts or len(found) >= 4 * count:
            continue
        try:
            found += _functions_in(compile(file.read_bytes(), str(file), "exec"))
        except (SyntaxError, ValueError):  # data of the library's own tests
            continue
    return random.Random(seed).sample(found, min(count, len(found)))


def _functions_in(code: CodeType) -> Iterator[CodeType]:
    if code.co_flags & 1:  # CO_OPTIMIZED: a function
        yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _functions_in(const)


def measure(count: int) -> List[Dict[str, Any]]:
    """One row; none where depyf can't be installed. In a process of its own, which may leave depyf's changes to torch behind."""
    problem = install()
    if problem is not None:
        print(f"decompile: not run: {problem}", flush=True)
        return []
    command = [sys.executable, "-m", "bench.decompile", "--count", str(count), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    row: Dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return [row]


def compare(count: int) -> Dict[str, Any]:
    """Times both; functions that one of them does not decompile count for neither."""
    sys.path.insert(0, str(FOLDER))
    from depyf.decompiler import Decompiler

    import pellucid

    candidates: Dict[str, Callable[[CodeType], Any]] = {
        PELLUCID: pellucid.decompile,
        DEPYF: lambda code: Decompiler(code).decompile(),
    }
    failed = {PELLUCID: 0, DEPYF: 0}
    codes = []
    for code in functions(count):
        row = {name: _time(decompile, code) for name, decompile in candidates.items()}
        for name, seconds in row.items():
            failed[name] += seconds is None
        if None not in row.values():
            codes.append(code)

    def all_codes(name: str) -> float:
        Decompiler.decompile.cache_clear()  # it keeps what it made
        decompile = candidates[name]
        with contextlib.redirect_stdout(io.StringIO()):
            return sum(timed(lambda: decompile(code)) for code in codes)  # noqa: B023

    rounds = interleaved({name: lambda name=name: all_codes(name) for name in candidates}, _ROUNDS)  # type: ignore[misc]
    times = {name: min(rounds[name]) / len(codes) for name in candidates}
    return {
        "workload": f"{len(codes)} functions of the standard library",
        **{name: {"mean": times[name], "failed": failed[name]} for name in candidates},
        "ratio": times[DEPYF] / times[PELLUCID],
        "big": {"instructions": _BIG, "seconds": min(timed(functools.partial(pellucid.decompile, big_function())) for _ in range(3))},
    }


def big_function(instructions: int = _BIG) -> CodeType:
    """A function of about this many instructions: branches, calls, loops and handlers."""
    part = "  try:\n   for i in f(x):\n    if i > {0}: x = g(x, {0})\n    else: y[i] += x\n  except ValueError as e:\n   f(e)\n"
    parts = instructions // _IN_PART
    module = compile("def big(x, y):\n" + "".join(part.format(number) for number in range(parts)), "<big>", "exec")
    return next(const for const in module.co_consts if isinstance(const, CodeType))


def _time(decompile: Callable[[CodeType], Any], code: CodeType) -> Optional[float]:
    """Seconds of the first run; None where it fails."""

    def give_up(*_: Any) -> None:
        raise OutOfPatience

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(_PATIENCE)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return timed(lambda: decompile(code))
    except Exception:  # a peer may fail in any way; that is what is counted
        return None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main(arguments: Optional[List[str]] = None) -> int:
    """Prints the row."""
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    problem = install()
    if problem is not None:
        print(problem, file=sys.stderr)
        return 1
    row = compare(options.count)
    print(json.dumps(row) if options.json else json.dumps(row, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
