"""Numbers of the shape engine as torch.SymInt, SymFloat and SymBool, and back; and the few functions of theirs that have no operator."""

import math
from typing import Any

import torch

from pellucid import _bytecode, _core, shapes

_SYMBOLIC = (shapes.SymInt, shapes.SymFloat, shapes.SymBool)
_TORCH_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def to_torch(number: Any) -> Any:
    """A number of the engine as PyTorch's; plain numbers as they are."""
    return _core.torch_number(_bytecode.symbolic_capsule(number)) if isinstance(number, _SYMBOLIC) else number


def from_node(node: "_core.SymNode") -> Any:
    """The number of a SymNode; a plain one for a constant."""
    return _bytecode.symbolic_number(_core.engine_number(node))


def from_torch(number: Any) -> Any:
    """A torch.SymInt, SymFloat or SymBool of ours as a number of the engine; plain numbers as they are. TypeError for PyTorch's own."""
    if not isinstance(number, _TORCH_SYMBOLIC):
        return number
    node = number.node
    if isinstance(node, _core.SymNode):
        return from_node(node)
    constant = node.maybe_as_int() if isinstance(number, torch.SymInt) else None
    if constant is None:
        raise TypeError(f"{number} belongs to PyTorch's own ShapeEnv, not to a pellucid.ShapeEnv")
    return constant


def negation(condition: Any) -> Any:
    """`not`, without asking."""
    return not condition if isinstance(condition, bool) else shapes.sym_not(condition)


def smaller(a: Any, b: Any) -> Any:
    """The smaller number, without asking."""
    return shapes.sym_min(a, b) if isinstance(a, _SYMBOLIC) or isinstance(b, _SYMBOLIC) else min(a, b)


def larger(a: Any, b: Any) -> Any:
    """The larger number, without asking."""
    return shapes.sym_max(a, b) if isinstance(a, _SYMBOLIC) or isinstance(b, _SYMBOLIC) else max(a, b)


def floor(number: Any) -> Any:
    """The largest integer below, without asking."""
    return math.floor(number)


def ceil(number: Any) -> Any:
    """The smallest integer above, without asking."""
    return math.ceil(number)
