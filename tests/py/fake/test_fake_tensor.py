"""What a fake tensor is: the real tensor's class, geometry and autograd state, without its data."""

import copy

import pytest
import torch
from torch import nn

from pellucid import _core


def fake(tensor):
    return _core.fake_tensor(tensor)


REAL = {
    "plain": lambda: torch.randn(4, 8),
    "scalar": lambda: torch.tensor(1.5),
    "empty": lambda: torch.empty(0, 3),
    "transposed": lambda: torch.randn(4, 8).t(),
    "offset": lambda: torch.randn(4, 8)[1:, 2:5],
    "expanded": lambda: torch.randn(4, 1).expand(4, 8),
    "channels_last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "int64": lambda: torch.arange(5),
    "bool": lambda: torch.tensor([True, False]),
    "bfloat16": lambda: torch.randn(3, dtype=torch.bfloat16),
    "complex": lambda: torch.randn(3, dtype=torch.complex64),
    "conj": lambda: torch.randn(3, dtype=torch.complex64).conj(),
    "leaf": lambda: torch.randn(3, requires_grad=True),
    "parameter": lambda: nn.Parameter(torch.randn(3, 4)),
    "frozen": lambda: nn.Parameter(torch.randn(3, 4), requires_grad=False),
    "not_leaf": lambda: torch.randn(3, requires_grad=True) * 2,
    "buffer": lambda: nn.BatchNorm1d(3).running_mean,
    "meta": lambda: torch.empty(3, 4, device="meta"),
}


@pytest.mark.parametrize("name", REAL)
def test_same_properties(name):
    real = REAL[name]()
    made = fake(real)
    assert type(made) is type(real)
    for attribute in ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf"):
        assert getattr(made, attribute) == getattr(real, attribute), attribute
    assert made.stride() == real.stride()
    assert made.storage_offset() == real.storage_offset()
    assert made.untyped_storage().nbytes() == real.untyped_storage().nbytes()
    assert made.is_conj() == real.is_conj()
    assert made._version == real._version
    assert (made.grad_fn is None) == (real.grad_fn is None)
    assert _core.is_fake(made) == (real.device.type != "meta")
    assert not _core.is_fake(real)


def test_inference_tensors_stay_inference_tensors():
    with torch.inference_mode():
        real = torch.randn(3)
    assert fake(real).is_inference()
    outside = torch.randn(3)
    with torch.inference_mode():
        assert not fake(outside).is_inference()


def test_what_has_no_fake():
    class Sub(torch.Tensor):
        pass

    sparse = torch.eye(3).to_sparse()
    for value in (sparse, torch.randn(3).as_subclass(Sub), 1, None):
        with pytest.raises(TypeError, match="can't make a fake"):
            fake(value)
        assert not _core.is_fake(value)


def test_scope_makes_factories_fake_and_ends():
    with _core.FakeScope():
        made = [torch.zeros(2), torch.arange(3), torch.full((2,), 1.0), torch.randn(2), torch.tensor([1, 2]), torch.empty(3)]
        assert all(_core.is_fake(tensor) for tensor in made)
        assert [tuple(tensor.shape) for tensor in made] == [(2,), (3,), (2,), (2,), (2,), (3,)]
        assert all(tensor.device.type == "cpu" for tensor in made)
        assert not _core.is_fake(torch.empty(2, device="meta"))
    assert not _core.is_fake(torch.zeros(2))
    with pytest.raises(ZeroDivisionError), _core.FakeScope():
        raise ZeroDivisionError
    assert torch.zeros(2).sum().item() == 0


def test_scopes_nest():
    with _core.FakeScope():
        with _core.FakeScope():
            pass
        assert _core.is_fake(torch.zeros(1))
    scope = _core.FakeScope()
    with scope, pytest.raises(RuntimeError):
        scope.__enter__()
    assert not _core.is_fake(torch.zeros(1))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.sum() > 0),
        lambda x: int(x.sum()),
        lambda x: float(x[0, 0]),
        lambda x: x.nonzero(),
        lambda x: torch.argwhere(x),
        lambda x: x[x > 0],
        lambda x: torch.masked_select(x, x > 0),
        lambda x: torch.equal(x, x),
        lambda x: torch.allclose(x, x),
        lambda x: torch.unique(x),
        lambda x: torch.bincount(x.long().view(-1)),
        lambda x: torch.repeat_interleave(x.long().view(-1)),
        lambda x: torch.is_nonzero(x[0, 0]),
        lambda x: list(range(10))[x[0, 0].long()],
    ],
)
def test_data_dependent_operators_raise_their_own_error(read):
    x = fake(torch.randn(4, 8))
    with _core.FakeScope(), pytest.raises(_core.DataDependentError, match="depends on the values"):
        read(x)


@pytest.mark.parametrize("read", [lambda x: x.numpy(), lambda x: x.tolist(), lambda x: x.data_ptr(), copy.deepcopy])
def test_reading_data_raises(read):
    with pytest.raises(RuntimeError, match="a fake tensor has no values"):
        read(fake(torch.randn(4, 8)))


def test_real_tensors_are_not_written_to():
    real = torch.ones(3)
    with _core.FakeScope(), pytest.raises(RuntimeError, match="would write to a real tensor"):
        real.add_(1)
    assert real.tolist() == [1, 1, 1]


