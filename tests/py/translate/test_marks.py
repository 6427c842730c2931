"""What programs say about themselves: disable, graph_break, allow_in_graph, is_compiling."""

import torch
from comparing import Counter, compare

import pellucid

X = torch.arange(3.0)


@pellucid.disable
def disabled(x):
    return x + 1


@torch.compiler.disable(recursive=False)
def disabled_for_torch(x):
    return x + 1


def test_disable_ends_the_graph_with_its_reason():
    captured = compare(lambda x: disabled(x * 2) * 3, (X,))
    assert captured.reasons == ["disabled_function"] and len(captured.counter.graphs) == 2


def test_the_mark_of_torch_is_honoured():
    captured = compare(lambda x: disabled_for_torch(x * 2) * 3, (X,))
    assert captured.reasons == ["disabled_function"] and len(captured.counter.graphs) == 2


def test_graph_break():
    def f(x):
        y = x * 2
        pellucid.graph_break()
        return y * 3

    captured = compare(f, (X,))
    assert captured.reasons == ["user_graph_break"] and len(captured.counter.graphs) == 2


@pellucid.allow_in_graph
def opaque(x):
    return torch.tensor(x.shape[0]) + x


def test_an_allowed_function_is_one_node():
    counter = Counter()
    captured = pellucid.optimize(counter, fullgraph=True)(lambda x: opaque(x) * 2)
    assert torch.equal(captured(X), opaque(X) * 2)
    assert [node.target for node in counter.graphs[0].graph.nodes if node.op == "call_function"][0] is opaque
    assert counter.operators == 2


def test_is_compiling_is_true_in_captured_code():
    def f(x):
        return x + 1 if torch.compiler.is_compiling() else x

    captured = pellucid.optimize("eager", fullgraph=True)(f)
    assert torch.equal(captured(X), X + 1) and torch.equal(f(X), X)
