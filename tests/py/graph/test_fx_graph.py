"""build_graph_module: the same graph as torch.fx's public API makes, node by node, and a GraphModule that behaves like any other."""

import copy
import gc
import io
import operator
import pickle
import re
import textwrap
import types
import weakref

import pytest
import torch
import torch.fx
from records import arg_spec, describe, record_from, specs_from_graph

from pellucid import _core


def mixed(x, y):
    a = x + y
    b = torch.cat([a, x], dim=0)
    c = b[0:2, None].relu()
    d = torch.nn.functional.gelu(c, approximate="tanh")
    return d, a.view(-1, 2), {"sum": a.sum(), "same": [a, a]}


def shared_operands(x):
    y = x * x
    return torch.stack((y, y, x), 0), y.__getitem__(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(2.0))
        self.inner = torch.nn.Module()
        self.inner.register_buffer("shift", torch.arange(3.0))

    def forward(self, x):
        return x * self.scale + self.inner.shift


def names_clash(x):
    a = x.sum()  # a builtin's name
    b = a.abs().abs()
    c = torch.add(torch.add(b, 1), 2)
    return torch.max(c, b), x.max()


@pytest.mark.parametrize("function", [mixed, shared_operands, Net(), names_clash], ids=lambda f: getattr(f, "__name__", "Net"))
def test_equals_the_public_api(function):
    record = record_from(function)
    native, public = _core.build_graph_module(record), _core.build_graph_module_public(record)
    assert describe(native.graph) == describe(public.graph)
    assert native.code == public.code
    native.graph.lint()
    # ... and both are what torch.fx's own tracer made.
    traced = torch.fx.symbolic_trace(function)
    assert [node.name for node in native.graph.nodes] == [node.name for node in traced.graph.nodes]


def node(op, target, args=(), **more):
    return {"op": op, "target": target, "args": [arg if isinstance(arg, tuple) else ("const", arg) for arg in args], **more}


AWKWARD = [
    "x",
    "x_1",
    "x",
    "x_1",
    "x_07",
    "x_7",
    "sum",
    "sum",
    "None",
    "class",
    "print_3",
    "print_3",
    "1st",
    "a.b[0]",
    "",
    "-",
    "_5",
    "__5",
    "inf",
    "torch",
    "MyName",
    "é",
    "x_²",
    "x_123456789012345678901234567890",
    "x",
]


@pytest.mark.parametrize("names", [AWKWARD, [n for n in AWKWARD if n.isascii()], [n for n in AWKWARD if n.isascii() and len(n) < 20]])
def test_names_by_the_rules_of_fx(names):
    expected = torch.fx.Graph()
    for name in names:
        expected.create_node("placeholder", "p", name=name)
    expected.output(())
    # An empty name means "after the target" to a record; fx would take it as a name, so give it by the target there.
    record = _core.graph_record([node("placeholder", "p" if name else "", name=name) for name in names], [])
    native = _core.build_graph_module(record).graph
    assert [n.name for n in native.nodes] == [n.name for n in expected.nodes]
    assert native._graph_namespace._base_count == expected._graph_namespace._base_count


def test_names_from_targets():
    def camelCaseFunction(x):
        return x

    targets = [torch.add, camelCaseFunction, lambda x: x, torch.ops.aten.add.Tensor, operator.getitem, torch.nn.functional.relu]
    methods = ["__getitem__", "viewAs", "sum", "__", "___", "float"]
    expected = torch.fx.Graph()
    x = expected.placeholder("x")
    for target in targets:
        expected.call_function(target, (x,))
    for method in methods:
        expected.call_method(method, (x,))
    expected.output((x,))
    nodes, outputs = specs_from_graph(expected)
    assert [n.name for n in _core.build_graph_module(_core.graph_record(nodes, outputs)).graph.nodes] == [n.name for n in expected.nodes]


