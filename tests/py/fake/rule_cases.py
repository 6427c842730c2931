"""Calls for the hand-written rules, family by family: inputs of several shapes, layouts and types."""

import torch
from torch.nn import functional

ops = torch.ops.aten


def tensors(*shape, dtype=torch.float32):
    """The same sizes contiguous, transposed, strided with gaps, expanded and (4-D, 5-D) channels_last."""
    shape = tuple(shape)
    made = [torch.rand(shape).to(dtype)]
    if len(shape) >= 2:
        made.append(torch.rand(shape[::-1]).to(dtype).permute(*reversed(range(len(shape)))))
        made.append(torch.rand((*shape[:-1], shape[-1] * 2)).to(dtype)[..., ::2])
        made.append(torch.rand((1, *shape[1:])).to(dtype).expand(shape))
    if len(shape) == 4:
        made.append(made[0].to(memory_format=torch.channels_last))
    if len(shape) == 5:
        made.append(made[0].to(memory_format=torch.channels_last_3d))
    return made


def each(function, *shapes, dtypes=(torch.float32,)):
    """The function on every variant of every shape."""
    return [(function, (x,)) for shape in shapes for dtype in dtypes for x in tensors(*shape, dtype=dtype)]


FLOATS = (torch.float32, torch.float64, torch.bfloat16)
ANY = (torch.float32, torch.int64, torch.bool, torch.complex64)
LONG = torch.long


def pointwise():
    yield from each(torch.relu, (), (4, 5), (2, 3, 4, 5), (0, 3), dtypes=(*FLOATS, torch.int32))
    yield from each(torch.abs, (4, 5), dtypes=(torch.float32, torch.int8, torch.complex64))
    yield from each(torch.angle, (4, 5), dtypes=(torch.float64, torch.int64, torch.bool, torch.complex64, torch.complex128))
    yield from each(torch.abs, (2, 3, 4, 5), dtypes=(torch.complex64,))
    yield from each(torch.isnan, (4, 5), dtypes=ANY)
    yield from each(functional.hardtanh, (4, 5), (2, 3, 4, 5), dtypes=(*FLOATS, torch.int32))
    yield from each(functional.hardswish, (4, 5), dtypes=FLOATS)
    yield from each(torch.logit, (4, 5), dtypes=(torch.float64, torch.bfloat16))
    yield from each(functional.logsigmoid, (4, 5), dtypes=FLOATS)
    yield from each(lambda x: torch.nan_to_num(x, 0.0), (4, 5), dtypes=(torch.float32, torch.int64))
    yield from each(torch.conj_physical, (4, 5), dtypes=(torch.float32, torch.complex64))
    yield from each(torch.logical_not, (4, 5), (), dtypes=ANY)
    for name in ("logical_and", "logical_or", "logical_xor", "floor_divide"):
        function = getattr(torch, name)
        for x in tensors(4, 5):
            yield function, (x, torch.rand(5) + 1)
            yield function, (x, torch.ones(4, 1, dtype=torch.int64))
        yield function, (torch.ones(4, 5), torch.tensor(2, dtype=torch.int64))
    yield torch.floor_divide, (torch.ones(3, dtype=torch.int32), 2)
    yield from each(lambda x: torch.rsub(x, torch.ones(4, 1, dtype=torch.float64)), (4, 5), dtypes=(torch.float32, torch.int64))
    yield from each(lambda x: 2.5 % x, (4, 5), dtypes=(torch.float32, torch.int64))
    yield from each(lambda x: functional.prelu(x, torch.rand(3)), (2, 3), (2, 3, 4, 5))
    for condition in tensors(4, 5, dtype=torch.bool):
        yield torch.where, (condition, torch.rand(5), torch.rand(4, 1, dtype=torch.float64))
        yield torch.where, (condition, torch.rand(4, 5), 1.0)
        yield torch.where, (condition, 1, torch.rand(5, 4).t())
    yield torch.complex, (torch.rand(4, 5), torch.rand(5))
    yield torch.polar, (torch.rand(4, 5).t(), torch.rand(4))


