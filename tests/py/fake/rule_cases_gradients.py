"""Calls for the rules of backward operators: gradients of all arguments, for inputs of several layouts."""

import torch
from rule_cases import FLOATS, LONG, tensors
from torch.nn import functional

ops = torch.ops.aten


def grad_of(function):
    """A function that returns the gradients of the floating-point arguments."""

    def run(*args):
        with torch.enable_grad():
            args = [a.detach().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
            result = function(*args)
            results = [result] if isinstance(result, torch.Tensor) else [r for r in result if r.requires_grad]
            leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
            return torch.autograd.grad(results, leaves, [torch.ones_like(r) for r in results])

    return run


def pooling():
    for x in tensors(2, 4, 8, 6):
        yield grad_of(lambda x: functional.adaptive_avg_pool2d(x, (2, 3))), (x,)
        yield grad_of(lambda x: functional.pad(x, (1, 1, 1, 1), mode="reflect")), (x,)
        yield grad_of(lambda x: functional.pad(x, (1, 1, 1, 1), mode="replicate")), (x,)
        yield grad_of(functional.grid_sample), (x, torch.rand(2, 5, 5, 2))
    for x in tensors(2, 4, 4, 6, 8):
        yield grad_of(lambda x: functional.adaptive_avg_pool3d(x, (2, 3, 2))), (x,)
        given = ops.adaptive_avg_pool3d_backward.grad_input
        yield (lambda grad, x, out, f=given: f(grad, x, grad_input=out)), (torch.rand(2, 4, 2, 2, 2), x, torch.empty(0))
        yield grad_of(lambda x: functional.max_pool3d(x, 2)), (x,)
        yield grad_of(lambda x: functional.fractional_max_pool3d(x, 2, (2, 2, 2))), (x,)
        yield grad_of(lambda x: functional.pad(x, (1, 1, 1, 1, 1, 1), mode="replicate")), (x,)
        yield grad_of(functional.grid_sample), (x, torch.rand(2, 5, 5, 5, 3))


def normalization():
    for dtype in FLOATS:
        for x in tensors(2, 4, 6, 5, dtype=dtype):
            weight, bias = torch.rand(4).to(dtype), torch.rand(4).to(dtype)
            mean, var = torch.rand(4).to(dtype), torch.rand(4).to(dtype)
            for train in (True, False):
                yield (
                    grad_of(lambda x, w, b, m=mean, v=var, t=train: functional.batch_norm(x, m.clone(), v.clone(), w, b, t)),
                    (x, weight, bias),
                )
            yield grad_of(lambda x, w, b: functional.batch_norm(x, None, None, w, b, True)), (x, weight, bias)
            yield grad_of(lambda x: functional.batch_norm(x, None, None, None, None, True)), (x,)
            yield grad_of(lambda x, w, b: functional.group_norm(x, 2, w, b)), (x, weight, bias)
            yield grad_of(lambda x, w, b: functional.layer_norm(x, (5,), w, b)), (x, torch.rand(5).to(dtype), torch.rand(5).to(dtype))
            yield grad_of(lambda x: functional.layer_norm(x, (6, 5))), (x,)
    for x in tensors(4, 5):
        yield grad_of(lambda v, g: torch._weight_norm(v, g, 0)), (x, torch.rand(4, 1))
    x, four = torch.rand(2, 4, 5), torch.rand(4)
    out, mean, invstd, reserve = ops._batch_norm_with_update(x, four, four, four.clone(), four.clone(), 0.1, 1e-5)
    backward = ops.batch_norm_backward.default
    yield backward, (torch.rand(2, 4, 5), x, four, four, four, mean, invstd, True, 1e-5, [True, True, True], reserve)


def losses():
    for reduction in ("none", "mean", "sum"):
        keywords = {"reduction": reduction}
        for x in tensors(4, 5):
            for loss in (functional.mse_loss, functional.smooth_l1_loss, functional.huber_loss):
                yield grad_of(lambda x, y, f=loss, k=keywords: f(x, y, **k)), (x, torch.rand(4, 5))
            yield grad_of(lambda x, k=keywords: functional.binary_cross_entropy(x, torch.ones(4, 5), **k)), (x,)
            margin = functional.multi_margin_loss
            yield grad_of(lambda x, k=keywords, f=margin: f(x, torch.tensor([0, 1, 2, 3]), **k)), (x,)
            labels = functional.multilabel_margin_loss
            yield grad_of(lambda x, k=keywords, f=labels: f(x, torch.zeros(4, 5, dtype=LONG), **k)), (x,)
        yield grad_of(lambda x, k=keywords: functional.nll_loss(x, torch.zeros(2, 5, 6, dtype=LONG), **k)), (torch.rand(2, 4, 5, 6),)
        for lengths in (lambda: ([5, 5], [3, 2]), lambda: (torch.tensor([5, 5]), torch.tensor([3, 2]))):
            ctc = functional.ctc_loss
            yield (
                grad_of(lambda x, k=keywords, f=ctc, n=lengths: f(x, torch.ones(2, 3, dtype=LONG), *n(), **k)),
                (torch.rand(5, 2, 4).log_softmax(-1),),
            )
    log_probs, targets, lengths = torch.rand(5, 2, 4).log_softmax(-1), torch.ones(2, 3, dtype=LONG), torch.tensor([3, 3])
    fives = torch.tensor([5, 5])
    loss, alpha = torch._ctc_loss(log_probs, targets, fives, lengths)
    yield ops._ctc_loss_backward.Tensor, (torch.ones(2), log_probs, targets, fives, lengths, loss, alpha, 0)


def activations():
    for x in tensors(4, 6):
        for function in (functional.hardtanh, functional.hardswish, functional.logsigmoid, functional.glu, functional.relu6):
            yield grad_of(function), (x,)
        yield grad_of(functional.prelu), (x, torch.rand(6))
        yield grad_of(lambda x: functional.rrelu(x, training=True)), (x,)
        half, whole = torch.rand(4, 3), torch.rand(4, 6)
        yield ops.glu_backward_jvp.default, (x, half, whole, half.clone(), whole.clone(), 1)
    for x in tensors(2, 3, 4, 4):
        mask = torch.zeros(2, 3, 4, 4, dtype=torch.bool)
        yield ops._masked_softmax_backward.default, (x, torch.rand(2, 3, 4, 4), mask)


def indexing():
    bags = torch.tensor([0, 2, 1, 1]), torch.tensor([0, 2])
    yield grad_of(lambda w: functional.embedding(torch.tensor([[0, 1], [2, 2]]), w)), (torch.rand(3, 5),)
    for mode in ("sum", "mean", "max"):
        yield grad_of(lambda w, m=mode: functional.embedding_bag(*reversed((w, bags[0])), bags[1], mode=m)), (torch.rand(3, 5),)
    scaled = functional.embedding_bag
    yield grad_of(lambda w, s: scaled(bags[0], w, bags[1], mode="sum", per_sample_weights=s)), (torch.rand(3, 5), torch.rand(4))
    out, bag, size, most = ops._embedding_bag(torch.rand(3, 5), *bags, False, 1)
    dense = ops._embedding_bag_dense_backward.default
    yield dense, (torch.rand(2, 5), bags[0], bag, size, most, 3, False, 1, None)
    for x in tensors(4, 5):
        yield grad_of(lambda x: x.unfold(0, 2, 1)), (x,)
        yield grad_of(torch.cdist), (x, torch.rand(3, 5))
        yield grad_of(functional.pdist), (x,)
        yield grad_of(lambda x: torch.segment_reduce(x, "sum", lengths=torch.tensor([1, 3]))), (x,)
    yield grad_of(torch.cdist), (torch.rand(2, 4, 5), torch.rand(6, 1, 3, 5))
    for x in tensors(2, 4, 9, 8):
        yield grad_of(lambda x: functional.unfold(x, 3)), (x,)


def layers():
    for q in tensors(2, 4, 6, 8):
        yield grad_of(functional.scaled_dot_product_attention), (q, torch.rand(2, 4, 5, 8), torch.rand(2, 4, 5, 8))
    lstm = torch.nn.LSTM(4, 6)
    yield grad_of(lambda x: lstm(x)[0]), (torch.rand(3, 2, 4),)
    qkv = torch.rand(2, 5, 24)
    yield ops._transform_bias_rescale_qkv.default, (qkv, torch.rand(24), 2)
