"""Small models of the kinds people write, with inputs for them."""

import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    return nn.Sequential(*[layer for _ in range(10) for layer in (nn.Linear(16, 16), nn.ReLU())])


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True), 3)


def transformer():
    return nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)) if stride != 1 else None

    def forward(self, x):
        identity = x
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.down is not None:
            identity = self.down(x)
        y += identity
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.pool(self.blocks(self.stem(x)))
        return self.fc(torch.flatten(x, 1))


class Attention(nn.Module):
    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(16, 16)).bool())
        self.register_buffer("angles", torch.randn(16, width // heads), persistent=False)

    @staticmethod
    def rotated(x):
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in self.qkv(x).split(width, dim=-1))
        angles = self.angles[:length]
        q = q * angles.cos() + self.rotated(q) * angles.sin()
        k = k * angles.cos() + self.rotated(k) * angles.sin()
        weights = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        weights = weights.masked_fill(~self.mask[:length, :length], float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).contiguous().view(batch, length, width)), (k, v)


class Decoder(nn.Module):
    """A language model with a tied head, a dict of outputs and an optional loss."""

    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(50, 16), nn.Embedding(16, 16)
        self.blocks = nn.ModuleList([Attention() for _ in range(2)])
        self.norm = nn.LayerNorm(16)
        self.mlp = nn.ModuleDict({"up": nn.Linear(16, 32), "down": nn.Linear(32, 16)})
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens, targets=None, use_cache=True):
        x = self.drop(self.token(tokens) + self.position(torch.arange(0, tokens.size(1), device=tokens.device).unsqueeze(0)))
        caches = []
        for block in self.blocks:
            y, cache = block(self.norm(x))
            x = x + y
            x = x + self.mlp["down"](F.gelu(self.mlp["up"](self.norm(x)), approximate="tanh"))
            if use_cache:
                caches.append(cache)
        logits = self.head(self.norm(x))
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return {"logits": logits, "loss": loss, "cache": tuple(caches)}


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.GroupNorm(2, 4), nn.SiLU(), nn.Flatten(), nn.Linear(4 * 7 * 7, 8))
        self.decode = nn.Sequential(nn.Linear(4, 196), nn.Unflatten(1, (4, 7, 7)), nn.ConvTranspose2d(4, 1, 2, 2), nn.Sigmoid())

    def forward(self, x):
        mean, log_variance = self.encode(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        y = self.decode(z)
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1)
        return F.mse_loss(y, x) + divergence.mean(), y


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(24, 6, batch_first=True)

    def forward(self, tokens):
        x, _ = self.lstm(self.embed(tokens))
        y, last = self.gru(x)
        return y.mean(1), last


class Sliced(nn.Module):
    """Uses the first layers in order, then all of them backwards."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def forward(self, x):
        for layer in self.layers[:2]:
            x = F.relu(layer(x))
        return torch.stack([layer(x) for layer in reversed(self.layers)]).mean(0)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)), nn.Linear(8, 8)
        self.a.register_forward_hook(lambda module, inputs, output: output * 2)
        self.b.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))

    def forward(self, x):
        return self.b(self.a(x))


def images():
    return (torch.randn(2, 3, 32, 32),)


def tokens():
    return (torch.randint(0, 20, (2, 8)),)


ZOO = {
    "mlp": (mlp, lambda: (torch.randn(4, 16),)),
    "encoder": (encoder, lambda: (torch.randn(2, 5, 16),)),
    "resnet": (ResNet, images),
    "decoder": (Decoder, lambda: tokens() * 2),
    "autoencoder": (Autoencoder, lambda: (torch.randn(2, 1, 14, 14),)),
    "recurrent": (Recurrent, tokens),
    "sliced": (Sliced, lambda: (torch.randn(4, 8),)),
    "hooked": (Hooked, lambda: (torch.randn(4, 8),)),
    "transformer": (transformer, lambda: (torch.randn(2, 5, 8), torch.randn(2, 6, 8))),
}
