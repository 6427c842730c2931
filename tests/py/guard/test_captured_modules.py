"""What captured modules are guarded by: tables that a version tag verifies, not rows that are run in every call; and what must miss."""

import os
import types

import torch

import pellucid


class Block(torch.nn.Module):
    kernel = (1, 2)

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("offset", torch.ones(3))
        self.shape = (2, 3)

    def scale(self):
        return 2.0

    def forward(self, x):
        return (self.linear(x) + self.offset).reshape(self.shape) * self.scale() * self.kernel[0]


class Stack(torch.nn.Module):
    def __init__(self, count):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(count))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def captured(count=3):
    """A wrapped model, its list of captures, and an input after the first call."""
    graphs = []

    def backend(gm, example_inputs):
        graphs.append(gm)
        return gm.forward

    torch.manual_seed(0)
    model = Stack(count)
    x = torch.randn(2, 3)
    wrapped = pellucid.optimize(model, backend=backend)
    torch.testing.assert_close(wrapped(x), model(x))
    assert len(graphs) == 1
    return wrapped, model, graphs, x


def rows(wrapped):
    """The operations that a call runs one by one."""
    (entry,) = pellucid.cache_entries(wrapped)
    lines = [line.split() for line in entry.program.splitlines()]
    return [words[1] for words in lines if words and words[0].isdigit()]


def test_more_modules_are_longer_tables_and_not_more_rows():
    few, many = rows(captured(2)[0]), rows(captured(20)[0])
    assert few == many
    assert many.count("tensors") == 1  # the argument
    assert "load_dict_item" not in many and "dict_lacks" not in many and "same" not in many


def test_many_inputs_are_one_guard_of_distinctness():
    wrapped, model, _, _ = captured(20)
    (entry,) = pellucid.cache_entries(wrapped)
    assert [guard.kind for guard in entry.guards].count("DISTINCT") == 1


def check_recaptured(change, expected_graphs=2):
    wrapped, model, graphs, x = captured()
    change(model)
    for _ in range(2):
        torch.testing.assert_close(wrapped(x), model(x))
    assert len(graphs) == expected_graphs


def test_a_replaced_dict_of_parameters_is_captured_anew():
    def change(model):
        linear = model.blocks[1].linear
        linear.__dict__["_parameters"] = {name: torch.nn.Parameter(value.detach() * 3) for name, value in linear._parameters.items()}

    check_recaptured(change)


def test_a_replaced_submodule_is_captured_anew():
    def change(model):
        model.blocks[1].linear = torch.nn.Linear(3, 3, bias=False)

    check_recaptured(change)


def test_a_replaced_parameter_is_used_without_a_capture():
    def change(model):
        model.blocks[1].linear.weight = torch.nn.Parameter(torch.zeros(3, 3))

    check_recaptured(change, expected_graphs=1)


def test_two_inputs_that_become_one_tensor_are_captured_anew():
    def change(model):
        model.blocks[1].linear.weight = model.blocks[0].linear.weight

    check_recaptured(change)


def test_a_changed_tuple_of_settings_is_captured_anew():
    def change(model):
        model.blocks[2].shape = (3, 2)

    wrapped, model, graphs, x = captured()
    change(model)
    torch.testing.assert_close(wrapped(x), model(x))
    assert wrapped(x).shape == (3, 2) and len(graphs) == 2


def test_an_equal_tuple_of_settings_is_no_reason_to_capture():
    def change(model):
        model.blocks[2].shape = tuple([2, 3])

    check_recaptured(change, expected_graphs=1)


def test_a_replaced_method_is_captured_anew():
    original = Block.scale

    def change(model):
        Block.scale = lambda self: 5.0

    try:
        check_recaptured(change)
    finally:
        Block.scale = original


def test_new_code_of_a_method_is_captured_anew():
    original = Block.scale.__code__

    def change(model):
        def scale(self):
            return 7.0

        Block.scale.__code__ = scale.__code__

    try:
        check_recaptured(change)
    finally:
        Block.scale.__code__ = original


def test_a_closure_made_anew_by_each_call_is_not_captured_anew():
    graphs = []

    def backend(gm, example_inputs):
        graphs.append(gm)
        return gm.forward

    def apply(f, x):
        return f(x) + 1

    wrapped = pellucid.optimize(apply, backend=backend)

    def made(scale):
        return lambda x: x * scale

    for _ in range(3):
        torch.testing.assert_close(wrapped(made(2), torch.ones(2)), torch.full((2,), 3.0))
    assert len(graphs) == 1


def module_function(x):
    return x * 3


def test_a_copy_of_a_module_function_is_another_function():
    """Functions of modules and classes are known by identity: a copy gives the right result, with a capture of its own."""
    graphs = []

    def backend(gm, example_inputs):
        graphs.append(gm)
        return gm.forward

    def apply(f, x):
        return f(x) + 1

    wrapped = pellucid.optimize(apply, backend=backend)
    copy = types.FunctionType(module_function.__code__, module_function.__globals__)
    for function in (module_function, copy, module_function, copy):
        torch.testing.assert_close(wrapped(function, torch.ones(2)), torch.full((2,), 4.0))
    assert len(graphs) == 2


class Adding(torch.nn.Module):
    def __init__(self, size=3):
        super().__init__()
        self.p = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * 2 + self.p.sum()


def counting(graphs):
    def backend(gm, example_inputs):
        graphs.append(gm)
        return gm.forward

    return backend


def test_functional_call_of_a_captured_module():
    graphs = []
    wrapped, x = pellucid.optimize(Adding(), backend=counting(graphs)), torch.ones(2)
    expected = {3: 5.0, 5: 7.0}
    for size, count in ((3, 1), (5, 2), (3, 2), (5, 2)):  # a plain tensor in a parameter's place is another class
        result = torch.func.functional_call(wrapped, {"p": torch.ones(size)}, (x,))
        torch.testing.assert_close(result, torch.full((2,), expected[size]))
        assert len(graphs) == count
    torch.testing.assert_close(wrapped(x).detach(), torch.full((2,), 5.0))
    assert len(graphs) == 3
    wrapped(x)
    assert len(graphs) == 3


def test_a_new_module_at_a_dead_one_s_address_is_another_module():
    graphs, seen, reused = [], set(), 0
    fn, x = pellucid.optimize(lambda model, x: model(x), backend=counting(graphs)), torch.ones(2)
    for number in range(30):
        size = number % 4 + 1
        model = Adding(size)
        reused += id(model) in seen
        seen.add(id(model))
        torch.testing.assert_close(fn(model, x).detach(), torch.full((2,), 2.0 + size))
        del model
    assert len(graphs) == 30
    assert reused > 0 or "PELLUCID_SANITIZED" in os.environ  # otherwise this shows nothing
