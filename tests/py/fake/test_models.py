"""Whole models on fakes: every result, gradient and buffer looks as in real execution, and no operator needs Python."""

import contextlib
import copy

import pytest
import torch
from compare import describe, fake_module, fakes, origins_called
from torch import nn
from torch.utils._pytree import tree_leaves

from pellucid import _core


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.down = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if stride != 1 else nn.Identity()

    def forward(self, x):
        y = nn.functional.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        y += self.down(x)
        return nn.functional.relu(y, inplace=True)


def resnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        Block(8, 8, 1),
        Block(8, 16, 2),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


class Attention(nn.Module):
    def __init__(self, **kwargs):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.kwargs = kwargs

    def forward(self, x):
        return self.attention(x, x, x, **self.kwargs)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.position = nn.Parameter(torch.zeros(1, 8, 16))
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True, activation="gelu")
        self.head = nn.Linear(16, 20)
        self.head.weight = self.embedding.weight

    def forward(self, tokens, targets):
        mask = torch.full((8, 8), float("-inf")).triu(1)
        logits = self.head(self.layer(self.embedding(tokens) + self.position, src_mask=mask))
        return nn.functional.cross_entropy(logits.view(-1, 20), targets.view(-1)), logits


def encoder(**kwargs):
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, **kwargs)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=not kwargs)


MODELS = {
    "mlp": lambda: (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.LayerNorm(16), nn.Linear(16, 4)), (torch.randn(3, 8),)),
    "resnet": lambda: (resnet(), (torch.randn(2, 3, 32, 32),)),
    "resnet channels_last": lambda: (
        resnet().to(memory_format=torch.channels_last),
        (torch.randn(2, 3, 32, 32).to(memory_format=torch.channels_last),),
    ),
    "conv1d": lambda: (
        nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2), nn.GroupNorm(2, 8), nn.AvgPool1d(2)),
        (torch.randn(2, 4, 16),),
    ),
    "upsampling": lambda: (
        nn.Sequential(
            nn.ConvTranspose2d(4, 8, 4, 2, 1),
            nn.InstanceNorm2d(8),
            nn.SiLU(),
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.PixelShuffle(2),
        ),
        (torch.randn(2, 4, 8, 8),),
    ),
    "encoder": lambda: (encoder(), (torch.randn(2, 16, 32),)),
    "encoder norm_first": lambda: (encoder(norm_first=True), (torch.randn(2, 16, 32),)),
    "attention": lambda: (Attention(), (torch.randn(2, 5, 16),)),
    "attention without weights": lambda: (Attention(need_weights=False), (torch.randn(2, 5, 16),)),
    "classifier": lambda: (Classifier(), (torch.randint(20, (2, 8)), torch.randint(20, (2, 8)))),
    "lstm": lambda: (nn.LSTM(8, 16, 2, batch_first=True), (torch.randn(2, 5, 8),)),
    "gru": lambda: (nn.GRU(8, 16), (torch.randn(5, 2, 8),)),
    "lstm cell": lambda: (nn.LSTMCell(8, 16), (torch.randn(2, 8),)),
}
MODES = {
    "eval": torch.no_grad,
    "inference": torch.inference_mode,
    "train": contextlib.nullcontext,
    "eval with gradients": contextlib.nullcontext,
}


def pair(name):
    """The model and a copy made of fakes, with arguments. Both are copies: copying resets the version counters."""
    torch.manual_seed(0)
    model, args = MODELS[name]()
    return copy.deepcopy(model), fake_module(copy.deepcopy(model)), args


def look(model, args, mode):
    """Everything that can be seen after one call, and after its backward in training."""
    with MODES[mode]():
        result = model(*args)
    seen = [describe(leaf) for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    if mode == "train":
        parameters = [p for p in model.parameters() if p.requires_grad]
        total = sum(leaf.sum() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad)
        grads = torch.autograd.grad(total, parameters, allow_unused=True)
        seen.append([None if grad is None else (tuple(grad.shape), grad.dtype, str(grad.device)) for grad in grads])
    seen += [describe(tensor, True) for tensor in (*model.parameters(), *model.buffers())]
    return seen


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MODELS)
def test_model(name, mode):
    real, fake, args = pair(name)
    real.train(mode == "train")
    fake.train(mode == "train")
    _core.reset_fake_stats()
    with _core.FakeScope():
        seen = look(fake, fakes(args), mode)
    called = origins_called("python")
    assert seen == look(real, args, mode)
    backward_only = {name for name in called if "backward" in name}
    assert called - backward_only == set()


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_autocast(mode):
    real, fake, args = pair("classifier")
    real.train(mode == "train")
    fake.train(mode == "train")
    with torch.autocast("cpu", torch.bfloat16):
        with _core.FakeScope():
            seen = look(fake, fakes(args), mode)
        torch.clear_autocast_cache()
        assert seen == look(real, args, mode)
    torch.clear_autocast_cache()


def test_encoder_fast_path_is_taken():
    real, args = MODELS["encoder"]()
    fake = fake_module(real.eval())
    _core.reset_fake_stats()
    with torch.no_grad(), _core.FakeScope():
        fake(*fakes(args))
    assert origins_called("rule") == {"aten::_transformer_encoder_layer_fwd"}


def test_encoder_with_padding_mask_depends_on_values():
    real, args = MODELS["encoder"]()
    fake = fake_module(real.eval())
    with torch.no_grad(), _core.FakeScope(), pytest.raises(_core.DataDependentError):
        fake(*fakes(args), src_key_padding_mask=torch.zeros(2, 16, dtype=torch.bool))
