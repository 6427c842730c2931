"""The layer lint finds each kind of breach, in made-up trees, and nothing in trees that keep the rules."""

import pathlib
import subprocess
import sys

import pytest
from lint_layers import DIRECT, ROOT, allowed_layers, check

OPENING = "// What this is.\n"


def problems(**files):
    """Findings in a tree; keys are file names with `__` for `/` and `_h`, `_cpp`, `_c` or `_py` at the end for the suffix."""
    tree = {}
    for key, text in files.items():
        stem, _, suffix = key.replace("__", "/").rpartition("_")
        tree[f"{stem}.{suffix}"] = text
    return [str(problem) for problem in check(tree)]


def header(*includes):
    return OPENING + "".join(f"#include {include}\n" for include in includes)


def test_directions_are_those_of_the_design():
    assert allowed_layers("base") == {"base"}
    assert allowed_layers("symbolic") == {"base", "symbolic"}
    assert allowed_layers("cpython") == {"base", "py", "cpython"}
    assert "symbolic" in allowed_layers("guard") and "bytecode" in allowed_layers("guard")
    assert "cache" in allowed_layers("translate") and "cache" not in allowed_layers("variables")
    assert "decompile" not in allowed_layers("translate")
    assert all("module" not in allowed_layers(layer) for layer in DIRECT if layer != "module")


def test_including_downwards_is_fine():
    assert problems(csrc__base__a_h=header(), csrc__guard__g_cpp=header('"base/a.h"', '"guard/g.h"'), csrc__guard__g_h=header()) == []


def test_including_upwards_is_found_with_its_line():
    found = problems(csrc__base__a_h=header("<vector>", '"guard/g.h"'), csrc__guard__g_h=header())
    assert found == ["csrc/base/a.h:3: base/ must not include guard/g.h: it may see base"]


def test_sideways_is_found():
    assert len(problems(csrc__cache__c_h=header(), csrc__variables__v_h=header('"cache/c.h"'))) == 1


def test_unknown_layer_and_unknown_file():
    assert "no layer" in problems(csrc__utils__a_h=header())[0]
    assert "no file under csrc/" in problems(csrc__base__a_h=header('"nowhere.h"'))[0]


@pytest.mark.parametrize("name", ["torch/library.h", "ATen/core/Tensor.h", "c10/core/Device.h", "pybind11/pybind11.h"])
def test_torch_headers_only_in_the_bridge(name):
    assert problems(csrc__torch_bridge__a_cpp=header(f"<{name}>")) == []
    assert "only torch_bridge/" in problems(csrc__translate__a_cpp=header(f"<{name}>"))[0]
    assert "only torch_bridge/" in problems(csrc__module__core_a_cpp=header(f"<{name}>"))[0]


def test_bridge_header_without_torch_is_for_its_users():
    bridge = header('"guard/g.h"')
    user = header('"torch_bridge/fake.h"')
    files = {"csrc__torch_bridge__fake_h": bridge, "csrc__guard__g_h": header()}
    assert problems(csrc__translate__t_cpp=user, **files) == []
    assert "must not include torch_bridge/fake.h" in problems(csrc__source__s_cpp=user, **files)[0]


def test_bridge_header_with_torch_behind_it_is_found():
    files = {"csrc__torch_bridge__fake_h": header('"torch_bridge/inner.h"'), "csrc__torch_bridge__inner_h": header("<ATen/ATen.h>")}
    found = problems(csrc__translate__t_cpp=header('"torch_bridge/fake.h"'), **files)
    assert len(found) == 1 and "brings ATen/ATen.h (in csrc/torch_bridge/inner.h)" in found[0]


def test_bridge_header_must_not_smuggle_a_higher_layer():
    files = {"csrc__torch_bridge__fake_h": header('"translate/t.h"'), "csrc__translate__t_h": header()}
    found = problems(csrc__guard__g_cpp=header('"torch_bridge/fake.h"'), **files)
    assert len(found) == 1 and "brings csrc/translate/t.h, which guard/ must not see" in found[0]


def test_python_headers():
    assert problems(csrc__py__python_h=header("<Python.h>"), csrc__cpython__a_c=header("<Python.h>", '"internal/pycore_frame.h"')) == []
    assert "py/python.h" in problems(csrc__guard__g_cpp=header("<Python.h>"))[0]
    assert "only cpython/" in problems(csrc__guard__g_cpp=header('"internal/pycore_frame.h"'))[0]


def test_version_checks_have_their_places():
    code = OPENING + "#if PY_VERSION_HEX >= 0x030C0000\n#endif\n"
    assert problems(csrc__cpython__a_c=code, csrc__bytecode__lowering__a_cpp=code) == []
    assert problems(csrc__bytecode__a_cpp=code)[0].startswith("csrc/bytecode/a.cpp:2: PY_VERSION_HEX")


def test_version_checks_in_comments_and_strings_are_not_code():
    assert problems(csrc__py__a_h=OPENING + '// PY_VERSION_HEX\n/* PY_MINOR_VERSION\n */ const char* s = "PY_VERSION_HEX";\n') == []


def test_long_files():
    long = OPENING + "int x;\n" * 800
    assert "801 lines" in problems(csrc__base__a_h=long)[0]
    assert problems(csrc__bytecode__generated__a_h=long) == []
    assert problems(csrc__base__a_h=OPENING + "int x;\n" * 799) == []


def test_opening_comment():
    assert "must open with a comment" in problems(csrc__base__a_h="#pragma once\n")[0]
    assert "must open with a docstring" in problems(tools__a_py="import os\n")[0]
    assert problems(tools__a_py='#!/usr/bin/env python\n"""Says what."""\n') == []


def run_lint(root):
    command = [sys.executable, str(ROOT / "tools" / "lint_layers.py"), "--root", str(root)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True)


def test_this_tree_keeps_the_rules():
    done = run_lint(ROOT)
    assert done.returncode == 0, done.stdout


def test_a_breach_or_an_empty_tree_fails_the_command(tmp_path: pathlib.Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert "no sources" in run_lint(tmp_path).stdout and run_lint(tmp_path).returncode == 1
    (tmp_path / "csrc" / "base").mkdir(parents=True)
    (tmp_path / "csrc" / "base" / "a.h").write_text(header("<torch/library.h>"))
    done = run_lint(tmp_path)
    assert done.returncode == 1 and "csrc/base/a.h:2: torch/library.h" in done.stdout
