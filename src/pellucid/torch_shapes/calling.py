"""Calling functions of PyTorch on fakes with symbolic sizes.

Below autograd every operator finds a rule or a Python function that takes symbols. Above it some composite functions of PyTorch's C++ ask
for sizes as ints and raise; PyTorch's Python dispatcher has Python versions of most, at a price for every operator. So they run again
under it only when they raised so. The recurrent cells have none there; theirs are here. What asks for ints even then gets them: those
sizes become constants, by guards, as they do on PyTorch's own fake tensors.
"""

from typing import Any, Callable, Dict, Optional, Tuple, TypeVar

import torch
import torch.nn.functional as F
from torch._dispatch.python import enable_python_dispatcher

from pellucid import _core

_T = TypeVar("_T")

# What C++ says of sizes() and its like on a tensor with symbolic sizes, and of a SymInt where it wants an int.
_ASKED_FOR_INTS = (
    "on tensor with symbolic sizes/strides",
    "expected to contain only concrete integers",
    "dispatch_on_subclass called with NO overloaded args",
    "when unpacking SymInt, expected int but got",
)


_Bias = Optional[torch.Tensor]


def _lstm_cell(
    x: torch.Tensor,
    state: Tuple[torch.Tensor, torch.Tensor],
    w_ih: torch.Tensor,
    w_hh: torch.Tensor,
    b_ih: _Bias = None,
    b_hh: _Bias = None,
) -> Tuple[torch.Tensor, torch.Tensor]:
    hidden, cell = state
    ingate, forget, candidate, out = (F.linear(x, w_ih, b_ih) + F.linear(hidden, w_hh, b_hh)).chunk(4, 1)
    cell = forget.sigmoid() * cell + ingate.sigmoid() * candidate.tanh()
    return out.sigmoid() * cell.tanh(), cell


def _gru_cell(
    x: torch.Tensor, hidden: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: _Bias = None, b_hh: _Bias = None
) -> torch.Tensor:
    reset_x, update_x, new_x = F.linear(x, w_ih, b_ih).chunk(3, 1)
    reset_h, update_h, new_h = F.linear(hidden, w_hh, b_hh).chunk(3, 1)
    new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    return new + (update_x + update_h).sigmoid() * (hidden - new)


def _rnn_cell(activation: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    def cell(
        x: torch.Tensor, hidden: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: _Bias = None, b_hh: _Bias = None
    ) -> torch.Tensor:
        return activation(F.linear(x, w_ih, b_ih) + F.linear(hidden, w_hh, b_hh))

    return cell


_IN_PYTHON: Dict[Callable[..., Any], Callable[..., Any]] = {
    torch.lstm_cell: _lstm_cell,
    torch.gru_cell: _gru_cell,
    torch.rnn_tanh_cell: _rnn_cell(torch.tanh),
    torch.rnn_relu_cell: _rnn_cell(torch.relu),
}


def asked_for_ints(error: BaseException) -> bool:
    """Whether the error says that C++ wanted a symbolic size as an int."""
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _ASKED_FOR_INTS)


def call(function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    """`function(*args, **kwargs)`, again under the Python dispatcher if C++ asked for ints, and once more with ints if it still does."""
    try:
        return function(*args, **kwargs)
    except RuntimeError as error:
        if not asked_for_ints(error):
            raise
    if function in _IN_PYTHON:
        return call(_IN_PYTHON[function], *args, **kwargs)
    with enable_python_dispatcher():
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            if not asked_for_ints(error):
                raise
        before = _core.specialize_sizes(True)
        try:
            return function(*args, **kwargs)
        finally:
            _core.specialize_sizes(before)
