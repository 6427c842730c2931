"""Records of captured operators for tests: written by hand, or read off an existing torch.fx.Graph."""

import torch
import torch.fx

from pellucid import _core


def arg_spec(value, index_of):
    """The argument as the record's builder takes it; fx nodes become references."""
    if isinstance(value, torch.fx.Node):
        return ("node", index_of[value])
    if isinstance(value, tuple):
        return ("tuple", [arg_spec(item, index_of) for item in value])
    if isinstance(value, list):
        return ("list", [arg_spec(item, index_of) for item in value])
    if isinstance(value, dict):
        return ("dict", {key: arg_spec(item, index_of) for key, item in value.items()})
    if isinstance(value, slice):
        return ("slice", [arg_spec(item, index_of) for item in (value.start, value.stop, value.step)])
    return ("const", value)


def specs_from_graph(graph, inputs=None, root=None):
    """Node specs and output specs of an fx graph. `inputs`: real values of the placeholders; `root`: holder of get_attr values."""
    nodes, outputs, index_of = [], [], {}
    values = iter(inputs or ())
    for node in graph.nodes:
        if node.op == "output":
            result = node.args[0] if isinstance(node.args[0], tuple) else (node.args[0],)
            outputs = [arg_spec(item, index_of) for item in result]
            continue
        spec = {"op": node.op, "target": node.target}
        if node.op == "placeholder":
            spec["name"] = node.name
            spec["source_name"] = f"L['{node.target}']"
            spec["real_input"] = next(values, None)
        elif node.op == "get_attr":
            spec["real_input"] = root
            for atom in node.target.split("."):
                spec["real_input"] = getattr(spec["real_input"], atom)
        else:
            spec["args"] = [arg_spec(item, index_of) for item in node.args]
            spec["kwargs"] = {key: arg_spec(item, index_of) for key, item in node.kwargs.items()}
        index_of[node] = len(nodes)
        nodes.append(spec)
    return nodes, outputs


def record_from(module_or_function, inputs=None):
    """The record of what torch.fx's own tracer sees of a function."""
    traced = torch.fx.symbolic_trace(module_or_function)
    nodes, outputs = specs_from_graph(traced.graph, inputs, traced)
    return _core.graph_record(nodes, outputs)


def describe(graph):
    """Everything an fx graph is made of, in a form that compares with ==."""

    def show(value):
        if isinstance(value, torch.fx.Node):
            return ("node", value.name)
        if isinstance(value, (tuple, list)):
            return (type(value), [show(item) for item in value])
        if isinstance(value, dict):
            return (type(value), {key: show(item) for key, item in value.items()})
        if isinstance(value, slice):
            return (slice, [show(item) for item in (value.start, value.stop, value.step)])
        return (type(value), repr(value))

    names = graph._graph_namespace
    table = graph._find_nodes_lookup_table.table
    return {
        "nodes": [
            {
                "name": node.name,
                "op": node.op,
                "target": node.target,
                "type": node.type,
                "args": show(node._args),
                "kwargs": show(node._kwargs),
                "inputs": [n.name for n in node._input_nodes],
                "users": [n.name for n in node.users],
                "sort_key": node._sort_key,
                "meta": {k: id(v) if k == "example_value" else v for k, v in node.meta.items()},
                "meta_order": list(node.meta),
                "erased": node._erased,
                "next": node.next.name,
                "prev": node.prev.name,
            }
            for node in graph.nodes
        ],
        "len": len(graph.nodes),
        "reversed": [node.name for node in reversed(graph.nodes)],
        "used_names": set(names._used_names),
        "base_count": dict(names._base_count),
        "obj_to_name": {node.name: name for node, name in names._obj_to_name.items()},
        "table": {key: [n.name for n in nodes] for key, nodes in table.items()},
    }
