"""Objects written down as expressions of Python: literals, what can be imported, and else places in a table of kept objects.

The table lives in this process (runtime.py has it): a file that was written here finds the very objects here, and elsewhere what can be
imported.
"""

import builtins
import importlib
import keyword
import math
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

_LITERALS = (int, str, bytes, bool, type(None), type(Ellipsis))
# Where functions of torch are found that do not know their module.
_HOMES = ("builtins", "torch", "torch.Tensor", "torch._C._nn", "torch.nn.functional", "operator", "math", "torch._C")


def is_name(text: str) -> bool:
    """Whether a text can be a variable."""
    return text.isidentifier() and not keyword.iskeyword(text)


class References:
    """How one file writes down objects."""

    def __init__(self) -> None:
        self.kept: List[Any] = []
        self._places: Dict[int, int] = {}

    def literal(self, value: Any) -> Optional[str]:
        """The literal for a value that has one and can't be told from its copy."""
        kind = type(value)
        if kind in _LITERALS:
            return repr(value)
        if kind is float:
            return repr(value) if math.isfinite(value) else "float({!r})".format(repr(value))
        if kind is tuple or kind is frozenset:
            parts = [self.literal(item) for item in value]
            if all(part is not None for part in parts):
                inner = ", ".join(part for part in parts if part is not None)
                if kind is tuple:
                    return "({}{})".format(inner, "," if len(parts) == 1 else "")
                return "frozenset(({},))".format(inner) if parts else "frozenset()"
        return None

    def expression(self, value: Any) -> str:
        """An expression whose value is `value`, with the names of runtime.py."""
        return self.literal(value) or self._imported(value) or self.keep(value)

    def keep(self, value: Any) -> str:
        """The expression for a place in the table."""
        place = self._places.get(id(value))
        if place is None:
            place = self._places[id(value)] = len(self.kept)
            self.kept.append(value)
        return "_kept[{}]".format(place)

    def _imported(self, value: Any) -> Optional[str]:
        place = where_imported(value)
        if place is None:
            return None
        module, path = place
        return "_rt.named({!r}{})".format(module, ", {!r}".format(path) if path else "")

    def statement(self, name: str, value: Any) -> str:
        """The statement that gives a variable this value."""
        place = where_imported(value)
        if place is not None and all(is_name(part) for part in place[0].split(".")):
            module, path = place
            if not path:
                return "import {}".format(module) if module == name else "import {} as {}".format(module, name)
            if is_name(path):
                return "from {} import {}".format(module, path) + ("" if path == name else " as {}".format(name))
        comment = "" if self.literal(value) is not None or place is not None else "  # {}".format(describe(value))
        return "{} = {}{}".format(name, self.expression(value), comment)


def describe(value: Any) -> str:
    """A short text about a value, for comments. Runs no code of the value's class."""
    kind = type(value)
    name = getattr(value, "__qualname__", None) if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)) else None
    return "{} {}".format(kind.__name__, name) if isinstance(name, str) else "a {}.{}".format(kind.__module__, kind.__qualname__)


def where_imported(value: Any) -> Optional[Tuple[str, str]]:
    """The module, and the path in it, under which a program finds this very object by importing; None where there is none."""
    if isinstance(value, types.ModuleType):
        name = value.__name__
        return (name, "") if sys.modules.get(name) is value and name != "__main__" else None
    if value is builtins.__dict__:
        return "builtins", "__dict__"
    for module, path in _candidates(value):
        if module != "__main__" and find(module, path, _loaded) is value:
            return module, path
    return None


def _candidates(value: Any) -> List[Tuple[str, str]]:
    torch = sys.modules.get("torch")
    if torch is not None:
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return [("torch", str(value).replace("torch.", "", 1))]
        ops = sys.modules.get("torch._ops")
        if ops is not None and isinstance(value, (ops.OpOverload, ops.OpOverloadPacket)):
            return [("torch", "ops." + str(value))]
        if ops is not None and isinstance(value, ops.HigherOrderOperator):
            return [("torch", "ops.higher_order." + value.name())]
    if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType)):
        owner = value.__objclass__
        return [(owner.__module__, "{}.{}".format(owner.__qualname__, value.__name__))]
    if not isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return []
    names = [value.__qualname__] if value.__qualname__ == value.__name__ else [value.__qualname__, value.__name__]
    homes = [value.__module__] if isinstance(value.__module__, str) else []
    return [(home, name) for home in homes for name in names] + [(home, value.__name__) for home in _HOMES]


def _loaded(module: str) -> Any:
    return sys.modules.get(module)


def find(module: str, path: str, load: Callable[[str], Any] = importlib.import_module) -> Any:
    """What a module holds at a dotted path; None where it does not."""
    found = load(module)
    if found is None and module == "torch.Tensor":
        torch = load("torch")
        found = None if torch is None else torch.Tensor
    for part in path.split(".") if path else ():
        found = _member(found, part)
        if found is None:
            return None
    return found


def _member(holder: Any, name: str) -> Any:
    if isinstance(holder, type):  # unbound, as the class holds it
        for base in holder.__mro__:
            if name in base.__dict__:
                member = base.__dict__[name]
                return member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        return None
    try:
        return getattr(holder, name, None)
    except Exception:  # modules may compute their attributes, torch.ops does
        return None
