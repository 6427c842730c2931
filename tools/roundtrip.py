"""Decompiles the standard library of each Python found, compiles the result with that Python, and compares: a table per version.

    tools/roundtrip.py [--version 3.11 ...] [--kind function ...] [--sample N] [-j N] [--show-failures N]

Every function, lambda, comprehension, class body and module body is decompiled on its own. Knows how to collect and to count; what
decompiles and what compares is Pellucid's.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import multiprocessing
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection, wait
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import find_pythons

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from pellucid import _alternatives, _bytecode, _grading  # noqa: E402

KINDS = ("function", "lambda", "comprehension", "class", "module")
GENERIC = "<generic parameters of "
OUTCOMES = ("identical", "equal flow", "block", "failed")
OUTCOME_OF = {_grading.IDENTICAL: "identical", _grading.EQUAL_FLOW: "equal flow", _grading.DIFFERS: "block"}
GRADE_OF = {"identical": _grading.IDENTICAL, "equal flow": _grading.EQUAL_FLOW, "block": _grading.DIFFERS, "failed": _grading.DIFFERS}

# Runs in each interpreter: compiles its library and writes path and marshal data of each file. Files that it can't compile are named.
COLLECT = r"""
import marshal, os, re, struct, sys, warnings
warnings.simplefilter("ignore")
sys.setrecursionlimit(10000)
library = os.path.dirname(os.__file__)
with open(sys.argv[1], "wb") as out:
    for folder, folders, files in os.walk(library):
        folders[:] = sorted(name for name in folders if name not in ("site-packages", "__pycache__"))
        for name in sorted(files):
            path = os.path.join(folder, name)
            if not name.endswith(".py") or not re.search(sys.argv[2], path):
                continue
            try:
                with open(path, "rb") as file:
                    data = marshal.dumps(compile(file.read(), path, "exec", 0, True))
            except (SyntaxError, ValueError, RecursionError, UnicodeDecodeError) as error:
                data = b""
                sys.stdout.write("%s: %s\n" % (os.path.relpath(path, library), error))
            if data:
                encoded = path.encode()
                out.write(struct.pack("<II", len(encoded), len(data)) + encoded + data)
"""


@dataclasses.dataclass
class Result:
    """What became of one code object."""

    path: str
    index: int
    kind: str
    name: str
    line: int
    outcome: str
    reason: str
    seconds: float
    source: str = ""


def kind_of(code: Any) -> Optional[str]:
    """Which row of the table a code object counts in; None: it is no unit of its own (type parameters)."""
    if _grading.is_module(code):
        return "module"
    if _grading.is_class_body(code):
        return "class"
    name: str = code.co_name
    if name == "<lambda>":
        return "lambda"
    if name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"):
        return "comprehension"
    if name.startswith(GENERIC):
        return None
    return "function"


def units_of(code: Any) -> List[Tuple[str, Any]]:
    """The code objects of a file that are decompiled, each with its kind."""
    result = []
    work = [(code, "")]
    while work:
        current, scope = work.pop()
        kind = kind_of(current)
        # In the scope of type parameters also stand functions that give a bound or an alias' value.
        if kind is not None and (not scope or current.co_name == scope):
            result.append((kind, current))
        inner = "" if kind is not None else current.co_name[len(GENERIC) : -1]
        work.extend((const, inner) for const in reversed(current.co_consts) if type(const) is _bytecode.NeutralCode)
    return result


def collect(interpreter: find_pythons.Interpreter, folder: pathlib.Path, wanted: str = "") -> Tuple[pathlib.Path, List[str]]:
    """Compiles the library of an interpreter (files that `wanted` finds) into one file; also the files that it can't compile."""
    path = folder / f"{interpreter.tag}.bin"
    done = subprocess.run([interpreter.path, "-I", "-c", COLLECT, str(path), wanted], stdout=subprocess.PIPE, text=True, check=True)
    return path, done.stdout.splitlines()


def files_of(corpus: pathlib.Path, version: int) -> Iterator[Tuple[str, bytes]]:
    """Path and marshal data of each file of a corpus."""
    data = corpus.read_bytes()
    at = 0
    while at < len(data):
        path_size, size = struct.unpack_from("<II", data, at)
        at += 8
        path = data[at : at + path_size].decode()
        at += path_size
        yield path, data[at : at + size]
        at += size


