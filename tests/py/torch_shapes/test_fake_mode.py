"""PyTorch's FakeTensorMode and make_fx on the shape engine, and the same tensors without any mode."""

import operators
import pytest
import torch
from symbols import Symbols, at_hints
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_map


def fake_mode(env):
    mode = FakeTensorMode(shape_env=env)
    mode.cache_enabled = False
    return mode


def in_mode(mode, tree):
    return tree_map(lambda x: FakeTensor(mode, x, torch.device("cpu")) if isinstance(x, torch.Tensor) else x, tree)


def metas(tree):
    def meta(x):
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta") if isinstance(x, torch.Tensor) else x

    return tree_map(meta, tree)


@pytest.mark.parametrize("name", operators.ALL)
def test_operators_under_fake_tensor_mode(name):
    function, *arguments = operators.ALL[name]
    with FakeTensorMode() as static:
        expected = at_hints(function(*in_mode(static, metas(arguments))))
    symbols = Symbols()
    mode = fake_mode(symbols.env)
    with enable_python_dispatcher(), mode:
        result = function(*in_mode(mode, symbols.metas(arguments)))
    assert [row[:1] + row[3:] if isinstance(row, tuple) else row for row in at_hints(result)] == [
        row[:1] + row[3:] if isinstance(row, tuple) else row for row in expected
    ]


# PyTorch's C++ asks for sizes as ints in these, and its Python dispatcher has no other version of them.
CELLS = {"lstm_cell", "gru_cell", "rnn_cell"}


@pytest.mark.parametrize("name", sorted(set(operators.ALL) - CELLS))
def test_operators_on_plain_meta_tensors(name):
    function, *arguments = operators.ALL[name]
    symbols = Symbols()
    with enable_python_dispatcher():
        result = function(*symbols.metas(arguments))
    assert at_hints(result)


def test_make_fx_traces_sizes():
    symbols = Symbols()
    mode = fake_mode(symbols.env)

    def program(x):
        return torch.cat([x, x]).view(-1) * x.size(1)

    with enable_python_dispatcher(), mode:
        (x,) = in_mode(mode, symbols.metas([torch.randn(5, 6)]))
        graph = make_fx(program, tracing_mode="real")(x)
    out = graph(torch.ones(3, 4))
    assert torch.equal(out, program(torch.ones(3, 4)))
