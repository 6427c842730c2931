"""Calls for the rules of numerical families: matrices, transforms, distances, histograms, quantisation, random numbers, windows."""

import torch
from rule_cases import FLOATS, LONG, each, tensors
from torch.nn import functional

ops = torch.ops.aten
COMPLEX = (torch.complex64, torch.complex128)


def bits_and_extrema():
    for name in ("__lshift__", "__rshift__"):
        for x in tensors(4, 5, dtype=torch.int32):
            yield getattr(ops, name).Tensor, (x, torch.ones(5, dtype=torch.int64))
            yield getattr(ops, name).Scalar, (x, 2)
    for x in tensors(4, 5):
        yield ops._add_relu.Tensor, (x, torch.rand(5))
        yield ops._add_relu.Scalar, (x, 2.0)
    yield from each(torch.sgn, (4, 5))
    yield from each(functional.gelu, (4, 5), dtypes=FLOATS)
    yield from each(torch.frexp, (4, 5))
    for x in tensors(4, 5):
        yield lambda x: x.masked_fill(x > 0, 1.0), (x,)
        yield lambda x, v: x.masked_fill(x > 0, v), (x, torch.tensor(1.0))
        yield lambda x, v: x.masked_scatter(x > 0, v), (x, torch.rand(20))
        yield ops._compute_linear_combination.default, (x, torch.rand(3, 4))
    yield from each(torch._aminmax, (4, 5), ())
    yield from each(lambda x: torch._aminmax(x, 1, True), (4, 5))
    for x in tensors(4, 5):
        yield (lambda x, n: torch.segment_reduce(x, "sum", lengths=n)), (x, torch.tensor([1, 3]))
        yield (lambda x, n: torch.segment_reduce(x, "max", offsets=n)), (x, torch.tensor([0, 1, 4]))
    yield torch.vdot, (torch.rand(4, dtype=torch.complex64), torch.rand(4, dtype=torch.complex64).conj())
    yield torch.dot, (torch.rand(4, dtype=torch.complex64).conj(), torch.rand(4, dtype=torch.complex64).conj())
    for v in tensors(4, 6):
        yield ops.glu_jvp.default, (v[:, :3].clone(), v, v.clone(), 1)


def matrices():
    for x in tensors(3, 5):
        yield torch.addbmm, (x, torch.rand(2, 3, 4), torch.rand(2, 4, 5))
    yield torch.addbmm, (torch.rand(5), torch.rand(2, 3, 4), torch.rand(2, 4, 5))
    yield torch._int_mm, (torch.ones(3, 4, dtype=torch.int8), torch.ones(4, 5, dtype=torch.int8))
    scale = torch.ones(())
    for bias in (None, torch.rand(16)):
        a = torch.rand(16, 16).to(torch.float8_e4m3fn)
        yield (lambda a, b, s, bias: torch._scaled_mm(a, b, s, s, bias, out_dtype=torch.float32)), (a, a.t(), scale, bias)
    yield ops._scaled_mm_v2.default, (a, a.t(), [scale], [0], [0], [scale], [0], [0], None, torch.float32)
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.rand(3, 32).to(dtype)
        yield torch._weight_int8pack_mm, (x, torch.ones(16, 32, dtype=torch.int8), torch.rand(16).to(dtype))
    weight = torch.ones(32, 64, dtype=torch.int32)
    yield ops._convert_weight_to_int4pack_for_cpu.default, (weight, 1)
    packed = ops._convert_weight_to_int4pack_for_cpu.default(weight, 1)
    yield ops._weight_int4pack_mm_for_cpu.default, (torch.rand(3, 64), packed, 32, torch.rand(2, 32, 2))
    small = torch.ones(32, 32, dtype=torch.uint8)
    for bias in (None, torch.rand(32)):
        yield ops._dyn_quant_pack_4bit_weight.default, (small, torch.rand(32, 1), bias, 64, 64, 32)
    dynamic = ops._dyn_quant_pack_4bit_weight.default(small, torch.rand(32, 1), None, 64, 64, 32)
    yield ops._dyn_quant_matmul_4bit.default, (torch.rand(3, 64), dynamic, 64, 64, 32)


