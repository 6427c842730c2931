"""Which operators of PyTorch have no native shape function: a list that only shrinks, and the page that lists all."""

import pathlib
import subprocess
import sys

import torch

from pellucid import _core

LIST = pathlib.Path(__file__).with_name("python_operators.txt")
TOOLS = pathlib.Path(__file__).parents[3] / "tools"
sys.path.insert(0, str(TOOLS))

import gen_operator_page


def test_list_of_operators_that_need_python():
    listed = set(LIST.read_text().split())
    origins = gen_operator_page.operators()
    found = {"aten::" + name for origin in ("python", "none") for name in origins[origin]}
    assert found - listed == set(), "went back to Python"
    assert listed - found == set(), "native now: take them off the list"


def test_the_page_of_operators_is_up_to_date():
    checked = subprocess.run([sys.executable, str(TOOLS / "gen_operator_page.py"), "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


@torch.library.custom_op("pellucid_tests::halves", mutates_args=())
def halves(x: torch.Tensor) -> torch.Tensor:
    return x[: x.shape[0] // 2].clone()


@halves.register_fake
def _(x):
    return x.new_empty(x.shape[0] // 2, *x.shape[1:])


def test_a_python_shape_function_is_counted_and_right():
    _core.reset_fake_stats()
    with _core.FakeScope():
        result = halves(torch.rand(4, 5))
    assert result.shape == (2, 5) and _core.is_fake(result)
    assert _core.fake_stats()["pellucid_tests::halves"] == ("python", 1)


def test_an_operator_without_any_shape_raises():
    _core.reset_fake_stats()
    x = _core.fake_tensor(torch.eye(3))
    with _core.FakeScope():
        try:
            x.to_sparse()
        except NotImplementedError as error:
            assert "no shape function for aten::_to_sparse" in str(error)
        else:
            raise AssertionError("made a sparse tensor")
