"""PyTorch's own operator samples: the real operator's result against the fake one, over a bounded sample of op_db."""

import itertools
import warnings

import pytest
import torch
from compare import check_call
from torch.testing._internal.common_methods_invocations import op_db

from pellucid import _core

SAMPLES = 2

# Operators whose fakes raise, with the exception class. The list only shrinks: an operator that stops raising fails its test.
VALUES = _core.DataDependentError  # the result, or a check on the way, depends on values
DATA = RuntimeError  # composite CPU code that reads data itself
NO_SHAPE = NotImplementedError  # PyTorch has no shape function at all
RAISES = {
    "allclose": VALUES,
    "argwhere": VALUES,
    "combinations": VALUES,
    "corrcoef": VALUES,
    "cov": VALUES,
    "equal": VALUES,
    "geqrf": NO_SHAPE,
    "histogram": NO_SHAPE,
    "histogramdd": NO_SHAPE,
    "item": VALUES,
    "linalg_lstsq": NO_SHAPE,
    "linalg_lstsq_grad_oriented": NO_SHAPE,
    "linspace_tensor_overload": VALUES,
    "logspace_tensor_overload": VALUES,
    "masked_select": VALUES,
    "nanquantile": VALUES,
    "narrow": VALUES,
    "nn_functional_ctc_loss": DATA,
    "nn_functional_gaussian_nll_loss": VALUES,
    "nonzero": VALUES,
    "quantile": VALUES,
    "sparse_mm_reduce": TypeError,
    "sparse_sampled_addmm": TypeError,
    "tensor_split": DATA,
    "to_sparse": NO_SHAPE,
    "unique": VALUES,
    "unique_consecutive": VALUES,
}

# What real execution shows cannot be known: how often Python code inside the operator wrote to its result.
LEFT_OUT = {"nn_functional_linear_cross_entropy_chunked", "nn_functional_linear_cross_entropy_chunked_none"}

# In place on a leaf that requires gradients: not a legal call.
WITHOUT_GRADIENTS = {"resize_", "resize_as_"}

OPERATORS = [
    op for op in op_db if torch.float32 in op.dtypes and not op.formatted_name.startswith("jiterator") and op.formatted_name not in LEFT_OUT
]


def run_samples(op):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for grad in (False, True):
            if grad and (not op.supports_autograd or op.formatted_name in WITHOUT_GRADIENTS):
                continue
            for sample in itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=grad), SAMPLES):
                check_call(op, sample.input, *sample.args, **sample.kwargs)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.formatted_name)
def test_operator(op):
    expected = RAISES.get(op.formatted_name)
    if expected is None:
        run_samples(op)
    else:
        with pytest.raises(expected):
            run_samples(op)


def test_listed_operators_exist():
    assert set(RAISES) - {op.formatted_name for op in OPERATORS} == set()
