"""Every hand-written rule against the real operator, over inputs of several shapes, layouts and types."""

import pytest
import rule_cases
import rule_cases_gradients
import rule_cases_numeric
import torch
from compare import check_call, fakes, origins_called
from torch.nn import functional
from torch.utils._pytree import tree_leaves

from pellucid import _core

ops = torch.ops.aten
LONG = torch.long

FAMILIES = [
    rule_cases.pointwise,
    rule_cases.reductions,
    rule_cases.normalization,
    rule_cases.convolution,
    rule_cases.pooling,
    rule_cases.attention,
    rule_cases.indexing,
    rule_cases.losses,
    rule_cases.factories,
    rule_cases.storage,
    rule_cases.sampling,
    rule_cases.recurrent,
    rule_cases_numeric.bits_and_extrema,
    rule_cases_numeric.matrices,
    rule_cases_numeric.linear_algebra,
    rule_cases_numeric.fourier,
    rule_cases_numeric.distances,
    rule_cases_numeric.histograms,
    rule_cases_numeric.quantization,
    rule_cases_numeric.random,
    rule_cases_numeric.windows,
    rule_cases_numeric.embeddings,
    rule_cases_numeric.slow_convolutions,
    rule_cases_numeric.margins,
    rule_cases_numeric.updates,
    rule_cases_gradients.pooling,
    rule_cases_gradients.normalization,
    rule_cases_gradients.losses,
    rule_cases_gradients.activations,
    rule_cases_gradients.indexing,
    rule_cases_gradients.layers,
]


@pytest.fixture(scope="module")
def compared():
    """All families compared once: what failed in each, and the operators that were called."""
    torch.manual_seed(0)
    _core.reset_fake_stats()
    failures = {}
    for family in FAMILIES:
        failures[family] = []
        for function, args in family():
            try:
                with torch.no_grad():
                    check_call(function, *args)
            except Exception as error:
                failures[family].append(f"{type(error).__name__}: {error}")
    return failures, {name for name, (_, calls) in _core.fake_stats().items() if calls}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_family(compared, family):
    failures, _ = compared
    assert failures[family] == []


def test_every_rule_is_compared(compared):
    _, called = compared
    assert set(_core.fake_rules()) - called - gpu_rules() == set()


def meta_of(value):
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def on_gpu(value):
    """A fake on a GPU, of the geometry of a real tensor."""
    if not isinstance(value, torch.Tensor):
        return value
    return ops.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=torch.device("cuda"))


def geometry(tensor):
    return None if tensor is None else (tuple(tensor.shape), tensor.stride(), tensor.dtype)


def gpu_rules():
    """The rules of operators without a CPU kernel."""
    return {operator._name.removesuffix(".default") for operator, *_ in [*PYTHON_KNOWS, *DOCUMENTED]}


def half(*shape):
    return torch.rand(*shape).to(torch.bfloat16)


# Operators of GPUs only, whose shapes PyTorch's Python functions for the meta device tell.
QUERY = half(2, 8, 4, 16).transpose(1, 2)
PYTHON_KNOWS = [
    (ops.mm.dtype, half(3, 4), half(4, 5), torch.float32),
    (ops.bmm.dtype, half(2, 3, 4), half(2, 4, 5), torch.float32),
    (ops.addmm.dtype, half(5), half(3, 4), half(4, 5), torch.float32),
    (ops._thnn_fused_lstm_cell.default, torch.rand(2, 12), torch.rand(2, 12), torch.rand(2, 3), torch.rand(12), torch.rand(12)),
    (
        ops._thnn_fused_lstm_cell_backward_impl.default,
        *(torch.rand(2, 3), torch.rand(2, 3), torch.rand(2, 3), torch.rand(2, 3), torch.rand(2, 12), True),
    ),
    (ops._masked_scale.default, torch.rand(5, 4).t(), torch.ones(4, 5, dtype=torch.uint8), 2.0),
    (ops._scaled_dot_product_flash_attention.default, QUERY, QUERY, QUERY, 0.0, False, True),
    (ops._scaled_dot_product_flash_attention.default, QUERY, QUERY, QUERY),
    (ops._scaled_dot_product_efficient_attention.default, QUERY, QUERY, QUERY, None, True),
    (ops._scaled_dot_product_efficient_attention.default, QUERY, QUERY, QUERY, None, False),
    (
        ops._scaled_dot_product_flash_attention_backward.default,
        *(QUERY, QUERY, QUERY, QUERY, QUERY, torch.rand(2, 4, 8), None, None, 8, 8, 0.0, False, torch.rand(2), torch.rand(())),
    ),
    (ops._fused_rms_norm_backward.default, torch.rand(2, 3), torch.rand(2, 3), [3], torch.rand(2, 1), torch.rand(3), [True, True]),
]


