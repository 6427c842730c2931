"""What the documents say and a program can check: links, folders, names of log artifacts, make targets."""

import pathlib
import re

import pytest
from lint_layers import DIRECT, ROOT

from pellucid import logging

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def layer_table():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `csrc/(\w+)` \| .* \| (.*) \|$", text, re.M)
    return dict(rows)


def test_the_layer_table_is_what_the_lint_checks():
    table = layer_table()
    assert list(table) == list(DIRECT)
    for layer, below in DIRECT.items():
        if layer not in ("torch_bridge", "module"):  # in words there
            assert table[layer] == (", ".join(below) or "nothing"), layer


def test_every_layer_of_the_tree_is_in_the_table():
    assert {path.name for path in (ROOT / "csrc").iterdir() if any(path.rglob("*.*"))} <= set(layer_table())


def test_readme_names_the_log_artifacts():
    match = re.search(r"`PELLUCID_LOGS=([\w,]+)` shows", (ROOT / "README.md").read_text())
    assert set(match.group(1).split(",")) == set(logging.ARTIFACTS)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_exist(document):
    makefile = pathlib.Path(ROOT / "Makefile").read_text()
    targets = re.findall(r"`make ([a-z-]+)|^    make ([a-z-]+)", (ROOT / document).read_text(), re.M)
    assert targets
    for first, second in targets:
        assert re.search(rf"^{first or second}:", makefile, re.M), first or second
