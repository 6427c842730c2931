"""Operators of language, vision and recurrent models with arguments, for tests of symbolic sizes."""

import torch
import torch.nn.functional as F

_B, _S, _D, _H = 3, 7, 16, 4


def _r(*sizes):
    return torch.randn(*sizes)


def _i(high, *sizes):
    return torch.randint(0, high, sizes)


def _x():
    return _r(_B, _S, _D)


def _heads():
    return _r(_B, _H, _S, 8)


def _image():
    return _r(5, 6, 12, 14)


POINTWISE = {
    "add": (torch.add, _x(), _x()),
    "add_expanded": (torch.add, _x(), _r(_D)),
    "mul_number": (torch.mul, _x(), 2.0),
    "div": (torch.div, _x(), _x()),
    "relu": (torch.relu, _x()),
    "gelu": (F.gelu, _x()),
    "silu": (F.silu, _x()),
    "pow": (torch.pow, _x(), 2),
    "where": (torch.where, _x() > 0, _x(), _x()),
    "masked_fill": (torch.masked_fill, _x(), _x() > 0, 0.0),
    "clamp": (torch.clamp, _x(), 0, 1),
    "eq": (torch.eq, _x(), _x()),
    "to": (lambda a: a.to(torch.float16), _x()),
    "add_": (lambda a, b: a.add_(b), _x(), _x()),
    "dropout": (lambda a: F.dropout(a, 0.5, True), _x()),
}

REDUCTIONS = {
    "sum": (torch.sum, _x()),
    "sum_dim": (lambda a: a.sum(1), _x()),
    "mean_kept": (lambda a: a.mean(-1, keepdim=True), _x()),
    "var": (lambda a: a.var(-1), _x()),
    "amax": (lambda a: a.amax(1), _x()),
    "argmax": (lambda a: a.argmax(-1), _x()),
    "max_dim": (lambda a: a.max(1), _x()),
    "norm": (lambda a: a.norm(dim=1), _x()),
    "any": (lambda a: (a > 0).any(1), _x()),
    "std": (lambda a: a.std(), _x()),
    "cumsum": (lambda a: a.cumsum(1), _x()),
    "softmax": (lambda a: a.softmax(-1), _x()),
    "log_softmax": (lambda a: a.log_softmax(-1), _x()),
    "sort": (lambda a: a.sort(-1), _x()),
    "topk": (lambda a: a.topk(3, -1), _x()),
}

MATRICES = {
    "mm": (torch.mm, _r(7, 16), _r(16, 16)),
    "bmm": (torch.bmm, _x(), _r(_B, _D, 5)),
    "matmul_3x2": (torch.matmul, _x(), _r(_D, _D)),
    "matmul_4x4": (torch.matmul, _r(_B, _H, _S, 8), _r(_B, _H, 8, _S)),
    "linear": (F.linear, _x(), _r(32, _D), _r(32)),
    "addmm": (torch.addmm, _r(5), _r(7, 16), _r(16, 5)),
    "baddbmm": (torch.baddbmm, _r(_B, _S, 5), _x(), _r(_B, _D, 5)),
    "einsum": (lambda a, b: torch.einsum("bsd,de->bse", a, b), _x(), _r(_D, _D)),
    "dot": (torch.dot, _r(7), _r(7)),
    "mv": (torch.mv, _r(7, 16), _r(16)),
    "outer": (torch.outer, _r(7), _r(5)),
    "cdist": (torch.cdist, _r(5, 4), _r(6, 4)),
}

