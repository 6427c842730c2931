"""Tensors with symbolic sizes for tests: every dimension of 2 or more a symbol, equal sizes the same one."""

import torch
from torch.utils._pytree import tree_leaves, tree_map

from pellucid import _core
from pellucid.torch_shapes import numbers
from pellucid.torch_shapes.env import TorchShapeEnv


class Symbols:
    """Symbols by size, in one ShapeEnv."""

    def __init__(self, size=None):
        """`size(hint)` makes a symbolic size; of a ShapeEnv of ours unless given."""
        self.env = TorchShapeEnv()
        self._size = size or (lambda hint: numbers.to_torch(self.env.engine.create_size(hint, f"d{hint}")))
        self.by_hint = {}

    def size(self, hint):
        if hint < 2:
            return hint
        if hint not in self.by_hint:
            self.by_hint[hint] = self._size(hint)
        return self.by_hint[hint]

    def geometry(self, tensor):
        """Sizes, and strides multiplied out where the tensor is dense."""
        sizes = [self.size(size) for size in tensor.shape]
        strides = [1] * tensor.dim()
        stride, at_hints = 1, 1
        for dim in sorted(range(tensor.dim()), key=lambda dim: (tensor.stride(dim), tensor.shape[dim])):
            if tensor.stride(dim) != at_hints:
                return sizes, list(tensor.stride())
            strides[dim] = stride
            stride, at_hints = stride * sizes[dim], at_hints * tensor.shape[dim]
        return sizes, strides

    def fakes(self, tree):
        """Every tensor as a native fake with symbolic sizes."""
        return tree_map(lambda x: _core.symbolic_fake(x, *self.geometry(x)) if isinstance(x, torch.Tensor) else x, tree)

    def metas(self, tree):
        """Every tensor as a plain meta tensor with symbolic sizes."""

        def meta(x):
            if not isinstance(x, torch.Tensor):
                return x
            sizes, strides = self.geometry(x)
            return torch.empty_strided(sizes, strides, dtype=x.dtype, device="meta")

        return tree_map(meta, tree)

    def guards(self):
        """The guards beyond what is known of every symbol from the start."""
        return [guard.text for guard in self.env.engine.guards if not (guard.text.startswith("2 <= d") and guard.text.count("<") == 1)]


def static_fakes(tree):
    """Every tensor as a native fake."""
    return tree_map(lambda x: _core.fake_tensor(x) if isinstance(x, torch.Tensor) else x, tree)


def at_hints(tree):
    """What a result is, symbols as their hints: comparable with that of a static run."""

    def plain(value):
        return value.node.hint if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else value

    def describe(leaf):
        if isinstance(leaf, torch.Tensor):
            sizes, strides = tuple(map(plain, leaf.shape)), tuple(map(plain, leaf.stride()))
            return sizes, strides, plain(leaf.storage_offset()), leaf.dtype, leaf.device
        return plain(leaf)

    return [describe(leaf) for leaf in tree_leaves(tree)]
