"""What was made of one function as a file that runs: its guards, its transformed code, its graphs, the functions that go on with it.

Reads captures, and knows neither compilers nor folders.
"""

import dis
import keyword
import re
import tokenize
from types import CodeType, FunctionType
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

from pellucid.debugging.records import Capture, Entry, Graph
from pellucid.debugging.references import References, describe
from pellucid.decompiling import DIFFERS, Decompiled, decompile

_GLOBAL_OPS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")


def identifier(name: str) -> str:
    """A variable's name that resembles a code object's."""
    made = re.sub(r"\W", "_", name.strip("<>")) or "_"
    if made[0].isdigit():
        made = "_" + made
    return made + "_" if keyword.iskeyword(made) else made


class Part(NamedTuple):
    """A piece of the program that also gets a file of its own."""

    name: str
    text: str


class Program:
    """The file about one function. Files of its parts are in `guards`, `transformed` and `graphs` once `text` was made."""

    def __init__(self, root: Capture, others: List[Capture], place: str, graph_files: Dict[int, str]) -> None:
        """`others`: captures that go on with the root's calls; `place`: the file's path; `graph_files`: names by id of the graph."""
        self.references = References()
        self.guards: List[Part] = []
        self.transformed: List[Part] = []
        self._captures = [root, *others]
        self._place, self._graph_files = place, graph_files
        self._taken: Set[str] = {"_kept", "_rt", "_here", "_words"}
        for capture in self._captures:
            self._taken |= set(_global_names(capture.code))
        self.name = identifier(root.name)
        self._names: Dict[int, str] = {id(root.code): self.name}
        for capture in others:
            self._name_code(capture.code)
        self._imports: Dict[str, Any] = {}
        self._makers: Dict[str, str] = {}

    def _name_code(self, code: CodeType) -> str:
        if id(code) not in self._names:
            self._names[id(code)] = self._free("resume_in_{}_{}".format(self.name, len(self._names)))
        return self._names[id(code)]

    def _free(self, wanted: str) -> str:
        while wanted in self._taken:
            wanted += "_"
        self._taken.add(wanted)
        return wanted

    def text(self) -> str:
        """The file."""
        sections: List[str] = []
        done: Set[int] = set()
        for capture in self._captures:
            done.add(id(capture.code))
            sections.append(self._section(capture))
        for capture in self._captures:
            for entry in capture.entries:
                for code in entry.resumes.values():
                    if id(code) not in done:  # no call has got there
                        done.add(id(code))
                        sections.append(
                            self._section(
                                Capture(
                                    capture.compiler, FunctionType(code, capture.function.__globals__, code.co_name, None, _cells(code))
                                )
                            )
                        )
        return "\n".join([*self._head(), *sections])

    def _head(self) -> Iterator[str]:
        root = self._captures[0]
        code = root.code
        yield '"""{} as {} runs it.'.format(self.name, root.compiler)
        yield ""
        yield "{}:{}".format(code.co_filename, code.co_firstlineno).replace("\\", "/")
        yield ""
        yield "`{}` finds the entry whose guards hold and runs its transformed code; with none it runs as written.".format(self.name)
        yield '"""'
        yield ""
        yield "from pellucid import guard_text as _words"
        yield "from pellucid.debugging import runtime as _rt"
        yield ""
        yield '_here = globals().get("__file__", {!r})'.format(self._place)
        yield "_kept = _rt.kept({!r})  # objects of the process that wrote this file".format(self._place)
        yield ""
        for name, value in sorted(self._imports.items()):
            if name not in self._names.values():
                yield self.references.statement(name, value)
        yield ""

    # ---- one capture

    def _section(self, capture: Capture) -> str:
        name = self._name_code(capture.code)
        code = capture.code
        lines = ["", "# ---- {}: {}:{}".format(name, code.co_filename, code.co_firstlineno), ""]
        lines += ["# As written once, for: {}".format(" ".join(reason.split())[:200]) for reason in capture.as_written]
        original = self._free("original_" + name)
        lines += self._function(code, original, {}, capture.function)
        function = self._free("F_" + name)
        lines += ["{} = _kept.get({}, {})".format(function, self.references.keep(capture.function)[6:-1], original), ""]
        entries = [self._entry(capture, entry, number, name, function, lines) for number, entry in enumerate(capture.entries)]
        return "\n".join([*lines, *self._dispatch(capture, name, function, entries)])

    def _entry(self, capture: Capture, entry: Entry, number: int, name: str, function: str, lines: List[str]) -> "_Called":
        guards, transformed = self._free("guards_{}_{}".format(name, number)), self._free("transformed_{}_{}".format(name, number))
        text = entry.guards(guards, self.references)
        lines += ["", "# entry {}{}".format(number, "".join("; ends a graph: " + one for one in entry.breaks)), "", text]
        self.guards.append(Part(guards, text))
        renamed: Dict[str, str] = {}
        graphs = []
        for key, graph in entry.graphs.items():
            called = self._free("compiled_" + self._graph_files[id(graph)][len("compiled_") : -3])
            renamed[key] = called
            loaded = '_rt.graph(_here, "{}")'.format(self._graph_files[id(graph)])
            graphs.append((called, graph))
            lines.append("{} = {}".format(called, "_rt.with_parameters({})".format(loaded) if graph.parameters else loaded))
        for key, code in entry.resumes.items():
            called = self._name_code(code)
            renamed[key] = self._maker(called) if code.co_freevars else called
        for key, expression in entry.constants.items():
            renamed[key] = expression
        body = self._function(entry.transformed, transformed, renamed, capture.function)
        self.transformed.append(Part(transformed, "\n".join(body)))
        lines += ["", *body]
        return _Called(guards, transformed, entry, graphs)

    def _maker(self, name: str) -> str:
        """The name of what makes functions of a code object with free variables."""
        if name not in self._makers:
            self._makers[name] = self._free("make_" + name)
        return self._makers[name]

    def _dispatch(self, capture: Capture, name: str, function: str, entries: List["_Called"]) -> Iterator[str]:
        defaults = "{0}.__defaults__, {0}.__kwdefaults__ = {1}.__defaults__, {1}.__kwdefaults__".format(name, function)
        body = [*self._choose(capture, name, function, entries), "", "", defaults]
        yield from ("", "")
        if not capture.code.co_freevars:
            yield from body
        else:  # one for each closure
            around = self._free("_around_" + name)
            yield "def {}({}):".format(around, function)
            yield from indented("\n".join(body))
            yield "    return {}".format(name)
            yield from ("", "", "{} = {}({})".format(name, around, function))
            yield "{} = _rt.Maker({}, {}, {!r})".format(self._maker(name), around, function, capture.code.co_freevars)
        yield ""

    def _choose(self, capture: Capture, name: str, function: str, entries: List["_Called"]) -> Iterator[str]:
        signature = Signature(capture.code)
        frame = "_frame"
        while frame in signature.names:
            frame += "_"
        yield "def {}({}):".format(name, signature.text)
        names = "".join("{!r}, ".format(one) for one in signature.real)
        values = "".join("{}, ".format(one) for one in signature.names)
        yield "    {0} = _rt.frame_locals({1}, ({2}), ({3})), {1}.__globals__, {1}".format(frame, function, names, values)
        for called in entries:
            yield "    if _rt.holds({}, *{}):".format(called.guards, frame)
            for graph_name, graph in called.graphs:
                if graph.parameters:
                    given = "".join(one + ", " for one in graph.parameters)
                    yield "        {}.parameters = (lambda L, G, F: ({}))(*{})".format(graph_name, given, frame)
            arguments = values[:-2] if called.entry.all_positional else signature.call
            runs = called.transformed
            if called.entry.transformed.co_freevars:
                runs = "_rt.with_cells({}, {})".format(runs, function)
            yield "        return {}({})".format(runs, arguments)
        yield "    return {}({})".format(function, signature.call)

    # ---- code as source

    def _function(self, code: CodeType, name: str, renamed: Dict[str, str], function: FunctionType) -> List[str]:
        """The definition of a function of this code; with free variables through a function around, which gives them their values."""
        self._note_globals(code, renamed, function)
        try:
            result = decompiled(code, name, renamed)
        except ValueError as error:
            return ["{} = _rt.without_source({!r})".format(name, str(error)), ""]
        lines = ["# {}".format(result.grade)] if result.grade != "identical" else []
        source = result.source.rstrip()
        known = {
            bound: renamed[key]
            for bound, key in ((bound, _constant_key(code, value)) for bound, value in result.bindings.items())
            if key in renamed
        }
        source = with_names(source, known)
        for bound, value in result.bindings.items():
            if bound not in known:
                expression = self.references.expression(value)
                lines.append("{} = {}{}".format(bound, expression, "  # " + describe(value) if expression.endswith("]") else ""))
            elif re.search(r"\b{}\b".format(bound), source):  # inside of an f-string
                lines.append("{} = {}".format(bound, known[bound]))
        if not code.co_freevars:
            return [*lines, source, ""]
        maker = self._free("_make_" + name)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        lines.append("def {}():".format(maker))
        for variable in code.co_freevars:
            lines.append("    {} = {}".format(variable, self._cell(cells.get(variable))))
        lines += indented(source)
        return [*lines, "    return {}".format(name), "", "", "{} = {}()".format(name, maker), ""]

    def _cell(self, cell: Any) -> str:
        try:
            return "None" if cell is None else self.references.expression(cell.cell_contents)
        except ValueError:
            return "None"

    def _note_globals(self, code: CodeType, renamed: Dict[str, str], function: FunctionType) -> None:
        for name in _global_names(code):
            if name not in renamed and name in function.__globals__ and name not in self._names.values():
                self._imports.setdefault(name, function.__globals__[name])