def linear_algebra():
    for dtype in (torch.float64, torch.complex128):
        for shape in ((3, 3), (2, 3, 3), (0, 3, 3)):
            a = torch.rand(shape).to(dtype)
            spd = a @ a.mH + 3 * torch.eye(3, dtype=dtype)
            yield torch.cholesky, (spd,)
            yield torch.cholesky_inverse, (spd,)
            yield torch.cholesky_solve, (torch.rand(3, 2).to(dtype), spd)
            yield torch.linalg.eig, (a,)
            yield torch.linalg.eigvals, (a,)
            yield torch.linalg.matrix_exp, (a,)
            for x in (a, a.mT):
                yield (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True)), (x, torch.rand(3, 2).to(dtype))
                yield (lambda a, b: torch.linalg.solve_triangular(a.mH, b, upper=True)), (x, torch.rand(3, 2).to(dtype))
            yield torch.geqrf, (a,)
            factors, pivots = torch.linalg.lu_factor(spd)
            for left in (True, False):
                b = torch.rand(*shape).to(dtype)
                yield (lambda f, p, b, left=left: torch.linalg.lu_solve(f, p, b, left=left)), (factors, pivots, b)
        for shape in ((4, 3), (2, 4, 3)):
            reflectors, tau = torch.geqrf(torch.rand(shape).to(dtype))
            yield torch.linalg.householder_product, (reflectors, tau)
            yield torch.ormqr, (reflectors, tau, torch.rand(*shape[:-1], 2).to(dtype))


def fourier():
    for dims in ((0,), (1, 2), (2, 0), (0, 1, 2), (2, 1, 0)):
        for x in tensors(4, 5, 6):
            yield (lambda x, d=dims: torch.fft.fftn(x, dim=d)), (x,)
            yield (lambda x, d=dims: torch.fft.rfftn(x, dim=d)), (x,)
        for x in tensors(4, 5, 6, dtype=torch.complex64):
            yield (lambda x, d=dims: torch.fft.ifftn(x, dim=d)), (x,)
            yield (lambda x, d=dims: torch.fft.irfftn(x, dim=d)), (x,)
            yield ops._fft_c2c.default, (x, list(dims), 0, True)
            yield ops._fft_c2r.default, (x, list(dims), 0, 2 * (x.size(dims[-1]) - 1))
            yield ops._fft_c2r.default, (x, list(dims), 0, 2 * x.size(dims[-1]) - 1)
        for one_sided in (True, False):
            yield ops._fft_r2c.default, (torch.rand(4, 5, 6), list(dims), 0, one_sided)
    yield ops._fft_c2c.default, (torch.rand(4, 5, dtype=torch.complex64).t(), [], 0, True)
    for x in tensors(2, 3, 4, 5):
        yield (lambda x: torch.fft.rfft2(x)), (x,)


def distances():
    for x in tensors(4, 5):
        yield torch.cdist, (x, torch.rand(3, 5))
        yield functional.pdist, (x,)
    for x in tensors(2, 4, 5):
        yield torch.cdist, (x, torch.rand(3, 5))
        yield torch.cdist, (torch.rand(6, 1, 3, 5), x, 1.0)
    yield torch.cdist, (torch.rand(30, 5), torch.rand(30, 5))
    yield functional.pdist, (torch.rand(1, 5),)


def histograms():
    for x in tensors(4, 2):
        yield torch.histogram, (x, 5)
        yield (lambda x, w: torch.histogram(x, 5, weight=w, range=(0.0, 1.0))), (x, torch.rand(4, 2))
        yield torch.histogram, (x, torch.tensor([0.0, 0.5, 1.0]))
        yield torch.histogramdd, (x, [3, 4])
        yield (lambda x, a, b: torch.histogramdd(x, [a, b])), (x, torch.tensor([0.0, 1.0]), torch.tensor([0.0, 0.5, 1.0]))
    for boundaries in (torch.tensor([0.1, 0.4]),):
        yield (lambda b: torch.bucketize(0.3, b)), (boundaries,)
        yield (lambda b: torch.bucketize(0.3, b, out_int32=True)), (boundaries,)
        yield (lambda b: torch.searchsorted(b, 0.3)), (boundaries,)
        yield torch.searchsorted, (boundaries, torch.tensor(0.3))
    for x in tensors(4, 5):
        yield (lambda x: torch.nonzero_static(x, size=3)), (x,)


