"""Reading what prepare_debug wrote, and comparing results."""

import copy
import os

import torch


def files(folder):
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def namespace(folder, name):
    """What a written file defines when it runs, not as a module."""
    path = os.path.join(folder, name)
    with open(path, encoding="utf-8") as file:
        source = file.read()
    space = {"__name__": "written"}
    exec(compile(source, path, "exec"), space)
    return space


def equal(first, second):
    leaves = [torch.utils._pytree.tree_flatten(value) for value in (first, second)]
    if leaves[0][1] != leaves[1][1]:
        return False
    return all(torch.allclose(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(leaves[0][0], leaves[1][0]))


def copied(arguments):
    return tuple(
        value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else copy.copy(value)
        for value in arguments
    )


def same_run(made, eager, arguments):
    """Whether both return the same and leave the arguments the same."""
    mine, theirs = copied(arguments), copied(arguments)
    return equal(made(*mine), eager(*theirs)) and equal(mine, theirs)