class _Called(NamedTuple):
    guards: str
    transformed: str
    entry: Entry
    graphs: List[Tuple[str, Graph]]


class Signature:
    """The parameters of a code object as text."""

    def __init__(self, code: CodeType) -> None:
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        self.real = code.co_varnames[:count]
        self.names = [identifier(name) for name in self.real]
        positional, rest = self.names[: code.co_argcount], self.names[code.co_argcount :]
        named, rest = rest[: code.co_kwonlyargcount], rest[code.co_kwonlyargcount :]
        parts, call = list(positional), list(positional)
        if code.co_posonlyargcount:
            parts.insert(code.co_posonlyargcount, "/")
        if code.co_flags & 4:
            parts.append("*" + rest[0])
            call.append("*" + rest.pop(0))
        elif named:
            parts.append("*")
        parts += named
        call += ["{0}={0}".format(name) for name in named]
        if code.co_flags & 8:
            parts.append("**" + rest[0])
            call.append("**" + rest[0])
        self.text, self.call = ", ".join(parts), ", ".join(call)


def decompiled(code: CodeType, name: str, renamed: Dict[str, str]) -> Decompiled:
    """A code object as a function of another name, with other names for globals."""
    other = code.replace(co_name=name, co_names=tuple(renamed.get(one, one) for one in code.co_names))
    result = decompile(other, check=True)
    if result.grade == DIFFERS:
        raise ValueError(result.reason)
    return result


