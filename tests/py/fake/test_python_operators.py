"""Which operators of PyTorch have no native shape function and go to its Python meta functions: a list that only shrinks."""

import pathlib

import torch

from pellucid import _core

LIST = pathlib.Path(__file__).with_name("python_operators.txt")


def python_operators():
    """ATen operators on tensors, without the forms that write to given results, whose shapes come from Python."""
    found = set()
    for full in torch._C._dispatch_get_all_op_names():
        name, _, overload = full.partition(".")
        if not name.startswith("aten::") or "out" in overload:
            continue
        try:
            schema = torch._C._get_schema(name, overload)
        except RuntimeError:  # a name that has kernels but no schema
            continue
        if not any("Tensor" in str(value.type) for value in (*schema.returns, *schema.arguments)):
            continue
        if _core.fake_origin(name, overload) in ("python", "none"):
            found.add(full)
    return found


def test_list_of_operators_that_need_python():
    listed = set(LIST.read_text().split())
    found = python_operators()
    assert found - listed == set(), "went back to Python"
    assert listed - found == set(), "native now: take them off the list"


def test_a_python_shape_function_is_counted_and_right():
    assert "aten::_cdist_forward" in LIST.read_text().split()
    _core.reset_fake_stats()
    with _core.FakeScope():
        result = torch.cdist(torch.rand(3, 4), torch.rand(5, 4))
    assert result.shape == (3, 5) and _core.is_fake(result)
    assert _core.fake_stats()["aten::_cdist_forward"] == ("python", 1)