@pytest.mark.parametrize("case", range(len(PYTHON_KNOWS)))
def test_rule_of_a_gpu_operator_agrees_with_pytorchs_python(case):
    operator, *args = PYTHON_KNOWS[case]
    expected = [value for value in tree_leaves(operator(*map(meta_of, args))) if value is None or isinstance(value, torch.Tensor)]
    _core.reset_fake_stats()
    with _core.FakeScope():
        made = [value for value in tree_leaves(operator(*map(on_gpu, args))) if value is None or isinstance(value, torch.Tensor)]
    assert [geometry(tensor) for tensor in made] == [geometry(tensor) for tensor in expected]
    assert {tensor.device for tensor in made if tensor is not None} == {torch.device("cuda", 0)}
    assert origins_called("python") == set()


# Operators of GPUs whose shapes nothing in PyTorch tells but their CUDA sources.
CHANNELS = torch.rand(4)
IMAGES = torch.rand(2, 4, 6, 5).to(memory_format=torch.channels_last)
DOCUMENTED = [
    (ops.baddbmm.dtype, (half(2, 3, 5), half(2, 3, 4), half(2, 4, 5), torch.float32), [(2, 3, 5)]),
    (ops._conv_depthwise2d.default, (IMAGES, torch.rand(4, 1, 3, 3), [3, 3], None, [1, 1], [1, 1], [1, 1]), [(2, 4, 6, 5)]),
    (
        ops.conv_depthwise3d.default,
        (torch.rand(2, 4, 6, 5, 4), torch.rand(4, 1, 3, 3, 3), [3, 3, 3], None, [1, 1, 1], [1, 1, 1], [1, 1, 1]),
        [(2, 4, 6, 5, 4)],
    ),
    (
        ops._thnn_fused_gru_cell.default,
        (torch.rand(2, 9), torch.rand(2, 9), torch.rand(2, 3), torch.rand(9), torch.rand(9)),
        [(2, 3), (2, 15)],
    ),
    (ops._thnn_fused_gru_cell_backward.default, (torch.rand(2, 3), torch.rand(2, 15), True), [(2, 9), (2, 9), (2, 3), (9,), (9,)]),
    (ops._fused_dropout.default, (torch.rand(5, 4).t(), 0.5), [(4, 5), (4, 5)]),
    (ops.batch_norm_stats.default, (IMAGES, 1e-5), [(4,), (4,)]),
    (ops.batch_norm_elemt.default, (IMAGES, CHANNELS, CHANNELS, CHANNELS, CHANNELS, 1e-5), [(2, 4, 6, 5)]),
    (ops.batch_norm_gather_stats.default, (IMAGES, torch.rand(3, 4), torch.rand(3, 4), None, None, 0.1, 1e-5, 2), [(4,), (4,)]),
    (
        ops.batch_norm_gather_stats_with_counts.default,
        (IMAGES, torch.rand(3, 4), torch.rand(3, 4), None, None, 0.1, 1e-5, torch.rand(3)),
        [(4,), (4,)],
    ),
    (
        ops.batch_norm_backward_reduce.default,
        (IMAGES, IMAGES, CHANNELS, CHANNELS, CHANNELS, True, True, False),
        [(4,), (4,), (4,), None],
    ),
    (
        ops.batch_norm_backward_elemt.default,
        (IMAGES, IMAGES, CHANNELS, CHANNELS, CHANNELS, CHANNELS, CHANNELS, torch.ones(3, dtype=torch.int32)),
        [(2, 4, 6, 5)],
    ),
    (ops.record_stream.default, (IMAGES, torch.Stream(device="cpu")), []),
]


