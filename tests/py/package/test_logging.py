"""logging: artifacts by name, from code and from the environment; silent by default; records reach the program's own handlers once."""

import logging
import os
import pathlib
import subprocess
import sys

import pytest

import pellucid
from pellucid import logging as plog


@pytest.fixture(autouse=True)
def silence():
    plog.disable()
    yield
    plog.disable()


def run(program, logs=None):
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(pellucid.__file__).parents[1])}
    environment.pop("PELLUCID_LOGS", None)
    if logs is not None:
        environment["PELLUCID_LOGS"] = logs
    return subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


WRITE = "from pellucid import logging as plog\nplog.log('guards', '100% of x')\nplog.log('perf', 'fast')\nplog.root.warning('careful')\n"


def test_artifacts_are_silent_and_warnings_are_not():
    assert run(WRITE).stderr == "[pellucid] careful\n"


def test_environment_turns_them_on():
    assert run(WRITE, "guards").stderr == "[pellucid.guards] 100% of x\n[pellucid] careful\n"
    assert run(WRITE, " perf , guards,").stderr.count("\n") == 3
    assert run(WRITE, "all").stderr.count("\n") == 3


def test_misspelt_name_in_the_environment_is_heard_of_at_import():
    done = run("import pellucid", "guards,recompile")
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert last == (
        "ValueError: PELLUCID_LOGS: unknown log artifact 'recompile'; "
        "known: bytecode, graph_breaks, graph_code, guards, perf, recompiles, sources, all"
    )


def test_the_program_s_own_logging_gets_the_records_once():
    program = "import logging; logging.basicConfig(level=logging.DEBUG, format='own %(name)s %(message)s')\n" + WRITE
    assert run(program, "guards").stderr == "own pellucid.guards 100% of x\nown pellucid careful\n"


def test_enable_and_disable():
    assert not plog.enabled("guards")
    plog.enable("guards,graph_breaks")
    assert plog.enabled("guards") and plog.enabled("graph_breaks") and not plog.enabled("perf")
    plog.disable("guards")
    assert not plog.enabled("guards") and plog.enabled("graph_breaks")
    plog.enable(["perf"])
    assert plog.enabled("perf")


def test_unknown_names_are_errors():
    for call in (plog.enable, plog.disable, plog.enabled, plog.logger):
        with pytest.raises(ValueError, match="unknown log artifact 'guard'; known: bytecode"):
            call("guard")
    with pytest.raises(ValueError):
        plog.enable("perf,guard")
    assert not plog.enabled("perf")


def test_records_are_ordinary_ones(caplog):
    plog.enable("guards")
    plog.log("guards", "text")
    assert [(record.name, record.levelno, record.getMessage()) for record in caplog.records] == [("pellucid.guards", logging.DEBUG, "text")]
