"""Code that compilers of PyTorch programs make: decompiled and run in the original's place, it gives the same results."""

import types

import pytest

import pellucid
from pellucid import decompiling

torch = pytest.importorskip("torch")


def program(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return finish(x, b)


def finish(x, b):
    parts = [part + i for i, part in enumerate((x, b))]
    return x * b, parts, {"a": x.shape[0]}


def inputs():
    torch.manual_seed(0)
    return [(torch.randn(6), torch.randn(6) + shift) for shift in (-2.0, 2.0)]


def equal(first, second):
    leaves = [torch.utils._pytree.tree_flatten(value) for value in (first, second)]
    assert leaves[0][1] == leaves[1][1]
    return all(torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(leaves[0][0], leaves[1][0]))


def in_place_of(code, function_globals):
    """A function of decompiled code, among the globals that the code made for itself."""
    result = decompiling.decompile(code, check=True)
    space = {}
    exec(compile(result.source, "<decompiled>", "exec"), space)
    made = space[next(iter(result.renamed), code.co_name)]
    function_globals.update(result.bindings)
    return types.FunctionType(made.__code__, function_globals, code.co_name), result


def check_codes(codes):
    for code in codes:
        _, result = in_place_of(code, {})
        assert result.grade in ("identical", "equal flow", "block form")


def test_what_dynamo_makes():
    from torch._dynamo.convert_frame import register_bytecode_hook

    torch._dynamo.reset()
    codes = []
    handle = register_bytecode_hook(lambda old, new: codes.append(new))
    try:
        compiled = torch.compile(program, backend="eager")
        for each in inputs():
            compiled(*each)
    finally:
        handle.remove()
    assert len(codes) >= 3
    check_codes(codes)
    again, _ = in_place_of(codes[0], program.__globals__)
    for each in inputs():
        assert equal(again(*each), program(*each))
    torch._dynamo.reset()


def test_what_pellucid_makes():
    optimized = pellucid.optimize("eager")(program)
    for each in inputs():
        optimized(*each)
    codes = [entry.code_after for entry in pellucid.cache_entries(optimized, nested=True)]
    assert len(codes) >= 3
    check_codes(codes)


def test_what_pellucid_makes_of_a_whole_graph():
    optimized = pellucid.optimize("eager")(finish)
    for each in inputs():
        optimized(*each)
    [entry] = pellucid.cache_entries(optimized)
    again, _ = in_place_of(entry.code_after, finish.__globals__)
    for each in inputs():
        assert equal(again(*each), finish(*each))