def reductions():
    for name in ("var", "std", "var_mean", "std_mean"):
        function = getattr(torch, name)
        yield from each(function, (4, 5), (2, 3, 4), dtypes=(torch.float32, torch.complex64))
        yield from each(lambda x, f=function: f(x, (0, -1), keepdim=True), (4, 5, 6))
        yield from each(lambda x, f=function: f(x, 1, correction=2), (4, 5, 6))
    for name in ("prod", "max", "min", "median", "nanmedian"):
        yield from each(getattr(torch, name), (), (4, 5), dtypes=(torch.float32, torch.int32))
    yield from each(lambda x: torch.prod(x, dtype=torch.float64), (4, 5))
    yield from each(lambda x: torch.nansum(x, (0, 2), keepdim=True), (2, 3, 4), dtypes=(torch.float32, torch.int32))
    yield from each(lambda x: torch.count_nonzero(x, (1,)), (4, 5))
    yield from each(torch.trace, (4, 5), dtypes=(torch.float32, torch.int32))
    yield from each(lambda x: torch.histc(x, 7, 0, 1), (4, 5))
    yield from each(lambda x: torch.kthvalue(x, 2, 1), (4, 5), (2, 3, 4, 5))
    for function in (torch.median, torch.nanmedian, torch.mode):
        yield from each(lambda x, f=function: f(x, 1), (4, 5, 6), dtypes=(torch.float32, torch.int64))
        yield from each(lambda x, f=function: f(x, -1, True), (4, 5))
    yield torch.dot, (torch.rand(4), torch.rand(8)[::2])
    yield torch.vdot, (torch.rand(4, dtype=torch.complex64), torch.rand(4, dtype=torch.complex64))
    for function in (torch.cummax, torch.cummin, torch.logcumsumexp):
        yield from each(lambda x, f=function: f(x, 1), (4, 5), (2, 3, 4, 5))


def normalization():
    for dtype in FLOATS:
        for x in tensors(2, 3, 4, dtype=dtype):
            yield torch.native_layer_norm, (x, [4], torch.rand(4, dtype=dtype), torch.rand(4, dtype=dtype), 1e-5)
            yield torch.native_layer_norm, (x, [3, 4], None, None, 1e-5)
        for x in tensors(2, 4, 5, 6, dtype=dtype):
            parameters = [torch.rand(4, dtype=dtype) for _ in range(4)]
            for train in (True, False):
                yield torch.native_batch_norm, (x, *parameters, train, 0.1, 1e-5)
                yield torch.batch_norm_update_stats, (x, *parameters[2:], 0.1)
                yield ops._native_batch_norm_legit.default, (x, *parameters, train, 0.1, 1e-5)
            yield ops._native_batch_norm_legit.no_stats, (x, *parameters[:2], True, 0.1, 1e-5)
            yield functional.instance_norm, (x, *parameters)
            yield functional.instance_norm, (x,)
            yield functional.group_norm, (x, 2, *parameters[:2])
    half = torch.rand(2, 4, dtype=torch.bfloat16)
    yield torch.native_layer_norm, (half, [4], torch.rand(4), torch.rand(4), 1e-5)
    for x in tensors(2, 3, 4):
        yield functional.rms_norm, (x, [4], torch.rand(4))
    yield ops._fused_rms_norm.default, (torch.rand(2, 3, 4), [4], torch.rand(4), 1e-5)
    for v in tensors(4, 5):
        yield torch._weight_norm, (v, torch.rand(4, 1), 0)
    yield ops._batch_norm_with_update.default, (torch.rand(2, 4, 5), torch.rand(4), torch.rand(4), torch.rand(4), torch.rand(4), 0.1, 1e-5)