@dataclasses.dataclass
class Task:
    """Code objects of one file, by their position in units_of."""

    path: str
    data: bytes
    indexes: List[int]


def plan(corpus: pathlib.Path, version: int, options: argparse.Namespace) -> List[Task]:
    """The code objects to decompile: all, or a random sample with a fixed seed."""
    tasks = []
    everything: List[Tuple[Task, int]] = []
    for path, data in files_of(corpus, version):
        indexes = []
        for index, (kind, code) in enumerate(units_of(_bytecode.load_marshal(data, version))):
            if kind in options.kind and (not options.name or re.search(options.name, getattr(code, "co_qualname", code.co_name))):
                indexes.append(index)
        task = Task(path, data, indexes)
        tasks.append(task)
        everything.extend((task, index) for index in indexes)
    if options.sample and options.sample < len(everything):
        chosen = random.Random(options.seed).sample(everything, options.sample)
        for task in tasks:
            task.indexes = []
        for task, index in chosen:
            task.indexes.append(index)
    return [task for task in tasks if task.indexes]


def run_file(task: Task, compiler: _grading.Compiler, line_layout: bool, search: bool, connection: Connection) -> List[Result]:
    """Decompiles, compiles and compares the code objects of one file."""
    units = units_of(_bytecode.load_marshal(task.data, compiler.version))
    results, structured = [], []
    for index in sorted(task.indexes):
        kind, code = units[index]
        connection.send(("at", index))
        started = time.perf_counter()
        source: Optional[str] = None
        try:
            source, reason, _, _ = _bytecode.decompile_structured(code)
        except (ValueError, RuntimeError, SystemError, MemoryError, RecursionError) as error:
            reason = f"raised {type(error).__name__}: {error}"
        seconds = time.perf_counter() - started
        result = Result(task.path, index, kind, code.co_qualname, code.co_firstlineno, "", reason or "", seconds, source or "")
        results.append(result)
        if source is not None:
            structured.append((result, code))
        elif reason.startswith("raised"):
            result.outcome = "failed"
        else:
            result.outcome, result.reason = "block", "no structured form: " + result.reason
    connection.send(("at", -1))
    checked = _grading.check(compiler, [(code, result.source) for result, code in structured])
    best = list(checked)
    if line_layout:
        # As `decompiling.checked` does: with the original's lines where the compiler makes something else of what reads best.
        again = []
        for position, ((result, code), (grade, _)) in enumerate(zip(structured, checked)):
            if grade != _grading.IDENTICAL:
                connection.send(("at", result.index))
                source, _, _, _ = _bytecode.decompile_structured(code, line_layout=True)
                again.append((position, code, source))
        connection.send(("at", -1))
        with_lines = _grading.check(compiler, [(code, source) for _, code, source in again]) if again else []
        for (position, _, source), found in zip(again, with_lines):
            if found[0] >= best[position][0]:
                best[position] = found
                structured[position][0].source = source
    for (result, _), (grade, difference) in zip(structured, best):
        result.reason = difference
        result.outcome = OUTCOME_OF[grade]
    if search:
        search_alternatives([(result, units[result.index][1]) for result in results if result.outcome != "identical"], compiler, connection)
    connection.send(("at", -1))
    try_block_form([(result, units[result.index][1]) for result in results if result.outcome == "block"], compiler, connection)
    return results


def search_alternatives(pairs: List[Tuple[Result, Any]], compiler: _grading.Compiler, connection: Connection) -> None:
    """As `decompiling.checked` does where nothing identical came of the likely decisions."""
    alternatives = _alternatives.Alternatives(compiler)
    for result, code in pairs:
        connection.send(("at", result.index))
        found = alternatives.search(code)
        if found is not None and found.grade >= GRADE_OF[result.outcome]:
            result.outcome, result.reason, result.source = OUTCOME_OF[found.grade], found.difference, found.source or ""
    connection.send(("at", -1))


def try_block_form(pairs: List[Tuple[Result, Any]], compiler: _grading.Compiler, connection: Connection) -> None:
    """Fails those whose block form there is not, does not compile or is not proven."""
    made = []
    for result, code in pairs:
        connection.send(("at", result.index))
        source, why, bindings = _bytecode.decompile_blocks(code)
        if source is None:
            result.outcome, result.reason = "failed", "no block form: " + why
            continue
        renamed = {name: value for name, value, is_renamed in bindings if is_renamed}
        values = {name: value for name, value, is_renamed in bindings if not is_renamed}
        made.append((result, code, values, _grading.request_for(code, source, renamed=renamed)))
    connection.send(("at", -1))
    for (result, code, values, _), compiled in zip(made, compiler.compile([each[3] for each in made]) if made else []):
        connection.send(("at", result.index))
        fault = _grading.block_form_fault(code, compiled, values)
        if fault:
            result.outcome, result.reason = "failed", fault
    connection.send(("at", -1))


