"""Real models in one graph each: inference and training, values, gradients and state as eager."""

import copy

import pytest
import torch
from zoo import ZOO

import pellucid


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [tensor for item in value if item is not None for tensor in tensors(item)] if not isinstance(value, (int, float)) else []


def step(call, model, inputs, train):
    torch.manual_seed(7)
    model.train(train)
    with torch.set_grad_enabled(train):
        result = call(*inputs)
    found = tensors(result)
    if train:
        model.zero_grad()
        sum(tensor.float().sum() for tensor in found if tensor.requires_grad).backward()
    gradients = {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    return [tensor.detach() for tensor in found], gradients, {name: b.clone() for name, b in model.named_buffers()}


def same(a, b):
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", ZOO)
def test_one_graph(name, train):
    make, inputs = ZOO[name]
    torch.manual_seed(0)
    eager = make()
    model = copy.deepcopy(eager)
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    captured = pellucid.optimize(backend, fullgraph=True)(model)
    for _ in range(3):
        given = inputs()
        expected = step(eager, eager, given, train)
        got = step(captured, model, given, train)
        assert all(map(same, expected[0], got[0])) and len(expected[0]) == len(got[0])
        for want, have in zip(expected[1:], got[1:]):
            assert want.keys() == have.keys() and all(same(want[key], have[key]) for key in want)
    assert len(graphs) == 1
    operators = sum(node.op.startswith("call_") for node in graphs[0].graph.nodes)
    assert operators >= 3
    for node in graphs[0].graph.nodes:
        if node.op.startswith("call_"):
            assert "example_value" in node.meta and "stack_trace" in node.meta


def test_training_and_inference_alternate_without_new_graphs():
    make, inputs = ZOO["resnet"]
    model = make()
    captured = pellucid.optimize("eager")(model)
    for train in (True, False, True, False):
        step(captured, model, inputs(), train)
    assert len(pellucid.cache_entries(captured)) == 2


@pytest.mark.parametrize("name", ["mlp", "encoder", "decoder"])
def test_trains_through_aot_autograd(name):
    make, inputs = ZOO[name]
    torch.manual_seed(0)
    eager = make()
    for module in eager.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # AOT Autograd draws random numbers in another order
        if isinstance(module, torch.nn.MultiheadAttention):
            module.dropout = 0.0
    model = copy.deepcopy(eager)
    captured = pellucid.compile(model, backend="aot_eager", fullgraph=True)
    given = inputs()
    expected, got = step(eager, eager, given, True), step(captured, model, given, True)
    assert all(map(same, expected[0], got[0]))
    assert all(same(expected[1][key], got[1][key]) for key in expected[1])
