"""Models of torch.nn with every size of their input a symbol, forward and backward, on native fakes: few guards, and no Python rules."""

import pytest
import torch
import torch.nn.functional as F
from symbols import Symbols
from torch import nn

from pellucid import _core
from pellucid.torch_shapes import calling


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.pool, self.head = nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = self.second(F.max_pool2d(x, 2) + F.avg_pool2d(x, 2))
        return self.head(self.pool(x).flatten(1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.out, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x):
        batch, length, width = x.shape
        heads = [part.view(batch, length, 4, width // 4).transpose(1, 2) for part in self.heads(self.norm(x)).chunk(3, -1)]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        return x + self.out(attended.transpose(1, 2).reshape(batch, length, width))


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.body, self.head = nn.Embedding(50, 16), nn.Embedding(64, 16), Attention(), nn.Linear(16, 50)

    def forward(self, words):
        places = torch.arange(words.shape[1], device=words.device)
        return self.head(self.body(self.words(words) + self.places(places)))


class Loss(Language):
    def forward(self, words):
        return F.cross_entropy(super().forward(words).view(-1, 50), words.view(-1))


class ToItself(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x)


def sequence(*modules):
    return lambda: nn.Sequential(*modules)


_IMAGE, _TEXT, _VECTORS = (6, 3, 20, 24), (6, 7), (6, 7, 16)
# The model, the input's sizes, the result's at the hints, and how many guards it takes.
MODELS = {
    "perceptron": (
        sequence(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.LayerNorm(16), nn.Softmax(-1)),
        _VECTORS,
        (6, 7, 16),
        1,
    ),
    "residual": (Residual, _IMAGE, (6, 5), 3),
    "attention": (Attention, _VECTORS, _VECTORS, 1),
    "language": (Language, _TEXT, (6, 7, 50), 0),
    "loss": (Loss, _TEXT, (), 0),
    "conv1d": (
        sequence(nn.Conv1d(16, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.ConvTranspose1d(8, 4, 3), nn.InstanceNorm1d(4)),
        (6, 16, 11),
        (6, 4, 11),
        3,
    ),
    "lstm_cell": (lambda: nn.LSTMCell(16, 12), (6, 16), (6, 12), 1),
    "gru_cell": (lambda: nn.GRUCell(16, 12), (6, 16), (6, 12), 1),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), _VECTORS, _VECTORS, 1),
    "conv3d": (
        sequence(nn.Conv3d(3, 4, 3), nn.ReLU(), nn.MaxPool3d(2), nn.Upsample(scale_factor=2)),
        (6, 3, 12, 13, 14),
        (6, 4, 10, 10, 12),
        7,
    ),
    "shuffle": (
        sequence(
            nn.ConstantPad2d(1, 0.0), nn.Conv2d(3, 4, 3, stride=2), nn.Hardtanh(), nn.PixelShuffle(2), nn.ReflectionPad2d(1), nn.PReLU()
        ),
        _IMAGE,
        (6, 1, 22, 26),
        3,
    ),
    "lstm": (lambda: nn.LSTM(16, 12, batch_first=True), _VECTORS, (6, 7, 12), 2),  # one step after the other: their number is fixed
    "bags": (lambda: nn.EmbeddingBag(50, 16), _TEXT, (6, 16), 0),
    "self_attention": (lambda: ToItself(16, 4, batch_first=True), _VECTORS, _VECTORS, 1),
}
# They have operators without a rule, or need the Python dispatcher.
IN_PYTHON = {"encoder", "bags"}


@pytest.mark.parametrize("name", MODELS)
def test_forward_and_backward(name):
    make, sizes, expected, guards = MODELS[name]
    torch.manual_seed(0)
    model = make().train()
    x = torch.zeros(sizes, dtype=torch.int64) if len(sizes) == 2 and name in ("language", "loss", "bags") else torch.randn(sizes)
    parameters = {key: _core.fake_tensor(value) for key, value in model.named_parameters()}
    buffers = {key: _core.fake_tensor(value) for key, value in model.named_buffers()}
    symbols = Symbols()
    fake = symbols.fakes(x)
    if x.is_floating_point():
        fake.requires_grad_()
    wanted = {**parameters, **({"input": fake} if x.is_floating_point() else {})}
    _core.reset_fake_stats()
    with _core.FakeScope():
        result = calling.call(lambda: torch.func.functional_call(model, {**parameters, **buffers}, (fake,)))
        result = result if isinstance(result, torch.Tensor) else result[0]
        gradients = torch.autograd.grad(result.sum(), list(wanted.values()), allow_unused=True)
    assert tuple(size.node.hint if isinstance(size, torch.SymInt) else size for size in result.shape) == expected
    assert any(isinstance(size, torch.SymInt) for size in result.shape) or name == "loss"
    for key, gradient in zip(wanted, gradients):
        assert gradient is None or all(bool(a == b) for a, b in zip(gradient.shape, wanted[key].shape)), key
        assert gradient is not None or "bias_hh" in key
    assert len(symbols.guards()) <= guards, symbols.guards()
    if name not in IN_PYTHON:
        assert {op: calls for op, calls in _core.symbolic_stats().items() if calls[1]} == {}