def work(connection: Connection, version: int, python: str, line_layout: bool, search: bool) -> None:
    """A worker process: tasks in, results out, and before each code object which one it is."""
    compiler = _grading.Compiler(version, python)
    sys.setrecursionlimit(20000)
    while True:
        task = connection.recv()
        if task is None:
            compiler.close()
            return
        connection.send(("done", run_file(task, compiler, line_layout, search, connection)))


class Worker:
    """A process with the task it is on."""

    def __init__(self, arguments: Tuple[Any, ...]) -> None:
        self.connection, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(other, *arguments), daemon=False)
        self.process.start()
        other.close()
        self.task: Optional[Task] = None
        self.at = -1
        self.heard = time.monotonic()

    def give(self, task: Optional[Task]) -> None:
        self.task, self.at, self.heard = task, -1, time.monotonic()
        self.connection.send(task)


def run_all(tasks: List[Task], interpreter: find_pythons.Interpreter, options: argparse.Namespace) -> List[Result]:
    """All tasks over several processes. A process that dies, or takes too long over a code object, fails that one only."""
    arguments = (interpreter.tag, interpreter.path, not options.no_layout, not options.no_layout and not options.no_search)
    pending = list(reversed(tasks))
    results: List[Result] = []
    workers = [Worker(arguments) for _ in range(min(options.jobs, max(1, len(tasks))))]
    idle: Set[int] = set(range(len(workers)))
    while pending or len(idle) < len(workers):
        for number in sorted(idle):
            if pending:
                workers[number].give(pending.pop())
                idle.discard(number)
        busy = {workers[number].connection: number for number in range(len(workers)) if number not in idle}
        ready = wait(list(busy), timeout=1.0)
        for connection in ready:
            number = busy[connection]  # type: ignore[index]
            worker = workers[number]
            try:
                what, value = worker.connection.recv()
            except EOFError:
                _abandon(workers, number, arguments, pending, results, "the process died")
                idle.add(number)
                continue
            worker.heard = time.monotonic()
            if what == "at":
                worker.at = value
            else:
                results.extend(value)
                idle.add(number)
        for number in range(len(workers)):
            if number not in idle and time.monotonic() - workers[number].heard > options.limit:
                _abandon(workers, number, arguments, pending, results, f"longer than {options.limit} s")
                idle.add(number)
    for worker in workers:
        worker.give(None)
        worker.process.join()
    return results


def _abandon(workers: List[Worker], number: int, arguments: Tuple[Any, ...], pending: List[Task], results: List[Result], why: str) -> None:
    worker = workers[number]
    worker.process.kill()
    worker.process.join()
    task = worker.task
    assert task is not None
    units = units_of(_bytecode.load_marshal(task.data, arguments[0]))
    failed = [worker.at] if worker.at >= 0 else task.indexes
    for index in failed:
        kind, code = units[index]
        results.append(Result(task.path, index, kind, code.co_qualname, code.co_firstlineno, "failed", why, 0.0))
    rest = [index for index in task.indexes if index not in failed]
    if rest:
        pending.append(Task(task.path, task.data, rest))
    workers[number] = Worker(arguments)


def print_table(interpreter: find_pythons.Interpreter, results: List[Result], elapsed: float) -> None:
    """Counts by kind."""
    print(f"\nPython {interpreter}: {len(results)} code objects in {elapsed:.1f} s")
    print(f"{'':14s} {'number':>7s} " + " ".join(f"{outcome:>17s}" for outcome in OUTCOMES) + f" {'mean µs':>9s} {'max ms':>8s}")
    for kind in (*KINDS, "all"):
        rows = [result for result in results if kind in (result.kind, "all")]
        if not rows:
            continue
        counts = collections.Counter(result.outcome for result in rows)
        cells = " ".join(f"{counts[outcome]:8d} {100 * counts[outcome] / len(rows):6.2f} %" for outcome in OUTCOMES)
        seconds = [result.seconds for result in rows]
        print(f"{kind:14s} {len(rows):7d} {cells} {1e6 * sum(seconds) / len(rows):9.0f} {1e3 * max(seconds):8.1f}")


