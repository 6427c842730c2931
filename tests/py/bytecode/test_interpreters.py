"""Every code object of the standard library survives decode -> assemble unchanged, on each interpreter found; tables agree with each."""

import json
import os
import pathlib
import subprocess
import sys

import build_bytecode
import find_pythons
import gen_opcodes
import pellucid._bytecode as bytecode
import pytest

HERE = pathlib.Path(__file__).parent
SANITIZED = "PELLUCID_SANITIZED" in os.environ
FOUND, SKIPPED = find_pythons.find()
BY_TAG = {interpreter.tag: interpreter for interpreter in FOUND}
OWN_TAG = sys.version_info[0] * 100 + sys.version_info[1]


def interpreter_and_module(tag):
    """How to start the interpreter of a version, and the folder with `_bytecode` for it; builds that where it is not this one's."""
    if tag == OWN_TAG:
        return sys.executable, str(pathlib.Path(bytecode.__file__).parent)
    if SANITIZED:
        pytest.skip("under sanitizers only the interpreter that runs the tests")
    if tag not in BY_TAG:
        pytest.skip(next((line for line in SKIPPED if f"3.{tag % 100}:" in line), "not found"))
    build_bytecode.build(BY_TAG[tag], jobs=2)
    return BY_TAG[tag].path, str(build_bytecode.ROOT / "src" / "pellucid")


def run(python, *arguments):
    done = subprocess.run([python, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("tag", [311, 312, 313])
def test_standard_library(tag):
    python, folder = interpreter_and_module(tag)
    result = json.loads(run(python, str(HERE / "stdlib_roundtrip.py"), folder))
    print(f"{result['version']}: {result['codes']} code objects of {result['files']} files")
    assert result["codes"] > 10_000
    assert result["unequal"] == {}, result["first"]
    assert result["shallow"] == []
    # Some programs (most of them tests of just that) read a local that nothing can have bound; all else must be accepted.
    assert [entry for entry in result["invalid"] if not entry[1].endswith("cannot be bound there")] == []
    assert len(result["invalid"]) < 40


OLD_VERSIONS = """
import json, sys
sys.path.insert(0, {here!r})
import stdlib_roundtrip
module = stdlib_roundtrip.load({folder!r})

def f(a, b):
    with open(a) as file:
        return lambda: (a, file.read(), [b for b in a])

problems = [module.validate(module.decode(code)) for code in (f.__code__, *f.__code__.co_consts) if hasattr(code, "co_code")]
assert len(problems) == 2, problems
problems += [module.validate(module.decode(module.neutral(f.__code__)))]
try:
    module.assemble(module.decode(f.__code__))
    message = None
except ValueError as error:
    message = str(error)
tables = [sorted(module.opcodes(version)) for version in range(308, 314)]
json.dump([message, tables, problems], sys.stdout)
"""


@pytest.mark.parametrize("tag", [308, 309, 310])
def test_older_versions_read_and_say_what_they_cannot(tag):
    python, folder = interpreter_and_module(tag)
    message, tables, problems = json.loads(run(python, "-c", OLD_VERSIONS.format(here=str(HERE), folder=folder)))
    assert problems == ["", "", ""]
    assert message == f"code objects can be assembled on CPython 3.11, 3.12 and 3.13; this is CPython 3.{tag % 100}"
    assert tables == [sorted(bytecode.opcodes(version)) for version in range(308, 314)]


@pytest.mark.parametrize("tag", [308, 309, 310, 311, 312, 313])
def test_tables_are_those_of_the_interpreter(tag):
    if tag not in BY_TAG:
        pytest.skip(f"no CPython 3.{tag % 100} found")
    table = gen_opcodes.ask(BY_TAG[tag])
    with open(gen_opcodes.table_path(tag)) as file:
        assert file.read() == gen_opcodes.render_table(tag, table)
    ours = bytecode.opcodes(tag)
    assert {row["name"]: (row["number"], row["caches"]) for row in table["rows"]} == {name: row[:2] for name, row in ours.items()}


# Where the interpreter does something else than its compiler's bookkeeping says (effects.cpp tells why).
KNOWN_DIFFERENCES = {310: {"GEN_START"}, 311: {"PRECALL", "CALL", "RETURN_GENERATOR"}, 312: {"RETURN_GENERATOR"}}

DIS_EFFECTS = """
import dis, json, sys
answers = []
for number, name, has_arg in json.load(sys.stdin):
    for arg in (list(range(40)) + [255, 256, 257, 1023, 65536]) if has_arg else [None]:
        for jump in (False, True):
            try:
                answers.append([name, arg or 0, jump, dis.stack_effect(number, arg, jump=jump)])
            except ValueError:
                pass
json.dump(answers, sys.stdout)
"""


@pytest.mark.parametrize("tag", [308, 309, 310, 311, 312, 313])
def test_stack_effects_are_those_of_the_compiler(tag):
    if tag not in BY_TAG:
        pytest.skip(f"no CPython 3.{tag % 100} found")
    question = json.dumps([(number, name, "arg" in flags) for name, (number, _, flags) in bytecode.opcodes(tag).items()])
    done = subprocess.run([BY_TAG[tag].path, "-c", DIS_EFFECTS], input=question, stdout=subprocess.PIPE, text=True, check=True)
    answers = json.loads(done.stdout)
    assert len(answers) > 1000
    differing = {name for name, arg, jump, effect in answers if bytecode.stack_effect(tag, name, arg, jump) != effect}
    assert differing == KNOWN_DIFFERENCES.get(tag, set())
