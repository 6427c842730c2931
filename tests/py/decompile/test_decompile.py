"""pellucid.decompile and `python -m pellucid decompile`."""

import importlib.util
import json.decoder
import os
import pathlib
import py_compile
import subprocess
import sys
import textwrap

import find_pythons
import pytest

import pellucid
from pellucid import decompiling

FOUND, SKIPPED = find_pythons.find()
processes = pytest.mark.skipif("PELLUCID_SANITIZED" in os.environ, reason="other processes are not what sanitizers look at here")
SOURCE = pathlib.Path(pellucid.__file__).parent.parent


def sample(a, b=2):
    return a + b


def test_source_of_functions_methods_code_and_generators():
    expected = "def sample(a, b):\n    return a + b\n"
    assert pellucid.decompile(sample) == expected.replace("b)", "b=2)", 1)
    assert pellucid.decompile(sample.__code__) == expected
    assert pellucid.decompile(pellucid._bytecode.neutral(sample.__code__)) == expected
    assert "def decode" in pellucid.decompile(json.JSONDecoder().decode)

    def generate():
        yield 1

    assert "yield 1" in pellucid.decompile(generate())


def test_module():
    source = pellucid.decompile(json.decoder)
    assert "JSONDecodeError" in source
    compile(source, "<json>", "exec")


@pytest.mark.parametrize("thing", [1, len, "text", sys, None])
def test_what_has_no_code(thing):
    with pytest.raises(TypeError):
        pellucid.decompile(thing)


def test_check_gives_grade_source_and_reason():
    result = pellucid.decompile(sample, check=True)
    assert (result.grade, result.reason, str(result)) == ("identical", "", pellucid.decompile(sample))
    assert result.bindings == {}


def test_a_wrong_structured_form_is_not_kept(monkeypatch):
    wrong = ("def sample(a, b):\n return b + a\n", None, [], [])
    monkeypatch.setattr(decompiling._bytecode, "decompile_structured", lambda code, **options: wrong)
    monkeypatch.setattr(decompiling._bytecode, "decompile_choices", lambda code, **options: (wrong[0], []))
    result = pellucid.decompile(sample, check=True)
    assert result.grade == "block form"
    assert "something else" in result.reason
    space = {}
    exec(result.source, space)
    assert space["sample"]("a", "b") == "ab"


MARKER = object()


def with_signature(a: int, b=3, *rest: "str", c=(1, None), d=MARKER, **named) -> bool:
    return a


def test_defaults_and_annotations_of_a_function():
    result = pellucid.decompile(with_signature, check=True)
    assert result.source.splitlines()[0] == ("def with_signature(a: int, b=3, *rest: 'str', c=(1, None), d=__object_0, **named) -> bool:")
    assert (result.grade, result.bindings) == ("identical", {"__object_0": MARKER})
    space = dict(result.bindings)
    exec(result.source, space)
    again = space["with_signature"]
    assert again.__defaults__ == with_signature.__defaults__
    assert again.__kwdefaults__ == with_signature.__kwdefaults__
    assert again.__annotations__ == with_signature.__annotations__
    assert pellucid.decompile(lambda a=2: a) == "lambda a=2: a\n"


def test_no_file_is_opened(monkeypatch):
    code = sample.__code__.replace(co_filename="/nowhere/at all.py")

    def refuse(*arguments, **named):
        raise AssertionError(f"opened {arguments}")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("linecache.getlines", refuse)
    assert "return a + b" in pellucid.decompile(code, check=True).source


def run(*arguments, cwd=None, status=0):
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-m", "pellucid", *arguments], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


PROGRAM = "import os\n\n\ndef main(a, b):\n    return os.path.join(a, b)\n\n\nclass Thing:\n    size = 3\n"


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


@processes
def test_command_line_source_file(program):
    out, errors = run("decompile", "program.py", "--check", cwd=program)
    assert "return os.path.join(a, b)" in out
    assert errors.split(":")[0].strip() in ("identical", "equal flow", "block form")
    compile(out, "<out>", "exec")


@processes
def test_command_line_pyc_and_function(program):
    py_compile.compile(str(program / "program.py"), cfile=str(program / "moved.pyc"))
    out, _ = run("decompile", "moved.pyc", cwd=program)
    assert "os.path.join" in out
    out, _ = run("decompile", "program:main", cwd=program)
    assert out.startswith("def main(a, b):")


@processes
@pytest.mark.parametrize("tag", [308, 309, 310, 312, 313])
def test_command_line_other_python(program, tag):
    if not any(each.tag == tag for each in FOUND):
        pytest.skip(f"no CPython 3.{tag % 100} found")
    out, errors = run("decompile", "program.py", "--python", f"3.{tag % 100}", "--check", cwd=program)
    assert "os.path.join" in out
    assert errors.split(":")[0].strip() in ("identical", "equal flow", "block form")


@processes
def test_command_line_errors(program):
    (program / "broken.py").write_text("def f(:\n")
    (program / "broken.pyc").write_bytes(importlib.util.MAGIC_NUMBER + bytes(12) + b"c")
    for arguments, message in [
        (("nothing.py",), "nothing.py"),
        (("broken.py",), "cannot compile broken.py"),
        (("broken.pyc",), "damaged marshal data"),
        (("program:nothing",), "nothing"),
        (("nothing_at_all:f",), "nothing_at_all"),
        (("program.pyc", "--python", "3.8"), "--python"),
    ]:
        _, errors = run("decompile", *arguments, cwd=program, status=1)
        assert message in errors
        assert "Traceback" not in errors
    _, errors = run("decompile", "program.py", "--python", "2.7", cwd=program, status=2)
    assert "no Python from 3.8 to 3.13" in errors


@processes
def test_neither_import_nor_decompiling_loads_torch():
    program = textwrap.dedent("""
        import sys
        import pellucid
        assert "decompile" in dir(pellucid)
        print(pellucid.decompile(lambda x: x + 1))
        assert "torch" not in sys.modules
    """)
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-S", "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "x + 1" in done.stdout