def test_random_state_is_untouched():
    x = fake(torch.randn(4, 8))
    state = torch.get_rng_state()
    with _core.FakeScope():
        nn.functional.dropout(x, 0.5)
        torch.randn(3)
        x.bernoulli_(0.5).normal_().uniform_()
        torch.randperm(4)
    assert torch.equal(state, torch.get_rng_state())


def test_in_place_bumps_versions_and_views_share_them():
    base = fake(torch.zeros(4, 8))
    view = base[0]
    assert view._base is base
    view.add_(1)
    base.mul_(2)
    assert (base._version, view._version) == (2, 2)
    assert view.untyped_storage()._cdata == base.untyped_storage()._cdata
    with pytest.raises(RuntimeError, match="leaf Variable"):
        fake(torch.nn.Parameter(torch.randn(3))).add_(1)


def test_gradients():
    weight = fake(nn.Parameter(torch.randn(8, 8)))
    x = fake(torch.randn(4, 8))
    loss = torch.sigmoid(x @ weight).softmax(-1).sum()
    (grad,) = torch.autograd.grad(loss, weight)
    assert _core.is_fake(grad) and grad.shape == (8, 8) and grad.device.type == "cpu"


def test_gradient_does_not_pass_beyond_a_captured_input():
    x = fake(torch.randn(3, requires_grad=True) * 2)
    (grad,) = torch.autograd.grad((x * 3).sum(), x)
    assert grad.shape == (3,)
    with pytest.raises(RuntimeError, match="beyond the captured program"):
        (x * 3).sum().backward()


def test_modes():
    x, weight = fake(torch.randn(4, 8)), fake(nn.Parameter(torch.randn(6, 8)))
    linear = nn.functional.linear
    assert linear(x, weight).requires_grad
    with torch.no_grad():
        assert not linear(x, weight).requires_grad
    with torch.inference_mode():
        result = linear(x, weight)
        assert result.is_inference() and result.view(-1).is_inference()
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16


def test_data_attribute_is_mended_by_the_next_operator():
    x = fake(torch.randn(4, 8))
    assert (x.data + x).device.type == "cpu"


def test_masks_known_in_the_program():
    x = fake(torch.randn(4, 5))
    with _core.FakeScope():
        assert x[[True, False, True, True]].shape == (3, 5)
        assert x[torch.tensor([[True, False, False, True, False]] * 4)].shape == (8,)
        with pytest.raises(IndexError):
            x[[True, False]]
        mask = torch.tensor([True, False, True, True])
        assert x[mask].shape == (3, 5)
        y = x.clone()
        y[mask] = torch.zeros(3, 5)
        with pytest.raises(RuntimeError, match="shape mismatch"):
            y[mask] = torch.zeros(2, 5)


def change_view(mask):
    mask[0] = False


def change_data(mask):
    mask.data[0] = False


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    "change", [lambda m: m.fill_(False), lambda m: torch.logical_not(m, out=m), lambda m: m.view(2, 2).zero_(), change_view, change_data]
)
def test_masks_are_forgotten_when_changed(change, context):
    x = fake(torch.randn(4, 5))
    with context(), _core.FakeScope():
        mask = torch.tensor([True, False, True, True])
        change(mask)
        with pytest.raises(_core.DataDependentError):
            x[mask]


def test_one_hot():
    x = fake(torch.zeros(3, 4, dtype=torch.long))
    with _core.FakeScope():
        assert nn.functional.one_hot(x, 7).shape == (3, 4, 7)
        with pytest.raises(_core.DataDependentError):
            nn.functional.one_hot(x)


def test_python_dispatcher():
    x = fake(torch.randn(2, 3, 8))
    with _core.FakeScope(), torch._C._EnablePythonDispatcher():
        assert (x + 1).relu().softmax(-1).shape == (2, 3, 8)
        assert x.view(torch.int32).device.type == "cpu"
        assert nn.functional.max_pool1d(x, 2).shape == (2, 3, 4)
        assert nn.functional.one_hot(x.argmax(-1), 8).shape == (2, 3, 8)


def test_devices():
    with _core.FakeScope():
        cuda = torch.ops.aten.empty.memory_format([4, 8], device=torch.device("cuda"))  # torch.empty would initialise CUDA
        assert cuda.device == torch.device("cuda", 0) and _core.is_fake(cuda)
        assert (cuda + 1).device == cuda.device
        assert (cuda * torch.tensor(2.0)).device == cuda.device
        assert cuda.cpu().device.type == "cpu"
        with pytest.raises(RuntimeError, match="at least two devices"):
            cuda + torch.zeros(4, 8)
        assert torch.zeros(8, 2)[torch.zeros(3, dtype=torch.long)].shape == (3, 2)


def test_resizing_out():
    with _core.FakeScope():
        x = torch.zeros(4, 8)
        out = torch.empty(0)
        assert torch.add(x, x, out=out) is out
        assert out.shape == (4, 8) and out.untyped_storage().nbytes() == 128
        assert x.clone().resize_(2, 2).shape == (2, 2)
        assert x.clone().t_().stride() == (1, 8)


def test_stats_count_calls():
    _core.reset_fake_stats()
    x = fake(torch.randn(4, 8))
    x + x
    x.relu()
    stats = _core.fake_stats()
    assert stats["aten::add.Tensor"] == ("meta", 1)
    assert stats["aten::relu"] == ("rule", 1)
    assert _core.fake_origin("aten::nonzero") == "data_dependent"
    assert "aten::relu" in _core.fake_rules()
    with pytest.raises(KeyError):
        _core.fake_origin("aten::no_such_operator")
