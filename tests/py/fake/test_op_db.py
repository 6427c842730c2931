"""PyTorch's own operator samples: the real operator's result against the fake one, and the gradients, over a bounded sample of op_db.

PELLUCID_ALL_SAMPLES=1 takes every sample of every dtype (a few minutes).
"""

import itertools
import os
import warnings

import pytest
import torch
from compare import check_all, origins_called
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

from pellucid import _core

ALL = os.environ.get("PELLUCID_ALL_SAMPLES") == "1"
SAMPLES = 100000 if ALL else 3  # of float32
SAMPLES_OF_OTHERS = 100000 if ALL else 1  # of each of the other dtypes
OTHERS = (torch.bfloat16, torch.complex64, torch.int64, torch.bool)

VALUES = _core.DataDependentError
NO_SHAPE = NotImplementedError

# Operators whose fakes raise on a sample. The lists only shrink: an operator that stops raising fails its test.
# The result itself, its shape, or which of several ways Python code goes, depends on values:
RESULT_IS_OF_VALUES = {
    "__getitem__": VALUES,  # masks
    "allclose": VALUES,
    "argwhere": VALUES,
    "bincount": VALUES,
    "cov": VALUES,  # with weights
    "equal": VALUES,
    "item": VALUES,
    "masked_select": VALUES,
    "narrow": VALUES,  # from a start in a tensor
    "nn_functional_gaussian_nll_loss": VALUES,
    "nn_functional_one_hot": VALUES,  # without the number of classes
    "nonzero": VALUES,
    "repeat_interleave": VALUES,  # repeats in a tensor
    "tensor_split": RuntimeError,  # places in a tensor
    "unique": VALUES,
    "unique_consecutive": VALUES,
}
# Sparse results, and sizes that LAPACK finds out:
RESULT_HAS_NO_FAKE = {"linalg_lstsq": NO_SHAPE, "linalg_lstsq_grad_oriented": NO_SHAPE, "to_sparse": NO_SHAPE}
# The gradient's formula asks for values, to choose a way or to count elements:
GRADIENT_ASKS_FOR_VALUES = {
    "__getitem__",
    "cumprod",
    "index_fill",
    "index_put",
    "linalg_eig",
    "linalg_eigh",
    "linalg_svd",
    "linalg_vander",
    "masked_cumprod",
    "masked_fill",
    "masked_prod",
    "masked_scatter",
    "max_reduction_no_dim",
    "median",
    "min_reduction_no_dim",
    "nanmedian",
    "prod",
    "svd",
}

# Of these only samples beyond the bound raise.
LATE = set() if ALL else {"__getitem__", "linalg_eigh", "masked_prod", "repeat_interleave"}

# What cannot be known: how often Python code inside the operator wrote to its result.
IGNORED = {
    "nn_functional_linear_cross_entropy_chunked": ("version",),
    "nn_functional_linear_cross_entropy_chunked_none": ("version",),
}

# In place on a leaf that requires gradients: not a legal call.
WITHOUT_GRADIENTS = {"resize_", "resize_as_"}

MAY_NEED_PYTHON = {"aten::linalg_lstsq.out", "aten::_to_sparse", "aten::_to_sparse.sparse_dim"}

OPERATORS = [op for op in op_db if not op.formatted_name.startswith("jiterator") and op.supported_dtypes("cpu")]


def samples_of(op):
    """(sample, whether gradients are wanted): the first of each dtype, float32 at more length."""
    supported = op.supported_dtypes("cpu")
    for dtype in supported if ALL else [dtype for dtype in (torch.float32, *OTHERS) if dtype in supported]:
        differentiable = op.supports_autograd and op.formatted_name not in WITHOUT_GRADIENTS
        for grad in (False, True):
            if grad and not (differentiable and (dtype.is_floating_point or dtype.is_complex)):
                continue
            samples = iter(op.sample_inputs("cpu", dtype, requires_grad=grad))
            bound = SAMPLES if dtype == torch.float32 else SAMPLES_OF_OTHERS
            while True:
                try:
                    sample = next(samples, None)
                except NotImplementedError:  # making the sample needs kernels that don't exist for the dtype
                    break
                if sample is None or bound == 0:
                    break
                bound -= 1
                tensors = (t for t in tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor))
                if all(t.layout == torch.strided for t in tensors):  # others have no fakes
                    yield sample, grad


