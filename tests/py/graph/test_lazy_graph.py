"""Graphs of backend "eager": run from the record, shown as a GraphModule when somebody asks."""

import gc
import logging
import weakref

import torch

import pellucid
from pellucid import _core


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x):
        return torch.relu(self.linear(x)) + 1


def captured():
    model, x = Model(), torch.randn(4, 3)
    wrapped = pellucid.optimize(model, backend="eager")
    torch.testing.assert_close(wrapped(x), model(x))
    return wrapped, model, x


def test_the_graph_is_a_module_when_it_is_looked_at():
    wrapped, model, x = captured()
    (entry,) = pellucid.cache_entries(wrapped)
    assert isinstance(entry.graph, torch.fx.GraphModule)
    assert [node.op for node in entry.graph.graph.nodes].count("call_function") == 3
    entry.graph.graph.lint()
    values = {"linear.weight": model.linear.weight, "linear.bias": model.linear.bias}
    inputs = []
    for node in entry.graph.graph.nodes:
        if node.op == "placeholder":
            name = node.meta["source_name"]
            inputs.append(values["linear.weight"] if "weight" in name else values["linear.bias"] if "bias" in name else x)
    torch.testing.assert_close(entry.graph(*inputs)[0], model(x))
    (again,) = pellucid.cache_entries(wrapped)
    assert again.graph is entry.graph
    torch.testing.assert_close(wrapped(x), model(x))


def test_no_module_is_built_before():
    gc.collect()
    before = sum(isinstance(object, torch.fx.GraphModule) for object in gc.get_objects())
    wrapped, _, _ = captured()
    after = sum(isinstance(object, torch.fx.GraphModule) for object in gc.get_objects())
    assert after == before
    assert pellucid.cache_entries(wrapped)[0].graph is not None


def test_the_graph_keeps_no_input_alive():
    wrapped, model, x = captured()
    held = weakref.ref(x)
    del x
    gc.collect()
    assert held() is None
    parameter = weakref.ref(model.linear.weight)
    model.linear.weight = torch.nn.Parameter(torch.zeros(2, 3))
    gc.collect()
    assert parameter() is None


def test_logs_show_the_graph(caplog):
    pellucid.logging.enable("graph_code")
    try:
        with caplog.at_level(logging.DEBUG, logger="pellucid.graph_code"):
            captured()
    finally:
        pellucid.logging.disable("graph_code")
    assert "torch.relu" in caplog.text


def test_what_is_no_such_object_is_itself():
    module = torch.fx.symbolic_trace(torch.nn.ReLU())
    assert _core.graph_module_of(module) is module
    assert _core.graph_module_of(3) == 3


class Constant:
    """Something that refers back to what holds it."""


def test_cycles_through_a_record_are_collected():
    constant = Constant()
    nodes = [
        {"op": "placeholder", "target": "x", "name": "x", "source_name": "L['x']"},
        {"op": "call_function", "target": torch.add, "args": [("node", 0), ("tuple", [("const", constant)])]},
    ]
    constant.graph = _core.make_lazy_graph(_core.graph_record(nodes, [("node", 1)]))
    alive = weakref.ref(constant)
    del constant, nodes
    gc.collect()
    assert alive() is None
