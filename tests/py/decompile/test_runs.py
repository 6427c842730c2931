"""Decompiled programs run under the Python that they were compiled by: they return, raise and print what the original does."""

import functools
import json
import os
import subprocess
import textwrap
from pathlib import Path

import pytest
from programs_of_flow import FLOW
from programs_of_values import VALUES

from pellucid import _bytecode as bytecode
from pellucid import _grading, _interpreters, _recompile, decompiling

pytestmark = pytest.mark.skipif("PELLUCID_SANITIZED" in os.environ, reason="other processes are not what sanitizers look at here")

SOURCE = Path(decompiling.__file__).resolve().parents[1]
VERSIONS = [308, 309, 310, 311, 312, 313]
CALLS = 6

# Runs under any Python: what is asked on standard input, what happened on standard output. The modules see what is printed nowhere else.
RUNNER = """
import contextlib, io, json, sys, types


def chain(error):
    result = []
    while error is not None and len(result) < 20:
        result.append([type(error).__name__, str(error), type(error.__cause__).__name__, error.__suppress_context__])
        if hasattr(error, "exceptions"):
            result.append([chain(each) for each in error.exceptions])
        error = error.__context__
    return result


def outcome(call):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = ["returns", repr(call())]
        except BaseException as error:
            result = ["raises", chain(error)]
    return result + [printed.getvalue()]


def names(space):
    return sorted(name for name in space if name not in ("__builtins__", "__conditional_annotations__"))


def run(source):
    module = sys.modules["program"] = types.ModuleType("program")
    space = module.__dict__
    outcomes = [outcome(lambda: exec(compile(source, "<program>", "exec", 0, True), space))]
    outcomes.append(names(space))
    for n in range(CALLS):
        outcomes.append(outcome(lambda: space["run"](n)))
    outcomes.append(names(space))
    return outcomes


json.dump([run(source) for source in json.load(sys.stdin)], sys.stdout)
"""

ALL = {**FLOW, **VALUES}
FORMS = ["structured", "lines", "blocks"]
# Without a structured form so far; the first versions of which that is so, and the first again with one.
UNSTRUCTURED = {
    "ways out of finally blocks": (310, 999),
    "exceptions in generators and loops": (309, 310),
    "type parameters": (312, 999),
}


def source_in(form, code):
    """The decompiled source of a module; None where it has no such form."""
    if form == "blocks":
        result = decompiling.block_form(code)
        assert (result.bindings, result.renamed) == ({}, {})
        return result.source
    source, _, _, bindings = bytecode.decompile_structured(code, line_layout=form == "lines")
    assert not bindings
    return source


@functools.lru_cache(maxsize=None)
def outcomes(version):
    """For each program and form, and for the originals under form "": the source and what happened."""
    python = _interpreters.find(version)
    if python is None:
        return None
    titles = [title for title, (since, _) in ALL.items() if since <= version]
    programs = [textwrap.dedent(ALL[title][1]).lstrip() for title in titles]
    compiler = _grading.Compiler(version, python)
    try:
        codes = compiler.compile([_recompile.Request(program, "", 0) for program in programs])
    finally:
        compiler.close()
    sources = {}
    for title, program, code in zip(titles, programs, codes):
        assert not isinstance(code, str), (title, code)
        sources[title, ""] = program
        sources.update({(title, form): source_in(form, code) for form in FORMS})
    keys = [key for key, source in sources.items() if source is not None]
    done = subprocess.run(
        [python, "-c", RUNNER.replace("CALLS", str(CALLS))],
        input=json.dumps([sources[key] for key in keys]),
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return sources, dict(zip(keys, json.loads(done.stdout)))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("title", ALL)
def test_does_what_the_original_does(title, form, version):
    if version < ALL[title][0]:
        pytest.skip(f"needs Python {_interpreters.version_name(ALL[title][0])}")
    found = outcomes(version)
    if found is None:
        pytest.skip(f"no Python {_interpreters.version_name(version)} is found")
    sources, happened = found
    if sources[title, form] is None:
        first, end = UNSTRUCTURED.get(title, (999, 999))
        assert form != "blocks" and first <= version < end, "there is no such form"
        pytest.skip("it has no structured form")
    assert happened[title, form] == happened[title, ""], sources[title, form]