def run_samples(op):
    """Compares all samples; returns how many raised what the lists above say."""
    expected = RESULT_IS_OF_VALUES.get(op.formatted_name) or RESULT_HAS_NO_FAKE.get(op.formatted_name)
    ignored = IGNORED.get(op.formatted_name, ())
    raised = {"forward": 0, "backward": 0}
    for sample, grad in samples_of(op):
        args = (sample.input, *sample.args)
        try:
            check_all(op, args, sample.kwargs, ignored, backward=grad)
        except Exception as error:
            if expected is not None and isinstance(error, expected) and not isinstance(error, AssertionError):
                raised["forward"] += 1
            elif grad and op.formatted_name in GRADIENT_ASKS_FOR_VALUES and isinstance(error, VALUES):
                raised["backward"] += 1
                check_all(op, args, sample.kwargs, ignored)
            else:
                raise
    return raised


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.formatted_name)
def test_operator(op):
    _core.reset_fake_stats()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raised = run_samples(op)
    assert origins_called("python") - MAY_NEED_PYTHON == set()
    if op.formatted_name in LATE:
        return
    if op.formatted_name in RESULT_IS_OF_VALUES or op.formatted_name in RESULT_HAS_NO_FAKE:
        assert raised["forward"] > 0, "no longer raises: take it off the list"
    elif op.formatted_name in GRADIENT_ASKS_FOR_VALUES:
        assert raised["backward"] > 0, "no longer raises: take it off the list"


def in_place_variants():
    for op in op_db:
        if op.inplace_variant is not None and torch.float32 in op.dtypes and not op.formatted_name.startswith("jiterator"):
            yield op


@pytest.mark.parametrize("op", list(in_place_variants()), ids=lambda op: op.formatted_name)
def test_in_place(op):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(op.sample_inputs("cpu", torch.float32), 2 if not ALL else SAMPLES):
            if sample.broadcasts_input:
                continue
            try:
                op.inplace_variant(sample.input.clone(), *sample.args, **sample.kwargs)
            except (RuntimeError, TypeError):  # what the operator does doesn't fit the input
                continue
            check_all(op.inplace_variant, (sample.input, *sample.args), sample.kwargs)


# Wrong calls that PyTorch knows by their values, or by memory that two arguments share (fakes of two tensors never do).
WRONG_BY_VALUE = {"cat", "cov", "gather", "linalg_lstsq", "linalg_lstsq_grad_oriented", "masked_select", "multinomial", "scatter"}
WRONG_BY_VALUE |= {"scatter_add", "take", "nn_functional_gaussian_nll_loss"}
OTHER_CLASS = {"narrow_copy"}


@pytest.mark.parametrize("op", [op for op in op_db if op.error_inputs_func is not None], ids=lambda op: op.formatted_name)
def test_wrong_calls_raise(op):
    from compare import fakes

    for error in op.error_inputs("cpu"):
        sample = error.sample_input
        try:
            args, kwargs = fakes(((sample.input, *sample.args), sample.kwargs))
        except TypeError:  # sparse inputs
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            real, fake = exception_of(op, (sample.input, *sample.args), sample.kwargs), None
            with _core.FakeScope():
                fake = exception_of(op, args, kwargs)
        if op.formatted_name in WRONG_BY_VALUE:
            continue
        assert fake is not None or real is None
        if op.formatted_name not in OTHER_CLASS:
            assert type(fake) is type(real), f"{fake!r} for {real!r}"


def exception_of(function, args, kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error
    return None


def test_listed_operators_exist():
    listed = {*RESULT_IS_OF_VALUES, *RESULT_HAS_NO_FAKE, *GRADIENT_ASKS_FOR_VALUES, *IGNORED, *WITHOUT_GRADIENTS}
    listed |= WRONG_BY_VALUE | OTHER_CLASS
    assert listed - {op.formatted_name for op in op_db} == set()