def quantization():
    scale, zero = torch.rand(4) + 0.1, torch.zeros(4, dtype=torch.int32)
    one = torch.tensor([0.1]), torch.tensor([0], dtype=torch.int32)
    for x in tensors(3, 4):
        yield torch.fake_quantize_per_tensor_affine, (x, 0.1, 0, 0, 255)
        yield torch.fake_quantize_per_tensor_affine, (x, *one, 0, 255)
        yield torch.fake_quantize_per_channel_affine, (x, scale, zero, 1, 0, 255)
        yield ops._fake_quantize_learnable_per_tensor_affine.default, (x, one[0], torch.zeros(1), 0, 255)
        yield ops._fake_quantize_learnable_per_channel_affine.default, (x, scale, torch.zeros(4), 1, 0, 255)
        per_tensor = ops._fake_quantize_learnable_per_tensor_affine_backward.default
        yield per_tensor, (torch.rand(3, 4), x, one[0], torch.zeros(1), 0, 255)
        per_channel = ops._fake_quantize_learnable_per_channel_affine_backward.default
        yield per_channel, (torch.rand(3, 4), x, scale, torch.zeros(4), 1, 0, 255)
        on = torch.tensor([1], dtype=torch.uint8)
        state = torch.zeros(1), torch.ones(1), torch.ones(1), torch.zeros(1, dtype=torch.int32)
        yield ops._fused_moving_avg_obs_fq_helper.default, (x, on, on, *state, 0.01, 0, 255, 0)
        yield torch.dequantize, (x.to(torch.float16),)


def random():
    for x in tensors(4, 5):
        yield torch.poisson, (x,)
        yield torch._standard_gamma, (x + 0.1,)
        yield torch._standard_gamma_grad, (x, torch.rand(4, 5))
        yield torch._sample_dirichlet, (x + 0.1,)
        yield torch._dirichlet_grad, (x, torch.rand(4, 5), torch.rand(4, 5))
        yield torch.binomial, (x, torch.rand(4, 5))
        for train in (True, False):
            yield torch.native_dropout, (x, 0.5, train)
            yield (lambda x, train=train: functional.rrelu(x, training=train)), (x,)
    yield torch.native_dropout, (torch.rand(0, 3), 0.5, True)
    yield ops.native_dropout_backward.default, (torch.rand(4, 5), torch.ones(4, 5, dtype=torch.bool), 2.0)
    yield (lambda x, out: torch.bernoulli(x, out=out)), (torch.rand(4, 5), torch.empty(0))
    for fill in ("cauchy_", "exponential_", "log_normal_"):
        yield (lambda x, fill=fill: getattr(x, fill)()), (torch.rand(4, 5),)
    yield lambda x: x.geometric_(0.5), (torch.ones(4, 5, dtype=LONG),)


def windows():
    for x in tensors(2, 4, 9, 8):
        yield functional.unfold, (x, (3, 2), 1, 1, 2)
        yield functional.channel_shuffle, (x, 2)
    yield functional.unfold, (torch.rand(4, 9, 8), 3)
    for x in tensors(2, 12, 20):
        yield functional.fold, (x, (5, 6), (2, 2))
    yield functional.fold, (torch.rand(12, 20), (5, 6), (2, 2))
    yield functional.channel_shuffle, (torch.rand(2, 4, 3), 2)
    pooled = functional.max_pool2d(torch.rand(2, 4, 8, 6), 2, return_indices=True)
    yield functional.max_unpool2d, (*pooled, 2)
    yield functional.max_unpool2d, (pooled[0].to(memory_format=torch.channels_last), pooled[1], 2)
    yield functional.max_unpool2d, (pooled[0][0], pooled[1][0], 2)
    yield functional.max_unpool1d, (*functional.max_pool1d(torch.rand(2, 4, 8), 2, return_indices=True), 2)
    yield functional.max_unpool3d, (*functional.max_pool3d(torch.rand(2, 4, 8, 6, 4), 2, return_indices=True), 2)
    offsets = torch.tensor([0, 2, 5])
    yield (lambda v, o: ops._jagged_to_padded_dense_forward(v, [o], [3])), (torch.rand(5, 4), offsets)
    yield (lambda d, o: ops._padded_dense_to_jagged_forward(d, [o], 5)), (torch.rand(2, 3, 4), offsets)


def embeddings():
    indices = torch.tensor([0, 2, 1, 1])
    for offsets in (torch.tensor([0, 2]), torch.tensor([0, 2, 4])):
        for mode in (0, 1, 2):
            for weight in (torch.rand(3, 5), torch.rand(5, 3).t(), torch.rand(3, 5).double(), torch.rand(3, 5).to(torch.bfloat16)):
                for last in (True, False):
                    yield ops._embedding_bag.default, (weight, indices, offsets, False, mode, False, None, last)
                    yield ops._embedding_bag_forward_only.default, (weight, indices, offsets, False, mode, False, None, last)
        scale = torch.rand(4)
        yield ops._embedding_bag.default, (torch.rand(3, 5), indices, offsets, False, 0, False, scale)
        yield ops._embedding_bag.default, (torch.rand(3, 5), indices, offsets, False, 0, False, None, False, 1)