def convolution():
    for dtype in FLOATS:
        for x in tensors(2, 4, 9, 8, dtype=dtype):
            yield functional.conv2d, (x, torch.rand(6, 4, 3, 3, dtype=dtype), torch.rand(6, dtype=dtype), 2, 1)
            yield functional.conv2d, (x, torch.rand(6, 2, 3, 2, dtype=dtype), None, (1, 2), (0, 1), (2, 1), 2)
            yield functional.conv_transpose2d, (x, torch.rand(4, 3, 3, 3, dtype=dtype), None, 2, 1, 1)
    last = torch.rand(6, 4, 3, 3).to(memory_format=torch.channels_last)
    yield functional.conv2d, (torch.rand(2, 4, 9, 8), last)
    yield functional.conv2d, (torch.rand(4, 9, 8), torch.rand(6, 4, 3, 3))
    for x in tensors(2, 4, 5, 6, 7, dtype=torch.float64):
        yield functional.conv3d, (x, torch.rand(6, 4, 2, 2, 2, dtype=torch.float64))
        yield functional.conv3d, (x, torch.rand(6, 4, 2, 2, 2, dtype=torch.float64), None, 1, 1, 2)
        yield functional.conv_transpose3d, (x, torch.rand(4, 6, 2, 2, 2, dtype=torch.float64))
    for x in tensors(2, 4, 9, 8):
        yield functional.conv2d, (x, torch.rand(4, 1, 3, 3), None, 1, 1, 2, 4)
    yield from ((functional.conv1d, (x, torch.rand(6, 4, 3), None, 1, "same")) for x in tensors(2, 4, 9))
    yield from ((functional.conv3d, (x, torch.rand(6, 4, 2, 2, 2))) for x in tensors(2, 4, 5, 6, 7))
    yield torch._convolution, (torch.rand(2, 4, 9), torch.rand(6, 4, 3), None, [1], [0], [1], False, [0], 1, False, False, True, True)
    for x in tensors(2, 4, 9, 8):
        weight = torch.rand(6, 4, 3, 3)
        grad = torch.rand(2, 6, 7, 6)
        yield ops.convolution_backward.default, (grad, x, weight, [6], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True])
        yield ops.convolution_backward.default, (grad, x, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, True, False])


def pooling():
    yield from each(lambda x: functional.adaptive_avg_pool2d(x, (2, 3)), (2, 4, 9, 8), (4, 9, 8))
    yield from each(lambda x: functional.adaptive_avg_pool3d(x, (2, 3, 1)), (2, 4, 5, 6, 7))
    yield from each(lambda x: functional.max_pool3d(x, 2, 2, 1, 1, True, True), (2, 4, 5, 6, 7))
    yield functional.max_pool3d, (torch.rand(4, 5, 6, 7), (2, 3, 2), (1, 2, 1))
    yield from each(lambda x: functional.max_pool1d(x, 3, 2, 1, 1, True), (2, 4, 9), (4, 9))
    yield from each(lambda x: functional.max_pool1d(x, 3, return_indices=True), (2, 4, 9))


def attention():
    for dtype in (torch.float32, torch.bfloat16):
        for q in tensors(2, 4, 6, 8, dtype=dtype):
            k = torch.rand(2, 4, 5, 8, dtype=dtype)
            yield functional.scaled_dot_product_attention, (q, k, k)
            yield functional.scaled_dot_product_attention, (q, k, k, torch.rand(6, 5).to(dtype))
            yield functional.scaled_dot_product_attention, (q.double(), k.double(), torch.rand(2, 4, 5, 3, dtype=torch.double))
            flash = ops._scaled_dot_product_flash_attention_for_cpu.default
            yield flash, (q, k, k)
    yield from each(lambda x: ops._safe_softmax.default(x, -1), (2, 3, 4))
    yield from each(lambda x: ops._safe_softmax.default(x, 1, torch.float32), (2, 3, 4), dtypes=(torch.bfloat16,))
    yield from each(lambda x: torch._masked_softmax(x, torch.zeros(2, 4, 5, 5, dtype=torch.bool), -1, 2), (2, 4, 5, 5))
    projections = torch.rand(48, 16), torch.rand(48), torch.rand(16, 16), torch.rand(16)
    for x in tensors(2, 5, 16):
        for need, average in ((True, True), (True, False), (False, True)):
            yield torch._native_multi_head_attention, (x, x, x, 16, 4, *projections, None, need, average)
        norms = [torch.rand(16) for _ in range(4)]
        feed_forward = torch.rand(32, 16), torch.rand(32), torch.rand(16, 32), torch.rand(16)
        yield torch._transformer_encoder_layer_fwd, (x, 16, 4, *projections, True, False, 1e-5, *norms, *feed_forward)