@pytest.mark.parametrize("case", range(len(DOCUMENTED)))
def test_rule_of_a_gpu_operator(case):
    operator, args, shapes = DOCUMENTED[case]
    with _core.FakeScope():
        made = operator(*map(on_gpu, args))
    made = [] if made is None else [made] if isinstance(made, torch.Tensor) else list(made)
    assert [None if tensor is None else tuple(tensor.shape) for tensor in made] == shapes
    assert all(tensor is None or tensor.device == torch.device("cuda", 0) for tensor in made)
    if operator in (ops.batch_norm_elemt.default, ops.batch_norm_backward_elemt.default):
        assert made[0].is_contiguous(memory_format=torch.channels_last)


REFUSED = [
    (torch.relu, (torch.ones(2, dtype=torch.bool),)),
    (functional.hardtanh, (torch.ones(2, dtype=torch.bool),)),
    (torch.floor_divide, (torch.rand(3), torch.rand(4))),
    (torch.var, (torch.ones(2, dtype=torch.int64),)),
    (torch.max, (torch.rand(0),)),
    (torch.dot, (torch.rand(3), torch.rand(4))),
    (torch.trace, (torch.rand(3),)),
    (functional.layer_norm, (torch.rand(2, 3), [4])),
    (functional.batch_norm, (torch.rand(2, 3), torch.rand(4), torch.rand(4))),
    (functional.conv2d, (torch.rand(2, 3, 4, 4), torch.rand(6, 4, 3, 3))),
    (functional.conv2d, (torch.rand(2, 4, 2, 2), torch.rand(6, 4, 3, 3))),
    (functional.conv2d, (torch.rand(2, 4, 5, 5, dtype=torch.double), torch.rand(6, 4, 3, 3))),
    (functional.adaptive_avg_pool2d, (torch.rand(2, 3), (1, 1))),
    (functional.embedding, (torch.rand(2), torch.rand(4, 5))),
    (torch.index_select, (torch.rand(2, 3), 0, torch.zeros(1, 2, dtype=LONG))),
    (torch.flip, (torch.rand(2, 3), (2,))),
    (torch.flip, (torch.rand(2, 3), (0, 0))),
    (lambda x: x.repeat(2), (torch.rand(2, 3),)),
    (lambda x, i, v: x.index_put((i,), v), (torch.rand(4, 5), torch.tensor([1, 1]), torch.rand(3, 5))),
    (functional.binary_cross_entropy, (torch.rand(2), torch.rand(3))),
    (lambda x, y: x.copy_(y), (torch.rand(3), torch.rand(4))),
    (lambda x, y: x.add_(y), (torch.rand(3), torch.rand(2, 3))),
    (lambda x, y: x.add_(y), (torch.ones(3, dtype=LONG), torch.rand(3))),
    (torch.mm, (torch.rand(2, 3), torch.rand(2, 3))),
    (torch.cat, ([torch.rand(2, 3), torch.rand(2, 4)],)),
    (lambda x: x.view(7), (torch.rand(2, 3),)),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_wrong_calls_raise_the_real_exception_class(case):
    function, args = REFUSED[case]
    with pytest.raises(Exception) as real:
        function(*args)
    with pytest.raises(Exception) as fake, _core.FakeScope():
        function(*fakes(args))
    assert type(fake.value) is type(real.value)