def bucket_of(reason: str) -> str:
    """A reason without names, numbers and texts, so that like failures fall together."""
    reason = re.sub(r"^[^ :]+(<[^>]*>[^ :]*)*: ", "", reason)
    reason = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", reason)
    # Of an instruction only its opcode counts.
    reason = re.sub(r"\b\d+ ([A-Z][A-Z_0-9]+)\b[^/]*", r"\1 ", reason)
    return re.sub(r"\d+", "N", reason)[:110].strip()


def original_of(result: Result) -> str:
    """The lines of the original source: of this tool alone, the decompiler never sees them."""
    with open(result.path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    if result.kind == "module":
        return "\n".join(lines[:60])
    start = max(0, result.line - 1)
    indent = len(lines[start]) - len(lines[start].lstrip()) if start < len(lines) else 0
    end = start + 1
    while end < len(lines) and end < start + 80:
        text = lines[end]
        if text.strip() and len(text) - len(text.lstrip()) <= indent and not text.lstrip().startswith((")", "def", "class", "async", "@")):
            break
        end += 1
    return "\n".join(lines[start:end])


def show_failures(results: List[Result], number: int) -> None:
    """Buckets of what is not identical, then the first of them with both sources."""
    worse = [result for result in results if result.outcome != "identical"]
    buckets = collections.Counter((result.outcome, bucket_of(result.reason)) for result in worse)
    print("\nwhat is not identical, by first difference (original / decompiled):")
    for (outcome, text), count in buckets.most_common(40):
        example = next(result for result in worse if (result.outcome, bucket_of(result.reason)) == (outcome, text))
        print(f"{count:6d} {outcome:10s} {text}    [{os.path.basename(example.path)}:{example.line} {example.name}]")
    shown: Set[Tuple[str, str]] = set()
    for result in sorted(worse, key=lambda result: len(result.source) or 1 << 30):
        key = (result.outcome, bucket_of(result.reason))
        if len(shown) >= number or key in shown:
            continue
        shown.add(key)
        print(f"\n==== {result.outcome}: {result.path}:{result.line} {result.name} ({result.kind})\n---- {result.reason}")
        print("---- original\n" + original_of(result))
        if result.source:
            print("---- decompiled\n" + result.source)


def main(arguments: List[str]) -> int:
    """Command line entry: 1 if a code object failed (raised, hung or gave no form at all)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="append", help="only these, as 3.11; may be given several times")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--sample", type=int, default=0, help="so many code objects per version, the same ones every time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--file", default="", help="only files whose path this regular expression finds")
    parser.add_argument("--name", help="only code objects whose name this regular expression finds")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds per code object")
    parser.add_argument("--no-layout", action="store_true", help="print for reading, without the original's lines")
    parser.add_argument(
        "--no-search", action="store_true", help="take decisions that bytecode leaves open the likely way only: ten times faster"
    )
    parser.add_argument(
        "--show-failures", type=int, default=0, metavar="N", help="buckets of differences, and N of them with their sources"
    )
    parser.add_argument("--show-left-out", action="store_true", help="name the files that their own Python cannot compile")
    parser.add_argument("--json", help="write every result to this file")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    options.kind = options.kind or list(KINDS)
    found, notes = find_pythons.find()
    for note in notes:
        print(note)
    everything: Dict[str, List[Dict[str, Any]]] = {}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for interpreter in found:
            version = "{}.{}".format(*interpreter.version[:2])
            if options.version and version not in options.version:
                continue
            corpus, left_out = collect(interpreter, pathlib.Path(folder), options.file)
            tasks = plan(corpus, interpreter.tag, options)
            corpus.unlink()
            started = time.monotonic()
            results = run_all(tasks, interpreter, options)
            print_table(interpreter, results, time.monotonic() - started)
            if options.show_left_out:
                print("".join(line + "\n" for line in left_out), end="")
            print(f"{len(left_out)} files that Python {version} itself cannot compile are left out (--show-left-out names them)")
            if options.show_failures:
                show_failures(results, options.show_failures)
            failed += sum(result.outcome == "failed" for result in results)
            everything[version] = [dataclasses.asdict(result) for result in results]
            sys.stdout.flush()
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(everything, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
