"""Runs the same call on real tensors and on their fakes, and compares everything a program can see of the results."""

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from pellucid import _core


def fakes(tree):
    """The same tree with fakes in the place of tensors; one tensor met twice is one fake."""
    memo = {}

    def fake_of(tensor):
        if id(tensor) not in memo:
            memo[id(tensor)] = (_core.fake_tensor(tensor), tensor)
        return memo[id(tensor)][0]

    return tree_map_only(torch.Tensor, fake_of, tree)


def describe(tensor, is_input=False):
    """What a program can see of a tensor without reading its values."""
    if tensor.layout != torch.strided:
        return (tuple(tensor.shape), tensor.dtype, tensor.layout)
    return {
        "shape": tuple(tensor.shape),
        "stride": tensor.stride(),
        "offset": tensor.storage_offset(),
        "dtype": tensor.dtype,
        "device": str(tensor.device),
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "grad_fn": type(tensor.grad_fn).__name__ if not is_input else None,
        "is_view": tensor._is_view() if not is_input else None,
        "version": None if tensor.is_inference() else tensor._version,
        "is_inference": tensor.is_inference(),
        "class": type(tensor).__name__,
        "conj": tensor.is_conj(),
    }


def describe_all(result, inputs):
    """Descriptions of the tensors of a result, and of the inputs as the call left them; other values as they are."""
    known = {id(leaf) for leaf in tree_leaves(inputs)}
    described = []
    for leaf in tree_leaves(result):
        if isinstance(leaf, torch.Tensor):
            described.append(describe(leaf, id(leaf) in known))
        else:
            described.append(leaf)
    described += [describe(leaf, True) for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    return described


def check_call(function, *args, **kwargs):
    """Calls `function` on fakes of the arguments and on the arguments themselves, and asserts that all that can be seen is equal."""
    check_all(function, args, kwargs)


def check_all(function, args, kwargs, ignored=(), backward=False):
    """The same without what is `ignored`, and with the gradients of the arguments after it if `backward`."""
    fake_args, fake_kwargs = fakes((args, kwargs))
    inputs = [(tuple(t.shape), t.stride(), t.dtype) if isinstance(t, torch.Tensor) else t for t in tree_leaves((args, kwargs))]
    with _core.FakeScope():
        fake_result = function(*fake_args, **fake_kwargs)
    made = describe_all(fake_result, (fake_args, fake_kwargs))
    assert all(_core.is_fake(leaf) or leaf.device.type == "meta" for leaf in tree_leaves(fake_result) if isinstance(leaf, torch.Tensor))
    real_result = function(*args, **kwargs)
    expected = describe_all(real_result, (args, kwargs))
    if backward:
        try:
            expected += gradients(real_result, (args, kwargs))
        except RuntimeError:  # there are no kernels for some types, and gradients that are ill-defined
            pass
        else:
            with _core.FakeScope():
                made += gradients(fake_result, (fake_args, fake_kwargs))
    assert len(made) == len(expected)
    for i, (got, want) in enumerate(zip(made, expected)):
        if isinstance(got, dict) and isinstance(want, dict):
            got, want = ({key: value for key, value in part.items() if key not in ignored} for part in (got, want))
        assert got == want, f"result {i} of {function} on {inputs}:\n fake {difference(got, want)}\n real {difference(want, got)}"


def gradients(result, inputs):
    """Descriptions of the gradients of the leaves among the inputs, for gradients of one for the results."""
    results = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad and t.layout == torch.strided]
    leaves = [t for t in tree_leaves(inputs) if isinstance(t, torch.Tensor) and t.requires_grad and t.is_leaf]
    if not results or not leaves:
        return []
    made = torch.autograd.grad(results, leaves, [torch.ones_like(t) for t in results], allow_unused=True)
    seen = ("shape", "stride", "dtype", "device", "requires_grad", "class")
    return [None if t is None else {key: value for key, value in describe(t).items() if key in seen} for t in made]


def difference(a, b):
    """The parts of one description that the other doesn't share."""
    if not isinstance(a, dict) or not isinstance(b, dict):
        return a
    return {key: value for key, value in a.items() if b.get(key) != value}


def fake_module(module):
    """Exchanges the parameters and buffers of a module for fakes, in place; tied ones stay tied."""
    memo = {}

    def fake_of(tensor):
        if id(tensor) not in memo:
            memo[id(tensor)] = (_core.fake_tensor(tensor), tensor)
        return memo[id(tensor)][0]

    for part in module.modules():
        for table in (part._parameters, part._buffers):
            for name, tensor in table.items():
                if tensor is not None:
                    table[name] = fake_of(tensor)
    return module


def origins_called(kind):
    """Names of the operators called since the last reset whose shape function is of this kind."""
    return {name for name, (origin, calls) in _core.fake_stats().items() if calls and origin == kind}