def indexing():
    for index in (torch.tensor([1, 0, 2]), torch.tensor([[1, 0], [2, 2]]), torch.tensor(1)):
        yield functional.embedding, (index, torch.rand(4, 5))
    for x in tensors(4, 5):
        yield torch.index_select, (x, 0, torch.tensor([1, 0, 2]))
        yield torch.index_select, (x, -1, torch.tensor(1))
        yield torch.take, (x, torch.tensor([[1, 0], [2, 2]]))
        yield torch.flip, (x, (0, -1))
        yield torch.roll, (x, 1)
        yield torch.roll, (x, 1, 0)
        yield torch.roll, (x, (1, 2), (0, 1))
        yield torch.tile, (x, (2, 1, 3))
        yield lambda x: x.repeat(2, 1), (x,)
        yield lambda x: x[..., [0, 1]], (x,)
        yield torch.bucketize, (x, torch.rand(3).sort().values)
        yield lambda x, i: x[i], (x, torch.tensor([1, 0, 2]))
        yield lambda x, i: x[:, i, None], (x, torch.tensor([[1, 0], [2, 2]]))
        yield lambda x, i, j: x[i, j], (x, torch.tensor([[1], [0]]), torch.tensor([1, 0, 2]))
    for x in tensors(2, 4, 3, 5):
        yield torch.index_select, (x, 2, torch.tensor([1, 0, 2]))
        yield torch.flip, (x, (1, 3))
        yield torch.roll, (x, (1, 2), (1, -1))
        yield torch.roll, (x, 3, 2)
        yield lambda x: x.repeat(2, 1, 1, 2), (x,)
    yield torch.searchsorted, (torch.rand(2, 4).sort().values, torch.rand(2, 3))
    yield lambda r: torch.repeat_interleave(r, output_size=6), (torch.tensor([1, 2, 3]),)

    def put(x, index, values):
        x[index] = values
        return x

    yield put, (torch.rand(4, 5), torch.tensor([1, 0]), torch.rand(5))
    yield put, (torch.rand(4, 5), torch.tensor([True, False, True, False]), torch.rand(2, 5))
    yield put, (torch.rand(4, 5), torch.tensor([1, 0]), 2.0)
    yield lambda x, i, v: x.index_put((i,), v, accumulate=True), (torch.rand(4, 5), torch.tensor([1, 1]), torch.rand(2, 5))


def losses():
    for reduction in ("none", "mean", "sum"):
        for x in tensors(4, 5):
            yield (lambda x, y, r=reduction: functional.binary_cross_entropy(x, y, reduction=r)), (x, torch.rand(4, 5))
            yield (lambda x, y, r=reduction: functional.huber_loss(x, y, reduction=r)), (x, torch.rand(4, 5))
        for x in tensors(2, 3, 4, 5):
            yield (lambda x, y, r=reduction: functional.nll_loss(x, y, reduction=r)), (x, torch.zeros(2, 4, 5, dtype=LONG))


def factories():
    yield lambda: torch.scalar_tensor(2), ()
    yield lambda: torch.scalar_tensor(2, dtype=torch.int32), ()
    for shape in ((3, 4), (4, 3), (0, 3), (5, 5)):
        for offset in (-2, 0, 1, 7):
            yield lambda s=shape, o=offset: torch.tril_indices(*s, o), ()
            yield lambda s=shape, o=offset: torch.triu_indices(*s, o, dtype=torch.int32), ()
    yield torch.randperm, (5,)
    yield torch.multinomial, (torch.rand(5), 3)
    yield torch.multinomial, (torch.rand(2, 5), 7, True)


def storage():
    for x in tensors(4, 5):
        yield lambda x, y: x.copy_(y), (x.clone(), torch.rand(5, dtype=torch.float64))
    yield ops.copy.default, (torch.rand(4, 5), torch.rand(5))
    yield lambda x: x.as_strided_((2, 3), (1, 2), 1), (torch.rand(4, 5),)
    yield lambda x: x.t_(), (torch.rand(4, 5),)
    yield lambda x: x.unsqueeze_(0).squeeze_(0), (torch.rand(4, 5),)
    yield lambda x: x.swapaxes_(0, 1), (torch.rand(4, 5),)
    yield lambda x, y: x.set_(y), (torch.rand(2), torch.rand(4, 5).t())
    yield torch.linalg.inv, (torch.eye(3),)


def sampling():
    for x in tensors(2, 3, 4, 5):
        yield (lambda x, g: functional.grid_sample(x, g, align_corners=False)), (x, torch.rand(2, 6, 7, 2))
        yield (lambda x: functional.pad(x, (1, 2, 3, 0), mode="reflect")), (x,)
    for x in tensors(2, 3, 4, 5, 6):
        yield (lambda x, g: functional.grid_sample(x, g, align_corners=True)), (x, torch.rand(2, 6, 7, 8, 3))


def recurrent():
    yield torch.nn.LSTM(4, 6, batch_first=True), (torch.rand(2, 3, 4),)
    yield torch.nn.LSTM(4, 6, bidirectional=True), (torch.rand(3, 2, 4),)
