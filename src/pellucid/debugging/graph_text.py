"""A torch.fx graph as a file that runs: one class, with what each operation gives and the user's line beside it."""

import re
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from pellucid.debugging import references
from pellucid.debugging.references import References

_STACK_ENTRY = re.compile(r'^  File "(?P<filename>.*)", line (?P<line>\d+), in (?P<name>.*)\n    (?P<code>.*)$', re.MULTILINE)
_WIDTH = 60  # of the code; what stands beside begins here


class GraphWriter:
    """Writes one graph, with those inside of it."""

    def __init__(self, written: References) -> None:
        self._references = written
        self._globals: Dict[str, Any] = {}
        self._classes: List[str] = []
        self._names: Set[str] = set()

    def write(self, module: Any, title: str) -> str:
        """The file."""
        self._class(module, "Graph")
        imports = [self._references.statement(name, value) for name, value in sorted(self._globals.items())]
        head = ['"""{}"""'.format(title.replace("\\", "\\\\").replace('"""', "'''")), ""]
        head += ["import torch", "from pellucid.debugging import runtime as _rt", ""]
        return "\n".join(head + [line for line in imports if line != "import torch"]) + "\n\n\n" + "\n\n".join(self._classes)

    def _class(self, module: Any, wanted: str) -> str:
        name = wanted
        while name in self._names:
            name += "_"
        self._names.add(name)
        attributes = [self._attribute(module, target) for target in _targets(module.graph)]
        self._classes.append("\n".join(["class {}(torch.nn.Module):".format(name), *self._init(attributes), *self._forward(module), ""]))
        return name

    def _attribute(self, module: Any, target: str) -> Tuple[str, str]:
        value = module
        for part in target.split("."):
            value = getattr(value, part)
        if hasattr(value, "graph") and hasattr(value, "recompile"):  # a torch.fx.GraphModule
            return target, self._class(value, "Graph_" + re.sub(r"\W", "_", target)) + "()"
        return target, self._references.expression(value)

    def _init(self, attributes: List[Tuple[str, str]]) -> Iterator[str]:
        if attributes:
            yield "    def __init__(self):"
            yield "        super().__init__()"
            for target, expression in attributes:
                yield "        _rt.assign(self, {!r}, {})".format(target, expression)
            yield ""

    def _forward(self, module: Any) -> Iterator[str]:
        made = module.graph.python_code("self")
        self._globals.update({name: value for name, value in made.globals.items() if _used(name, made.src)})
        nodes = list(module.graph.nodes)
        for node in nodes:
            if node.op == "placeholder":
                yield "    # {}: {}{}".format(node.target, _what(node), _source_of(node))
        for number, line in enumerate(
            made.src.strip("\n").splitlines(), made.src[: len(made.src) - len(made.src.lstrip("\n"))].count("\n") + 1
        ):
            index = made._lineno_map.get(number - made._prologue_start)
            node = nodes[index] if index is not None and index < len(nodes) else None
            beside = _beside(node) if node is not None and line.strip().startswith("{} ".format(node.name)) else ""
            yield ("    " + line.rstrip()).ljust(_WIDTH if beside else 0) + ("  # " + beside if beside else "")


def _targets(graph: Any) -> List[str]:
    found: Dict[str, None] = {}
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            found[node.target] = None
    return list(found)


def _used(name: str, source: str) -> bool:
    return re.search(r"(?<![\w.]){}\b".format(re.escape(name)), source) is not None


def _source_of(node: Any) -> str:
    name = node.meta.get("source_name")
    return ", from {}".format(name) if name else ""


def _what(node: Any) -> str:
    return describe_value(node.meta.get("example_value", node.meta.get("val")))


def describe_value(value: Any) -> str:
    """dtype, shape and device of tensors, alone or in containers; other values by their type."""
    if isinstance(value, (tuple, list)):
        inner = ", ".join(describe_value(one) for one in value)
        return "[{}]".format(inner) if isinstance(value, list) else "({})".format(inner)
    dtype = getattr(value, "dtype", None)
    if dtype is not None and hasattr(value, "shape"):
        device = str(value.device)
        text = "{}[{}]".format(str(dtype).replace("torch.", ""), ", ".join(map(str, value.shape)))
        return text if device == "cpu" else "{} {}".format(text, device)
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if hasattr(value, "node"):  # a symbolic number
        return str(value)
    return references.describe(value)


def _beside(node: Any) -> str:
    what = _what(node) if "example_value" in node.meta or "val" in node.meta else ""
    return " | ".join(filter(None, (what, user_line(node.meta.get("stack_trace")))))


def user_line(stack_trace: Optional[str]) -> str:
    """The innermost line of a stack trace: place and code."""
    entries = list(_STACK_ENTRY.finditer(stack_trace or ""))
    return "{filename}:{line}: {code}".format(**entries[-1].groupdict()) if entries else ""