def test_nodes_added_later_do_not_clash():
    gm = _core.build_graph_module(record_from(mixed))
    first = next(iter(gm.graph.nodes))
    with gm.graph.inserting_before(gm.graph.output_node()):
        names = [gm.graph.call_function(torch.cat, ([first, first],)).name for _ in range(2)]
    assert names == ["cat_1", "cat_2"]
    gm.graph.lint()
    assert gm.graph.find_nodes(op="call_function", target=torch.cat)[-1].name == "cat_2"
    gm.graph.eliminate_dead_code()
    assert "cat_1" not in [n.name for n in gm.graph.nodes]


def test_use_def_maps_follow_edits():
    gm = _core.build_graph_module(record_from(shared_operands))
    nodes = {n.name: n for n in gm.graph.nodes}
    assert list(nodes["mul"].users) == [nodes["stack"], nodes["getitem"]]
    assert nodes["stack"].all_input_nodes == [nodes["mul"], nodes["x"]]
    nodes["mul"].replace_all_uses_with(nodes["x"])
    assert list(nodes["mul"].users) == []
    gm.graph.erase_node(nodes["mul"])
    gm.recompile()
    x = torch.randn(3)
    assert torch.equal(gm(x)[0], torch.stack((x, x, x)))


def test_arguments_are_immutable_collections():
    gm = _core.build_graph_module(record_from(mixed))
    cat = gm.graph.find_nodes(op="call_function", target=torch.cat)[0]
    assert type(cat.args[0]) is torch.fx.immutable_collections.immutable_list
    assert type(cat.kwargs) is torch.fx.immutable_collections.immutable_dict
    with pytest.raises(TypeError, match="does not support mutation"):
        cat.args[0].append(1)
    assert type(gm.graph.output_node().args[0]) is tuple


def compile_source(tmp_path, text):
    path = tmp_path / "user_program.py"
    path.write_text(textwrap.dedent(text))
    module = types.ModuleType("user_program")
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module, str(path)


def test_metadata(tmp_path):
    module, path = compile_source(
        tmp_path,
        """
        def inner(x):
            return x.sin()

        def outer(x):
            y = inner(x)
            return y + 1
        """,
    )
    outer, inner = module.outer.__code__, module.inner.__code__
    stacks = [(-1, outer, 6), (0, inner, 3), (-1, outer, 7)]
    modules = [(-1, "L__self__", "L['self']", torch.nn.Sequential), (0, "L__self___0", "L['self'][0]", torch.nn.Linear)]
    value = torch.empty(3, device="meta")
    nodes = [
        node("placeholder", "l_x_", name="l_x_", source_name="L['x']", example_value=value, parameter=True),
        node("call_method", "sin", [("node", 0)], stack=1, module=1, example_value=value),
        node("call_method", "cos", [("node", 1)], stack=1, module=1),
        node("call_function", operator.add, [("node", 1), 1], stack=2, module=0),
    ]
    gm = _core.build_graph_module(_core.graph_record(nodes, [("node", 2), ("node", 3)], stacks, modules))
    x, sin, cos, add, output = gm.graph.nodes
    assert x.meta["source_name"] == "L['x']" and x.meta["example_value"] is value
    assert x.meta["tensor_dict"] == {"_dynamo_static_input_type": "unguarded"}
    call = f'  File "{path}", line 6, in outer\n    y = inner(x)\n'
    assert sin.stack_trace == call + f'  File "{path}", line 3, in inner\n    return x.sin()\n'
    assert cos.meta["stack_trace"] is sin.meta["stack_trace"]
    assert add.stack_trace == f'  File "{path}", line 7, in outer\n    return y + 1\n'
    assert list(sin.meta["nn_module_stack"].items()) == [
        ("L__self__", ("L['self']", torch.nn.Sequential)),
        ("L__self___0", ("L['self'][0]", torch.nn.Linear)),
    ]
    assert list(add.meta["nn_module_stack"]) == ["L__self__"]
    assert "example_value" not in cos.meta and output.meta == {}
    assert re.search(r"# File: .*user_program\.py:3 in inner, code: return x\.sin\(\)", gm.print_readable(print_output=False))