def indented(source: str) -> List[str]:
    """The lines of a source, one level in; strings keep their text."""
    inside: Set[int] = set()
    for token in tokenize.generate_tokens(iter(source.splitlines(True)).__next__):
        if token.type == tokenize.STRING:
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    return ["    " + line if line and number not in inside else line for number, line in enumerate(source.splitlines(), 1)]


def with_names(source: str, names: Dict[str, str]) -> str:
    """The source with expressions in the place of variables, outside of f-strings."""
    lines = source.splitlines(True)
    for token in reversed(list(tokenize.generate_tokens(iter(lines).__next__))):
        if token.type == tokenize.NAME and token.string in names:
            line = lines[token.start[0] - 1]
            lines[token.start[0] - 1] = line[: token.start[1]] + names[token.string] + line[token.end[1] :]
    return "".join(lines)


def _constant_key(code: CodeType, value: Any) -> str:
    for number, const in enumerate(code.co_consts):
        if const is value:
            return "const {}".format(number)
    return ""


def _global_names(code: CodeType) -> List[str]:
    found: Dict[str, None] = {}
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBAL_OPS:
            found[instruction.argval] = None
    for const in code.co_consts:
        if isinstance(const, CodeType):
            found.update(dict.fromkeys(_global_names(const)))
    return list(found)


def _cells(code: CodeType) -> Any:
    import types

    return tuple(types.CellType() for _ in code.co_freevars) or None
