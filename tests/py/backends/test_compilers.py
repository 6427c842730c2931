"""aot_eager and inductor: values, gradients, mutation and aliasing equal eager's."""

import copy

import pytest
import torch
from records import record_from, specs_from_graph

from pellucid import _core, backends


def capture(function, inputs, parameters=(), values=None):
    """A graph module as capture makes it: sources, parameters marked, example values of intermediates if `values`."""
    traced = torch.fx.symbolic_trace(function)
    nodes, outputs = specs_from_graph(traced.graph, inputs, traced)
    for node in nodes:
        node["parameter"] = node["op"] == "placeholder" and node["target"] in parameters
    if values is not None:
        for node, value in zip(nodes, values):
            node["example_value"] = value
    return _core.build_graph_module(_core.graph_record(nodes, outputs))


def compiled_by(name, function, inputs, **more):
    return backends.resolve(name)(capture(function, inputs, **more), inputs)


def clones(inputs):
    return [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs]


def mlp(x, w1, b1, w2):
    return torch.nn.functional.linear(torch.relu(torch.nn.functional.linear(x, w1, b1)), w2)


def mlp_inputs(grad):
    torch.manual_seed(0)
    shapes = [(5, 4), (8, 4), (8,), (3, 8)]
    return [torch.randn(shape, requires_grad=grad and i > 0) for i, shape in enumerate(shapes)]


# Few programs: each costs Inductor seconds of C++ compilation.
@pytest.mark.parametrize("name", ["aot_eager", "inductor"])
def test_training(name):
    inputs = mlp_inputs(True)
    run = compiled_by(name, mlp, inputs, parameters=("w1", "b1", "w2"))
    for _ in range(2):
        ours, theirs = clones(inputs), clones(inputs)
        (got,), want = run(*ours), mlp(*theirs)
        torch.testing.assert_close(got, want)
        got.square().sum().backward()
        want.square().sum().backward()
        for mine, other in zip(ours[1:], theirs[1:]):
            torch.testing.assert_close(mine.grad, other.grad)
        assert ours[0].grad is None


@pytest.mark.parametrize("name", ["aot_eager", "inductor"])
def test_inference_with_mutation_and_aliased_outputs(name):
    def step(x, state):
        state.mul_(0.5)
        state.add_(x.mean(0))
        y = x.sin() + state
        return y, x.view(-1), state, y.t()

    inputs = [torch.randn(4, 3), torch.randn(3)]
    run = compiled_by(name, step, inputs)
    with torch.no_grad():
        for _ in range(2):
            ours, theirs = clones(inputs), clones(inputs)
            got, want = run(*ours), step(*theirs)
            for mine, other in zip([*got, *ours], [*want, *theirs]):
                torch.testing.assert_close(mine, other)
            assert got[2] is ours[1]
            assert got[1].untyped_storage().data_ptr() == ours[0].untyped_storage().data_ptr()
            assert got[3].untyped_storage().data_ptr() == got[0].untyped_storage().data_ptr()


def test_inductor_takes_options(tmp_path):
    import torch._inductor.config as config

    seen = []

    def note(graph):
        seen.append(config.epilogue_fusion)

    inputs = [torch.randn(4)]
    gm = capture(lambda x: x.sin() * 2, inputs)
    run = backends.resolve("inductor", options={"epilogue_fusion": False, "post_grad_custom_post_pass": note})
    torch.testing.assert_close(run(gm, inputs)(*inputs)[0], inputs[0].sin() * 2)
    assert seen == [False] and config.epilogue_fusion is True


# --- what the border must keep, on aot_eager


def test_inputs_that_come_to_share_memory():
    def step(x, y):
        x.add_(1)
        return x * y

    first = [torch.ones(4), torch.full((4,), 3.0)]
    run = compiled_by("aot_eager", step, first)
    base = torch.arange(6.0)
    cases = [
        lambda: clones(first),
        lambda: (lambda t: [t[:4], t[:4]])(base.clone()),
        lambda: (lambda t: [t[:4], t[1:5]])(base.clone()),
        lambda: (lambda t: [t[2:], t[:4]])(base.clone()),
        lambda: (lambda t: [t, t])(torch.arange(4.0)),
        lambda: clones(first),
    ]
    for make in cases * 2:
        ours, theirs = make(), make()
        torch.testing.assert_close(run(*ours)[0], step(*theirs))
        torch.testing.assert_close(ours, theirs)


def test_the_same_tensor_twice_then_two():
    x = torch.randn(3, requires_grad=True)
    run = compiled_by("aot_eager", lambda a, b: a * a + b, [x, x])
    (run(x, x)[0]).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach() + 1)
    y, z = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    got = run(y, z)[0]
    torch.testing.assert_close(got, y * y + z)
    got.sum().backward()
    torch.testing.assert_close(y.grad, 2 * y.detach())
    torch.testing.assert_close(z.grad, torch.ones(3))


def test_a_graph_without_mutation_is_called_directly():
    x, y = torch.randn(3), torch.randn(3)
    run = compiled_by("aot_eager", lambda a, b: a + b, [x, y])
    assert type(run).__name__ != "StorageDispatch"
    run = compiled_by("aot_eager", lambda a, b: a.add_(b), [x, y])
    assert type(run).__name__ == "StorageDispatch"
    with pytest.raises(TypeError, match="keyword"):
        run(x, b=y)


