"""What one operator costs on fake tensors, called from Python, beside the real operator and PyTorch's own FakeTensorMode.

    python bench/fake_operators.py

Prints microseconds a call, the fastest of several runs. The binding's own cost (parsing arguments, wrapping the result) is in all three.
"""

import timeit

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only

from pellucid import _core

functional = nn.functional


def calls():
    """Name, function and real arguments."""
    x, w = torch.randn(4, 64), torch.randn(64, 64)
    image, kernel = torch.randn(2, 8, 32, 32), torch.randn(8, 8, 3, 3)
    heads = torch.randn(2, 4, 16, 16)
    yield "add", torch.add, (x, x)
    yield "mm", torch.mm, (x, w)
    yield "linear", functional.linear, (x, w, w[0])
    yield "relu", torch.relu, (x,)
    yield "softmax", torch.softmax, (x, -1)
    yield "sum", torch.sum, (x, -1)
    yield "cat", torch.cat, ([x, x],)
    yield "view", torch.Tensor.view, (x, 8, 32)
    yield "transpose", torch.transpose, (x, 0, 1)
    yield "layer_norm", functional.layer_norm, (x, (64,))
    yield "conv2d", functional.conv2d, (image, kernel)
    yield "batch_norm", functional.batch_norm, (image, w[0, :8], w[1, :8])
    yield "attention", functional.scaled_dot_product_attention, (heads, heads, heads)
    yield "embedding", functional.embedding, (torch.zeros(4, 8, dtype=torch.long), w)
    yield "dropout", functional.dropout, (x,)
    yield "add_", torch.Tensor.add_, (x, x)
    yield "zeros", torch.zeros, (4, 4)


def micros(function, args):
    timer = timeit.Timer(lambda: function(*args))
    number, _ = timer.autorange()
    number = max(10, number // 5)
    return min(timer.repeat(7, number)) / number * 1e6


def main():
    print(f"{'operator':12s}{'real':>10s}{'fake':>10s}{'FakeTensorMode':>16s}")
    totals = [0.0, 0.0, 0.0]
    mode = FakeTensorMode()
    with torch.no_grad():
        for name, function, args in calls():
            times = [micros(function, args)]
            fakes = tree_map_only(torch.Tensor, _core.fake_tensor, args)
            with _core.FakeScope():
                times.append(micros(function, fakes))
            theirs = tree_map_only(torch.Tensor, mode.from_tensor, args)
            with mode:
                times.append(micros(function, theirs))
            totals = [total + time for total, time in zip(totals, times)]
            print(f"{name:12s}{times[0]:10.2f}{times[1]:10.2f}{times[2]:16.2f}")
        fake = micros(_core.fake_tensor, (args[0] if isinstance(args[0], torch.Tensor) else torch.randn(4, 4),))
        parameter = micros(_core.fake_tensor, (nn.Parameter(torch.randn(4, 4)),))
    print(f"{'all':12s}{totals[0]:10.2f}{totals[1]:10.2f}{totals[2]:16.2f}")
    print(f"making a fake: tensor {fake:.2f}, parameter {parameter:.2f}")


if __name__ == "__main__":
    main()
