"""What a backend returned runs as it is: neither its own frames nor those that it starts are captured."""

import torch

import pellucid


def with_a_break(x):
    y = torch.sin(x) + 1
    if y.sum() < -1e9:  # depends on data: a graph before it and one after
        return y
    return torch.cos(y) * 2


def test_the_python_code_of_a_backend_is_not_captured():
    captured, calls = [], []

    def helper(gm, inputs):
        calls.append(len(inputs))
        return gm.forward(*(value + 0 for value in inputs))

    def backend(gm, example_inputs):
        captured.append([node.target for node in gm.graph.nodes if node.op == "call_function"])
        return lambda *inputs: helper(gm, inputs)

    wrapped = pellucid.optimize(with_a_break, backend=backend)
    x = torch.randn(3)
    for _ in range(3):
        torch.testing.assert_close(wrapped(x), with_a_break(x))
    assert len(captured) == 2 and captured[0][0] is torch.sin and captured[1][0] is torch.cos
    assert calls == [1] * 6
    assert {entry.code_before.co_name for entry in pellucid.cache_entries(wrapped, nested=True)}.isdisjoint({"helper", "<lambda>"})


def test_frames_after_a_graph_are_looked_at_again():
    captured = []

    def backend(gm, example_inputs):
        captured.append(gm)

        def run(*inputs):
            if len(captured) == 1 and inputs[0].sum() > 1e6:
                raise ValueError("too much")
            return gm.forward(*inputs)

        return run

    wrapped = pellucid.optimize(with_a_break, backend=backend)
    x = torch.randn(3)
    try:
        wrapped(x + 1e7)  # the graph before the break raises
    except ValueError:
        pass
    torch.testing.assert_close(wrapped(x), with_a_break(x))
    assert len(captured) == 2


def test_a_function_captured_elsewhere_keeps_its_own_region_inside_a_graph():
    inner_graphs = []

    def inner_backend(gm, example_inputs):
        inner_graphs.append(gm)
        return gm.forward

    @pellucid.optimize(backend=inner_backend)
    def inner(x):
        return x * 3

    def backend(gm, example_inputs):
        return lambda *inputs: [inner(value) if value.dtype == torch.float32 else value for value in gm.forward(*inputs)]

    wrapped = pellucid.optimize(with_a_break, backend=backend)
    x = torch.randn(3)
    for _ in range(2):
        torch.testing.assert_close(wrapped(x), torch.cos((torch.sin(x) + 1) * 3) * 2 * 3)
    assert len(inner_graphs) == 1