def slow_convolutions():
    for x in tensors(2, 4, 6, 5):
        yield ops._slow_conv2d_forward.default, (x, torch.rand(3, 4, 2, 2), [2, 2], None, [1, 1], [1, 1])
        yield ops.slow_conv_dilated2d.default, (x, torch.rand(3, 4, 2, 2), [2, 2], torch.rand(3), [1, 1], [1, 1], [2, 2])
    for x in tensors(2, 4, 6, 5, 7):
        weight = torch.rand(3, 4, 2, 2, 2)
        yield ops.slow_conv3d_forward.default, (x, weight, [2, 2, 2], None, [1, 1, 1], [1, 1, 1])
        yield ops.slow_conv_dilated3d.default, (x, weight, [2, 2, 2], None, [1, 1, 1], [1, 1, 1], [2, 2, 2])
        yield ops.slow_conv_transpose3d.default, (x, torch.rand(4, 3, 2, 2, 2), [2, 2, 2])


def margins():
    for reduction in ("none", "mean", "sum"):
        batch = torch.rand(4, 5), torch.tensor([0, 1, 2, 3])
        for x, target in (batch, (torch.rand(5), torch.tensor(1)), (torch.rand(5), torch.tensor([1]))):
            yield (lambda x, y, r=reduction: functional.multi_margin_loss(x, y, reduction=r)), (x, target)
        for x in tensors(4, 5):
            yield (lambda x, y, r=reduction: functional.multilabel_margin_loss(x, y, reduction=r)), (x, torch.zeros(4, 5, dtype=LONG))
        yield (lambda x, y, r=reduction: functional.multilabel_margin_loss(x, y, reduction=r)), (torch.rand(5), torch.zeros(5, dtype=LONG))
        x, weight = torch.rand(8, 4, requires_grad=True), torch.rand(6, 4, requires_grad=True)
        options = torch.nn.LinearCrossEntropyOptions(chunking_method="auto", batch_chunk_size=2)
        yield chunked_cross_entropy(reduction, options), (x, weight, torch.zeros(8, dtype=LONG))


def chunked_cross_entropy(reduction, options):
    def run(x, weight, target):
        with torch.enable_grad():
            loss = functional.linear_cross_entropy(x, weight, target, reduction=reduction, options=options)
        return loss.detach().clone()  # how often the Python code of the operator wrote to the loss can't be known

    return run


def updates():
    def lists():
        return [[torch.rand(3)] for _ in range(5)]

    rates = dict(lr=0.1, weight_decay=0.0, maximize=False)
    for name in ("_fused_adam_", "_fused_adamw_"):
        for overload, lr in (("default", 0.1), ("tensor_lr", torch.tensor(0.1))):
            operator = getattr(getattr(ops, name), overload)
            adam = {**rates, "lr": lr, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "amsgrad": False}
            yield (lambda *lists, f=operator, adam=adam: f(*lists, **adam)), (*lists()[:4], [], [torch.ones(())])
    for overload, lr in (("default", 0.1), ("tensor_lr", torch.tensor(0.1))):
        sgd = {**rates, "lr": lr, "momentum": 0.9, "dampening": 0.0, "nesterov": False, "is_first_step": False}
        yield (lambda *lists, f=getattr(ops._fused_sgd_, overload), sgd=sgd: f(*lists, **sgd)), tuple(lists()[:3])
        grad = {**rates, "lr": lr, "lr_decay": 0.0, "eps": 1e-8}
        run = getattr(ops._fused_adagrad_, overload)
        yield (lambda *lists, f=run, grad=grad: f(*lists, **grad)), (*lists()[:3], [torch.ones(())])
    unscale = ops._amp_foreach_non_finite_check_and_unscale_.default
    yield unscale, ([torch.rand(3)], torch.zeros(()), torch.ones(()))
    yield ops._assert_async.default, (torch.tensor(True),)
    yield ops._assert_async.msg, (torch.tensor(True), "no")
    yield (lambda x: ops._functional_assert_async.msg(x, "no", ops._make_dep_token())), (torch.tensor(True),)
    yield torch._efficientzerotensor, ((3, 4),)
    yield lambda x: x.as_strided((2, 3), (1, 2), 1), (torch.rand(4, 5).t(),)