def test_a_deep_stack_needs_no_recursion():
    code = mixed.__code__
    stacks = [(i - 1, code, code.co_firstlineno + 1) for i in range(50_000)]
    gm = _core.build_graph_module(
        _core.graph_record([node("placeholder", "x"), node("call_method", "sin", [("node", 0)], stack=2000)], [], stacks)
    )
    assert list(gm.graph.nodes)[1].stack_trace.count("a = x + y") == 2001


def test_dead_nodes_are_left_out():
    nodes = [
        node("placeholder", "x", name="x"),
        node("placeholder", "y", name="y", dead=True),
        node("call_method", "sin", [("node", 0)], dead=True),
        node("call_method", "sin", [("node", 0)]),
    ]
    record = _core.graph_record(nodes, [("node", 3)])
    gm = _core.build_graph_module(record)
    assert [n.name for n in gm.graph.nodes] == ["x", "sin", "output"]
    x = torch.randn(2)
    assert torch.equal(gm(x)[0], x.sin()) and torch.equal(_core.make_replay(record)(x)[0], x.sin())


def test_a_reference_to_a_dead_or_later_node_is_an_internal_error():
    for index in (0, 2, 7):
        record = _core.graph_record(
            [node("placeholder", "x", dead=True), node("call_method", "sin", [("node", index)]), node("placeholder", "y")], []
        )
        for build in (_core.build_graph_module, _core.build_graph_module_public, _core.make_replay):
            with pytest.raises(SystemError, match="CHECK"):
                build(record)


# --- the module


def test_code_is_not_made_before_it_is_asked_for():
    gm = _core.build_graph_module(record_from(mixed))
    assert isinstance(gm, torch.fx.GraphModule) and type(gm).__name__ == "GraphModule"
    assert len(gm.graph.nodes) == 10
    assert "_code" not in vars(gm)
    forward = gm.forward
    assert "_code" in vars(gm)
    assert isinstance(forward, types.MethodType) and forward.__func__.__code__.co_filename.startswith("<eval_with_key>")
    x, y = torch.randn(3, 2), torch.randn(3, 2)
    for got, want in zip(forward(x, y)[:2], mixed(x, y)[:2]):
        assert torch.equal(got, want)


def test_recompile_after_an_edit_is_lazy_and_right():
    gm = _core.build_graph_module(record_from(shared_operands))
    x = torch.randn(3)
    gm(x)
    multiply = gm.graph.find_nodes(op="call_function", target=operator.mul)[0]
    multiply.target = torch.add
    gm.recompile()
    assert torch.equal(gm(x)[1], (x + x)[0])
    assert torch.equal(gm.forward(x)[1], (x + x)[0])


def test_two_modules_have_their_own_forward():
    first, second = _core.build_graph_module(record_from(mixed)), _core.build_graph_module(record_from(shared_operands))
    assert first.code != second.code
    assert first.forward.__func__ is not second.forward.__func__


def test_deepcopy_pickle_and_save():
    net = Net()
    x = torch.randn(3)
    for original in (_core.build_graph_module(record_from(net)), _core.build_graph_module(record_from(net)).eval()):
        clone = copy.deepcopy(original)
        assert describe(clone.graph)["nodes"] == describe(original.graph)["nodes"]
        assert clone.scale is not original.scale
        assert torch.equal(clone(x)[0], net(x))
        loaded = pickle.loads(pickle.dumps(original))
        assert isinstance(loaded, torch.fx.GraphModule) and torch.equal(loaded(x)[0], net(x))
        buffer = io.BytesIO()
        torch.save(original, buffer)
        buffer.seek(0)
        assert torch.equal(torch.load(buffer, weights_only=False)(x)[0], net(x))
    assert torch.equal(copy.copy(original)(x)[0], net(x))


