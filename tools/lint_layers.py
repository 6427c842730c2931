"""Checks what docs/architecture.md promises about the source tree and no compiler checks.

Which layer of csrc/ may include which; which may see Python's headers, CPython's internal ones, its version number, and torch's;
that no file grows past 800 lines; and that each opens by saying what it is. Generated files and goldens are exempt from the last two.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys
from typing import Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 800

# What a layer includes directly by right; what those include in turn comes with it. torch_bridge implements interfaces declared by
# its users, module binds everything.
DIRECT: Dict[str, Tuple[str, ...]] = {
    "base": (),
    "symbolic": ("base",),
    "py": ("base",),
    "symbolic_python": ("symbolic", "py"),
    "cpython": ("py",),
    "bytecode": ("cpython",),
    "decompile": ("bytecode",),
    "source": ("bytecode",),
    "guard": ("source", "symbolic"),
    "cache": ("guard",),
    "variables": ("bytecode", "source", "symbolic", "guard"),
    "translate": ("variables", "cache"),
    "torch_bridge": ("translate", "symbolic_python"),
    "module": ("torch_bridge", "decompile", "symbolic_python"),
}
# These may include the headers of torch_bridge that show no torch, directly or through others.
BRIDGE_USERS = frozenset({"guard", "cache", "variables", "translate"})
SEES_PYTHON_H = frozenset({"cpython", "torch_bridge", "module"})  # all others go through py/python.h

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2|pybind11)/")
INTERNAL_HEADER = re.compile(r"(^|/)(internal/|pycore_)")
VERSION_MACRO = re.compile(r"\b(PY_VERSION_HEX|PY_MAJOR_VERSION|PY_MINOR_VERSION|PY_MICRO_VERSION)\b")
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.S)
C_SUFFIXES = frozenset({".h", ".c", ".cpp", ".inc", ".def"})


def allowed_layers(layer: str) -> FrozenSet[str]:
    """The layers whose headers `layer` may include: the closure of DIRECT, itself included."""
    closure = {layer}
    pending = [layer]
    while pending:
        for below in DIRECT[pending.pop()]:
            if below not in closure:
                closure.add(below)
                pending.append(below)
    return frozenset(closure)


@dataclasses.dataclass(frozen=True)
class Problem:
    """One finding, printed as compilers print theirs."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclasses.dataclass(frozen=True)
class Include:
    """An #include line: `local` is the quoted form, a path from csrc/."""

    name: str
    local: bool
    line: int


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _is_version_place(path: str) -> bool:
    return path.startswith(("csrc/cpython/", "csrc/bytecode/lowering/"))


def is_exempt(path: str) -> bool:
    """Generated files and goldens: long by nature, and without a header of ours."""
    return any(part in ("generated", "golden", "goldens") for part in path.split("/"))


class Tree:
    """The files to check, by path from the root, with their includes."""

    def __init__(self, files: Dict[str, str]) -> None:
        self.files = files
        self.includes: Dict[str, List[Include]] = {
            path: list(self._includes(text)) for path, text in files.items() if pathlib.PurePosixPath(path).suffix in C_SUFFIXES
        }

    @staticmethod
    def _includes(text: str) -> Iterator[Include]:
        for match in INCLUDE.finditer(text):
            yield Include(match.group(2), match.group(1) == '"', _line_of(text, match.start()))

    def reached(self, path: str) -> Set[str]:
        """The files of csrc/ that including `path` brings, itself included."""
        seen = {path}
        pending = [path]
        while pending:
            for include in self.includes.get(pending.pop(), ()):
                target = "csrc/" + include.name
                if include.local and target in self.files and target not in seen:
                    seen.add(target)
                    pending.append(target)
        return seen

    def torch_header_behind(self, path: str) -> Optional[str]:
        """A torch header that including `path` brings, as "header (in file)", or None."""
        for reached in sorted(self.reached(path)):
            for include in self.includes.get(reached, ()):
                if TORCH_HEADER.match(include.name):
                    return f"{include.name} (in {reached})"
        return None