def test_the_captured_graph_is_left_as_it_was():
    inputs = mlp_inputs(True)
    gm = capture(mlp, inputs)
    before = [(n.name, n.op, n.target, dict(n.meta)) for n in gm.graph.nodes]
    code = copy.deepcopy(gm).code
    backends.resolve("aot_eager")(gm, inputs)
    assert [(n.name, n.op, n.target, dict(n.meta)) for n in gm.graph.nodes] == before
    assert gm.code == code and "dynamo_compile_id" not in gm.meta


def test_state_of_the_program_is_left_as_it_was():
    torch.manual_seed(3)
    inputs = [torch.randn(4, 4), torch.randn(4)]
    saved, version = torch.get_rng_state(), inputs[1]._version
    run = compiled_by("aot_eager", lambda x, y: torch.nn.functional.dropout(x) + y.add_(1), inputs)
    assert torch.equal(torch.get_rng_state(), saved) and inputs[1]._version == version
    got = run(*clones(inputs))[0]
    torch.set_rng_state(saved)
    torch.testing.assert_close(got, torch.nn.functional.dropout(inputs[0]) + inputs[1] + 1)
    assert torch._guards.TracingContext.try_get() is None


def test_parameters_are_static_and_sources_are_known():
    inputs = mlp_inputs(False)
    seen = {}

    def look(gm, fakes):
        context = torch._guards.TracingContext.get()
        seen["sources"] = [node._dynamo_source.name for node in gm.graph.find_nodes(op="placeholder")]
        seen["fakes"] = [type(fake).__name__ for fake in fakes]
        seen["mode"] = all(fake.fake_mode is context.fake_mode for fake in fakes)
        run = aot.run_operators(gm, fakes)
        seen["static"] = list(context.fw_metadata.static_input_indices)
        return run

    from pellucid.backends import aot

    gm = capture(mlp, inputs, parameters=("w1", "b1", "w2"))
    run = aot.compile_graph(gm, inputs, look)
    assert seen["sources"] == ["L['x']", "L['w1']", "L['b1']", "L['w2']"]
    assert seen["fakes"] == ["FakeTensor"] * 4 and seen["mode"]
    assert seen["static"] == [1, 2, 3]
    torch.testing.assert_close(run(*inputs)[0], mlp(*inputs))


def test_get_attr_parameters():
    weight, calls = torch.nn.Parameter(torch.randn(3)), torch.zeros(())
    nodes = [
        {"op": "placeholder", "target": "x", "source_name": "L['x']"},
        {"op": "get_attr", "target": "weight", "real_input": weight},
        {"op": "get_attr", "target": "calls", "real_input": calls},
        {"op": "call_method", "target": "add_", "args": [("node", 2), ("const", 1)]},
        {"op": "call_function", "target": torch.mul, "args": [("node", 0), ("node", 1)]},
    ]
    x = torch.randn(2, 3)
    run = backends.resolve("aot_eager")(_core.build_graph_module(_core.graph_record(nodes, [("node", 4)])), [x])
    torch.testing.assert_close(run(x)[0], x * weight)
    run(x)[0].sum().backward()
    torch.testing.assert_close(weight.grad, x.sum(0))
    assert calls == 2


def test_example_values_of_intermediates_become_fake_tensors():
    inputs = [torch.randn(4, 3)]
    values = [None, torch.empty(4, 3, device="meta"), (torch.empty(3, device="meta"), torch.empty(3, dtype=torch.int64, device="meta"))]

    def program(x):
        return torch.max(x.sin(), 0)[0]

    seen = []

    def look(gm, fakes):
        seen.extend(node.meta.get("example_value") for node in gm.graph.nodes)
        return aot.run_operators(gm, fakes)

    from pellucid.backends import aot

    aot.compile_graph(capture(program, inputs, values=values), inputs, look)
    from torch._subclasses import FakeTensor

    assert isinstance(seen[1], FakeTensor) and seen[1].shape == (4, 3)
    assert type(seen[2]) is tuple and all(isinstance(value, FakeTensor) for value in seen[2]) and seen[2][1].dtype is torch.int64


def test_example_values_of_capture_do_not_reach_the_compiler():
    """The fake tensors of capture and those of AOT know nothing of each other; results must come from AOT's alone."""

    def program(x, y):
        return torch.cat([x.sin(), y]).sum(0).view(-1, 1) * 2

    inputs = [torch.randn(4, 3), torch.randn(2, 3)]
    traced, values = torch.fx.symbolic_trace(program), []

    class Record(torch.fx.Interpreter):
        def run_node(self, node):
            values.append(super().run_node(node))
            return values[-1]

    fakes = [_core.fake_tensor(t) for t in inputs]
    with _core.FakeScope():
        Record(traced).run(*fakes)
    assert _core.is_fake(values[2])
    gm = capture(program, inputs, values=values[:-1])
    torch.testing.assert_close(backends.resolve("aot_eager")(gm, inputs)(*inputs)[0], program(*inputs))
    assert all(_core.is_fake(node.meta["example_value"]) for node in gm.graph.nodes if node.op != "output")


def test_wrong_number_of_inputs():
    with pytest.raises(ValueError, match="the graph has 1 inputs, 2 examples"):
        backends.resolve("aot_eager")(_core.build_graph_module(record_from(lambda x: x + 1)), [torch.ones(1), torch.ones(1)])