def test_passes_of_torch_run_on_it():
    gm = _core.build_graph_module(record_from(mixed))
    x, y = torch.randn(3, 2), torch.randn(3, 2)
    assert torch.equal(torch.fx.Interpreter(gm).run(x, y)[0], mixed(x, y)[0])
    again = torch.fx.symbolic_trace(_core.build_graph_module(record_from(mixed)))
    assert torch.equal(again(x, y)[0], mixed(x, y)[0])
    from torch.fx.passes.shape_prop import ShapeProp

    ShapeProp(gm).propagate(x, y)
    assert gm.graph.find_nodes(op="call_function", target=torch.cat)[0].meta["tensor_meta"].shape == (6, 2)
    assert torch.equal(torch.fx.Transformer(gm).transform()(x, y)[0], mixed(x, y)[0])


def test_print_tabular(capsys):
    _core.build_graph_module(record_from(mixed)).graph.print_tabular()
    out = capsys.readouterr().out
    assert "placeholder" in out and "built-in function add" in out


def test_attributes_reach_the_module():
    net = Net()
    gm = _core.build_graph_module(record_from(net))
    assert gm.scale is net.scale and gm.inner.shift is net.inner.shift
    assert [name for name, _ in gm.named_parameters()] == ["scale"]
    gm(torch.ones(3))[0].sum().backward()
    assert net.scale.grad == 3


def test_nothing_is_kept_alive():
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    record = _core.graph_record([node("placeholder", "x"), node("call_function", torch.add, [("node", 0), marker])], [("node", 1)])
    gm, replay = _core.build_graph_module(record), _core.make_replay(record)
    del marker, record
    assert alive() is not None
    del gm, replay
    gc.collect()
    assert alive() is None


def test_building_leaves_the_collector_as_it_was():
    record = record_from(mixed)
    gc.disable()
    try:
        _core.build_graph_module(record)
        assert not gc.isenabled()
    finally:
        gc.enable()
    _core.build_graph_module(record)
    assert gc.isenabled()


def test_arguments_of_every_kind_survive():
    value = ((1, [2.5, None]), {"k": slice(None, 3, None)}, torch.float32, ...)
    nodes = [node("placeholder", "x"), {"op": "call_function", "target": dict, "args": [arg_spec(item, {}) for item in value]}]
    record = _core.graph_record(nodes, [("node", 1)])
    native, public = _core.build_graph_module(record), _core.build_graph_module_public(record)
    assert describe(native.graph) == describe(public.graph)
    assert list(native.graph.nodes)[1].args == value


def test_the_module_is_what_its_constructor_makes():
    """`of_graph` copies the attributes that torch's constructor sets; a torch that sets others is followed."""
    from pellucid.graph_module import GraphModule

    def made(make):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        graph.output((graph.call_function(torch.add, (x, graph.get_attr("a.b"))),))
        return make({"a.b": torch.ones(2)}, graph)

    ours, theirs = made(GraphModule.of_graph), made(GraphModule)
    assert type(ours).__name__ == type(theirs).__name__ and type(ours).__mro__[1:] == type(theirs).__mro__[1:]
    assert list(vars(ours)) == list(vars(theirs))
    for name, value in vars(theirs).items():
        assert type(getattr(ours, name)) is type(value), name
        if isinstance(value, (dict, list, set)):
            assert getattr(ours, name) is not value and len(getattr(ours, name)) == len(value), name
    assert ours.graph.owning_module is ours
    assert ours.code == theirs.code
    torch.testing.assert_close(ours(torch.ones(2)), theirs(torch.ones(2)))
    assert dict(ours.a.named_buffers()).keys() == {"b"}
    other = made(GraphModule.of_graph)
    other._forward_hooks[0] = lambda *args: None
    other.meta["key"] = 1
    assert not ours._forward_hooks and not ours.meta and not made(GraphModule.of_graph).meta
    assert type(other) is not type(ours)