VIEWS = {
    "view": (lambda a: a.view(a.size(0), a.size(1), _H, a.size(2) // _H), _x()),
    "view_rest": (lambda a: a.view(-1, a.size(2)), _x()),
    "reshape": (lambda a: a.transpose(1, 2).reshape(a.size(0), -1), _x()),
    "flatten": (lambda a: a.flatten(1), _x()),
    "unflatten": (lambda a: a.unflatten(2, (_H, -1)), _x()),
    "permute": (lambda a: a.permute(0, 2, 1), _x()),
    "contiguous": (lambda a: a.transpose(0, 1).contiguous(), _x()),
    "expand": (lambda a: a[:, :1].expand(-1, 9, -1), _x()),
    "expand_as": (lambda a, b: a.expand_as(b), _r(_D), _x()),
    "squeeze": (lambda a: a.unsqueeze(0).squeeze(0), _x()),
    "slice": (lambda a: a[:, 1:], _x()),
    "slice_from_the_end": (lambda a: a[:, -2:], _x()),
    "slice_from_far_before": (lambda a: a[:, -(2**63) :], _x()),
    "slice_step": (lambda a: a[:, ::2], _x()),
    "slice_by_size": (lambda a: a[:, : a.size(0)], _x()),
    "select": (lambda a: a[:, 0], _x()),
    "select_last": (lambda a: a[:, -1], _x()),
    "narrow": (lambda a: a.narrow(1, 1, 2), _x()),
    "diagonal": (lambda a: a.diagonal(dim1=1, dim2=2), _x()),
    "unfold": (lambda a: a.unfold(1, 3, 2), _x()),
    "split": (lambda a: a.split(4, 2), _x()),
    "chunk": (lambda a: a.chunk(2, -1), _x()),
    "unbind": (lambda a: a.unbind(1), _x()),
    "heads": (lambda a: a.view(a.size(0), -1, _H, a.size(2) // _H).transpose(1, 2), _x()),
}

INDEXING = {
    "cat": (lambda a, b: torch.cat([a, b]), _x(), _x()),
    "cat_inner": (lambda a, b: torch.cat([a, b], 1), _x(), _r(_B, 5, _D)),
    "stack": (lambda a, b: torch.stack([a, b]), _x(), _x()),
    "index": (lambda a, i: a[i], _r(5, _D), _i(3, _B, _S)),
    "index_inner": (lambda a, i: a[:, i], _x(), _i(3, _S)),
    "gather": (lambda a, i: a.gather(1, i), _r(_B, _S), _i(3, _B, _S)),
    "scatter": (lambda a, i: a.scatter(1, i, 1.0), _r(_B, _S), _i(3, _B, _S)),
    "index_select": (lambda a, i: a.index_select(1, i), _x(), _i(3, _S)),
    "index_put": (lambda a, i: a.index_put((i,), torch.ones((), device=a.device)), _r(5, _D), _i(3, _B, _S)),
    "embedding": (F.embedding, _i(3, _B, _S), _r(50, _D)),
    "flip": (lambda a: a.flip(1), _x()),
    "roll": (lambda a: a.roll(1, 1), _x()),
    "repeat": (lambda a: a.repeat(1, 2, 1), _x()),
    "tril": (torch.tril, _r(7, 7)),
    "pad": (lambda a: F.pad(a, (1, 2)), _x()),
}

NETWORKS = {
    "layer_norm": (lambda a, w: F.layer_norm(a, (a.size(-1),), w, w), _x(), _r(_D)),
    "rms_norm": (lambda a, w: F.rms_norm(a, (a.size(-1),), w), _x(), _r(_D)),
    "group_norm": (lambda a, w: F.group_norm(a, 2, w, w), _r(_B, 8, 5, 6), _r(8)),
    "batch_norm": (lambda a, m, v: F.batch_norm(a, m, v), _image(), _r(6), _r(6)),
    "batch_norm_training": (lambda a, m, v: F.batch_norm(a, m, v, training=True), _image(), _r(6), _r(6)),
    "conv1d": (F.conv1d, _x(), _r(8, _S, 3)),
    "conv2d": (lambda a, w: F.conv2d(a, w, None, 2, 1), _image(), _r(8, 6, 3, 3)),
    "conv_transpose2d": (lambda a, w: F.conv_transpose2d(a, w, stride=2), _image(), _r(6, 8, 3, 3)),
    "max_pool2d": (lambda a: F.max_pool2d(a, 3, 2, 1), _image()),
    "avg_pool2d": (lambda a: F.avg_pool2d(a, 2), _image()),
    "adaptive_avg_pool2d": (lambda a: F.adaptive_avg_pool2d(a, 7), _image()),
    "interpolate_nearest": (lambda a: F.interpolate(a, scale_factor=2), _image()),
    "interpolate_bilinear": (lambda a: F.interpolate(a, size=(20, 20), mode="bilinear"), _image()),
    "pixel_shuffle": (lambda a: F.pixel_shuffle(a, 2), _r(2, 8, 5, 6)),
    "attention": (F.scaled_dot_product_attention, _heads(), _heads(), _heads()),
    "attention_causal": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), _heads()),
    "attention_masked": (lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m), _heads(), _r(_S, _S)),
    "cross_entropy": (F.cross_entropy, _r(_S, _D), _i(3, _S)),
    "mse": (F.mse_loss, _x(), _x()),
    "lstm_cell": (torch.lstm_cell, _r(3, 5), (_r(3, 6), _r(3, 6)), _r(24, 5), _r(24, 6), _r(24), _r(24)),
    "gru_cell": (torch.gru_cell, _r(3, 5), _r(3, 6), _r(18, 5), _r(18, 6), _r(18), _r(18)),
    "rnn_cell": (torch.rnn_tanh_cell, _r(3, 5), _r(3, 6), _r(6, 5), _r(6, 6)),
    "rope": (lambda q: torch.cat((-q[..., q.shape[-1] // 2 :], q[..., : q.shape[-1] // 2]), -1), _heads()),
    "repeat_heads": (
        lambda k: (
            k[:, :, None].expand(k.size(0), k.size(1), 2, k.size(2), k.size(3)).reshape(k.size(0), k.size(1) * 2, k.size(2), k.size(3))
        ),
        _heads(),
    ),
}

FACTORIES = {
    "arange": (lambda a: torch.arange(a.size(1), device=a.device), _x()),
    "zeros": (lambda a: torch.zeros(a.size(0), a.size(1) + 1, device=a.device), _x()),
    "full": (lambda a: torch.full((a.size(1), a.size(1)), -1.0, device=a.device), _x()),
    "zeros_like": (torch.zeros_like, _x()),
    "new_empty": (lambda a: a.new_empty(a.size(1) * 2), _x()),
    "mask": (lambda a: torch.ones(a.size(1), a.size(1), device=a.device).triu(1), _x()),
}

ALL = {**POINTWISE, **REDUCTIONS, **MATRICES, **VIEWS, **INDEXING, **NETWORKS, **FACTORIES}
