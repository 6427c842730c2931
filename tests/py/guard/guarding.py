"""Guards as capture makes them, by hand: a builder that reads like the guards it makes, and what a module's capture guards."""

import contextlib

import torch

from pellucid import _core


class Builder:
    """Sources and guards of one function; `compile` checks the program against its Python text as well."""

    def __init__(self, function, *arguments):
        self.function = function
        self.arguments = arguments
        self.sources = _core.Sources()
        self.guards = []
        self.block = []

    def local(self, index):
        return self.sources.local(index, self.function.__code__.co_varnames[index])

    def step(self, kind, base, *argument):
        return self.sources.step(kind, base, *argument)

    def guard(self, kind, source, **fields):
        self.guards.append((kind, source, fields))
        return source

    def compile(self):
        program = _core.compile_guards(self.function, self.arguments, self.sources, self.guards, self.block)
        return Checked(program, self.function)


class Checked:
    """A program whose every check is also made by its text and by its explanation; all three must agree."""

    def __init__(self, program, function):
        self.program = program
        self.function = function
        self.valid = lambda: program.valid

    def __call__(self, *arguments):
        by_rows = self.program.check(self.function, arguments)
        by_text = self.program.evaluate_text(self.function, arguments)
        failures = self.program.failures(self.function, arguments)
        assert by_rows == by_text == (not failures), (by_rows, by_text, failures, self.program.check_fn_text())
        # A miss must not have changed what the program knows.
        assert self.program.check(self.function, arguments) == by_rows
        return by_rows


def one(x): ...


def two(x, y): ...


def program_for(value, build, function=one):
    """A program for one argument; build(b, source of the argument)."""
    b = Builder(function, value)
    build(b, b.local(0))
    program = b.compile()
    assert program(value)
    return program


HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def guard_module(b, source, module, tensors=True):
    """Identity, type, forward, hooks, scalars, parameters, buffers and children, as a capture that runs the whole module."""
    b.guard("id", source, payload=module)
    b.guard("type", source, payload=type(module))
    b.guard("class_attr", source, payload="forward", expected=type(module).forward)
    b.guard("instance_lacks", source, payload="forward")
    b.guard("equals", b.step("instance_item", source, "training"), payload=module.training)
    for hooks in HOOKS:
        b.guard("empty_dict", b.step("instance_item", source, hooks))
    for name, value in module.__dict__.items():
        if type(value) in (int, float, str, bool) and name != "training":
            b.guard("equals", b.step("instance_item", source, name), payload=value)
    for holder in ("_parameters", "_buffers"):
        values = getattr(module, holder)
        if not values:
            continue
        dict_source = b.guard("id", b.step("instance_item", source, holder), payload=values)
        for name, tensor in values.items():
            item = b.step("dict_item", dict_source, name)
            if tensor is None:
                b.guard("equals", item, payload=None)
            elif tensors:
                b.guard("tensor", item, payload=tensor)
                b.block.append(item)
    if module._modules:
        dict_source = b.guard("id", b.step("instance_item", source, "_modules"), payload=module._modules)
        b.guard("dict_keys", dict_source, payload=tuple(module._modules))
        for name, child in module._modules.items():
            if child is not None:
                guard_module(b, b.step("dict_item", dict_source, name), child, tensors)


def module_program(module, x):
    def forward(self, x): ...

    b = Builder(forward, module, x)
    guard_module(b, b.local(0), module)
    b.guard("tensor", b.local(1), payload=x)
    return b.compile()


@contextlib.contextmanager
def accessors():
    _core.force_accessors(True)
    try:
        yield
    finally:
        _core.force_accessors(False)


# Every way in which tensors are compared: all must agree.
READERS = [*_core.tensor_word_widths(), "accessors"]


@contextlib.contextmanager
def reader(name):
    if name == "accessors":
        with accessors():
            yield
        return
    _core.force_tensor_word_width(name)
    try:
        yield
    finally:
        _core.force_tensor_word_width(READERS[0])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 4)
        self.bn = torch.nn.BatchNorm1d(4)
        self.k = 3
        self.items = [1, 2]

    def forward(self, x):
        return self.bn(self.a(x))
