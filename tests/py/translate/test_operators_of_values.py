"""Operators whose results depend on values, and the ways around fake tensors, in captured programs: a break, and the right result."""

import copy

import pytest
import torch
from comparing import compare

X = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]])

# The result's shape or value comes from values: each breaks the graph between the two halves.
BREAKS = {
    "nonzero": lambda x: torch.nonzero(x > 0),
    "argwhere": lambda x: torch.argwhere(x > 0),
    "where": lambda x: torch.where(x > 0)[0],
    "masked_select": lambda x: torch.masked_select(x, x > 0),
    "mask": lambda x: x[x > 0],
    "unique": lambda x: torch.unique(x),
    "unique_consecutive": lambda x: torch.unique_consecutive(x),
    "bincount": lambda x: torch.bincount(x.abs().long().view(-1)),
    "repeats": lambda x: torch.repeat_interleave(torch.arange(6), x.abs().long().view(-1)),
    "item": lambda x: torch.full((2,), x.sum().item()),
    "equal": lambda x: torch.full((2,), float(torch.equal(x, x))),
    "allclose": lambda x: torch.full((2,), float(torch.allclose(x, x))),
    "is_set_to": lambda x: torch.full((2,), float(x.is_set_to(x))),
    "narrow": lambda x: torch.narrow(x, 1, (x[0, 0] > 0).long(), 2),
    "tensor_split": lambda x: torch.tensor_split(x.view(-1), x[0, :1].long())[1],
    "one_hot": lambda x: torch.nn.functional.one_hot(x.abs().long()),
    "weighted_cov": lambda x: torch.cov(x, fweights=torch.tensor([1, 2, 3])),
    "to_sparse": lambda x: x.to_sparse().to_dense(),
    "lstsq": lambda x: torch.linalg.lstsq(x.t(), x.t()).solution,
    "gaussian_nll": lambda x: torch.nn.functional.gaussian_nll_loss(x, x, x.abs()),
    "tolist": lambda x: torch.tensor(x.tolist()),
    "numpy": lambda x: torch.from_numpy(x.numpy() + 1),
}


@pytest.mark.parametrize("name", BREAKS)
def test_breaks_the_graph_and_stays_right(name):
    operator = BREAKS[name]

    def f(x):
        y = x * 2
        z = operator(y)
        return z.to(torch.float32).sum() + y

    captured = compare(f, (X,))
    assert captured.reasons and len(captured.counter.graphs) >= 2


# Values are looked at only to check them, or decide nothing of the shape: no break.
STAYS = {
    "quantile": lambda x: torch.quantile(x, 0.5, dim=1),
    "nanquantile": lambda x: torch.nanquantile(x, torch.tensor([0.1, 0.5])),
    "cov": lambda x: torch.cov(x),
    "corrcoef": lambda x: torch.corrcoef(x),
    "combinations": lambda x: torch.combinations(x[0], 2),
    "linspace": lambda x: torch.linspace(x[0, 0], 3.0, 5),
    "logspace": lambda x: torch.logspace(x[0, 0], 3.0, 5),
    "ctc_loss": lambda x: torch.nn.functional.ctc_loss(
        x.view(2, 1, 3).log_softmax(-1), torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1])
    ),
    "nonzero_static": lambda x: torch.nonzero_static(x > 0, size=4),
    "index_put_mask": lambda x: torch.index_put(x, (x > 0,), torch.tensor(1.0)),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "constant_mask": lambda x: x[:, torch.tensor([True, False, True])],
    "fft": lambda x: torch.fft.rfft2(x).abs(),
    "max_unpool": lambda x: torch.nn.functional.max_unpool1d(*torch.nn.functional.max_pool1d(x, 2, return_indices=True), 2),
}


@pytest.mark.parametrize("name", STAYS)
def test_stays_in_the_graph(name):
    operator = STAYS[name]
    captured = compare(lambda x: operator(x * 2) + 1, (X,))
    assert captured.reasons == [] and len(captured.counter.graphs) == 1


