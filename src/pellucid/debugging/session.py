"""`prepare_debug`: what is watched from when to when, and what is written at the end. Knows which files there are, not what is in them."""

import contextlib
import inspect
import os
import sys
from typing import Any, Dict, Iterator, List

from pellucid import logging
from pellucid.debugging import own, runtime, stock
from pellucid.debugging.folder import Folder
from pellucid.debugging.graph_text import GraphWriter
from pellucid.debugging.program_text import Program, identifier
from pellucid.debugging.records import Capture, Captures, Graph
from pellucid.debugging.references import References
from pellucid.decompiling import decompile

_active: List[str] = []


@contextlib.contextmanager
def prepare_debug(folder: "str | os.PathLike[str]") -> Iterator[None]:
    """Writes what `torch.compile` and Pellucid make of functions while the context is active into a folder, as source that runs.

    For each function `full_code_for_NAME_N.py` (guards, transformed code, functions that go on behind graph breaks, calls of graphs),
    and its parts: `transformed_*.py`, `guards_*.py`, `compiled_*.py` (graphs, and what backends made of them), `original_*.py`;
    `index.md` lists them. Files are written when the context is left, also by an exception; those that an earlier session wrote there
    are removed. What was compiled before is not seen: `torch.compiler.reset()` or `pellucid.reset()` makes compilers begin anew.

    The files find objects of this process (parameters, closures) as long as it lives, or until a later session writes the same folder.
    Sessions don't nest.
    """
    if _active:
        raise RuntimeError("prepare_debug is active already, for {}".format(_active[0]))
    place = Folder(os.fspath(folder))
    os.makedirs(place.path, exist_ok=True)  # a folder that can't be made is an error now, not when all has run
    _active.append(place.path)
    captures = Captures()
    stages = stock.StageLog()
    with contextlib.ExitStack() as ended:
        ended.callback(_active.clear)
        ended.callback(_write, captures, place)
        watches: List[Any] = [stock.Watch(captures, stages)]
        if "torch" in sys.modules or _has_torch():
            watches.append(own.Watch(captures, stages.compiling))
        for watch in watches:
            ended.callback(watch.stop)
            watch.start()
        yield


def _has_torch() -> bool:
    import importlib.util

    return importlib.util.find_spec("torch") is not None


def _write(captures: Captures, folder: Folder) -> None:
    _Writer(captures.all(), folder).write()


class _Writer:
    """Writes the captures of a session."""

    def __init__(self, captures: List[Capture], folder: Folder) -> None:
        self._captures, self._folder = captures, folder
        self._graphs: Dict[int, str] = {}  # names of files by id of the graph
        self._kept: Dict[str, References] = {}
        self._index = ["# What was compiled", ""]

    def write(self) -> None:
        """All files."""
        roots = [capture for capture in self._captures if self._root(capture) is capture]
        for root in roots:
            others = [capture for capture in self._captures if capture is not root and self._root(capture) is root]
            if not root.entries and not any(other.entries for other in others):
                self._not_compiled(root)
                continue
            try:
                self._function(root, others)
            except Exception as error:  # of ours: the other functions are written all the same
                logging.root.warning("%s can't be written down", root.name, exc_info=True)
                self._index.append("- incomplete: {}: {}".format(type(error).__name__, error))
        if not roots:
            self._index.append("Nothing: no function was compiled while this was watched.")
        self._folder.add("index.md", "\n".join(self._index))
        for name in self._folder.write():
            path = self._folder.place(name)
            runtime.forget(path)
            if name in self._kept:
                runtime.keep(path, self._kept[name].kept)

    def _root(self, capture: Capture) -> Capture:
        seen = []
        while capture.resumes_in is not None and capture not in seen:
            seen.append(capture)
            capture = capture.resumes_in
        return capture

    def _function(self, root: Capture, others: List[Capture]) -> None:
        name = root.name
        full = self._folder.new_name("full_code_for", name)
        self._head(root, full)
        for capture in (root, *others):
            for entry in capture.entries:
                for graph in entry.graphs.values():
                    self._graph(graph, name)
        program = Program(root, others, self._folder.place(full), self._graphs)
        self._add(full, program.text(), program.references)
        self._original(root)
        for part in program.transformed:
            self._part("transformed", name, part.name, part.text)
        for part in program.guards:
            self._part("guards", name, part.name, part.text)
        for capture in (root, *others):
            for number, entry in enumerate(capture.entries):
                where = "" if capture is root else " of a function that goes on at line {}".format(capture.code.co_firstlineno)
                self._index.append("- entry {}{}{}".format(number, where, "".join("; ends a graph: " + one for one in entry.breaks)))
            self._index += ["- a call ran as written: {}".format(" ".join(one.split())[:300]) for one in capture.as_written]

    def _head(self, root: Capture, full: str) -> None:
        code = root.code
        where = "{}:{}".format(code.co_filename, code.co_firstlineno)
        self._index += ["", "## {}, by {}".format(root.name.replace("<", "\\<"), root.compiler), "", where, ""]
        self._index.append("- [{0}]({0}): the whole of it".format(full))

    def _add(self, name: str, text: str, references: "References | None" = None) -> None:
        self._folder.add(name, text)
        if references is not None:
            self._kept[name] = references

    def _part(self, kind: str, name: str, what: str, text: str) -> None:
        file = self._folder.new_name(kind, name)
        self._add(file, '"""{}; the file of the whole function has what it needs to run."""\n\n{}'.format(what, text))
        self._index.append("- [{0}]({0}): {1}".format(file, what))

    def _original(self, root: Capture) -> None:
        file = self._folder.new_name("original", root.name)
        try:
            source = inspect.getsource(root.code)
        except (OSError, TypeError):
            source = "# decompiled: there is no source file\n" + decompile(root.code)
        self._add(file, source)
        self._index.append("- [{0}]({0}): as it was written".format(file))

    def _graph(self, graph: Graph, name: str) -> None:
        if id(graph) in self._graphs:
            return
        file = self._graphs[id(graph)] = self._folder.new_name("compiled", name)
        references = References()
        text = GraphWriter(references).write(graph.written, "A graph of {}, given to the backend {}.".format(name, graph.backend))
        text += "\n\n_kept = _rt.kept({!r})\ngraph = Graph()\n".format(self._folder.place(file))
        self._add(file, text, references)
        self._index.append("- [{0}]({0}): a graph, for the backend {1}".format(file, graph.backend))
        for stage in graph.stages:
            stage_file = self._folder.new_name("compiled", file[len("compiled_") : -3] + "_" + stage.kind)
            self._add(stage_file, stage.text)
            self._index.append("- [{0}]({0}): {1}".format(stage_file, stage.kind.replace("_", " ")))

    def _not_compiled(self, root: Capture) -> None:
        code = root.code
        self._index += ["", "## {}, by {}: not compiled".format(identifier(root.name), root.compiler), ""]
        self._index += ["{}:{}".format(code.co_filename, code.co_firstlineno), ""]
        self._index += ["- {}".format(" ".join(one.split())[:300]) for one in root.as_written]