def check_includes(tree: Tree) -> Iterator[Problem]:
    """Directions between the layers, and who sees which foreign headers."""
    for path, includes in sorted(tree.includes.items()):
        parts = path.split("/")
        if parts[0] != "csrc":
            continue
        layer = parts[1]
        if layer not in DIRECT:
            yield Problem(path, 1, f"csrc/{layer} is no layer that docs/architecture.md knows")
            continue
        allowed = allowed_layers(layer)
        for include in includes:
            if TORCH_HEADER.match(include.name):
                if layer != "torch_bridge":
                    yield Problem(path, include.line, f"{include.name}: only torch_bridge/ sees torch's and pybind11's headers")
            elif INTERNAL_HEADER.search(include.name):
                if layer != "cpython":
                    yield Problem(path, include.line, f"{include.name}: only cpython/ sees CPython's internal headers")
            elif include.name == "Python.h":
                if layer not in SEES_PYTHON_H and path != "csrc/py/python.h":
                    yield Problem(path, include.line, 'Python.h: include "py/python.h" instead')
            elif include.local:
                yield from _check_local(tree, path, layer, allowed, include)


def _check_local(tree: Tree, path: str, layer: str, allowed: FrozenSet[str], include: Include) -> Iterator[Problem]:
    target = "csrc/" + include.name
    if target not in tree.files:
        yield Problem(path, include.line, f'"{include.name}" is no file under csrc/ (includes are written from there)')
        return
    target_layer = include.name.split("/")[0]
    if target_layer in allowed:
        return
    if target_layer != "torch_bridge" or layer not in BRIDGE_USERS:
        yield Problem(path, include.line, f"{layer}/ must not include {include.name}: it may see {', '.join(sorted(allowed))}")
        return
    torch_header = tree.torch_header_behind(target)
    if torch_header is not None:
        yield Problem(path, include.line, f"{include.name} brings {torch_header}; {layer}/ may only see torch_bridge headers without torch")
    for reached in sorted(tree.reached(target)):
        reached_layer = reached.split("/")[1]
        if reached_layer not in allowed and reached_layer != "torch_bridge":
            yield Problem(path, include.line, f"{include.name} brings {reached}, which {layer}/ must not see")


def check_versions(tree: Tree) -> Iterator[Problem]:
    """Code that asks for CPython's version, outside the folders that are there for it."""
    for path in sorted(tree.includes):
        if not path.startswith("csrc/") or _is_version_place(path):
            continue
        text = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), tree.files[path])
        for match in VERSION_MACRO.finditer(text):
            yield Problem(
                path, _line_of(text, match.start()), f"{match.group(0)}: versions are told apart in cpython/ and bytecode/lowering/ only"
            )


def check_shape(tree: Tree) -> Iterator[Problem]:
    """Length, and the opening lines that say what the file is."""
    for path, text in sorted(tree.files.items()):
        if is_exempt(path):
            continue
        suffix = pathlib.PurePosixPath(path).suffix
        if suffix not in C_SUFFIXES and suffix != ".py":
            continue
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield Problem(path, MAX_LINES, f"{lines} lines; split it by concept (at most {MAX_LINES})")
        if suffix in C_SUFFIXES and not text.startswith(("//", "/*")):
            yield Problem(path, 1, "must open with a comment: what this file is and what it must not know")
        if suffix == ".py" and path.startswith(("src/", "tools/")) and not re.match(r'(#![^\n]*\n)?"""', text):
            yield Problem(path, 1, "must open with a docstring: what this file is and what it must not know")


def check(files: Dict[str, str]) -> List[Problem]:
    """All findings in a tree given as path -> text."""
    tree = Tree(files)
    return [*check_includes(tree), *check_versions(tree), *check_shape(tree)]


def read_tree(root: pathlib.Path) -> Dict[str, str]:
    """What git tracks or would track: sources and tests."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    wanted = (*sorted(C_SUFFIXES), ".py")
    return {name: (root / name).read_text() for name in names if name.endswith(wanted) and (root / name).is_file()}


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    options = parser.parse_args(arguments)
    files = read_tree(options.root)
    if not any(path.startswith("csrc/") for path in files):
        print(f"no sources under {options.root}/csrc")
        return 1
    problems = check(files)
    for problem in problems:
        print(problem)
    print(f"{len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
