"""Native symbolic shape rules: with every size a symbol an operator gives at the hints what it gives of those sizes, and few guards."""

import operators
import pytest
import torch
from symbols import Symbols, at_hints, static_fakes

from pellucid import _core
from pellucid.torch_shapes import calling, numbers

# Composite functions of PyTorch's C++ that ask for sizes as ints, and so run under its Python dispatcher.
ABOVE_AUTOGRAD = {"interpolate_nearest", "interpolate_bilinear", "lstm_cell", "gru_cell", "rnn_cell"}


def run(name):
    function, *arguments = operators.ALL[name]
    with _core.FakeScope():
        expected = at_hints(function(*static_fakes(arguments)))
    symbols = Symbols()
    _core.reset_fake_stats()
    with _core.FakeScope():
        result = calling.call(function, *symbols.fakes(arguments))
    return expected, result, symbols


@pytest.mark.parametrize("name", operators.ALL)
def test_an_operator_at_the_hints(name):
    expected, result, _ = run(name)
    assert at_hints(result) == expected


@pytest.mark.parametrize("name", sorted(set(operators.ALL) - ABOVE_AUTOGRAD))
def test_an_operator_needs_no_python(name):
    run(name)
    assert {op: calls for op, calls in _core.symbolic_stats().items() if calls[1]} == {}


GUARDED = {
    "view": 1,  # the last size is a multiple of the number of heads
    "unflatten": 1,
    "heads": 1,
    "slice_by_size": 1,
    "narrow": 1,
    "unfold": 1,
    "split": 1,  # the number of pieces
    "chunk": 1,
    "unbind": 1,
    "topk": 1,
    "group_norm": 1,
    "conv1d": 2,  # the window fits
    "conv2d": 4,
    "pixel_shuffle": 1,
    "rope": 2,
    "cdist": 2,  # the way it is computed depends on the number of points
}


@pytest.mark.parametrize("name", sorted(set(operators.ALL) - ABOVE_AUTOGRAD))
def test_guards_are_few(name):
    _, _, symbols = run(name)
    assert len(symbols.guards()) <= GUARDED.get(name, 0), symbols.guards()


def test_sizes_are_expressions_of_the_inputs_sizes():
    symbols = Symbols()
    x = symbols.fakes(torch.randn(5, 6))
    with _core.FakeScope():
        y = torch.cat([x.t(), x.new_zeros(x.size(1), 2)], 1)
    rows, columns = x.shape
    assert bool(y.shape[0] == columns) and bool(y.shape[1] == rows + 2)
    assert symbols.guards() == []


def test_views_lie_in_their_bases_storage_and_in_place_results_are_their_argument():
    symbols = Symbols()
    x = symbols.fakes(torch.randn(4, 6))
    with _core.FakeScope():
        y = x[1:].t()
        z = x.add_(1)
    assert y._base is x and z is x
    assert y.untyped_storage()._cdata == x.untyped_storage()._cdata
    assert bool(y.storage_offset() == x.size(1)) and y.device == torch.device("cpu")


GIVEN_A_SIZE = {
    "resize_": lambda x, size: x.resize_(size, 0),
    "as_strided_": lambda x, size: x.as_strided_((size, 0), (1, 1)),
    "transpose_": lambda x, size: x.resize_(0, size).transpose_(0, 1),
}


@pytest.mark.parametrize("name", GIVEN_A_SIZE)
def test_what_has_no_symbols_is_given_a_symbolic_size_as_a_constant(name):
    symbols = Symbols()
    size = symbols.size(3)
    with _core.FakeScope():
        result = calling.call(GIVEN_A_SIZE[name], symbols.fakes(torch.ones(0)), size)
    assert tuple(result.shape) == (3, 0) and symbols.guards() == ["d3 == 3"]


def test_autograd_works_on_symbolic_fakes():
    symbols = Symbols()
    x, w = symbols.fakes((torch.randn(5, 6), torch.randn(6, 7)))
    x.requires_grad_()
    with _core.FakeScope():
        y = (x @ w).relu().sum(1)
        (gradient,) = torch.autograd.grad(y.sum(), x)
    assert type(y.grad_fn).__name__ == "SumBackward1"
    assert bool(gradient.shape[0] == x.shape[0]) and bool(gradient.shape[1] == x.shape[1])


def test_errors_are_the_operators_own():
    symbols = Symbols()
    x, y = symbols.fakes((torch.randn(5, 6), torch.randn(7, 8)))
    with _core.FakeScope(), pytest.raises(RuntimeError, match="must match the size"):
        x + y
    with _core.FakeScope(), pytest.raises(RuntimeError, match="mat1 and mat2 shapes"):
        x @ y


def test_symbols_of_two_environments_do_not_mix():
    x, y = Symbols().fakes(torch.randn(5, 6)), Symbols().fakes(torch.randn(5, 6))
    with _core.FakeScope(), pytest.raises(ValueError, match="another ShapeEnv"):
        x + y


def test_sizes_without_hints_take_pytorchs_way():
    symbols = Symbols()
    size = symbols.env.create_unbacked_symint()
    symbols.env.engine.use_as_size(numbers.from_torch(size))
    x = _core.symbolic_fake(torch.randn(5, 6), [size, 6], [6, 1])
    with _core.FakeScope():
        y = calling.call(lambda x: (x * 2).sum(1), x)
    assert str(y.shape[0]) == str(size)
