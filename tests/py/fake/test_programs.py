"""Operators and idioms that programs are made of: the same results on fakes, none of them through Python."""

import pytest
import torch
from compare import check_call, origins_called
from torch.nn import functional

from pellucid import _core


def rand(*shape, **kwargs):
    return torch.rand(*shape, **kwargs)


def assign(index, value):
    def run(x):
        x = x.clone()
        x[index] = value
        return x

    return run


X = (4, 5, 6)
INDEXING = {
    "int": lambda x: x[1],
    "negative": lambda x: x[-1, 2],
    "slice": lambda x: x[1:3, ::2],
    "none": lambda x: x[None, :, None],
    "ellipsis": lambda x: x[..., 0],
    "empty slice": lambda x: x[2:2],
    "list": lambda x: x[[0, 2]],
    "two lists": lambda x: x[[0, 2], :, [1, 3]],
    "bool list": lambda x: x[[True, False, True, False]],
    "bool list behind a slice": lambda x: x[:, [True, False, True, False, True]],
    "nested bool list": lambda x: x[:, [[True, False] * 3] * 5],
    "bool": lambda x: x[True],
    "tensor": lambda x: x[torch.arange(3)],
    "set int": assign(1, 0.0),
    "set slice": assign((slice(1, 3), slice(None, None, 2)), 1),
    "set ellipsis": assign((..., 0), 2.0),
    "set list": assign([0, 2], 3.0),
    "set tensor": assign(slice(None), torch.rand(6)),
    "gather": lambda x: x.gather(1, torch.zeros(4, 2, 6, dtype=torch.long)),
    "scatter": lambda x: x.scatter(1, torch.zeros(4, 2, 6, dtype=torch.long), 1.0),
    "index_add": lambda x: x.index_add(0, torch.tensor([0, 1]), torch.rand(2, 5, 6)),
    "masked_fill": lambda x: x.masked_fill(x > 0.5, 0.0),
    "masked_fill_": lambda x: x.clone().masked_fill_(x > 0.5, float("-inf")),
    "take_along_dim": lambda x: x.take_along_dim(x.argmax(1, keepdim=True), 1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "tril": lambda x: x.tril(),
    "iteration": list,
    "unbind": lambda x: x.unbind(1),
}
ARITHMETIC = {
    "scalars": lambda x: (x + 1) * 2.5 / 3 - (1 - x) ** 2,
    "integers": lambda x: (x.long() // 2 + 1) % 3,
    "promotion": lambda x: x + torch.ones(6, dtype=torch.float64) + torch.tensor(1, dtype=torch.int8),
    "comparisons": lambda x: ((x > 0.5) & (x <= 0.9)) | ~(x == 0),
    "in place": lambda x: x.clone().add_(1).mul_(x).sub_(0.5).div_(2).clamp_(0, 1).pow_(2).neg_(),
    "augmented": lambda x: (lambda y: (y.__iadd__(1), y.__imul__(2), y)[2])(x.clone()),
    "unary": lambda x: (x.exp().log().sqrt().sin().cos().tanh().sigmoid().erf().rsqrt(), x.round(), x.floor(), x.sign()),
    "where": lambda x: torch.where(x > 0.5, x, 0.0),
    "clamp": lambda x: x.clamp(min=0.2).clamp(max=torch.tensor(0.5)),
    "lerp": lambda x: torch.lerp(x, x * 2, 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5),
    "bitwise": lambda x: x.long() ^ 3 | 1,
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "activations": lambda x: [
        f(x)
        for f in (
            functional.relu,
            functional.gelu,
            functional.silu,
            functional.mish,
            functional.elu,
            functional.leaky_relu,
            functional.relu6,
            functional.softplus,
            functional.hardsigmoid,
            functional.hardswish,
            functional.hardtanh,
            functional.glu,
            functional.logsigmoid,
            functional.selu,
        )
    ],
    "casts": lambda x: (x.half(), x.to(torch.bfloat16), x.double(), x.int(), x.bool(), x.type_as(x.double()), x.to("cpu")),
    "complex": lambda x: (torch.view_as_complex(x[..., :2].contiguous()) * 1j).conj().real,
    "complex parts": lambda x: (
        torch.complex(x, x).abs(),
        torch.complex(x, x).imag,
        torch.view_as_real(torch.complex(x, x)),
        torch.polar(x, x),
    ),
}
REDUCTIONS = {
    "sum": lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.long().sum()),
    "mean": lambda x: (x.mean(), x.mean(-1, keepdim=True), x.mean((0, 1))),
    "extrema": lambda x: (x.max(), x.min(1), x.max(1, keepdim=True).values, x.amax((0, 1)), x.argmax(), x.argmin(1), torch.aminmax(x)),
    "moments": lambda x: (x.var(), x.std(1), torch.var_mean(x, (0, 1), keepdim=True)),
    "norms": lambda x: (x.norm(), x.norm(dim=1), torch.linalg.vector_norm(x, 2, -1), functional.normalize(x, dim=1)),
    "logic": lambda x: ((x > 0).any(), (x > 0).all(1), (x > 0).sum()),
    "products": lambda x: (x.prod(), x.prod(1), x.logsumexp(1)),
    "scans": lambda x: (x.cumsum(1), x.cumprod(-1), x.cummax(0)),
    "softmax": lambda x: (x.softmax(-1), x.log_softmax(1), functional.softmin(x, 0)),
    "sorting": lambda x: (x.sort(1), x.argsort(-1, descending=True), x.topk(2), x.kthvalue(2, 1)),
    "medians": lambda x: (x.median(), x.median(1), x.mode(1)),
    "counting": lambda x: (torch.count_nonzero(x, 1), torch.histc(x, 5)),
}
SHAPES = {
    "views": lambda x: (x.view(20, 6), x.view(-1), x.reshape(2, -1), x.flatten(1), x.unflatten(2, (2, 3)), x.view(torch.int32)),
    "permutations": lambda x: (x.transpose(0, 1), x.permute(2, 0, 1), x.mT, x.movedim(0, 2), x.swapaxes(0, 2), x[0].t(), x[0].T),
    "ranks": lambda x: (x.unsqueeze(1), x[:1].squeeze(0), x.unsqueeze(-1).squeeze(), x[:, :1].expand(-1, 3, -1), x.expand_as(x)),
    "joins": lambda x: (torch.cat([x, x], 1), torch.stack([x, x], -1), torch.hstack([x, x]), torch.vstack([x, x]), torch.cat([x, x[:0]])),
    "splits": lambda x: (x.split(2, 1), x.split([1, 2, 3], 2), x.chunk(3, 2), torch.tensor_split(x, 3, 1)),
    "copies": lambda x: (x.clone(), x.contiguous(), x.transpose(0, 1).contiguous(), x.detach(), x.repeat(1, 2, 1), x.tile(2)),
    "repeats": lambda x: (x.repeat_interleave(2, 1), x.flip(0), x.roll(1, 1), x.roll(1), torch.rot90(x)),
    "likes": lambda x: (
        torch.zeros_like(x),
        torch.ones_like(x, dtype=torch.int32),
        torch.rand_like(x),
        torch.full_like(x, 2),
        x.new_zeros(2),
    ),
    "factories": lambda x: (
        torch.zeros(2, 3),
        torch.eye(3),
        torch.linspace(0, 1, 5),
        torch.arange(1, 7, 2.0),
        torch.randperm(4),
        torch.tensor([1.0]),
    ),
    "grids": lambda x: (*torch.meshgrid(x[0, 0], x[0, 1], indexing="ij"), torch.tril_indices(3, 3), torch.cartesian_prod(x[0, 0], x[0, 1])),
    "pads": lambda x: (functional.pad(x, (1, 2)), functional.pad(x, (1, 1), "reflect"), functional.pad(x[None], (1, 1, 2, 2), "replicate")),
    "one_hot": lambda x: functional.one_hot(x.argmax(-1), 6),
    "interpolate": lambda x: (
        functional.interpolate(x, scale_factor=2),
        functional.interpolate(x[None], size=(7, 9), mode="bilinear"),
        functional.interpolate(x[None], scale_factor=0.5, mode="bicubic"),
    ),
}
PRODUCTS = {
    "matmul": lambda x: (x @ x.mT, x[0] @ x[0, 0], x[0, 0] @ x[0, 0], x @ x[0, 0], x[0] @ x.mT),
    "named": lambda x: (
        torch.mm(x[0], x[0].t()),
        torch.bmm(x, x.mT),
        torch.mv(x[0], x[0, 0]),
        torch.dot(x[0, 0], x[0, 1]),
        torch.outer(x[0, 0], x[0, 1]),
    ),
    "add": lambda x: (torch.addmm(x[0, :, :5], x[0], x[0].t()), torch.baddbmm(x[:, :, :5], x, x.mT)),
    "einsum": lambda x: (torch.einsum("abc,adc->abd", x, x), torch.einsum("abc->ca", x), torch.einsum("ii", x[0, :, :5])),
    "linear": lambda x: (functional.linear(x, torch.rand(3, 6), torch.rand(3)), functional.bilinear(x, x, torch.rand(2, 6, 6))),
    "attention": lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True),
    "tensordot": lambda x: torch.tensordot(x, x, dims=([1, 2], [1, 2])),
    "inner": lambda x: torch.inner(x, x),
    "kron": lambda x: torch.kron(x[0], x[1]),
}
LOSSES = {
    "cross_entropy": lambda x: functional.cross_entropy(x[0], torch.zeros(5, dtype=torch.long), label_smoothing=0.1),
    "cross_entropy of images": lambda x: functional.cross_entropy(x, torch.zeros(4, 6, dtype=torch.long), reduction="none"),
    "regression": lambda x: (
        functional.mse_loss(x, x),
        functional.l1_loss(x, x),
        functional.smooth_l1_loss(x, x),
        functional.huber_loss(x, x),
    ),
    "binary": lambda x: (functional.binary_cross_entropy(x, x), functional.binary_cross_entropy_with_logits(x, x)),
    "nll": lambda x: functional.nll_loss(x[0].log_softmax(-1), torch.zeros(5, dtype=torch.long)),
    "kl_div": lambda x: functional.kl_div(x.log_softmax(-1), x.softmax(-1), reduction="batchmean"),
    "margins": lambda x: (functional.cosine_similarity(x, x), functional.triplet_margin_loss(x[0], x[1], x[2])),
    "dropout": lambda x: (functional.dropout(x), functional.dropout1d(x), functional.alpha_dropout(x), functional.feature_alpha_dropout(x)),
}
PROGRAMS = {
    f"{group}: {name}": program
    for group, programs in {
        "indexing": INDEXING,
        "arithmetic": ARITHMETIC,
        "reductions": REDUCTIONS,
        "shapes": SHAPES,
        "products": PRODUCTS,
        "losses": LOSSES,
    }.items()
    for name, program in programs.items()
}
MODES = {"no_grad": torch.no_grad, "gradients": torch.enable_grad, "inference": torch.inference_mode}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, mode):
    x = torch.rand(4, 5, 6, requires_grad=mode == "gradients")
    _core.reset_fake_stats()
    with MODES[mode]():
        check_call(PROGRAMS[name], x)
    assert origins_called("python") == set()