def test_checks_are_made_by_the_graph():
    def f(x, q):
        return torch.quantile(x, q) + 1

    captured = compare(f, (X, torch.tensor(0.5))).function
    with pytest.raises(RuntimeError, match="must be in the range"):
        captured(X, torch.tensor(1.5))


def data_is_read(x):
    return x.data * 2 + x


def data_is_written(x):
    y = x * 2
    y.data.add_(1)
    return y


def data_is_assigned(x):
    y = torch.zeros(2, 3)
    y.data = x * 2
    return y + 1


def data_of_a_view(x):
    y = x.clone()
    y[0].data.zero_()
    return y + 1


@pytest.mark.parametrize("f", [data_is_read, data_is_written, data_is_assigned, data_of_a_view])
def test_data_attribute(f):
    compare(f, (X,))


def test_data_has_the_device():
    compare(lambda x: (str(x.data.device), x.data.requires_grad, x * 2), (X,))


CAPTURED_FROM_OUTSIDE = torch.tensor([1.0, 2.0, 3.0])


def test_constants_of_the_program():
    def f(x):
        a = torch.tensor([1, 2, 3])
        b = torch.tensor([[True, False, True]] * 2)
        return x[b] + 1, x * a, x[:, a - 1], torch.as_tensor([1.0, 2.0, 3.0]) + x, x + torch.tensor(2)

    compare(f, (X,))


def test_constants_that_are_changed():
    def f(x):
        mask = torch.tensor([True, False, True])
        mask[1] = True
        return x[:, mask] + 1

    compare(f, (X,))


def test_real_tensors_meet_fakes():
    def f(x):
        return x + CAPTURED_FROM_OUTSIDE, torch.add(CAPTURED_FROM_OUTSIDE, 1)

    captured = compare(f, (X,))
    assert len(captured.counter.graphs) == 1


def test_real_tensors_are_not_written_to_while_a_graph_is_made():
    state = torch.zeros(3)

    def f(x):
        state.add_(1)
        return x + state

    before = state.clone()
    import pellucid

    captured = pellucid.optimize(lambda graph, inputs: graph.forward)(f)
    for calls in range(1, 4):
        assert torch.equal(captured(X), X + before + calls)
        assert torch.equal(state, before + calls)


def test_deepcopy_of_a_tensor():
    def f(x):
        y = x * 2
        z = copy.deepcopy(y.detach())
        z.add_(1)
        return y, z

    compare(f, (X,))


def test_deepcopy_of_a_container():
    compare(lambda x: copy.deepcopy({"a": [x * 2]})["a"][0] + 1, (X,))


def overlapping_add(x):
    y = x.clone().view(-1)
    y[1:].add_(y[:-1])
    return y


def overlapping_expand(x):
    y = x[0].clone()
    y.expand(2, 3).add_(1)
    return y


def overlapping_out(x):
    y = x.clone().view(-1)
    torch.add(y[:-1], 1, out=y[1:])
    return y


def overlapping_gather(x):
    y = x.clone()
    torch.gather(y, 0, torch.zeros(2, 3, dtype=torch.long), out=y)
    return y


@pytest.mark.parametrize("f", [overlapping_add, overlapping_expand, overlapping_out, overlapping_gather])
def test_overlapping_memory_raises_as_it_does_eagerly(f):
    def caught(x):
        try:
            return f(x)
        except RuntimeError as error:
            return "unsupported operation" in str(error)

    compare(f, (X,))
    compare(caught, (X,))


def test_memory_beside_each_other_is_no_overlap():
    def f(x):
        y = x.clone()
        y[0].add_(y[1])
        y[:, 0].mul_(y[:, 1])
        y.add_(y)
        return y

    captured = compare(f, (X,))
    assert captured.reasons == []


def test_views_out_of_bounds_raise():
    def f(x):
        try:
            return torch.as_strided(x * 2, (100,), (1,)) + 1
        except RuntimeError as error:
            return "out of bounds" in str(error)

    compare(f, (X,))


def test_cpu_fast_paths():
    def f(x):
        return x + torch.scalar_tensor(2.0), torch.ones(()) * x, x.sum().expand(2), torch.nn.functional.pad(x, (1, 1)), x @ x.t()

    captured = compare(f, (X,))
    assert captured.reasons == []
