"""What a compiler made of functions, as data: the same for PyTorch's compiler and for Pellucid. Knows neither of them, and no files."""

from types import CodeType, FunctionType
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from pellucid.debugging.references import References

# Given the name of a function and how its file writes down objects: the source that defines the function, which takes L, G and F (the
# frame's locals by name, the module's globals, the function) and says whether the entry is for such a call.
GuardWriter = Callable[[str, References], str]


class Graph:
    """One captured graph, as it was before a backend saw it."""

    def __init__(self, module: Any, backend: str) -> None:
        self.backend = backend
        self.written = module  # a torch.fx.GraphModule that nobody changes any more
        self.parameters: List[str] = []  # inputs that the caller's code does not pass: expressions over L, G and F
        self.stages: List[Stage] = []  # what the backend made of it


class Stage(NamedTuple):
    """What a backend made of a graph on the way: text that the backend itself printed."""

    kind: str  # "joint", "forward", "backward", "inference", "output_code"
    text: str


class Entry:
    """One compiled variant of a function."""

    def __init__(self, transformed: CodeType, guards: GuardWriter, all_positional: bool) -> None:
        self.transformed = transformed
        self.guards = guards
        self.all_positional = all_positional  # the transformed code takes all its arguments by position
        self.graphs: Dict[str, Graph] = {}  # by the global name or, as "const N", the constant that transformed code calls it by
        self.resumes: Dict[str, CodeType] = {}  # the same for the code of functions that go on behind a graph break
        self.constants: Dict[str, Any] = {}  # expressions for constants that have a meaning of their own, by "const N"
        self.breaks: List[str] = []


class Capture:
    """All that was made of one code object."""

    def __init__(self, compiler: str, function: FunctionType) -> None:
        self.compiler = compiler  # for people: "torch.compile", "pellucid"
        self.function = function  # what a call of the code runs with: globals, defaults, closure
        self.code: CodeType = function.__code__
        self.name = self.code.co_name  # for people
        self.entries: List[Entry] = []
        self.as_written: List[str] = []  # why calls ran as written
        self.resumes_in: Optional[Capture] = None  # whose call it goes on with

    def runs_as_written(self, reason: str) -> None:
        """A call that was not compiled, and why."""
        if reason not in self.as_written:
            self.as_written.append(reason)


class Captures:
    """The captures of a session, in the order in which functions were met first."""

    def __init__(self) -> None:
        self._by_code: Dict[int, Capture] = {}  # by id; a Capture keeps its code

    def of(self, compiler: str, code: CodeType, make_function: Callable[[], FunctionType]) -> Capture:
        """The capture of a code object by one compiler, made where there is none."""
        key = hash((compiler, id(code)))
        if key not in self._by_code:
            self._by_code[key] = Capture(compiler, make_function())
        return self._by_code[key]

    def all(self) -> List[Capture]:
        """Every capture; those that resume others know whom."""
        captures = list(self._by_code.values())
        by_code = {(capture.compiler, id(capture.code)): capture for capture in captures}
        for capture in captures:
            for entry in capture.entries:
                for code in entry.resumes.values():
                    resumed = by_code.get((capture.compiler, id(code)))
                    if resumed is not None and resumed is not capture and resumed.resumes_in is None:
                        resumed.resumes_in = capture
        return captures
